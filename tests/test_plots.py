"""Charts: the numbers behind them exactly, files by type and bytes, what errors leave behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import imread
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from scipy import stats

import weirlab
from weirlab.cli import show_command
from weirlab.errors import RecordError, UsageError, WriteError
from weirlab.plots import (
    KINDS,
    axes,
    bar,
    box,
    caption,
    cdf,
    distribution,
    draw,
    ellipse,
    gathered,
    measure,
    overlay,
    phases,
    plot,
    qq,
    queues,
    series,
    tcp,
    theme,
    thinned,
    three_plot,
    totals,
    windows,
)
from weirlab.plots.distribution import Ordered
from weirlab.plots.layout import grid_of
from weirlab.plots.queues import has_work
from weirlab.record import Record, open_record, reader
from weirlab.record.configurations import configurations, run_names
from weirlab.report import charts_of
from weirlab.stats import compare, describe, load_window_ns, totals_mbps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGINNINGS = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


@pytest.fixture(scope="session")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Downloads with 8 flows, two configurations of two repetitions each, without cooldown."""
    return weirlab.run(
        "tcp_ndown",
        queue=["pfifo_fast", "htb rate 95% fq_codel"],
        repeat=2,
        parameters={"streams": 8},
        phases={"idle": "1s", "load": "2s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("repeated") / "out",
    )


@pytest.fixture(scope="session")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Pings and nothing else."""
    (record,) = weirlab.run("ping", phases={"idle": "2s"}, out=tmp_path_factory.mktemp("idle") / "out")
    return record


def changed(record: Record, **tables: pl.DataFrame) -> Record:
    """A copy of the record with other tables."""
    copy = open_record(record.path)
    vars(copy).update(tables)
    return copy


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


def pings(*rtt_ms: float | None, probe: int = 0, start_ns: int = 1_000_000_000) -> pl.DataFrame:
    """A ping every 100 ms."""
    return pl.DataFrame(
        {
            "t_ns": [start_ns + number * 100_000_000 for number in range(len(rtt_ms))],
            "probe": probe,
            "rtt_ns": [None if ms is None else round(ms * 1e6) for ms in rtt_ms],
        },
        schema={"t_ns": pl.Int64, "probe": pl.Int64, "rtt_ns": pl.Int64},
    )


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


def test_a_chart_is_drawn_once(rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    whole = Figure.draw

    def counted(figure: Figure, renderer: object) -> None:
        drawn.append(figure)
        whole(figure, renderer)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "draw", counted)
    draw("ping", rrul, tmp_path / "ping.png")
    assert len(drawn) == 1


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


def test_ticks_as_one_says_them() -> None:
    assert axes.log_ticks(13, 420, 9) == [20, 50, 100, 200]
    assert axes.log_ticks(13, 5500, 6) == [30, 100, 300, 1000, 3000]
    assert axes.log_ticks(0.5, 5e6, 9) == [1, 10, 100, 1000, 1e4, 1e5, 1e6]


def test_labels_move_apart() -> None:
    assert axes.spread([0.5, 0.2], 0.1) == [0.5, 0.2]
    assert axes.spread([0.5, 0.5], 0.1) == pytest.approx([0.5, 0.6])
    assert axes.spread([1.2, 0.98, 0.97], 0.1) == pytest.approx([1.0, 0.9, 0.8])
    assert axes.spread([0.5] * 3, 0.7) == pytest.approx([0.0, 0.5, 1.0])


def test_single_peaks_do_not_set_the_axis() -> None:
    flat = np.full(1000, 4.0)
    assert axes.without_peaks([flat], flat) == (4, 4)
    peak = np.where(np.arange(1000) == 500, 40.0, 4.0)
    assert axes.without_peaks([flat, peak], flat) == (5, 40)
    assert axes.without_peaks([peak], peak) == (40, 40)


def test_names_say_what_differs(rrul: list[Record], idle: Record) -> None:
    assert run_names(rrul) == ["pfifo_fast", "htb rate 95% fq_codel"]
    assert run_names([rrul[0]]) == ["pfifo_fast"]
    assert run_names([rrul[0]] * 2) == ["pfifo_fast (1)", "pfifo_fast (2)"]
    again = open_record(rrul[0].path)
    again.manifest = replace(again.manifest, seed=2)
    assert run_names([rrul[0], again]) == ["pfifo_fast · seed 1", "pfifo_fast · seed 2"]
    live = open_record(rrul[0].path)
    live.manifest = replace(live.manifest, world="netns")
    assert run_names([rrul[0], live]) == ["world sim", "world netns"]
    title = "Realtime Response Under Load"
    assert run_names([rrul[0], idle]) == [
        f"pfifo_fast · {title} · idle 1 s",
        "the link's own queue · Ping without load · idle 2 s",
    ]


def test_what_was_asked_of_tcp_stands_in_the_heading_of_a_single_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that are compared by it have otherwise the same words above them."""
    asked: dict[str, Any] = {"queue": "fq_codel", "phases": {"idle": "1s", "load": "1s"}}
    third = {"congestion_control": "reno", "ecn": True}
    plain, *others = [
        *weirlab.run("tcp_upload", out=tmp_path / "a", **asked),
        *weirlab.run("tcp_upload", cc=["cubic", "bbr"], out=tmp_path / "b", **asked),
        *weirlab.run("tcp_upload", tcp=third, out=tmp_path / "c", **asked),
    ]
    line = caption.configuration_line([plain])
    assert line.endswith("; fq_codel")
    said = [f"{line}; cubic", f"{line}; bbr", f"{line}; reno, ECN"]
    assert [caption.configuration_line([record]) for record in others] == said
    assert caption.configuration_line(others) == f"{line}; 3 configurations"
    for record, words in zip(others, said, strict=True):
        assert words in str(record._repr_html_())
        show_command._show(record)
        assert words in " ".join(capsys.readouterr().out.split())


def test_of_many_boxes_and_bars_none_has_colour_and_hatching_of_another(tmp_path: Path) -> None:
    controls = ["cubic", "reno", "bbr", "westwood", "ledbat", "lp", "dctcp", "cdg"]
    records = weirlab.run(
        "tcp_upload", cc=controls, phases={"idle": "500ms", "load": "1s"}, out=tmp_path / "out"
    )
    for chart in (box.figure(records, None), bar.figure(records, None)):
        for panel in chart.axes:
            areas = [(one.get_facecolor(), one.get_hatch() or "") for one in panel.patches]
            assert len(areas) == len(set(areas)) == len(controls)
            assert [hatch for _, hatch in areas[:6]] == [""] * 6


def test_heading_and_lines_below(rrul: list[Record], idle: Record) -> None:
    assert caption.heading(rrul) == "Realtime Response Under Load"
    assert caption.heading([*rrul, idle]) == "Realtime Response Under Load / Ping without load"
    cable = "Cable, 20 Mbit/s down, 8 Mbit/s up"
    assert caption.configuration_line(rrul[:1]) == f"{cable}; pfifo_fast"
    assert caption.configuration_line(rrul) == f"{cable}; 2 configurations"
    assert caption.origin_line(rrul) == "world sim · 2 runs · seed 1"
    assert caption.when(rrul) == "during the load"
    assert caption.when([idle]) == "over the whole run"
    odd = open_record(rrul[0].path)
    odd.manifest = replace(odd.manifest, seed=9, warnings=["the clock drifted"])
    told = "world sim · 2 runs · seeds 1, 9 · caution: the clock drifted"
    assert caption.origin_line([rrul[0], odd]) == told


def test_short_names() -> None:
    assert caption.short_names(["TCP upload BE", "TCP upload BK"]) == ["BE", "BK"]
    assert caption.short_names(["TCP download::1", "TCP download::10"]) == ["1", "10"]
    assert caption.short_names(["Ping (ms) ICMP", "Ping (ms) UDP BE"]) == ["ICMP", "UDP BE"]
    assert caption.short_names(["TCP download"]) == ["TCP download"]
    assert caption.short_names(["same", "same"]) == ["same", "same"]


def test_numbers_for_people() -> None:
    numbers = [0, 0.00231, 4.444, 9.996, 14.13, 99.96, 275.2, 1351.3]
    wanted = ["0", "0.00231", "4.44", "10.0", "14.1", "100", "275", "1351"]
    assert [caption.number(one) for one in numbers] == wanted
    shares = [0.00005, 0.00092, 0.22, 0.9951, 1.0]
    assert [caption.per_cent(one) for one in shares] == [
        "< 0.01 %",
        "0.092 %",
        "22 %",
        "99.51 %",
        "100 %",
    ]


def test_text_is_broken_where_it_must_be() -> None:
    assert measure.wrapped("one two", 10, 9) == ["one two"]
    assert measure.wrapped("one two", 0.4, 9) == ["one", "two"]
    lines = measure.wrapped("x" * 100, 1.0, 9)
    assert "".join(lines) == "x" * 100
    assert max(measure.width_of(line, 9) for line in lines) <= 1.0


@pytest.mark.parametrize("weight", ["normal", "bold"])
@pytest.mark.parametrize(
    "letters", ["AVTy. ", "jfi/Wl1 ", "abcdefghijklmnopqrstuvwxyz0123456789,;%     ", "µ±·→é "]
)
def test_no_line_is_wider_than_its_letters(letters: str, weight: str) -> None:
    random = Random(letters)  # noqa: S311 - the same texts in each run
    for length in range(1, 120):
        text = "".join(random.choices(letters, k=length)).strip() or "x"
        width = measure.width_of(text, 8.5, weight=weight)
        font = FontProperties(family="DejaVu Sans", size=8.5, weight=weight)
        set_as_a_line = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72
        assert set_as_a_line / 1.02 <= width <= 1.2 * set_as_a_line


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 12, 30])
def test_nothing_is_told_apart_by_colour_alone(count: int) -> None:
    styles = theme.styles(count)
    assert len({(style.colour, style.dash) for style in styles}) == count
    few = styles[:5]
    assert len({style.dash for style in few}) == len({style.marker for style in few}) == len(few)


def test_colours_go_from_dark_to_light() -> None:
    weights = np.array([0.2126, 0.7152, 0.0722])
    shades = [
        float(weights @ [(int(colour[at : at + 2], 16) / 255) ** 2.2 for at in (1, 3, 5)])
        for colour in theme.COLOURS
    ]
    assert shades == sorted(shades)


def test_runs_in_one_chart_have_phases_only_where_all_have_the_same(
    rrul: list[Record], tmp_path: Path
) -> None:
    """Under the name of another run's phase a run would stand as it is in none."""
    (longer,) = weirlab.run(
        "rrul",
        link="cable-20-8",
        phases={"idle": "1s", "load": "8s", "cooldown": "1s"},
        out=tmp_path / "longer",
    )
    for others, are_named in ((rrul[1], True), (longer, False)):
        for kind in ("overlay", "totals"):
            axes = plot([rrul[0], others], kind).axes
            words = {text.get_text() for one in axes for text in one.texts}
            assert ({"idle", "load", "cooldown"} <= words) == are_named, kind
