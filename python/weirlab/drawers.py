"""Charts drawn by another process, several at once: it loads Matplotlib while what is drawn comes about.

Nothing is loaded here but what Python itself has, so that the process can be begun before anything else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from weirlab import errors
from weirlab.children import ONE_THREAD, how_it_ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Drawers", "Order", "begin", "begun_or_new", "end_begun"]


@dataclass(frozen=True)
class Order:
    """A chart that is to be drawn.

    Attributes:
        kind: one of `weirlab.plots.KINDS`.
        records: paths of the records that are drawn, in their order.
        target: the file.
        title: heading in place of the test's title.
        whole: paths of all records, as `weirlab.plots.draw` takes them.
    """

    kind: str
    records: list[str]
    target: str
    title: str | None
    whole: list[str]


class Drawers:
    """A process of `weirlab.plots.drawer`, which draws what it is told once."""

    def __init__(self) -> None:
        """Begins the process, which loads what charts need."""
        import subprocess  # noqa: PLC0415 - most lines draw nothing

        self._process = subprocess.Popen(
            [sys.executable, "-m", "weirlab.plots.drawer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            # Ctrl-C is for the parent, which ends it.
            process_group=0,
            # And with one thread alone it may fork.
            env=os.environ | ONE_THREAD,
        )

    @property
    def pid(self) -> int:
        """The number of the process, which is also that of its group."""
        return self._process.pid

    def draw(self, orders: Sequence[Order], *, at_once: int) -> Iterator[Order]:
        """Draws charts, up to `at_once` of them at a time. It does so once.

        Yields:
            Each order, as soon as its chart is there.

        Raises:
            WeirError: if one cannot be drawn, of the class and in the words of `weirlab.plots.draw`; if the
                process ends before all are drawn.
        """
        told, said = self._process.stdin, self._process.stdout
        if told is None or said is None:
            return
        asked = {"at_once": at_once, "orders": [asdict(one) for one in orders]}
        with suppress(BrokenPipeError), told:
            told.write(json.dumps(asked) + "\n")
        self._process.stdin = None
        failures: list[errors.WeirError] = []
        warned: set[str] = set()
        for _ in orders:
            line = said.readline()
            if not line.endswith("\n"):
                ended = how_it_ended(self._process.wait())
                raise errors.WeirError(f"the process that draws charts ended with {ended}")
            answer = json.loads(line)
            # What holds for one chart may hold for others, and is said once.
            for text in set(answer["warned"]) - warned:
                warnings.warn(text, errors.WeirWarning, stacklevel=2)
            warned.update(answer["warned"])
            if answer["error"] is None:
                yield orders[answer["number"]]
            else:
                failures.append(getattr(errors, answer["error"])(answer["says"]))
        if failures:
            raise failures[0]

    def end(self) -> None:
        """Ends the process and its children, if they have not ended: no chart is left half written."""
        from subprocess import TimeoutExpired  # noqa: PLC0415 - most lines draw nothing

        self._signal(signal.SIGTERM)
        try:
            self._process.communicate(timeout=GRACE_S)
        except TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.communicate()

    def _signal(self, number: int) -> None:
        # A process that was waited for has given its number back.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def draws(args: Sequence[str]) -> bool:
    """Whether a line of `weir` is of a run that will probably draw charts soon.

    A line that turns out to be wrong has begun a process for nothing, which ends with it. A live world is not
    disturbed: what draws begins there when all is measured.
    """
    others = ("--no-charts", "--help", "-h", "--world")
    return args[:1] == ["run"] and not any(word.startswith(others) for word in args)


def begin() -> None:
    """Begins a process ahead of its orders, if there is room for one; the next `begun_or_new` has it."""
    if not _begun:
        with suppress(OSError):
            _begun.append(Drawers())


@contextmanager
def begun_or_new() -> Iterator[Drawers]:
    """A process that draws, for one call of `draw`; it is there already if it was begun. Then it ends."""
    one = _begun.pop() if _begun else Drawers()
    try:
        yield one
    finally:
        one.end()


def end_begun() -> None:
    """Ends a process that was begun and has had no orders."""
    while _begun:
        _begun.pop().end()


GRACE_S = 5.0
"""Time in which children that were told to end do so."""

_begun: list[Drawers] = []
"""The process that was begun and has no orders yet; one at most."""
