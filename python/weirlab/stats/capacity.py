"""Capacity of the lines of a record, and the bytes that they carried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.scenario.plain import path_shares
from weirlab.stats.intervals import middles_ns
from weirlab.stats.pings import load_window_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.scenario import Direction

    Numbers = NDArray[np.number[Any]]


def slowest_hops(record: Record, direction: Direction, start: int, end: int) -> list[dict[str, Any]]:
    """The hop of each path of loads of `direction` whose line could carry least from `start` to `end`.

    Each is told once; none of a path of which no line is limited.
    """
    found = [_slowest(record, direction, on_path, start, end) for on_path in load_paths(record, direction)]
    return list({hop["name"]: hop for hop in found if hop is not None}.values())


def limiting_hops(record: Record, direction: Direction, start: int, end: int) -> list[dict[str, Any]]:
    """The hops whose lines together limit what crosses all paths that loads of `direction` take.

    One that several paths share may carry less than the lines behind which they meet. None if there is no
    such limit from `start` to `end`: no line of some path is limited, a packet of some path passes two of
    these lines, whose capacities then do not add up, or other hops keep the paths from filling them.
    """
    paths = load_paths(record, direction)
    if len(paths) == 1:
        return slowest_hops(record, direction, start, end)
    hops = {hop["name"]: hop for on_path in paths for hop in on_path}
    carry = {name: _carries(record, direction, hop, start, end) for name, hop in hops.items()}
    limited = {name: most for name, most in carry.items() if most is not None}
    cut = _limiting([{hop["name"] for hop in on_path} for on_path in paths], limited)
    return [hop for name, hop in hops.items() if name in cut]


def _limiting(paths: Sequence[set[str]], carry: Mapping[str, float]) -> set[str]:
    """The hops of those in `carry` that limit what crosses all paths together; each path crosses one of them.

    A byte more of each is a byte more for all together: these are the prices of a linear program's limits. Of
    hops that carry alike they are those that paths cross seldom, and of these the fewest.
    """
    if not all(path & carry.keys() for path in paths):
        return set()
    from scipy.optimize import linprog  # noqa: PLC0415 - loads slowly, and few links have several paths

    crosses = np.array([[name in path for path in paths] for name in carry], dtype=float)
    most = np.array(list(carry.values()))
    last = TIE * (crosses.sum(axis=1) * (len(carry) + 1) + 1)
    limits = most / max(most.max(), 1.0) + last
    solved = linprog(-np.ones(len(paths)), A_ub=crosses, b_ub=limits, method="highs-ds")
    prices = -solved.ineqlin.marginals
    cut = {name for name, price in zip(carry, prices, strict=True) if price > ROUNDING}
    is_clean = np.allclose(prices, prices.round(), atol=ROUNDING)
    return cut if is_clean and all(len(path & cut) == 1 for path in paths) else set()


def limit_bytes(
    record: Record,
    direction: Direction,
    times_ns: Sequence[int] | NDArray[np.int64],
    hops: Sequence[dict[str, Any]] | None = None,
) -> Numbers | None:
    """How many bytes the lines that limit `direction` could have carried together until each of `times_ns`.

    Args:
        record: the record.
        direction: the direction.
        times_ns: the times, ascending.
        hops: the lines; those that limit the direction between the first time and the last, if not given.

    Returns:
        The bytes; None if there is no such limit.
    """
    if hops is None:
        hops = limiting_hops(record, direction, int(times_ns[0]), int(times_ns[-1]))
    each = [capacity_bytes(record, direction, hop, times_ns) for hop in hops]
    known = [one for one in each if one is not None]
    return np.asarray(np.sum(known, axis=0)) if known and len(known) == len(each) else None


def why_no_limit(record: Record, direction: Direction, start: int, end: int) -> str | None:
    """Why the paths of loads of `direction` have no capacity from `start` to `end`; None if they have one."""
    if limiting_hops(record, direction, start, end):
        return None
    paths = load_paths(record, direction)
    limited = [_slowest(record, direction, on_path, start, end) is not None for on_path in paths]
    if all(limited):
        return "their paths share hops, whose lines add up to no one capacity"
    if any(limited):
        return "no line of one of their paths is limited"
    return "no line of their path is limited" if len(paths) == 1 else "no line of their paths is limited"


def share_remark(record: Record, direction: Direction, start: int, end: int) -> str | None:
    """Says why loads of `direction` take no share of a line from `start` to `end`; None if they do."""
    why = why_no_limit(record, direction, start, end)
    words = {"down": "downloads", "up": "uploads"}
    return None if why is None else f"The {words[direction]} are told no share of a line: {why}."


def share_remarks(record: Record) -> list[str]:
    """Why the load of a direction takes a share of no line, though some are limited: a sentence for each."""
    loaded = {flow["direction"] for flow in record.manifest.scenario["flows"]}
    ways: tuple[Direction, ...] = ("down", "up")
    span = load_window_ns(record)
    limited = [way for way in ways if way in loaded and slowest_hops(record, way, *span)]
    return [text for way in limited if (text := share_remark(record, way, *span)) is not None]


def _slowest(
    record: Record, direction: Direction, hops: Sequence[dict[str, Any]], start: int, end: int
) -> dict[str, Any] | None:
    """The hop of a path whose line could carry least from `start` to `end`; None if no line is limited."""
    capacities = [(_carries(record, direction, hop, start, end), hop) for hop in hops]
    finite = [(most, hop) for most, hop in capacities if most is not None]
    return min(finite, key=lambda one: one[0])[1] if finite else None


def _carries(record: Record, direction: Direction, hop: dict[str, Any], start: int, end: int) -> float | None:
    """How many bytes a hop's line could carry from `start` to `end`; None if bytes do not limit it."""
    bytes_ = capacity_bytes(record, direction, hop, [start, end])
    return None if bytes_ is None else float(np.diff(bytes_)[0])


