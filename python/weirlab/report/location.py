"""Where on the way pings begin to wait, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box

from weirlab.scores.measured import PHASES
from weirlab.ui.numbers import unsigned_zero
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.scores.locate import Location


def location_table(place: Location) -> Table:
    """A line a router, and what it comes to below."""
    table = Table(title="Where pings wait", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("idle, ms", justify="right")
    for phase in place.begins:
        table.add_column(f"{PHASES[phase]}, ms more", justify="right")
    table.add_column("answered", justify="right")
    for hop in place.hops:
        if not hop.answered:
            continue
        idle = "-" if hop.idle_ms is None else f"{hop.idle_ms:.1f}"
        more = [
            unsigned_zero(hop.increase_ms[p], 1, "+") if p in hop.increase_ms else "-" for p in place.begins
        ]
        table.add_row(hop.name, idle, *more, f"{hop.answered:.0%}")
    table.caption = "; ".join([*_silent(place), _found(place)])
    return table


def _silent(place: Location) -> Iterator[str]:
    """Sentence about routers that never answered: the server is nearer, or they answer nobody."""
    silent = [str(hop.ttl) for hop in place.hops if hop.ttl is not None and not hop.answered]
    if silent:
        yield f"no answer from router{'s' * (len(silent) > 1)} {', '.join(silent)}"


def _found(place: Location) -> str:
    """Where the queue is, phase by phase if it is not the same in all."""
    names = set(place.begins.values())
    if len(names) == 1:
        (name,) = names
        return f"the queue is before {name} in every phase" if name else "no phase has a wait to be placed"
    found = [
        f"{PHASES[phase]}: before {name}" if name else f"{PHASES[phase]}: no wait to be placed"
        for phase, name in place.begins.items()
    ]
    return f"the queue is, in phase {'; '.join(found)}"
