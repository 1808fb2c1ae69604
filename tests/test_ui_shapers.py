"""The shapers of this machine in `weir ui`: they come, change, end, stand still, and lie."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import expect

from browsing import SCREENS, WAIT_MS, opened
from local_ui import PATIENCE_S, Served, begun, ended
from weirlab.shape.watching import shaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.realtime

MARKUP = "</script><img src=x onerror=\"window.harmed = 'yes'\"><b>bold</b>"

DEVICE = f"lo{secrets.token_hex(4)}"
"""The device of this test run: all runs on a machine share the names of control sockets."""

SOCKET = f"weir-shape-{DEVICE}"

COUNTS = {
    "bytes": 7,
    "departed_bytes": 7,
    "backlog_packets": 4,
    "backlog_bytes": 6000,
    "dropped": 375,
    "marked": 0,
    "sojourn_ns": 7_100_000,
}


class Fake:
    """A shaper of `DEVICE` that says what it is told to, of which the time goes on by itself."""

    def __init__(self, **changed: Any) -> None:
        """Says at first what a shaper with an upload that is loaded says."""
        side = {"state": "loaded", "reason": "clear", "value": 128.0, "unit": "ms", "counts": COUNTS}
        self.view: dict[str, Any] = {
            "t_ns": 0,
            "pid": 4321,
            "device": DEVICE,
            "open": False,
            "sides": [
                {**side, "rate_bps": 8_490_000, "load_bps": 7_130_000},
                {**side, "rate_bps": None, "load_bps": 440_000, "state": "backing_off"},
            ],
            "delays": [[0, 17_100_000, 0], [0, 16_000_000, 0], [0, 90_000_000, 0]],
            "reflectors": ["192.0.2.1"],
            "trouble": None,
            "late_ns": 0,
            "missed": 0,
            "warnings": [],
        } | changed
        self.bytes: bytes | None = None
        self.asked: list[str] = []

    def answer(self, client: socket.socket) -> None:
        """Answers what a client asks."""
        with client, client.makefile() as said_by_client:
            self.asked.append(said_by_client.readline())
            self.view["t_ns"] += 250_000_000
            said = json.dumps(self.view).encode() if self.bytes is None else self.bytes
            client.sendall(said + b"\n")

    @contextmanager
    def running(self, name: str = SOCKET) -> Iterator[None]:
        """Answers whoever asks."""
        with listening(name) as listener:

            def serve() -> None:
                while True:
                    try:
                        client, _ = listener.accept()
                    except OSError:
                        return
                    try:
                        self.answer(client)
                    except OSError:
                        # Whoever asked has heard enough.
                        continue

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            try:
                yield
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()


@contextmanager
def listening(name: str) -> Iterator[socket.socket]:
    """A socket that takes nobody in by itself."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{name}")
        listener.listen(1)
        yield listener


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield (one := begun(tmp_path_factory.mktemp("ui"), DEVICE))
    ended(one)


def asked(served: Served, device: str = DEVICE) -> dict[str, Any]:
    status, content, _ = served.ask(f"/shaper/state?device={device}")
    assert status == 200
    found: dict[str, Any] = json.loads(content)
    return found


def test_shapers_are_the_sockets_that_listen_by_the_name_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    there = socket.if_nameindex()
    monkeypatch.setattr(socket, "if_nameindex", lambda: [*there, (0, DEVICE)])
    before = shaped()
    assert DEVICE not in before
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as guard:
        guard.bind(f"\0{SOCKET}")
        assert shaped() == before
    with listening(f"weir-shape-guard-{DEVICE}"), listening(f"{SOCKET}-nothing"):
        assert shaped() == before
    with listening(SOCKET):
        assert shaped() == sorted([*before, DEVICE])
    assert shaped() == before


