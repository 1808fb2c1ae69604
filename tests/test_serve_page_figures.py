"""Whole measurements of the browser page of `weir serve`: their figures, and when there is no grade."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

from browsing import PHONE, opened
from serving import serving
from weirlab.scores.bufferbloat import grade

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Route

    from browsing import Opened

pytestmark = pytest.mark.realtime


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """That of a server whose loads are shorter, and so are tests."""
    with serving("--max-rate", "10mbit", "--max-duration", "6s") as server:
        yield f"http://{server.address}/"


def test_while_it_measures_it_draws_what_it_knows(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address, viewport=PHONE) as shown:
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Downloading").wait_for()
        expect(shown.page.locator("#charts canvas")).to_have_count(2)
        drawn = "document.querySelectorAll('#charts .legend .entry').length"
        assert shown.page.evaluate(drawn) == 6 + 2, "a line for each phase, and for each way"
        shown.chart("Ping").locator("summary").click()
        rows = shown.chart("Ping").locator("table").first.locator("tbody tr")
        expect(rows.filter(has_text="idle")).to_have_count(1)


def test_an_outage_is_in_the_figures(browser: Browser) -> None:
    with serving("--max-rate", "10mbit") as server, opened(browser, f"http://{server.address}/") as shown:
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Downloading").wait_for()
        shown.page.wait_for_timeout(3500)
        server.process.send_signal(signal.SIGSTOP)
        # To behind the end of the download.
        shown.page.wait_for_timeout(5500)
        server.process.send_signal(signal.SIGCONT)
        shown.page.get_by_text("Done.").wait_for(timeout=60_000)
        with shown.page.expect_download() as file:
            shown.page.get_by_role("button", name="Save as JSON", exact=True).click()
        found = json.loads(file.value.path().read_text())
        sent, took = (np.array([ping[name] for ping in found["pings"]]) for name in ("t_s", "rtt_ms"))
        assert np.diff(sent).max() < 2, "those that left meanwhile are there"
        assert took.max() > 5000
        # Every ping of the outage counts: 4.5 s of the 6 s that are measured of a download.
        assert found["increase_ms"]["down"] > 1000
        assert found["pings"][int(took.argmax())]["phase"] == "down"
        expect(shown.page.locator("#grade")).to_have_text("F")


def rate(shown: Opened, way: str) -> float:
    """A rate that the page shows, in Mbit/s."""
    return float(shown.page.locator(f"#{way}").inner_text())


def connections(address: str) -> int:
    """How many TCP connections to a server on this machine are open."""
    port = int(address.rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(row[2].partition(":")[2], 16) == port and row[3] == ESTABLISHED for row in rows)


ESTABLISHED = "01"
"""A state of a connection in Linux's list of them."""

FLOWS = 6
"""Connections that load the line, beside that of the pings."""


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_every_flow_has_a_connection_of_its_own(browser: Browser, scheme: str) -> None:
    with (
        serving("--max-rate", "10mbit") as server,
        opened(browser, f"{scheme}://{server.address}/", ignore_https_errors=True) as shown,
    ):
        shown.page.get_by_role("button", name="Start").click()
        for doing in ("Downloading …", "Uploading …", "Downloading and uploading …"):
            shown.page.get_by_text(doing).wait_for()
            shown.page.wait_for_timeout(3000)
            assert connections(server.address) == FLOWS + 1
        shown.page.get_by_text("Done.").wait_for()
        assert rate(shown, "up") > 0.5 * rate(shown, "down")


def refuse(route: Route) -> None:
    route.fulfill(status=403, body="this is filtered")


