"""The sentences of the viewer's pages: plain, explained, and true of a run that was cut short."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from matplotlib.text import Text
from playwright.sync_api import expect

import weirlab
from browsing import opened
from weirlab.plots import phases
from weirlab.plots.caption import number
from weirlab.record import open_record
from weirlab.record.differences import WHEN
from weirlab.report import comparison_table, story
from weirlab.report.differences import unrepeated
from weirlab.report.html import record_html
from weirlab.report.scores import parts_table, score_table
from weirlab.scores import measured, score_all
from weirlab.scores.bufferbloat import grade as grade_of_increase
from weirlab.stats import beside, compare, load_window_ns, summarise
from weirlab.ui import console
from weirlab.ui.numbers import milliseconds
from weirlab.viewer import report_page
from weirlab.viewer.words import comparison_says, grade_of, record_says, summary_of

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from weirlab.record import Record


def test_sentences_have_no_markup_of_the_terminal(
    browser: Browser, rrul: list[Record], tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(report_page(rrul), encoding="utf-8")
    with opened(browser, file) as shown:
        words = shown.page.locator("main").inner_text()
        assert "`" not in words
        assert shown.page.locator("main > p code").count() > 0
        assert ". Four TCP streams" in words
        shown.page.get_by_text("What the words mean").click()
        expect(shown.page.locator("dt", has_text="Jain")).to_be_visible()


@pytest.mark.parametrize("load", [False, True])
def test_before_the_load_nothing_is_said_of_it(rrul: list[Record], tmp_path: Path, load: bool) -> None:
    place = tmp_path / "short"
    shutil.copytree(rrul[0].path, place)
    manifest = json.loads((place / "manifest.json").read_text())
    begins = next(one for one in manifest["scenario"]["phases"] if one["name"] == "load")["start_ns"]
    manifest |= {"complete": False, "reached_ns": begins + (1_000_000_000 if load else 0)}
    (place / "manifest.json").write_text(json.dumps(manifest))
    record = open_record(place)
    said = " ".join([*record_says(record).values(), *summary_of(record)])
    assert ("The load has not begun." in said) != load
    assert ("under load" in said.lower()) == load
    assert ("During the load" in said) == load
    assert "ms" in said


HOPS = {"up": "8mbit", "down": "20mbit"}
LINE: dict[str, Any] = {
    "name": "plain",
    "title": "a plain line",
    **{
        way: [{"name": "line", "rate": rate, "delay": "10ms", "queue": "pfifo limit 100"}]
        for way, rate in HOPS.items()
    },
}


@pytest.fixture(scope="module")
def of_a_line(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A test of a line with a plain queue."""
    return line_test(tmp_path_factory.mktemp("line") / "out", "pfifo limit 100")


def line_test(out: Path, queue: str, note: str = "") -> Record:
    """A record with the phases of `weir test`: idle, download, upload, both at once."""
    flows = [
        {"name": name, "direction": way, "start": f"{start}s", "stop": f"{start + 4}s"}
        for name, way, start in (
            ("download 1", "down", 2),
            ("upload 1", "up", 6),
            ("download 1 (load)", "down", 10),
            ("upload 1 (load)", "up", 10),
        )
    ]
    test = {
        "name": "test",
        "title": "Test of the path to a server",
        "phases": {"idle": "2s", "load": "12s"},
        "flows": flows,
        "probes": [{"name": "UDP", "kind": "udp", "period": "20ms"}],
    }
    hops = {way: [{**LINE[way][0], "queue": queue}] for way in HOPS}
    (record,) = weirlab.run(test, link={**LINE, **hops}, out=out)
    manifest = json.loads((record.path / "manifest.json").read_text())
    starts = {"idle": 0, "download": 2, "upload": 6, "load": 10, "end": 14}
    manifest["scenario"]["phases"] = [
        {"name": name, "start_ns": start * 10**9, "end_ns": end * 10**9}
        for (name, start), end in zip(starts.items(), [*starts.values()][1:], strict=False)
    ]
    manifest["ramps"] = [{"phase": "load", "direction": "up", "flows": 1, "full_ns": None}]
    (record.path / "manifest.json").write_text(json.dumps(manifest | {"note": note}))
    return open_record(record.path)


def test_on_a_quick_line_round_trips_have_a_digit_more() -> None:
    assert [milliseconds(value) for value in (0.031, 0.4, 1.0, 254.34)] == ["0.03", "0.40", "1.0", "254.3"]


