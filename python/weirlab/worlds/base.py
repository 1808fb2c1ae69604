"""The interface of every world."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.scenario import ResolvedRun

Datapath = Literal["userspace", "kernel"]
"""Who has the queues and lines of a live world: Weir's own process, or the kernel."""

Progress = Callable[[int], bool]
"""Hears of the nanoseconds of the run that were reached; ends the run by returning False."""


class World(Protocol):
    """A place where scenarios run."""

    name: str

    @property
    def at_once(self) -> int | None:
        """How many runs may go on at once; None for as many as there are processors."""
        ...

    def check(self, run: ResolvedRun) -> None:
        """Refuses what this world cannot do, before anything starts.

        Raises:
            UsageError: one sentence about the first thing that it cannot do.
        """
        ...

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        """Runs a scenario and writes its record into `folder`; says whether it came to its end."""
        ...