def test_what_a_shaper_says_is_the_table_of_the_terminal_and_the_numbers_of_the_charts(
    served: Served,
) -> None:
    fake = Fake()
    with fake.running():
        assert DEVICE in json.loads(served.ask("/shapers/state")[1])["devices"]
        answer = asked(served)
    assert set(fake.asked) == {"status\n"}, "it is looked at, and nothing else"
    assert answer["commands"] == [f"weir shape status {DEVICE}", f"weir shape stop {DEVICE}"]
    seen = answer["seen"]
    assert seen["title"] == f"{DEVICE}, 0 s, delay 17.1 ms"
    assert seen["headings"][:3] == ["side", "rate, Mbit/s", "used, Mbit/s"]
    assert seen["rows"][0] == [
        "up",
        "8.49",
        "7.13",
        "loaded",
        "queue gone after 128 ms",
        "4",
        "7.1",
        "375",
        "0",
    ]
    assert seen["rows"][1][:4] == ["down", "open", "0.44", "backing off"]
    assert seen["sides"] == [
        {"name": "up", "rate_mbps": 8.49, "load_mbps": 7.13},
        {"name": "down", "rate_mbps": None, "load_mbps": 0.44},
    ]
    assert (seen["delay_ms"], seen["t_s"], seen["pid"]) == (17.1, 0.25, 4321)
    assert "seen" not in asked(served)


@pytest.mark.parametrize(
    "said",
    [
        b"{}",
        b"[1]",
        b"null",
        b"no JSON",
        b"\xff\xfe",
        b'{"t_ns": 1e999}',
        b'{"t_ns": -1}',
        b"[" * 100_000,
        b"x" * 2_000_000,
        json.dumps(Fake(sides=[{"rate_bps": "<b>"}, None]).view).encode(),
        json.dumps(Fake(sides=[]).view).encode(),
    ],
    ids=lambda said: said[:12].decode("latin-1"),
)
def test_what_is_no_view_is_told_in_a_sentence(served: Served, said: bytes) -> None:
    fake = Fake()
    fake.bytes = said
    with fake.running():
        answer = asked(served)
    assert "seen" not in answer
    assert DEVICE in answer["error"]
    assert "Traceback" not in answer["error"]
    assert len(answer["error"]) < 200


def test_a_shaper_that_has_shown_nothing_yet_is_none(served: Served) -> None:
    fake = Fake()
    fake.bytes = b""
    with fake.running():
        assert asked(served)["seen"] is None


@pytest.mark.parametrize("device", ["", "no-such", "..%2F..", "lo%00", "%3Cb%3E", "x" * 200])
def test_what_is_no_device_is_told_in_a_sentence(served: Served, device: str) -> None:
    assert "error" in asked(served, device)


def test_one_that_stands_still_keeps_nobody_else_waiting(served: Served) -> None:
    with listening(SOCKET):
        # More than its line holds: the last are not even let in.
        answers: list[dict[str, Any]] = []
        threads = [threading.Thread(target=lambda: answers.append(asked(served))) for _ in range(5)]
        for one in threads:
            one.start()
        assert DEVICE in json.loads(served.ask("/shapers/state")[1])["devices"]
        for one in threads:
            one.join(PATIENCE_S)
    assert len(answers) == len(threads)
    assert all(DEVICE in answer["error"] for answer in answers)
    # As many as its line holds are let in; the others are told that the kernel knows no such device.
    assert sum("has not answered for 2 s" in answer["error"] for answer in answers) >= 2


