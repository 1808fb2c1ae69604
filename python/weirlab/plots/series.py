"""Series that the charts draw, computed from records: numbers only, nothing of how they look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.errors import UsageError
from weirlab.record.configurations import numbered
from weirlab.record.round_trips import round_trips_in
from weirlab.stats.capacity import limit_bytes
from weirlab.stats.sharing import sharing
from weirlab.stats.summary import latency_summary, totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.stats import Direction

    Numbers = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Several quantities over time, in equal steps; NaN where there is no sample.

    Attributes:
        step_s: length of a step in seconds.
        t_s: middle of each step in seconds.
        lines: mean within each step, by name.
        average: mean over the lines; of flows over those that run then.
        low, high: least and greatest of what lies behind: of the lines for throughput, of the
            single pings for latency.
    """

    step_s: float
    t_s: Numbers
    lines: dict[str, Numbers]
    average: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True, kw_only=True)
class Pings:
    """The pings of a record: all of them, or of a long one those that can be told apart (`drawn_pings`).

    Attributes:
        t_s: when the answered ones were sent, in seconds.
        rtt_ms: how long they took, in milliseconds.
        lost_s: when the lost ones were sent, in seconds.
        shares_ms: of a long record the least round trip, the greatest, and what parts all in equal shares
            between them; None if `rtt_ms` has all.
    """

    t_s: Numbers
    rtt_ms: Numbers
    lost_s: Numbers
    shares_ms: Numbers | None = None

    @property
    def of_all_ms(self) -> Numbers:
        """Round trips by which an axis is set: they are distributed as all are."""
        return self.rtt_ms if self.shares_ms is None else self.shares_ms


def throughput_mbps(record: Record, direction: Direction) -> Lines | None:
    """Goodput of each flow of a direction in Mbit/s; None if there is no such flow or no sample.

    Mean and range are those of the flows that share the line.
    """
    flows = record.flows_in(direction)
    edges = _edges(record)
    if edges.size < 2 or not record.has_rows("throughput"):
        return None
    interval = record.interval_ns("throughput")
    arrived = {flow["flow"]: _Arrived(edges, interval) for flow in flows}
    for rows in record.pieces("throughput", ("t_ns", "flow", "bytes")):
        at, number, got = (rows.numbers(name) for name in ("t_ns", "flow", "bytes"))
        for flow, one in arrived.items():
            mine = number == flow
            one.add(at[mine], got[mine])
    if not any(one.sampled for one in arrived.values()):
        return None
    names = numbered([flow["name"] for flow in flows])
    lines: dict[str, Numbers] = {
        name: np.diff(arrived[flow["flow"]].until) * 8e3 / np.diff(edges)
        for name, flow in zip(names, flows, strict=True)
    }
    averaged = sharing(record, flows)
    every = np.vstack([line for line, flow in zip(lines.values(), flows, strict=True) if flow in averaged])
    mean = _mean_of_running(every, averaged, edges)
    return _lines(edges, lines, mean, every.min(axis=0), every.max(axis=0))


def latency_ms(record: Record) -> Lines | None:
    """Round trips of each probe in milliseconds; None if no ping was answered."""
    edges = _edges(record)
    if edges.size < 2:
        return None
    every, count = _in_steps(record, int(edges[1] - edges[0])), edges.size - 1
    if not every:
        return None
    # Average and range are those of pings; what speed tests saw within their own flows is a line beside them,
    # unless there is nothing else.
    counted = every.keys() & set(record.ping_probes) or every.keys()
    lines, means, lows, highs = {}, [], [], []
    for number, name in enumerate(numbered(record.probe_names)):
        if number not in every:
            continue
        mean, low, high = every[number].placed(count)
        if not np.isfinite(mean).any():
            continue
        lines[name] = mean
        if number not in counted:
            continue
        means.append(mean)
        lows.append(low)
        highs.append(high)
    average = _mean(np.vstack(means))
    return _lines(edges, lines, average, np.fmin.reduce(lows), np.fmax.reduce(highs))


