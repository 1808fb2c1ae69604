"""Capacity of the lines of a record, and the bytes that they carried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.intervals import middles_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.scenario import Direction

    Numbers = NDArray[np.number[Any]]


def slowest_hop(record: Record, direction: Direction, start: int, end: int) -> dict[str, Any] | None:
    """The hop whose line could carry least from `start` to `end`; None if no line is limited."""
    hops = record.manifest.scenario["path"][direction]
    capacities = [(capacity_bytes(record, hop, [start, end]), hop) for hop in hops]
    finite = [(float(np.diff(bytes_)[0]), hop) for bytes_, hop in capacities if bytes_ is not None]
    return min(finite, key=lambda one: one[0])[1] if finite else None


def capacity_bytes(
    record: Record, hop: dict[str, Any], times_ns: Sequence[int] | NDArray[np.int64]
) -> Numbers | None:
    """How many bytes a hop's line could have carried until each of `times_ns`; None if bytes do not limit it.

    The processor of a router forwards packets, of whatever length: bytes do not limit it. What a recorded
    line could deliver at one of these times belongs to what comes before it, as it does in samples of queues:
    a line sends what it may before they are taken.
    """
    rate = hop["rate"]
    times = np.asarray(times_ns, dtype=np.int64)
    if rate == "unlimited" or "packets_per_second" in rate:
        return None
    if "bps" in rate:
        return _of_rates(hop, times)
    opportunities = np.array([int(word) for word in record.recording(rate["trace"]).split()]) * 1_000_000
    rounds, within = np.divmod(times, opportunities[-1])
    count = rounds * opportunities.size + np.searchsorted(opportunities, within, side="right")
    return np.asarray(count * 1500.0)


def carried_bytes(
    record: Record, direction: Direction, hop: dict[str, Any]
) -> tuple[Numbers, Numbers, Numbers]:
    """What a hop's line, which bytes limit, carried in each interval of samples, and what it could have.

    Both are of the same intervals, which in a live world end some milliseconds late.

    Returns:
        The middle of each interval in ns, the bytes of the line that were occupied, and those that could be.
    """
    interval = record.interval_ns("queue")
    ends_ns, carried = record.line(f"{direction}/{hop['name']}")
    if not ends_ns.size:
        return middles_ns(ends_ns, interval), carried, np.zeros(0)
    edges = np.append(ends_ns[:1] - interval, ends_ns).astype(np.int64)
    until = capacity_bytes(record, hop, edges)
    could = np.full(carried.size, np.inf) if until is None else np.diff(until)
    longest = LONGEST_FRAMING * record.manifest.scenario["mtu_bytes"]
    return middles_ns(ends_ns, interval), _transmitted(carried, could, longest), could


def _transmitted(begun: Numbers, capacity: Numbers, longest: float) -> Numbers:
    """Bytes that a line carried in each interval, of packets that `begun` has as they began.

    A packet counts as it leaves the queue for the line, which on a slow one takes longer than an interval to
    carry it. No more than one of `longest` bytes is under way at the end of an interval.
    """
    if not np.any(begun > capacity) or np.isnan(begun).any():
        return begun
    carried, under_way = [], 0.0
    for more, most in zip(begun.tolist(), capacity.tolist(), strict=True):
        there = under_way + more
        under_way = min(max(there - most, 0.0), longest)
        carried.append(there - under_way)
    return np.array(carried)


LONGEST_FRAMING = 1.5
"""On the line a packet is no longer than so many times its greatest length: cells of ATM add a fifth."""


def _of_rates(hop: dict[str, Any], times: NDArray[np.int64]) -> Numbers:
    """Bytes that a line could carry which has one constant rate after another."""
    edges, rates = [0.0], [float(hop["rate"]["bps"])]
    for change in hop.get("changes", ()):
        if change["to"] == "down":
            rate = 0.0
        elif "rate_bps" in change["to"]:
            rate = float(change["to"]["rate_bps"])
        else:
            continue
        edges.append(float(change["at_ns"]))
        rates.append(rate)
    last = max(edges[-1], float(times.max())) + 1.0
    steps = np.diff([*edges, last]) * np.array(rates) / 8e9
    return np.asarray(np.interp(times, [*edges, last], np.concatenate([[0.0], np.cumsum(steps)])))
