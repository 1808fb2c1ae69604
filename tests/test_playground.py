"""The playground in a real browser: its rows are those of `weir run` to the bit, and anybody can use it."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import expect

from browsing import PHONE, SCREENS, Opened, box_of, opened, served
from live import weir_in
from test_topologies import PARKING_LOT
from weirlab import _native
from weirlab.api import run_all
from weirlab.record import Record, open_record
from weirlab.record.tables import TABLES
from weirlab.scenario import resolve
from weirlab.scenario.catalogue import load_link, scenario_in
from weirlab.stats import summarise
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

SITE = os.environ.get("WEIR_PLAYGROUND")
"""Environment variable: the folder that `make playground` made of the present source."""

if SITE is None:
    pytest.skip("the playground is compiled for these tests alone: make test-site", allow_module_level=True)

PRESETS = {
    "cable": "cable-20-8",
    "vdsl": "vdsl-100-40",
    "vdsl-shaped": "vdsl-100-40",
    "lte": "lte-verizon",
    "thesis": "thesis-10",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The playground, on a server of files on this machine."""
    with served(Path(str(SITE))) as place:
        yield place


def drawn(shown: Opened) -> Opened:
    """The page when its first run is drawn."""
    shown.page.wait_for_selector("html[data-ready]", state="attached")
    return shown


def scenario_of(shown: Opened) -> str:
    """The scenario that the page shows."""
    return shown.page.get_by_label("The scenario").input_value()


def figures(page: Page) -> list[str]:
    """The figures of the run that is shown: the last column of their table."""
    return page.locator(".results tbody td:last-child").all_inner_texts()


def changed(page: Page, before: list[str]) -> None:
    """Waits until the figures are others, and those of what the controls say."""
    deadline = time.monotonic() + 30
    while figures(page) == before or page.locator("progress").get_attribute("value") != "1":
        assert time.monotonic() < deadline, "the figures stayed as they were"
        page.wait_for_timeout(50)


IN_WORKER = """([text]) => new Promise((resolve, reject) => {
  const worker = new Worker("worker.js", {type: "module"});
  worker.onerror = (event) => reject(new Error(event.message));
  worker.onmessage = ({data}) => {
    if ("ready" in data) worker.postMessage({id: 1, text});
    if ("wrong" in data) resolve({wrong: data.wrong});
    if (!("done" in data)) return;
    const bytes = (column) => {
      let text = "";
      const found = new Uint8Array(column.buffer);
      for (let at = 0; at < found.length; at += 8192) {
        text += String.fromCharCode(...found.subarray(at, at + 8192));
      }
      return btoa(text);
    };
    for (const table of Object.values(data.done.tables)) {
      for (const [name, column] of Object.entries(table.columns)) {
        table.columns[name] = "numbers" in column ? {numbers: bytes(column.numbers)}
          : {words: column.words, codes: bytes(column.codes)};
      }
    }
    worker.terminate();
    resolve(data.done);
  };
})"""
"""Runs a scenario in a worker of the page, and gives all that it says, numbers as base64."""


def in_browser(browser: Browser, address: str, text: str) -> dict[str, Any]:
    """What the simulator in the browser makes of a scenario."""
    with opened(browser, address) as shown:
        drawn(shown)
        return dict(shown.page.evaluate(IN_WORKER, [text]))


def natively(text: str, folder: Path) -> Record:
    """What the same scenario gives outside of the browser."""
    file = folder / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    spec = scenario_in(file)
    assert spec is not None
    (record,) = run_all(resolve(spec), world_named("sim"), folder / "out", jobs=1)
    return record


def values(sent: dict[str, Any]) -> np.ndarray:
    """The values of a column that came from the browser."""
    if "numbers" in sent:
        return np.frombuffer(base64.b64decode(sent["numbers"]), dtype="<f8")
    codes = np.frombuffer(base64.b64decode(sent["codes"]), dtype="<u4")
    return np.array([*sent["words"], ""])[codes] if codes.size else np.array([], dtype=str)


