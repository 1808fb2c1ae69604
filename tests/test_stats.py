"""Statistics: exact figures on numbers that can be checked by hand, and on a run."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weirlab
from conftest import SHORT
from weirlab.errors import UsageError
from weirlab.plots import series
from weirlab.record import open_record
from weirlab.record.manifest import Imported
from weirlab.report import advice
from weirlab.stats import (
    bypassed_queues,
    coefficient_of_variation,
    compare,
    describe,
    goodputs_mbps,
    interval,
    jain_index,
    summarise,
)
from weirlab.stats.assertions import Assertion
from weirlab.stats.comparison import Factor, factor, factor_text
from weirlab.stats.distribution import quantile
from weirlab.stats.sharing import sharing
from weirlab.viewer.data import record_data

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


def with_tables(record: Record, **tables: pl.DataFrame) -> Record:
    """A copy of the record with other tables."""
    copy = open_record(record.path)
    vars(copy).update(tables)
    return copy


def test_the_usual_figures() -> None:
    figures = describe(pl.Series([4.0, None, 1.0, 3.0, 2.0]))
    assert figures is not None
    assert (figures.count, figures.mean, figures.median) == (4, 2.5, 2.5)
    assert (figures.min, figures.max) == (1.0, 4.0)
    assert figures.std == pytest.approx(math.sqrt(5 / 3))
    # Definition 7: the quantile q of n numbers lies at (n - 1) q from the smallest.
    assert figures.p25 == pytest.approx(1.75)
    assert figures.p95 == pytest.approx(3.85)


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50), st.sampled_from([0, 0.05, 0.25, 0.5, 0.99, 1])
)
def test_quantiles_are_those_of_numpy(numbers: list[float], q: float) -> None:
    assert quantile(pl.Series([None, *numbers], dtype=pl.Float64), q) == np.quantile(numbers, q)


def test_nothing_has_no_figures() -> None:
    assert describe(pl.Series([], dtype=pl.Float64)) is None
    assert describe(pl.Series([None, None], dtype=pl.Float64)) is None
    one = describe(pl.Series([7.0]))
    assert one is not None
    assert one.std is None  # one number has no scatter that could be told


def test_fairness_of_the_thesis_tables() -> None:
    # CoV 0.38 means Jain 0.8738, CoV 0.06 means 0.9964.
    shares = [1 - 0.38, 1 + 0.38]
    assert coefficient_of_variation(shares) == pytest.approx(0.38)
    assert jain_index(shares) == pytest.approx(1 / (1 + 0.38**2))
    assert jain_index([1, 1, 1, 1]) == 1.0
    assert jain_index([1, 0, 0, 0]) == 0.25
    assert jain_index([5]) is None
    assert jain_index([0, 0]) is None


def test_students_interval() -> None:
    # Five numbers, mean 3, sd 1.5811: half-width 2.776 * 1.5811 / sqrt(5) = 1.963.
    found = interval([1, 2, 3, 4, 5, None])
    assert found is not None
    assert (found.mean, found.count) == (3.0, 5)
    assert found.high == pytest.approx(3 + 1.9632, abs=1e-3)
    single = interval([2.0])
    assert single is not None
    assert (single.low, single.high) == (None, None)
    assert interval([None]) is None


def test_a_run_in_figures(rrul: list[Record]) -> None:
    bloated, cured = (summarise(record) for record in rrul)
    assert bloated.latency.idle is not None
    assert bloated.latency.idle.median == pytest.approx(14.2, abs=0.3)
    assert bloated.latency.increase_mean_ms is not None
    assert cured.latency.increase_mean_ms is not None
    assert bloated.latency.increase_mean_ms > 100
    assert cured.latency.increase_mean_ms < 15
    assert cured.down is not None
    assert cured.down.flows == 4
    assert cured.down.jain_index is not None
    assert cured.down.jain_index > 0.99
    assert cured.down.utilisation is not None
    assert 0.9 < cured.down.utilisation <= 1.0
    assert sum(cured.down.per_flow_mbps.values()) == pytest.approx(cured.down.goodput_mbps)
    assert cured.down.throughput_mbps is not None
    assert cured.down.goodput_mbps is not None
    assert cured.down.throughput_mbps > cured.down.goodput_mbps


def test_a_record_is_summarised_once(rrul: list[Record]) -> None:
    """A report asks for the same figures in half a dozen places."""
    one = with_tables(rrul[0])
    assert summarise(one) is summarise(one)
    assert summarise(with_tables(one, latency=one.latency.clear())).latency.loaded is None
    before = summarise(one)
    one.manifest = replace(one.manifest, note="said later")
    assert (before.note, summarise(one).note) == ("", "said later")


def test_the_increase_of_probes_at_different_distances_is_taken_from_each_ones_own_idle(
    rrul: list[Record],
) -> None:
    """A near and a far probe, each 20 ms slower under load: pooled quantiles would say anything but 20."""
    rows = [
        {"t_ns": at, "probe": probe, "rtt_ns": near_ms * 1_000_000 + longer}
        for probe, near_ms in ((0, 26), (1, 184))
        for at, longer in (
            *((10_000_000 * n, n % 3 * 1000) for n in range(100 - 60 * probe)),
            *((1_000_000_000 + 10_000_000 * n, 20_000_000 + n % 3 * 1000) for n in range(300)),
        )
    ]
    found = summarise(with_tables(rrul[0], latency=pl.DataFrame(rows))).latency
    increases = (
        found.increase_mean_ms,
        found.increase_median_ms,
        found.increase_p95_ms,
        found.increase_p99_ms,
    )
    assert increases == pytest.approx((20, 20, 20, 20), abs=0.003)


def test_one_probe_has_the_increase_of_its_own_figures(rrul: list[Record]) -> None:
    one_probe = with_tables(rrul[0], latency=rrul[0].latency.filter(pl.col("probe") == 0))
    found = summarise(one_probe).latency
    assert found.idle is not None
    assert found.loaded is not None
    assert found.increase_p99_ms == pytest.approx(found.loaded.p99 - found.idle.p99)
    assert found.increase_mean_ms == pytest.approx(found.loaded.mean - found.idle.mean)


def test_a_probe_that_was_never_idle_has_no_increase(rrul: list[Record]) -> None:
    late = rrul[0].latency.filter((pl.col("probe") != 1) | (pl.col("t_ns") > 2_000_000_000))
    found = summarise(with_tables(rrul[0], latency=late)).latency
    without = summarise(
        with_tables(rrul[0], latency=rrul[0].latency.filter(pl.col("probe") != 1)),
    ).latency
    assert found.increase_mean_ms == without.increase_mean_ms
    never = rrul[0].latency.filter(pl.col("t_ns") > 2_000_000_000)
    assert summarise(with_tables(rrul[0], latency=never)).latency.increase_mean_ms is None


def test_what_a_killed_run_did_not_total_comes_from_the_senders_samples(rrul: list[Record]) -> None:
    whole = summarise(rrul[0]).up
    killed = summarise(with_tables(rrul[0], flows=rrul[0].flow_names)).up
    assert whole is not None
    assert killed is not None
    assert whole.retransmitted_segments
    assert killed.retransmitted_segments is not None
    # The totals also count what was resent after the last sample.
    assert 0 < killed.retransmitted_segments <= whole.retransmitted_segments
    assert killed.timeouts is not None
    assert (killed.loss_rate, killed.mark_rate) == (None, None)
    rows = weirlab.frame(with_tables(rrul[0], flows=rrul[0].flow_names), by="flow").filter(direction="up")
    assert rows["retransmitted_segments"].sum() == killed.retransmitted_segments
    assert rows["timeouts"].to_list() == [0] * 4
    assert rows["sent_segments"].to_list() == [None] * 4


def test_a_control_connection_of_a_program_shares_no_line(rrul: list[Record]) -> None:
    """Its few bytes at the start and at the end would halve the average of the one that carries the load."""
    record = rrul[0]
    ends = [{"client": f"10.0.0.1:{port}", "server": "10.1.0.1:5201"} for port in (1, 2)]
    # Of the first connection both ways carry 100 bytes now and then, of the second what they did.
    slight = pl.when(pl.col("flow") < 2).then(pl.col("bytes").clip(0, 100)).otherwise(pl.col("bytes"))
    rows = record.throughput.filter(pl.col("flow") < 4).with_columns(slight.alias("bytes"))
    few = rows.filter((pl.col("flow") > 1) | (pl.col("t_ns") % 5_000_000_000 == 0))
    program = with_tables(record, flows=record.flows.clear(), throughput=few)
    scenario = record.manifest.scenario | {"flows": []}
    program.manifest = replace(record.manifest, world="lab", scenario=scenario, extra={"connections": ends})
    names = [flow["name"] for flow in sharing(program, program.flow_rows)]
    assert names == ["port 2 up to 5201", "port 2 down from 5201"]
    found = summarise(program)
    assert found.down is not None
    assert (found.down.flows, found.down.jain_index) == (2, None), "one has the line alone"
    lines = series.throughput_mbps(program, "down")
    assert lines is not None
    assert lines.average == pytest.approx(lines.lines["port 2 down from 5201"])
    assert [flow["shares"] for flow in record_data(program, "a program")["flows"]] == [
        False,
        False,
        True,
        True,
    ]
    assert sharing(record, record.flow_rows) == record.flow_rows, "of a test all share"
    # What they carried is summed once, whoever asks.
    with_less = with_tables(record, flows=record.flows.clear(), throughput=few)
    with_less.manifest = program.manifest
    flows = [with_less.flows_in(way) for way in ("down", "up", "down")]
    with patch.object(with_less, "pieces", side_effect=with_less.pieces) as read:
        assert [len(sharing(with_less, of)) for of in flows] == [1, 1, 1]
    assert read.call_count == 1


def test_what_programs_in_a_lab_resent_comes_from_the_senders_samples(rrul: list[Record]) -> None:
    """No scenario names their connections, and nothing totals them; an end that sent nothing counts not."""
    record = rrul[0]
    ends = [{"client": f"10.0.0.1:{port}", "server": "10.1.0.1:80"} for port in range(1, 5)]
    scenario = record.manifest.scenario | {"flows": []}

    def of_programs(**tables: pl.DataFrame) -> Record:
        copy = with_tables(record, flows=record.flows.clear(), **tables)
        copy.manifest = replace(copy.manifest, scenario=scenario, extra={"connections": ends})
        return copy

    last = dict(record.tcp.group_by("flow").agg(pl.col("retransmits").max()).iter_rows())
    found = summarise(of_programs())
    assert found.up is not None
    assert found.down is not None
    assert (found.up.flows, found.down.flows) == (4, 4)
    assert found.up.retransmitted_segments == sum(last[flow] for flow in (0, 2, 4, 6)) > 0
    assert found.down.retransmitted_segments == sum(last[flow] for flow in (1, 3, 5, 7))
    assert found.up.timeouts is not None
    rows = weirlab.frame(of_programs(), by="flow")
    assert rows["retransmitted_segments"].to_list() == [last[flow] for flow in range(8)]
    assert rows["timeouts"].null_count() == 0
    others = pl.col("flow") != 1
    unseen = summarise(of_programs(tcp=record.tcp.filter(others))).down
    assert unseen is not None
    assert unseen.retransmitted_segments is None
    of_unseen = weirlab.frame(of_programs(tcp=record.tcp.filter(others)), by="flow")["retransmitted_segments"]
    assert of_unseen.to_list() == [last[flow] if flow != 1 else None for flow in range(8)]
    silent = of_programs(tcp=record.tcp.filter(others), throughput=record.throughput.filter(others))
    idle = summarise(silent).down
    assert idle is not None
    assert idle.retransmitted_segments == sum(last[flow] for flow in (3, 5, 7))


def test_unknown_is_never_nought(rrul: list[Record]) -> None:
    """Tables that are absent, and columns that a kernel does not count, are no zeros."""
    record = rrul[0]
    nothing = with_tables(
        record,
        flows=record.flow_names,
        tcp=record.tcp.select("t_ns", "flow").clear(),
        throughput=record.throughput.clear(),
        queue=record.queue.select("t_ns", "queue", "class", "departed_bytes", "wire_bytes").clear(),
    )
    found = summarise(nothing).down
    assert found is not None
    assert (found.retransmitted_segments, found.timeouts) == (None, None)
    assert (found.goodput_mbps, found.throughput_mbps, found.per_flow_mbps) == (None, None, {})
    assert (found.loss_rate, found.mark_rate, found.utilisation) == (None, None, None)
    uncounted = with_tables(record, flows=record.flows.with_columns(timeouts=pl.lit(None, dtype=pl.Int64)))
    kernel = summarise(uncounted).down
    assert kernel is not None
    assert kernel.timeouts is None
    assert kernel.retransmitted_segments is not None


@pytest.mark.parametrize(
    "text",
    [
        # The run lasts 8 s.
        "up.goodput[60s..70s] >= 0mbit",
        "latency.loss[60s..70s] >= 0",
        "up.utilisation[60s..70s] >= 0",
        "up.rate.mean[60s..70s] >= 0mbit",
    ],
)
def test_an_assertion_about_what_was_not_reached_does_not_hold(rrul: list[Record], text: str) -> None:
    outcome = Assertion(text).of(rrul[0])
    assert math.isnan(outcome.left)
    assert not outcome.holds


def test_an_assertion_about_a_phase_that_an_interrupted_run_did_not_reach_does_not_hold(
    rrul: list[Record],
) -> None:
    record = with_tables(rrul[0])
    record.manifest = replace(record.manifest, complete=False, reached_ns=100_000_000)
    assert not Assertion("up.goodput < 1gbit").of(record).holds


def test_a_run_cut_short_before_its_load_has_no_figures_of_it(rrul: list[Record]) -> None:
    record = open_record(rrul[0].path)
    record.manifest = replace(record.manifest, complete=False, reached_ns=500_000_000)
    found = summarise(record)
    assert found.latency.idle is not None
    assert (found.latency.loaded, found.latency.sent, found.latency.increase_mean_ms) == (None, 0, None)
    assert (found.up, found.down) == (None, None)


def test_a_span_that_is_cut_short_counts_as_far_as_it_was_measured(rrul: list[Record]) -> None:
    seconds = rrul[0].reached_ns / 1e9
    whole = Assertion(f"up.goodput[{seconds - 2}s..{seconds}s] >= 0mbit").of(rrul[0])
    beyond = Assertion(f"up.goodput[{seconds - 2}s..{seconds + 9}s] >= 0mbit").of(rrul[0])
    assert beyond.left == whole.left > 0


@pytest.mark.parametrize("span", ["5s..5s", "6s..5s"])
def test_a_span_without_time_is_refused(span: str) -> None:
    with pytest.raises(UsageError, match=f"span `{re.escape(span)}`: it must end after its start"):
        Assertion(f"up.goodput[{span}] >= 0mbit")


def test_an_assertion_about_what_was_not_sampled_does_not_hold(rrul: list[Record]) -> None:
    unsampled = with_tables(rrul[0], throughput=rrul[0].throughput.clear())
    assert not Assertion("up.goodput < 1gbit").of(unsampled).holds


def test_an_assertion_about_losses_that_no_file_told_does_not_hold(rrul: list[Record]) -> None:
    """Means over intervals of Flent's older files do not tell what was lost: that is not no loss."""
    of = Imported(tool="Flent", tool_version=None, format=1, test="rrul", file="a", losses_unknown=[1])
    record = with_tables(rrul[0])
    record.manifest = replace(record.manifest, imported=of)
    assert not Assertion("latency.loss < 100%").of(record).holds
    known = record.probe_names[0]
    assert Assertion(f"latency.loss[probe={known}] < 100%").of(record).holds


