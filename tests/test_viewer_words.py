"""The sentences of the viewer's pages: plain, explained, and true of a run that was cut short."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsing import opened
from weirlab.record import open_record
from weirlab.viewer import report_page
from weirlab.viewer.words import record_says, summary_of

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
