"""The viewer in a real browser: what it shows is right, it can be used by anybody, and nothing harms it."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Error, expect

import weirlab
from browsing import PHONE, SCREENS, WAIT_MS, Opened, across, opened, written
from live import weir_in
from weirlab.api import run_all
from weirlab.errors import UsageError
from weirlab.plots import series
from weirlab.plots.caption import number as number_of
from weirlab.record import open_record
from weirlab.report import story
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import compare, describe, load_window_ns
from weirlab.viewer import asset, report_page
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from weirlab.record import Record

MARKUP = "</script><img src=x onerror=\"window.harmed = 'yes'\"><b>bold</b>"


@pytest.fixture(scope="module")
def one_page(rrul: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page") / "one.html", report_page([rrul[0]]))


@pytest.fixture(scope="module")
def two_page(rrul: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page") / "two.html", report_page(rrul))


def first_row(chart: Any) -> list[str]:
    """The first row of the table of what is shown, which the page makes after it was unfolded."""
    row = chart.locator("table").first.locator("tbody tr").first
    row.wait_for()
    cells: list[str] = row.locator("th, td").all_inner_texts()
    return cells


def test_what_pages_load_is_made_of_the_present_source(tmp_path: Path) -> None:
    source = Path(__file__).parent.parent / "viewer"
    node = shutil.which("node")
    if node is None or not (source / "node_modules/esbuild").exists():
        pytest.skip("there is no esbuild: make browser")
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=source, check=True, timeout=120)
    for file in sorted(tmp_path.iterdir()):
        assert asset(file.name) == file.read_text(encoding="utf-8"), f"{file.name}: make viewer"


def test_the_charts_draw_what_weirs_own_charts_do(
    browser: Browser, one_page: Path, rrul: list[Record]
) -> None:
    with opened(browser, one_page) as shown:
        for title, way in (("Download", "down"), ("Upload", "up")):
            ours = series.throughput_mbps(rrul[0], way)  # type: ignore[arg-type]
            assert ours is not None
            theirs = shown.lines(title)
            for name, values in ours.lines.items():
                np.testing.assert_allclose(theirs[name][0], ours.t_s, atol=1e-9)
                np.testing.assert_allclose(theirs[name][1], values, atol=1e-9)
            np.testing.assert_allclose(theirs["mean of 4"][1], ours.average, atol=1e-9)
        pings = shown.lines("Ping")
        for number, name in enumerate(rrul[0].probe_names):
            rows = rrul[0].latency.filter(pl.col("probe") == number)
            answered = rows.drop_nulls("rtt_ns")
            there = ~np.isnan(pings[name][1])
            np.testing.assert_allclose(pings[name][0][there], answered["t_ns"].to_numpy() / 1e9, atol=1e-12)
            np.testing.assert_allclose(pings[name][1][there], answered["rtt_ns"].to_numpy() / 1e6, rtol=1e-12)
            assert int((~there).sum()) == rows["rtt_ns"].null_count()
        queue = rrul[0].queue.filter((pl.col("queue") == "down/cmts") & (pl.col("class") == ""))
        backlog = shown.lines("Queue backlog")["down/cmts"]
        np.testing.assert_allclose(backlog[1], queue["backlog_bytes"].to_numpy() / 1e3)
        flow = rrul[0].flow_names["name"][0]
        sender = rrul[0].tcp.filter(pl.col("flow") == 0)
        cwnd = shown.lines("Congestion window")[flow]
        np.testing.assert_allclose(cwnd[1], sender["cwnd_segments"].to_numpy())


def test_the_mean_is_that_of_the_flows_that_run(browser: Browser, tmp_path: Path) -> None:
    flows = [
        {"name": "all the time", "direction": "down"},
        {"name": "late", "direction": "down", "start": "3s"},
        {"name": "early", "direction": "down", "stop": "2s"},
    ]
    test = {
        "name": "parts",
        "title": "Flows that run for a part",
        "phases": {"idle": "1s", "load": "4s"},
        "hosts": [{"name": "server", "delay": "10ms"}],
        "flows": flows,
    }
    spec = ScenarioSpec.model_validate({"test": test, "link": "cable-20-8", "start_jitter": "0s"})
    (record,) = run_all(resolve(spec), world_named("sim"), tmp_path, jobs=1)
    ours = series.throughput_mbps(record, "down")
    assert ours is not None
    with opened(browser, written(tmp_path / "page.html", report_page([record]))) as shown:
        theirs = shown.lines("Download")
        assert list(theirs) == ["all the time", "late", "early", "mean of those that run"]
        mean = theirs["mean of those that run"][1]
        np.testing.assert_allclose(mean, ours.average, atol=1e-9)
        alone = (ours.t_s > 2.2) & (ours.t_s < 3)
        assert alone.sum() >= 3
        np.testing.assert_allclose(mean[alone], ours.lines["all the time"][alone], atol=1e-9)
    # As of a control connection of a program.
    page = report_page([record])
    late = page.index('"name":"late"')
    one = page.index('"shares":true', late)
    page = page[:one] + page[one:].replace('"shares":true', '"shares":false', 1)
    with opened(browser, written(tmp_path / "shared.html", page)) as shown:
        theirs = shown.lines("Download")
        sharers = theirs["all the time"][1] + theirs["early"][1]
        both = (ours.t_s > 1.2) & (ours.t_s < 1.9)
        np.testing.assert_allclose(theirs["mean of those that run"][1][both], sharers[both] / 2, atol=1e-9)
        after = (ours.t_s > 3.2) & (ours.t_s < 4.9)
        mean = theirs["mean of those that run"][1]
        np.testing.assert_allclose(mean[after], theirs["all the time"][1][after], atol=1e-9)


def test_figures_of_a_span_follow_the_definitions_of_the_statistics(
    browser: Browser, one_page: Path, rrul: list[Record]
) -> None:
    with opened(browser, one_page) as shown:
        chart = shown.chart("Ping")
        chart.get_by_text("Table of what is shown").click()
        cells = first_row(chart)
        rows = rrul[0].latency.filter(pl.col("probe") == 0)
        ours = describe(rows["rtt_ns"].drop_nulls() / 1e6)
        assert ours is not None
        assert cells[:2] == [rrul[0].probe_names[0], str(ours.count)]
        figures = [ours.mean, ours.min, ours.median, ours.p95, ours.p99, ours.max]
        assert [float(one) for one in cells[2:8]] == pytest.approx(figures, rel=5e-3)
        assert cells[8] == str(rows["rtt_ns"].null_count())


def test_the_table_of_a_distribution_has_the_quantiles_of_the_figures(
    browser: Browser, one_page: Path, two_page: Path, rrul: list[Record]
) -> None:
    """Every sample counts, by the one definition of quantiles: a page has one figure of one thing."""
    shares = [5, 25, 50, 75, 90, 95, 99, 99.9, 100]
    for page, records in ((one_page, rrul[:1]), (two_page, rrul)):
        with opened(browser, page) as shown:
            chart = shown.chart("Distribution of pings under load")
            shown.plot("Distribution of pings under load")
            chart.get_by_text("Table of what is shown").click()
            chart.locator("table").wait_for()
            rows = [one.locator("th, td").all_inner_texts() for one in chart.locator("tbody tr").all()]
        of = [[number] for number in range(len(rrul[0].probe_names))] if len(records) == 1 else [None] * 2
        assert len(rows) == len(of)
        for number, (cells, probes) in enumerate(zip(rows, of, strict=True)):
            record = records[min(number, len(records) - 1)]
            start, end = load_window_ns(record)
            loaded = record.latency.filter(pl.col("probe").is_in(probes or [*record.ping_probes]))
            loaded = loaded.filter((pl.col("t_ns") >= start) & (pl.col("t_ns") < end))
            values = loaded["rtt_ns"].drop_nulls().to_numpy() / 1e6
            assert cells[1:] == [number_of(one) for one in np.percentile(values, shares)]


def test_zoom_by_drag_wheel_keys_and_buttons_moves_all_charts(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        page = shown.page
        assert shown.shown() == (0.0, 6.0)
        box = shown.plot("Download").bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.25, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=4)
        page.mouse.up()
        wait_for_change(shown, (0.0, 6.0))
        assert shown.shown() == pytest.approx((1.5, 3.0), abs=0.03)
        # Another chart shows the same span: its table says so.
        chart = shown.chart("Queue backlog")
        chart.get_by_text("Table of what is shown").click()
        assert "Shown: 1." in chart.locator("caption").first.inner_text()
        shown.plot("Upload")
        shown.chart("Upload").locator(".plot").focus()
        before = shown.shown()
        page.keyboard.press("+")
        wait_for_change(shown, before)
        assert shown.shown()[1] - shown.shown()[0] == pytest.approx(0.75, abs=0.03)
        before = shown.shown()
        page.keyboard.press("Shift+ArrowRight")
        wait_for_change(shown, before)
        assert shown.shown()[0] > before[0]
        before = shown.shown()
        shown.plot("Upload").hover()
        page.mouse.wheel(0, 200)
        wait_for_change(shown, before)
        assert shown.shown()[1] - shown.shown()[0] > before[1] - before[0]
        before = shown.shown()
        page.get_by_role("button", name="Whole run").click()
        wait_for_change(shown, before)
        assert shown.shown() == (0.0, 6.0)


def wait_for_change(shown: Opened, before: tuple[float, float]) -> None:
    text = f"{before[0]:.2f} s to {before[1]:.2f} s"
    expect(shown.page.locator(".bar .shown")).not_to_have_text(text, timeout=WAIT_MS)


def test_pointing_tells_values_and_lines_can_be_switched(
    browser: Browser, one_page: Path, rrul: list[Record]
) -> None:
    with opened(browser, one_page) as shown:
        chart = shown.chart("Ping")
        shown.plot("Ping").hover()
        entry = chart.locator("button.entry").first
        told = float(entry.locator(".value").inner_text())
        ours = rrul[0].latency.filter((pl.col("probe") == 0) & pl.col("t_ns").is_between(2.9e9, 3.1e9))
        assert ours["rtt_ns"].min() / 1e6 - 1 <= told <= ours["rtt_ns"].max() / 1e6 + 1  # type: ignore[operator]
        assert len(shown.lines("Ping")) == 4
        entry.click()
        assert entry.get_attribute("aria-pressed") == "false"
        assert rrul[0].probe_names[0] not in shown.lines("Ping")
        entry.click()
        filters = shown.page.get_by_role("group", name="Lines that are shown")
        filters.get_by_role("button", name="EF", exact=True).click()
        assert "TCP download EF" not in shown.lines("Download")
        filters.get_by_role("button", name="Upload", exact=True).click()
        assert all(" up" not in name for name in shown.lines("Congestion window"))


def test_a_marked_span_has_its_figures_beside_every_chart(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        page = shown.page
        page.get_by_role("button", name="Drag marks a span").click()
        box = shown.plot("Ping").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 50, steps=4)
        page.mouse.up()
        page.locator(".marked table").first.wait_for()
        caption = shown.chart("Ping").locator(".marked caption").inner_text()
        ends = [float(one) for one in re.findall(r"([\d.]+) s", caption)]
        assert ends == pytest.approx([3.0, 4.5], abs=0.03)
        assert shown.shown() == (0.0, 6.0)
        shown.plot("Upload")
        assert "Marked span: " in shown.chart("Upload").locator(".marked caption").inner_text()
        page.get_by_role("button", name="Clear the mark").click()
        expect(page.locator(".marked table")).to_have_count(0, timeout=WAIT_MS)


def test_charts_are_saved_as_pictures(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        assert shown.saved("Download", "Save as PNG").startswith(b"\x89PNG")
        picture = ET.fromstring(shown.saved("Ping", "Save as SVG"))  # noqa: S314 - our own page made it
        assert len(picture.findall("{http://www.w3.org/2000/svg}path")) == 4
        shown.chart("Ping").get_by_role("button", name="Log").click()
        ET.fromstring(shown.saved("Ping", "Save as SVG"))  # noqa: S314
        ET.fromstring(shown.saved("Distribution of pings under load", "Save as SVG"))  # noqa: S314
        with shown.page.expect_download() as found:
            shown.page.get_by_role("button", name=re.compile("^Save .*weir$")).click()
        assert zipfile.is_zipfile(found.value.path())


def test_columns_of_a_file_have_the_words_and_units_of_the_axes(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        heads = {}
        for title in ("Download", "Ping", "Queue backlog", "Distribution of pings under load"):
            shown.plot(title)
            rows = list(csv.reader(io.StringIO(shown.saved(title, "Save as CSV").decode())))
            heads[title] = rows[0]
            # Times are whole nanoseconds: no digits that are left of binary fractions.
            assert max(len(row[1].partition(".")[2]) for row in rows[1:]) <= 9
        assert heads == {
            "Download": ["series", "time_s", "Mbit/s per flow"],
            "Ping": ["series", "time_s", "ms"],
            "Queue backlog": ["series", "time_s", "kB"],
            "Distribution of pings under load": [
                "series",
                "Ping, ms",
                "answered pings no longer, %",
            ],
        }


def test_axes_are_linear_until_a_logarithmic_one_is_asked_for(browser: Browser, one_page: Path) -> None:
    title = "Distribution of pings under load"
    with opened(browser, one_page) as shown:
        log = shown.chart(title).get_by_role("button", name="Log")
        expect(log).to_have_attribute("aria-pressed", "false")
        assert "0" in across(shown.saved(title, "Save as SVG"))
        log.click()
        assert "0" not in across(shown.saved(title, "Save as SVG"))


def test_two_runs_stand_beside_each_other(browser: Browser, two_page: Path, rrul: list[Record]) -> None:
    with opened(browser, two_page) as shown:
        overlay = shown.lines("Ping, all runs")
        assert len(overlay) == 2
        for record, (times, values) in zip(rrul, overlay.values(), strict=True):
            ours = series.latency_ms(record)
            assert ours is not None
            inside = ~np.isnan(values) & (times < 5.5)
            assert (
                np.nanmean(np.abs(values[inside] - ours.average[: inside.size][inside[: ours.average.size]]))
                < 2
            )
        assert shown.page.locator("details.run section.chart").count() == 0
        shown.page.locator("details.run > summary").first.click()
        shown.page.locator("details.run section.chart").nth(5).wait_for(state="attached")


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


def test_what_a_logarithmic_axis_has_no_place_for_is_told(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        shown.plot("Download")
        chart = shown.chart("Download")
        says = "A logarithmic axis has no place for 0"
        expect(chart.locator(".remark")).not_to_contain_text(says)
        assert "Mbit/s per flow<" in shown.saved("Download", "Save as SVG").decode()
        chart.get_by_role("button", name="Logarithmic axis of Download").click()
        expect(chart.locator(".remark")).to_contain_text(says)
        picture = shown.saved("Download", "Save as SVG").decode()
        assert "Mbit/s per flow, log<" in picture
        assert says in picture
        names = shown.page.get_by_role("button", name="Logarithmic axis of").evaluate_all(
            "all => all.map(one => one.getAttribute('aria-label'))"
        )
        assert len(set(names)) == len(names) > 6


def test_a_record_without_a_sample_says_so(browser: Browser, tmp_path: Path) -> None:
    (record,) = weirlab.run("ping", phases={"idle": "5ms"}, out=tmp_path / "out")
    with opened(browser, written(tmp_path / "page.html", report_page([record]))) as shown:
        charts = shown.page.locator("#weir-charts")
        expect(charts).to_contain_text("Nothing was measured that a chart could show.")
        assert charts.get_by_role("button").count() == 0
        assert shown.page.get_by_text("Nothing was measured that figures could be made of.").is_visible()
        assert shown.barriers() == []
    assert story(compare([record])).plain.startswith("Neither loads nor pings of the scenario ran")


def test_a_finger_reads_values_zooms_and_marks(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page, viewport=PHONE, has_touch=True, is_mobile=True) as shown:
        page = shown.page
        place = shown.plot("Download")
        chart = shown.chart("Download")
        # A real touch goes where the browser's own scrolling would take it, if it could.
        touch = page.context.new_cdp_session(page)

        def drag(first: float, last: float) -> None:
            place.scroll_into_view_if_needed()
            box = place.bounding_box()
            assert box is not None
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
        width = shown.chart("Ping, all runs").locator("canvas").bounding_box()["width"]
        assert 300 < width <= PHONE["width"]
        # No word is broken into letters, and what is too small to be read is moved within its frame.
        heads = shown.page.locator(".scroll th:first-child")
        assert min(heads.evaluate_all("all => all.map(one => one.clientWidth)")) > 90
        picture = shown.page.locator(".path svg").first.bounding_box()
        assert picture is not None
        assert picture["width"] > 600


def test_a_figure_under_load_stands_above_what_is_of_the_whole_run(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        tops = shown.page.locator("tr", has_text="whole run:").first.evaluate(
            """row => [...row.cells].map((cell) => {
                const text = document.createRange();
                text.selectNodeContents(cell);
                return text.getClientRects()[0].top;
            })"""
        )
        assert tops[1] == pytest.approx(tops[0], abs=1)


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


def hostile(record: Record, folder: Path) -> Record:
    """A copy of `record` in which every name is markup and numbers are huge."""
    shutil.copytree(record.path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    scenario = manifest["scenario"]
    for one in (*scenario["flows"], *scenario["probes"], *scenario["phases"], *scenario["hosts"]):
        one["name"] = f"{one['name']}{MARKUP}"
    for way in ("up", "down"):
        for hop in scenario["path"][way]:
            hop["queue"] = f"{hop['queue']} {MARKUP}"
            # The largest that a manifest may say of it; of what no figure needs it may say more.
            hop["delay_ns"], hop["jitter_ns"] = 2**63 - 1, 10**30
    scenario["phases"].append({"name": "x" * 10_000, "start_ns": 10**17, "end_ns": 10**18})
    manifest |= {
        "title": MARKUP,
        "queue": MARKUP,
        "note": MARKUP,
        "configuration": MARKUP * 50,
        "warnings": [MARKUP],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return open_record(folder)


def test_hostile_names_and_numbers_harm_nothing(browser: Browser, rrul: list[Record], tmp_path: Path) -> None:
    one = hostile(rrul[0], tmp_path / "record")
    for name, records in (("one", [one]), ("two", [one, rrul[1]])):
        file = written(tmp_path / f"{name}.html", report_page(records))
        with opened(browser, file) as shown:
            assert shown.page.evaluate("window.harmed") is None
            assert shown.page.locator("img[src=x]").count() == 0
            assert shown.page.locator("main b").count() == 0
            assert shown.page.locator("section.chart").count() >= 4
            title = "Ping" if name == "one" else "Ping, all runs"
            ET.fromstring(shown.saved(title, "Save as SVG"))  # noqa: S314


def test_names_of_queues_turn_no_writing(browser: Browser, rrul: list[Record], tmp_path: Path) -> None:
    """Those that the browser reads from the record's own tables."""
    shutil.copytree(rrul[0].path, tmp_path / "record")
    for part in (tmp_path / "record" / "queue").iterdir():
        pl.read_parquet(part).with_columns(pl.col("queue") + "\u202eevil\t").write_parquet(part)
    manifest = json.loads((tmp_path / "record" / "manifest.json").read_text())
    (tmp_path / "record" / "manifest.json").write_text(json.dumps(manifest | {"tables": None}))
    page = report_page([open_record(tmp_path / "record")])
    with opened(browser, written(tmp_path / "page.html", page)) as shown:
        shown.plot("Queue backlog")
        legend = shown.chart("Queue backlog").locator(".legend").inner_text()
        assert "down/cmts\\u202eevil\\t" in legend
        assert "\u202e" not in legend


