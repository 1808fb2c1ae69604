"""The charts of the viewer: what was not measured is not drawn, and their files show what the screen does."""

from __future__ import annotations

import base64
import io
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import expect

import weirlab
from browsing import across, box_of, opened, written
from weirlab.api import run_all
from weirlab.plots.caption import number
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import describe, summarise
from weirlab.viewer import report_page
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from browsing import Opened
    from weirlab.record import Record

DOWN_S = (3.0, 5.0)
"""When the line of `cut` carries nothing."""


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Two runs over a line that is down for a while: its short queue keeps few pings and drops the rest."""
    hop = {"name": "modem", "queue": "pfifo limit 4", "rate": "20mbit", "framing": "ethernet"}
    changes = [{"at": f"{DOWN_S[0]}s", "down": True}, {"at": f"{DOWN_S[1]}s", "rate": "20mbit"}]
    test = {
        "name": "pings",
        "title": "Pings alone",
        "phases": {"idle": "1s", "load": "6s"},
        "hosts": [{"name": "server", "delay": "10ms"}],
        "probes": [{"name": f"ping {kind}", "kind": kind, "host": "server"} for kind in ("icmp", "udp")],
    }
    link = {
        "name": "cut",
        "title": "Cut",
        "up": [hop | {"changes": changes}],
        "down": [hop | {"name": "cmts"}],
    }
    spec = ScenarioSpec.model_validate({"test": test, "link": link, "repeat": 2})
    return run_all(resolve(spec), world_named("sim"), tmp_path_factory.mktemp("cut"), jobs=1)


def painted(shown: Opened, title: str, span: tuple[float, float]) -> int:
    """How many pixels of a chart between two times have a colour of a line; axes and phases are grey."""
    place = box_of(shown.plot(title))
    canvas = box_of(shown.chart(title).locator("canvas"))
    top = place["y"] - canvas["y"]
    first, last = shown.shown()
    left, right = (
        place["x"] - canvas["x"] + place["width"] * (time - first) / (last - first) for time in span
    )
    found: int = shown.chart(title).evaluate(
        """(chart, [left, right, top, bottom]) => {
            const canvas = chart.querySelector("canvas");
            const scale = canvas.width / canvas.clientWidth;
            const sides = [left, top, right - left, bottom - top].map((value) => Math.round(value * scale));
            const pixels = canvas.getContext("2d").getImageData(...sides).data;
            const parts = (at) => [...pixels.slice(at, at + 3)];
            let count = 0;
            for (let at = 0; at < pixels.length; at += 4)
                if (Math.max(...parts(at)) - Math.min(...parts(at)) > 40) count++;
            return count;
        }""",
        # The ticks of lost pings at the top are no lines.
        [left, right, top + 20, top + place["height"] + 1],
    )
    return found


@pytest.mark.parametrize("title", ["Ping", "Ping, all runs"])
def test_no_line_is_drawn_where_no_ping_was_answered(
    browser: Browser, cut: list[Record], tmp_path: Path, title: str
) -> None:
    records = cut if "all" in title else cut[:1]
    with opened(browser, written(tmp_path / "page.html", report_page(records))) as shown:
        gap = (DOWN_S[0] + 0.3, DOWN_S[1] - 0.1)
        assert painted(shown, title, (1.0, 2.0)) > 100
        assert painted(shown, title, gap) == 0
        # Zoomed in so far that every ping has room, and so far out that none has.
        shown.chart(title).locator(".plot").focus()
        shown.page.keyboard.press("+")
        shown.page.wait_for_timeout(300)
        assert painted(shown, title, gap) == 0
        picture = shown.saved(title, "Save as SVG").decode()
        first = re.findall(r'<path d="([^"]*)"', picture)[0]
        assert first.count("M") == 2
        # What is pointed at in the gap has no value.
        place = box_of(shown.plot(title))
        shown.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 50)
        assert shown.chart(title).locator(".value").first.inner_text() == ""


def test_a_line_goes_on_where_only_others_have_samples(
    browser: Browser, cut: list[Record], tmp_path: Path
) -> None:
    """Pings of two probes are never sent at the same time: each line is one piece."""
    with opened(browser, written(tmp_path / "page.html", report_page(cut))) as shown:
        pieces = [
            one.count("M")
            for one in re.findall(r'<path d="([^"]*)"', shown.saved("Ping, all runs", "Save as SVG").decode())
        ]
        assert pieces == [2, 2]


def test_a_shapers_rate_has_a_gap_where_everything_passes(
    browser: Browser, cut: list[Record], tmp_path: Path
) -> None:
    rates = pl.DataFrame(
        {
            "t_ns": [0, 10**9, 2 * 10**9, 4 * 10**9],
            "queue": ["up/shaper"] * 4,
            "rate_bps": [9_000_000, 5_000_000, None, 3_000_000],
        },
        schema={"t_ns": pl.Int64, "queue": pl.String, "rate_bps": pl.Int64},
    )
    content = io.BytesIO()
    rates.write_parquet(content, compression="uncompressed")
    page = with_table(report_page(cut[:1]), "shaper", content.getvalue())
    with opened(browser, written(tmp_path / "page.html", page)) as shown:
        title = "Shaper's rate"
        # The rate holds until everything passes, and not beyond.
        assert painted(shown, title, (1.1, 1.9)) > 30
        assert painted(shown, title, (2.1, 3.9)) == 0
        assert painted(shown, title, (4.1, 6.0)) > 30


def test_numbers_are_written_as_those_of_weirs_own_charts(
    browser: Browser, cut: list[Record], tmp_path: Path
) -> None:
    """One in the middle of two goes to the even one, and none has an exponent."""
    rates_bps = [500, 62_250_000, 112_500_000, 1_234_567_000_000]
    names = [f"up/{place}" for place in range(len(rates_bps))]
    rates = pl.DataFrame({"t_ns": [0] * len(names), "queue": names, "rate_bps": rates_bps})
    content = io.BytesIO()
    rates.write_parquet(content, compression="uncompressed")
    page = with_table(report_page(cut[:1]), "shaper", content.getvalue())
    with opened(browser, written(tmp_path / "page.html", page)) as shown:
        chart = shown.chart("Shaper's rate")
        expect(chart.locator(".shows")).to_contain_text("The highest rate was 1234567 Mbit/s")
        chart.locator("summary").click()
        rows = chart.locator("table").first.locator("tbody tr")
        found = [rows.nth(place).locator("td").nth(1).inner_text() for place in range(len(names))]
        assert found == [number(rate / 1e6) for rate in rates_bps] == ["0.001", "62.2", "112", "1234567"]


def with_table(page: str, table: str, part: bytes) -> str:
    """The page with one more table in its record."""
    (kept,) = re.findall(r'id="weir-record-0">([^<]*)', page)
    content = io.BytesIO(base64.b64decode(kept))
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(f"{table}/part-000000.parquet", part)
    return page.replace(kept, base64.b64encode(content.getvalue()).decode())


def test_a_saved_picture_has_what_the_screen_has(browser: Browser, cut: list[Record], tmp_path: Path) -> None:
    """Peaks end at the frame, and lost pings, phases, the marked span and remarks are there."""
    with opened(browser, written(tmp_path / "page.html", report_page(cut[:1], span_s=(1.5, 2.0)))) as shown:
        remark = shown.chart("Ping").locator(".remark")
        shown.plot("Ping")
        expect(remark).to_contain_text("are cut off")
        picture = shown.saved("Ping", "Save as SVG").decode()
        assert f">{remark.inner_text()}</text>" in picture
        colours = {
            name: shown.page.evaluate(
                f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')"
            )
            for name in ("marked", "phase", "lost")
        }
        bars = re.findall(r'<rect x="([\d.]+)" y="34" width="([\d.]+)" height="\d+" fill="([^"]+)"', picture)
        of = {
            name: [(float(x), float(width)) for x, width, tint in bars if tint == colours[name]]
            for name in colours
        }
        ((marked, length),) = of["marked"]
        assert [marked, length] == pytest.approx([64 + 820 * 1.5 / 7, 820 * 0.5 / 7], abs=0.1)
        ((start, _),) = of["phase"]
        assert start == pytest.approx(64 + 820 / 7, abs=0.1)
        down = [64 + 820 * time / 7 for time in DOWN_S]
        assert len(of["lost"]) > 200
        assert all(down[0] - 2 <= x <= down[1] + 2 for x, _ in of["lost"])
        assert re.findall(r">(idle|load)</text>", picture) == ["idle", "load"]
        # The longest ping is drawn where it belongs, far above the frame, which cuts it off.
        lines = re.findall(r'<path d="([^"]*)" clip-path="url\(#frame\)"', picture)
        assert len(lines) == 2
        highest = min(float(y) for line in lines for y in re.findall(r"[ML][-\d.]+ ([-\d.]+)", line))
        longest = max(np.nanmax(values) for _, values in shown.lines("Ping").values())
        zero, mark = (float(y) for y in re.findall(r'y1="([\d.]+)"', picture)[:2])
        values = [float(one) for one in re.findall(r'text-anchor="end"[^>]*>([\d.]+)<', picture)[:2]]
        assert zero - highest == pytest.approx((zero - mark) / values[1] * longest, rel=0.01)


def test_whose_ping_was_lost_is_seen_where_several_runs_are(
    browser: Browser, cut: list[Record], tmp_path: Path
) -> None:
    """Each run has a row of ticks in the colour of its line, and it is said what they are."""
    with opened(browser, written(tmp_path / "page.html", report_page(cut))) as shown:
        shown.plot("Ping, all runs")
        chart = shown.chart("Ping, all runs")
        assert "tick at the top is a lost ping" in chart.locator(".how").inner_text()

        def ticks() -> dict[str, set[str]]:
            picture = shown.saved("Ping, all runs", "Save as SVG").decode()
            found: dict[str, set[str]] = {}
            for y, tint in re.findall(
                r'<rect x="[\d.]+" y="([\d.]+)" width="1.0" height="8" fill="(.*?)"', picture
            ):
                found.setdefault(tint, set()).add(y)
            return found

        first, second = (
            shown.page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--c{number}')")
            for number in (0, 1)
        )
        assert ticks() == {first: {"34"}, second: {"43"}}
        chart.locator(".entry").first.click()
        assert ticks() == {second: {"34"}}


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a run of 200 s, with pings alone."""
    folder = tmp_path_factory.mktemp("long")
    test = {
        "name": "long",
        "title": "Pings for long",
        "phases": {"idle": "1s", "load": "199s"},
        "hosts": [{"name": "server", "delay": "10ms"}],
        "probes": [{"name": "ping", "kind": "icmp", "host": "server", "period": "100ms"}],
    }
    spec = ScenarioSpec.model_validate({"test": test, "link": "cable-20-8"})
    records = run_all(resolve(spec), world_named("sim"), folder, jobs=1)
    return written(folder / "page.html", report_page(records))


