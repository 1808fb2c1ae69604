"""The viewer in a real browser: anybody can use it, by keys or a finger, on a phone, on paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

from browsing import PHONE, SCREENS, WAIT_MS, box_of, opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser


def test_everything_can_be_done_with_the_keyboard_alone(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        page = shown.page
        reached: set[str] = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(
                page.evaluate(
                    "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
                )
            )
        assert {"Zoom in", "Whole run", "Save as CSV of Download"} <= reached
        assert any(label.startswith("Chart: Download") for label in reached)
        shown.plot("Ping")
        shown.chart("Ping").locator(".plot").focus()
        page.keyboard.press("ArrowRight")
        said = shown.chart("Ping").locator("[aria-live]")
        assert "seconds; ms: ICMP" in said.inner_text()
        page.keyboard.press("m")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("m")
        page.locator(".marked table").first.wait_for()


def test_the_keyboard_reads_a_distribution_too(browser: Browser, one_page: Path) -> None:
    title = "Distribution of pings under load"
    with opened(browser, one_page) as shown:
        curve = next(iter(shown.lines(title).values()))
        shown.plot(title)
        chart = shown.chart(title)
        said = chart.locator("[aria-live]")
        for is_log in (False, True):
            chart.locator(".plot").focus()
            places = []
            for _ in range(3):
                shown.page.keyboard.press("ArrowRight")
                place, percent = re.fullmatch(
                    r"Ping, ms ([\d.]+); answered pings no longer, %: ICMP ([\d.]+), .*",
                    said.inner_text(),
                ).groups()  # type: ignore[union-attr]
                at = np.argmin(np.abs(curve[0] - float(place)))
                assert float(percent) == pytest.approx(curve[1][at], abs=3)
                places.append(float(place))
            assert places == sorted(set(places))
            if not is_log:
                chart.get_by_role("button", name="Log").click()


def test_a_finger_reads_values_zooms_and_marks(touched_browser: Browser, one_page: Path) -> None:
    with opened(touched_browser, one_page, viewport=PHONE, has_touch=True, is_mobile=True) as shown:
        page = shown.page
        place = shown.plot("Download")
        chart = shown.chart("Download")
        # A real touch goes where the browser's own scrolling would take it, if it could.
        touch = page.context.new_cdp_session(page)

        def drag(first: float, last: float) -> None:
            place.scroll_into_view_if_needed()
            box = box_of(place)
            xs = [box["x"] + box["width"] * (first + (last - first) * step / 8) for step in range(9)]
            y = box["y"] + box["height"] / 2
            for number, x in enumerate(xs if last != first else xs[:1]):
                kind = "touchMove" if number else "touchStart"
                touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
            touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

        whole = shown.shown()
        drag(0.5, 0.5)
        expect(chart.locator(".value").first).not_to_be_empty()
        assert shown.shown() == whole
        drag(0.25, 0.75)
        expect(page.locator(".bar .shown")).not_to_have_text(f"{whole[0]:.2f} s to {whole[1]:.2f} s")
        first, last = shown.shown()
        length = whole[1] - whole[0]
        assert first == pytest.approx(whole[0] + 0.25 * length, abs=0.02 * length)
        assert last == pytest.approx(whole[0] + 0.75 * length, abs=0.02 * length)
        mark = page.get_by_role("button", name="Drag marks a span")
        # Chromium takes a tap right behind a fast drag for the end of a fling, and no button hears of it.
        mark.click()
        # The charts are then drawn anew, and a finger that is on one of them would be lost.
        expect(mark).to_have_attribute("aria-pressed", "true", timeout=WAIT_MS)
        drag(0.2, 0.6)
        chart.locator(".marked table").wait_for()


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
@pytest.mark.parametrize("runs", ["one_page", "two_page"])
def test_nothing_keeps_anybody_out(
    browser: Browser, request: pytest.FixtureRequest, runs: str, viewport: dict[str, int], scheme: str
) -> None:
    """By axe: contrast, names, roles, order of headings; all is unfolded, a span marked and a line hidden."""
    file: Path = request.getfixturevalue(runs)
    with opened(browser, file, viewport=viewport, color_scheme=scheme) as shown:
        page = shown.page
        shown.unfold()
        first = "Ping" if runs == "one_page" else "Ping, all runs"
        shown.plot(first)
        shown.chart(first).locator("button.entry").first.click()
        shown.chart(first).locator(".plot").focus()
        for key in ("m", *("ArrowRight",) * 5, "m"):
            page.keyboard.press(key)
        page.locator(".marked table").first.wait_for()
        assert shown.barriers() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_without_scrolling_sideways(browser: Browser, two_page: Path, scheme: str) -> None:
    with opened(browser, two_page, viewport=PHONE, color_scheme=scheme) as shown:
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        paper = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        shown.plot("Ping, all runs")
        width = box_of(shown.chart("Ping, all runs").locator("canvas"))["width"]
        assert 300 < width <= PHONE["width"]
        # No word is broken into letters, and what is too small to be read is moved within its frame.
        heads = shown.page.locator(".scroll th:first-child")
        assert min(heads.evaluate_all("all => all.map(one => one.clientWidth)")) > 90
        assert box_of(shown.page.locator(".path svg").first)["width"] > 600


@pytest.mark.parametrize("runs", ["one_page", "two_page"])
def test_a_picture_of_the_whole_page_has_every_chart(
    browser: Browser, request: pytest.FixtureRequest, runs: str
) -> None:
    """Nobody scrolls for it: what is out of sight is drawn when the browser has nothing else to do."""
    file: Path = request.getfixturevalue(runs)
    with opened(browser, file) as shown:
        plots = shown.page.locator(".plot:visible")
        expect(plots.locator("canvas")).to_have_count(plots.count(), timeout=WAIT_MS)
        assert plots.count() > 3
        assert shown.page.evaluate("scrollY") == 0


IDLE_BY_HAND = """
window.idle = [];
window.requestIdleCallback = (task) => {
  document.documentElement.dataset.idle = window.idle.push(task);
};
"""


def test_charts_that_are_gone_wait_for_no_idle_time(browser: Browser, one_page: Path) -> None:
    """A page behind others is idle once in ten seconds, and has new charts each second of a run under way."""
    with opened(browser, one_page) as shown:
        shown.page.add_init_script(IDLE_BY_HAND)
        shown.page.reload()
        shown.page.wait_for_selector("html[data-ready]", state="attached")
        waiting = shown.page.locator(".plot:visible:not(:has(canvas))")
        last = waiting.last.element_handle()
        assert waiting.count() > 3
        waiting.evaluate_all("plots => plots.slice(0, -1).forEach((one) => one.closest('.chart').remove())")
        shown.page.wait_for_selector("html[data-idle]", state="attached")
        shown.page.evaluate("window.idle.shift()()")
        assert last.query_selector("canvas") is not None
        assert shown.page.evaluate("window.idle.length") == 0


def test_print_is_light_and_leaves_the_buttons_out(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page, color_scheme="dark") as shown:
        shown.page.emulate_media(media="print", color_scheme="dark")
        # Drawn when the event is over, before any microtask: Firefox prints what there is then.
        inked = shown.page.evaluate(
            """() => {
                window.dispatchEvent(new Event('beforeprint'));
                return [...document.querySelectorAll('.plot canvas')].map((one) => {
                    const { width, height } = one;
                    const pixels = one.getContext('2d').getImageData(0, 0, width, height).data;
                    return pixels.some((value) => value > 0);
                });
            }"""
        )
        assert len(inked) > 4
        assert all(inked), inked
        assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not shown.page.locator(".bar").is_visible()
        assert shown.chart("Round trip that TCP sees").locator("canvas").count() == 1
        # Drawn for a sheet, and not for a screen and then made smaller.
        canvases = shown.page.locator(".plot canvas")
        widths = canvases.evaluate_all("found => found.map((one) => [one.clientWidth, one.width])")
        assert len(widths) > 4
        assert all(seen == drawn <= 680 for seen, drawn in widths), widths
        assert shown.page.locator("details:visible", has_text="Table of what is shown").count() == 0
        assert shown.page.locator("[data-download] button:visible").count() == 0
        shown.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert shown.page.pdf().startswith(b"%PDF")


def test_print_has_every_column(browser: Browser, two_page: Path) -> None:
    """Paper does not scroll: what a frame leaves out there is lost."""
    with opened(browser, two_page) as shown:
        shown.page.emulate_media(media="print")
        # A sheet of A4 with margins of 1 cm.
        shown.page.set_viewport_size({"width": 718, "height": 1000})
        shown.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        frames = shown.page.locator(".scroll:visible:has(table)").evaluate_all(
            """found => found.map((one) => [
                one.querySelector('table').getBoundingClientRect().right,
                document.body.getBoundingClientRect().right,
                getComputedStyle(one).overflowX,
            ])"""
        )
        assert len(frames) > 4
        assert all(right <= most + 1 and over == "visible" for right, most, over in frames), frames
        assert "pings" in shown.page.locator(".scroll:visible thead").first.inner_text()


def test_forced_colours_leave_lines_and_buttons_told_apart(browser: Browser, two_page: Path) -> None:
    """A system with few colours of its own, for somebody who sees little: a key is coloured as its line."""
    with opened(browser, two_page, forced_colors="active") as shown:
        shown.plot("Ping, all runs")
        seen = "found => found.map(one => getComputedStyle(one).borderTopColor)"
        keys = shown.chart("Ping, all runs").locator(".swatch").evaluate_all(seen)
        wanted = shown.page.evaluate(
            """() => ["--c0", "--c1"].map((name) => {
                const one = document.createElement("i");
                one.style.forcedColorAdjust = "none";
                one.style.color = getComputedStyle(document.documentElement).getPropertyValue(name);
                document.body.append(one);
                return getComputedStyle(one).color;
            })"""
        )
        assert keys == wanted
        look = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
        zooms, marks = (
            shown.page.get_by_role("button", name=name).evaluate(look)
            for name in ("Drag zooms", "Drag marks a span")
        )
        assert zooms[0] != marks[0]
        assert zooms[1] != marks[1]
        axis = shown.chart("Ping, all runs").get_by_role("button", name="Log")
        before = axis.evaluate(look)
        axis.click()
        assert axis.evaluate(look) == zooms != before


def test_without_javascript_a_page_says_so_and_waits_for_nothing(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page.as_uri(), java_script_enabled=False) as shown:
        says = "The charts, and the buttons that save raw data, need JavaScript."
        assert shown.page.locator("noscript p", has_text=says).count() == 1
        assert shown.page.locator("noscript p").is_visible()
        assert not shown.page.get_by_text("The record is read").is_visible()
