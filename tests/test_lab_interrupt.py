"""Ctrl-C in the lab: the program decides what it means, as in a terminal without a lab."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live import FOREVER_S, PATIENCE_S
from weirlab.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

pytestmark = [pytest.mark.realtime, pytest.mark.needs_lab]

PROGRAM = """
import signal, sys, time
heard, last = 0, float("inf")
def hear(number, frame):
    global heard, last
    if number == signal.SIGTERM:
        sys.exit(9)
    heard, last = heard + 1, time.monotonic()
    print("heard", heard, flush=True)
signal.signal(signal.SIGINT, hear)
signal.signal(signal.SIGTERM, hear)
print("ready", flush=True)
# Longer than a lab waits for what it has asked to end.
while time.monotonic() < last + 3:
    time.sleep(0.05)
print("ended after", heard, flush=True)
sys.exit(7)
"""

SERVER = """
import socket
far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
far.bind(("", 7777))
while True:
    far.sendto(*far.recvfrom(100))
"""

CLIENT = """
import socket, time
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.connect(("server", 7777))
near.settimeout(60)
try:
    print("ready", flush=True)
    time.sleep(300)
except KeyboardInterrupt:
    time.sleep(1)
    near.send(b"figures")
    print(near.recv(100).decode(), flush=True)
"""


class Terminal:
    """A terminal on which `weir lab exec` is at work; it is ended in the end."""

    def __init__(self, *words: str) -> None:
        """Starts it, with `words`."""
        self._near, far = pty.openpty()
        # Only what a program writes comes back.
        settings = termios.tcgetattr(far)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(far, termios.TCSANOW, settings)
        self.weir = subprocess.Popen(
            [sys.executable, "-m", "weirlab", "lab", "exec", *words],
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one thread
        )
        os.close(far)
        self.said = ""

    def ctrl_c(self) -> None:
        """Presses Ctrl-C."""
        os.write(self._near, b"\x03")

    def until(self, word: str) -> None:
        """Waits until something has been said."""
        deadline = time.monotonic() + PATIENCE_S
        while word not in self.said:
            assert time.monotonic() < deadline, self.said
            assert self._read(), self.said

    def end(self) -> int:
        """Waits for the end, and returns the exit code."""
        while self._read():
            pass
        return self.weir.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        """The terminal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what goes on."""
        self.weir.kill()
        self.weir.wait()
        os.close(self._near)

    def _read(self) -> bool:
        # At the end of all who have the terminal open there is an error.
        with suppress(OSError):
            read = os.read(self._near, 1 << 16).decode().replace("\r\n", "\n")
            self.said += read
            return bool(read)
        return False


def by_key(terminal: Terminal) -> None:
    terminal.ctrl_c()


def to_all(terminal: Terminal) -> None:
    os.killpg(terminal.weir.pid, signal.SIGINT)


def to_weir(terminal: Terminal) -> None:
    terminal.weir.send_signal(signal.SIGINT)


def as_timeout_does(terminal: Terminal) -> None:
    terminal.weir.send_signal(signal.SIGINT)
    os.killpg(terminal.weir.pid, signal.SIGINT)


@pytest.mark.parametrize("interrupt", [by_key, to_all, to_weir, as_timeout_does])
def test_an_interrupt_reaches_the_program_once_and_ends_nothing(
    interrupt: Callable[[Terminal], None],
) -> None:
    with Terminal("--", sys.executable, "-c", PROGRAM) as terminal:
        terminal.until("ready\n")
        interrupt(terminal)
        assert terminal.end() == 7, terminal.said
        assert terminal.said.splitlines()[:3] == ["ready", "heard 1", "ended after 1"]


@pytest.mark.parametrize("interrupt", [by_key, to_weir])
def test_so_does_the_second(interrupt: Callable[[Terminal], None]) -> None:
    with Terminal("--", sys.executable, "-c", PROGRAM) as terminal:
        terminal.until("ready\n")
        for count in (1, 2):
            interrupt(terminal)
            terminal.until(f"heard {count}")
            # Those within a quarter of a second may be one.
            time.sleep(0.5)
        assert terminal.end() == 7, terminal.said
        assert "ended after 2" in terminal.said


def test_a_program_that_does_not_handle_it_ends_by_it(tmp_path: Path) -> None:
    with Terminal(
        "--out", str(tmp_path / "kept"), "--", "sh", "-c", f"echo ready; exec sleep {FOREVER_S}"
    ) as terminal:
        terminal.until("ready\n")
        terminal.weir.send_signal(signal.SIGINT)
        assert terminal.end() == 128 + signal.SIGINT, terminal.said
    # The program decided: its end is the run's.
    assert Record(tmp_path / "kept").manifest.complete


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_requests_to_end_reach_it_as_one_to_end(number: signal.Signals, tmp_path: Path) -> None:
    with Terminal("--out", str(tmp_path / "kept"), "--", sys.executable, "-c", PROGRAM) as terminal:
        terminal.until("ready\n")
        terminal.weir.send_signal(number)
        assert terminal.end() == 9, terminal.said
    assert not Record(tmp_path / "kept").manifest.complete


def test_the_server_is_there_until_the_program_is_done(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    server = f"{sys.executable} {tmp_path / 'server.py'}"
    with Terminal("--server-command", server, "--", sys.executable, "-c", CLIENT) as terminal:
        terminal.until("ready\n")
        terminal.ctrl_c()
        terminal.until("figures")
        assert terminal.end() == 0, terminal.said


def test_before_there_is_a_program_it_ends_the_lab(tmp_path: Path) -> None:
    server = f"sleep {FOREVER_S}"  # It opens no port, for which the lab waits a while.
    program = ("sh", "-c", f"echo started; sleep {FOREVER_S}")
    with Terminal("--out", str(tmp_path / "kept"), "--server-command", server, "--", *program) as terminal:
        children = Path(f"/proc/{terminal.weir.pid}/task/{terminal.weir.pid}/children")
        deadline = time.monotonic() + PATIENCE_S
        while not (children.read_text() and (tmp_path / "kept" / "manifest.json").exists()):
            assert time.monotonic() < deadline
        terminal.ctrl_c()
        assert terminal.end() == 130, terminal.said
        assert "Traceback" not in terminal.said
        assert "started" not in terminal.said.splitlines()
        assert "weir: interrupted before `sh` was started" in terminal.said
    assert not Record(tmp_path / "kept").manifest.complete
