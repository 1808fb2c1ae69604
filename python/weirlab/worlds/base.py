"""What every world can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.scenario import ResolvedRun

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


def world_names() -> list[str]:
    """The names of the worlds."""
    return ["sim", "lab"]


def world_named(name: str) -> World:
    """The world of that name."""
    if name == "sim":
        from weirlab.worlds.sim import SimWorld  # noqa: PLC0415 - each world loads what it needs

        return SimWorld()
    if name == "lab":
        from weirlab.worlds.lab import LabWorld  # noqa: PLC0415

        return LabWorld()
    raise UsageError(f"unknown world `{name}` (known: {', '.join(world_names())})")
