"""Who listens as a shaper, and is none: nobody believes what it says. Real time: programs that answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.realtime

NOBODY = 65534
"""A user that is neither root nor the one who runs the tests."""

IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")

HOSTILE = "[/x] \x1b[31mred\x9b2J"

# Says the same to everybody, once it has told that it listens.
LISTENER = """
import contextlib, ctypes, os, socket, sys
os.setuid(int(sys.argv[3]))
if sys.argv[4:]:
    CLONE_NEWUSER = 0x10000000
    assert ctypes.CDLL(None).unshare(CLONE_NEWUSER) == 0
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
def listening(
    device: str,
    says: bytes,
    user: int | None = None,
    *,
    within: Sequence[str] = (),
    own_namespace: bool = False,
) -> Iterator[int]:
    """A process that answers as the shaper of a device, by its id; of this user unless another is named."""
    words = [device, says.hex(), str(os.getuid() if user is None else user)]
    command = [*within, sys.executable, "-S", "-c", LISTENER, *words, *(["own"] if own_namespace else [])]
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
                "only one of root's or your own is asked, and by root one with CAP_NET_ADMIN\n"
            )
        begun = weir("shape", device, "--dry-run")
        assert (begun.returncode, begun.stdout) == (1, "")
        assert begun.stderr == (
            f"weir: `{device}` cannot be shaped: process {pid} of user {NOBODY} has the name "
            f"`@weir-shape-{device}` of its control socket; end that one first\n"
        )


@IS_ROOT
def test_root_asks_who_may_shape_here_whatever_its_user(weir: Weir, device: str) -> None:
    right = "+net_admin"
    within = [
        "setpriv",
        "--reuid",
        str(NOBODY),
        "--clear-groups",
        "--inh-caps",
        right,
        "--ambient-caps",
        right,
    ]
    # The process sets the user that it has already, which leaves its capabilities.
    with listening(device, view(device), NOBODY, within=within):
        done = weir("shape", "status", device)
    assert done.returncode == 0, done.stderr


@IS_ROOT
def test_a_right_in_a_namespace_of_its_own_is_none(weir: Weir, device: str) -> None:
    with listening(device, view(device), NOBODY, own_namespace=True) as pid:
        assert int(_status(pid)["CapEff"], 16) & 1 << 12
        done = weir("shape", "status", device)
    assert done.returncode == 1
    assert f"process {pid} of user {NOBODY} listens" in done.stderr


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