def of_two_tests(record: Record) -> Record:
    """Downloads with 1 Mbit/s each, of which the second runs for the last second of four."""
    second = 1_000_000_000
    flows = pl.DataFrame(
        {
            "flow": [0, 1, 2],
            "name": ["first", "second", "over"],
            "direction": "down",
            "start_ns": [0, 4 * second, 0],
            "stop_ns": [6 * second, 5 * second, second],
        }
    )
    rows = [(t, flow) for t in range(1, 7) for flow in (0, 1) if flow == 0 or t == 5]
    throughput = pl.DataFrame(
        {
            "t_ns": [t * second for t, _ in rows],
            "flow": pl.Series([flow for _, flow in rows], dtype=pl.UInt32),
            "bytes": pl.Series([125_000] * len(rows), dtype=pl.UInt64),
            "wire_bytes": pl.Series([130_000] * len(rows), dtype=pl.UInt64),
        }
    )
    flows = flows.with_columns(pl.col("flow").cast(pl.UInt32))
    return with_tables(record, flow_names=flows, throughput=throughput)


def test_a_flow_that_runs_for_a_part_is_measured_while_it_runs(rrul: list[Record]) -> None:
    # The load is from 1 s to 5 s.
    record = of_two_tests(rrul[0])
    assert goodputs_mbps(record, "down") == {"first": 1.0, "second": 1.0}
    assert goodputs_mbps(record, "down", together=True) == {"first": 1.0, "second": 1.0}
    assert goodputs_mbps(record, "down", names={"second"}) == {"second": 1.0}
    # Fair while both run: over the whole load the second would have a quarter, and Jain's index be 0.74.
    assert jain_index(list(goodputs_mbps(record, "down", together=True).values())) == 1.0
    half = (2 * 10**9, 10**9 * 9 // 2)
    assert goodputs_mbps(record, "down", span_ns=half) == {"first": pytest.approx(0.8), "second": 0.0}
    # One of them is over before the other begins: there are no shares to compare.
    assert goodputs_mbps(record, "down", span_ns=(0, 6 * 10**9), together=True) == {}
    assert goodputs_mbps(record, "up") == {}


def test_bytes_dropped_are_not_counted_among_packets(rrul: list[Record]) -> None:
    """Queues that do not tell flows apart count drops of all packets; `dropped_bytes` are no packets."""
    record = rrul[0]
    dropped = [f"{what}_packets" for what in ("dropped", "marked")]
    uncounted = with_tables(
        record, flows=record.flows.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in dropped)
    )
    by_flow, by_queue = summarise(record).up, summarise(uncounted).up
    assert by_flow is not None
    assert by_queue is not None
    assert by_flow.loss_rate
    assert by_queue.loss_rate is not None
    # The queue also drops acknowledgements and pings, of which there are fewer.
    assert by_flow.loss_rate <= by_queue.loss_rate < 2 * by_flow.loss_rate