def test_a_test_of_a_quick_line_has_pings_that_took_a_while(
    of_a_line: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = measured(of_a_line)
    assert figures is not None
    quick = replace(figures, idle=replace(figures.idle, mean=0.03))
    monkeypatch.setattr("weirlab.viewer.words.of_a_line", lambda _: quick)
    assert any("A ping took 0.03 ms before" in text for text in summary_of(of_a_line))


def test_of_tests_of_a_line_beside_each_other_the_part_is_told(
    of_a_line: Record, weir_here: Any, tmp_path: Path
) -> None:
    """What is compared is the part with both at once, which is said; and each part has a row."""
    cured = line_test(tmp_path / "cured", "fq_codel")
    before, after = compare([of_a_line, cured])
    assert before.runs[0].during == "with both at once"
    said = story([before, after]).plain
    assert before.increase_ms is not None
    assert after.increase_ms is not None
    assert said.startswith(
        f"With `{after.name}` the load of both directions at once makes pings "
        f"{after.increase_ms.mean:.1f} ms slower instead of {before.increase_ms.mean:.1f} ms"
    )
    assert story([before]).plain.startswith("With both at once a ping takes ")
    parts = parts_table([of_a_line, cured])
    assert parts is not None
    cells = [list(column.cells) for column in parts.columns]
    names = ["download", "upload", "both at once"]
    assert cells[:2] == [[*[before.name] * 3, *[after.name] * 3], names * 2]
    figures = measured(of_a_line)
    assert figures is not None
    assert cells[2][0] == f"{figures.loaded['download'].down_mbps:.2f}"
    assert cells[3][0] == "-"
    assert cells[5][:3] == [f"{one.increase_ms:.1f}" for one in figures.loaded.values()]
    assert cells[6][:3] == [grade_of_increase(one.increase_ms) for one in figures.loaded.values()]
    shown = weir_here("compare", str(of_a_line.path), str(cured.path))
    assert "plain line, with both at once" in " ".join(shown.stdout.split())
    assert "Each part of the test, once the line was full" in shown.stdout
    page = report_page([of_a_line, cured])
    assert "plain line, with both at once" in page
    assert "Each part of the test, once the line was full" in page


def cut_at(record: Record, seconds: float, place: Path) -> Record:
    """A copy of a test of a line that was stopped there."""
    shutil.copytree(record.path, place)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest |= {"complete": False, "reached_ns": int(seconds * 1e9)}
    (place / "manifest.json").write_text(json.dumps(manifest))
    return open_record(place)


@pytest.mark.parametrize(
    ("part", "span"),
    [("download", (2, 2.6)), ("upload", (6, 9))],
)
def test_of_a_test_of_a_line_that_was_cut_short_the_part_that_it_reached_is_told(
    of_a_line: Record, weir_here: Any, tmp_path: Path, part: str, span: tuple[float, float]
) -> None:
    """It never had both at once, and pings before the load are none of a loaded line."""
    record = cut_at(of_a_line, span[1], tmp_path / "cut")
    when, way, other = f"during the {part}", *(("down", "up") if part == "download" else ("up", "down"))
    summary = summarise(record)
    assert summary.during == when
    assert load_window_ns(record) == tuple(int(at * 1e9) for at in span)
    assert summary.latency.idle is not None
    assert summary.latency.idle.count == 100
    assert summary.latency.sent == round((span[1] - span[0]) * 50)
    assert (summary.down is not None, summary.up is not None) == (way == "down", way == "up")
    said = story(beside([record])).plain
    assert said.startswith(f"{when.capitalize()} a ping takes ")
    compared = " ".join(weir_here("compare", str(record.path)).stdout.split())
    assert f"plain line, {when}" in compared
    shown = " ".join(weir_here("show", str(record.path)).stdout.split())
    assert f"Flows {when}" in shown
    assert f"Round trips {when}, ms" in shown
    page = report_page([record])
    assert f"Round trips {when}, ms" in page
    told = record_says(record)
    for name in (way, "ping", "cdf", "boxes"):
        assert told[name].startswith(f"{when.capitalize()} "), told[name]
    assert told[other] == f"No {other}load was measured {when}."
    for words in (said, compared, shown, page, *told.values()):
        assert "both at once a" not in words.lower()
        assert "with both at once, ms" not in words
        assert "The load has not begun" not in words


def test_of_tests_of_a_line_that_were_cut_short_elsewhere_each_part_is_named(
    of_a_line: Record, tmp_path: Path
) -> None:
    down = cut_at(of_a_line, 5, tmp_path / "down")
    up = cut_at(of_a_line, 9, tmp_path / "up")
    both = [of_a_line, down]
    assert str(comparison_table(both, beside(both)).title).endswith(
        "plain line, with both at once / during the download"
    )
    assert "the load of" not in story(beside([down, up])).plain
    assert comparison_says([down, up], ["a", "b"])["ping"].startswith("Under load a ping took ")
    alike = [down, cut_at(line_test(tmp_path / "cured", "fq_codel"), 5, tmp_path / "down cured")]
    assert " the load of the download makes pings " in story(beside(alike)).plain


def test_a_test_of_a_line_that_was_cut_short_before_its_loads_has_idle_pings_only(
    of_a_line: Record, tmp_path: Path
) -> None:
    record = cut_at(of_a_line, 1, tmp_path / "cut")
    summary = summarise(record)
    assert summary.during == "during the load"
    assert (summary.latency.sent, summary.latency.increase_mean_ms) == (0, None)
    assert story(beside([record])).plain.startswith("Nothing but pings ran")
    assert set(record_says(record)) == {"down", "up", "ping", "cdf", "boxes"}
    assert all(one.startswith("The load has not begun.") for one in record_says(record).values())
    assert "both at once" not in str(comparison_table([record], beside([record])).title)


@pytest.mark.parametrize("reached", [1.0, 2.6])
def test_of_a_test_that_has_no_part_to_tell_no_table_of_parts_is_shown(
    of_a_line: Record, weir_here: Any, tmp_path: Path, reached: float
) -> None:
    record = cut_at(of_a_line, reached, tmp_path / "cut")
    shown = weir_here("compare", str(record.path))
    assert shown.returncode == 0, shown.stderr
    assert "None" not in shown.stdout
    assert "Each part of the test" not in shown.stdout


def test_of_tests_of_a_line_that_ran_once_it_is_told_how_to_repeat_them(
    of_a_line: Record, rrul: list[Record], tmp_path: Path
) -> None:
    cured = line_test(tmp_path / "cured", "fq_codel", "cured")
    again = "several `weir test` with the same `--note`"
    assert advised([of_a_line, cured]) == again
    assert advised([of_a_line, rrul[0]]) == f"{again}, `--repeat 10`"
    assert advised(rrul[:2]) == "`--repeat 10`"
    cut = [cut_at(one, 5, tmp_path / f"cut{number}") for number, one in enumerate((of_a_line, cured))]
    assert advised(cut) == again


def advised(records: list[Record]) -> str:
    """How the records are to be repeated."""
    (told,) = unrepeated(records, beside(records))
    needs = "a single run shows no scatter: whether configurations differ needs repetitions"
    assert told.startswith(f"{needs} (")
    return told.removeprefix(f"{needs} (").removesuffix(")")


def test_a_page_has_the_doubts_that_the_command_has(
    of_a_line: Record, rrul: list[Record], weir_here: Any
) -> None:
    single = "a single run shows no scatter: whether configurations differ needs repetitions"
    other = "these records are not alike: tests "
    for records, expected in ((rrul[:2], [single]), ([rrul[0], of_a_line], [other, single])):
        compared = weir_here("compare", *(str(one.path) for one in records))
        assert compared.returncode == 0, compared.stderr
        terminal = " ".join(compared.stderr.split())
        page = report_page(records)
        for text in expected:
            assert text in terminal
            assert f'<p class="warning">Caution: {text}' in page
    assert single not in report_page(rrul[:1])


def test_of_a_test_of_a_line_all_its_parts_are_told(of_a_line: Record) -> None:
    """What the command shows: each direction alone, and both at once; and which part a sentence is of."""
    figures = measured(of_a_line)
    assert figures is not None
    down, up, both = (figures.loaded[name] for name in ("download", "upload", "load"))
    rates, pings, lost, also = summary_of(of_a_line)
    assert rates == (
        f"Once the line was full: download {down.down_mbps:.2f} Mbit/s; upload {up.up_mbps:.2f} Mbit/s; "
        f"both at once: download {both.down_mbps:.2f} Mbit/s, upload {both.up_mbps:.2f} Mbit/s."
    )
    assert down.down_mbps is not None
    assert both.down_mbps is not None
    assert down.down_mbps > 18 > both.down_mbps + 1
    assert pings == (
        f"A ping took {figures.idle.mean:.1f} ms before, and on the full line "
        f"{down.latency.mean:.1f} ms during the download, {up.latency.mean:.1f} ms during the upload, "
        f"{both.latency.mean:.1f} ms with both at once (means)."
    )
    assert lost.endswith(" pings on the full line were lost.")
    assert "with both at once, below, are those of all of that time" in also
    grade = grade_of(of_a_line)
    assert grade is not None
    worst = figures.worst
    assert f"{worst.latency.mean - figures.idle.mean:.0f} ms longer" in grade.says
    assert grade.says.endswith(f"It is worst {WHEN[worst.phase]}.")
    said = record_says(of_a_line)
    for name in ("down", "up", "ping", "cdf", "boxes"):
        assert "ith both at once " in said[name], said[name]
        assert "During the load" not in said[name]
    page = report_page([of_a_line])
    assert f"<td>{down.down_mbps:.2f} Mbit/s</td>" in page
    assert "Flows with both at once" in page
    assert "Round trips with both at once, ms" in page


def test_where_a_server_let_only_so_much_pass_no_line_is_told_as_full(
    of_a_line: Record, tmp_path: Path, weir_here: Any
) -> None:
    place = tmp_path / "limited"
    shutil.copytree(of_a_line.path, place)
    manifest = json.loads((place / "manifest.json").read_text())
    servers = [{"name": "s", "limits": {"rate_bps": 20_000_000}}]
    (place / "manifest.json").write_text(json.dumps(manifest | {"servers": servers}))
    limited = open_record(place)
    figures = measured(limited)
    assert figures is not None
    assert figures.limit_mbps == 20
    rates, pings, lost, also = summary_of(limited)
    assert rates.startswith("Once the loads were at their most: download ")
    assert " ms before, and under load " in pings
    assert lost.endswith(" pings under load were lost.")
    assert also.endswith(" before the loads were at their most.")
    page = report_page([limited])
    chart = phases.figure([limited], None)
    drawn = " ".join(text.get_text() for text in chart.findobj(Text))
    with console.capture() as caught:
        console.print(score_table(limited, figures, score_all(limited, figures)))
    printed = caught.get()
    together = parts_table([of_a_line, limited])
    assert together is not None
    assert str(together.title).endswith(", once the loads were at their most")
    for told in (page, weir_here("show", str(place)).stdout, record_html(limited), drawn, printed):
        said = " ".join(told.split())
        assert "once the loads were at their most" in said
        assert "line was full" not in said
        assert "on the full line" not in said


def test_terminal_and_notebook_tell_all_parts_of_a_test_of_a_line(of_a_line: Record, weir_here: Any) -> None:
    figures = measured(of_a_line)
    assert figures is not None
    rate = f"{figures.loaded['download'].down_mbps:.2f} Mbit/s"
    shown = weir_here("show", str(of_a_line.path)).stdout
    assert rate in shown
    assert "Flows with both at once" in shown
    assert "Round trips with both at once, ms" in shown
    assert rate in record_html(of_a_line)


def test_of_tests_of_a_line_together_the_part_is_told(of_a_line: Record, rrul: list[Record]) -> None:
    both = comparison_says([of_a_line, of_a_line], ["a", "b"])
    assert "With both at once all flows together received " in both["down"]
    assert both["ping"].startswith("With both at once a ping took ")
    mixed = comparison_says([of_a_line, rrul[0]], ["a", "b"])
    assert mixed["ping"].startswith("Under load a ping took ")


def test_only_a_test_that_found_its_loads_is_told_so(rrul: list[Record], tmp_path: Path) -> None:
    """The world net writes how loads were added for every run of its own, also if none were."""
    place = tmp_path / "net"
    shutil.copytree(rrul[0].path, place)
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps(manifest | {"ramps": []}))
    assert summary_of(open_record(place)) == summary_of(rrul[0])
    assert record_says(open_record(place)) == record_says(rrul[0])
    grade = grade_of(open_record(place))
    assert grade is not None
    assert "worst" not in grade.says