class _Steps:
    """Round trips of a probe in equal steps of time: how many there are in each, their sum, and the ends."""

    def __init__(self) -> None:
        self._size = 0
        self._number: Numbers = np.zeros(0)
        self._total: Numbers = np.zeros(0)
        self._low: Numbers = np.zeros(0)
        self._high: Numbers = np.zeros(0)

    def add(self, step: NDArray[np.int64], rtt_ms: Numbers) -> None:
        """Adds round trips, each with the number of its step."""
        more = max(int(step.max()) + 1 - self._size, 0)
        self._size += more
        self._number, self._total = (np.pad(one, (0, more)) for one in (self._number, self._total))
        self._low = np.pad(self._low, (0, more), constant_values=np.inf)
        self._high = np.pad(self._high, (0, more), constant_values=-np.inf)
        self._number += np.bincount(step, minlength=self._size)
        self._total += np.bincount(step, rtt_ms, self._size)
        np.minimum.at(self._low, step, rtt_ms)
        np.maximum.at(self._high, step, rtt_ms)

    def placed(self, count: int) -> tuple[Numbers, Numbers, Numbers]:
        """Mean, least and greatest of each of the first steps, so many of them; NaN where there is none."""
        number = np.where(self._number > 0, self._number, np.nan)
        there = self._number > 0
        found = (
            self._total / number,
            np.where(there, self._low, np.nan),
            np.where(there, self._high, np.nan),
        )
        missing = max(count - self._size, 0)
        mean, low, high = (np.pad(one, (0, missing), constant_values=np.nan)[:count] for one in found)
        return mean, low, high


