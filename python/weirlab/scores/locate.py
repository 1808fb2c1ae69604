"""Where on the way pings begin to wait: answers of the first routers, without load and with it.

UDP probes whose time to live ends at router 1, 2, 3 ... are answered by it (ICMP time exceeded). A queue in
front of a line makes all routers behind it look farther away, and none before it. Routers may answer slowly
of themselves, or not at all: that is told apart from a queue only by the routers behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weirlab.stats import describe

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.scores.measured import Measured


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A router, or the server at the end.

    Attributes:
        name: `router 1` and so on, or `server`.
        ttl: its number; None for the server.
        idle_ms: median round trip without load; None if it did not answer.
        increase_ms: by how much the median grew, by phase with load.
        answered: share of probes that it answered, over the whole test.
    """

    name: str
    ttl: int | None
    idle_ms: float | None
    increase_ms: dict[str, float]
    answered: float


@dataclass(frozen=True, kw_only=True)
class Location:
    """All hops in order, and where pings begin to wait in each phase.

    Attributes:
        hops: the routers that were asked, then the server.
        begins: by phase, the first hop at which at least half of the whole increase is there; None if the
            increase is too small to be placed.
        also: by phase, another hop at which a good part of the increase is added: a second bottleneck.
    """

    hops: list[Hop]
    begins: dict[str, str | None]
    also: dict[str, str]


def locate(record: Record, figures: Measured) -> Location | None:
    """Finds where the wait begins; None if no routers were asked."""
    probes = record.manifest.scenario["probes"]
    asked = [(number, probes[number]["ttl"]) for number in record.manifest.routers]
    idle = record.phase("idle")
    if not asked or idle is None:
        return None
    spans = {name: (one.start_ns, one.end_ns) for name, one in figures.loaded.items()}
    hops = [_hop(record, f"router {ttl}", ttl, [number], idle=idle, spans=spans) for number, ttl in asked]
    others = [n for n in range(len(probes)) if n not in dict(asked)]
    server = _hop(record, "server", None, others, idle=idle, spans=spans)
    begins = {name: begin(name, [*hops, server]) for name in spans}
    second = {name: another(name, [*hops, server]) for name in spans}
    also = {name: hop for name, hop in second.items() if hop is not None}
    return Location(hops=[*hops, server], begins=begins, also=also)


def begin(phase: str, hops: list[Hop]) -> str | None:
    """The first hop from which on at least half of the last one's increase is there."""
    whole = hops[-1].increase_ms.get(phase)
    if whole is None or whole < MIN_INCREASE_MS:
        return None
    found = hops[-1].name
    for hop in reversed(hops):
        increase = hop.increase_ms.get(phase)
        if increase is None:
            continue
        # A queue delays everything behind it: the first hop without the wait ends the search.
        if increase < whole / 2:
            break
        found = hop.name
    return found


def another(phase: str, hops: list[Hop]) -> str | None:
    """A hop that adds at least a quarter of the whole increase, besides the one at which the wait begins."""
    whole = hops[-1].increase_ms.get(phase)
    first = begin(phase, hops)
    if whole is None or first is None:
        return None
    steps: list[tuple[float, str]] = []
    before = 0.0
    for place, hop in enumerate(hops):
        increase = hop.increase_ms.get(phase)
        if increase is None:
            continue
        # A router that answers late of itself shows more than what lies behind it.
        behind = [hop.increase_ms[phase] for hop in hops[place:] if phase in hop.increase_ms]
        least = min(behind)
        steps.append((least - before, hop.name))
        before = max(before, least)
    others = [step for step in steps if step[1] != first and step[0] >= max(whole / 4, MIN_INCREASE_MS)]
    return max(others)[1] if others else None


def _hop(  # noqa: PLR0913 - a row of a table
    record: Record,
    name: str,
    ttl: int | None,
    probes: list[int],
    *,
    idle: tuple[int, int],
    spans: dict[str, tuple[int, int]],
) -> Hop:
    rows = record.latency.filter(pl.col("probe").is_in(probes))

    def median(span: tuple[int, int]) -> float | None:
        inside = rows.filter((pl.col("t_ns") >= span[0]) & (pl.col("t_ns") < span[1]))
        figures = describe(inside["rtt_ns"] / 1e6)
        return figures.median if figures is not None and figures.count >= MIN_ANSWERS else None

    before = median(idle)
    loaded = {phase: median(span) for phase, span in spans.items()}
    increase = {
        phase: value - before for phase, value in loaded.items() if value is not None and before is not None
    }
    answered = 1 - rows["rtt_ns"].null_count() / rows.height if rows.height else 0.0
    return Hop(name=name, ttl=ttl, idle_ms=before, increase_ms=increase, answered=answered)


MIN_INCREASE_MS = 5.0
"""An increase below this cannot be placed: routers answer that unevenly."""

MIN_ANSWERS = 5
"""Answers for a median; many routers answer a few a second only."""