def test_times_late_in_a_run_are_told_apart(browser: Browser, long_page: Path) -> None:
    """On the axis, in a file, in the table and by a screen reader, in a span of a tenth of a second."""
    with opened(browser, long_page) as shown:
        page = shown.page
        shown.plot("Ping")
        chart = shown.chart("Ping")
        chart.get_by_text("Table of what is shown").click()
        chart.locator(".plot").focus()
        for _ in range(11):
            page.keyboard.press("+")
            page.wait_for_timeout(50)
        page.evaluate(
            """() => {
                window.texts = [];
                const draw = CanvasRenderingContext2D.prototype.fillText;
                CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
                    // Other charts are drawn too, when nothing else is done.
                    if (this.canvas.closest("[aria-label=Ping]")) window.texts.push(text);
                    draw.call(this, text, ...rest);
                };
            }"""
        )
        before = page.locator(".bar .shown").inner_text()
        page.keyboard.press("Shift+ArrowRight")
        expect(page.locator(".bar .shown")).not_to_have_text(before)
        first, last = shown.shown()
        assert first > 99
        assert last - first == pytest.approx(200 / 2**11, abs=0.002)
        ticks = [text for text in page.evaluate("window.texts") if text.startswith("100.")]
        assert len(ticks) >= 3
        assert len({*ticks}) == len(ticks)
        saved = [text for text in across(shown.saved("Ping", "Save as SVG")) if text.startswith("100.")]
        assert len({*saved}) == len(saved) >= 3
        rows = chart.locator("table").nth(1).locator("tbody th").all_inner_texts()
        assert len({*rows}) == 20
        said = []
        chart.locator(".plot").focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
            said.append(chart.locator("[aria-live]").inner_text().partition(" seconds")[0])
        assert len({*said}) == 3
        page.keyboard.press("m")
        expect(chart.locator("[aria-live]")).to_contain_text(f"begins at {said[-1]} seconds")


