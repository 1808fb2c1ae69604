"""Charts: files by type and bytes, what is drawn of runs of all kinds, what errors leave behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

import weirlab
from altered import changed, pings
from weirlab.errors import RecordError, UsageError, WriteError
from weirlab.plots import (
    KINDS,
    caption,
    cdf,
    draw,
    gathered,
    phases,
    plot,
    queues,
    series,
    tcp,
    theme,
    thinned,
    three_plot,
    totals,
    windows,
)
from weirlab.plots.layout import grid_of
from weirlab.plots.queues import has_work
from weirlab.record import Record, open_record, reader
from weirlab.report import charts_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


BEGINNINGS = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


def test_the_average_is_that_of_the_flows_that_run(repeated: list[Record]) -> None:
    record = repeated[0]
    before = series.throughput_mbps(record, "down")
    # Seven of the eight stop a second before the end.
    end = record.reached_ns
    early = pl.when(pl.col("flow") > 0).then(end - 1_000_000_000).otherwise(end).cast(pl.Int64)
    record = changed(record, flow_names=record.flow_names.with_columns(stop_ns=early))
    after = series.throughput_mbps(record, "down")
    assert before is not None
    assert after is not None
    late = before.t_s > end / 1e9 - 1
    assert late.sum() >= 4
    every = np.vstack(list(before.lines.values()))
    assert np.array_equal(after.average[late], every[0][late])
    assert np.array_equal(after.average[~late], before.average[~late])


def test_what_arrives_when_no_flow_runs_any_more_is_averaged_over_those_it_is_of(
    repeated: list[Record],
) -> None:
    record = repeated[0]
    before = series.throughput_mbps(record, "down")
    # All stop a second before the end; of the first alone bytes arrive until then.
    end = record.reached_ns - 1_000_000_000
    stopped = record.flow_names.with_columns(stop_ns=pl.lit(end, pl.Int64))
    arrived = record.throughput
    others = (pl.col("flow") > 0) & (pl.col("t_ns") > end)
    record = changed(record, flow_names=stopped, throughput=arrived.filter(~others))
    after = series.throughput_mbps(record, "down")
    assert before is not None
    assert after is not None
    late = after.t_s > end / 1e9 + 0.2
    first = next(iter(after.lines.values()))
    assert late.sum() >= 3
    assert first[late].max() > 0
    assert np.array_equal(after.average[late], first[late])
    assert np.array_equal(after.average[~late][:-2], before.average[~late][:-2])


def test_more_flows_than_colours_are_thin_lines_in_the_colour_of_their_load(repeated: list[Record]) -> None:
    flows = repeated[0].flow_names
    named = [f"{('first', 'second')[number % 2]} download {number}" for number in range(flows.height)]
    record = changed(repeated[0], flow_names=flows.with_columns(name=pl.Series(named)))
    (chart,) = (three_plot.figure([one], None) for one in [record])
    drawn = {line.get_color() for line in chart.axes[0].lines if line.get_linewidth() == 0.6}
    assert len(drawn) == 2
    legend = chart.axes[0].get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert [text.split(",")[0] for text in words[1:3]] == ["first: 4 flows", "second: 4 flows"]
    assert not any("lowest to highest" in text for text in words)


def test_a_load_of_one_flow_among_many_is_named_as_a_flow_is(tmp_path: Path) -> None:
    flows = [
        {"name": "game", "direction": "down", "udp": {"rate": "80kbit", "payload": 100}},
        {"name": "TCP", "direction": "down", "count": 10},
    ]
    test = {"name": "many", "title": "Many", "phases": {"load": "1s"}, "flows": flows}
    (record,) = weirlab.run(test, phases={"idle": "0s"}, out=tmp_path / "out")
    legend = three_plot.figure([record], title=None).axes[0].get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert any(re.fullmatch(r"game  0\.0\d+", one) for one in words)
    assert any(one.startswith("TCP: 10 flows, ") for one in words)


def test_long_names_leave_the_panels_their_room(tmp_path: Path) -> None:
    flows = [{"name": f"{'F' * 190}{n}", "direction": "down", "dscp": "BE"} for n in range(3)]
    probes = [{"name": f"{'P' * 190}{n}", "kind": "icmp", "dscp": "BE"} for n in range(3)]
    for number, (some_flows, some_probes) in enumerate([(flows, probes), (flows[:1], probes[:1])]):
        test = {"name": "n", "title": "n", "phases": {"idle": "300ms", "load": "1s"}, "flows": some_flows}
        (record,) = weirlab.run(
            test | {"probes": some_probes},
            link="line-50",
            out=tmp_path / str(number),
        )
        chart = plot(record, "three-plot")
        theme.render(chart, "png")
        for panel in chart.axes:
            assert panel.get_position().width > 0.5
            legend = panel.get_legend()
            assert legend is not None
            assert legend.get_window_extent().x1 <= chart.bbox.x1


def some(kind: str, records: Sequence[Record]) -> list[Record]:
    return list(records[: KINDS[kind].most])


DRAWN = sorted(set(KINDS) - {"udp", "applications"})
"""Charts of records without UDP flows and applications, which have tests of their own."""


DRAW_ALL = """if True:
    import sys
    from pathlib import Path
    from weirlab.plots import KINDS, draw
    from weirlab.record import open_record
    target, *records = [Path(path) for path in sys.argv[1:]]
    for kind in set(KINDS) - {"udp", "applications"}:  # neither is in these
        for suffix in ("PNG", "SVG", "PDF"):  # capitals do as well
            some = [open_record(path) for path in records[: KINDS[kind].most]]
            draw(kind, some, target / f"{kind}.{suffix}")
