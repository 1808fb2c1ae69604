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

    _Cut = tuple[int, int, int, tuple[str, ...]]


def slowest_hops(record: Record, direction: Direction, start: int, end: int) -> list[dict[str, Any]]:
    """The hop of each path of loads of `direction` whose line could carry least from `start` to `end`.

    Each is told once; none of a path of which no line is limited.
    """
    found = [_slowest(record, direction, on_path, start, end) for on_path in load_paths(record, direction)]
    return list({hop["name"]: hop for hop in found if hop is not None}.values())


def limiting_hops(record: Record, direction: Direction, start: int, end: int) -> list[dict[str, Any]]:
    """The hops whose lines together limit what crosses all paths that loads of `direction` take.

    Of all hops of which each path passes one at least, those whose lines could carry least together from
    `start` to `end`: one that several paths share may carry less than the lines behind which they meet.
    None if there is no such limit: no line of some path is limited, or a packet of some path passes two of
    these lines, whose capacities then do not add up, or other hops that paths share keep them from filling
    these lines.
    """
    paths = load_paths(record, direction)
    hops = {hop["name"]: hop for on_path in paths for hop in on_path}
    carry = {name: _carries(record, direction, hop, start, end) for name, hop in hops.items()}
    limited = {name: most for name, most in carry.items() if most is not None}
    names = [[hop["name"] for hop in on_path] for on_path in paths]
    cut = _least_cut(names, limited)
    return [hops[name] for name in hops if name in cut] if cut and _can_fill(names, limited, cut) else []


def _least_cut(paths: Sequence[Sequence[str]], carry: Mapping[str, float]) -> set[str]:
    """The hops of those in `carry` that carry least together of all that cross every path.

    There are none if a path has none of these hops, or the least crosses some path twice. Of several that
    carry alike it is one that crosses each path once if there is one, and of these the fewest.
    """
    crossed = {name: frozenset(n for n, one in enumerate(paths) if name in one) for name in carry}
    # Of hops in one row, which the same paths pass, only the slowest can be of the cut.
    slowest: dict[frozenset[int], str] = {}
    for name, numbers in crossed.items():
        if numbers not in slowest or carry[name] < carry[slowest[numbers]]:
            slowest[numbers] = name
    best: _Cut | None = None
    # By the paths that are not crossed yet: the least that leaves these.
    least: dict[frozenset[int], _Cut] = {}
    open_: list[tuple[frozenset[int], _Cut]] = [(frozenset(range(len(paths))), (0, 0, 0, ()))]
    while open_:
        left, so_far = open_.pop()
        if (best is not None and so_far >= best) or (left in least and so_far >= least[left]):
            continue
        least[left] = so_far
        if not left:
            best = so_far
            continue
        total, crossings, count, names = so_far
        for numbers, name in slowest.items():
            if min(left) in numbers:
                # In whole bytes, so that no sum is less than another because of its last digit.
                more = (total + round(carry[name]), crossings + len(numbers), count + 1, (*names, name))
                open_.append((left - numbers, more))
    return set(best[3]) if best is not None and best[1] == len(paths) else set()


def _can_fill(paths: Sequence[Sequence[str]], carry: Mapping[str, float], cut: set[str]) -> bool:
    """Whether what crosses the paths can fill the hops of a cut, by what the other hops carry."""
    shared = {frozenset(n for n, one in enumerate(paths) if name in one) for name in carry}
    if sum(1 < len(numbers) < len(paths) for numbers in shared) < RING:
        return True
    from scipy.optimize import linprog  # noqa: PLC0415 - loads slowly, and few links need it

    crosses = np.array([[name in one for one in paths] for name in carry], dtype=float)
    found = linprog(-np.ones(len(paths)), A_ub=crosses, b_ub=np.array(list(carry.values())))
    return bool(-found.fun >= (1 - ROUNDING) * sum(carry[name] for name in cut))


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

    Both are of the same intervals, which in a live world end some milliseconds late.

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


RING = 3
"""Where so many hops are each shared by some of the paths and not by all, as each by two of three paths, all
paths together may carry less than any hops that each path crosses once."""

ROUNDING = 1e-6
"""What a sum of bytes may differ by."""

LONGEST_FRAMING = 1.5
"""On the line a packet is no longer than so many times its greatest length: cells of ATM add a fifth."""


def _of_rates(record: Record, direction: Direction, hop: dict[str, Any], times: NDArray[np.int64]) -> Numbers:
    """Bytes that a line could carry which has one rate after another."""
    last = int(times.max()) + 1
    changes = [(0, float(hop["rate"]["bps"]))]
    for change in hop.get("changes", ()):
        if change["to"] == "down":
            changes.append((change["at_ns"], 0.0))
        elif "rate_bps" in change["to"]:
            changes.append((change["at_ns"], float(change["to"]["rate_bps"])))
    shares = _shares(record, direction, hop, last)
    edges = np.unique([at for at, _ in (*changes, *shares) if at < last] + [last])
    rates = _at(changes, edges[:-1]) * _at(shares, edges[:-1])
    steps = np.diff(edges) * rates / 8e9
    return np.asarray(np.interp(times, edges, np.concatenate([[0.0], np.cumsum(steps)])))


def _shares(record: Record, direction: Direction, hop: dict[str, Any], end: int) -> list[tuple[int, float]]:
    """The share of its rate that a line carries from each of these times on."""
    paths, seed = hop.get("reconfiguration"), record.manifest.seed
    if paths is None or seed is None:
        return [(0, 1.0)]
    shares = []
    for at, share in path_shares(hop, direction, seed, end):
        # Behind each path's beginning but the first's the line pauses.
        pauses = paths["outage_ns"] if at else 0
        shares += [(at, 0.0)] * bool(pauses) + [(at + pauses, share)]
    return shares


def _at(steps: Sequence[tuple[int, float]], times: NDArray[np.int64]) -> NDArray[np.float64]:
    """What holds at each of `times`, of values that hold from the time beside them on."""
    begins, values = zip(*steps, strict=True)
    return np.asarray(np.array(values)[np.searchsorted(begins, times, side="right") - 1])
