"""Requests to end (Ctrl-C, SIGTERM, SIGHUP): the first ends the work early, the second the process.

This module is imported before any other: it needs nothing but what Python itself has loaded.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial

from weirlab.ending import INTERRUPTED, end_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType, ModuleType
    from typing import Any


class Stop:
    """Whether work shall end. No `threading.Event`: the signal may come while its lock is held."""

    told = False


class Requests:
    """Handler of the signals that ask for the end: SIGINT, SIGTERM and SIGHUP."""

    def __init__(self, *, of_process: bool) -> None:
        """A handler whose second request ends the process if `of_process`, else raises KeyboardInterrupt."""
        self._of_process = of_process
        self._ends_at_once = of_process
        self._first_s: float | None = None
        self.stop: Stop | None = None
        self.raised = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        del number
        now_s = time.monotonic()
        if self._first_s is not None and now_s - self._first_s < SAME_S:
            return
        first, self._first_s = self._first_s is None, self._first_s or now_s
        if self._ends_at_once or (self._of_process and not first):
            end_at_once()
        if first and self.stop is not None:
            self.stop.told = True
        elif self._of_process:
            self.raised = True
            _interrupt(frame)
        else:
            raise KeyboardInterrupt

    def started(self) -> None:
        """Notes that there may be something to keep, or to clear away."""
        self._ends_at_once = False

    def ended(self) -> None:
        """Notes that there is nothing more to keep or to clear away."""
        self._ends_at_once = True


def _interrupt(frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt once no import is under way.

    Libraries with compiled parts do not survive it. The process must be Weir's own: SIGALRM is.
    """
    inner = frame
    while inner is not None:
        if inner.f_code.co_filename == IMPORTING:
            _interrupt_soon()
            return
        inner = inner.f_back
    raise KeyboardInterrupt


def _interrupt_soon() -> None:
    signal.signal(signal.SIGALRM, lambda _, later: _interrupt(later))
    signal.setitimer(signal.ITIMER_REAL, LOOK_AGAIN_S)


def _lost(what: sys.UnraisableHookArgs) -> None:
    """Raises a request again that came where Python lets no error out, as in `__del__`."""
    if what.exc_type is KeyboardInterrupt:
        _interrupt_soon()
    else:
        sys.__unraisablehook__(what)


def take_over() -> Requests:
    """The process hears requests to end: until `Requests.started` each of them ends it at once.

    Signals that are ignored stay so: those of `nohup`, and of a script's job in the background.
    """
    global _process  # noqa: PLW0603 - a process has one
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        ignore_ctrl_c()
    _process = Requests(of_process=True)
    for number in REQUESTS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _process.hear)
    sys.unraisablehook = _lost
    atexit.register(_deaf)
    return _process


def ignore_ctrl_c() -> None:
    """Ignores SIGINT from here on, in Polars too, which listens for it from when it is loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "polars" not in sys.modules:
        sys.meta_path.insert(0, _PolarsIgnoresToo)


class _PolarsIgnoresToo:
    """Finds Polars for who imports it, so that SIGINT is ignored again once it is loaded: few need it."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """The module as other finders have it, but for what follows its being loaded."""
        if name != "polars":
            return None
        sys.meta_path.remove(cls)
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next((one for one in found if one is not None), None)
        if spec is not None and spec.loader is not None:
            load = partial(_loaded_deaf, spec.loader.exec_module)
            spec.loader.exec_module = load  # type: ignore[method-assign]
        return spec


def _loaded_deaf(load: Callable[[ModuleType], None], module: ModuleType) -> None:
    load(module)
    # Handlers are the main thread's to set.
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _deaf() -> None:
    """The exit code stays what it is, also if a request comes after Python has given up its handlers."""
    for number in REQUESTS:
        signal.signal(number, signal.SIG_IGN)
    # A request that waited for the end of an import must not kill what has ended by itself.
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


def started() -> None:
    """`Requests.started` of the process, if it has taken over."""
    if _process is not None:
        _process.started()


@contextmanager
def heeding() -> Iterator[Stop]:
    """While this lasts the first request to end sets the flag that is handed out, and raises nothing.

    In a program of others (a notebook, a script) only Ctrl-C is heard, and only in the main thread and where
    the program has no handler of its own; the second raises KeyboardInterrupt.
    """
    import threading  # noqa: PLC0415 - see above

    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
    elif _process is not None:
        before, _process.stop = _process.stop, stop
        try:
            yield stop
        finally:
            _process.stop = before
    elif signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        requests = Requests(of_process=False)
        requests.stop = stop
        signal.signal(signal.SIGINT, requests.hear)
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        yield stop


def leave() -> None:
    """Ends the process, all being told and cleared away, without Python's own end.

    Threads and libraries that were interrupted in their midst do not always survive that.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(INTERRUPTED)


REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask for the end."""
IMPORTING = "<frozen importlib._bootstrap>"
"""The file of Python's frames that import a module."""
LOOK_AGAIN_S = 0.01
"""Time until an import under way is looked for again."""
SAME_S = 0.25
"""Signals within this time are one request: `timeout` sends each to the process and to its group."""

_process: Requests | None = None
