"""Lines of a lab that are changed while a program runs, over the lab's control socket."""

from __future__ import annotations

import math
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import weirlab
from live import PATIENCE_S, skip_if_late, weir_in
from weirlab.cli.lab_command import _changes
from weirlab.errors import UsageError
from weirlab.lab.control import change, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.realtime

LINE = """
name = "line"
title = "Line"
up = [{ name = "line", rate = "20mbit", delay = "10ms" }]
down = [{ name = "line", rate = "20mbit", delay = "10ms", queue = "pfifo limit 50" }]
"""

SERVER = """
import socket, threading
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echo.bind(("", 7777))
def answer():
    while True:
        echo.sendto(*echo.recvfrom(100))
threading.Thread(target=answer, daemon=True).start()
listener = socket.create_server(("", 7778))
while True:
    taker, _ = listener.accept()
    try:
        while True:
            taker.sendall(bytes(65536))
    except OSError:
        pass
"""

PING = """
import itertools, socket, time
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.settimeout(0.5)
near.connect(("server", 7777))
for number in itertools.count():
    start = time.monotonic()
    near.send(b"%d" % number)
    try:
        # What a line that was down has kept comes later.
        while near.recv(100) != b"%d" % number:
            pass
    except TimeoutError:
        print(start, "inf", flush=True)
    else:
        print(start, (time.monotonic() - start) * 1e3, flush=True)
        time.sleep(0.02)
"""

DOWNLOAD = """
import socket, time
near = socket.create_connection(("server", 7778))
while True:
    count, start = 0, time.monotonic()
    while time.monotonic() < start + 0.25:
        count += len(near.recv(65536))
    print(start, count * 8 / (time.monotonic() - start) / 1e6, flush=True)
"""