def test_a_cure_without_any_rest_has_no_upper_end() -> None:
    """Means of noise around nothing lie below 0 too: that is an infinite factor, and no negative one."""
    cured = factor([60.0, 58.0, 62.0, 60.0], [0.4, -0.3, 0.5, 0.3], same=False)
    assert cured.factor == pytest.approx(60 / 0.225)
    assert cured.low is not None
    assert cured.low > 100
    assert cured.high is None
    assert str(cured.ends).endswith(" upwards")
    halved = factor([60.0, 58.0, 62.0, 60.0], [30.0, 31.0, 29.0, 30.0], same=False)
    assert halved.low is not None
    assert halved.high is not None
    assert 1.9 < halved.low < 2.0 < halved.high < 2.1
    assert halved == factor([60.0, 58.0, 62.0, 60.0], [30.0, 31.0, 29.0, 30.0], same=False)
    # A mean below 0 is no increase at all: no number, but still a lower end.
    gone = factor([60.0, 58.0, 62.0, 60.0], [-0.4, -0.3, 0.5, -0.3], same=False)
    assert (gone.factor, gone.high) == (None, None)
    assert gone.low is not None
    assert 100 < gone.low < 1000
    assert factor([60.0, 58.0], [-0.4, -0.3], same=False) == Factor(factor=None, low=None, high=None)
    # What was no increase before cannot have been cured: neither by a negative number nor by any other.
    nothing = Factor(factor=None, low=None, high=None)
    assert factor([-10.0, -9.9, -10.1], [46.0, 46.5, 46.8], same=False, paired=True) == nothing
    assert factor([0.0], [46.0], same=False) == nothing
    # Nor what tables show as 0.0, be it by microseconds less or by a hundred milliseconds more.
    assert factor([0.0031], [0.0028], same=False) == nothing
    assert factor([0.0023, 0.0024], [100.0, 99.0], same=False) == nothing
    assert factor([0.06], [0.03], same=False).factor == 2.0
    assert factor([0.1, -0.3, 0.4], [0.1, 0.2, 0.1], same=False).low == 0


