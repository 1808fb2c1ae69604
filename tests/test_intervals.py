"""Rates are of whole intervals of samples, however long these are and wherever phases begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weirlab
from conftest import SHORT
from weirlab.plots.ellipse import steps
from weirlab.report import flow_table
from weirlab.scores import measured
from weirlab.stats import summarise, totals_mbps
from weirlab.stats.assertions import Assertion
from weirlab.stats.intervals import whole_intervals

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


def run(test: str, sampling: str = "100ms", **phases: str) -> Record:
    return weirlab.run(test, phases=phases, sampling={"throughput": sampling, "queue": sampling})[0]


def test_the_whole_intervals_of_a_span() -> None:
    assert whole_intervals((5, 11), 1) == (5, 11)
    assert whole_intervals((5, 11), 4) == (8, 8)
    assert whole_intervals((0, 13), 4) == (0, 12)
    start, end = whole_intervals((5, 6), 4)
    assert end < start


@pytest.mark.parametrize("every", ["1s", "2s", "3s", "4s"])
def test_figures_are_of_whole_intervals_within_the_load(every: str) -> None:
    phases = {"idle": "5s", "load": "16s", "cooldown": "3s"}
    fine, coarse = (summarise(run("rrul", one, **phases)) for one in ("100ms", every))
    for exact, found in ((fine.up, coarse.up), (fine.down, coarse.down)):
        assert exact is not None
        assert found is not None
        # Up to three seconds at each end, slow start among them, are in no whole interval.
        assert found.goodput_mbps == pytest.approx(exact.goodput_mbps, rel=0.1)
        assert found.throughput_mbps == pytest.approx(exact.throughput_mbps, rel=0.1)
        assert exact.utilisation is not None
        assert found.utilisation is not None
        assert exact.utilisation - 0.05 < found.utilisation <= 1.0


def test_a_load_without_a_whole_interval_has_no_rates() -> None:
    record = run("tcp_upload", "5s", idle="1s", load="3s", cooldown="3s")
    found = summarise(record).up
    assert found is not None
    assert (found.goodput_mbps, found.throughput_mbps, found.utilisation) == (None, None, None)
    assert found.per_flow_mbps == {}
    assert totals_mbps(record, "up").height == 0
    assert not Assertion("up.goodput < 1mbit").of(record).holds


@pytest.mark.parametrize(
    ("every", "idle", "load"), [("200ms", "2.05s", "10.05s"), ("300ms", "2s", "10s"), ("3s", "2s", "10s")]
)
def test_goodputs_of_flows_add_up_where_one_begins_later(every: str, idle: str, load: str) -> None:
    """The statistics page promises it: a flow that begins later is told of the same span as the others."""
    found = summarise(run("tcp_2up_delay", every, idle=idle, load=load)).up
    assert found is not None
    assert found.goodput_mbps is not None
    assert len(found.per_flow_mbps) == found.flows == 2
    assert sum(found.per_flow_mbps.values()) == pytest.approx(found.goodput_mbps, rel=1e-9)


def test_flows_without_a_whole_interval_are_told_as_such() -> None:
    """No flow has a goodput of the load where all together have none, and none vanishes from the table."""
    summary = summarise(run("tcp_2up_delay", "7s", idle="2s", load="10s"))
    assert summary.up is not None
    assert (summary.up.goodput_mbps, summary.up.per_flow_mbps) == (None, {})
    assert list(summary.up.per_flow_running_mbps) == ["TCP stream 2"]
    first, second, _ = zip(*(column.cells for column in flow_table(summary).columns[:2]), strict=True)
    assert first == ("TCP stream 2", "-")
    assert second == ("1 flow without a whole interval of samples", "-")


def test_the_edges_of_a_phase_need_not_be_those_of_intervals() -> None:
    phases = {"idle": "1070ms", "load": "6050ms", "cooldown": "2s"}
    fine, usual = (summarise(run("rrul", every, **phases)) for every in ("10ms", "100ms"))
    for exact, found in ((fine.up, usual.up), (fine.down, usual.down)):
        assert exact is not None
        assert found is not None
        assert found.utilisation == pytest.approx(exact.utilisation, rel=0.01)
        assert found.goodput_mbps == pytest.approx(exact.goodput_mbps, rel=0.005)
        assert found.per_flow_mbps == pytest.approx(exact.per_flow_mbps, rel=0.02)


def test_the_rates_of_flows_add_up_to_that_of_all() -> None:
    """One began before the load, whose first interval is no whole one, and the other within it."""
    early = {"name": "early", "udp": {"rate": "1mbit"}, "start": "500ms", "stop": "3s"}
    burst = {"name": "burst", "bytes": "20kB", "start": "1070ms"}
    flows = [{"direction": "down"} | flow for flow in (early, burst)]
    test = {"name": "two", "title": "Two", "phases": {"idle": "1070ms", "load": "2s"}, "flows": flows}
    found = summarise(weirlab.run(test, sampling={"throughput": "100ms"})[0]).down
    assert found is not None
    assert found.per_flow_mbps.keys() == {"early", "burst"}
    assert sum(found.per_flow_mbps.values()) == pytest.approx(found.goodput_mbps)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Record:
    out: Path = tmp_path_factory.mktemp("short") / "out"
    return weirlab.run("rrul", phases=SHORT, out=out)[0]


@pytest.mark.parametrize("span", ["3.01s..3.05s", "2.95s..3.08s"])
def test_a_span_of_no_whole_interval_has_no_rate(short: Record, span: str) -> None:
    for rate in ("up.goodput", "down.goodput"):
        assert not Assertion(f"{rate}[{span}] < 1gbit").of(short).holds
    assert not Assertion(f"up.utilisation[{span}] < 9").of(short).holds


def test_a_span_has_the_rate_of_the_whole_intervals_in_it(short: Record) -> None:
    for figure in ("up.goodput", "up.utilisation"):
        inside = Assertion(f"{figure}[3s..3.2s] >= {'0mbit' if 'good' in figure else '0'}").of(short)
        around = Assertion(f"{figure}[2.95s..3.25s] >= {'0mbit' if 'good' in figure else '0'}").of(short)
        assert around.left == inside.left > 0


def test_a_run_without_samples_of_throughput_has_no_rates() -> None:
    record = weirlab.run("rrul", phases=SHORT, sampling={"throughput": "0s"})[0]
    figures = measured(record)
    assert figures is not None
    assert (figures.down_mbps, figures.up_mbps) == (None, None)
    assert steps([record], "up").mbps.size == 0