def _in_steps(record: Record, step_ns: int) -> dict[int, _Steps]:
    """The answered round trips of each probe by steps of that length, read in chunks."""
    found: dict[int, _Steps] = {}
    for at, probe, value, known in record.round_trip_chunks():
        for number in np.unique(probe).tolist():
            mine = probe == number if known is None else (probe == number) & known
            if mine.any():
                found.setdefault(number, _Steps()).add(at[mine] // step_ns, value[mine] / 1e6)
    return found


def pings(record: Record) -> Pings:
    """All pings of all probes.

    Raises:
        UsageError: if none was answered.
    """
    at, probe, value, known = round_trips_in(record.columns("latency"))
    mine = np.isin(probe, record.ping_probes)
    answered = mine if known is None else mine & known
    lost = mine & ~answered
    need_pings(record, int(mine.sum()), int(lost.sum()))
    return Pings(t_s=at[answered] / 1e9, rtt_ms=value[answered] / 1e6, lost_s=at[lost] / 1e9)


def need_pings(record: Record, sent: int, lost: int | None) -> None:
    """Sees to it that there is a ping to draw.

    Raises:
        UsageError: if none was sent, or all were lost.
    """
    if sent == 0:
        raise UsageError(f"`{record.path}` has no pings to draw")
    if sent == lost:
        raise UsageError(f"`{record.path}` has no pings to draw: all were lost")


def none_answered(records: Sequence[Record]) -> str:
    """A sentence for charts that have nothing to draw of pings which were all lost; empty if none were.

    It is about those of the load, or the whole run where a test has none.
    """
    silent = [
        found
        for found in map(latency_summary, records)
        if found.sent and found.lost == found.sent and found.loaded is None
    ]
    if not silent:
        return ""
    if len(silent) < len(records):
        return f" In {len(silent)} of {len(records)} runs no ping {_when(records)} was answered."
    sent = sum(found.sent for found in silent)
    return f" No ping {_when(records)} was answered: all {sent} were lost."


def _when(records: Sequence[Record]) -> str:
    return "under load" if any(record.phase("load") for record in records) else "of the run"


def exceeds_line(record: Record, direction: Direction, lines: Lines | None = None) -> bool:
    """Whether goodput was above what the line carries, in some step of `lines`.

    Without `lines` it is the goodput of all flows together, in each sampling interval of the load.
    """
    if lines is None:
        ends_s, of_all = totals(record, direction)
        mbps: Numbers = of_all
        edges = np.append(ends_s[:1] * 1e9 - record.interval_ns("throughput"), ends_s * 1e9)
    else:
        mbps = lines.high
        edges = np.append(lines.t_s - lines.step_s / 2, lines.t_s[-1:] + lines.step_s / 2) * 1e9
    if mbps.size == 0:
        return False
    times = edges.round().astype(np.int64)
    capacity = limit_bytes(record, direction, times)
    if capacity is None:
        return False
    line = np.diff(capacity) * 8e3 / np.diff(times)
    return bool(mbps.max() > ABOVE * line.max())


def running_mean(values: Numbers, steps: int) -> Numbers:
    """Mean of `steps` values around each, an odd number; of fewer at the ends."""
    places = np.arange(values.size)
    first = np.maximum(places - steps // 2, 0)
    beyond = np.minimum(places + steps // 2 + 1, values.size)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray((sums[beyond] - sums[first]) / (beyond - first))


def step_ns(reached_ns: int) -> int:
    """Length of the steps of a run that got that far, in nanoseconds: as Flent's, longer for long runs."""
    return next(step for step in STEPS_NS if reached_ns <= MAX_STEPS * step or step == STEPS_NS[-1])


def _edges(record: Record) -> NDArray[np.int64]:
    """Borders of the steps in nanoseconds."""
    reached = record.reached_ns
    step = step_ns(reached)
    if reached < step:
        return np.array([0, reached] if reached else [0])
    return np.arange(0, reached + 1, step)


class _Arrived:
    """Bytes of a flow that had arrived at each of some times.

    A sample counts the bytes of the interval that ends at its time; within it they are taken to
    arrive evenly. Intervals without a sample are those in which nothing arrived.

    Attributes:
        until: the bytes at these times.
        sampled: whether there is any sample.
    """

    def __init__(self, edges: NDArray[np.int64], interval: int) -> None:
        """At the times `edges`, of samples that are taken every `interval`, in nanoseconds."""
        self._edges, self._interval = edges, interval
        self.until, self.sampled = np.zeros(edges.size), False
        self._last, self._total = -np.inf, 0

    def add(self, t_ns: NDArray[np.number[Any]], got: NDArray[np.number[Any]]) -> None:
        """Adds the next samples, with their times and bytes."""
        if t_ns.size == 0:
            return
        t = t_ns.astype(float)
        total = self._total + np.cumsum(got)
        before = np.concatenate([[self._last], t[:-1]])
        # The clock of a live system comes a little early or late: up to half an interval is no gap.
        start = np.where(t - before <= 1.5 * self._interval, before, t - self._interval)
        times = np.column_stack([start, t]).ravel()
        totals = np.column_stack([np.concatenate([[self._total], total[:-1]]), total]).ravel().astype(float)
        if self.sampled:
            times, totals = np.insert(times, 0, self._last), np.insert(totals, 0, self._total)
        later = self._edges >= self._last
        self.until[later] = np.interp(self._edges[later], times, totals)
        self._last, self._total, self.sampled = t[-1], int(total[-1]), True


def _mean_of_running(lines: Numbers, flows: Sequence[Mapping[str, Any]], edges: NDArray[np.int64]) -> Numbers:
    """Mean over the flows that run in each step; where none does, over those of which bytes still arrive."""
    starts, stops = (
        np.array([flow[column] for flow in flows])[:, np.newaxis] for column in ("start_ns", "stop_ns")
    )
    runs = (starts < edges[1:]) & (stops > edges[:-1])
    counted = np.where(runs.any(axis=0), runs, lines > 0)
    return np.asarray((lines * counted).sum(axis=0) / np.maximum(counted.sum(axis=0), 1))


def _mean(lines: Numbers) -> Numbers:
    """Mean over the lines that have a value; NaN where none has."""
    there = np.isfinite(lines).sum(axis=0)
    sums: Numbers = np.nansum(lines, axis=0)
    sums[there == 0] = np.nan
    return np.asarray(sums / np.maximum(there, 1))


def _lines(
    edges: NDArray[np.int64],
    lines: dict[str, Numbers],
    average: Numbers,
    low: Numbers,
    high: Numbers,
) -> Lines:
    return Lines(
        step_s=float(edges[1] - edges[0]) / 1e9,
        t_s=(edges[:-1] + edges[1:]) / 2e9,
        lines=lines,
        average=average,
        low=low,
        high=high,
    )


STEPS_NS = tuple(
    int(seconds * 1e9) for seconds in (0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
)
"""Lengths of a step: 200 ms is Flent's; then as a clock has them."""

MAX_STEPS = 500
"""About as many as can be told apart on a line as wide as a page."""

ABOVE = 1.02
"""A goodput beyond the line's rate by more than this is no matter of rounding."""

PEAKS = (
    "Peaks above the line's rate: bytes that waited behind a lost packet and reached the application at once."
)
