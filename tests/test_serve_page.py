"""The browser page of `weir serve`: results in links, their charts, and that nothing keeps anybody out."""

from __future__ import annotations

import base64
import json
import signal
import xml.etree.ElementTree as ET
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import expect

from browsing import SCREENS, opened
from serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


pytestmark = pytest.mark.realtime

STARTS_S = (0, 4, 12, 14, 22, 24, 32)
"""When the phases of the test begin: idle, download, rest, upload, rest, both; and its end."""

PHASE = (0, 1, 4, 2, 4, 3)
"""The number of each in a link."""

LINES = ("idle", "download", "after the download", "upload", "after the upload", "both")

EXTRA_MS = (0, 200, 5, 60, 7, 260)
"""By how much pings of each phase are longer."""


LOADED_MS = (200, 60, 260)
"""By how much those of each phase with load are."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving("--max-rate", "50mbit") as server:
        yield f"http://{server.address}/"


def link(*, idle_ms: float = 12.0, count: int = 320, without: int | None = None) -> str:
    """What an address has of a result: so many pings, 10 a second, and 64 rates each way.

    It is one of before links told when phases were. One figure may be unknown.
    """
    pings: list[int] = []
    for number in range(count):
        phase = sum(number / 10 >= start for start in STARTS_S[1:-1])
        pings += [100 if number else 0, round(100 * (idle_ms + EXTRA_MS[phase])), PHASE[phase]]
    figures: list[float | None] = [48.0, 19.0, idle_ms, *(idle_ms + one for one in LOADED_MS), *LOADED_MS]
    if without is not None:
        figures[without] = None
    rates = [[1000 * (at % 8) for at in range(64)], [500 * (at % 4) for at in range(64)]]
    return packed([1, 1_790_000_000_000, figures, pings, *rates])


def packed(content: list[Any]) -> str:
    """The part of an address that carries a result."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(json.dumps(content).encode()) + packer.flush()
    return "#r=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def test_a_result_opens_in_the_charts_of_the_viewer(browser: Browser, address: str) -> None:
    with opened(browser, address + link(), within=address) as shown:
        expect(shown.page.locator("#grade")).to_have_text("D")
        pings = shown.lines("Ping")
        assert tuple(pings) == LINES
        for name, extra, start, end in zip(LINES, EXTRA_MS, STARTS_S[:-1], STARTS_S[1:], strict=True):
            times, values = pings[name]
            assert values == pytest.approx(np.full(values.size, 12.0 + extra))
            assert times == pytest.approx(np.arange(10 * start, 10 * end) / 10)
        rates = shown.lines("Throughput")
        assert rates["download"][1] == pytest.approx([at % 8 for at in range(64)])
        assert rates["upload"][0] == pytest.approx(np.arange(64) / 2 + 0.25)
        head = shown.saved("Distribution of pings", "Save as CSV").decode().partition("\n")[0]
        # Also of those that had no answer: they count as long as they waited.
        assert head == 'series,"Ping, ms","% of pings that took no longer"'
        spread = shown.lines("Distribution of pings")
        assert [float(spread[name][0][-1]) for name in LINES] == pytest.approx(
            [12.0 + one for one in EXTRA_MS]
        )
        words = shown.chart("Ping").locator(".shows")
        expect(words).to_contain_text(
            "12.0 ms on the idle line, 212 ms while downloading, 72.0 ms while uploading"
        )
        shown.plot("Ping")
        shown.chart("Ping").locator(".plot").focus()
        shown.page.keyboard.press("+")
        expect(shown.page.locator(".bar .shown")).to_have_text("8.00 s to 24.00 s")
        assert shown.saved("Ping", "Save as PNG").startswith(b"\x89PNG")
        assert b"after the upload" in shown.saved("Ping", "Save as SVG")


def test_the_page_does_not_contradict_its_grade(browser: Browser, address: str) -> None:
    # The server stood still for a while, which moves the mean and not the median.
    figures = [48.0, 19.0, 20.0, 25.0, 28.0, 26.0, 6.0, 507.0, 7.0]
    pings = [one for number in range(30) for one in (100 if number else 0, 2100, 0)]
    content = [1, 1_790_000_000_000, figures, pings, [1000], [1000]]
    with opened(browser, address + packed(content), within=address) as shown:
        expect(shown.page.locator("#grade")).to_have_text("F")
        tile = shown.page.locator(".figures > div", has_text="Latency, upload")
        expect(tile).to_contain_text("28.0 ms")
        expect(tile).to_contain_text("median; mean 507 ms longer than idle")
        expect(shown.page.locator(".figures > .idle")).to_contain_text("median; mean 21.0 ms")
        expect(shown.page.locator("#meaning")).to_contain_text(
            "on average 6.00 ms longer while downloading, 507 ms"
        )
        expect(shown.page.locator("#felt")).to_have_text(
            "Calls, games and pages are close to unusable while the line is in use."
        )