def test_a_constant_difference_is_no_constant_ratio() -> None:
    """The interval of a factor is of ratios: 200 / 100 and 190 / 90 are not the same."""
    constant = factor([200.0, 210.0, 190.0], [100.0, 110.0, 90.0], same=False, paired=True)
    nearly = factor([200.0, 210.0, 190.0], [100.0, 110.0, 90.0001], same=False, paired=True)
    assert constant.factor == 2.0
    assert (constant.low, constant.high) == pytest.approx((nearly.low, nearly.high), abs=0.05)
    assert constant.low is not None
    assert constant.low < 1.95
    # Repetitions that are all the same are one run, which has no interval.
    alike = factor([200.0] * 3, [100.0] * 3, same=False, paired=True)
    assert alike == Factor(factor=2.0, low=None, high=None)


def test_the_factor_is_increase_without_by_increase_with(rrul: list[Record]) -> None:
    baseline, cured = compare(rrul)
    assert baseline.increase_ms is not None
    assert cured.increase_ms is not None
    assert baseline.factor.factor == 1.0
    assert cured.factor.factor == pytest.approx(baseline.increase_ms.mean / cured.increase_ms.mean)


def test_one_way_delays_are_told_apart_without_synchronised_clocks() -> None:
    """Clocks 7 s apart that drift by 40 ppm; the way up waits 80 ms from second 5 on, the way down never."""
    from weirlab.stats.one_way import separate  # noqa: PLC0415 - loads SciPy

    t = np.arange(0, 10_000_000_000, 10_000_000, dtype=np.int64)
    random = np.random.default_rng(1)
    jitter = random.exponential(200_000, (2, t.size)).astype(np.int64)
    jitter[:, ::50] = 0
    up = 12_000_000 + jitter[0] + np.where(t >= 5_000_000_000, 80_000_000, 0)
    down = 8_000_000 + jitter[1]
    received = t + up + 7_000_000_000 + (t * 40e-6).astype(np.int64)
    found = separate(t, up + down, received, idle=(0, 5_000_000_000))
    assert found is not None
    assert found.drift_ppm == pytest.approx(40, abs=1)
    late = t >= 5_000_000_000
    assert np.median(found.up_ms[late]) == pytest.approx(80.1, abs=0.1)
    assert np.median(found.down_ms[late]) == pytest.approx(0.14, abs=0.1)
    assert found.bound_ms < 0.05
    # The asymmetry of 4 ms cannot be seen: it is in the offset, within its bound.
    assert found.offset_ms == pytest.approx(7_002, abs=0.1)
    assert found.offset_bound_ms == pytest.approx(10, abs=0.1)