@contextmanager
def lab(folder: Path, program: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A lab in `folder` in which `program` prints what it sees, with the control socket `line.sock`."""
    for name, text in (("line.toml", LINE), ("server.py", SERVER), ("program.py", program)):
        (folder / name).write_text(text)
    server = f"exec {sys.executable} {folder / 'server.py'}"
    command = [
        sys.executable,
        "-m",
        "weirlab",
        "lab",
        "exec",
        "--link",
        "line.toml",
        "--control",
        "line.sock",
    ]
    running = subprocess.Popen(
        [*command, "--server-command", server, *words, "--", sys.executable, str(folder / "program.py")],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate(timeout=PATIENCE_S)


def read(running: subprocess.Popen[str], count: int, later_s: float = 0.0) -> list[float]:
    """So many numbers that the program sees from now on, or later: infinite is a ping that was lost.

    It prints the time of each, of a clock that runs within the lab as it does here.
    """
    assert running.stdout is not None
    found: list[float] = []
    since = time.monotonic() + later_s
    while len(found) < count:
        words = running.stdout.readline().split()
        assert len(words) == 2, running.stderr.read() if running.stderr else ""
        if float(words[0]) >= since:
            found.append(float(words[1]))
    return found


def changed(folder: Path, *words: str) -> float:
    """Changes the line, and returns since when it holds, in seconds of the run."""
    done = weir_in(folder, "lab", "set", "line.sock", *words)
    assert done.returncode == 0, done.stderr
    said = re.fullmatch(r"changed at ([0-9.]+) s of the run\n", done.stdout)
    assert said is not None, done.stdout
    return float(said[1])


def ended(running: subprocess.Popen[str]) -> str:
    """What the lab says on standard error, when it is asked to end."""
    running.terminate()
    _, errors = running.communicate(timeout=PATIENCE_S)
    return errors


@pytest.mark.needs_lab
def test_a_ping_sees_delay_loss_and_a_line_that_is_down(tmp_path: Path) -> None:
    with lab(tmp_path, PING, "--out", "record") as running:
        first, lost = read(running, 20), []
        at = [changed(tmp_path, "down/line", "delay=60ms", "up/line", "delay=20ms")]
        farther = read(running, 20)
        at.append(changed(tmp_path, "up/line", "loss=100%"))
        lost += read(running, 2)
        at.append(changed(tmp_path, "up/line", "loss=0%", "delay=10ms", "down/line", "delay=10ms", "down"))
        lost += read(running, 2)
        at.append(changed(tmp_path, "down/line", "rate=20mbit"))
        again = read(running, 20)
        errors = ended(running)
    assert lost == [math.inf] * 4
    # Never shorter than the line; how much longer is up to how busy the machine is.
    assert min(first) >= 20.0
    assert min(farther) >= 80.0
    assert min(again) >= 20.0
    kept = weirlab.open_record(tmp_path / "record").manifest.scenario["path"]
    random = {"model": "random", "probability": 1.0}
    assert [change["to"] for change in kept["up"][0]["changes"]] == [
        {"delay_ns": 20_000_000},
        {"loss": random},
        {"delay_ns": 10_000_000},
        {"loss": random | {"probability": 0.0}},
    ]
    down = kept["down"][0]["changes"]
    assert [change["to"] for change in down] == [
        {"delay_ns": 60_000_000},
        "down",
        {"delay_ns": 10_000_000},
        {"rate_bps": 20_000_000},
    ]
    assert [round(change["at_ns"] / 1e9, 3) for change in down] == [at[0], at[2], at[2], at[3]]
    skip_if_late(errors)
    assert sorted(first)[10] < 40.0
    assert sorted(farther)[10] < 100.0
    assert sorted(again)[10] < 40.0


@pytest.mark.needs_lab
def test_a_delay_that_was_a_mistake_can_be_taken_back(tmp_path: Path) -> None:
    with lab(tmp_path, PING) as running:
        read(running, 3)
        changed(tmp_path, "down/line", "delay=10s")
        lost = read(running, 2)
        changed(tmp_path, "down/line", "delay=10ms")
        start = time.monotonic()
        again = read(running, 1)
        while again[-1] == math.inf and time.monotonic() < start + 6:
            again += read(running, 1)
        ended(running)
    assert lost == [math.inf] * 2
    assert again[-1] < math.inf


@pytest.mark.needs_lab
def test_a_download_has_the_rate_that_the_line_has(tmp_path: Path) -> None:
    """1448 bytes of data in packets of 1500."""
    with lab(tmp_path, DOWNLOAD) as running:
        fast = read(running, 8, later_s=2)
        changed(tmp_path, "down/line", "rate=4mbit")
        slow = read(running, 8, later_s=1)
        changed(tmp_path, "down/line", "rate=16mbit")
        again = read(running, 8, later_s=3)
        skip_if_late(ended(running))
    for goodput, rate in ((fast, 20), (slow, 4), (again, 16)):
        assert sum(goodput) / len(goodput) == pytest.approx(rate * 1448 / 1500, rel=0.1), rate


@pytest.mark.needs_lab
def test_the_socket_is_the_users_alone_refuses_in_a_sentence_and_goes_with_the_lab(tmp_path: Path) -> None:
    path = tmp_path / "line.sock"
    with lab(tmp_path, PING) as running:
        read(running, 1)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for words, message in (
            (("down/lime", "rate=5mbit"), "no hop is called `down/lime`, did you mean `down/line`?"),
            (("down/line", "rate=5"), "down/line: rate: `5` is a rate without its unit: write `5mbit`"),
            (
                ("down/line", "delay=40"),
                "down/line: delay: `40` is a time without its unit: write `40s`, `40ms`",
            ),
            (("down/line", "rate=1bit"), "down/line: rate: `1bit`: write a rate from 1kbit to 1tbit"),
            (
                ("down/line", "delay=40s"),
                "down/line: delay 40s: write a propagation delay of up to 10s, such as `40ms`",
            ),
            (("down/line", "loss=5"), "down/line: loss: `5`: write a share from 0% to 100%"),
            (
                ("up/line", "down", "down/line"),
                "`down/line`: write behind it what changes there: `rate=5mbit`, `delay=40ms`, `loss=1%`, `do",
            ),
        ):
            done = weir_in(tmp_path, "lab", "set", "line.sock", *words)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
            assert message in done.stderr
        second = weir_in(tmp_path, "lab", "exec", "--control", "line.sock", "--", "true")
        assert second.returncode == 2
        assert "`line.sock` exists: choose another file for the control socket" in second.stderr
        assert ended(running).count("`line.sock`") == 0
    assert not path.exists()
    gone = weir_in(tmp_path, "lab", "set", "line.sock", "down/line", "rate=5mbit")
    assert gone.returncode == 2
    assert "there is no control socket `line.sock`: its lab has ended" in gone.stderr


def process_of(running: subprocess.Popen[str]) -> int:
    """The process of a command's lab."""
    [process] = map(int, Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split())
    return process


@pytest.mark.needs_lab
def test_after_a_kill_nobody_answers_and_the_next_lab_takes_the_place(tmp_path: Path) -> None:
    path = tmp_path / "line.sock"
    with lab(tmp_path, PING) as running:
        read(running, 1)
        os.kill(process_of(running), signal.SIGKILL)
        running.communicate(timeout=PATIENCE_S)
        assert not path.exists(), "the command outlived its lab, and cleans up"
    with lab(tmp_path, PING) as running:
        read(running, 1)
        process = os.pidfd_open(process_of(running))
    # The lab ends behind its command.
    assert select.select([process], [], [], PATIENCE_S)[0]
    os.close(process)
    done = weir_in(tmp_path, "lab", "set", "line.sock", "down/line", "rate=5mbit")
    assert done.returncode == 1
    assert "the lab of `line.sock` has ended" in done.stderr
    with lab(tmp_path, PING) as running:
        read(running, 1)
        changed(tmp_path, "down/line", "rate=5mbit")
        ended(running)
    assert not path.exists()


def test_what_is_no_control_socket_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = weir_in(tmp_path, "lab", "set", "file", "down/line", "rate=5mbit")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "`file` is not the control socket of a lab" in done.stderr
    with pytest.raises(UsageError, match="exists: choose another file"), opened(tmp_path / "file"):
        pass
    assert (tmp_path / "file").exists()
    with (
        pytest.raises(UsageError, match="cannot be a control socket: No such file"),
        opened(tmp_path / "no/s"),
    ):
        pass
    too_long = tmp_path / ("x" * 120)
    with pytest.raises(UsageError, match="socket: AF_UNIX path too long"), opened(too_long):
        pass


def test_a_socket_that_somebody_else_put_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "line.sock"
    with opened(path), socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        other.bind(str(path))
    assert path.is_socket()


def test_words_are_hops_and_what_changes_there() -> None:
    words = ("down/modem", "rate=5mbit", "loss=0.5%", "up/modem", "down", "down/modem", "delay=4ms")
    random = {"model": "random", "probability": 0.005}
    assert _changes(words) == {
        "down/modem": {"rate": "5mbit", "loss": random, "delay": "4ms"},
        "up/modem": {"down": True},
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("modem", "rate=5mbit"), "`modem`: write a hop such as `down/modem`, or one of `rate=5mbit`"),
        (("rate=5mbit",), "`rate=5mbit`: write the hop in front of it"),
        (("up/a", "at=5s"), "`at=5s`: write a hop"),
        (("up/a", "down=yes"), "`down=yes`: write a hop"),
        (("up/a", "rate"), "`rate`: write a hop"),
        (("up/b", "down", "up/a", "loss=1"), "up/a: loss: `1`: write a share from 0% to 100%, such as `1%`"),
        (("up/a", "loss=101%"), "loss: `101%`: write a share"),
        (("up/a", "loss=nan%"), "loss: `nan%`: write a share"),
        (("up/a", "up/b", "down"), "`up/a`: write behind it what changes there: `rate=5mbit`, "),
        (("up/a", "rate=1mbit", "rate=2mbit"), "`rate` of this hop is given twice"),
    ],
)
def test_words_that_are_none_are_told(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        _changes(words)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b'{"t_ns": "x"}\n',
        b"[1]\n",
        b'{"error": "no"}\n',
        b"7\n",
        b"\xff\xfe\n",
        b"x" * 100_000,
    ],
)
def test_somebody_elses_socket_is_told(answer: bytes, tmp_path: Path) -> None:
    place = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place))
        listener.listen()

        def serve() -> None:
            near, _ = listener.accept()
            with near:
                near.recv(10_000)
                near.sendall(answer)

        other = threading.Thread(target=serve)
        other.start()
        with pytest.raises(UsageError, match="is not the control socket of a lab"):
            change(place, {"down/modem": {"rate": "5mbit"}})
        other.join(PATIENCE_S)
