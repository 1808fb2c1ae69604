"""The numbers behind charts, exactly: throughput and latency in steps, distributions, means, ellipses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from scipy import stats

import weirlab
from altered import changed, pings
from weirlab.errors import UsageError
from weirlab.plots import (
    bar,
    box,
    caption,
    distribution,
    draw,
    ellipse,
    overlay,
    qq,
    series,
)
from weirlab.plots.distribution import Ordered
from weirlab.record import Record, open_record
from weirlab.record.configurations import configurations
from weirlab.stats import compare, describe, load_window_ns, totals_mbps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def test_throughput_in_steps_of_200_ms(rrul: list[Record]) -> None:
    # Flow 4 is the first download: 25 kB in 100 ms are 2 Mbit/s. Nothing arrives from 1.4 to 2.0 s.
    rows = [(1_100_000_000, 25_000), (1_200_000_000, 75_000), (1_300_000_000, 25_000)]
    rows += [(1_400_000_000, 25_000), (2_100_000_000, 50_000)]
    table = pl.DataFrame({"t_ns": [t for t, _ in rows], "flow": 4, "bytes": [b for _, b in rows]})
    lines = series.throughput_mbps(changed(rrul[0], throughput=table), "down")
    assert lines is not None
    assert lines.step_s == 0.2
    np.testing.assert_allclose(lines.t_s[5:11], [1.1, 1.3, 1.5, 1.7, 1.9, 2.1])
    first = lines.lines["TCP download BE"]
    np.testing.assert_allclose(first[4:12], [0, 4, 2, 0, 0, 0, 2, 0], atol=1e-9)
    np.testing.assert_allclose(lines.average, first / 4, atol=1e-9)
    np.testing.assert_allclose(lines.high, first, atol=1e-9)
    assert not lines.low.any()


def test_a_live_clock_that_comes_late_does_not_shift_bytes(rrul: list[Record]) -> None:
    t = [1_000_000_000 + 100_000_000 * number + 3_000_000 for number in range(1, 20)]
    table = pl.DataFrame({"t_ns": t, "flow": 4, "bytes": 25_000})
    lines = series.throughput_mbps(changed(rrul[0], throughput=table), "down")
    assert lines is not None
    np.testing.assert_allclose(lines.lines["TCP download BE"][6:14], 2.0)


def test_throughput_adds_up_to_what_arrived(rrul: list[Record]) -> None:
    lines = series.throughput_mbps(rrul[0], "up")
    assert lines is not None
    drawn = sum(float(line.sum()) for line in lines.lines.values()) * lines.step_s
    arrived = sum(rrul[0].throughput.filter(pl.col("flow") < 4)["bytes"].to_list()) * 8 / 1e6
    assert drawn == pytest.approx(arrived)


def test_latency_in_steps_of_200_ms(rrul: list[Record]) -> None:
    one, two = pings(10.0, 20.0, None, 40.0), pings(30.0, 50.0, probe=1)
    record = changed(rrul[0], latency=pl.concat([one, two]).sort("t_ns"))
    lines = series.latency_ms(record)
    assert lines is not None
    np.testing.assert_array_equal(lines.lines["Ping (ms) ICMP"][4:8], [np.nan, 15, 40, np.nan])
    np.testing.assert_array_equal(lines.lines["Ping (ms) UDP BE"][4:8], [np.nan, 40, np.nan, np.nan])
    np.testing.assert_array_equal(lines.average[4:8], [np.nan, 27.5, 40, np.nan])
    np.testing.assert_array_equal(lines.low[5:7], [10, 40])
    np.testing.assert_array_equal(lines.high[5:7], [50, 40])
    assert list(lines.lines) == ["Ping (ms) ICMP", "Ping (ms) UDP BE"]


def test_steps_become_longer_in_long_runs(rrul: list[Record]) -> None:
    record = open_record(rrul[0].path)
    for seconds, step in ((100, 0.2), (101, 0.5), (3600, 10.0), (10**7, 3600.0)):
        record.manifest = replace(record.manifest, reached_ns=seconds * 10**9)
        vars(record).pop("reached_ns", None)
        lines = series.latency_ms(record)
        assert lines is not None
        assert lines.step_s == step


def test_throughput_is_the_same_however_its_samples_are_parted() -> None:
    rng = np.random.default_rng(4)
    # A sample is missing here and there, and each comes a little late.
    t_ns = np.flatnonzero(rng.random(500) < 0.8) * 100_000_000 + rng.integers(0, 20_000_000, 500)[:1]
    got, edges = rng.integers(0, 10**6, t_ns.size), np.arange(0, 60_000_000_001, 250_000_000)
    found = []
    for size in (1, 7, t_ns.size):
        one = series._Arrived(edges, 100_000_000)
        assert not one.sampled
        for start in range(0, t_ns.size, size):
            one.add(t_ns[start : start + size], got[start : start + size])
        found.append(one.until.tolist())
    assert found[0] == found[1] == found[2]
    assert found[0][0] == 0
    assert found[0][-1] == got.sum()


def test_running_mean() -> None:
    found = series.running_mean(np.array([0.0, 0.0, 3.0, 0.0, 0.0, 6.0]), 3)
    np.testing.assert_allclose(found, [0, 1, 1, 1, 2, 3])
    np.testing.assert_allclose(series.running_mean(np.array([1.0, 3.0]), 5), [2, 2])


def test_the_distribution_is_of_answered_pings_and_tells_how_many_were_lost(rrul: list[Record]) -> None:
    both = [changed(rrul[0], latency=pings(*some)) for some in ((40.0, None, 10.0), (30.0, 20.0))]
    found = distribution.pooled_pings(both)
    np.testing.assert_allclose(found.rtt_ms, [10, 10, 20, 30, 40])
    np.testing.assert_allclose(found.percent, [0, 25, 50, 75, 100])
    assert (found.sent, found.lost) == (5, 1)
    assert (found.median_ms, found.p95_ms) == (25.0, 38.5)
    silent = changed(rrul[0], latency=pl.concat([pings(None, None), pings(10.0, probe=1)]))
    none = distribution.pings_by_probe(silent)[silent.probe_names[0]]
    assert (none.rtt_ms.size, none.percent.size) == (0, 0)
    assert (none.sent, none.lost, none.median_ms) == (2, 2, None)
    with pytest.raises(UsageError, match="all were lost"):
        distribution.pooled_pings([both[0], changed(rrul[0], latency=pings(None, None))])


def test_cdf_box_and_table_tell_the_same_of_a_run_with_lost_pings(rrul: list[Record]) -> None:
    """A median of which a chart counts lost pings and a table does not is two medians of one run."""
    some_lost = [10.0, None, 20.0, 30.0, None, None, 40.0]
    record = changed(rrul[0], latency=pings(*some_lost))
    curve = distribution.pooled_pings([record])
    table = weirlab.summarise(record).latency
    boxed = box.latency([record])
    assert table.loaded is not None
    assert boxed == table.loaded
    assert (curve.median_ms, curve.p95_ms, curve.p99_ms) == (
        table.loaded.median,
        table.loaded.p95,
        table.loaded.p99,
    )
    assert (curve.sent, curve.lost) == (table.sent, table.lost) == (7, 3)
    assert (curve.rtt_ms[0], curve.rtt_ms[-1]) == (table.loaded.min, table.loaded.max)
    assert curve.rtt_ms.size <= distribution.MAX_POINTS + 1


def test_probes_are_told_apart(rrul: list[Record]) -> None:
    apart = distribution.pings_by_probe(rrul[0])
    assert list(apart) == rrul[0].probe_names
    assert sum(one.sent for one in apart.values()) == distribution.pooled_pings(rrul[:1]).sent


def test_a_probe_without_an_answer_has_a_row_but_no_curve(rrul: list[Record], tmp_path: Path) -> None:
    table = pl.concat([pings(10.0, 20.0), pings(None, None, probe=1)])
    record = changed(rrul[0], latency=table)
    assert list(distribution.pings_by_probe(record)) == rrul[0].probe_names[:2]
    for kind in ("cdf", "ping", "three-plot"):
        draw(kind, [record], tmp_path / f"{kind}.svg")


def test_boxes_of_repetitions_have_the_means_of_their_figures(repeated: list[Record]) -> None:
    first, second = configurations(repeated)
    assert (first.name, second.name) == ("pfifo_fast", "htb rate 95% fq_codel")
    assert [record.manifest.seed for record in first.records] == [1, 2]
    found = box.totals(first.records, "down")
    runs = [describe(totals_mbps(record, "down")["mbps"]) for record in first.records]
    assert found is not None
    assert found.p75 == pytest.approx(np.mean([run.p75 for run in runs if run]))
    assert found.max == max(run.max for run in runs if run)
    assert found.count == sum(run.count for run in runs if run)
    assert box.totals(first.records, "up") is None


def test_the_steps_of_an_ellipse_pair_pings_with_the_throughput_of_their_time(rrul: list[Record]) -> None:
    record = rrul[0]
    start = (record.phase("load") or (0, 0))[0]
    # Two pings in the first step of 200 ms, of which one is lost, two answered in the second, none later.
    record = changed(
        record,
        latency=pings(30.0, None, 50.0, 70.0, start_ns=start),
        pings=pings(30.0, None, 50.0, 70.0, start_ns=start),
    )
    found = ellipse.steps([record], "down")
    assert found.ping_ms.tolist() == [30.0, 60.0]
    mbps = totals_mbps(record, "down")
    early = mbps.filter(pl.col("t_s") <= start / 1e9 + 0.2 + 1e-6)["mbps"].mean()
    assert found.mbps[0] == pytest.approx(early)


def test_an_ellipse_reaches_one_standard_deviation() -> None:
    ping_ms, mbps = np.array([10.0, 20.0, 30.0, 40.0]), np.array([8.0, 5.0, 6.0, 1.0])
    x, y = ellipse.Steps(ping_ms, mbps).outline()
    assert [x.max() - x.mean(), y.max() - y.mean()] == pytest.approx(
        [ping_ms.std(ddof=1), mbps.std(ddof=1)], rel=0.02
    )
    # Of what never varies it is a line.
    x, y = ellipse.Steps(ping_ms, np.full(4, 5.0)).outline()
    assert np.allclose(y, 5)


def test_bars_are_the_means_of_tables_and_only_of_what_there_is(repeated: list[Record]) -> None:
    compared = compare(repeated)
    panels = bar.bars(compared)
    # Downloads only, eight of them.
    assert list(panels) == ["Total download, Mbit/s", "Mean ping, ms", "Jain's index, down"]
    assert panels["Mean ping, ms"] == [one.loaded_ms for one in compared]
    chart = bar.figure(repeated, None)
    lengths = [patch.get_width() for patch in chart.axes[1].patches if isinstance(patch, Rectangle)]
    assert lengths == pytest.approx([one.loaded_ms.mean for one in compared if one.loaded_ms])
    assert chart.axes[2].get_xlim() == (0, bar.ROOM)


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 4321])
def test_quantiles_of_numbers_in_order_are_those_of_numpy(count: int) -> None:
    every = np.sort(np.random.default_rng(count).integers(1, 2**31, count)) / 1e6
    shares = np.linspace(0, 1, 777)
    found = Ordered.of(every)
    assert found.quantiles(shares).tolist() == np.quantile(every, shares).tolist()
    assert found.mean == pytest.approx(every.mean(), rel=1e-12)
    assert found.deviation == pytest.approx(every.std(), rel=1e-9)


def test_quantiles_of_pings_that_are_not_held_are_those_of_numpy(rrul: list[Record]) -> None:
    ms = [
        record.pings.filter(pl.col("t_ns").is_between(*load_window_ns(record), closed="left"))["rtt_ns"]
        .drop_nulls()
        .to_numpy()
        / 1e6
        for record in rrul
    ]
    every, shares = np.concatenate(ms), np.linspace(0, 1, 777)
    found = distribution.ordered_pings(rrul)
    assert found.size == every.size
    assert found.quantiles(shares).tolist() == np.quantile(every, shares).tolist()
    assert (found.mean, found.deviation) == pytest.approx((every.mean(), every.std()), rel=1e-9)
    curve = distribution.pooled_pings(rrul)
    assert [curve.median_ms, curve.p95_ms, curve.p99_ms] == np.quantile(every, [0.5, 0.95, 0.99]).tolist()
    assert (
        curve.rtt_ms[1:].tolist()
        == np.sort(every)[
            np.linspace(0, every.size - 1, distribution.MAX_POINTS).round().astype(int)
        ].tolist()
    )


def test_quantiles_are_paired_and_those_of_the_same_distribution_lie_on_the_diagonal() -> None:
    values = np.sort(np.random.default_rng(7).gamma(2, 10, 5000))
    x, y = qq.pairs(Ordered.of(values), Ordered.of(values))
    assert x.size == distribution.MAX_POINTS
    assert x == pytest.approx(y)
    # Place and spread move the line, and nothing else.
    _, moved = qq.pairs(Ordered.of(values), Ordered.of(3 * values[::5] + 5))
    assert moved.size == 1000
    assert np.corrcoef(np.quantile(values, (np.arange(1000) + 0.5) / 1000), moved)[0, 1] > 0.99


def test_of_many_configurations_the_table_tells_points_apart_as_the_axes_do(tmp_path: Path) -> None:
    queues = [f"pfifo limit {limit}" for limit in range(10, 120, 10)]
    chart = qq.figure(weirlab.run("ping", link="cable-20-8", queue=queues, out=tmp_path / "runs"), None)

    def looks(lines: Sequence[Line2D]) -> list[tuple[Any, Any]]:
        return [(one.get_color(), one.get_marker()) for one in lines if one.get_linestyle() == "None"]

    samples = looks([one for one in chart.get_children() if isinstance(one, Line2D)])
    assert len(set(samples)) == len(queues) - 1
    assert samples == looks(chart.axes[0].lines)


def test_a_normal_distribution_is_straight_and_a_long_tail_bends_up() -> None:
    shares = (np.arange(1999) + 0.5) / 1999
    normal = stats.norm.ppf(shares, 50, 5)
    x, y = qq.against_normal(Ordered.of(normal))
    assert x[20:-20] == pytest.approx(y[20:-20], rel=0.01)
    x, y = qq.against_normal(Ordered.of(stats.expon.ppf(shares)))
    assert y[-1] > 1.5 * x[-1]
    assert y[0] > x[0]


def test_a_range_that_leaves_the_axis_is_explained_in_the_picture(rrul: list[Record]) -> None:
    def words(record: Record) -> str:
        chart = box.figure([record], None)
        lines = sorted(chart.findobj(Text), key=lambda text: -text.get_position()[1])
        return " ".join(words for text in lines if (words := text.get_text()) and words[:5] != "Weir ")

    plain = rrul[1]
    assert "axis" not in words(plain)
    rows = plain.throughput.with_row_index()
    peak = pl.when(pl.col("index") == rows.height // 2).then(pl.col("bytes") * 100).otherwise(pl.col("bytes"))
    said = words(changed(plain, throughput=rows.with_columns(bytes=peak).drop("index")))
    assert re.search(r"\bto \d", said)
    assert "Numbers after “to”: ends of ranges beyond the axis." in said
    assert series.PEAKS in said


def test_the_factor_is_that_of_the_comparison(rrul: list[Record]) -> None:
    factor = compare(rrul)[1].factor.factor
    assert factor is not None
    assert overlay.factor_line(compare(rrul)).endswith(f" = factor {caption.number(factor)}")