"""


@pytest.fixture(scope="session")
def twice(rrul: list[Record], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Each kind of chart in each format: drawn here, and at the same time by another process."""
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    elsewhere = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    paths = [str(path) for path in (there, *(record.path for record in rrul))]
    with subprocess.Popen([sys.executable, "-c", DRAW_ALL, *paths], env=elsewhere) as other:
        for kind in DRAWN:
            for suffix in BEGINNINGS:
                target = here / f"{kind}.{suffix}"
                assert draw(kind, some(kind, rrul), target) == target
    assert other.returncode == 0
    return here, there


def test_every_chart_in_every_format(twice: tuple[Path, Path]) -> None:
    charts = list(twice[0].iterdir())
    assert len(charts) == len(DRAWN) * len(BEGINNINGS)
    for chart in charts:
        assert chart.read_bytes().startswith(BEGINNINGS[chart.suffix[1:]])


def test_a_long_record_is_drawn_without_being_held(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = charts_of(rrul, tmp_path / "held")
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    records = [open_record(record.path) for record in rrul]
    drawn = charts_of(records, tmp_path / "long")
    assert [chart.name for chart in drawn] == [chart.name for chart in held]
    assert not any("latency" in vars(record) for record in records)
    for before, after in zip(held, drawn, strict=True):
        apart = np.abs(imread(before) - imread(after)).mean()
        # Dots that lie on each other are drawn once, which their edges show.
        assert apart <= (1e-3 if after.stem in ("ping", "overlay") else 0), after.stem


@pytest.mark.parametrize("kind", ["phases", "qq", "ellipse", "queues", "tcp", "windows", "shaper"])
def test_other_charts_of_a_long_record_do_not_hold_it_either(
    kind: str, rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = draw(kind, some(kind, rrul), tmp_path / "held.png")
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    records = [open_record(record.path) for record in some(kind, rrul)]
    drawn = draw(kind, records, tmp_path / "long.png")
    assert not any(
        table in vars(record) for record in records for table in ("latency", "pings", "queue", "tcp")
    )
    apart = np.abs(imread(held) - imread(drawn)).mean()
    # Dots that lie on each other are drawn once, which their edges show.
    assert apart <= (1e-3 if kind == "phases" else 0)


@pytest.mark.parametrize("kind", ["queues", "tcp", "windows"])
def test_of_very_many_points_no_extreme_is_lost(
    kind: str, rrul: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(chart: Figure) -> list[list[tuple[float, float]]]:
        """The least and the greatest of each line of each panel, and the ends of its axis."""
        return [
            [
                axes.get_ylim(),
                *(
                    (float(np.nanmin(line)), float(np.nanmax(line)))
                    for line in (np.asarray(one.get_ydata(), float) for one in axes.lines)
                    if np.isfinite(line).any()
                ),
            ]
            for axes in chart.axes
        ]

    def points(chart: Figure) -> int:
        return sum(np.size(line.get_xdata()) for axes in chart.axes for line in axes.lines)

    every = plot(rrul[:1], kind)
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    monkeypatch.setattr(gathered, "MOST_POINTS", 200)
    monkeypatch.setattr(gathered, "MOST_SPELLS", 20)
    few = plot([open_record(rrul[0].path)], kind)
    assert points(few) < 0.6 * points(every)
    assert ends(few) == ends(every)
    assert [
        "Of each" in " ".join(text.get_text() for text in chart.findobj(Text)) for chart in (few, every)
    ] == [True, False]


def test_windows_of_flows_that_are_sampled_at_other_times_end_between_theirs() -> None:
    lines = {
        3: (np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0])),
        5: (np.array([1.0, 3.0, 4.0, 5.0]), np.array([30.0, np.nan, 60.0, 70.0])),
    }
    ended, average = windows._side_by_side(lines)
    np.testing.assert_array_equal(ended[3], ([1, 2, 3, 4, 5], [10, 20, np.nan, 40, np.nan]))
    np.testing.assert_array_equal(ended[5], ([1, 2, 3, 4, 5], [30, np.nan, np.nan, 60, 70]))
    np.testing.assert_array_equal(average, ([1, 2, 3, 4, 5], [20, 20, np.nan, 50, 70]))


def test_windows_and_their_average_end_where_no_flow_runs() -> None:
    lines = {
        3: (np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])),
        5: (np.array([10.0, 11.0, 12.0]), np.array([40.0, 50.0, 60.0])),
    }
    ended, average = windows._side_by_side(lines)
    np.testing.assert_array_equal(ended[3], ([1, 2, 3, 4], [10, 20, 30, np.nan]))
    np.testing.assert_array_equal(ended[5], ([10, 11, 12], [40, 50, 60]))
    np.testing.assert_array_equal(average, ([1, 2, 3, 4, 10, 11, 12], [10, 20, 30, np.nan, 40, 50, 60]))


