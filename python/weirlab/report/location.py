"""Where on the way pings begin to wait, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from weirlab.report.scores import PHASES

if TYPE_CHECKING:
    from weirlab.net.locate import Location


def location_table(place: Location) -> Table:
    """A line a router, and what it comes to below."""
    table = Table(title="Where pings wait", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("idle, ms", justify="right")
    for phase in place.begins:
        table.add_column(f"{PHASES[phase]}, ms more", justify="right")
    table.add_column("answered", justify="right")
    for hop in place.hops:
        idle = "-" if hop.idle_ms is None else f"{hop.idle_ms:.1f}"
        more = [f"{hop.increase_ms[p]:+.1f}" if p in hop.increase_ms else "-" for p in place.begins]
        table.add_row(hop.name, idle, *more, f"{hop.answered:.0%}")
    found = [
        f"{PHASES[phase]}: before {name}" if name else f"{PHASES[phase]}: no wait to be placed"
        for phase, name in place.begins.items()
    ]
    table.caption = f"the queue is, in phase {'; '.join(found)}"
    return table