def test_a_queue_that_is_not_at_the_bottleneck_is_told_so(tmp_path: Path) -> None:
    records = weirlab.run(
        "rrul",
        link="cable-20-8",
        queue=["pfifo_fast", "fq_codel", "htb rate 95% fq_codel", "fred"],
        phases=SHORT,
        out=tmp_path / "cable",
    )
    found = [bypassed_queues(record) for record in records]
    assert {(one.direction, one.hop, one.other_hop) for one in found[1]} == {
        ("up", "router", "modem"),
        ("down", "router", "cmts"),
    }
    assert found[2] == []
    # Flows that hold few packets are not spared by it: it drops some of those that pass on the way up.
    assert [one.direction for one in found[3]] == ["down"]
    (told,) = advice(records[:3])
    assert told.startswith(
        "`fq_codel` at `router` has nothing to manage either way: packets wait elsewhere, "
    )
    assert " in `modem` on the way up" in told
    assert told.endswith(" such as `htb rate 95% fq_codel`.")


def test_so_is_one_of_a_single_direction(tmp_path: Path) -> None:
    (record,) = weirlab.run(
        "rrul", link="cable-20-8", queue_up="fq_codel", phases=SHORT, out=tmp_path / "one"
    )
    assert [(one.direction, one.queue) for one in bypassed_queues(record)] == [("up", "fq_codel")]
    (told,) = advice([record])
    assert told.startswith(
        "`fq_codel` at `router` has nothing to manage on the way up: packets wait elsewhere, "
    )
    assert "the way down" not in told