def test_a_shaper_comes_changes_ends_and_comes_again(browser: Browser, served: Served) -> None:
    with opened(browser, served.link) as shown:
        page = shown.page
        page.get_by_role("link", name="Shapers").click()
        expect(page.locator("#count")).to_have_text("No interface is shaped.", timeout=WAIT_MS)
        of_lo = page.get_by_role("region", name=f"Shaper of {DEVICE}")
        fake = Fake()
        with fake.running():
            expect(page.locator("#count")).to_have_text("One interface is shaped.", timeout=WAIT_MS)
            expect(of_lo.get_by_text("It shapes, as process 4321")).to_be_visible(timeout=WAIT_MS)
            expect(of_lo.locator("pre")).to_have_text(f"weir shape status {DEVICE}\nweir shape stop {DEVICE}")
            expect(of_lo.get_by_role("row", name="rate, Mbit/s 8.49")).to_be_visible()
            fake.view["sides"][0]["rate_bps"] = 6_000_000
            fake.view["warnings"] = ["something keeps it from helping"]
            expect(of_lo.get_by_role("row", name="rate, Mbit/s 6.00")).to_be_visible(timeout=WAIT_MS)
            expect(of_lo.get_by_text("warning: something keeps")).to_be_visible()
            shown.plot(f"Delay of {DEVICE}")
            lines = shown.lines(f"Upload of {DEVICE}")
            assert set(np.unique(lines["rate"][1])) == {6.0, 8.49}
            assert set(np.unique(lines["used"][1])) == {7.13}
            assert (np.diff(lines["rate"][0]) > 0).all()
            assert np.isnan(shown.lines(f"Download of {DEVICE}")["rate"][1]).all()
            assert set(shown.lines(f"Delay of {DEVICE}")["delay"][1]) == {17.1}
        expect(of_lo.get_by_text("has ended")).to_be_visible(timeout=WAIT_MS)
        expect(page.locator("#count")).to_have_text("No interface is shaped.")
        assert shown.chart(f"Upload of {DEVICE}").count() == 1
        another = Fake(pid=5432)
        another.view["sides"][0]["rate_bps"] = 1_000_000
        with another.running():
            expect(of_lo.get_by_text("It shapes, as process 5432")).to_be_visible(timeout=WAIT_MS)
            expect(of_lo.get_by_role("row", name="rate, Mbit/s 1.00")).to_be_visible(timeout=WAIT_MS)
            assert set(shown.lines(f"Upload of {DEVICE}")["rate"][1]) == {1.0}


def test_one_that_stands_still_is_told_and_watched_on(browser: Browser, served: Served) -> None:
    with opened(browser, served.link) as shown:
        page = shown.page
        page.goto(f"{served.link}shapers")
        with listening(SOCKET):
            expect(page.get_by_role("alert").first).to_contain_text("has not answered", timeout=WAIT_MS)
        expect(page.get_by_role("alert")).to_have_count(0, timeout=WAIT_MS)
        with Fake().running():
            expect(page.get_by_text("It shapes, as process 4321")).to_be_visible(timeout=WAIT_MS)
            page.route("**/state*", lambda route: route.abort())
            expect(page.locator("#count")).to_contain_text("no answer from", timeout=WAIT_MS)
            page.unroute("**/state*")
            expect(page.locator("#count")).to_have_text("One interface is shaped.", timeout=WAIT_MS)
            shown.errors.clear()


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
def test_a_hostile_shaper_harms_nothing_and_nothing_keeps_anybody_out(
    browser: Browser, served: Served, viewport: dict[str, int], scheme: str
) -> None:
    fake = Fake(reflectors=[MARKUP], trouble=MARKUP, warnings=[MARKUP, "long" * 500])
    fake.view["sides"][0] |= {"state": MARKUP, "reason": MARKUP, "rate_bps": 2**64 - 1, "load_bps": 2**64 - 1}
    fake.view["delays"] = [[0, 2**64 - 1, 0]]
    with opened(browser, served.link, viewport=viewport, color_scheme=scheme) as shown:
        with fake.running():
            shown.page.goto(f"{served.link}shapers")
            shown.plot(f"Delay of {DEVICE}")
            shown.unfold()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            table = shown.page.get_by_role("group", name=f"What the shaper of {DEVICE} does")
            assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0, "it moves sideways"
            assert shown.page.locator("img[src=x], main b").count() == 0
            assert shown.barriers() == []
        assert shown.page.evaluate("window.harmed") is None