def test_the_most_drops_are_told_as_the_rate_that_is_drawn(
    browser: Browser, rrul: list[Record], tmp_path: Path
) -> None:
    """Of an interval of a tenth of a second, and not packets in a whole second, which are fewer."""
    with opened(browser, written(tmp_path / "page.html", report_page(rrul[:1]))) as shown:
        rates = shown.lines("Dropped packets")
        says = shown.chart("Dropped packets").locator(".shows").inner_text()
    told = re.fullmatch(
        r"The highest rate of drops between two samples was ([\d.]+) packets/s, at “(.*)”\.", says
    )
    assert told is not None
    greatest = {name: np.nanmax(values) for name, (_, values) in rates.items()}
    assert float(told[1]) == pytest.approx(max(greatest.values()), rel=5e-3)
    assert greatest[told[2]] == max(greatest.values())


def test_the_mean_lies_within_the_picture_of_the_spread(
    browser: Browser, cut: list[Record], tmp_path: Path
) -> None:
    """Here few pings that waited for the line take it far beyond what 95 % took."""
    loaded = summarise(cut[0]).latency.loaded
    assert loaded is not None
    assert loaded.mean > loaded.p95 * 1.15
    with opened(browser, written(tmp_path / "page.html", report_page(cut[:1]))) as shown:
        with shown.page.expect_download() as found:
            shown.page.get_by_role("button", name="Save boxes as SVG").click()
        picture = Path(found.value.path()).read_text(encoding="utf-8")
    (width,) = re.findall(r'viewBox="0 0 ([\d.]+) ', picture)
    means = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', picture)]
    assert means == [pytest.approx(12 + (float(width) - 28) / 1.15, abs=1)]