def test_a_queue_that_holds_the_wait_of_the_other_way_is_not_said_to_have_nothing_to_manage(
    tmp_path: Path,
) -> None:
    """Uploads wait 100 ms in the very queue that is behind the line, and so idle, on the way down."""
    phases = {"idle": "1s", "load": "3s", "cooldown": "1s"}
    run: dict[str, Any] = {"link": "cable-20-8", "phases": phases}
    (record,) = weirlab.run("rrul", **run, queue="htb rate 95% pfifo", out=tmp_path / "both")
    assert bypassed_queues(record) == []
    assert advice([record]) == []
    # Of another queue down there it is true, and says of which way.
    (record,) = weirlab.run(
        "rrul", **run, queue_up="htb rate 95% pfifo", queue_down="htb rate 96% pfifo", out=tmp_path / "two"
    )
    assert [one.direction for one in bypassed_queues(record)] == ["down"]
    assert " has nothing to manage on the way down: packets wait elsewhere, " in advice([record])[0]


def test_of_a_shaper_that_is_above_the_line_it_is_not_said_that_a_shaper_helps(tmp_path: Path) -> None:
    spec = "htb rate 30mbit fq_codel"
    (record,) = weirlab.run("rrul", link="cable-20-8", queue=spec, phases=SHORT, out=tmp_path / "above")
    (told,) = advice([record])
    assert told.startswith(f"`{spec}` at `router` has nothing to manage")
    assert "such as `htb rate" not in told
    assert "Its own rate is above what the line carries" in told


