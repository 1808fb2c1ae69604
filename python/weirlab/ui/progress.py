"""Progress of runs, with the time left."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from weirlab.scenario import ResolvedRun


@contextmanager
def waiting(what: str, *, quiet: bool) -> Iterator[None]:
    """Shows what is waited for and for how long already; nothing if `quiet`."""
    if quiet or not seen():
        yield
        return
    with _waiting_bar() as bar:
        bar.add_task(what, total=None)
        yield


def seen() -> bool:
    """Whether standard error is a terminal, as Rich sees it. Where it clearly is none, Rich is not loaded."""
    try:
        if not sys.stderr.isatty() and not FORCING & os.environ.keys():
            return False
    except (AttributeError, ValueError):
        # It is closed, or there is none.
        return False
    from weirlab.ui.terminal import messages  # noqa: PLC0415 - only who may be shown a bar waits for it

    return messages.is_terminal


class _Bar:
    """A bar that is there while its `with` block runs, on a terminal."""

    _bar: Progress | None
    _task: TaskID

    def __enter__(self) -> Self:
        """Shows the bar."""
        if self._bar is not None:
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
        if self._bar is not None:
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
        self._bar = None if quiet or not seen() else _bar("runs, left:", share=True)
        if self._bar is not None:
            self._task = self._bar.add_task(title or runs[0].test_part.words["title"], total=len(runs))

    def advanced(self, number: int, reached_ns: int) -> None:
        """Run `number` has reached that time."""
        self._reach(number, reached_ns)

    def finished(self, number: int) -> None:
        """Run `number` has ended."""
        self._reach(number, self._lengths[number])

    def _reach(self, number: int, reached_ns: int) -> None:
        if self._bar is None:
            return
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
        self._bar = None if quiet or not seen() else _bar("left:", share=False)
        if self._bar is not None:
            self._task = self._bar.add_task(title, total=None)

    def begun(self, count: int) -> None:
        """So many are to be done."""
        if self._bar is not None:
            self._bar.update(self._task, total=count)

    def ended(self, *, failed: bool) -> None:
        """One more is done."""
        self._failed += failed
        said = f"{self._title}, {self._failed} failed" if self._failed else self._title
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=said)


def _bar(left: str, *, share: bool) -> Progress:
    """A bar with how many of all are done, and how much time is left behind the words `left`.

    Args:
        left: words in front of the time.
        share: whether the share that is done is told too.
    """
    from rich import progress  # noqa: PLC0415 - only who is shown one waits for it

    from weirlab.ui.terminal import messages  # noqa: PLC0415

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *([progress.TaskProgressColumn()] if share else []),
        progress.MofNCompleteColumn(separator=" of "),
        progress.TextColumn(left),
        progress.TimeRemainingColumn(),
        console=messages,
        transient=True,
    )


def _waiting_bar() -> Progress:
    """What turns, with what is waited for and for how long already."""
    from rich import progress  # noqa: PLC0415 - only who is shown one waits for it

    from weirlab.ui.terminal import messages  # noqa: PLC0415

    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.TimeElapsedColumn(),
    )
    return progress.Progress(*columns, console=messages, transient=True)


FORCING = {"FORCE_COLOR", "TTY_COMPATIBLE"}
"""Variables of the environment by which Rich takes for a terminal what is none."""

STEPS = 2000
"""Steps of a whole bar: a study has a million reports of progress."""
