"""The interface of every world."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from weirlab.scenario import ResolvedRun

Datapath = Literal["userspace", "kernel"]
"""Who has the queues and lines of a live world: Weir's own process, or the kernel."""

PlannedWorld = Literal["sim", "lab", "kernel"]
"""The worlds that many runs are planned for: all but `net`, a line that others use too."""

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


def check_all(world: World, runs: Iterable[ResolvedRun]) -> None:
    """Refuses what `world` cannot do of `runs`, before anything starts.

    It is asked once about what differs in nothing but the seed: to be asked costs some worlds the start of a
    kernel.

    Raises:
        UsageError: one sentence about the first thing that it cannot do.
    """
    done = _DONE.setdefault(world, set())
    for run in runs:
        asked = _digest(run)
        if asked not in done:
            world.check(run)
            done.add(asked)


def _digest(run: ResolvedRun) -> bytes:
    """What a world may look at, in short."""
    names = [run.queue, run.link_part.words["name"], run.test_part.words["name"]]
    return hashlib.blake2b(json.dumps([names, run.scenario], sort_keys=True).encode()).digest()


_DONE: WeakKeyDictionary[World, set[bytes]] = WeakKeyDictionary()
"""What each world has said that it can do."""