def test_a_notebook_shows_the_page_and_keeps_it_apart(
    browser: Browser, rrul: list[Record], tmp_path: Path
) -> None:
    shown_in_cell = weirlab.view([hostile(rrul[0], tmp_path / "record"), rrul[1]], height_px=500)
    assert "2 records" in repr(shown_in_cell)
    assert len(repr(shown_in_cell)) < 100
    cell = f"<main><h1>Notebook</h1>{shown_in_cell._repr_html_()}</main>"
    notebook = f"<!doctype html><html lang=en><meta charset=utf-8><title>Notebook</title>{cell}</html>"
    file = written(tmp_path / "notebook.html", notebook)
    # As a string: the notebook itself is no page of Weir's, which would say that it is ready.
    with opened(browser, file.as_uri()) as shown:
        frame = shown.page.frame_locator("iframe")
        frame.locator("html[data-ready]").wait_for(state="attached")
        chart = frame.locator('section.chart[aria-label="Ping, all runs"]')
        chart.scroll_into_view_if_needed()
        chart.locator("canvas").wait_for()
        assert frame.locator("img[src=x], main b").count() == 0
        assert shown.page.locator("iframe").bounding_box()["height"] == pytest.approx(500, abs=2)  # type: ignore[index]
        inside = shown.page.frames[1]
        assert inside.evaluate("origin") == "null"
        assert inside.evaluate("window.harmed") is None
        with pytest.raises(Error, match="cross-origin"):
            inside.evaluate("parent.document.title")
        with shown.page.expect_download(timeout=WAIT_MS) as found:
            frame.get_by_role("button", name=re.compile("^Save .*weir$")).last.click()
        assert zipfile.is_zipfile(found.value.path())
        assert shown.barriers() == []


