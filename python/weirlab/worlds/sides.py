"""Sides: what one and the same scenario is run on, to see whether they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.errors import UsageError
from weirlab.worlds.base import check_all
from weirlab.worlds.named import world_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.base import World


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side.

    Attributes:
        name: its name.
        summary: what it is, in a line.
        world: makes the world that it runs in.
        usual: whether it is among those that are compared where none is named.
        seeds: how many runs tell what it does; None for as many as are asked for: each takes its time.
    """

    name: str
    summary: str
    world: Callable[[], World]
    seeds: int | None
    usual: bool = True

    def runs(self, repeat: int) -> int:
        """How many runs it makes where `repeat` are asked for."""
        return max(self.seeds or 0, repeat)


def sides_named(names: str) -> list[Side]:
    """The sides whose names stand in `names`, with commas between them; the last one is the reference.

    Raises:
        UsageError: if there is none of a name, or fewer than two are named.
    """
    words = [word.strip() for word in names.split(",")]
    for word in words:
        if word not in SIDES:
            raise UsageError(f"unknown world `{word}` (known: {', '.join(SIDES)})")
    if len(set(words)) != len(words) or len(words) < 2:
        raise UsageError(f"--worlds {names}: write two or more different ones, such as sim,lab")
    return [SIDES[word] for word in words]


def usual_sides(
    runs: Sequence[ResolvedRun], world_of: Callable[[Side], World]
) -> tuple[list[Side], str | None]:
    """The usual sides that can run all of `runs`, the lab last, and why the kernel's path is not among them.

    The kernel's path is left out where the kernel lacks a queue; that simulator or lab cannot run them is
    found when they are asked to.

    Args:
        runs: what is to be run.
        world_of: the world of a side.
    """
    try:
        check_all(world_of(SIDES["kernel-path"]), runs)
    except UsageError as error:
        return [SIDES["sim"], SIDES["lab"]], str(error)
    return [side for side in SIDES.values() if side.usual], None


def _sides(*sides: Side) -> dict[str, Side]:
    return {side.name: side for side in sides}


def names_of(sides: Sequence[Side]) -> str:
    """The names of sides, as a person reads them."""
    return ", ".join(side.name for side in sides)


SIDES = _sides(
    Side(name="sim", summary="the simulator", world=lambda: world_named("sim"), seeds=5),
    Side(
        name="kernel-userspace",
        summary="a Linux in virtual time, Weir's queues",
        world=lambda: world_named("kernel", "userspace"),
        seeds=None,
        usual=False,
    ),
    Side(
        name="kernel",
        summary="a Linux in virtual time and its own queues",
        world=lambda: world_named("kernel", "kernel"),
        seeds=None,
        usual=False,
    ),
    Side(
        name="kernel-path",
        summary="this machine's TCP and its own queues",
        world=lambda: world_named("lab", "kernel"),
        seeds=None,
    ),
    Side(
        name="lab",
        summary="this machine's TCP, Weir's queues, in real time",
        world=lambda: world_named("lab"),
        seeds=None,
    ),
)
"""All sides, from the model to the real thing."""
