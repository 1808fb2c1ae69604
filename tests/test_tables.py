"""Tables on terminals of every width: no number is cut and no line is too long."""

from __future__ import annotations

import ast
import io
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import weirlab
from live import weir_in
from weirlab.ascii import ascii_of
from weirlab.cli import weir as group
from weirlab.cli.conformance_command import Line, verdict_table
from weirlab.errors import written_out
from weirlab.record import open_record
from weirlab.record.configurations import run_names
from weirlab.report import (
    assertion_table,
    comparison_table,
    flow_table,
    increase_line,
    latency_table,
    quality_table,
    story,
)
from weirlab.report.agreement import agreement_table
from weirlab.report.location import location_table
from weirlab.report.methods import method_table
from weirlab.report.scores import score_table
from weirlab.scores import measured, score_all
from weirlab.scores.locate import Hop, Location
from weirlab.stats import Assertion, Difference, Factor, Interval, agreement, compare, summarise
from weirlab.ui import console
from weirlab.ui.table import Table
from weirstudies.agreement.tables import matrix_table
from weirstudies.gallery import study as gallery
from weirstudies.gallery.outcome import Judged, Outcome, Ruled
from weirstudies.gallery.page import figures_table, statements_table
from weirstudies.judge import Claim, judge
from weirstudies.linux import study as linux
from weirstudies.linux.tables import study_table
from weirstudies.shapers import cfosspeed
from weirstudies.shapers import tables as shaper_report
from weirstudies.speedtest_aqm import calibration
from weirstudies.speedtest_aqm.design import study
from weirstudies.speedtest_aqm.page import calibration_table
from weirstudies.thesis import page as thesis_report
from weirstudies.thesis import study as thesis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.record import Record
    from weirlab.stats import Comparison