@pytest.mark.parametrize("height_px", [0, 199, 10_001, 500.0, "500px", True])
def test_a_height_that_is_none_is_refused(rrul: list[Record], height_px: Any) -> None:
    with pytest.raises(UsageError, match=r"height_px: .*: write a whole number from 200 to 10000"):
        weirlab.view(rrul, height_px=height_px)


def test_more_records_than_one_page_holds_are_refused(rrul: list[Record]) -> None:
    with pytest.raises(UsageError, match="50 records are too many for one page: give 48 or fewer"):
        weirlab.view(rrul * 25)


def with_archive(page: str, content: bytes) -> str:
    """The page with another archive in it."""
    shown = base64.b64encode(content).decode()
    return re.sub(r'(id="weir-record-0">)[^<]*', lambda found: found[1] + shown, page)


def repacked(page: str, part: str, content: bytes, *, alone: bool = False) -> bytes:
    """The archive of the page with other bytes for one of its files, which may be its table's only one."""
    (kept,) = re.findall(r'id="weir-record-0">([^<]*)', page)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(kept))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if name != part and not (alone and name.startswith(f"{part.partition('/')[0]}/")):
                new.writestr(name, old.read(name))
        new.writestr(part, content)
    return out.getvalue()


@pytest.mark.parametrize(
    "packed",
    [
        {"compression": "snappy", "row_group_size": 500},
        {"compression": "uncompressed"},
        {"compression": "zstd"},
    ],
)
def test_tables_are_read_however_they_are_packed(
    browser: Browser, one_page: Path, rrul: list[Record], tmp_path: Path, packed: dict[str, Any]
) -> None:
    """Weir's own parts are decoded by the page itself, what is packed otherwise by a library."""
    page = one_page.read_text(encoding="utf-8")
    for table in (rrul[0].latency, rrul[0].queue):
        content = io.BytesIO()
        table.write_parquet(content, **packed)
        name = "latency" if table is rrul[0].latency else "queue"
        page = with_archive(
            page, repacked(page, f"{name}/part-000000.parquet", content.getvalue(), alone=True)
        )
    with opened(browser, written(tmp_path / "page.html", page)) as shown:
        ours = rrul[0].latency.filter(pl.col("probe") == 1).drop_nulls("rtt_ns")
        times, values = shown.lines("Ping")[rrul[0].probe_names[1]]
        there = ~np.isnan(values)
        np.testing.assert_allclose(times[there], ours["t_ns"].to_numpy() / 1e9, atol=1e-12)
        np.testing.assert_allclose(values[there], ours["rtt_ns"].to_numpy() / 1e6, rtol=1e-12)
        queue = rrul[0].queue.filter((pl.col("queue") == "up/modem") & (pl.col("class") == ""))
        backlog = shown.lines("Queue backlog")
        assert len(backlog) == rrul[0].queue["queue"].n_unique()
        np.testing.assert_allclose(backlog["up/modem"][1], queue["backlog_bytes"].to_numpy() / 1e3)


