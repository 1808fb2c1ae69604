"""What a line could carry whose rate is not always the same."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weirlab
from weirlab.errors import RecordError
from weirlab.stats import summarise
from weirlab.stats.capacity import capacity_bytes, carried_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

PATHS = {"period": "3s", "first": "2s", "delay": "5ms", "min_rate_share": 0.3, "outage": "200ms"}


def run(out: Path, seed: int, **of_line: Any) -> Record:
    line = {"name": "line", "rate": "40mbit", "delay": "10ms", "queue": "bfifo limit 400000"}
    link = {"name": "l", "title": "A line", "up": [line], "down": [line | of_line]}
    phases = {"idle": "1s", "load": "12s", "cooldown": "0s"}
    (record,) = weirlab.run("tcp_ndown", link=link, phases=phases, seed=seed, out=out)
    return record


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("of_line", [{}, {"changes": [{"at": "7s", "rate": "20mbit"}]}])
def test_a_line_in_use_all_the_time_carried_what_each_path_could(
    tmp_path: Path, seed: int, of_line: dict[str, Any]
) -> None:
    """Eight downloads behind a queue of 80 ms leave nothing, whichever path it is and whatever it pauses."""
    record = run(tmp_path / "run", seed, reconfiguration=PATHS, **of_line)
    hop = record.manifest.scenario["path"]["down"][0]
    middles, carried, _ = carried_bytes(record, "down", hop)
    # Of each path from when it is used on until it ends.
    for second in (3, 6, 9):
        edges = np.array([second - 0.7, second + 1.9]) * 1e9
        could = capacity_bytes(record, "down", hop, edges.astype(np.int64))
        assert could is not None
        within = (middles > edges[0]) & (middles < edges[1])
        assert carried[within].sum() == pytest.approx(could[1] - could[0], rel=0.02), second
    down = summarise(record).down
    assert down is not None
    assert down.utilisation is not None
    assert 0.95 < down.utilisation <= 1.0


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"period_ns": 0}, "reconfiguration: period 0ms: write 10ms or more"),
        ({"period_ns": -1}, "invalid value: integer `-1`"),
        ({"outage_ns": None}, "invalid type: null"),
    ],
)
def test_a_manifest_with_paths_that_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    record = run(tmp_path / "run", 1, reconfiguration=PATHS)
    manifest = json.loads((record.path / "manifest.json").read_text())
    manifest["scenario"]["path"]["down"][0]["reconfiguration"] |= changes
    (record.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RecordError, match=f"hop `down/line` of its scenario: .*{re.escape(why)}"):
        summarise(weirlab.open_record(record.path))


def test_a_pause_is_none_of_what_a_line_could_carry(tmp_path: Path) -> None:
    record = run(tmp_path / "run", 1, reconfiguration=PATHS | {"min_rate_share": 1.0})
    hop = record.manifest.scenario["path"]["down"][0]
    times = [0, 2_000_000_000, 2_200_000_000, 5_000_000_000, 5_100_000_000]
    could = capacity_bytes(record, "down", hop, times)
    assert could is not None
    assert could.tolist() == pytest.approx([0, 10e6, 10e6, 24e6, 24e6])


def test_a_pause_at_the_beginning_is_none_of_it_either(tmp_path: Path) -> None:
    record = run(tmp_path / "run", 1, reconfiguration=PATHS | {"min_rate_share": 1.0, "first": "0s"})
    hop = record.manifest.scenario["path"]["down"][0]
    could = capacity_bytes(record, "down", hop, [0, 100_000_000, 200_000_000, 3_000_000_000, 3_200_000_000])
    assert could is not None
    assert could.tolist() == pytest.approx([0, 0, 0, 14e6, 14e6])