def written(record: Record, table: str) -> pl.DataFrame:
    """The rows of a table in the order in which the run wrote them."""
    parts = sorted((record.path / table).glob("*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts]) if parts else pl.DataFrame()


RRUL = """test = "rrul"
link = "cable-20-8"
queue = ["{queue}"]
cc = "{cc}"
seed = {seed}
phases = {{ idle = "1s", load = "6s", cooldown = "1s" }}
"""

SCENARIOS = {
    "shaped by fq_codel": RRUL.format(queue="htb rate 95% fq_codel", cc="cubic", seed=1),
    "bloated, by BBR": RRUL.format(queue="pfifo_fast", cc="bbr", seed=9_007_199_254_740_993),
    "random drops and marks": RRUL.format(queue="htb rate 90% pie ecn", cc="reno", seed=4)
    + "tcp = { ecn = true }\n",
    "CAKE": RRUL.format(queue="cake bandwidth 90% docsis ack-filter", cc="cubic", seed=7),
    "a recorded line, filled to its mean rate": """test = "udp_flood"
link = "lte-verizon"
queue = ["fq_codel"]
phases = { idle = "1s", load = "6s", cooldown = "1s" }
""",
    "a shaper that finds its rate": """test = "rrul"
link = "vdsl-100-40"
shaper = ["auto"]
queue = ["fq_codel"]
phases = { idle = "2s", load = "5s", cooldown = "0s" }
""",
    "routes": PARKING_LOT.read_text(encoding="utf-8").replace('load = "60s"', 'load = "8s"'),
    "UDP": """test = "udp_flood"
link = "cable-20-8"
phases = { idle = "1s", load = "4s", cooldown = "0s" }
""",
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_rows_are_those_of_a_native_run_to_the_bit(
    browser: Browser, address: str, tmp_path: Path, name: str
) -> None:
    text = SCENARIOS[name]
    record = natively(text, tmp_path)
    theirs = in_browser(browser, address, text)
    assert theirs.get("wrong") is None
    assert theirs["complete"]
    assert theirs["scenario"] == record.manifest.scenario
    assert theirs["packets"] == json.loads((record.path / "manifest.json").read_text())["packets"]
    filled = 0
    for table, sent in theirs["tables"].items():
        ours = written(record, table)
        assert sent["rows"] == ours.height, table
        if ours.height == 0:
            continue
        filled += 1
        assert list(sent["columns"]) == ours.columns
        for column in ours.columns:
            found = values(sent["columns"][column])
            if ours[column].dtype == pl.String:
                assert found.tolist() == ours[column].fill_null("").to_list(), (table, column)
                continue
            if ours[column].dtype.is_integer() and not ours[column].is_null().all():
                rounded = f"{table}.{column}: a number of JavaScript would round it"
                assert ours[column].drop_nulls().cast(pl.UInt64).to_numpy().max() <= EXACT, rounded
            wanted = ours[column].cast(pl.Float64).to_numpy()
            missing = np.isnan(wanted)
            assert np.array_equal(missing, np.isnan(found)), (table, column)
            assert wanted[~missing].tobytes() == found[~missing].tobytes(), (table, column)
    assert filled >= 5
    assert set(theirs["tables"]) == set(TABLES)


EXACT = 2**53
"""Whole numbers up to here are numbers of JavaScript without rounding."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_figures_are_those_of_the_statistics(
    browser: Browser, address: str, tmp_path: Path, name: str
) -> None:
    ours = summarise(natively(SCENARIOS[name], tmp_path)).as_dict()
    theirs = in_browser(browser, address, SCENARIOS[name])["summary"]
    latency = ours["latency"]
    for phase in ("idle", "loaded"):
        assert (theirs["latency"][phase] is None) == (latency[phase] is None)
        for key, value in (theirs["latency"][phase] or {}).items():
            assert value == pytest.approx(latency[phase][key], rel=1e-12), (phase, key)
    for key in ("sent", "lost"):
        assert theirs["latency"][key] == latency[key]
    # A parking lot has no idle phase, and so no increase.
    increase = latency["increase_mean_ms"]
    assert theirs["latency"]["increase_mean_ms"] == (increase and pytest.approx(increase, rel=1e-9))
    for way in ("up", "down"):
        assert (theirs[way] is None) == (ours[way] is None)
        for key, value in (theirs[way] or {}).items():
            assert value == pytest.approx(ours[way][key], rel=1e-12), (way, key)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_the_shipped_link(browser: Browser, address: str, tmp_path: Path, preset: str) -> None:
    with opened(browser, f"{address}#preset={preset}") as shown:
        text = scenario_of(drawn(shown))
    file = tmp_path / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    spec = scenario_in(file)
    assert spec is not None
    (run,) = resolve(spec)
    shipped = load_link(PRESETS[preset])
    for way in ("up", "down"):
        ours, theirs = getattr(run.link, way), getattr(shipped, way)
        assert [hop.model_dump() for hop in ours] == [hop.model_dump() for hop in theirs]


def test_what_is_copied_runs_on_the_command_line_with_the_same_figures(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    context: dict[str, Any] = {"permissions": ["clipboard-read", "clipboard-write"]}
    link = f"{address}#preset=cable&load=3&down=31.5&downloads=3&queue=htb+rate+90%25+fq_codel"
    with opened(browser, link, **context) as shown:
        page = drawn(shown).page
        page.get_by_role("button", name="Copy as scenario").click()
        expect(page.get_by_text("The scenario is copied.")).to_be_visible()
        scenario = page.evaluate("navigator.clipboard.readText()")
        assert scenario == scenario_of(shown)
        page.get_by_role("button", name="Copy as command").click()
        expect(page.get_by_text("The command is copied.")).to_be_visible()
        command = str(page.evaluate("navigator.clipboard.readText()"))
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text("The link is copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == page.url
        cells = figures(page)
    head, _, rest = command.partition("<<'END'\n")
    text, last = rest.split("END\n")
    assert shlex.split(head) == ["cat", ">", "playground.toml"]
    assert text == scenario
    (tmp_path / "playground.toml").write_text(text, encoding="utf-8")
    words = shlex.split(last)
    assert words == ["weir", "run", "playground.toml"]
    done = weir_in(tmp_path, *words[1:], "--out", "out", "--no-charts")
    assert done.returncode == 0, done.stderr
    (manifest,) = (tmp_path / "out").rglob("manifest.json")
    ours = summarise(open_record(manifest.parent))
    assert ours.down is not None
    assert ours.latency.loaded is not None
    assert ours.down.goodput_mbps is not None
    assert float(cells[0]) == pytest.approx(ours.down.goodput_mbps, rel=5e-3)
    assert float(cells[3]) == pytest.approx(ours.latency.loaded.median, rel=5e-3)


def test_dragging_draws_anew_and_the_address_keeps_what_was_chosen(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#preset=cable&load=2") as shown:
        page = drawn(shown).page
        before = figures(page)
        slider = page.get_by_role("slider", name="Download rate, Mbit/s")
        box = box_of(slider)
        page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + box["height"] / 2)
        page.mouse.down()
        for share in (0.5, 0.45, 0.4, 0.35):
            page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        page.mouse.up()
        changed(page, before)
        rate = float(page.get_by_label("Download rate, Mbit/s", exact=True).input_value())
        assert 1 < rate < 19
        assert f"down={rate:g}" in page.url
        # Who opens the address has the same scenario.
        scenario = scenario_of(shown)
        page.reload()
        assert scenario_of(drawn(shown)) == scenario


def test_a_line_whose_numbers_were_changed_has_not_its_presets_name(browser: Browser, address: str) -> None:
    named = {
        "preset=cable": ("Cable 20/8", "Cable 20/8, the line's own queue"),
        "preset=cable&down=100": (
            "Cable 20/8 with download 100 Mbit/s",
            "Cable 20/8 with download 100 Mbit/s, the line's own queue",
        ),
        "preset=lte&upBuffer=50&cc=reno": (
            "LTE, as recorded with upload buffer 50 packets",
            "LTE, as recorded with upload buffer 50 packets, the line's own queue, reno",
        ),
        "preset=vdsl-shaped&queue=default&downloads=2&uploads=0&ecn=true&seed=3": (
            "VDSL-100",
            "VDSL-100, the line's own queue, 2 downloads, 0 uploads, ECN, seed 3",
        ),
    }
    for link, (title, name) in named.items():
        with opened(browser, f"{address}#{link}") as shown:
            assert f"title = {json.dumps(title)}\n" in scenario_of(drawn(shown)), link
            assert shown.page.locator(".results thead th").last.inner_text() == name


def test_what_is_kept_to_compare_tells_what_differs(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#preset=cable&load=2") as shown:
        page = drawn(shown).page
        page.get_by_role("button", name="Keep these figures").click()
        before = figures(page)
        rate = page.get_by_label("Download rate, Mbit/s", exact=True)
        rate.fill("100")
        rate.press("Enter")
        changed(page, before)
        names = page.locator(".results thead th").all_inner_texts()[-2:]
        assert names == [
            "Cable 20/8, the line's own queue, 2 s of load",
            "Cable 20/8 with download 100 Mbit/s, the line's own queue, 2 s of load",
        ]


def test_without_a_load_nothing_is_said_to_be_under_load(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#preset=vdsl&downloads=0&uploads=0&load=2") as shown:
        page = drawn(shown).page
        answer = page.locator(".answer").inner_text()
        assert answer.startswith("Nothing is loaded: a ping takes 9.")
        idle, median, most, increase = figures(page)[2:6]
        assert float(idle) == pytest.approx(9, abs=0.1)
        assert [median, most, increase] == ["-", "-", "-"]
        ping = page.get_by_role("region", name="Ping").get_by_role("img")
        assert "without load" in str(ping.get_attribute("aria-label"))


def pasted(shown: Opened, text: str) -> None:
    """Runs a text, once what the controls say is drawn."""
    page = drawn(shown).page
    page.get_by_text("The scenario", exact=True).click()
    page.get_by_label("The scenario").fill(text)
    page.get_by_role("button", name="Run this text").click()


def test_a_scenario_without_pings_is_not_told_as_stopped(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#load=1") as shown:
        pasted(shown, 'test = "voip"\nlink = "cable-20-8"\nphases = { load = "2s" }\n')
        expect(shown.page.locator(".answer")).to_have_text(
            "The scenario sends no pings: how long one takes under load is not known."
        )
        assert figures(shown.page)[6] == "0 of 0"
        ping = shown.page.locator(".plot").first
        assert ping.get_attribute("aria-label") == "Ping. No pings are sent."
        shown.page.get_by_label("The scenario").fill(
            'link = "cable-20-8"\n[test]\nname = "none"\ntitle = "None"\nphases = { load = "1s" }\n'
        )
        shown.page.get_by_role("button", name="Run this text").click()
        expect(shown.page.locator(".answer")).to_have_text("Nothing is loaded: the scenario sends no pings.")


def test_one_median_is_not_told_as_several(browser: Browser, address: str) -> None:
    """Pages are loaded from the start on, so that there are no pings of an idle line."""
    with opened(browser, f"{address}#load=1") as shown:
        pasted(shown, 'test = "http"\nlink = "cable-20-8"\nphases = { load = "5s" }\n')
        expect(shown.page.locator(".answer")).to_contain_text(" ms (median).")


def test_faults_of_a_text_stand_below_each_other(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#load=1") as shown:
        pasted(shown, "")
        expect(shown.page.get_by_role("alert")).to_be_visible()
        first, *others = shown.page.get_by_role("alert").inner_text().splitlines()
        assert first == "scenario has 2 faults:"
        assert [line.strip().split(": ")[1] for line in others] == ["test", "link"]


def test_what_a_text_asserts_is_said_not_to_be_judged(browser: Browser, address: str) -> None:
    text = 'test = "rrul"\nlink = "cable-20-8"\nphases = { idle = "1s", load = "1s", cooldown = "0s" }\n'
    with opened(browser, f"{address}#load=1") as shown:
        pasted(shown, f'{text}assert = ["latency.p99 < 1ms"]\n')
        says = shown.page.locator(".results.first [role=status]")
        expect(says).to_contain_text("What it asserts is not judged here: weir run does that.")
        shown.page.get_by_label("The scenario").fill(text)
        shown.page.get_by_role("button", name="Run this text").click()
        expect(says).not_to_contain_text("asserts")


def test_drops_are_told_as_those_of_the_whole_run(browser: Browser, address: str) -> None:
    """Flows that begin long before the load drop most packets there, and the caption says load."""
    text = (
        'link = "cable-20-8"\nqueue = ["bfifo limit 60000"]\n'
        '[test]\nname = "early"\ntitle = "Early"\nphases = { idle = "9s", load = "1s" }\n'
        '[[test.probes]]\nname = "ping"\nkind = "icmp"\n'
        '[[test.flows]]\nname = "early"\ndirection = "down"\nstart = "0s"\ncount = 8\n'
    )
    with opened(browser, f"{address}#load=1") as shown:
        pasted(shown, text)
        expect(shown.page.locator(".results thead th").last).to_have_text("the text as written")
        told = dict(
            zip(shown.page.locator(".results tbody th").all_inner_texts(), figures(shown.page), strict=True)
        )
        assert told["dropped in the whole run, download"].endswith(" %")
        assert told["dropped in the whole run, upload"] == "-"


def test_before_the_first_run_is_done_it_is_said_to_be_under_way(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#preset=vdsl&load=60&down=1000&up=1000&downloads=32&uploads=32") as shown:
        page = shown.page
        expect(page.locator("progress")).not_to_have_attribute("value", "0")
        expect(page.locator(".answer")).to_have_text("The first run is under way.")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".answer")).to_contain_text("a ping takes")


def test_a_number_that_is_none_leaves_the_one_before(browser: Browser, address: str) -> None:
    """In a link that of the preset, in a field that which the run has."""
    with opened(browser, f"{address}#preset=cable&down=&up=+&load=2") as shown:
        page = drawn(shown).page
        assert 'rate = "20000000bit"' in scenario_of(shown)
        assert 'rate = "8000000bit"' in scenario_of(shown)
        rate = page.get_by_label("Download rate, Mbit/s", exact=True)
        assert rate.input_value() == "20"
        rate.fill("30")
        rate.press("Enter")
        rate.fill("")
        rate.press("Tab")
        assert rate.input_value() == "30"
        assert 'rate = "30000000bit"' in scenario_of(shown)


def test_a_long_run_can_be_stopped_and_shows_what_it_has(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#preset=vdsl&load=60&down=1000&up=1000&downloads=32&uploads=32") as shown:
        page = shown.page
        # Waiting by a function of the page would be refused by its policy.
        expect(page.locator("progress")).not_to_have_attribute("value", "0")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("It was stopped after")).to_be_visible()
        seconds = float(page.get_by_text("It was stopped after").inner_text().rsplit(" ", 2)[1])
        assert 0 < seconds < 63


def test_the_keyboard_is_enough(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#preset=cable&load=2") as shown:
        page = drawn(shown).page
        before = figures(page)
        names = []
        for _ in range(40):
            page.keyboard.press("Tab")
            names.append(
                page.evaluate(
                    "document.activeElement.getAttribute('aria-label') ?? document.activeElement.id"
                )
            )
            if names[-1] == "Upload rate, Mbit/s: slider":
                break
        assert names[-1] == "Upload rate, Mbit/s: slider", names
        for _ in range(5):
            page.keyboard.press("PageDown")
        changed(page, before)


def test_arrow_keys_move_a_slider_also_where_its_places_lie_close(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#preset=cable&load=1&upBuffer=3") as shown:
        page = drawn(shown).page
        buffer = page.get_by_label("Buffer, upload, kB", exact=True)
        page.get_by_label("Buffer, upload, kB: slider").focus()
        for key, values in (("ArrowRight", range(4, 12)), ("ArrowLeft", range(10, 2, -1))):
            for value in values:
                page.keyboard.press(key)
                assert buffer.input_value() == str(value)


def test_a_browser_that_refuses_to_write_the_address_stops_nothing(browser: Browser, address: str) -> None:
    """Browsers let a page write it so many times in so many seconds."""
    with opened(
        browser, f"{address}#preset=cable&load=1", permissions=["clipboard-read", "clipboard-write"]
    ) as shown:
        page = drawn(shown).page
        before = figures(page)
        page.evaluate(
            """() => {
                window.refuses = true;
                const kept = history.replaceState;
                history.replaceState = function (...said) {
                    if (window.refuses) throw new DOMException("The operation is insecure.", "SecurityError");
                    kept.apply(this, said);
                };
            }"""
        )
        rate = page.get_by_label("Download rate, Mbit/s", exact=True)
        rate.fill("40")
        rate.press("Enter")
        changed(page, before)
        assert 'rate = "40000000bit"' in scenario_of(shown)
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text("The link is copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == f"{address}#preset=cable&load=1&down=40"
        page.evaluate("window.refuses = false")
        expect(page).to_have_url(f"{address}#preset=cable&load=1&down=40")


def test_where_the_page_may_not_copy_it_says_where_to_look(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#load=1") as shown:
        page = drawn(shown).page
        page.evaluate(
            "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not here')); }"
        )
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text("the address of the page is the link")).to_be_visible()
        page.get_by_role("button", name="Copy as command").click()
        expect(page.get_by_text("its text stands below, under \u201cThe scenario\u201d")).to_be_visible()


def test_a_mistake_that_was_mended_is_told_no_longer(browser: Browser, address: str) -> None:
    """Not only when the next run has come to its end, which may take long."""
    link = f"{address}#preset=vdsl&load=60&down=1000&up=1000&downloads=32&uploads=32&queue=fq_codle"
    with opened(browser, link) as shown:
        page = shown.page
        expect(page.get_by_role("alert")).to_contain_text("fq_codle")
        page.get_by_label("Queue in the words of tc").fill("fq_codel")
        expect(page.get_by_role("alert")).to_be_hidden()
        assert page.locator("html[data-ready]").count() == 0
        page.get_by_role("button", name="Stop").click()
        drawn(shown)


@pytest.mark.parametrize("size", [(844, 390), (640, 450), (320, 256)])
def test_a_low_window_can_be_scrolled_to_everything(
    browser: Browser, address: str, size: tuple[int, int]
) -> None:
    """A phone held across, a desk at 200 %, and at 400 %."""
    width, height = size
    with opened(browser, f"{address}#load=1", viewport={"width": width, "height": height}) as shown:
        page = drawn(shown).page
        page.get_by_label("Seed", exact=True).evaluate("one => one.scrollIntoView({ block: 'center' })")
        seen = page.locator(".results.first").evaluate("one => one.getBoundingClientRect().bottom")
        assert seen <= 0, f"{seen} px of the window are covered"
    with opened(browser, f"{address}#load=1", viewport=PHONE) as shown:
        page = drawn(shown).page
        page.get_by_label("Seed", exact=True).evaluate("one => one.scrollIntoView({ block: 'end' })")
        place = box_of(page.locator(".results.first"))
        assert place["y"] == 0
        assert place["height"] < 0.6 * PHONE["height"]


def test_print_has_all_controls_and_whole_charts(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#load=1", color_scheme="dark") as shown:
        page = drawn(shown).page
        page.emulate_media(media="print", color_scheme="dark")
        page.set_viewport_size({"width": 718, "height": 1000})
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        widths = page.locator(".plot canvas").evaluate_all(
            "found => found.map(one => [one.clientWidth, one.parentElement.clientWidth])"
        )
        assert len(widths) == 4
        assert all(300 < drawn_px <= 680 for drawn_px, _ in widths), widths
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator(".results.first").evaluate("one => getComputedStyle(one).position") == "static"
        assert not page.get_by_role("button", name="Stop").is_visible()
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")


def test_a_queue_in_the_words_of_tc_is_taken_or_refused_with_its_reason(
    browser: Browser, address: str
) -> None:
    with opened(browser, f"{address}#preset=cable&load=2") as shown:
        page = drawn(shown).page
        page.get_by_label("Queue in the words of tc").fill("htb rate 90% fq_codel limit 50")
        expect(page.locator(".results thead th").last).to_contain_text("fq_codel limit 50")
        page.get_by_label("Queue in the words of tc").fill("fq_codle limit 50")
        fault = page.get_by_role("alert")
        expect(fault).to_contain_text("fq_codle")
        expect(fault).to_contain_text("fq_codel")
        page.get_by_label("Queue in the words of tc").fill("fq_codel limit 50")
        expect(fault).to_be_hidden()


def test_a_scenario_that_is_pasted_is_drawn_with_all_its_flows(browser: Browser, address: str) -> None:
    """That of three bottlenecks in a row, whose servers are reached by routes; then one with a mistake."""
    text = SCENARIOS["routes"]
    with opened(browser, f"{address}#load=1", permissions=["clipboard-read", "clipboard-write"]) as shown:
        page = drawn(shown).page
        page.get_by_text("The scenario", exact=True).click()
        page.get_by_label("The scenario").fill(text)
        page.get_by_role("button", name="Run this text").click()
        expect(page.locator(".results thead th").last).to_have_text("the text as written")
        drawn_flows = page.get_by_role("region", name="Upload").locator(".entry")
        expect(drawn_flows).to_have_text(["long", "cross a", "cross b", "cross c", "mean of 4"])
        pings = page.get_by_role("region", name="Ping").locator(".entry")
        expect(pings).to_have_text(["ping end", "ping exit b"])
        page.get_by_role("button", name="Copy as scenario").click()
        expect(page.get_by_text("The scenario is copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == text
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text("It has what the controls say, and not the text below.")).to_be_visible()
        page.get_by_label("The scenario").fill(text.replace('route = "b"', 'route = "d"'))
        page.get_by_role("button", name="Run this text").click()
        expect(page.get_by_role("alert")).to_contain_text("d")
        expect(page.get_by_text("What is shown is the last run that went well.")).to_be_visible()
        # A control puts its own scenario back.
        seed = page.get_by_label("Seed", exact=True)
        seed.fill("2")
        seed.press("Enter")
        expect(page.get_by_role("alert")).to_be_hidden()
        assert "seed = 2" in scenario_of(shown)


def test_what_an_address_says_wrongly_is_as_in_its_preset(browser: Browser, address: str) -> None:
    """Also what the page has no control for on that line, and so nobody could take back."""
    with opened(browser, f"{address}#preset=thesis&load=1&queue=&cc=+&uploads=3&up=7") as shown:
        text = scenario_of(drawn(shown))
        assert 'queue = ["default"]' in text
        assert 'cc = "reno"' in text
        assert 'direction = "up"' not in text
        heading = shown.page.locator(".results thead th").last
        expect(heading).to_have_text("The thesis' bottleneck, the line's own queue, 1 s of load")


def test_hostile_addresses_harm_nothing(browser: Browser, address: str) -> None:
    hostile = '%22%5D%0A%5B%5Bx%5D%5D%0AEND%0Aecho <img src=x onerror="window.harmed=1">'
    link = f"{address}#preset=toString&down=1e999&up=-5&load=NaN&downloads=1e9&queue={hostile}&cc=__proto__"
    with opened(browser, link) as shown:
        page = shown.page
        expect(page.get_by_role("alert")).to_be_visible()
        text = scenario_of(shown)
        assert "\nEND" not in text
        assert page.evaluate("window.harmed") is None
        assert 'rate = "100000bit"' in text
        assert "count = 32" in text
        assert 'load = "15s"' in text


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
def test_nobody_is_kept_out(browser: Browser, address: str, viewport: Any, scheme: Any) -> None:
    link = f"{address}#preset=vdsl-shaped&load=2"
    with opened(browser, link, viewport=viewport, color_scheme=scheme) as shown:
        drawn(shown)
        shown.page.get_by_text("The scenario", exact=True).click()
        assert shown.barriers() == []
        if viewport == PHONE:
            wide = shown.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{wide} px beyond the screen"


def test_congestion_controls_are_those_of_the_simulator(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}#load=1") as shown:
        offered = drawn(shown).page.locator("#cc option").all_inner_texts()
    assert offered == [one["name"] for one in _native.congestion_controls()]


def test_the_module_is_small() -> None:
    size = len(gzip.compress(Path(str(SITE), "weir_bg.wasm").read_bytes(), 9))
    assert size < 700_000, f"{size} bytes with gzip"


def test_the_licences_of_what_it_is_compiled_with_are_a_click_away(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        link = drawn(shown).page.get_by_role("link", name="licences of what")
        # A page of text alone would ask for the server's icon, and there is none.
        text = link.evaluate("link => fetch(link.href).then(answer => answer.text())")
    for linked in ("serde_json 1.", "wasm-bindgen 0.", "Rust's standard library"):
        assert linked in text
    assert "serde_derive" not in text, "what runs only while it is compiled is not within"