def load_paths(record: Record, direction: Direction) -> list[list[dict[str, Any]]]:
    """The paths that loads of `direction` take, each as its hops; all paths if there is no load."""
    scenario = record.manifest.scenario
    hops = scenario["path"][direction]
    routes = scenario.get("routes") or []
    every = tuple(range(len(hops)))
    if not routes:
        return [list(hops)]
    of_host = [host.get("route") for host in scenario["hosts"]]
    taken = {of_host[flow["host"]] for flow in scenario["flows"] if flow["direction"] == direction}
    by_name = {route["name"]: number for number, route in enumerate(routes)}
    # Programs in a lab take the path of the address that they leave from.
    taken |= {by_name.get(one.get("path")) for one in record.manifest.extra.get("connections") or ()}
    taken = taken or set(of_host)
    found = {every if number is None else tuple(routes[number][direction]) for number in taken}
    return [[hops[number] for number in numbers] for numbers in sorted(found)]


def capacity_bytes(
    record: Record, direction: Direction, hop: dict[str, Any], times_ns: Sequence[int] | NDArray[np.int64]
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
        return _of_rates(record, direction, hop, times)
    opportunities = np.array([int(word) for word in record.recording(rate["trace"]).split()]) * 1_000_000
    rounds, within = np.divmod(times, opportunities[-1])
    count = rounds * opportunities.size + np.searchsorted(opportunities, within, side="right")
    return np.asarray(count * 1500.0)


def carried_together(
    record: Record, direction: Direction, hops: Sequence[dict[str, Any]]
) -> tuple[Numbers, Numbers, Numbers]:
    """What `carried_bytes` tells of each of several lines, one line's intervals behind the other's."""
    of_each = [carried_bytes(record, direction, hop) for hop in hops]
    middles, carried, could = (np.concatenate(column) for column in zip(*of_each, strict=True))
    return middles, carried, could


def carried_bytes(
    record: Record, direction: Direction, hop: dict[str, Any]
) -> tuple[Numbers, Numbers, Numbers]:
    """What a hop's line, which bytes limit, carried in each interval of samples, and what it could have.

    Both are of the same intervals, which in a live world end some milliseconds late. A packet that is on the
    line when its rate falls, or when it pauses, leaves as if it had not: what it took beyond the line's new
    rate counts as what the line could carry too.

    Returns:
        The middle of each interval in ns, the bytes of the line that were occupied, and those that could be.
    """
    interval = record.interval_ns("queue")
    ends_ns, carried = record.line(f"{direction}/{hop['name']}")
    if not ends_ns.size:
        return middles_ns(ends_ns, interval), carried, np.zeros(0)
    edges = np.append(ends_ns[:1] - interval, ends_ns).astype(np.int64)
    until = capacity_bytes(record, direction, hop, edges)
    could = np.full(carried.size, np.inf) if until is None else np.diff(until)
    longest = LONGEST_FRAMING * record.manifest.scenario["mtu_bytes"]
    falls = np.histogram(_falls(record, direction, hop, int(edges[-1])), edges)[0]
    return middles_ns(ends_ns, interval), *transmitted(carried, could, falls, longest)


def transmitted(begun: Numbers, capacity: Numbers, falls: Numbers, longest: float) -> tuple[Numbers, Numbers]:
    """Bytes that a line carried in each interval, of packets that `begun` has as they began, and could have.

    A packet counts as it leaves the queue for the line, which on a slow one takes longer than an interval to
    carry it. No more than one of `longest` bytes is under way at the end of an interval, nor at each of the
    `falls` of the line's rate within it, of which the packet knows nothing: what is beyond the `capacity` of
    each moment is what such packets took, and as much as the line could carry then.
    """
    if not np.any(begun > capacity) or np.isnan(begun).any():
        return begun, capacity
    carried, could, under_way, unaware = [], [], 0.0, 0.0
    for more, most, fell in zip(begun.tolist(), capacity.tolist(), falls.tolist(), strict=True):
        there = under_way + more
        under_way = min(max(there - most, 0.0), longest)
        unaware += fell * longest
        beyond = min(max(there - under_way - most, 0.0), unaware)
        # A packet that was on the line when its rate fell has left where the line has room again.
        unaware = unaware - beyond if fell or there > most else 0.0
        carried.append(there - under_way)
        could.append(most + beyond)
    return np.array(carried), np.array(could)


ROUNDING = 1e-6
"""What a price may differ by from 0 or 1."""

TIE = 1e-6
"""Part of what the fastest line carries that decides between hops that carry alike: solvers err by less."""

LONGEST_FRAMING = 1.5
"""On the line a packet is no longer than so many times its greatest length: cells of ATM add a fifth."""


def _of_rates(record: Record, direction: Direction, hop: dict[str, Any], times: NDArray[np.int64]) -> Numbers:
    """Bytes that a line could carry which has one rate after another."""
    edges, rates = _rates(record, direction, hop, int(times.max()) + 1)
    steps = np.diff(edges) * rates / 8e9
    return np.asarray(np.interp(times, edges, np.concatenate([[0.0], np.cumsum(steps)])))


def _falls(record: Record, direction: Direction, hop: dict[str, Any], end: int) -> NDArray[np.int64]:
    """When a line's rate falls before `end`, or the line begins to pause, in ns."""
    if "bps" not in hop["rate"]:
        return np.zeros(0, np.int64)
    edges, rates = _rates(record, direction, hop, end)
    return edges[1:-1][np.diff(rates) < 0]


def _rates(
    record: Record, direction: Direction, hop: dict[str, Any], last: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """When a line gets each of its rates, in ns, up to `last`, and the rates between these times in bit/s."""
    changes = [(0, float(hop["rate"]["bps"]))]
    for change in hop.get("changes", ()):
        if change["to"] == "down":
            changes.append((change["at_ns"], 0.0))
        elif "rate_bps" in change["to"]:
            changes.append((change["at_ns"], float(change["to"]["rate_bps"])))
    shares = _shares(record, direction, hop, last)
    edges = np.unique([at for at, _ in (*changes, *shares) if at < last] + [last])
    return edges, _at(changes, edges[:-1]) * _at(shares, edges[:-1])


def _shares(record: Record, direction: Direction, hop: dict[str, Any], end: int) -> list[tuple[int, float]]:
    """The share of its rate that a line carries from each of these times on."""
    paths, seed = hop.get("reconfiguration"), record.manifest.seed
    if paths is None or seed is None:
        return [(0, 1.0)]
    shares = []
    for number, (at, share) in enumerate(path_shares(hop, direction, seed, end)):
        # Behind each path's beginning but the first's the line pauses.
        pauses = paths["outage_ns"] if number else 0
        shares += [(at, 0.0)] * bool(pauses) + [(at + pauses, share)]
    return shares


def _at(steps: Sequence[tuple[int, float]], times: NDArray[np.int64]) -> NDArray[np.float64]:
    """What holds at each of `times`, of values that hold from the time beside them on."""
    begins, values = zip(*steps, strict=True)
    return np.asarray(np.array(values)[np.searchsorted(begins, times, side="right") - 1])
