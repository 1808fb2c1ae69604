"""What applications felt: beside each other in `weir compare`, and with goals in `weir validate`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from weirlab.report.agreement import agreement_markdown
from weirlab.report.applications import comparison_of_applications
from weirlab.stats import compare, summarise
from weirlab.stats.agreeing import agreement

if TYPE_CHECKING:
    from rich.table import Table

    from weirlab.record import Record

PAGE: dict[str, Any] = {
    "name": "page",
    "direction": "down",
    "web": {"objects": 5, "every": "1s", "timeout": "3s"},
}
NAMES: dict[str, Any] = {"name": "names", "direction": "down", "dns": {"every": "500ms"}}
FILM: dict[str, Any] = {
    "name": "film",
    "direction": "down",
    "start": "1s",
    "video": {"bitrates": ["1mbit", "3mbit", "20mbit"], "segment": "2s", "buffer": "4s"},
}
CALL: dict[str, Any] = {"name": "call", "direction": "down", "voice": {}}


def run(rate: str, *flows: dict[str, Any], changes: list[dict[str, Any]] | None = None) -> Record:
    hop = {
        "name": "line",
        "rate": rate,
        "delay": "20ms",
        "queue": "pfifo limit 100",
        "changes": changes or [],
    }
    link = {"name": "plain", "title": f"a line of {rate}", "up": [hop], "down": [hop]}
    test = {"name": "t", "title": "T", "phases": {"idle": "1s", "load": "10s"}, "flows": list(flows)}
    (record,) = weirlab.run(test, link=link, start_jitter="0s")
    return record


def columns(table: Table | None) -> dict[str, list[str]]:
    assert table is not None
    return {str(one.header).replace("\n", " "): [str(cell) for cell in one.cells] for one in table.columns}


def test_worlds_are_held_against_each_other_by_what_applications_felt() -> None:
    fast, slow = run("20mbit", PAGE, NAMES, FILM, CALL), run("2mbit", PAGE, NAMES, FILM, CALL)
    found = agreement("plain", ("sim", [slow]), ("lab", [fast])).findings
    pages, names, film = (summarise(fast).applications[name] for name in ("page", "names", "film"))
    assert film.video is not None
    assert found["page_ms"].reference == pages.mean_ms
    assert found["lookup_ms"].reference == names.mean_ms
    assert found["video_mbps"].reference == film.video.bitrate_mbps
    assert found["startup_ms"].reference == film.video.startup_ms
    assert found["mos"].reference > 4
    missed = {name for name, one in found.items() if one.met is False}
    assert {"page_ms", "video_mbps", "startup_ms"} <= missed
    assert {name for name, one in found.items() if one.met} >= {"lookups_given_up_percent"}
    same = agreement("plain", ("sim", [fast]), ("lab", [fast]))
    assert same.met
    text = agreement_markdown(same)
    assert f"| page ms | {pages.mean_ms:.1f} | {pages.mean_ms:.1f} | +0.0% | 10% or 5 | met |" in text
    for name in ("MOS", "name ms", "video Mbit/s", "stalled %", "startup ms"):
        assert f"\n| {name} | " in text


def test_pages_that_were_given_up_are_told_where_their_time_is_not() -> None:
    sound = run("20mbit", PAGE, NAMES)
    cut = run("20mbit", PAGE, NAMES, changes=[{"at": "4s", "down": True}])
    table = comparison_of_applications(compare([sound, cut]))
    told = columns(table)
    assert told["page ms"][1] == "-"
    page = summarise(cut).applications["page"]
    assert told["pages given up, %"] == ["0.0", f"{100 * page.given_up / (page.given_up + page.done):.1f}"]
    # A name is given up after ten seconds and more: of lookups none was.
    assert "names given up, %" not in told
    assert float(told["name ms"][1]) > 40
    assert table is not None
    assert str(table.caption).startswith("Where pages were given up, there is no time of theirs")
    found = agreement("plain", ("sim", [sound]), ("lab", [cut])).findings
    assert "page_ms" not in found
    assert found["pages_given_up_percent"].met is False


def test_where_one_repetition_gave_pages_up_the_others_have_no_time_either() -> None:
    sound, cut = compare([run("20mbit", PAGE), run("20mbit", PAGE, changes=[{"at": "4s", "down": True}])])
    both = replace(sound, runs=[*sound.runs, *cut.runs])
    page = cut.runs[0].applications["page"]
    share = 100 * page.given_up / (page.given_up + page.done)
    told = columns(comparison_of_applications([sound, both]))
    assert told["page ms"][0] != "-"
    assert told["page ms"][1] == "-"
    assert told["pages given up, %"][1].startswith(f"{share / 2:.1f}\n")


def test_without_anything_given_up_nothing_is_told_of_it() -> None:
    table = comparison_of_applications(compare([run("20mbit", PAGE)]))
    assert list(columns(table)) == ["queue", "page ms"]
    assert table is not None
    assert table.caption is None


def test_videos_have_columns_of_their_own() -> None:
    records = [run("20mbit", FILM), run("2mbit", FILM, changes=[{"at": "5s", "rate": "200kbit"}])]
    told = columns(comparison_of_applications(compare(records)))
    assert list(told) == ["queue", "video Mbit/s", "stalled %", "startup ms"]
    for place, record in enumerate(records):
        video = summarise(record).applications["film"].video
        assert video is not None
        assert video.bitrate_mbps is not None
        assert video.stalled_rate is not None
        assert video.startup_ms is not None
        assert [told[name][place] for name in ("video Mbit/s", "stalled %", "startup ms")] == [
            f"{video.bitrate_mbps:.2f}",
            f"{100 * video.stalled_rate:.1f}",
            f"{video.startup_ms:.0f}",
        ]
    assert float(told["stalled %"][1]) > 0


@pytest.mark.parametrize("flows", [[PAGE], [FILM]])
def test_a_side_without_an_application_has_none_of_its_figures(flows: list[dict[str, Any]]) -> None:
    found = agreement("plain", ("sim", [run("20mbit", *flows)]), ("lab", [run("20mbit", NAMES)])).findings
    assert not {"page_ms", "lookup_ms", "video_mbps", "stalled_percent"} & set(found)