def test_a_record_of_very_many_part_files_is_read_to_its_end(
    browser: Browser, one_page: Path, tmp_path: Path
) -> None:
    """More than 65535 files, which a live run of an hour has, are counted where zip64 has its numbers."""
    page = one_page.read_text(encoding="utf-8")
    (kept,) = re.findall(r'id="weir-record-0">([^<]*)', page)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(kept))) as old, zipfile.ZipFile(out, "w") as new:
        first, *others = old.namelist()
        new.writestr(first, old.read(first))
        for number in range(1 << 16):
            new.writestr(f"a/{number}", b"")
        for name in others:
            new.writestr(name, old.read(name))
    with opened(browser, written(tmp_path / "page.html", with_archive(page, out.getvalue()))) as shown:
        with opened(browser, one_page) as usual:
            wanted = usual.lines("Ping")
        found = shown.lines("Ping")
        assert found.keys() == wanted.keys()
        for name, (times, values) in wanted.items():
            np.testing.assert_array_equal(found[name][0], times)
            np.testing.assert_array_equal(found[name][1], values)


def test_means_of_steps_are_of_the_pings_that_were_sent_in_them(
    browser: Browser, two_page: Path, rrul: list[Record], tmp_path: Path
) -> None:
    """Also of those that were sent at the very beginning of a step, as those of Flent are."""
    page = two_page.read_text(encoding="utf-8")
    count = rrul[0].reached_ns // 200_000_000
    latency = pl.DataFrame(
        {
            "t_ns": [number * 200_000_000 for number in range(count)],
            "probe": [0] * count,
            "rtt_ns": [(number + 1) * 1_000_000 for number in range(count)],
        }
    )
    content = io.BytesIO()
    latency.write_parquet(content, compression="uncompressed")
    one = re.sub(r'id="weir-record-1">[^<]*', "", page)
    archive = repacked(one, "latency/part-000000.parquet", content.getvalue(), alone=True)
    with opened(browser, written(tmp_path / "page.html", with_archive(page, archive))) as shown:
        times, values = next(iter(shown.lines("Ping, all runs").values()))
        np.testing.assert_allclose(times, [0.1 + 0.2 * number for number in range(count)], atol=1e-9)
        np.testing.assert_array_equal(values, range(1, count + 1))


