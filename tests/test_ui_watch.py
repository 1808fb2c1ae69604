"""Records that others make, watched in `weir ui`: of a program in the lab, and of a run that was killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsing import PHONE, WAIT_MS, opened
from local_ui import PATIENCE_S, Served, begun, ended
from weirlab.record import open_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from weirlab.record import Record

pytestmark = pytest.mark.realtime


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    yield (one := begun(tmp_path))
    ended(one)


def weir(*words: str) -> subprocess.Popen[bytes]:
    """A command that goes on."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", "weirlab", *words], stdout=quiet, stderr=quiet)


def when_there(path: Path, table: str = "*") -> None:
    """Waits for a record to have begun, or for the first rows of one of its tables."""
    end = time.monotonic() + PATIENCE_S
    while not list(path.rglob(f"{table}/part-000000.parquet")):
        assert time.monotonic() < end, f"nothing was written to {path}"
        time.sleep(0.1)


@pytest.mark.needs_lab
def test_a_program_on_a_line_is_watched_until_it_ends(browser: Browser, served: Served) -> None:
    place = served.folder / "lab <b>"
    loop = "while [ ! -e done ]; do ping -c 1 -W 1 server; sleep 0.1; done"
    words = ["lab", "exec", "--link", "cable-20-8", "--out", str(place), "--", "sh", "-c"]
    process = weir(*words, loop.replace("done ]", f"'{served.folder}/done' ]"))
    try:
        when_there(place)
        with opened(browser, served.link, viewport=PHONE, color_scheme="dark") as shown:
            page = shown.page
            page.get_by_role("link", name="watch").click()
            says = page.locator("#live-says")
            expect(says).to_contain_text("first", timeout=WAIT_MS)
            expect(page.locator("#state")).to_have_text("under way, or cut short", timeout=WAIT_MS)
            expect(shown.chart("Queue backlog")).to_have_count(1, timeout=WAIT_MS)
            earlier = says.inner_text()
            expect(says).not_to_have_text(earlier, timeout=WAIT_MS)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            assert page.locator("main b").count() == 0
            assert shown.barriers() == []
            (served.folder / "done").touch()
            expect(page.locator("#state")).to_contain_text("done", timeout=PATIENCE_S * 1000)
            expect(says).to_contain_text("All that was measured")
            page.get_by_role("link", name="open the record").click()
            page.wait_for_selector("html[data-ready]", state="attached")
            assert shown.chart("Queue backlog").count() == 1
        assert process.wait(PATIENCE_S) == 0
        assert open_record(place).manifest.complete
    finally:
        process.kill()
        process.wait()


def test_of_a_run_that_was_killed_what_there_is_is_drawn(browser: Browser, served: Served) -> None:
    process = weir("run", "rrul", "--load", "100000s", "--no-charts", "--out", str(served.folder / "one"))
    when_there(served.folder, "latency")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with opened(browser, served.link) as shown:
        shown.page.get_by_role("link", name="watch").click()
        expect(shown.chart("Ping")).to_have_count(1, timeout=WAIT_MS)
        expect(shown.page.locator("#state")).to_have_text("under way, or cut short")


def test_a_record_that_vanishes_is_told_beside_what_was_drawn(
    browser: Browser, served: Served, rrul: list[Record]
) -> None:
    place = served.folder / "one"
    shutil.copytree(rrul[0].path, place)
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps(manifest | {"complete": False, "reached_ns": None}))
    with opened(browser, f"{served.link}watch?record=one", within=served.link) as shown:
        shown.provoked = "400"
        expect(shown.chart("Ping")).to_have_count(1, timeout=WAIT_MS)
        state, says = shown.page.locator("#state"), shown.page.locator("#live-says")
        expect(state).to_have_text("under way, or cut short")
        shutil.rmtree(place)
        expect(state).to_have_text("cannot be read", timeout=WAIT_MS)
        expect(says).to_contain_text("What stands here is what was drawn before")
        expect(says).to_contain_text("there is no such record")
        expect(says).not_to_contain_text("yet")


def test_only_a_record_of_the_list_is_watched(served: Served) -> None:
    for place in ("../x", "", "/etc"):
        status, content, _ = served.ask(f"/watch?record={place}")
        assert status == 400
        assert "there is no such record" in content
    assert served.ask("/watch")[0] == 400