def test_a_flow_begins_to_retransmit_where_it_did_not_before() -> None:
    counts = np.array([0.0, 1, 1, 2, 3, 3, np.nan, 3, 4, 4, 5])
    whole = windows._Beginnings().among(counts).tolist()
    assert whole == [3, 10]
    parts = windows._Beginnings()
    assert [parts.among(counts[place : place + 1]).size for place in range(counts.size)] == [
        place in whole for place in range(counts.size)
    ]


def test_medians_of_pings_are_those_of_each_step_in_whatever_order_they_come(
    rrul: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rrul[0].pings.drop_nulls("rtt_ns")
    of_steps = rows.group_by(pl.col("t_ns") // phases.STEP_NS).agg(pl.col("rtt_ns")).sort("t_ns")
    shuffled = np.random.default_rng(7).permutation(rows.height)
    parts = [np.sort(part) for part in np.array_split(shuffled, 3)]
    given = [(rows["t_ns"].to_numpy()[one], rows["rtt_ns"].to_numpy()[one], None) for one in parts]
    monkeypatch.setattr(phases, "ping_chunks", lambda _: given)
    t_s, medians = phases.medians(rrul[0])
    assert t_s.tolist() == ((of_steps["t_ns"].to_numpy() + 0.5) * phases.STEP_NS / 1e9).tolist()
    assert medians.tolist() == [float(np.median(one.to_numpy() / 1e6)) for one in of_steps["rtt_ns"]]


def test_tables_that_were_let_go_are_read_again(rrul: list[Record]) -> None:
    record = open_record(rrul[0].path)
    record.check()
    before = record.columns("throughput")
    record.release()
    after = record.columns("throughput")
    assert after is not before
    assert after.rows() == before.rows()


def test_of_a_long_record_dots_are_drawn_once_where_several_lie(
    rrul: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = series.pings(rrul[0])
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    monkeypatch.setattr(thinned, "COLUMNS", 50)
    monkeypatch.setattr(thinned, "ROWS", 20)
    record = open_record(rrul[0].path)
    few = thinned.drawn_pings(record)
    assert 50 < few.t_s.size < every.t_s.size / 2
    assert few.lost_s.size == every.lost_s.size
    assert set(zip(few.t_s, few.rtt_ms, strict=True)) <= set(zip(every.t_s, every.rtt_ms, strict=True))
    # Whatever is left out lies where one is drawn.
    top = float(every.rtt_ms.max())
    cells = {
        kind: {
            (int(t / record.reached_ns * 1e9 * 50), int(rtt / top * 20))
            for t, rtt in zip(of.t_s, of.rtt_ms, strict=True)
        }
        for kind, of in (("every", every), ("few", few))
    }
    assert cells["few"] == cells["every"]
    shares = [float(np.quantile(one.of_all_ms, 0.995)) for one in (few, every)]
    assert shares[0] == pytest.approx(shares[1], rel=0.01)
    part = thinned.drawn_pings(record, (1.0, 1.5))
    assert part.t_s.min() >= 1.0
    assert part.t_s.max() <= 1.5
    assert part.t_s.size > few.t_s[(few.t_s >= 1.0) & (few.t_s <= 1.5)].size, (
        "a finer grid for a shorter time"
    )


def test_the_same_record_gives_the_same_bytes(twice: tuple[Path, Path]) -> None:
    for chart in twice[0].iterdir():
        again = twice[1] / f"{chart.stem}{chart.suffix.upper()}"
        assert chart.read_bytes() == again.read_bytes(), chart.name


def test_a_probe_that_nobody_answers_takes_no_room(rrul: Sequence[Record]) -> None:
    """It stands in the table below the axes, which stay as large as they are without it."""
    load = rrul[0].phase("load")
    assert load is not None
    heard = pings(10.0, 20.0, start_ns=load[0])
    deaf = pings(None, None, probe=1, start_ns=load[0])
    both = cdf.figure([changed(rrul[0], latency=pl.concat([heard, deaf]))], None)
    (ax,) = both.axes
    assert len(ax.lines) == 1 + 3  # the curve, and the lines at 50, 95 and 99 %
    grid_of(both).execute(both)
    assert ax.get_position().height > 0.4


@pytest.mark.parametrize("kind", ["three-plot", "cdf", "box", "bar", "qq", "ellipse"])
def test_repetitions_many_flows_and_no_cooldown(kind: str, repeated: list[Record], tmp_path: Path) -> None:
    draw(kind, some(kind, repeated), tmp_path / "chart.png", title="costs $5, or $6")


def drawn_lines(chart: Figure, panel: int) -> dict[str, list[float]]:
    """The values of each line of a panel, by its name in the legend, which the first panel has."""
    legend = chart.axes[0].get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    every = [np.asarray(line.get_ydata()) for line in chart.axes[panel].lines]
    return dict(zip(names, [values.tolist() for values in every if values.size > 2], strict=True))


def test_totals_are_sums_of_flows_and_of_several_runs_their_mean(
    rrul: list[Record], repeated: list[Record]
) -> None:
    chart = totals.figure(rrul, None)
    assert [axes.get_ylabel().split(",")[0] for axes in chart.axes] == ["Download", "Upload", "Ping"]
    for record, values in zip(rrul, drawn_lines(chart, 0).values(), strict=True):
        lines = series.throughput_mbps(record, "down")
        assert lines is not None
        assert values == pytest.approx(sum(lines.lines.values()))
    one = totals.figure(repeated[:2], None)
    [mean] = drawn_lines(one, 0).values()
    every = [totals.figure([record], None) for record in repeated[:2]]
    alone = [next(iter(drawn_lines(chart, 0).values())) for chart in every]
    assert mean == pytest.approx([sum(pair) / 2 for pair in zip(*alone, strict=True)])


def test_a_chart_of_queues_says_what_its_record_does_not_tell(rrul: list[Record]) -> None:
    record = Record(rrul[1].path)
    scenario = record.manifest.scenario
    record.manifest = replace(record.manifest, scenario=scenario | {"sampling": {"throughput_ns": 10**8}})
    with pytest.raises(
        RecordError, match=r"`: its manifest\.json is damaged: `scenario\.sampling\.queue_ns` is"
    ):
        queues.figure([record], None)


@pytest.mark.parametrize(("ecn", "did"), [(False, "dropped"), (True, "dropped or marked")])
def test_a_chart_of_queues_speaks_of_marks_where_it_draws_some(ecn: bool, did: str, tmp_path: Path) -> None:
    words: dict[str, Any] = {"queue": "cake bandwidth 95%", "phases": {"load": "3s"}}
    (record,) = weirlab.run("tcp_upload", tcp={"ecn": ecn}, out=tmp_path / "run", **words)
    said = " ".join(" ".join(text.get_text() for text in queues.figure([record], None).texts).split())
    assert f"and what it {did}, by interval." in said


def test_a_chart_of_queues_counts_drops_for_every_reason_by_second(rrul: list[Record]) -> None:
    record = rrul[1]
    chart = queues.figure([record], None)
    dropped = drawn_lines(chart, 2)
    interval_s = record.manifest.scenario["sampling"]["queue_ns"] / 1e9
    reasons = [
        name for name in record.queue.columns if name.startswith("dropped_") and name != "dropped_bytes"
    ]
    for name, values in dropped.items():
        rows = record.queue.filter((pl.col("queue") == name) & (pl.col("class") == ""))
        counted = sum(rows[reason].sum() for reason in reasons)
        assert sum(values) * interval_s == pytest.approx(counted)
    assert sum(map(sum, dropped.values())) > 0


def test_a_chart_of_tcp_has_what_the_senders_had(rrul: list[Record]) -> None:
    chart = tcp.figure(rrul[:1], None)
    # The simulator has no delivery rate.
    assert [axes.get_ylabel() for axes in chart.axes] == ["Smoothed RTT, ms", "Pacing, Mbit/s"]
    first = rrul[0].flow_names["flow"][0]
    srtt_ms = rrul[0].tcp.filter(pl.col("flow") == first).sort("t_ns")["srtt_ns"].to_numpy() / 1e6
    [values, *_] = drawn_lines(chart, 0).values()
    assert values == pytest.approx(list(srtt_ms), nan_ok=True)


@pytest.mark.parametrize("kind", ["tcp", "queues"])
def test_what_a_record_has_no_samples_of_is_not_drawn(kind: str, idle: Record) -> None:
    with pytest.raises(UsageError, match=r"has no samples of|nothing waited in any of its queues"):
        plot([idle], kind)


@pytest.mark.parametrize("kind", ["cdf", "box", "bar", "qq", "ping", "overlay"])
def test_charts_of_runs_without_load(kind: str, idle: Record, tmp_path: Path) -> None:
    draw(kind, [idle] * KINDS[kind].least, tmp_path / "chart.png")


def test_a_run_cut_short_is_drawn_as_far_as_it_went(rrul: list[Record], tmp_path: Path) -> None:
    cut = open_record(rrul[0].path)
    for table in ("latency", "throughput", "queue"):
        frame = getattr(cut, table)
        vars(cut)[table] = frame.filter(pl.col("t_ns") <= 2_500_000_000)
    cut.manifest = replace(cut.manifest, complete=False, reached_ns=None)
    assert caption.origin_line([cut]) == "world sim · seed 1 · cut short at 2.50 s"
    lines = series.throughput_mbps(cut, "down")
    assert lines is not None
    assert lines.t_s[-1] == pytest.approx(2.3)
    for kind in ("three-plot", "overlay"):
        draw(kind, [cut] * KINDS[kind].least, tmp_path / f"{kind}.png")


def test_matplotlib_is_not_loaded_before_something_is_drawn() -> None:
    program = "import sys, weirlab.plots; print({'matplotlib', 'polars', 'numpy'} & {*sys.modules})"
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.strip() == "set()"


def test_settings_of_the_user_do_not_matter_and_stay(
    twice: tuple[Path, Path], rrul: list[Record], tmp_path: Path
) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - as above: not before it is needed

    with mpl.rc_context({"font.size": 30.0, "axes.facecolor": "red"}):
        draw("cdf", rrul, tmp_path / "cdf.png")
        assert mpl.rcParams["font.size"] == 30.0
    assert (twice[0] / "cdf.png").read_bytes() == (tmp_path / "cdf.png").read_bytes()


def test_size_and_fonts(twice: tuple[Path, Path]) -> None:
    # Width and height stand in the first chunk: 10 by 7 inches of 150 points.
    header = (twice[0] / "three-plot.png").read_bytes()[16:24]
    assert header == (1500).to_bytes(4, "big") + (1050).to_bytes(4, "big")
    assert b"/Type3" not in (twice[0] / "three-plot.pdf").read_bytes()


def refused(tmp_path: Path, kind: str, records: Sequence[Record], name: str = "chart.png") -> str:
    """What the error says; nothing may be left behind."""
    with pytest.raises(UsageError) as caught:
        draw(kind, records, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_errors_are_a_sentence_and_leave_nothing(rrul: list[Record], idle: Record, tmp_path: Path) -> None:
    def said(kind: str, records: Sequence[Record], name: str = "chart.png") -> str:
        return refused(tmp_path, kind, records, name)

    assert said("pie", rrul) == f"there is no chart `pie` (known: {', '.join(KINDS)})"
    assert said("three-plot", rrul) == "chart `three-plot` takes exactly 1 record, not 2"
    assert said("overlay", rrul[:1]) == "chart `overlay` takes 2 or more records, not 1"
    assert said("box", []) == "chart `box` takes 1 or more records, not 0"
    for name in ("chart.gif", "chart", ".png"):
        ends = "cannot be drawn: its name must end in .png, .svg or .pdf"
        assert said("cdf", rrul, name) == f"`{tmp_path / name}` {ends}"
    no_flows = f"`{idle.path}` has no flows to draw: try the chart `ping`"
    assert said("three-plot", [idle]) == no_flows
    nothing = changed(idle, latency=pings())
    assert said("three-plot", [nothing]) == f"`{nothing.path}` has no flows to draw"
    assert "try" not in said("phases", [nothing])
    assert (has_work(rrul[0]), has_work(nothing)) == (True, False)
    empty = changed(rrul[1], latency=pings(), throughput=rrul[1].throughput.clear())
    for kind in ("three-plot", "box"):
        assert said(kind, [empty]) == f"`{empty.path}` has no samples to draw"
    for kind in ("cdf", "ping"):
        assert said(kind, [empty]) == f"`{empty.path}` has no pings to draw"
    assert said("overlay", [rrul[0], empty]) == f"`{empty.path}` has no pings to draw"
    deaf = changed(rrul[1], latency=pings(None, None))
    assert said("cdf", [rrul[0], deaf]) == f"`{deaf.path}` has no pings to draw: all were lost"
    most = "inches high, and 200 are the most: draw fewer"
    assert said("ping", [rrul[0]] * 300) == f"a chart of 300 records would be 302 {most} records at a time"
    assert said("windows", [rrul[0]] * 300) == f"a chart of 300 records would be 452 {most} records at a time"


def test_a_record_with_too_much_for_a_chart_is_told_with_what_helps(tmp_path: Path) -> None:
    """It is one record, of which the user can draw less."""
    probes = [{"name": f"ping {number}", "kind": "icmp"} for number in range(1400)]
    test = {"name": "n", "title": "n", "phases": {"idle": "30ms", "load": "60ms"}, "probes": probes}
    (record,) = weirlab.run(test, link="line-50", out=tmp_path / "out")
    (tmp_path / "charts").mkdir()
    said = refused(tmp_path / "charts", "cdf", [record])
    assert said.startswith(f"a chart of what `{record.path}` has would be ")
    assert "inches high, and 200 are the most: draw fewer of its probes or flows" in said
    assert said.endswith(", as by --kind cdf --probe 'UDP *'")


def test_a_chart_that_fails_leaves_the_old_one(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "chart.svg"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(WriteError, match="cannot be written: No space left on device"):
        draw("cdf", rrul, target)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_chart_is_drawn_once(rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    whole = Figure.draw

    def counted(figure: Figure, renderer: object) -> None:
        drawn.append(figure)
        whole(figure, renderer)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "draw", counted)
    draw("ping", rrul, tmp_path / "ping.png")
    assert len(drawn) == 1
