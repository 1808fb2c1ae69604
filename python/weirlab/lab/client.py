"""Asking a lab's process to do something."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from weirlab.errors import LabError

__all__ = ["OwnKernel", "View", "ask"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class QueueView(TypedDict):
    """Counts of a queue since the last view."""

    wire_bytes: int
    backlog_packets: int
    backlog_bytes: int
    dropped: int
    marked: int


class View(TypedDict):
    """Live view of the queues while a run goes on."""

    t_ns: int
    queues: dict[str, QueueView]


@dataclass(frozen=True, kw_only=True)
class OwnKernel:
    """A kernel of its own for a lab, in virtual time.

    Attributes:
        image: the kernel, a program.
        seed: what its random numbers come from.
    """

    image: Path
    seed: int


def ask(
    request: dict[str, Any],
    on_view: Callable[[View], bool] | None = None,
    control: socket.socket | None = None,
    kernel: OwnKernel | None = None,
) -> dict[str, Any]:
    """Has a lab's process do what `request` says, and returns its answer.

    `on_view` is called with views of the run, about two a second, and ends it by returning False. `control`
    is a socket that listens for orders to change the lines; it is closed here, so that none is taken without
    the lab. A lab dies with the thread that called this, and leaves nothing behind, whatever ends it. With
    `kernel` it is not under this machine's kernel, but under that one.

    Raises:
        LabError: what the lab could not do, in one sentence.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            module, words = "weirlab.lab.process", [str(theirs.fileno())]
            if kernel is not None:
                module = "weirlab.lab.guest_machine"
                words += [str(kernel.image), str(kernel.seed)]
            command = [sys.executable, "-P", "-m", module, *words]
            handed_on = [theirs] if control is None else [theirs, control]
            process = subprocess.Popen(command, pass_fds=[one.fileno() for one in handed_on])
        if control is not None:
            request = {**request, "control": control.detach()}
            os.close(request["control"])
        try:
            return _talk(ours, process, request, on_view)
        finally:
            _end(process)


def _talk(
    ours: socket.socket,
    process: subprocess.Popen[bytes],
    request: dict[str, Any],
    on_view: Callable[[View], bool] | None,
) -> dict[str, Any]:
    lines = ours.makefile("rw", encoding="utf-8")
    with _ending_gracefully(process):
        lines.write(json.dumps(request) + "\n")
        lines.flush()
        for line in lines:
            said = json.loads(line)
            if "answer" in said:
                answer: dict[str, Any] = said["answer"]
                return answer
            if "error" in said:
                raise LabError(said["error"])
            if on_view and not on_view(said["view"]):
                process.send_signal(signal.SIGTERM)
    code = process.wait()
    raise LabError(f"the lab's process ended without an answer, with code {code}")


@contextmanager
def _ending_gracefully(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hands requests to end on to the lab, which then closes its record; Ctrl-C reaches it by itself."""
    import threading  # noqa: PLC0415 - only here

    if threading.current_thread() is not threading.main_thread():
        # Signals are the main thread's business: it tells us through `on_view`.
        yield
        return

    def hand_on(number: int, _frame: object) -> None:
        process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    # What is ignored stays so: of `nohup`, and of a script's job in the background.
    heard = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, hand_on) for number in heard}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Waits a little for the lab to end, then ends it."""
    try:
        process.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


PATIENCE_S = 5.0
"""How long a lab that has answered may take to end."""
