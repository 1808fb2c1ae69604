"""`weir ui`: only its owner may use it, it opens no other files, and nothing keeps anybody out."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browsing import SCREENS, WAIT_MS, opened
from local_ui import PATIENCE_S, QUICK, Served, begun, ended
from weirlab.record import open_record
from weirlab.webapp import library
from weirlab.webapp.made import MAX_PAGES, Made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Route

    from weirlab.record import Record

pytestmark = pytest.mark.realtime

MARKUP = "</script><img src=x onerror=\"window.harmed = 'yes'\"><b>bold</b>"

HOSTILE = "hostile%20%3Cb%3E%26%22'"
"""The record whose names are markup, as an address has it."""


@pytest.fixture(scope="module")
def served(rrul: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("ui")
    shutil.copytree(rrul[0].path.parent, folder / "out")
    hostile = folder / "hostile <b>&\"'"
    shutil.copytree(rrul[0].path, hostile)
    manifest = json.loads((hostile / "manifest.json").read_text())
    manifest |= {"title": MARKUP, "queue": MARKUP, "note": MARKUP, "tags": ["tagged"], "started_at": MARKUP}
    (hostile / "manifest.json").write_text(json.dumps(manifest))
    (folder / "broken").mkdir()
    (folder / "broken" / "manifest.json").write_text("{")
    yield (one := begun(folder))
    ended(one)


def test_it_listens_on_loopback_alone(served: Served) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", served.link)
    with socket.socket() as other:
        other.settimeout(PATIENCE_S)
        assert other.connect_ex(("127.0.0.2", served.port)) != 0


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/", {"token": ""}),
        ("/", {"token": "0" * 32}),
        ("/viewer.js", {"token": "0" * 32}),
        ("/", {"Host": "evil.example"}),
        ("/", {"Host": ""}),
        ("/", {"Host": "127.0.0.1:1"}),
        ("/", {"Sec_Fetch_Site": "cross-site"}),
        ("/", {"Sec_Fetch_Site": "same-site"}),
        ("/", {"Origin": "http://evil.example"}),
        ("/start", {"method": "POST", "body": QUICK, "Origin": ""}),
        ("/start", {"method": "POST", "body": QUICK, "Origin": "null"}),
        ("/start", {"method": "POST", "body": QUICK, "Origin": "http://127.0.0.1:1"}),
        ("/start", {"method": "POST", "body": QUICK, "Sec_Fetch_Site": "cross-site"}),
    ],
)
def test_strangers_and_other_sites_are_refused(served: Served, path: str, more: dict[str, Any]) -> None:
    status, content, _ = served.ask(path, **more)
    assert status in {400, 403}
    assert "<" not in content
    assert "Records" not in content
    assert "None yet" in served.ask("/runs")[1]


def test_its_owner_is_let_in(served: Served) -> None:
    status, content, headers = served.ask("/", Sec_Fetch_Site="none")
    assert status == 200
    assert "out/01-pfifo-fast" in content
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "unsafe" not in headers["content-security-policy"]


@pytest.mark.parametrize(
    "place", ["../ui", "/etc", "out", "%2e%2e", "out/../out/01-pfifo-fast", "out%2F01-pfifo-fast%00", ""]
)
@pytest.mark.parametrize("page", ["view", "record"])
def test_only_records_of_the_list_are_opened(served: Served, page: str, place: str) -> None:
    status, content, _ = served.ask(f"/{page}?record={place}")
    assert status == 400
    assert "no such record" in content
    # A page for who opens it, and a sentence alone for scripts.
    assert content.startswith('{"error":') == (page == "record")


def test_of_more_records_than_are_listed_the_latest_are(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("b", "a", "c")):
        shutil.copytree(rrul[0].path, tmp_path / name)
        os.utime(tmp_path / name / "manifest.json", (1_000_000 + number, 1_000_000 + number))
    monkeypatch.setattr(library, "MAX_ENTRIES", 2)
    assert {one.place for one in library.Library(tmp_path).entries()} == {"a", "c"}


def test_a_manifest_is_read_again_only_if_it_was_written_again(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(rrul[0].path, tmp_path / "one")
    read: list[Path] = []

    def reading(path: Path) -> Record:
        read.append(path)
        return open_record(path)

    monkeypatch.setattr(library, "Record", reading)
    listed = library.Library(tmp_path)
    assert listed.entries() == listed.entries()
    assert len(read) == 1
    manifest = tmp_path / "one" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"queue": "another"}))
    os.utime(manifest, ns=(1, 1))
    (entry,) = listed.entries()
    assert (entry.queue, len(read)) == ("another", 2)
    shutil.rmtree(tmp_path / "one")
    assert listed.entries() == []
    assert listed._read == {}, "of what is gone nothing is kept"


def test_a_page_is_made_again_only_if_a_file_of_its_records_has_changed(
    rrul: list[Record], tmp_path: Path, served: Served
) -> None:
    one = tmp_path / "one"
    shutil.copytree(rrul[0].path, one)
    kept, count = Made(), iter(range(100))

    def page() -> str:
        return kept.page([one], lambda: str(next(count)))

    assert not kept.has([one])
    assert [page(), page(), page()] == ["0", "0", "0"]
    assert kept.has([one])
    changes = ("manifest.json", "latency/part-000000.parquet", "notes.json")
    for name, said in zip(changes, ("1", "2", "3"), strict=True):
        (one / name).write_bytes((one / name).read_bytes() + b" " if (one / name).exists() else b"{}")
        assert not kept.has([one])
        assert [page(), page()] == [said, said]
    # The application itself: what was damaged after it was looked at is told.
    place = served.folder / "later damaged"
    shutil.copytree(rrul[0].path, place)
    try:
        asked = "/view?record=later%20damaged"
        assert [served.ask(asked)[0] for _ in range(2)] == [200, 200]
        part = place / "latency" / "part-000000.parquet"
        part.write_bytes(part.read_bytes()[:-100])
        assert served.ask(asked)[0] == 400
    finally:
        shutil.rmtree(place)


def test_of_pages_the_last_are_kept(tmp_path: Path) -> None:
    kept = Made()
    for number in range(MAX_PAGES + 1):
        (tmp_path / str(number)).mkdir()
        kept.page([tmp_path / str(number)], str)
    there = [kept.has([tmp_path / str(number)]) for number in range(MAX_PAGES + 1)]
    assert there == [False] + [True] * MAX_PAGES


def test_too_many_and_broken_records_are_told(served: Served) -> None:
    assert served.ask("/view")[0] == 400
    many = "&".join(f"record={number}" for number in range(40))
    assert "choose 1 to 24" in served.ask(f"/view?{many}")[1]
    assert "damaged" in served.ask("/view?record=broken")[1]
    assert served.ask("/runs/99")[0] == 400
    status, page, _ = served.ask("/nothing<b>")
    assert (status, "there is no page `" in page or "there is no page <code>" in page) == (404, True)
    assert "<b>" not in page
    assert f'href="/{served.token}/"' in page, "what else there is can be reached from it"
    status, page, headers = served.ask("/start", "GET")
    assert (status, "takes no GET" in page) == (405, True)
    assert headers["allow"] == "POST", "RFC 9110, section 15.5.6"
    assert json.loads(served.ask("/nothing", "POST", {})[1]) == {"error": "there is no page `/nothing` here"}


def test_the_files_of_a_record_are_sent_without_reading_its_tables(
    served: Served, rrul: list[Record]
) -> None:
    """Its page has read them, and a browser tells of what is damaged itself."""
    place = served.folder / "damaged"
    shutil.copytree(rrul[0].path, place)
    part = place / "latency" / "part-000000.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    try:
        status, content, _ = served.ask("/view?record=damaged")
        assert (status, "<code>latency</code> is damaged" in content) == (400, True)
        status, _, headers = served.ask("/record?record=damaged")
        assert (status, headers["content-type"]) == (200, "application/zip")
    finally:
        shutil.rmtree(place)


def test_bodies_are_bounded_and_must_be_objects(served: Served) -> None:
    for body, said in (
        ("{" + " " * 70_000, "more than 65536 bytes"),
        ("no JSON", "no JSON"),
        ("[1]", "no JSON object"),
    ):
        status, content, _ = served.ask("/start", "POST", body)
        assert status == 400
        assert said in json.loads(content)["error"]


def test_what_is_wrong_is_told_while_a_form_is_filled_in(served: Served) -> None:
    status, content, _ = served.ask("/check", "POST", QUICK | {"queue": ["nonsense"]})
    assert status == 200
    assert "nonsense" in json.loads(content)["error"]
    several = served.ask("/check", "POST", QUICK | {"queue": ["nonsense"], "load": "60"})[1]
    faults = json.loads(several)["error"].splitlines()
    assert [one.split(":")[0] for one in faults] == ["Queue 1", "Length of load"]
    assert json.loads(served.ask("/check", "POST", QUICK)[1])["total"] == 1


def test_the_words_of_a_queue_are_completed(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}new", within=served.link) as shown:
        page = shown.page
        field = page.get_by_label("Queue 2")

        def offered(text: str) -> list[str]:
            field.fill(text)
            found: list[str] = page.locator("#queues option").evaluate_all("all => all.map(one => one.value)")
            return found

        assert {"default", "fq_codel", "cake"} <= {*offered("")}
        assert offered("fq_cod") == ["fq_codel"]
        assert "cake bandwidth" in offered("cake ")
        assert "cake rtt" not in offered("cake rtt 50ms ")
        assert "fq_codel cake" not in offered("fq_codel "), "it holds no other"
        assert offered("htb rate 95% fq_cod") == ["htb rate 95% fq_codel"]
        assert "htb rate 95% fq_codel target" in offered("htb rate 95% fq_codel ta")
        assert offered("nonsense ") == []
        expect(page.locator("[name=test]")).to_have_value("rrul")
        expect(page.locator('option[value="rrul"]')).to_have_text("rrul: Realtime Response Under Load")
        field.fill("")
        page.get_by_label("Queue 1").fill("fq_codl")
        expect(page.locator("#error code").last).to_have_text("fq_codel", timeout=WAIT_MS)
        assert "`" not in page.locator("main").inner_text()


def test_records_are_found_chosen_and_compared(browser: Browser, served: Served) -> None:
    with opened(browser, served.link) as shown:
        page = shown.page
        expect(page.locator("#count")).to_have_text("4 shown")
        started = page.locator('td[data-column^="Started"]').first
        # Lines of text: the date stands in one.
        tops = "it => { const of = document.createRange(); of.selectNodeContents(it); "
        tops += "return new Set([...of.getClientRects()].map(({ top }) => top)).size }"
        assert started.evaluate(tops) <= 2
        # No date and no name has this beside the queue.
        page.locator("#search").fill("fq_codel 01-pfifo")
        expect(page.locator("#count")).to_have_text("none fits: clear the search or a filter")
        expect(page.locator("#command")).to_have_text("# none fits: there is nothing to show")
        page.locator("#search").fill("tagged")
        expect(page.locator("#count")).to_have_text("1 shown")
        page.locator("#search").fill("")
        page.locator("#world").select_option("sim")
        expect(page.locator("#count")).to_have_text("3 shown")
        page.locator("#queue").select_option("pfifo_fast")
        expect(page.locator("#count")).to_have_text("1 shown")
        page.locator("#queue").select_option("")
        page.get_by_label("Choose out/01-pfifo-fast").check()
        page.get_by_label("Choose out/02-htb-rate-95-fq-codel").check()
        # The application was not begun in its folder: names below it alone would lead nowhere.
        chosen = [served.folder / "out" / name for name in ("01-pfifo-fast", "02-htb-rate-95-fq-codel")]
        words = page.locator("#command").inner_text().split()
        assert words[:2] == ["weir", "report"]
        # The earliest first, which is the baseline.
        assert words[2:] == [*map(str, chosen)]
        page.get_by_role("button", name="Compare 2").click()
        page.wait_for_selector("html[data-ready]", state="attached")
        assert len(shown.lines("Ping, all runs")) == 2
        assert page.locator("code", has_text="weir report").count() == 1
        assert page.evaluate("window.harmed") is None


def test_notes_and_tags_are_edited_by_the_command_that_is_shown(
    browser: Browser, served: Served, rrul: list[Record]
) -> None:
    place = served.folder / "noted"
    shutil.copytree(rrul[0].path, place)
    with opened(browser, served.link) as shown:
        page = shown.page
        page.get_by_text("Note and tags of the chosen records").click()
        assert page.get_by_role("button", name="Keep").is_disabled()
        page.get_by_label("Choose noted", exact=True).check()
        page.get_by_label("Note", exact=True).fill(f"it's {MARKUP}")
        page.get_by_label("Tags, with").fill("two  words")
        words = ["weir", "note", str(place), "--note", f"it's {MARKUP}", "--tag", "two", "--tag", "words"]
        expect(page.locator("#command")).to_have_text(shlex.join(words), timeout=WAIT_MS)
        page.get_by_role("button", name="Keep").click()
        expect(page.locator("#note-kept")).to_have_text("Kept.", timeout=WAIT_MS)
        assert page.locator('tr[data-place="noted"] [data-column="Tags"]').inner_text() == "two words"
        page.locator("#search").fill("two words it's")
        expect(page.locator("#count")).to_have_text("1 shown")
        page.get_by_label("Tags, with").fill("words")
        expect(page.locator("#command")).to_have_text(f"weir note {place} --untag two", timeout=WAIT_MS)
        page.get_by_role("button", name="Keep").click()
        expect(page.locator("#note-kept")).to_have_text("Kept.", timeout=WAIT_MS)
        assert page.evaluate("window.harmed") is None
    kept = open_record(place).manifest
    assert (kept.note, kept.tags) == (f"it's {MARKUP}", ["words"])
    shutil.rmtree(place)


def test_what_was_noted_elsewhere_meanwhile_stays(served: Served, rrul: list[Record]) -> None:
    place = served.folder / "both"
    shutil.copytree(rrul[0].path, place)
    open_record(place).annotate("from elsewhere", ["theirs"])
    shown = {"records": ["both"], "note": "", "tags": ["mine"], "old_note": "", "old_tags": ["gone"]}
    status, content, _ = served.ask("/note", "POST", shown)
    assert (status, json.loads(content)) == (
        200,
        {"kept": [{"note": "from elsewhere", "tags": ["theirs", "mine"]}]},
    )
    shutil.rmtree(place)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "the form needs"),
        ({"records": ["out/01-pfifo-fast"], "tags": [1]}, "the form needs"),
        ({"records": ["out/01-pfifo-fast"], "old_note": None}, "the form needs"),
        ({"records": ["../x"]}, "there is no such record"),
        ({"records": []}, "choose 1 to 24"),
        ({"records": ["out/01-pfifo-fast"], "note": "x" * 20_000}, "write 10000 or fewer"),
        ({"records": ["out/01-pfifo-fast"], "old_note": "another"}, "the note has changed meanwhile, to ``"),
    ],
)
def test_notes_that_cannot_be_kept_are_refused(served: Served, form: dict[str, Any], said: str) -> None:
    form = form and {"note": "x", "tags": [], "old_note": "", "old_tags": []} | form
    status, content, _ = served.ask("/note", "POST", form)
    assert status == 400
    assert said in json.loads(content)["error"]
    assert served.ask("/note", "POST", form, Sec_Fetch_Site="cross-site")[0] == 403


def test_a_run_is_started_watched_and_opened(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}") as shown:
        page = shown.page
        page.get_by_role("link", name="New run").click()
        page.locator("[name=queue]").first.fill("nonsense")
        expect(page.locator("#error")).to_contain_text("nonsense", timeout=WAIT_MS)
        assert page.locator("#start").is_disabled()
        page.locator("[name=queue]").first.fill("htb rate 95% fq_codel")
        for name, value in (("idle", "1s"), ("load", "2s"), ("cooldown", "0s")):
            page.locator(f"[name={name}]").fill(value)
        expect(page.locator("#command")).to_contain_text(
            "--queue 'htb rate 95% fq_codel' --idle 1s --load 2s"
        )
        page.locator("#start").click()
        expect(page.locator("#state")).to_have_text("done", timeout=PATIENCE_S * 1000)
        expect(page.locator("#output")).to_contain_text("fq_codel")
        page.get_by_role("link", name="Open the records").click()
        page.wait_for_selector("html[data-ready]", state="attached")
        assert shown.chart("Ping").count() == 1


@pytest.mark.parametrize("known", ["tables", "reached_ns"])
def test_of_what_ended_too_early_it_is_not_told_that_it_may_be_under_way(
    served: Served, rrul: list[Record], known: str
) -> None:
    """One of another command: an error ended it, of which only what was written is known, or a reader."""
    place = served.folder / "ended"
    shutil.copytree(rrul[0].path, place)
    try:
        manifest = json.loads((place / "manifest.json").read_text())
        manifest["complete"] = False
        del manifest["reached_ns" if known == "tables" else "tables"]
        (place / "manifest.json").write_text(json.dumps(manifest))
        assert dict(re.findall(r"<a>([^<]+)</a> \((.*?)\)", served.ask("/")[1]))["ended"] == "cut short"
        content = served.ask("/view?record=ended")[1]
        assert re.search(r"Caution: the run was cut short at \d+\.\d s<", content)
        assert "or is under way" not in content
    finally:
        shutil.rmtree(place)


def test_filters_are_there_again_when_a_reader_comes_back(
    browser: Browser, served: Served, rrul: list[Record]
) -> None:
    del rrul
    with opened(browser, served.link) as shown:
        page = shown.page
        rows = page.locator("#rows tr:not([hidden])")
        every = rows.count()
        page.locator("#rows input").first.check()
        page.locator("#search").fill("no such words")
        expect(page.locator("#count")).to_have_text(
            "none fits: clear the search or a filter; of the chosen 1 is not shown"
        )
        page.locator("#rows input:checked").first.evaluate("one => one.click()")
        page.locator("#search").fill("01-pfifo")
        count = rows.count()
        assert 0 < count < every
        words = page.locator("#command").inner_text().split()
        assert words[:2] == ["weir", "show"]
        assert len(words) == 2 + count
        rows.first.locator("a").first.click()
        page.wait_for_url("**/view?*")
        page.go_back()
        expect(page.locator("#search")).to_have_value("01-pfifo")
        expect(rows).to_have_count(count)
        page.reload()
        expect(page.locator("#search")).to_have_value("01-pfifo")
        expect(rows).to_have_count(count)
        page.locator("#search").fill("")
        expect(rows).to_have_count(every)
        assert "#" not in page.url


def test_a_record_that_vanishes_is_told_in_a_sentence(
    browser: Browser, served: Served, rrul: list[Record]
) -> None:
    """Not with a page of the application, in which stands the secret part of its addresses."""
    place = served.folder / "vanishing"
    shutil.copytree(rrul[0].path, place)
    try:
        with opened(browser, served.link) as shown:
            page = shown.page
            shown.provoked = "400"

            def vanish(route: Route) -> None:
                shutil.rmtree(place)
                route.continue_()

            page.route("**/record?*", vanish)
            page.goto(f"{served.link}view?record=vanishing")
            fault = page.locator("#weir-charts").get_by_role("alert")
            expect(fault).to_contain_text("cannot be shown: vanishing: there is no such record in")
            shown_text = page.locator("main").inner_text()
            assert served.token not in shown_text
            assert "<" not in fault.inner_text()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        (False, "leaving: there is no such record in"),
        (True, "no answer from weir ui: if it has ended, start it again and open the link that it prints."),
    ],
    ids=["vanished", "ended"],
)
def test_raw_data_that_cannot_be_saved_are_told(
    browser: Browser, tmp_path: Path, rrul: list[Record], ends: bool, why: str
) -> None:
    place = tmp_path / "leaving"
    shutil.copytree(rrul[0].path, place)
    one = begun(tmp_path)
    try:
        with opened(browser, f"{one.link}view?record=leaving", within=one.link) as shown:
            shown.provoked = "Failed to load resource"
            shown.page.wait_for_selector("html[data-ready]", state="attached")
            if ends:
                ended(one)
            else:
                shutil.rmtree(place)
            save = shown.page.locator("[data-download]")
            save.get_by_role("button").click()
            expect(save.get_by_role("status")).to_contain_text(f"It cannot be saved: {why}")
    finally:
        ended(one)


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
@pytest.mark.parametrize("page", ["", "new", "runs", "runs/1", "runs/99", f"view?record={HOSTILE}"])
def test_nothing_keeps_anybody_out_and_all_is_shown(
    browser: Browser, served: Served, page: str, viewport: dict[str, int], scheme: str
) -> None:
    if page == "runs/1" and "None yet" in served.ask("/runs")[1]:
        served.ask("/start", "POST", QUICK)
    with opened(browser, served.link, viewport=viewport, color_scheme=scheme) as shown:
        shown.page.goto(served.link + page)
        if page == "":
            shown.page.get_by_text("Note and tags of the chosen records").click()
            shown.page.get_by_label("Choose out/01-pfifo-fast").check()
        if page == "new":
            shown.page.locator("[name=queue]").first.fill("nonsense")
            expect(shown.page.locator("#error")).to_contain_text("nonsense", timeout=WAIT_MS)
        if page == "runs/1":
            expect(shown.page.locator("#state")).to_have_text("done", timeout=PATIENCE_S * 1000)
        if page == "runs/99":
            # The browser says of itself that the answer is none.
            shown.errors.clear()
        if page.startswith("view"):
            shown.page.wait_for_selector("html[data-ready]", state="attached")
            shown.unfold()
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        for listed in shown.page.locator(".scroll:has(> .list)").all():
            assert listed.evaluate("one => one.scrollWidth - one.clientWidth") == 0, "a list moves sideways"
        assert shown.page.locator("img[src=x], main b").count() == 0
        assert shown.barriers() == []


@pytest.mark.parametrize("width", [360, 768, 1040, 1280])
def test_a_window_of_any_width_has_all_that_the_list_says_of_a_record(
    browser: Browser, served: Served, width: int
) -> None:
    with opened(browser, served.link, viewport={"width": width, "height": 800}) as shown:
        row = shown.page.locator("#rows tr").filter(has=shown.page.get_by_label("Choose out/01-pfifo-fast"))
        inside = row.locator("td:visible").evaluate_all(
            "cells => cells.every(one => one.getBoundingClientRect().right <= innerWidth)"
        )
        assert inside, "a cell lies beyond the window"
        # A heading stands above each column, or its name before each value.
        place = row.locator("[data-column=Queue]")
        named = place.evaluate("one => getComputedStyle(one, '::before').content")
        headings = shown.page.locator("thead").bounding_box()
        assert headings is not None
        assert ("Queue" in named) == (headings["height"] <= 1)
        assert shown.page.get_by_role("cell", name="pfifo_fast", exact=True).count() >= 1
        assert shown.barriers() == []
        # What the search leaves out is gone.
        shown.page.get_by_label("Search").fill("nothing of that name")
        expect(row).to_be_hidden()


def test_names_that_are_no_text_are_told_and_the_others_are_listed(
    rrul: list[Record], tmp_path: Path
) -> None:
    shutil.copytree(rrul[0].path, tmp_path / "good")
    shutil.copytree(rrul[0].path, tmp_path / os.fsdecode(b"bad\xff"))
    (tmp_path / "plain.toml").write_text("")
    (tmp_path / os.fsdecode(b"caf\xe9.toml")).write_text("")
    lone = tmp_path / "lone"
    shutil.copytree(rrul[0].path, lone)
    manifest = json.loads((lone / "manifest.json").read_text())
    (lone / "manifest.json").write_text(json.dumps(manifest | {"title": "half \ud83d", "note": "\udcff"}))
    store = tmp_path / os.fsdecode(b"sweep\xff") / "plans"
    store.mkdir(parents=True)
    (store / "one.json").write_text("{}")
    one = begun(tmp_path)
    try:
        for page, listed, told in (
            ("/", "<a>good</a>", "bad\ufffd: its name is not UTF-8, so that no page can ask for it"),
            ("/scenarios", ">plain.toml</a>", "caf\ufffd.toml: its name is not UTF-8"),
            ("/sweeps", "A sweep runs one scenario", "sweep\ufffd: its name is not UTF-8"),
        ):
            status, content, _ = one.ask(page)
            assert status == 200
            assert listed in content
            assert told in content
        assert "half \\ud83d" in one.ask("/")[1]
        assert one.ask("/view?record=lone")[0] == 200
        assert one.ask("/live?record=lone")[0] == 200
        assert "no such record" in one.ask("/view?record=bad%FF")[1]
        assert one.ask("/view?record=good")[0] == 200
        for place, form in (("/scenario/check", {"text": "\ud83d"}), ("/start", {"test": "\udcff"})):
            assert "half of a character" in json.loads(one.ask(place, "POST", form)[1])["error"]
    finally:
        ended(one)
