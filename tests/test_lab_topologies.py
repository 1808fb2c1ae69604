"""The parking lot over real sockets in the lab, and who has no routes. Real time: a short run."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import weirlab
from live import skip_if_disturbed, weir_in
from test_topologies import PARKING_LOT

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from weirlab.record import Record

pytestmark = pytest.mark.realtime

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A run of the shipped parking lot in the lab, shortened."""
    said = tomllib.loads(PARKING_LOT.read_text())
    out = tmp_path_factory.mktemp("parking") / "out"
    (found,) = weirlab.run(
        said["test"], link=said["link"], tcp=said["tcp"], phases={"load": "15s"}, world="lab", out=out
    )
    skip_if_disturbed(found)
    return found


@pytest.mark.needs_lab
def test_each_line_is_full_and_the_long_flow_has_least(record: Record) -> None:
    names = dict(record.flow_names.select("flow", "name").iter_rows())
    steady = record.throughput.filter(pl.col("t_ns") > 5 * SECOND)
    sums = steady.group_by("flow").agg(pl.col("bytes", "wire_bytes").sum())
    rates = {names[flow]: (data * 8e-6 / 10, wire * 8e-6 / 10) for flow, data, wire in sums.iter_rows()}
    assert set(rates) == {"long", "cross a", "cross b", "cross c"}
    long, long_wire = rates.pop("long")
    for name, (goodput, wire) in rates.items():
        # 10 Mbit/s, and what stood in the queues when the five seconds were over.
        assert 8.5 < wire + long_wire < 10.6, name
        assert goodput > long, name
    assert long > 0.05


@pytest.mark.needs_lab
def test_a_ping_waits_in_the_queues_of_its_route(record: Record) -> None:
    rows = record.latency.filter(pl.col("rtt_ns").is_not_null() & (pl.col("t_ns") > 5 * SECOND))
    of = {name: rows.filter(pl.col("probe") == number) for number, name in enumerate(record.probe_names)}
    # Delays of 5 ms behind each bottleneck and on the way back; a full queue of 50 packets takes 60 ms. What
    # the lab itself adds is bounded as for every run: 5 ms.
    medians = {}
    for name, bottlenecks in (("ping end", 3), ("ping exit b", 1)):
        least, medians[name], p99 = np.quantile(of[name]["rtt_ns"].to_numpy() / 1e6, [0, 0.5, 0.99])
        empty, full = 5 * (bottlenecks + 1), 5 * (bottlenecks + 1) + 60 * bottlenecks
        assert least >= empty - 0.1, name
        assert empty + 10 < medians[name] < full, name
        assert p99 < full + 5, name
    assert medians["ping exit b"] < medians["ping end"]


def refused(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a run of the parking lot says, of which nothing is left."""
    done = weir_in(folder, "run", str(PARKING_LOT), *words, "--out", "out")
    assert done.returncode in {1, 2}
    assert list(folder.iterdir()) == []
    return done


def test_the_kernels_queues_have_no_routes(tmp_path: Path) -> None:
    done = refused(tmp_path, "--world", "lab", "--datapath", "kernel")
    assert done.stderr.strip() == (
        "weir: route `all`: the kernel's queues stand in one chain, which all packets pass: use the "
        "userspace data path"
    )


def test_the_world_net_has_no_routes(tmp_path: Path) -> None:
    done = refused(tmp_path, "--world", "net", "--host", "127.0.0.1:1")
    assert "host `end`: link `path` has no route `all` (known: it has none)" in done.stderr