def test_figures_of_all_runs_are_of_their_pings(browser: Browser, rrul: list[Record], tmp_path: Path) -> None:
    """The lines are means of steps; figures are of the pings that these are made of, as what is lost is."""
    with opened(browser, written(tmp_path / "page.html", report_page(rrul))) as shown:
        for title in ("Ping, all runs", "Download, all runs"):
            shown.plot(title)
            shown.chart(title).get_by_text("Table of what is shown").click()
        table = shown.chart("Ping, all runs").locator("table").first
        rows = [one.locator("th, td").all_inner_texts() for one in table.locator("tbody tr").all()]
        assert len(rows) == 2
        for cells, record in zip(rows, rrul, strict=True):
            pings = record.latency.filter(pl.col("probe").is_in([*record.ping_probes]))
            ours = describe(pings["rtt_ns"].drop_nulls() / 1e6)
            assert ours is not None
            assert (int(cells[1]), int(cells[8])) == (ours.count, pings["rtt_ns"].null_count())
            figures = [ours.mean, ours.min, ours.median, ours.p95, ours.p99, ours.max]
            assert [float(one) for one in cells[2:8]] == pytest.approx(figures, rel=5e-3)
        assert table.locator("caption").inner_text().endswith(", ms")
        caption = shown.chart("Download, all runs").locator("caption").first
        assert caption.inner_text().endswith(", Mbit/s, means of 0.200 s")


def test_runs_beside_each_other_have_phases_only_where_all_have_the_same(
    browser: Browser, rrul: list[Record], longer: Record, tmp_path: Path
) -> None:
    """Under the name of another run's phase a run would stand as it is in none."""
    for others, names in ((rrul[1], ["idle", "load", "cooldown"]), (longer, [])):
        page = written(tmp_path / "page.html", report_page([rrul[0], others]))
        with opened(browser, page) as shown:
            for title in ("Ping, all runs", "Download, all runs"):
                picture = shown.saved(title, "Save as SVG").decode()
                assert re.findall(r">(idle|load|cooldown)</text>", picture) == names, title


def test_no_line_goes_through_the_name_of_a_phase(
    browser: Browser, rrul: list[Record], tmp_path: Path
) -> None:
    """They stand above the plot, on the screen and in a file: an axis may end on a tick, or close to one."""
    page = written(tmp_path / "page.html", report_page(rrul[:1]))
    with opened(browser, page) as shown:
        shown.page.evaluate(
            """() => {
                window.lowest = {};
                const draw = CanvasRenderingContext2D.prototype.fillText;
                CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
                    if (this.canvas.closest("[aria-label=Ping]")) {
                        const {actualBoundingBoxDescent: below} = this.measureText(text);
                        const {top} = this.canvas.getBoundingClientRect();
                        window.lowest[text] = (y + below) / devicePixelRatio + top;
                    }
                    return draw.call(this, text, x, y);
                };
            }"""
        )
        for is_log in (False, True):
            shown.plot("Ping")
            shown.page.evaluate("window.lowest = {}")
            shown.chart("Ping").get_by_role("button", name="Log").click()
            top = box_of(shown.chart("Ping").locator(".u-over"))["y"]
            lowest = shown.page.evaluate("window.lowest")
            assert {"idle", "load", "cooldown"} <= lowest.keys()
            assert all(lowest[name] <= top for name in ("idle", "load", "cooldown")), is_log
            picture = shown.saved("Ping", "Save as SVG").decode()
            names = re.findall(r'y="([\d.]+)" font-size="11"[^>]*>(?:idle|load|cooldown)<', picture)
            lines = re.findall(r' y1="([\d.]+)"', picture)
            assert len(names) == 3
            assert max(map(float, names)) + 3 < min(map(float, lines))


def test_nothing_but_rounding_is_nothing(browser: Browser, tmp_path: Path) -> None:
    """Steps in which nothing arrived lie between sums of bytes that are equal but for their last digits."""
    records = weirlab.run("rrul", link="cable-20-8", phases={"load": "5s"}, out=tmp_path / "out")
    with opened(browser, written(tmp_path / "page.html", report_page(records))) as shown:
        for title in ("Download", "Upload"):
            for name, (_, values) in shown.lines(title).items():
                assert ((values == 0) | (values > 1e-6)).all(), (title, name)
    assert number(3.02e-14) == number(-3.02e-14) == "0"
    assert number(0.00123) == "0.00123"