def test_a_line_that_nothing_loads_has_no_grade(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        shown.provoked = "403"
        shown.page.route("**/weir/v1/flow*", refuse)
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_role("button", name="Start again").wait_for(timeout=60_000)
        expect(shown.page.locator("#status")).to_contain_text("There is no grade: the line was not loaded")
        expect(shown.page.locator("#result")).to_be_hidden()
        expect(shown.page.locator("#results")).to_contain_text("no grade")
        rates = shown.lines("Throughput")
        assert [rates[way][1].max() for way in ("download", "upload")] == [0, 0]


def test_a_line_that_a_part_of_the_test_does_not_load_has_no_grade(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        shown.provoked = "403"
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Downloading and uploading …").wait_for(timeout=60_000)
        shown.page.route("**/weir/v1/flow*", refuse)
        shown.page.get_by_role("button", name="Start again").wait_for(timeout=60_000)
        expect(shown.page.locator("#status")).to_contain_text("There is no grade: the line was not loaded")
        expect(shown.page.locator("#result")).to_be_hidden()
        shown.page.reload()
        shown.page.locator("#results button").click()
        expect(shown.page.locator("#status")).to_contain_text("There is no grade: the line was not loaded")


def measured_in(shown: Opened, changes: str) -> None:
    """A whole test in a browser of which a script changes something."""
    shown.page.add_init_script(changes)
    shown.page.reload()
    shown.page.get_by_role("button", name="Start").click()
    shown.page.get_by_role("button", name="Start again").wait_for(timeout=60_000)


SHARED = """
const own = Object.getOwnPropertyDescriptor(PerformanceResourceTiming.prototype, "nextHopProtocol").get;
Object.defineProperty(PerformanceResourceTiming.prototype, "nextHopProtocol", {
  get() { return this.name.includes("/flow?") ? "h2" : own.call(this); },
});
"""
"""A browser that reaches the server by a proxy which speaks HTTP/2, so that all flows share a connection."""


def test_flows_that_share_a_connection_give_no_grade(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        measured_in(shown, SHARED)
        expect(shown.page.locator("#status")).to_contain_text("shared one connection (HTTP/2 or HTTP/3")
        expect(shown.page.locator("#result")).to_be_hidden()


REFUSED = f"""
Object.defineProperty(PerformanceResourceTiming.prototype, "responseStatus", {{ get() {{ return 0; }} }});
{SHARED}
"""
"""A browser that tells of requests which were broken off how they were asked first, as Firefox."""


def test_flows_that_were_asked_again_over_http_1_share_nothing(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        measured_in(shown, REFUSED)
        expect(shown.page.locator("#status")).to_have_text("Done.")


HIDING = f"""
const exact = performance.now.bind(performance);
performance.now = () => Math.floor(exact() * 60 / 1000) * 1000 / 60;
{SHARED}
"""
"""A browser that hides what it is, as Firefox can: 60 steps of the clock a second, and a made-up protocol."""

STEP_MS = 1000 / 60
"""Between two steps of that clock."""


def test_a_browser_that_hides_its_clock_is_told_what_that_means(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        measured_in(shown, HIDING)
        status, steps = shown.page.locator("#status"), "counts in steps of 16.7 ms"
        # Of the greatest increase, to which a busy machine adds: it may be off by a step either way.
        longer = max(float(shown.page.locator(f"#more-{way}").inner_text()) for way in ("down", "up", "both"))
        best, worst = grade(max(longer - STEP_MS, 0)), grade(longer + STEP_MS)
        if best == worst:
            # Then a step makes no difference, and there is a grade.
            expect(status).to_have_text("Done.")
            expect(shown.page.locator("#caveat")).to_contain_text(steps)
            return
        expect(status).to_contain_text(steps)
        expect(status).to_contain_text(f"It may be anything from {best} to {worst}.")
        expect(shown.page.locator("#result")).to_be_hidden()
        expect(shown.page.locator("#results li")).to_contain_text("no grade")


SLOW_TIMERS = """
const every = window.setInterval;
window.setInterval = (tick, ms) => every(tick, Math.max(ms, 1000));
"""
"""A browser whose page is not in front."""


def test_few_pings_are_told(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        measured_in(shown, SLOW_TIMERS)
        expect(shown.page.locator("#caveat")).to_contain_text(
            "Fewer than 20 pings count in the idle phase, the download"
        )


def test_what_the_server_limits_is_no_praise_of_the_line(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address, viewport=PHONE) as shown:
        shown.page.get_by_role("button", name="Start").click()
        shown.page.get_by_text("Done.").wait_for(timeout=60_000)
        assert rate(shown, "down") > 0.8 * 10
        limit = "This server gives your address 10 Mbit/s at most: that may be the bottleneck."
        expect(shown.page.locator("#caveat")).to_contain_text(limit)
        # A busy machine may make the grade a bad one: what is said then differs.
        if shown.page.locator("#grade").inner_text() in {"A", "A+"}:
            expect(shown.page.locator("#verdict")).to_contain_text("with as much as this server lets pass")
        expect(shown.page.locator("#result")).not_to_contain_text("There is nothing to do")
        expect(shown.page.locator("#results")).to_contain_text("at the server's limit")
        with shown.page.expect_download() as file:
            shown.page.get_by_role("button", name="Save as JSON", exact=True).click()
        assert json.loads(file.value.path().read_text())["server_limit_mbps"] == 10
        shown.page.get_by_role("button", name="Link to this result").click()
        expect(shown.page).to_have_url(re.compile("#r="))
        shown.page.reload()
        shown.page.get_by_text("from a link").wait_for()
        expect(shown.page.locator("#caveat")).to_contain_text(limit)