def test_charts_have_the_times_that_the_test_had(browser: Browser, address: str) -> None:
    starts_s = (0, 4.2, 13, 15.5, 30, 33, 41)
    spans = [one for start, end in pairwise(starts_s) for one in (1000 * start, 1000 * end, 1)]
    pings = [
        one for number in range(412) for one in (100 if number else 0, 1200, phase_at(number / 10, starts_s))
    ]
    figures = [48.0, 19.0, 12.0, 12.0, 12.0, 12.0, 0, 0, 0]
    place = address + packed([2, 1_790_000_000_000, figures, pings, [1000] * 82, [1000] * 82, spans, 0])
    with opened(browser, place, within=address) as shown:
        expect(shown.page.locator("#grade")).to_have_text("A+")
        # To the last ping, which left behind the end of the last phase.
        assert shown.shown() == (0, 41.1)
        shown.plot("Ping")
        picture = ET.fromstring(shown.saved("Ping", "Save as SVG"))  # noqa: S314 - our own page made it
        words = [text for one in picture.iter() if (text := "".join(one.itertext()))]
        assert "40" in words


def phase_at(time_s: float, starts_s: tuple[float, ...]) -> int:
    """The number, in a link, of the phase at that time."""
    return PHASE[sum(time_s >= start for start in starts_s[1:-1])]


@pytest.mark.parametrize(("count", "known"), [(0, 0), (1, 1), (40, 1), (100, 2)])
def test_phases_without_pings_have_no_line_in_the_distribution(
    browser: Browser, address: str, count: int, known: int
) -> None:
    with opened(browser, address + link(count=count), within=address) as shown:
        expect(shown.page.locator("#grade")).to_have_text("D")
        expect(shown.chart("Ping").locator(".legend .entry")).to_have_count(len(LINES))
        expect(shown.chart("Distribution of pings").locator(".legend .entry")).to_have_count(known)
        if known:
            spread = shown.lines("Distribution of pings")
            assert tuple(spread) == LINES[:known]
            assert all(np.isfinite(values).all() for line in spread.values() for values in line)


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
def test_nothing_keeps_anybody_out(
    browser: Browser, address: str, viewport: dict[str, int], scheme: Any
) -> None:
    for place in (address, address + link()):
        with opened(browser, place, within=address, viewport=viewport, color_scheme=scheme) as shown:
            if place != address:
                expect(shown.page.locator("#result")).to_be_visible()
                shown.unfold()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            assert shown.barriers() == []


@pytest.mark.parametrize("width", [320, 340, 360])
def test_a_narrow_page_scrolls_down_only(browser: Browser, address: str, width: int) -> None:
    screen = {"width": width, "height": 640}
    with opened(browser, address + link(idle_ms=1234.0), within=address, viewport=screen) as shown:
        expect(shown.page.locator("#result")).to_be_visible()
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        tiles = shown.page.locator(".figures > div")
        cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
        assert tiles.evaluate_all(cut) == []


@pytest.mark.parametrize("at", [0, 1, 6, 8])
def test_a_result_of_which_a_part_is_missing_has_no_grade(browser: Browser, address: str, at: int) -> None:
    with opened(browser, address + link(without=at), within=address) as shown:
        expect(shown.page.locator("#status")).to_contain_text("There is no grade")
        expect(shown.page.locator("#result")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_page_that_is_trusted_has_the_better_clock(browser: Browser, address: str, scheme: str) -> None:
    place = address.replace("http", scheme)
    with opened(browser, place, ignore_https_errors=True) as shown:
        assert shown.page.evaluate("crossOriginIsolated")


@pytest.mark.parametrize("stops", [True, False])
def test_a_test_that_does_not_begin_shows_none_of_another(browser: Browser, stops: bool) -> None:
    with serving() as server, opened(browser, f"http://{server.address}/{link()}") as shown:
        shown.provoked = "WebSocket" if stops else "ERR_CONNECTION"
        expect(shown.page.locator("#grade")).to_have_text("D")
        server.process.send_signal(signal.SIGSTOP if stops else signal.SIGKILL)
        shown.page.get_by_role("button", name="Start").click()
        if stops:
            shown.page.get_by_role("button", name="Stop").click()
            expect(shown.page.locator("#status")).to_contain_text("Stopped")
            server.process.send_signal(signal.SIGCONT)
        else:
            expect(shown.page.locator("#status")).to_contain_text("cannot be reached")
        for place in ("#live", "#result"):
            expect(shown.page.locator(place)).to_be_hidden()
        expect(shown.page.locator("#charts")).to_be_empty()


@pytest.mark.parametrize("text", ["AAAA", "%3Cimg%20src=x%3E", link()[3:-9], "A" * 40_000])
def test_a_link_that_carries_no_result_is_told(browser: Browser, address: str, text: str) -> None:
    with opened(browser, f"{address}#r={text}", within=address) as shown:
        expect(shown.page.locator("#status")).to_have_text("The link carries no result that can be read.")
        expect(shown.page.locator("#charts")).to_be_empty()
