"""The lab beside the simulator, and what is said of the lab's own work. Real time: short runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

import weirlab

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.realtime, pytest.mark.quiet, pytest.mark.needs_lab]

SHORT = ("--idle", "1s", "--load", "5s", "--cooldown", "0s")


def test_simulator_and_lab_agree(weir: Weir, tmp_path: Path) -> None:
    """One download through a shaper, in which neither machine nor chance has much to say."""
    words = ("validate", "tcp_download", "--queue", "htb rate 95% fq_codel", *SHORT, "--out", "o")
    done = weir(*words, "--json")
    assert done.returncode in {0, 1}, done.stderr
    [one] = json.loads(done.stdout)["configurations"]
    assert (one["side"], one["runs"], one["reference"], one["reference_runs"]) == ("sim", 5, "lab", 1)
    assert (tmp_path / "o/charts/cdf-01-htb-rate-95-fq-codel.png").exists()
    if one["warnings"]:
        pytest.skip(f"the machine is busy: {one['warnings'][0]}")
    found = one["findings"]
    # Wider than the goals, because the machine of a test does other things too.
    assert abs(found["down_mbps"]["difference"]) < 0.1
    assert abs(found["min_ms"]["difference"]) < 0.1
    assert done.returncode == (0 if one["agrees"] else 1)


def test_markers_colour_real_packets(tmp_path: Path) -> None:
    """100 KB a second are green, and a line of twice that carries the rest as red."""
    r0 = {"name": "r0", "marker": "token_bucket tokens 10000 interval 100ms"}
    r1 = {"name": "r1", "queue": "rio in_min 20000 in_max 40000", "rate": "1600kbit"}
    [record] = weirlab.run(
        "tcp_download",
        link={"name": "marked", "title": "Marked", "up": [], "down": [r0, r1]},
        world="lab",
        out=tmp_path / "o",
        phases={"idle": "0s", "load": "4s", "cooldown": "0s"},
    )
    queue = record.queue.filter(pl.col("queue") == "down/r1")
    left = dict(queue.group_by("class").agg(pl.col("departed_bytes").sum()).iter_rows())
    assert left[""] == left["in"] + left["out"]
    # Packets of 1500 bytes cost 1480: six an interval, and what comes in the first.
    assert 0.8 * 400_000 * 0.9 < left["in"] < 1.1 * 410_000
    assert left["out"] > 100_000
