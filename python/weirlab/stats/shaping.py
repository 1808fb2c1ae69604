"""How well a shaper did: rate, delay and use of the line over time, and how soon after what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.stats.capacity import carried_together, limit_bytes, limiting_hops, slowest_hops, why_no_limit
from weirlab.stats.pings import is_any_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.scenario import Direction

    Numbers = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Course:
    """A run over time, in slots of equal length; NaN where there is no sample.

    Attributes:
        direction: the direction that is looked at.
        edges_s: borders of the slots in seconds.
        capacity_mbps: what the line could carry.
        used_mbps: what it carried.
        could_mbps: what it could carry in the very intervals of samples of which `used_mbps` is.
        delay_ms: mean of all pings.
        rate_mbps: the shaper's rate at the end of the slot; NaN if it has none.
    """

    direction: Direction
    edges_s: Numbers
    capacity_mbps: Numbers
    used_mbps: Numbers
    could_mbps: Numbers
    delay_ms: Numbers
    rate_mbps: Numbers

    @property
    def middles_s(self) -> Numbers:
        """Middle of each slot in seconds."""
        return np.asarray((self.edges_s[:-1] + self.edges_s[1:]) / 2)


def course(record: Record, direction: Direction, slot_s: float = 0.1) -> Course:
    """The record over time, as the lines that limit `direction` see it.

    Raises:
        UsageError: if no line of that direction is limited, or the capacities of several do not add up.
    """
    span = 0, record.reached_ns
    hops = limiting_hops(record, direction, *span)
    if not hops:
        raise UsageError(
            f"`{record.path}` has no rate of its line {direction}: {why_no_limit(record, direction, *span)}"
            if slowest_hops(record, direction, *span)
            else f"`{record.path}` has no line of limited rate {direction}"
        )
    edges = np.arange(0, record.reached_ns + 1, round(slot_s * 1e9))
    capacity = limit_bytes(record, direction, edges, hops)
    middle, carried, could = carried_together(record, direction, hops)
    used, usable = (np.histogram(middle, edges, weights=bytes_)[0] for bytes_ in (carried, could))
    count, total = _round_trips(record, edges)
    return Course(
        direction=direction,
        edges_s=edges / 1e9,
        capacity_mbps=np.diff(np.asarray(capacity)) * 8e3 / np.diff(edges),
        used_mbps=used * 8e3 / np.diff(edges),
        could_mbps=usable * 8e3 / np.diff(edges),
        delay_ms=np.where(count > 0, total / np.maximum(count, 1), np.nan) / 1e6,
        rate_mbps=_rates(record, direction, edges[1:]),
    )


def _round_trips(record: Record, edges: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many pings that were sent in each slot were answered, and how long they took together, in ns."""
    count, total = np.zeros((2, edges.size - 1), np.int64)
    for at, probe, rtt_ns, known in record.round_trip_chunks():
        mine = is_any_of(probe, record.ping_probes)
        answered = mine if known is None else mine & known
        t_ns = at.compress(answered)
        count += np.histogram(t_ns, edges)[0]
        total += np.histogram(t_ns, edges, weights=rtt_ns.compress(answered))[0]
    return count, total


def loaded_direction(record: Record) -> Direction:
    """The direction in which more was delivered; of a run that was cut short, as far as it went."""
    delivered = record.totals("delivered_bytes")
    if delivered is None:
        sums = dict(record.throughput.group_by("flow").agg(pl.col("bytes").sum()).rows())
        delivered = [sums.get(flow["flow"], 0) for flow in record.flow_rows]
    by_direction = dict.fromkeys(("up", "down"), 0)
    for flow, length in zip(record.flow_rows, delivered, strict=True):
        by_direction[flow["direction"]] += length or 0
    return "up" if by_direction["up"] > by_direction["down"] else "down"


def noticed_after_s(record: Record, direction: Direction, at_s: float) -> float | None:
    """How long after `at_s` the shaper's rate was first clearly below any that it had in the seconds before.

    None if it never was, or there was no rate before.
    """
    rows = record.shaper.filter(pl.col("queue").str.starts_with(f"{direction}/")).sort("t_ns")
    at, rate = pl.col("t_ns"), pl.col("rate_bps")
    before = rows.filter((at > (at_s - BEFORE_S) * 1e9) & (at <= at_s * 1e9))["rate_bps"].min()
    if not isinstance(before, int):
        return None
    lowered = rows.filter((at > at_s * 1e9) & (rate < before * CLEARLY))
    return lowered["t_ns"][0] / 1e9 - at_s if lowered.height else None


def calm_after_s(record: Record, at_s: float, bound_ms: float, until_s: float) -> float | None:
    """How long after `at_s` the mean ping of 100 ms, and that of the second behind it, are below `bound_ms`.

    None if that does not come about before `until_s`.
    """
    answered = record.pings.drop_nulls("rtt_ns")
    edges = np.arange(round(at_s * 10), round(until_s * 10) + 1) * 100_000_000
    count = np.histogram(answered["t_ns"], edges)[0]
    total = np.histogram(answered["t_ns"], edges, weights=answered["rtt_ns"] / 1e6)[0]
    for slot in range(len(edges) - 1 - CALM_SLOTS):
        after = slice(slot, slot + CALM_SLOTS)
        if (
            count[slot]
            and total[slot] / count[slot] < bound_ms
            and total[after].sum() < bound_ms * count[after].sum()
        ):
            return slot / 10
    return None


def used_after_s(record: Record, direction: Direction, at_s: float, share: float) -> float | None:
    """How long after `at_s` the line first is used by `share` over half a second; None if never."""
    one = course(record, direction, 0.5)
    used = (one.could_mbps > 0) & (one.used_mbps >= share * one.could_mbps)
    first = np.flatnonzero(used & (one.edges_s[:-1] >= at_s))
    return float(one.edges_s[first[0] + 1] - at_s) if first.size else None


def _rates(record: Record, direction: Direction, times: NDArray[np.int64]) -> Numbers:
    rows = record.shaper.filter(pl.col("queue").str.starts_with(f"{direction}/")).sort("t_ns")
    if rows.height == 0:
        return np.full(times.size, np.nan)
    rates = np.array([np.nan if rate is None else rate / 1e6 for rate in rows["rate_bps"]])
    places = np.searchsorted(rows["t_ns"].to_numpy(), times, side="right") - 1
    return np.where(places >= 0, rates[np.maximum(places, 0)], np.nan)


BEFORE_S = 5.0
CLEARLY = 0.95
"""Longer than a controller's probing takes, and lower than it goes for that."""

CALM_SLOTS = 10
"""Slots of 100 ms: a second."""
