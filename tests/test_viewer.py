"""The viewer in a real browser: what it shows is right, and how it is asked for more."""

from __future__ import annotations

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
from playwright.sync_api import expect

import weirlab
from browsing import WAIT_MS, Opened, across, box_of, opened, written
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
        box = box_of(shown.plot("Download"))
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
        box = box_of(shown.plot("Ping"))
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


@pytest.mark.parametrize("height_px", [0, 199, 10_001, 500.0, "500px", True])
def test_a_height_that_is_none_is_refused(rrul: list[Record], height_px: Any) -> None:
    with pytest.raises(UsageError, match=r"height_px: .*: write a whole number from 200 to 10000"):
        weirlab.view(rrul, height_px=height_px)


def test_more_records_than_one_page_holds_are_refused(rrul: list[Record]) -> None:
    with pytest.raises(UsageError, match="50 records are too many for one page: give 48 or fewer"):
        weirlab.view(rrul * 25)


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