WIDTHS = (120, 80, 60, 40)
LONG = (
    "htb rate 95% quantum 1514 burst 15k cburst 15k fq_codel limit 1001 target 5ms interval 100ms flows 1024"
)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """A plain queue and one with a long name, each twice."""
    return weirlab.run(
        "rrul",
        queue=["pfifo_fast", LONG],
        repeat=2,
        phases={"idle": "1s", "load": "3s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("tables") / "out",
    )


def tables_of_records(records: list[Record]) -> Iterator[tuple[str, Table]]:
    yield "comparison", comparison_table(records, compare(records))
    ones = [records[0], records[2]]
    yield "comparison of single runs", comparison_table(ones, compare(ones))
    asserted = [Assertion("latency.p99 < latency.median[idle] + 10ms"), Assertion("down.goodput > 12.5mbit")]
    outcomes = [[one.of(record) for one in asserted] for record in records]
    yield "assertions", assertion_table(run_names(records), outcomes)
    yield "assertions of one run", assertion_table(run_names(records[:1]), outcomes[:1])
    summary = summarise(records[0])
    yield "flows", flow_table(summary)
    yield "round trips", latency_table(summary)
    live = open_record(records[0].path)
    quality = {
        "late_p50_ns": 3e4,
        "late_p99_ns": 612_345.0,
        "late_p999_ns": 123_456_789.0,
        "cpu_percent": 19.0,
    }
    live.manifest = replace(live.manifest, emulator=quality | {"cpu_percent": 19.0}, device="tun")
    table = quality_table(live)
    assert table is not None
    yield "the lab's own work", table
    figures = measured(records[0])
    assert figures is not None
    yield "scores", score_table(records[0], figures, score_all(records[0], figures))
    one = agreement(LONG, ("sim", records[:2]), ("kernel-path", records[2:]))
    yield "agreement", agreement_table(one)
    yield "matrix", matrix_table([one, one])
    result = linux.Result(name="A_codel", missing=None, seeds=2, findings=one.findings)
    yield "study linux", study_table([result], kernel="Linux 6.12")


def tables_of_figures() -> Iterator[tuple[str, Table]]:
    some = Interval(mean=1234.567, low=1230.0, high=1239.0, count=5)
    row = cfosspeed.Row(
        load="down",
        control="cake autorate-ingress on the client's side",
        loaded_ms=some,
        increase_ms=some,
        factor=Factor(factor=123.4, low=100.1, high=None),
        p99_ms=some,
        goodput_mbps=some,
        cost=0.123,
        tamed_s=some,
        runs=5,
    )
    for intervals in (False, True):
        cells = [shaper_report.cfosspeed_cells(row, intervals=intervals), *shaper_report.reported_cells()]
        yield f"study cfosspeed {intervals}", shaper_report.table("Title", shaper_report.CFOSSPEED, cells)
    series = cfosspeed.Series(
        name="down, auto, bandwidth mode",
        figures=dict.fromkeys(cfosspeed.FIVE, some),
        published=cfosspeed.SERIES["idle"],
    )
    told = shaper_report.series_cells(series)
    yield "study cfosspeed series", shaper_report.table("Title", shaper_report.SERIES, told)
    figures = thesis.Figures(timeouts=1234, loss_percent=12.345, goodput=123456.7, variation=0.345)
    cells_of = thesis.chosen(["A/100 No Marker & RED"], of=thesis.study())
    rows = [
        thesis.Row(cell=one, whole=[figures] * 3, late=[figures] * 3, published=figures) for one in cells_of
    ]
    yield "study thesis", thesis_report.terminal_table(rows)
    experiment = gallery.load("yurtlab")
    ruled = Ruled(rulings=judge([Claim(what=LONG, ours={1: 1.0, 2: 2.0}, above=1.5)], (2,)))
    outcome = Outcome(
        experiment=experiment,
        world="sim",
        rows={LONG: dict.fromkeys(experiment.columns, some)},
        judged=[Judged(statement=one, rule=ruled, others=[]) for one in experiment.statements],
    )
    yield "gallery", figures_table(outcome)
    yield "statements", statements_table(outcome)
    of = study()
    span = calibration.Range(median=-1234.5, low=-2345.6, high=3456.7)
    gap = calibration.Gap(truth=span, difference=span, ratio=span)
    metric = of.method_named("weir").metric[0]
    of_metric: dict[str, Any] = {"method": "weir", "metric": metric, "queue": "pfifo-4bdp", "crossed": False}
    of_metric |= {"world": "sim", "cells": 2, "runs": 4, "missing": 1, "reported": span}
    of_metric |= {"gaps": dict.fromkeys(calibration.TRUTHS, gap)}
    yield "study speedtest-aqm", calibration_table([calibration.Row(**of_metric)] * 2)
    judged = [
        Line("codel-default-htb10", "exact", "1800 packets"),
        Line(
            "fq_codel-10m-a-name-that-is-as-long-as-any",
            "agrees",
            "60 runs beside 20: least p 0.0123 (delay)",
        ),
        Line("pfifo", "fails", "packet 1234 left at 1.234567891 s and not at 1.234567999 s: " + "more " * 20),
    ]
    yield "conformance", verdict_table(judged)
    result: Any = {
        "method": "ookla",
        "formula": "the one of its client, version 1.2.0.84",
        "failures": [],
        "download_mbps": 123_456.789,
        "latency_definition": "the lowest of the round trips that were measured before the download began",
        "download": {"loaded_latency": {"iqm_ms": 12_345.67, "low_ms": 0.012}},
        "missing": ["jitter_ms: the server has no such answer", "packet_loss_percent: no UDP"],
    }
    yield "method", method_table(result, None)
    more = {"download": 1062.5, "upload": -1170.25, "load": 1234.5}
    hops = [
        Hop(name="router 1 (2001:db8:1234:5678::1)", ttl=1, idle_ms=1234.5, increase_ms=more, answered=1.0),
        Hop(name="server", ttl=None, idle_ms=5.0, increase_ms=more, answered=0.98),
    ]
    yield (
        "where pings wait",
        location_table(Location(hops=hops, begins=dict.fromkeys(more, "server"), also={})),
    )


def printed(table: Table, width: int, *, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="")
    Console(width=width, file=file, markup=False, highlight=False).print(table)
    file.flush()
    return raw.getvalue().decode(encoding)


def numbers(text: str) -> Counter[str]:
    """The numbers in a text, each with its sign and per cent."""
    return Counter(re.findall(r"(?<![\w.])[-+±]{0,2}\d[\d.,]*%?", text))


def assert_whole(table: Table, width: int, said: str) -> None:
    too_long = [line for line in said.splitlines() if cell_len(line.rstrip()) > width]
    assert not too_long, too_long
    left_out = set(table.dispensable)
    for place, column in enumerate(table.columns):
        cells = " ".join(str(cell) for cell in column.cells)
        if place not in left_out:
            missing = numbers(cells) - numbers(said)
            assert not missing, (column.header, missing, said)
        assert cells.count("…") == 0
    assert "…" not in said


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_records_fit_and_cut_no_number(width: int, repeated: list[Record]) -> None:
    for _, table in tables_of_records(repeated):
        assert_whole(table, width, printed(table, width))


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_studies_and_tests_fit_and_cut_no_number(width: int) -> None:
    for _, table in tables_of_figures():
        assert_whole(table, width, printed(table, width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "words",
    [
        "list tests",
        "list links",
        "list links cable-20-8",
        "list links lte-verizon",
        "list tests rrul",
        "list tests three_rtts",
        "list queues fq_codel",
        "list queues cake",
        "list markers",
        "study",
    ],
)
def test_lists_fit(
    words: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_width", width)
    group.main(words.split(), standalone_mode=False)
    said = capsys.readouterr().out
    assert said
    assert "…" not in said
    assert max(cell_len(line.rstrip()) for line in said.splitlines()) <= width


def test_a_link_shows_its_numbers_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    group.main(["list", "links", "cable-20-8"], standalone_mode=False)
    said = capsys.readouterr().out
    for whole in ("250000", "625000", "1gbit", "8mbit", "20mbit", "7ms"):
        assert whole in said


def test_the_factor_is_always_shown_and_names_are_whole(repeated: list[Record]) -> None:
    for width in (*WIDTHS, 100, 70, 61, 30):
        said = printed(comparison_table(repeated, compare(repeated)), width)
        assert "factor" in said, width
        assert "increase" in said, width
        words = re.sub(r"\s+", " ", said)
        for word in LONG.split():
            assert word in words, width


def test_below_60_columns_every_figure_is_in_the_list(repeated: list[Record]) -> None:
    said = printed(comparison_table(repeated, compare(repeated)), 59)
    for heading in ("down Mbit/s", "idle ms", "median ms", "p95 ms", "Jain down", "pings lost", "factor"):
        assert said.count(f"  {heading}") == 2, heading


def test_what_has_room_is_a_table_in_one_line_a_row() -> None:
    table = Table("queue", title="Title")
    table.add_column("down\nMbit/s", justify="right")
    table.add_row("pfifo_fast", "1234567.89")
    assert "pfifo_fast" in printed(table, 40)
    assert re.search(r"pfifo_fast\W+1234567.89", printed(table, 40))


def test_probe_names_stand_on_one_line(repeated: list[Record]) -> None:
    said = printed(latency_table(summarise(repeated[0])), 80)
    for name in repeated[0].probe_names:
        assert name in said


def test_round_trips_below_a_millisecond_are_told_to_the_microsecond(tmp_path: Path) -> None:
    line = {"name": "line", "rate": "1gbit", "delay": "1us"}
    link = {"name": "near", "title": "Near", "source": "chosen", "up": [line], "down": [line]}
    (record,) = weirlab.run(
        "tcp_download", link=link, phases={"idle": "50ms", "load": "200ms"}, out=tmp_path / "out"
    )
    latency = summarise(record).latency
    assert latency.idle is not None
    idle_ms = latency.idle.median
    # 84 bytes at 1 Gbit/s and 1 us of delay, each way.
    assert idle_ms == pytest.approx(2 * (84 * 8 / 1e6 + 0.001), rel=0.01)
    short = replace(latency, loaded=latency.idle, increase_mean_ms=0.0123)
    said = printed(latency_table(replace(summarise(record), latency=short)), 100)
    assert f" {idle_ms:.3f} " in said
    assert "mean 0.012 ms" in str(increase_line(short))
    assert "mean 12.3 ms" in str(increase_line(replace(latency, increase_mean_ms=12.3)))


def test_ascii_terminals_get_ascii(repeated: list[Record]) -> None:
    for width in WIDTHS:
        said = printed(comparison_table(repeated, compare(repeated)), width, encoding="ascii")
        assert "+-" in said
        assert max(len(line) for line in said.splitlines()) <= width
    assert ascii_of("± 3 · 4 … é") == "+- 3 - 4 ... ?"


def test_styled_cells_keep_their_style() -> None:
    table = Table("what", "where", "verdict")
    table.add_row("a", "b", Text("broken", style="bold red"))
    for width in (80, 30):
        out = io.StringIO()
        Console(width=width, file=out, force_terminal=True, color_system="standard").print(table)
        assert "\x1b[1;31m" in out.getvalue()


def test_all_tables_are_of_this_kind() -> None:
    """A table of Rich itself would cut its numbers."""
    for path in Path(weirlab.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "rich.table":
                assert path.parts[-2:] == ("ui", "table.py"), path


def test_no_heading_speaks_of_a_load_where_there_is_none(tmp_path: Path) -> None:
    records = weirlab.run("ping", phases={"idle": "1s"}, out=tmp_path / "out")
    comparisons = compare(records)
    said = printed(comparison_table(records, comparisons), 160)
    assert "loaded" not in said
    assert "mean" in said
    assert "without load" in printed(latency_table(summarise(records[0])), 80)
    assert "Nothing but pings ran" in story(comparisons).plain
    assert "loaded" not in str(records[0]._repr_html_())


def test_a_notebook_counts_flows_in_words(tmp_path: Path) -> None:
    short = {"idle": "0s", "load": "1s", "cooldown": "0s"}
    [one] = weirlab.run("tcp_download", phases=short, out=tmp_path / "one")
    [several] = weirlab.run("rrul_be", phases=short, out=tmp_path / "several")
    assert "<td>1 flow</td>" in str(one._repr_html_())
    assert "<td>4 flows</td>" in str(several._repr_html_())


def test_a_record_without_pings_is_not_said_to_have_any(tmp_path: Path) -> None:
    # As of `weir lab exec --out`.
    test = {"name": "quiet", "title": "quiet", "phases": {"load": "1s"}}
    records = weirlab.run(test, out=tmp_path / "out")
    assert (
        story(compare(records)).plain
        == "Neither loads nor pings of the scenario ran: there are no figures to compare."
    )


def test_a_load_that_ended_before_it_was_measured_is_no_load_that_pings_did_not_mind(tmp_path: Path) -> None:
    records = weirlab.run("tcp_download", phases={"idle": "1s", "load": "50ms"}, out=tmp_path / "out")
    told = story(compare(records)).plain
    assert told.startswith("By how much load makes pings slower cannot be told: what it carried is not known")
    lines = printed(comparison_table(records, compare(records)), 80).splitlines()
    (row,) = (line for line in lines if "own queue" in line)
    assert row.split()[-2:] == ["-", "-"], "neither increase nor factor"
    whole = weirlab.run("tcp_download", phases={"idle": "1s", "load": "2s"}, out=tmp_path / "whole")
    for both in ([*records, *whole], [*whole, *records]):
        assert "cannot be told: what it carried with `" in story(compare(both)).plain


@pytest.mark.parametrize(("ms", "said"), [(3.24, "3.2 ms longer"), (0.04, "no longer"), (-0.3, "no longer")])
def test_one_configuration_is_told_by_what_load_adds(tmp_path: Path, ms: float, said: str) -> None:
    made = weirlab.run("tcp_download", phases={"idle": "1s", "load": "1s"}, out=tmp_path / "run")
    (one,) = compare(made)
    assert one.increase_ms is not None
    told = replace(one, increase_ms=replace(one.increase_ms, mean=ms))
    assert story([told]).plain == f"Under load a ping takes {said} than before it."


@pytest.mark.parametrize(
    ("usual", "ms", "said"),
    [
        (20.0, 19.5, " noticeably."),
        (0.01, 2.0, " noticeably."),
        (20.0, 174.0, ": with `fq_codel` it is longer, 174.0 ms instead of 20.0 ms."),
        (-0.2, 174.0, ": with `fq_codel` it is longer, 174.0 ms instead of -0.2 ms."),
        (-0.02, 174.0, ": with `fq_codel` it is longer, 174.0 ms instead of 0.0 ms."),
        (-0.2, -0.3, " noticeably."),
    ],
)
def test_a_queue_that_makes_it_worse_is_told(rrul: list[Record], usual: float, ms: float, said: str) -> None:
    baseline, other = compare(rrul)
    assert baseline.increase_ms is not None
    assert other.increase_ms is not None
    baseline = replace(baseline, increase_ms=replace(baseline.increase_ms, mean=usual))
    increase, factor = replace(other.increase_ms, mean=ms), replace(other.factor, factor=usual / ms)
    told = replace(other, name="fq_codel", increase_ms=increase, factor=factor)
    assert story([baseline, told]).plain == f"None of them shortens the wait of `{baseline.name}`{said}"


def test_columns_that_are_left_out_are_named(repeated: list[Record]) -> None:
    table = comparison_table(repeated, compare(repeated))
    wide, usual = (" ".join(printed(table, width).split()) for width in (200, 80))
    assert "wider terminal" not in wide
    assert usual.endswith("more in a wider terminal: median ms, p95 ms, Jain down, Jain up, pings lost")
    assert "wider terminal" not in printed(table, 40), "a list has them all"
    single = comparison_table([repeated[0]], compare([repeated[0]]))
    assert "more in a wider terminal: " in printed(single, 80)


def increased(one: Comparison, name: str, ms: float, found: Factor) -> Comparison:
    """The same with another name, another increase and another factor; goodput is unknown."""
    assert one.increase_ms is not None
    return replace(
        one,
        name=name,
        increase_ms=replace(one.increase_ms, mean=ms),
        factor=found,
        down_mbps=None,
        up_mbps=None,
    )


def test_a_configuration_that_leaves_nothing_of_the_wait_is_the_best(rrul: list[Record]) -> None:
    """An increase of noise around 0 has no factor: that is no reason to say that nothing helps."""
    baseline, other = compare(rrul)
    baseline = increased(baseline, "pfifo", 811.0, Factor(factor=1.0, low=None, high=None))
    cured = increased(other, "cured", -0.1, Factor(factor=None, low=812.0, high=None))
    halved = increased(other, "halved", 400.0, Factor(factor=2.0, low=1.9, high=2.1))
    said = "With `cured` the load makes pings no slower, instead of 811.0 ms slower"
    bound = " (95 %: more than 812.0 times less)"
    assert story([baseline, halved, cured]).plain == f"{said}{bound}."
    assert story([baseline, cured]).plain == f"{said}{bound}."
    single = replace(cured, factor=Factor(factor=None, low=None, high=None))
    assert story([baseline, halved, single]).plain == f"{said}."
    table = printed(comparison_table(rrul, [baseline, cured]), 120)
    assert "> 812.0" in table


def test_a_baseline_that_nothing_loads_is_said_to_be_one(rrul: list[Record], tmp_path: Path) -> None:
    idle = weirlab.run("ping", link="cable-20-8", phases={"idle": "1s"}, out=tmp_path / "o")
    assert "where nothing loads the line." in story(compare([*idle, rrul[0]])).plain


def test_a_mean_over_some_of_the_runs_says_of_how_many_it_is(repeated: list[Record]) -> None:
    baseline, other = compare(repeated)
    assert other.increase_ms is not None
    whole = printed(comparison_table(repeated, [baseline, other]), 160)
    assert "of 1" not in whole
    lacking = replace(other, increase_ms=replace(other.increase_ms, low=None, high=None, count=1))
    said = printed(comparison_table(repeated, [baseline, lacking]), 160)
    assert "of 1" in said
    assert "`of N`: only N of the runs have that figure" in " ".join(said.split())
    assert "of N" not in whole


def test_a_baseline_without_pings_is_not_what_all_of_them_lack(rrul: list[Record]) -> None:
    baseline, other = compare(rrul)
    silent = replace(
        baseline, name="calls", increase_ms=None, runs=[replace(run, probes={}) for run in baseline.runs]
    )
    told = (
        "By how much load makes pings slower cannot be compared with `calls`, where the test sends no pings."
    )
    assert story([silent, other]).plain == told
    none = replace(other, increase_ms=None)
    assert story([silent, none]).plain.startswith(
        "By how much load makes pings slower cannot be told: the test"
    )


def shown(one: Comparison, *, p: float | None, better: bool | None) -> Comparison:
    """The same with that verdict on its increase."""
    found = Difference(
        figure="increase_ms",
        size=-2.3,
        low=None,
        high=None,
        p=p,
        p_holm=p,
        paired=True,
        repeats=2,
        standard_error=None,
        freedom=None,
        detectable=None,
        better=better,
    )
    return replace(one, differences=[found])


def test_what_is_not_shown_is_not_stated(rrul: list[Record]) -> None:
    """The sentence says what the table of differences says, and no more."""
    baseline, other = compare(rrul)
    baseline = increased(baseline, "plain", 94.0, Factor(factor=1.0, low=None, high=None))
    chance = increased(other, "chance", 71.0, Factor(factor=94 / 71, low=0.9, high=2.0))
    chance = shown(chance, p=1.0, better=None)
    sure = shown(
        increased(other, "sure", 80.0, Factor(factor=94 / 80, low=1.1, high=1.3)), p=0.01, better=True
    )
    text = "With `chance` the load makes pings 71.0 ms slower instead of 94.0 ms"
    doubt = "; 2 repetitions do not show that this is more than chance."
    assert story([baseline, chance]).plain == text + doubt
    assert (
        story([baseline, chance, sure]).plain
        == "With `sure` the load makes pings 80.0 ms slower instead of 94.0 ms: 1.2 times less."
    )
    untested = shown(chance, p=None, better=None)
    assert story([baseline, untested]).plain == f"{text}: 1.3 times less."
    gone = shown(increased(other, "gone", -0.1, Factor(factor=None, low=3.0, high=None)), p=0.5, better=None)
    said = "With `gone` the load makes pings no slower, instead of 94.0 ms slower"
    assert story([baseline, gone]).plain == said + doubt
    worse = shown(
        increased(other, "worse", 600.0, Factor(factor=0.15, low=0.1, high=0.2)), p=0.5, better=None
    )
    none = "None of them shortens the wait of `plain` noticeably"
    assert story([baseline, worse]).plain == f"{none}."
    worse = shown(worse, p=0.001, better=False)
    longer = "with `worse` it is longer, 600.0 ms instead of 94.0 ms."
    assert story([baseline, worse]).plain == f"None of them shortens the wait of `plain`: {longer}"


@pytest.mark.parametrize(
    ("usual", "ms", "named"),
    [
        (0.0031, 0.0028, False),
        (0.04, -0.01, False),
        (2.8, 2.5, False),
        (9.4, 7.1, False),
        (1.2, 0.3, False),
        (4.9, -0.1, True),
        (2.0, 0.9, True),
        (9.4, 4.4, True),
        (200.0, 178.0, True),
        (200.0, 190.0, False),
    ],
)
def test_only_a_gain_that_somebody_notices_is_told(
    rrul: list[Record], usual: float, ms: float, named: bool
) -> None:
    """A shaper costs throughput: nobody is told to pay that for microseconds."""
    baseline, other = compare(rrul)
    baseline = increased(baseline, "plain", usual, Factor(factor=1.0, low=None, high=None))
    times = usual / ms if ms > 0 else None
    shaped = increased(other, "shaped", ms, Factor(factor=times, low=None, high=None))
    said = story([baseline, replace(shaped, differences=[])]).plain
    assert said.startswith(
        "With `shaped` " if named else "None of them shortens the wait of `plain` noticeably"
    )


@pytest.mark.parametrize(
    ("lost", "marked", "said"),
    [
        (0.0, 0.0, ""),
        (None, None, ""),
        (0.0, 8391 / 15311, "data packets: marked CE 54.80%"),
        (0.0123, None, "data packets: dropped 1.23%"),
        (0.00004, 0.5, "data packets: dropped below 0.01%, marked CE 50.00%"),
    ],
)
def test_what_the_path_dropped_and_marked_is_told_with_the_flows(
    rrul: list[Record], lost: float | None, marked: float | None, said: str
) -> None:
    summary = summarise(rrul[0])
    assert summary.up is not None
    up = replace(summary.up, loss_rate=lost, mark_rate=marked)
    foot = printed(flow_table(replace(summary, down=None, up=up)), 80).partition("whole run: retransmitted")[
        2
    ]
    assert ("data packets" in foot) == bool(said)
    assert said in foot


def test_what_is_counted_in_the_whole_run_is_told_as_that(rrul: list[Record]) -> None:
    """The table's title says of everything else that it is of the load."""
    lines = [line.split("  ")[0].strip() for line in printed(flow_table(summarise(rrul[0])), 80).splitlines()]
    for way in ("download", "upload"):
        at = next(number for number, line in enumerate(lines) if line.startswith(f"{way}: "))
        assert re.fullmatch(rf"{way}: \d+\.\d% of the line", lines[at])
        assert re.fullmatch(r"whole run: retransmitted \d+, timeouts \d+", lines[at + 1])


def test_no_zero_has_a_minus(rrul: list[Record]) -> None:
    baseline, other = compare(rrul)
    none = increased(other, "none", -0.004, Factor(factor=None, low=None, high=None))
    assert "-0.0" not in printed(comparison_table(rrul, [baseline, none]), 160)
    latency = replace(
        summarise(rrul[0]).latency,
        increase_mean_ms=-0.04,
        increase_median_ms=-0.0,
        increase_p95_ms=0.0,
        increase_p99_ms=-0.06,
    )
    assert str(increase_line(latency)).startswith(
        "Increase under load: mean 0.0 ms, median 0.0 ms, p95 0.0 ms, p99 -0.1 ms"
    )


def test_signs_that_steer_nothing_are_shown_as_they_are() -> None:
    said = "D\xe9bit\xa0: \u5149\u56de\u7dda\u3000\U0001f469\u200d\U0001f4bb\n\u202eabc\x85"
    assert written_out(said) == said[:-5] + "\\u202eabc\\x85"


def test_no_text_of_a_record_steers_the_terminal(rrul: list[Record], tmp_path: Path) -> None:
    folder = tmp_path / "esc"
    shutil.copytree(rrul[0].path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    hostile = "\x1b[31mred\x1b]0;own\x07 \x9b2J"
    manifest |= {"note": hostile, "warnings": [hostile]}
    manifest["test"] |= {"title": hostile}
    manifest["link"] |= {"title": hostile}
    manifest["scenario"]["probes"][0]["name"] = hostile
    manifest["queue"] = manifest["configuration"] = hostile
    (folder / "manifest.json").write_text(json.dumps(manifest))
    place, other = str(folder), str(rrul[1].path)
    for words in (["show", place], ["compare", place, other], ["note", place]):
        done = subprocess.run(
            [sys.executable, "-m", "weirlab", *words], capture_output=True, text=True, check=True
        )
        assert "\\x1b[31mred" in done.stdout, words
        assert not set("\x1b\x07\x9b") & set(done.stdout + done.stderr), words


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `weir list links` prints in 80 columns."""
    known = weir_in(tmp_path_factory.mktemp("links"), "list", "links", environment={"COLUMNS": "80"})
    assert len(known.stdout.splitlines()) > 5
    return known.stdout


@pytest.mark.parametrize("size", ["0", "00", "-0", "²", "1234567890123"])
def test_a_size_that_is_none_is_as_if_it_were_not_set(size: str, links: str, tmp_path: Path) -> None:
    """Terminals without a size tell 0."""
    said = weir_in(tmp_path, "list", "links", environment={"COLUMNS": size, "LINES": size})
    assert (said.returncode, said.stderr, said.stdout) == (0, "", links)
