"""Charts and tables say the same of the same records: figures, runs, colours."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from matplotlib.lines import Line2D

import weirlab
from weirlab.plots import (
    Look,
    box,
    caption,
    cdf,
    distribution,
    draw,
    overlay,
    phases,
    ping,
    plot,
    series,
    three_plot,
    windows,
)
from weirlab.plots.layout import grid_of
from weirlab.plots.scope import Scope
from weirlab.record import Record, configurations, open_record
from weirlab.report import charts_of
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import compare, describe, summarise, totals_mbps
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

LOG = Look(ping_scale="log")

QUEUES = ["pfifo_fast", "htb rate 95% fq_codel", "cake bandwidth 7600kbit"]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Three configurations, two runs each, on a line that loses pings."""
    return weirlab.run(
        "rrul",
        queue=QUEUES,
        repeat=2,
        phases={"idle": "1s", "load": "4s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("agree") / "out",
    )


def texts(chart: Figure) -> list[str]:
    """All that stands in a chart, in the order in which it was written."""
    return [text.get_text() for text in chart.findobj(lambda one: hasattr(one, "get_text"))]  # type: ignore[attr-defined]


def row_of(chart: Figure, name: str) -> list[str]:
    """The cells of a row of the table below the axes: its figures stand before its name."""
    written = [text.get_text() for text in chart.texts]
    end = written.index(name)
    cells: list[str] = []
    for text in reversed(written[:end]):
        if not re.fullmatch(r"[<\d. %-]+", text):
            break
        cells.insert(0, text)
    return cells


def rounded(*values: float | None) -> list[str]:
    return ["-" if value is None else caption.number(value) for value in values]


def lossy(record: Record) -> Record:
    """A copy of the record in which every tenth ping is lost."""
    copy = open_record(record.path)
    lost = pl.int_range(pl.len()) % 10 == 3
    vars(copy)["latency"] = copy.latency.with_columns(rtt_ns=pl.when(~lost).then(pl.col("rtt_ns")))
    return copy


def test_the_table_of_the_cdf_is_that_of_the_comparison(records: list[Record]) -> None:
    for drawn in (records, [lossy(record) for record in records]):
        chart = cdf.figure(drawn, None)
        for one in compare(drawn):
            assert one.median_ms
            assert one.p95_ms
            assert one.p99_ms
            wanted = rounded(one.median_ms.mean, one.p95_ms.mean, one.p99_ms.mean)
            lost = sum(run.latency.lost or 0 for run in one.runs) / sum(run.latency.sent for run in one.runs)
            assert lost == one.lost_share
            share = caption.per_cent(lost) if lost else "0"
            assert row_of(chart, one.name) == [*wanted, share]


def test_the_table_of_the_overlay_is_that_of_the_comparison(records: list[Record]) -> None:
    chart = overlay.figure(records, None)
    for one in compare(records):
        assert one.idle_ms
        assert one.loaded_ms
        assert one.increase_ms
        wanted = rounded(one.idle_ms.mean, one.loaded_ms.mean, one.increase_ms.mean, one.factor.factor)
        assert row_of(chart, one.name)[:4] == wanted
        assert f"average {caption.number(one.loaded_ms.mean)}" in texts(chart)
    two = overlay.figure(records[:4], None)
    factor = compare(records[:4])[1].factor.factor
    assert factor
    assert any(text.endswith(f"factor {caption.number(factor)}") for text in texts(two))


def test_the_boxes_are_those_of_the_comparison(records: list[Record]) -> None:
    for group, one in zip(configurations(records), compare(records), strict=True):
        down, ping_ms = box.totals(group.records, "down"), box.latency(group.records)
        assert down
        assert ping_ms
        assert one.down_mbps
        assert one.median_ms
        assert one.loaded_ms
        assert down.mean == pytest.approx(one.down_mbps.mean)
        assert ping_ms.median == pytest.approx(one.median_ms.mean)
        assert ping_ms.mean == pytest.approx(one.loaded_ms.mean)


def test_pings_of_a_run_have_the_figures_of_its_summary(records: list[Record]) -> None:
    chart = ping.figure(records[:1], None)
    latency = summarise(records[0]).latency
    assert latency.loaded
    assert latency.idle
    assert f"average {caption.number(latency.loaded.mean)}" in texts(chart)
    assert f"idle {caption.number(latency.idle.mean)}" in texts(chart)


def test_intervals_before_a_late_flow_count(records: list[Record]) -> None:
    """Half of the load nothing arrives: the mean of the box is the goodput of the table nevertheless."""
    late = open_record(records[0].path)
    start, end = late.phase("load") or (0, 0)
    vars(late)["throughput"] = late.throughput.filter(pl.col("t_ns") > (start + end) // 2)
    found, down = describe(totals_mbps(late, "down")["mbps"]), summarise(late).down
    assert found
    assert down
    assert found.mean == pytest.approx(down.goodput_mbps)
    assert found.min == 0


def test_a_clock_that_comes_late_does_not_change_the_mean(records: list[Record]) -> None:
    late = open_record(records[0].path)
    vars(late)["throughput"] = late.throughput.with_columns(t_ns=pl.col("t_ns") + 3_000_000)
    found, down = describe(totals_mbps(late, "down")["mbps"]), summarise(late).down
    assert found
    assert down
    assert found.count == 40
    assert found.mean == pytest.approx(down.goodput_mbps)


def test_a_configuration_has_one_colour_in_all_charts(records: list[Record]) -> None:
    firsts = [one.records[0] for one in configurations(records)]
    scope = Scope(records)
    styles = scope.styles(firsts)
    assert len({style.colour for style in styles}) == 3
    assert scope.styles(firsts[1:]) == styles[1:]
    assert scope.of_styles([one.records for one in configurations(records)]) == styles

    def colours(chart: Figure) -> set[str]:
        drawn: list[Any] = [*chart.artists, *chart.findobj(lambda one: hasattr(one, "get_color"))]
        found = {str(one.get_color()) for one in drawn if hasattr(one, "get_color")}
        return found & {style.colour for style in styles}

    for part, wanted in ((records, styles), (records[2:], styles[1:])):
        shown = {style.colour for style in wanted}
        assert colours(cdf.figure(part, None, scope)) == shown
        assert colours(overlay.figure(part, None, scope)) == shown
        assert colours(box.figure(part, None, scope)) == shown
        runs = [one for one in firsts if one in part]
        assert colours(ping.figure(runs, None, scope)) == shown


def test_charts_of_one_of_several_runs_say_so(records: list[Record]) -> None:
    scope = Scope(records)
    one = plot(records[0], "three-plot")
    assert "world sim · seed 1" in texts(one)
    for kind, part, said in (
        ("three-plot", records[:1], "world sim · seed 1 of 2 runs"),
        ("phases", records[:1], "world sim · seed 1 of 2 runs"),
        ("ping", records[::2], "world sim · 3 runs · seed 1 of 2 runs each"),
        ("overlay", records, "world sim · 3 runs · seed 1 of 2 runs each"),
        ("cdf", records, "world sim · 6 runs · seeds 1 to 2"),
    ):
        module = {"three-plot": "three_plot"}.get(kind, kind)
        drawing: Any = __import__(f"weirlab.plots.{module}", fromlist=["figure"])
        assert said in texts(drawing.figure(part, None, scope)), kind


def test_charts_of_tests_of_a_line_say_when_they_started(records: list[Record]) -> None:
    """All have the same seed, which says nothing of them."""
    tests = []
    for minute, record in enumerate(records[:2]):
        copy = open_record(record.path)
        extra = {"ramps": [{"phase": "load", "direction": "up", "flows": 4}]}
        at = f"2026-11-01T00:0{minute}:30Z"
        copy.manifest = replace(copy.manifest, world="net", seed=1, started_at=at, note="before", extra=extra)
        tests.append(copy)
    assert "world net · started 2026-11-01 00:00:30 UTC, 1 of 2 runs" in texts(
        three_plot.figure(tests[:1], None, Scope(tests))
    )
    both = "world net · 2 runs · started 2026-11-01 00:00:30 to 2026-11-01 00:01:30 UTC"
    assert both in texts(cdf.figure(tests, None, Scope(tests)))


def test_flows_without_a_part_in_the_load_are_not_counted_with_its_figures() -> None:
    """A test of a line has flows of its own in each of its phases."""
    running = {f"download {number}": 6.8 for number in (1, 2)}
    assert three_plot._words("", [*running, "download 3"], running) == "3 flows, 2 of them 6.80 to 6.80"
    assert three_plot._words("", list(running), running) == "2 flows, 6.80 to 6.80"


def test_the_overlay_of_many_configurations_says_which_two(records: list[Record]) -> None:
    many = []
    for number, record in enumerate([*records, *records]):
        copy = open_record(record.path)
        copy.manifest = replace(copy.manifest, queue=f"queue {number}")
        many.append(copy)
    chart = overlay.figure(many[:5], None)
    said = " ".join(" ".join(texts(chart)).split())
    assert "Of 5 configurations the first is drawn, and the one with the least increase." in said
    names = [text for text in texts(chart) if text.startswith("queue ")]
    increases = [one.increase_ms.mean for one in compare(many[:5])[1:] if one.increase_ms]
    assert names == ["queue 0", f"queue {1 + int(np.argmin(increases))}"]


def test_a_logarithmic_axis_says_so(records: list[Record]) -> None:
    slow = open_record(records[0].path)
    vars(slow)["latency"] = slow.latency.with_columns(
        rtt_ns=pl.when(pl.col("t_ns") > 2_000_000_000).then(pl.col("rtt_ns") * 5).otherwise(pl.col("rtt_ns"))
    )
    both = [slow, records[2]]
    for kind, place, which in (("overlay", 0, "y"), ("cdf", 0, "x"), ("box", -1, "x"), ("ping", 0, "y")):
        for scale, label in (("linear", "Ping, ms"), ("log", "Ping, ms, log scale")):
            look = LOG if scale == "log" else None
            axes = plot(both, kind, look=look).axes[place]
            axis = axes.xaxis if which == "x" else axes.yaxis
            assert (axis.get_scale(), axis.get_label_text().replace("\n", " ")) == (scale, label)
            if scale == "linear" and kind != "box":
                assert axis.get_view_interval()[0] == 0


def test_a_single_ping_far_above_all_others_leaves_its_axis_and_the_chart_says_so(
    records: list[Record],
) -> None:
    late = open_record(records[0].path)
    place = late.latency["rtt_ns"].arg_max()
    longer = pl.when(pl.int_range(pl.len()) == place).then(9_120_000_000).otherwise(pl.col("rtt_ns"))
    vars(late)["latency"] = late.latency.with_columns(rtt_ns=longer.cast(pl.Int64))
    usual = float(np.quantile(records[0].pings["rtt_ns"].drop_nulls().to_numpy(), 0.995)) / 1e6
    assert usual < 9120 / 8
    for kind, which in (("overlay", "y"), ("cdf", "x"), ("ping", "y")):
        chart = plot([late, records[2]], kind)
        low, high = chart.axes[0].get_xlim() if which == "x" else chart.axes[0].get_ylim()
        assert (low, high < 2 * usual) == (0, True), kind
        assert sum("to 9120 ms" in text for text in texts(chart)) == 1, kind
        # On a logarithmic axis there is room for all, and limits that the user sets cut it likewise.
        assert not any("to 9120" in text for text in texts(plot([late, records[2]], kind, look=LOG)))
        cut = plot([late, records[2]], kind, look=Look(ping_ms=(0, 500)))
        assert sum("to 9120 ms" in text for text in texts(cut)) == 1, kind
    whisker = plot([late, records[2]], "box")
    assert whisker.axes[-1].get_xlim()[1] < 2 * usual
    assert "to 9120" in texts(whisker)
    assert "ends of ranges beyond the axis" in " ".join(texts(whisker))


def test_peaks_above_the_line_are_explained_where_there_are_any(records: list[Record]) -> None:
    calm = open_record(records[0].path)
    flat = calm.throughput.with_columns(bytes=pl.lit(1000, pl.Int64))
    vars(calm)["throughput"] = flat
    assert not series.exceeds_line(calm, "down")
    assert "Peaks" not in " ".join(texts(box.figure([calm], None)))
    # 20 Mbit/s are 250 kB in 100 ms: the four flows bring 400 kB in one interval.
    peak = pl.when(pl.col("t_ns") == 3_000_000_000).then(100_000).otherwise(1000).cast(pl.Int64)
    calm = open_record(records[0].path)
    vars(calm)["throughput"] = calm.throughput.with_columns(bytes=peak)
    assert series.exceeds_line(calm, "down")
    assert "Peaks" in " ".join(texts(box.figure([calm], None)))


def test_windows_have_a_legend_without_repeated_looks(tmp_path: Path) -> None:
    (record,) = weirlab.run(
        "tcp_ndown",
        parameters={"streams": 8},
        phases={"idle": "1s", "load": "3s", "cooldown": "1s"},
        out=tmp_path / "o",
    )
    chart = windows.figure([record], None)
    legend = chart.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["average", *map(str, range(1, 9))]
    samples = legend.findobj(Line2D)
    looks = {(line.get_color(), line.get_linestyle(), str(line._dash_pattern)) for line in samples}  # type: ignore[attr-defined]
    assert len(looks) == 9
    assert chart.axes[0].get_xlim() == (0, 5)
    part = plot(record, "windows", span_s=(2.0, 3.0))
    assert part.axes[0].get_xlim() == (2, 3)
    assert any("Drawn from 2 s" in text for text in texts(part))


def test_phases_say_which_part_of_the_load_is_graded(records: list[Record]) -> None:
    chart = phases.figure(records[:1], None)
    increase = summarise(records[0]).latency.increase_mean_ms
    assert increase
    said = " ".join(" ".join(texts(chart)).split())
    assert f"over the whole of it, as in tables, the mean is +{caption.number(increase)} ms" in said
    assert "load" in texts(chart)
    assert "both at once" not in texts(chart)


def test_the_curve_of_a_single_run_meets_its_figures(records: list[Record]) -> None:
    found = distribution.pooled_pings(records[:1])
    figures = summarise(records[0]).latency.loaded
    assert figures
    assert (found.median_ms, found.p95_ms, found.p99_ms) == (figures.median, figures.p95, figures.p99)


def test_svg_text_stays_text(records: list[Record], tmp_path: Path) -> None:
    target = str(tmp_path / "deep" / "er" / "cdf.svg")
    svg = draw("cdf", records, target, title="A <title> & more").read_text()
    assert "<text" in svg
    for words in (*QUEUES, "A &lt;title&gt; &amp; more", "Ping, ms"):
        assert words in svg
    assert "sans-serif" in svg


def test_all_charts_of_a_command_are_drawn(records: list[Record], tmp_path: Path) -> None:
    drawn = charts_of(records, tmp_path / "charts", title="Mine", quiet=True)
    assert {path.name for path in drawn} >= {"box.png", "cdf.png", "ping.png", "overlay.png"}


@pytest.mark.parametrize("test", ["rrul_be", "udp_flood"])
def test_of_runs_that_were_cut_short_before_the_load_there_are_the_charts_that_can_be(
    test: str, records: list[Record], tmp_path: Path
) -> None:
    """Charts of the load are left out, or drawn of the runs that have it: what was measured is no error."""
    cut = []
    for queue in ("default", "fq_codel"):
        words = {"test": test, "link": "cable-20-8", "queue": queue, "phases": {"idle": "100h"}}
        (run,) = resolve(ScenarioSpec.model_validate(words))
        assert not SimWorld().run(run, tmp_path / queue, lambda _: False)
        cut.append(open_record(tmp_path / queue))
    for number, few in enumerate((cut[:1], cut)):
        names = {path.name for path in charts_of(few, tmp_path / f"charts-{number}", quiet=True)}
        assert "ping.png" in names
        assert not names & {"box.png", "cdf.png"}
    beside = {path.name for path in charts_of([*records, *cut], tmp_path / "beside", quiet=True)}
    assert beside >= {"box.png", "cdf.png", "ping.png"}


def test_very_long_names_are_shortened_in_charts(records: list[Record], tmp_path: Path) -> None:
    """They would leave the axes no room, which no layout can solve."""
    long = []
    for number, record in enumerate(records[::2]):
        copy = open_record(record.path)
        queue = f"pfifo limit {number} " * 500
        copy.manifest = replace(copy.manifest, queue=queue, title="t" * 5000, configuration="x y " * 2000)
        long.append(copy)
    for kind in ("overlay", "cdf"):
        chart = plot(long, kind)
        grid_of(chart).execute(chart)
        assert chart.axes[0].get_position().height > 0.3, kind
    assert draw("box", long, tmp_path / "box.png").exists()


def test_a_copy_of_a_record_is_drawn_as_the_record_is(records: list[Record], tmp_path: Path) -> None:
    copy = open_record(records[0].path)
    for kind in ("overlay", "box", "cdf", "ping"):
        draw(kind, [records[0], copy], tmp_path / f"{kind}.png")
