"""How measurements of the browser page of `weir serve` end: stopped, broken off, refused, shorter."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

from browsing import opened
from serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.realtime


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving("--max-rate", "50mbit") as server:
        yield f"http://{server.address}/"


def test_a_server_that_falls_silent_ends_the_test(browser: Browser) -> None:
    with serving("--max-rate", "20mbit") as server, opened(browser, f"http://{server.address}/") as shown:
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Downloading").wait_for()
        server.process.send_signal(signal.SIGSTOP)
        try:
            # Charts are drawn twice a second.
            shown.page.wait_for_timeout(1000)
            measured = shown.lines("Ping")["idle"]
            shown.page.get_by_text("has not answered for 10 s").wait_for(timeout=30_000)
        finally:
            server.process.send_signal(signal.SIGCONT)
        shown.page.get_by_role("button", name="Start again").wait_for()
        expect(shown.page.locator("#result")).to_be_hidden()
        assert measured[0].size > 0
        assert np.array_equal(shown.lines("Ping")["idle"], measured), "what was measured stays"


def test_a_connection_that_breaks_off_is_told(browser: Browser, address: str) -> None:
    def reset(route: Route) -> None:
        if route.request.method == "POST":
            route.abort("connectionreset")
        else:
            route.continue_()

    with opened(browser, address, within=address) as shown:
        shown.provoked = "ERR_CONNECTION_RESET"
        shown.page.route("**/weir/v1/flow*", reset)
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_role("button", name="Start again").wait_for()
        expect(shown.page.locator("#status")).to_contain_text("A connection broke off while uploading")


def test_a_test_is_as_long_as_the_server_lets_it_be(browser: Browser) -> None:
    with (
        serving("--max-rate", "20mbit", "--max-duration", "6s") as server,
        opened(browser, f"http://{server.address}/") as shown,
    ):
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Done.").wait_for(timeout=60_000)
        assert float(shown.page.locator("#down").inner_text()) > 1
        expect(shown.page.locator("#grade")).to_be_visible()
        assert 23 < shown.shown()[1] < 30
    with (
        serving("--max-duration", "3s") as server,
        opened(browser, f"http://{server.address}/") as shown,
    ):
        shown.page.get_by_role("button", name="Start").click()
        expect(shown.page.locator("#status")).to_have_text(
            "This server lets a load last for 3 s: this test needs 4 s."
        )


def test_a_server_that_is_full_says_so(browser: Browser) -> None:
    with (
        serving("--max-rate", "20mbit", "--max-tests", "1") as server,
        opened(browser, f"http://{server.address}/") as first,
        opened(browser, f"http://{server.address}/") as second,
    ):
        first.page.get_by_role("button", name="Start").click()
        first.page.get_by_text("Measuring the idle line").wait_for()
        second.provoked = "503"
        second.page.get_by_role("button", name="Start").click()
        expect(second.page.locator("#status")).to_have_text(
            "The server says: the server is busy with 1 test, which is all that it takes: "
            "try again in a minute."
        )


def test_the_reader_may_stop_it(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Measuring the idle line").wait_for()
        shown.page.get_by_role("button", name="Stop").click()
        expect(shown.page.locator("#status")).to_contain_text("Stopped")
        shown.page.get_by_role("button", name="Start again").click()
        shown.page.get_by_text("Uploading").wait_for(timeout=30_000)
        shown.page.wait_for_timeout(1000)
        shown.page.get_by_role("button", name="Stop").click()
        expect(shown.page.locator("#status")).to_contain_text("Stopped")
        later: list[str] = []
        shown.page.on("request", lambda request: later.append(request.method))
        shown.page.get_by_role("button", name="Start again").click()
        shown.page.get_by_text("Measuring the idle line").wait_for()
        shown.page.wait_for_timeout(2000)
        assert "POST" not in later, "the next test is not measured under the load of this one"


TWO_TICKS_AND_STOP = """
const every = window.setInterval;
window.setInterval = (tick, ms) => every(() => {
  tick();
  tick();
  if (window.stopNow) setTimeout(() => document.querySelector("#start button").click(), 25);
  window.stopNow = false;
}, ms);
"""
"""A browser that was busy: its timer fires twice in a row, and the reader stops the test soon after that."""


def test_nothing_is_shown_of_a_test_that_was_stopped(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        shown.page.add_init_script(TWO_TICKS_AND_STOP)
        shown.page.reload()
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Measuring the idle line").wait_for()
        shown.page.evaluate("window.stopNow = true")
        expect(shown.page.locator("#status")).to_contain_text("Stopped")
        shown.page.wait_for_timeout(500)
        expect(shown.page.locator("#status")).to_contain_text("Stopped")
