"""A real browser for tests: a page, what it asks for, what goes wrong on it, and whom it keeps out."""

from __future__ import annotations

import csv
import http.server
import io
import re
import shutil
import threading
import xml.etree.ElementTree as ET
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import (
        Browser,
        ConsoleMessage,
        Dialog,
        FloatRect,
        Locator,
        Page,
        Playwright,
        Request,
    )

AXE = Path(__file__).parent.parent / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1200, "height": 900}

SCREENS = [
    pytest.param(viewport, scheme, id=f"{name}-{scheme}")
    for name, viewport, scheme in (
        ("desk", DESK, "light"),
        ("phone", PHONE, "light"),
        ("phone", PHONE, "dark"),
    )
]
"""Sizes and colours in which every page is checked."""

WAIT_MS = 30_000
"""How long the browser may take for a step: far longer than it does on a busy machine."""


@contextmanager
def started(driver: Playwright, programs: Sequence[str]) -> Iterator[Browser]:
    """The first of these browsers that is there, to be seen by nobody; without one the test is skipped."""
    program = next(filter(None, map(shutil.which, programs)), None)
    if program is None:
        pytest.skip("there is no Chromium: make browser")
    browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
    try:
        yield browser
    finally:
        browser.close()


WHOLE = ("chromium", "chromium-browser")
"""Chromium with all that belongs to its windows, which it draws even where nobody sees them."""

PAGES_ONLY = ("chromium-headless-shell", *WHOLE)
"""First the same engine without windows, where a page takes less of the processor. It loses touches."""


@dataclass
class Opened:
    """A page, what it asked for beyond itself, and what went wrong on it.

    Attributes:
        page: the page.
        foreign: addresses beyond itself that it asked for.
        errors: what its console said that went wrong.
        provoked: words of errors that the test brings about itself, which may come as late as they like.
    """

    page: Page
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    provoked: str | None = None

    def chart(self, title: str) -> Any:
        """The chart of that title."""
        return self.page.locator(f'section.chart[aria-label="{title}"]')

    def plot(self, title: str) -> Any:
        """Where that chart draws its lines, drawn and in sight."""
        place = self.chart(title).locator(".u-over")
        self.chart(title).scroll_into_view_if_needed()
        place.wait_for()
        return place

    def shown(self) -> tuple[float, float]:
        """The span of time that the charts show, in seconds."""
        text = self.page.locator(".bar .shown").inner_text()
        first, last = re.findall(r"[\d.]+", text)
        return float(first), float(last)

    def barriers(self) -> list[tuple[str, list[str]]]:
        """What keeps somebody out, by axe: contrast, names, roles, order of headings."""
        if not AXE.exists():
            pytest.skip("there is no axe: make browser")
        # A devtools call, which the page's own policy does not forbid.
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found["violations"]]

    def unfold(self) -> None:
        """Opens all that can be unfolded, also what comes to be when it is, and waits for a chart's table."""
        closed = self.page.locator("details:not([open])")
        for _ in range(4):
            closed.evaluate_all("found => found.forEach(one => one.open = true)")
            if not closed.count():
                break
        self.page.locator(".chart details table").first.wait_for()

    def saved(self, title: str, name: str) -> bytes:
        """The file that a button of a chart saves."""
        with self.page.expect_download(timeout=WAIT_MS) as found:
            self.chart(title).get_by_role("button", name=name).click()
        return Path(found.value.path()).read_bytes()

    def lines(self, title: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Times and values of each line of a chart, from its CSV; NaN where there is none."""
        rows = list(csv.reader(io.StringIO(self.saved(title, "Save as CSV").decode())))[1:]
        found: dict[str, list[tuple[float, float]]] = {}
        for name, time, value in rows:
            found.setdefault(name, []).append((float(time), float(value or "nan")))
        return {name: tuple(np.array(pairs).T) for name, pairs in found.items()}


def box_of(place: Locator) -> FloatRect:
    """Where something is on the page, once it is. A chart that is drawn anew is nowhere for a moment."""
    end = monotonic() + WAIT_MS / 1000
    while (box := place.bounding_box()) is None:
        assert monotonic() < end, f"{place} is nowhere on the page"
    return box


def across(picture: bytes) -> list[str]:
    """The words in the middle of a saved picture: the numbers below its axis and what they are."""
    words = ET.fromstring(picture).findall("{http://www.w3.org/2000/svg}text")  # noqa: S314 - our own page made it
    return ["".join(one.itertext()) for one in words if one.get("text-anchor") == "middle"]


def written(file: Path, text: str) -> Path:
    """The file of a page, with this text in it."""
    file.write_text(text, encoding="utf-8")
    return file


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which the files of a folder are, on a server on this machine."""
    handler = partial(_Quiet, directory=str(folder.resolve()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
        """Nothing."""


@contextmanager
def opened(
    browser: Browser, place: Path | str, *, within: str | None = None, **context: Any
) -> Iterator[Opened]:
    """The page in that file, with its charts drawn; what it asks for beyond itself, or `within`, fails."""
    context.setdefault("viewport", DESK)
    url = place if isinstance(place, str) else place.as_uri()
    own = within or url.partition("#")[0]
    one = browser.new_context(offline=url.startswith("file:"), accept_downloads=True, **context)
    one.set_default_timeout(WAIT_MS)
    page = one.new_page()
    found = Opened(page)

    def asked(request: Request) -> None:
        if not request.url.startswith((own, "data:", "blob:")):
            found.foreign.append(request.url)

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not (found.provoked and found.provoked in message.text):
            found.errors.append(message.text)

    def stopped(dialog: Dialog) -> None:
        found.errors.append(dialog.message)
        dialog.dismiss()

    page.on("request", asked)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("console", said)
    page.on("dialog", stopped)
    page.goto(url)
    if isinstance(place, Path):
        page.wait_for_selector("html[data-ready]", state="attached")
    yield found
    one.close()
    assert found.foreign == []
    assert found.errors == []
