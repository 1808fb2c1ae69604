"""Makes the pictures of pages in docs/images anew, from runs of this code: `make screenshots`.

That of the playground needs its build, `make playground`, and is left as it is without one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from playwright.sync_api import expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
PLAYGROUND = ROOT / "out" / "playground"
WEIR = [sys.executable, "-m", "weirlab"]
PLAN = """\
test = "rrul"
link = "cable-20-8"
phases = { idle = "2s", load = "10s", cooldown = "1s" }

[sweep]
repeat = 5

[sweep.axes]
queue = ["pfifo_fast", "htb rate 95% fq_codel", "cake bandwidth 95%"]
rate = { key = ["link.down.cmts.rate"], from = "10mbit", to = "100mbit", steps = 5, scale = "log" }
"""
"""Rates of a line under three queues."""

PHONE = {"width": 390, "height": 844}


def main() -> None:
    """Runs what the pictures show, and takes them; `--on-line HOST` those that need a line to a server."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("there is no Chromium: make browser")
    with sync_playwright() as driver, tempfile.TemporaryDirectory(prefix="weir-") as folder:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        if sys.argv[1:2] == ["--on-line"]:
            serve_page(browser, f"http://{sys.argv[2]}:8080/")
            shaper_page(browser, sys.argv[2], folder)
        else:
            report_pages(browser, Path(folder))
            application_pages(browser, Path(folder))
            playground_page(browser)
        browser.close()
    if not sys.argv[1:]:
        # At the client's end of a line, whose other end serves.
        line = ["lab", "exec", "--link", "cable-20-8", "--server-command", " ".join([*WEIR, "serve"])]
        own = [sys.executable, __file__, "--on-line", "server"]
        subprocess.run([*WEIR, *line, "--", *own], check=True)


def report_pages(browser: Browser, folder: Path) -> None:
    """Two runs in one report: zoomed by hand, and on a phone."""
    queues = ["--queue", "pfifo_fast", "--queue", "htb rate 95% fq_codel"]
    words = ["run", "rrul", "--link", "cable-20-8", *queues, "--out", str(folder / "runs"), "--no-charts"]
    subprocess.run([*WEIR, *words], check=True, stdout=subprocess.DEVNULL)
    report = folder / "report.html"
    subprocess.run(
        [*WEIR, "report", str(folder / "runs"), "-o", str(report)], check=True, stdout=subprocess.DEVNULL
    )
    page = opened(browser, report.as_uri(), {"width": 1000, "height": 1290})
    page.wait_for_selector("html[data-ready]", state="attached")
    page.locator(".u-over").first.wait_for()
    place = page.locator(".u-over").first.bounding_box()
    if place is None:
        sys.exit("the page has no chart")
    for x, action in ((0.05, page.mouse.down), (0.4, page.mouse.up)):
        page.mouse.move(place["x"] + x * place["width"], place["y"] + 60, steps=5)
        action()
    page.wait_for_timeout(500)
    page.mouse.move(place["x"] + 0.5 * place["width"], place["y"] + 60)
    page.wait_for_timeout(500)
    taken(page, "viewer-compare")
    page = opened(browser, report.as_uri(), PHONE, "dark")
    page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate("document.querySelector('section.chart').scrollIntoView()")
    page.wait_for_timeout(500)
    taken(page, "viewer-phone")


def application_pages(browser: Browser, folder: Path) -> None:
    """The records of a folder, and the form of a new run."""
    with running("ui", str(folder)) as process:
        link = cast("IO[str]", process.stdout).readline().strip()
        page = opened(browser, link, {"width": 1200, "height": 660})
        page.get_by_label("Choose runs/01-pfifo-fast").check()
        page.get_by_label("Choose runs/02-htb-rate-95-fq-codel").check()
        taken(page, "ui-records")
        page = opened(browser, f"{link}new", {"width": 1000, "height": 900})
        page.locator("[name=queue]").first.fill("fq_codel")
        page.locator("[name=queue]").nth(1).fill("htb rate 95% fq_codel")
        page.locator("[name=load]").fill("30s")
        expect(page.locator("#command")).to_contain_text("30s")
        taken(page, "ui-new")
        plan = folder / "rates.toml"
        plan.write_text(PLAN, encoding="utf-8")
        subprocess.run([*WEIR, "sweep", str(plan)], check=True, stdout=subprocess.DEVNULL)
        drawn = "kind=lines&x=rate_mbps&by=queue"
        page = opened(browser, f"{link}sweep?store=rates.sweep&{drawn}", {"width": 1000, "height": 1100})
        page.wait_for_load_state()
        taken(page, "ui-sweeps")


def playground_page(browser: Browser) -> None:
    """The playground with the line that it begins with."""
    if not PLAYGROUND.exists():
        print("the picture of the playground stays: make playground")
        return
    handler = partial(SimpleHTTPRequestHandler, directory=str(PLAYGROUND))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            page = opened(
                browser, f"http://127.0.0.1:{server.server_address[1]}/", {"width": 1200, "height": 900}
            )
            page.get_by_text("packets in").wait_for()
            page.wait_for_timeout(500)
            taken(page, "playground")
        finally:
            server.shutdown()
            thread.join()


def shaper_page(browser: Browser, host: str, folder: str) -> None:
    """A shaper of a line that is full both ways, watched for 40 s."""
    load = [
        "run",
        "rrul",
        "--world",
        "net",
        "--host",
        host,
        "--load",
        "60s",
        "--out",
        f"{folder}/net",
        "--no-charts",
    ]
    with running("shape", "weir0"), running(*load), running("ui", folder) as process:
        link = cast("IO[str]", process.stdout).readline().strip()
        page = opened(browser, f"{link}shapers", {"width": 1000, "height": 1260})
        page.get_by_role("heading", name="weir0").wait_for()
        page.wait_for_timeout(40_000)
        taken(page, "ui-shapers")


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A command, until the pictures of it are taken."""
    with subprocess.Popen([*WEIR, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def serve_page(browser: Browser, address: str) -> None:
    """A test from the page of `weir serve`."""
    page = opened(browser, address, {"width": 1000, "height": 1250})
    page.get_by_role("button", name="Start").click()
    page.get_by_text("Done.").wait_for(timeout=90_000)
    page.wait_for_timeout(500)
    taken(page, "serve-page")


def opened(browser: Browser, url: str, viewport: dict[str, int], scheme: str = "light") -> Page:
    """A page of that size."""
    page = browser.new_page(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(url)
    return page


def taken(page: Page, name: str) -> None:
    """Keeps what the page shows as a picture of the documentation."""
    page.screenshot(path=IMAGES / f"{name}.png")
    print(IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
