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
from weirlab.interrupt import REQUESTS

__all__ = ["OwnKernel", "View", "ask"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType


class QueueView(TypedDict):
    """Counts of a queue since the last view, in so much time of the run."""

    span_ns: int
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

    Where the main thread calls this, requests to end are handed on to the lab: it closes its record, ends its
    program, and then answers. Only SIGINT is up to the program, as soon as there is one.

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
            with _held_back():
                # The lab lets through what came until it can deal with it.
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
    with _handing_on(process, has_program=request["do"] == "exec"):
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
def _held_back() -> Iterator[None]:
    """What is started meanwhile begins with the signals held back that ask for the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [*REQUESTS, INTERRUPTED_ALONE])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handing_on(process: subprocess.Popen[bytes], *, has_program: bool) -> Iterator[None]:
    """Hands requests to end on to the lab.

    Whether it hands SIGINT on to its program the lab decides: of a terminal, the program has it already.
    """
    import threading  # noqa: PLC0415 - only here

    if threading.current_thread() is not threading.main_thread():
        # Signals are the main thread's business: it tells us through `on_view`.
        yield
        return

    def hand_on(number: int, frame: FrameType | None) -> None:
        is_for_program = has_program and number == signal.SIGINT
        process.send_signal(INTERRUPTED_ALONE if is_for_program else signal.SIGTERM)
        handler = before[signal.Signals(number)]
        if not has_program and callable(handler):
            # It knows what the second request means.
            handler(number, frame)

    # What is ignored stays so: of `nohup`, and of a script's job in the background.
    heard = [one for one in REQUESTS if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.getsignal(number) for number in heard}
    for number in heard:
        signal.signal(number, hand_on)
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


INTERRUPTED_ALONE = signal.SIGUSR1
"""Tells a lab that SIGINT came to this process, maybe alone (`HAND_ON_INTERRUPT` of crates/linux)."""
PATIENCE_S = 5.0
"""How long a lab that has answered may take to end."""
