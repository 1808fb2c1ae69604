"""Who listens as a shaper, and is none: nobody believes what it says. Real time: programs that answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.realtime

NOBODY = 65534
"""A user that is neither root nor the one who runs the tests."""

IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")

HOSTILE = "[/x] \x1b[31mred\x9b2J"

# Says the same to everybody, once it has told that it listens.
LISTENER = """
import contextlib, os, socket, sys
os.setuid(int(sys.argv[3]))
near = socket.socket(socket.AF_UNIX)
near.bind("\\0weir-shape-" + sys.argv[1])
near.listen()
print(flush=True)
while True:
    with near.accept()[0] as client, contextlib.suppress(OSError):
        client.recv(64)
        client.sendall(bytes.fromhex(sys.argv[2]) + b"\\n")
"""


@contextmanager
def listening(device: str, says: bytes, user: int | None = None) -> Iterator[int]:
    """A process that answers as the shaper of a device, by its id; of this user unless another is named."""
    owner = os.getuid() if user is None else user
    command = [sys.executable, "-S", "-c", LISTENER, device, says.hex(), str(owner)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        try:
            yield process.pid
        finally:
            process.kill()


def view(device: str, **more: Any) -> bytes:
    return json.dumps({"device": device, "sides": [None, None], "pid": 7, "warnings": []} | more).encode()


@pytest.fixture
def device() -> str:
    """A name that no device has: the name of a socket does not depend on one."""
    return f"none-{os.getpid()}"


@pytest.mark.parametrize("said", [b"garbage", b"{}", b"[]", b"\xff", view("another")])
@pytest.mark.parametrize("how", [(), ("--json",), ("--prometheus",)])
def test_what_is_no_view_is_refused_in_a_sentence(
    weir: Weir, device: str, said: bytes, how: tuple[str, ...]
) -> None:
    with listening(device, said):
        done = weir("shape", "status", device, *how)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("weir: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [(), ("--json",), ("--prometheus",)])
def test_words_of_a_view_steer_no_terminal(weir: Weir, device: str, how: tuple[str, ...]) -> None:
    hostile = view(device, warnings=[HOSTILE], trouble=HOSTILE, reflectors=[HOSTILE])
    with listening(device, hostile):
        done = weir("shape", "status", device, *how)
    assert done.returncode == 0, done.stderr
    if "--prometheus" not in how:
        assert "[/x] ?[31mred?2J" in done.stdout
    assert all(sign.isprintable() or sign == "\n" for sign in done.stdout)


@IS_ROOT
def test_a_strangers_process_is_neither_believed_nor_asked_to_end(weir: Weir, device: str) -> None:
    with listening(device, view(device), NOBODY) as pid:
        for command in ("status", "stop"):
            done = weir("shape", command, device)
            assert done.returncode == 1
            assert done.stderr == (
                f"weir: process {pid} of user {NOBODY} listens as the shaper of `{device}`: "
                "only one of root's or your own is asked\n"
            )
        begun = weir("shape", device, "--dry-run")
        assert (begun.returncode, begun.stdout) == (1, "")
        assert begun.stderr == (
            f"weir: `{device}` cannot be shaped: process {pid} of user {NOBODY} has the name "
            f"`@weir-shape-{device}` of its control socket; end that one first\n"
        )