def test_the_spread_of_several_runs_is_true_of_each(rrul: list[Record]) -> None:
    """The least of their 5 % and the greatest of their 95 % are not those of all their pings together."""
    loaded = [summarise(one).latency.loaded for one in rrul]
    low = min(one.p5 for one in loaded if one)
    high = max(one.p95 for one in loaded if one)
    said = comparison_says(rrul, ["a", "b"])["boxes"]
    between = f"between {number(low)} and {number(high)} ms"
    assert said == f"During the load at least nine of ten pings of each run took {between}."
    alone = record_says(rrul[0])["boxes"]
    assert alone.startswith("During the load nine of ten pings took between ")


def test_where_pings_were_lost_shares_are_told_as_those_of_the_answered(
    rrul: list[Record], tmp_path: Path
) -> None:
    def rows(table: pl.DataFrame) -> pl.DataFrame:
        every = pl.int_range(pl.len()) % 4 > 0
        return table.with_columns(rtt_ns=pl.when(every).then(None).otherwise(pl.col("rtt_ns")))

    shutil.copytree(rrul[0].path, tmp_path / "lossy")
    for part in (tmp_path / "lossy" / "latency").iterdir():
        rows(pl.read_parquet(part)).write_parquet(part)
    manifest = json.loads((tmp_path / "lossy" / "manifest.json").read_text())
    (tmp_path / "lossy" / "manifest.json").write_text(json.dumps(manifest | {"tables": None}))
    lossy = weirlab.open_record(tmp_path / "lossy")
    says = record_says(lossy)
    assert says["cdf"].startswith("During the load half of the answered pings took at most ")
    assert says["boxes"].startswith("During the load nine of ten answered pings took between ")
    both = comparison_says([lossy, rrul[1]], ["lossy", "whole"])
    assert "half of the answered pings took at most" in both["cdf"]
    assert "; half of the pings took at most" in both["cdf"]
    assert "at least nine of ten answered pings of each run" in both["boxes"]
