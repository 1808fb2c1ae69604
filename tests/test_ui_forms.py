"""The forms of `weir ui`: what was written is not lost, what is shown is so, and what goes wrong is said."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsing import WAIT_MS, box_of, opened
from local_ui import PATIENCE_S, Served, begun, ended
from weirlab.errors import UsageError
from weirlab.record import open_record
from weirlab.webapp import library, pages
from weirlab.webapp.runs import FormError, Runs, command_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Route

    from weirlab.record import Record

pytestmark = pytest.mark.realtime

LONG = {"test": "rrul", "link": "cable-20-8", "queue": ["fq_codel"], "load": "100000s"}
"""A form of a run that does not end by itself."""

SILENT = "no answer from weir ui: if it has ended, start it again and open the link that it prints"


@pytest.fixture
def served(rrul: list[Record], tmp_path: Path) -> Iterator[Served]:
    for name in ("one", "two"):
        shutil.copytree(rrul[0].path, tmp_path / name)
    yield (one := begun(tmp_path))
    ended(one)


def test_a_button_that_gets_no_answer_says_so(browser: Browser, served: Served) -> None:
    with opened(browser, served.link) as shown:
        shown.provoked = "Failed to load resource"
        pages = {name: shown.page.context.new_page() for name in ("new", "runs/1", "scenario", "shapers")}
        served.ask("/start", "POST", LONG)
        for name, page in pages.items():
            page.goto(served.link + name)
        notes = shown.page
        notes.get_by_text("Note and tags of the chosen records").click()
        notes.get_by_label("Choose one", exact=True).check()
        notes.get_by_label("Note", exact=True).fill("half")
        pages["scenario"].get_by_label("File").fill("mine.toml")
        expect(pages["scenario"].get_by_role("alert")).to_be_hidden()
        expect(pages["new"].locator("#command")).to_contain_text("weir run")
        ended(served)
        notes.get_by_role("button", name="Keep").click()
        expect(notes.locator("#note-error")).to_have_text(SILENT, timeout=WAIT_MS)
        pages["new"].locator("#start").click()
        expect(pages["new"].locator("#error")).to_have_text(SILENT, timeout=WAIT_MS)
        # The form is not to blame, and may be sent again.
        expect(pages["new"].locator("#start")).to_be_enabled()
        pages["scenario"].get_by_role("button", name="Keep", exact=True).click()
        expect(pages["scenario"].get_by_role("alert")).to_have_text(SILENT, timeout=WAIT_MS)
        expect(pages["runs/1"].locator("#state")).to_have_text(SILENT, timeout=WAIT_MS)
        expect(pages["shapers"].locator("#count")).to_have_text(f"{SILENT}.", timeout=WAIT_MS)


def test_notes_that_would_turn_writing_are_shown_as_on_the_terminal_and_edited_as_they_are(
    browser: Browser, served: Served
) -> None:
    note = "a\u202eevil\u202c"
    manifest = json.loads((served.folder / "one" / "manifest.json").read_text())
    (served.folder / "one" / "manifest.json").write_text(json.dumps(manifest | {"note": note}))
    with opened(browser, served.link) as shown:
        page = shown.page
        cell = page.locator('tr[data-place="one"] [data-column="Note"]')
        expect(cell).to_have_text("a\\u202eevil\\u202c")
        page.get_by_text("Note and tags of the chosen records").click()
        page.get_by_label("Choose one", exact=True).check()
        expect(page.get_by_label("Note", exact=True)).to_have_value(note)
        page.get_by_label("Note", exact=True).fill(f"{note}!")
        expect(page.locator("#command")).to_contain_text("'a\\u202eevil\\u202c!'", timeout=WAIT_MS)
        page.get_by_role("button", name="Keep").click()
        expect(page.locator("#note-kept")).to_have_text("Kept.", timeout=WAIT_MS)
        expect(cell).to_have_text("a\\u202eevil\\u202c!")
        expect(page.get_by_label("Note", exact=True)).to_have_value(f"{note}!")
    assert open_record(served.folder / "one").manifest.note == f"{note}!"


@pytest.mark.parametrize(
    ("seed", "told"),
    [
        ("9999999999999999999", "9999999999999999999: write 9223372036854775807 or less"),
        ("9223372036854775807", None),
        ("99999999999999999999", "`99999999999999999999`: write a whole number of up to 19 digits"),
    ],
)
def test_a_seed_that_is_too_large_is_told_with_the_greatest(seed: str, told: str | None) -> None:
    form = {"test": "rrul", "link": "cable-20-8", "seed": seed}
    if told is None:
        assert f"--seed {seed}" in command_of(form, None)[0]
        return
    with pytest.raises(UsageError) as refusal:
        command_of(form, None)
    assert str(refusal.value).endswith(told)


def test_fields_of_a_form_that_are_wrong_are_named_and_marked(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}new", within=served.link) as shown:
        page = shown.page
        expect(page.locator("#command")).to_contain_text("weir run")
        page.get_by_label("Queue 3").fill("foo")
        page.get_by_label("Length of load").fill("1000000h")
        error = page.locator("#error")
        expect(error).to_contain_text(
            "Queue 3: path up, hop router: unknown queue discipline foo", timeout=WAIT_MS
        )
        expect(error).to_contain_text("Length of load: duration")
        wrong = page.locator('[aria-invalid="true"][aria-describedby="error"]')
        assert wrong.evaluate_all("all => all.map(one => one.name)") == ["queue", "load"]
        expect(page.get_by_label("Queue 3")).to_have_attribute("aria-invalid", "true")
        assert shown.barriers() == []
        page.get_by_label("Queue 3").fill("fq_codel")
        page.get_by_label("Length of load").fill("10s")
        expect(error).to_be_hidden(timeout=WAIT_MS)
        expect(page.locator("[aria-invalid], [aria-describedby=error]")).to_have_count(0)


def test_a_test_and_a_link_that_are_unknown_are_told_by_their_fields() -> None:
    for form, fields in (
        ({"test": "x"}, ["test"]),
        ({"link": "x", "seed": "-1"}, ["link", "seed"]),
        ({"world": "x"}, ["world"]),
        ({"queue": ["fq_codel", "", "foo"], "idle": "-3s", "cc": "reno"}, ["queue-3", "idle"]),
        ({"repeat": "1001"}, ["repeat"]),
    ):
        with pytest.raises(FormError) as refusal:
            command_of({"test": "rrul", "link": "cable-20-8", **form}, None)
        assert refusal.value.fields == fields


def test_a_button_that_is_switched_off_keeps_the_focus(browser: Browser, served: Served) -> None:
    """Who uses the keyboard goes on from there, and does not begin again at the top of the page."""
    with opened(browser, served.link) as shown:
        page = shown.page
        served.ask("/start", "POST", LONG)
        page.goto(f"{served.link}runs/1")
        expect(page.locator("#made a")).to_be_visible(timeout=WAIT_MS)
        stop = page.locator("#stop")
        stop.focus()
        page.keyboard.press("Enter")
        expect(stop).to_have_attribute("aria-disabled", "true", timeout=WAIT_MS)
        expect(stop).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.locator("#made a")).to_be_focused()
        expect(stop).to_be_disabled()
        page.goto(f"{served.link}view?record=one")
        page.wait_for_selector("html[data-ready]", state="attached")
        page.get_by_role("button", name="Drag marks a span").click()
        clear = page.get_by_role("button", name="Clear the mark")
        chart = shown.chart("Ping").locator(".plot")
        chart.focus()
        for key in ("ArrowLeft", "m", "ArrowRight", "m"):
            page.keyboard.press(key)
        expect(clear).to_be_enabled()
        clear.focus()
        page.keyboard.press("Enter")
        expect(clear).to_have_attribute("aria-disabled", "true")
        expect(clear).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_stands_in_an_empty_field_can_be_read(browser: Browser, served: Served, scheme: str) -> None:
    """WCAG 2.2, 1.4.3; axe does not look at placeholders."""
    with opened(browser, f"{served.link}new", within=served.link, color_scheme=scheme) as shown:
        colours = shown.page.locator("[name=seed]").evaluate(
            """field => [getComputedStyle(field, "::placeholder"), getComputedStyle(field)]
                .map((one, at) => at ? one.backgroundColor : one.color)
                .map((colour) => colour.match(/[0-9]+/g).slice(0, 3).map(Number))"""
        )
    lights = [
        sum(
            weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
            for weight, part in zip((0.2126, 0.7152, 0.0722), (one / 255 for one in colour), strict=True)
        )
        for colour in colours
    ]
    assert (max(lights) + 0.05) / (min(lights) + 0.05) >= 4.5


def test_links_of_an_application_that_was_started_anew_are_no_answer(
    browser: Browser, served: Served
) -> None:
    """It has another token, and refuses the pages of the one before in words that are no JSON."""
    with opened(browser, f"{served.link}new", within=served.link) as shown:
        shown.provoked = "Failed to load resource"
        page = shown.page
        expect(page.locator("#command")).to_contain_text("weir run")
        page.route(
            "**/start", lambda route: route.fulfill(status=403, body="Forbidden", content_type="text/plain")
        )
        page.locator("#start").click()
        expect(page.locator("#error")).to_have_text(SILENT, timeout=WAIT_MS)


def test_a_run_that_must_wait_can_be_started_later(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}new", within=served.link) as shown:
        shown.provoked = "Failed to load resource"
        page = shown.page
        for _ in range(2):
            served.ask("/start", "POST", LONG)
        page.locator("#start").click()
        expect(page.locator("#error")).to_contain_text("2 runs are under way", timeout=WAIT_MS)
        expect(page.locator("#start")).to_be_enabled()
        served.ask("/runs/1/stop", "POST", {})
        served.state_when(1, "end")
        page.locator("#start").click()
        page.wait_for_url("**/runs/3", timeout=PATIENCE_S * 1000)


def test_what_is_kept_but_cannot_be_run_is_told_and_can_be_kept_again(
    browser: Browser, served: Served
) -> None:
    with opened(browser, f"{served.link}scenario", within=served.link) as shown:
        shown.provoked = "Failed to load resource"
        page = shown.page
        for _ in range(2):
            served.ask("/start", "POST", LONG)
        text = page.get_by_role("textbox", name="Scenario, in TOML")
        page.get_by_label("File").fill("mine.toml")
        expect(page.get_by_role("alert")).to_be_hidden()
        page.get_by_role("button", name="Keep and run").click()
        expect(page.get_by_role("alert")).to_contain_text(
            "It is kept, but not run: 2 runs are under way", timeout=WAIT_MS
        )
        expect(page.locator("#kept")).to_have_text("Kept.")
        expect(page.get_by_role("button", name="Keep and run")).to_be_enabled()
        text.fill(text.input_value() + "# more\n")
        page.get_by_role("button", name="Keep", exact=True).click()
        expect(page.locator("#kept")).to_have_text("Kept.", timeout=WAIT_MS)
        expect(page.get_by_role("alert")).to_be_hidden()
        assert (served.folder / "mine.toml").read_text().endswith("# more\n")


def test_what_is_written_while_it_is_being_kept_is_not_kept(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}scenario", within=served.link) as shown:
        page = shown.page
        page.get_by_label("File").fill("mine.toml")
        text = page.get_by_role("textbox", name="Scenario, in TOML")

        def late(route: Route) -> None:
            text.press_sequentially("# late\n")
            route.continue_()

        page.route("**/keep", late)
        # What is kept is answered only once all of the late text stands there.
        with page.expect_response("**/keep"):
            page.get_by_role("button", name="Keep", exact=True).click()
        expect(page.locator("#kept")).to_have_text("Not kept yet.", timeout=WAIT_MS)
        # Who leaves is asked, and stays.
        page.get_by_role("link", name="Records").click()
        assert shown.errors == [""]
        shown.errors.clear()
        page.unroute("**/keep")
        page.get_by_role("button", name="Keep", exact=True).click()
        expect(page.locator("#kept")).to_have_text("Kept.", timeout=WAIT_MS)
        page.get_by_role("link", name="Records").click()
        page.wait_for_url(served.link)
        # Back leads to the file that was kept.
        page.go_back()
        expect(page.get_by_label("File")).to_have_value("mine.toml")
        assert page.get_by_label("File").get_attribute("readonly") is not None
        page.get_by_role("button", name="Keep", exact=True).click()
        expect(page.locator("#kept")).to_have_text("Kept.", timeout=WAIT_MS)


FORGETFUL = """
addEventListener('DOMContentLoaded', () => {
  for (const one of document.querySelectorAll('form, input, select, textarea')) one.autocomplete = 'off';
});
"""
"""A browser that keeps no field of a page which may not be stored, as Firefox."""


@pytest.mark.parametrize("script", ["", FORGETFUL], ids=["keeping", "forgetful"])
def test_who_comes_back_finds_what_he_chose_and_the_command_for_it(
    browser: Browser, served: Served, script: str
) -> None:
    with opened(browser, served.link) as shown:
        page = shown.page
        page.add_init_script(script)
        page.reload()
        page.get_by_label("Choose one", exact=True).check()
        page.get_by_role("button", name="Open").click()
        page.wait_for_selector("html[data-ready]", state="attached")
        page.go_back()
        expect(page.get_by_label("Choose one", exact=True)).to_be_checked()
        expect(page.get_by_role("button", name="Open")).to_be_enabled()
        expect(page.locator("#command")).to_have_text(f"weir report {served.folder / 'one'}")
        page.get_by_role("link", name="New run").click()
        page.get_by_label("Queue 1").fill("fq_codel")
        page.locator("[name=load]").fill("7s")
        expect(page.locator("#command")).to_contain_text("--queue fq_codel --load 7s")
        page.get_by_role("link", name="Runs", exact=True).click()
        page.go_back()
        expect(page.get_by_label("Queue 1")).to_have_value("fq_codel")
        expect(page.locator("#command")).to_contain_text("--queue fq_codel --load 7s")
        page.locator("[name=test]").select_option("tcp_upload")
        page.get_by_label("Queue 1").fill("")
        page.get_by_label("Queue 3").fill("cake")
        page.locator("[name=seed]").fill("3")
        expect(page.locator("#command")).to_contain_text("--seed 3")
        command = page.locator("#command").inner_text()
        page.get_by_role("link", name="Records", exact=True).click()
        page.go_back()
        expect(page.get_by_label("Queue 3")).to_have_value("cake")
        expect(page.locator("#command")).to_have_text(command)
        # A scenario that was not kept is written anew: who left its page was asked.
        page.goto(f"{served.link}scenario")
        page.get_by_label("File").fill("mine.toml")
        expect(page.get_by_role("alert")).to_be_hidden()
        page.get_by_role("link", name="Runs", exact=True).click()
        page.go_back()
        expect(page.get_by_role("alert")).to_contain_text("give the file a name")


def test_a_note_that_is_half_written_is_not_lost(browser: Browser, served: Served) -> None:
    with opened(browser, served.link) as shown:
        page = shown.page
        page.get_by_text("Note and tags of the chosen records").click()
        page.get_by_label("Choose one", exact=True).check()
        note = page.get_by_label("Note", exact=True)
        note.fill("half")
        page.get_by_label("Choose two", exact=True).check()
        expect(note).to_have_value("half")
        expect(page.locator("#note-kept")).to_have_text("Not kept yet.")
        places = " ".join(str(served.folder / name) for name in ("one", "two"))
        expect(page.locator("#command")).to_have_text(f"weir note {places} --note half", timeout=WAIT_MS)
        page.get_by_role("link", name="Runs", exact=True).click()
        assert shown.errors == [""], "who leaves is asked"
        shown.errors.clear()
        page.get_by_role("button", name="Keep").click()
        expect(page.locator("#note-kept")).to_have_text("Kept.", timeout=WAIT_MS)
        page.get_by_label("Choose two", exact=True).uncheck()
        expect(note).to_have_value("half")
        page.get_by_label("Choose one", exact=True).uncheck()
        expect(note).to_have_value("")
        page.get_by_role("link", name="Runs", exact=True).click()
        page.wait_for_url("**/runs")


def test_of_more_records_than_are_shown_it_is_said(
    browser: Browser, rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(library.MAX_SHOWN + 1):
        shutil.copytree(rrul[0].path, tmp_path / f"{number:02}")
    monkeypatch.setattr(library, "MAX_ENTRIES", 20)
    entries = library.Library(tmp_path).entries()
    listed = pages.records_page("/x", tmp_path, entries, library.Library(tmp_path).count(), Runs(tmp_path))
    assert "The latest 20 of 25 records below" in listed
    (tmp_path / "99.weir").write_bytes(b"no archive")
    entries = library.Library(tmp_path).entries()
    listed = pages.records_page("/x", tmp_path, entries, library.Library(tmp_path).count(), Runs(tmp_path))
    assert "The latest 20 of 26 records, of which 1 cannot be read, below" in listed
    (tmp_path / "99.weir").unlink()
    one = begun(tmp_path)
    try:
        with opened(browser, one.link) as shown:
            for box in shown.page.locator("#rows input").all():
                box.check()
            button = shown.page.locator("#open")
            expect(button).to_have_text("Choose 24 at most")
            expect(button).to_be_disabled()
            shown.page.locator("#rows input").first.uncheck()
            expect(button).to_have_text("Compare 24")
            expect(button).to_be_enabled()
    finally:
        ended(one)


def test_a_run_that_its_reader_stopped_is_told_as_stopped(browser: Browser, served: Served) -> None:
    served.ask("/start", "POST", LONG)
    served.state_when(1, "record")
    with opened(browser, f"{served.link}runs/1", within=served.link) as shown:
        expect(shown.page.locator("#state")).to_have_text(
            "under way: 0 records are complete", timeout=WAIT_MS
        )
        shown.page.locator("#stop").click()
        stopped = "stopped; what was measured is kept"
        expect(shown.page.locator("#state")).to_have_text(stopped, timeout=PATIENCE_S * 1000)
        assert stopped in served.ask("/runs")[1]


@pytest.mark.parametrize("page", ["", "new"])
def test_a_long_name_and_a_long_field_have_room_on_a_narrow_screen(
    browser: Browser, rrul: list[Record], served: Served, page: str
) -> None:
    shutil.copytree(rrul[0].path, served.folder / ("long" * 50))
    with opened(
        browser, served.link + page, within=served.link, viewport={"width": 360, "height": 800}
    ) as shown:
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
        if page == "":
            assert box_of(shown.page.locator("#rows td:nth-child(2)").first)["width"] < 330


def test_who_presses_twice_keeps_once(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}scenario", within=served.link) as shown:
        page = shown.page
        page.get_by_label("File").fill("mine.toml")
        expect(page.get_by_role("alert")).to_be_hidden()
        text = page.get_by_role("textbox", name="Scenario, in TOML")
        for more in ("", "# more\n"):
            text.fill(text.input_value() + more)
            page.get_by_role("button", name="Keep", exact=True).dblclick()
            expect(page.locator("#kept")).to_have_text("Kept.", timeout=WAIT_MS)
            expect(page.get_by_role("alert")).to_be_hidden()
        assert (served.folder / "mine.toml").read_text().endswith("# more\n")