def crossed(spec: str, tmp_path: Path, **of_b: Any) -> Record:
    """A run whose path is `a` and then `b`; a second load comes to `b` only, unless more is said of `b`."""
    (record,) = weirlab.run(
        {
            "name": "crossed",
            "title": "crossed",
            "phases": SHORT,
            "hosts": [{"name": "far"}, *([] if of_b else [{"name": "near", "route": "b"}])],
            "flows": [
                {"name": "far", "direction": "up", "host": "far"},
                *([] if of_b else [{"name": "near", "direction": "up", "host": "near"}]),
            ],
        },
        link={
            "name": "crossed",
            "title": "crossed",
            "up": [
                {"name": "a", "place": "queue", "rate": "20mbit", "delay": "5ms"},
                {"name": "b", "queue": "pfifo limit 100", "rate": "15mbit", "delay": "10ms", **of_b},
            ],
            "down": [{"name": "d", "rate": "50mbit", "delay": "5ms"}],
            **({} if of_b else {"routes": {"b": {"up": ["b"], "down": []}}}),
        },
        queue=spec,
        out=tmp_path / "crossed",
    )
    return record


@pytest.mark.parametrize("spec", ["fq_codel", "htb rate 95% fq_codel"])
def test_where_loads_come_behind_the_queue_no_rate_of_it_is_said_to_help(spec: str, tmp_path: Path) -> None:
    (told,) = advice([crossed(spec, tmp_path)])
    assert told.startswith(f"`{spec}` at `a` has nothing to manage on the way up: packets wait elsewhere, ")
    assert told.endswith(
        " in `b` on the way up. Loads come to `b` that do not pass `a`, where no rate holds them back: "
        "it takes a queue at `b` to manage them."
    )


def test_only_of_a_line_whose_rate_changes_it_is_said_how_that_is_followed(tmp_path: Path) -> None:
    spec = "htb rate 18mbit fq_codel"
    changes = [{"at": "2s", "rate": "10mbit"}]
    steady, changing = (
        advice([crossed(spec, tmp_path / name, delay=delay, **more)])
        for name, delay, more in (("s", "10ms", {}), ("c", "10ms", {"changes": changes}))
    )
    reason = " Its own rate is above what the line carries then: a lower one moves the wait to `a`"
    assert steady[0].endswith(f"{reason}.")
    assert changing[0].endswith(f"{reason}, and `weir shape` follows a line whose rate changes.")


def test_a_queue_at_the_bottleneck_needs_no_advice(tmp_path: Path) -> None:
    records = weirlab.run("rrul", link="lte-verizon", queue="fq_codel", phases=SHORT, out=tmp_path / "lte")
    assert advice(records) == []


def test_a_record_without_queues_gives_no_advice(rrul: list[Record]) -> None:
    assert advice([with_tables(rrul[0], queue=rrul[0].queue.clear())]) == []
    absent = open_record(rrul[0].path)
    absent._files._names |= {"queue": []}
    assert absent.queue.height == 0
    assert advice([absent]) == []


def test_a_factor_is_never_shown_as_nothing() -> None:
    """A configuration that is two hundred times slower has the factor 0.005, not 0.0."""
    assert [factor_text(one) for one in (216.25, 3.24, 1, 0.96, 0.5, 0.0049, 2.34e-05, 0)] == [
        "216.2",
        "3.2",
        "1.0",
        "1.0",
        "0.5",
        "0.0049",
        "0.000023",
        "0",
    ]
    slower = factor([0.1, 0.11], [20.0, 20.2], same=False)
    assert slower.ends is not None
    assert "0.0 " not in slower.ends
