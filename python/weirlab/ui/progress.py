"""Progress of runs, with the time left."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from weirlab.scenario import ResolvedRun


@contextmanager
def waiting(what: str, *, quiet: bool) -> Iterator[None]:
    """Shows what is waited for and for how long already; nothing if `quiet`."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=messages, transient=True, disable=quiet or not messages.is_terminal
    ) as bar:
        bar.add_task(what, total=None)
        yield


class _Bar:
    """A bar that is there while its `with` block runs."""

    _bar: Progress

    def __enter__(self) -> Self:
        """Shows the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Takes the bar away."""
        del kind, error, trace
        self._bar.stop()


class RunProgress(_Bar):
    """One bar for all runs together: simulated time done of all that is to be done."""

    def __init__(self, runs: Sequence[ResolvedRun], *, title: str | None = None, quiet: bool = False) -> None:
        """A bar for `runs`, with the test's title if nothing is said; none at all if `quiet`."""
        self._lengths = [run.scenario["duration_ns"] for run in runs]
        self._reached = [0] * len(runs)
        self._all = sum(self._lengths)
        self._sum = 0
        self._shown = 0
        self._lock = threading.Lock()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            MofNCompleteColumn(separator=" of "),
            TextColumn("runs, left:"),
            TimeRemainingColumn(),
            console=messages,
            transient=True,
            disable=quiet or not messages.is_terminal,
        )
        self._task = self._bar.add_task(title or runs[0].test.title, total=len(runs))

    def advanced(self, number: int, reached_ns: int) -> None:
        """Run `number` has reached that time."""
        self._reach(number, reached_ns)

    def finished(self, number: int) -> None:
        """Run `number` has ended."""
        self._reach(number, self._lengths[number])

    def _reach(self, number: int, reached_ns: int) -> None:
        with self._lock:
            self._sum += reached_ns - self._reached[number]
            self._reached[number] = reached_ns
            step = STEPS * self._sum // self._all
            if step != self._shown:
                self._shown = step
                self._bar.update(self._task, completed=step * len(self._lengths) / STEPS)


class CountProgress(_Bar):
    """A bar of things that are done one after the other, of which some may fail."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        """A bar with that title; none at all if `quiet`."""
        self._title, self._failed = title, 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(separator=" of "),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=messages,
            transient=True,
            disable=quiet or not messages.is_terminal,
        )
        self._task = self._bar.add_task(title, total=None)

    def begun(self, count: int) -> None:
        """So many are to be done."""
        self._bar.update(self._task, total=count)

    def ended(self, *, failed: bool) -> None:
        """One more is done."""
        self._failed += failed
        said = f"{self._title}, {self._failed} failed" if self._failed else self._title
        self._bar.update(self._task, advance=1, description=said)


STEPS = 2000
"""Steps of a whole bar: a study has a million reports of progress."""