def longer(part: bytes, rows: int) -> bytes:
    """A Parquet file whose footer says one row more than its row groups have."""

    def field(value: int) -> bytes:
        """`num_rows` of the footer as Thrift's compact protocol packs it, and the head of the row groups."""
        zigzag, packed = 2 * value, b""
        while zigzag > 127:
            packed, zigzag = packed + bytes([zigzag % 128 + 128]), zigzag // 128
        return b"\x16" + packed + bytes([zigzag]) + b"\x19"

    assert part.count(field(rows)) == 1
    return part.replace(field(rows), field(rows + 1))


def test_broken_files_are_told_and_harm_nothing(browser: Browser, one_page: Path, tmp_path: Path) -> None:
    page = one_page.read_text(encoding="utf-8")
    part = "latency/part-000000.parquet"
    (kept,) = re.findall(r'id="weir-record-0">([^<]*)', page)
    archive = base64.b64decode(kept)
    with zipfile.ZipFile(io.BytesIO(archive)) as opened_archive:
        latency = opened_archive.read(part)
    middle = len(latency) // 2
    for number, content in enumerate(
        [
            b"",
            b"PK\x05\x06",
            archive[: len(archive) // 2],
            repacked(page, part, b"no Parquet"),
            repacked(page, part, latency[: len(latency) // 2]),
            repacked(page, part, latency[:200] + b"\xff" * (middle - 200) + latency[middle:]),
            repacked(page, part, latency[:-8] + b"\xff\xff\xff\x7fPAR1"),
            repacked(page, part, longer(latency, pl.read_parquet(latency).height)),
        ]
    ):
        file = written(tmp_path / f"{number}.html", with_archive(page, content))
        with opened(browser, file) as shown:
            said = shown.page.locator("#weir-charts .error").inner_text()
            assert re.fullmatch(r"“.*” cannot be shown: .{5,400}\.", said), said
            assert shown.page.get_by_role("heading", name="Figures").count() == 1


def test_the_pages_own_policy_refuses_the_network(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        with pytest.raises(Error, match="fetch"):
            shown.page.evaluate("fetch('https://example.net/')")
        assert any("Content Security Policy" in text for text in shown.errors)
        shown.errors.clear()


def test_a_record_that_was_imported_is_shown_as_far_as_it_goes(
    browser: Browser, rrul: list[Record], tmp_path: Path
) -> None:
    """It has no queues, no seed and no service classes, and its tables are packed otherwise."""
    assert weir_in(tmp_path, "export", str(rrul[0].path), "--flent", "--out", "flent").returncode == 0
    (file,) = (tmp_path / "flent").iterdir()
    done = weir_in(tmp_path, "import", str(file), "--out", "imported")
    assert done.returncode == 0, done.stderr
    record = open_record(tmp_path / "imported")
    page = report_page([record])
    assert "seed None" not in page
    assert "this is the file from which it was imported" in page
    with opened(browser, written(tmp_path / "page.html", page)) as shown:
        assert shown.page.locator(".error").count() == 0
        ours = series.throughput_mbps(record, "down")
        assert ours is not None
        theirs = shown.lines("Download")
        for name, values in ours.lines.items():
            np.testing.assert_allclose(theirs[name][1], values, atol=1e-9)


def test_a_span_is_marked_from_the_start(browser: Browser, rrul: list[Record], tmp_path: Path) -> None:
    page = report_page([rrul[0]], span_s=(2.0, 3.5))
    with opened(browser, written(tmp_path / "span.html", page)) as shown:
        shown.plot("Ping")
        rows = shown.chart("Ping").locator(".marked tbody tr").all()
        cells = [row.locator("th, td").all_inner_texts() for row in rows]
    pings = rrul[0].latency.filter(pl.col("t_ns").is_between(2 * 10**9, 3_500_000_000))
    wanted = pings.drop_nulls("rtt_ns").group_by("probe").len()["len"].to_list()
    assert sorted(int(row[1]) for row in cells) == sorted(wanted)


@pytest.mark.parametrize("span", ["3s..2s", "900s..901s"])
def test_a_span_without_anything_in_it_is_refused(span: str, rrul: list[Record], weir_here: Any) -> None:
    done = weir_here("report", str(rrul[0].path), "--span", span)
    assert done.returncode == 2
    assert f"the span {span}" in done.stderr
