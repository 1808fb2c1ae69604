"""The distribution of pings that the CDF draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.plots.series import need_pings
from weirlab.record.configurations import numbered
from weirlab.stats import load_window_ns, loaded_pings
from weirlab.stats.counted import Moments, moments_of
from weirlab.stats.distribution import HALF
from weirlab.stats.pings import NS_PER_MS, pings_within, pooled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers
    from weirlab.record import Record
    from weirlab.stats import Pings


@dataclass(frozen=True, kw_only=True)
class Cumulative:
    """Cumulative distribution: share of the answered pings that took at most so long.

    Attributes:
        rtt_ms, percent: the curve, from 0 to 100 % of the answered pings, or of values of another quantity in
            its own unit (`cumulative_of`); no points without any.
        sent, lost: numbers of pings.
        median_ms, p95_ms, p99_ms: quantiles of the answered pings, as tables have them; None if none was.
    """

    rtt_ms: Numbers
    percent: Numbers
    sent: int
    lost: int | None
    median_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class Ordered:
    """Numbers in order, the least first, which may be many: none but those that are asked for are divided.

    Attributes:
        numbers: the numbers.
        unit: what each is divided by: of round trips in nanoseconds, which are given in milliseconds, 1e6.
    """

    numbers: NDArray[np.number[Any]]
    unit: float = 1.0

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.numbers.size)

    def at(self, places: NDArray[np.integer[Any]]) -> Numbers:
        """The numbers at these places in the order, from 0."""
        return np.asarray(self.numbers[places] / self.unit)

    def quantiles(self, shares: Numbers) -> Numbers:
        """The quantiles of these shares, 0 to 1: those that `numpy.quantile` gives."""
        wanted = shares * (self.size - 1)
        below = wanted.astype(int)
        low, high = self.at(below), self.at(np.minimum(below + 1, self.size - 1))
        step, part = high - low, wanted - below
        return np.asarray(np.where(part < HALF, low + step * part, high - step * (1 - part)))

    def mean_and_deviation(self) -> tuple[float, float]:
        """Their mean and standard deviation (n), summed up part by part."""
        every = Moments()
        for start in range(0, self.size, PART):
            every = every.with_those_of(moments_of(self.numbers[start : start + PART]))
        return every.mean / self.unit, math.sqrt(every.squares / every.count) / self.unit


def ordered_pings(pings: Pings) -> Ordered:
    """The round trips of the answered pings in milliseconds."""
    every = pings.all_ns
    every.sort()
    return Ordered(every, NS_PER_MS)


def pings_of(records: Sequence[Record]) -> Pings:
    """The pings of all `records` together during the load.

    Raises:
        UsageError: if one of the records has none that was answered.
    """
    found = []
    for record in records:
        one = loaded_pings([record])
        need_pings(record, one.sent, one.lost)
        found.append(one)
    return pooled(found)


def pings_by_probe(record: Record) -> dict[str, Pings]:
    """The pings of each probe during the load. Routers, and probes without a ping, are left out.

    Raises:
        UsageError: if none was answered.
    """
    names = numbered(record.probe_names)
    window = load_window_ns(record)
    found = dict(enumerate(pings_within(record, window, *([number] for number in range(len(names))))))
    probes = {
        names[number]: one
        for number, one in found.items()
        if one.sent and number not in record.manifest.routers
    }
    if not any(one.sent != one.lost for one in probes.values()):
        pings = pooled([found[number] for number in record.ping_probes])
        need_pings(record, pings.sent, pings.lost)
    return probes


def cumulative_of(values: Numbers) -> Cumulative:
    """The distribution of values of which none can be lost."""
    return _curve(Ordered(np.sort(values)), values.size, None)


def cumulative(pings: Pings) -> Cumulative:
    """The distribution of the answered pings."""
    return _curve(ordered_pings(pings), pings.sent, pings.lost)


def _curve(ordered: Ordered, sent: int, lost: int | None) -> Cumulative:
    # More points than can be seen only make files large. First and last are always among them.
    points = min(ordered.size, MAX_POINTS)
    ranks = np.linspace(0, ordered.size - 1, points).round().astype(int)
    median, p95, p99 = ordered.quantiles(np.array([0.5, 0.95, 0.99])).tolist() if points else [None] * 3
    return Cumulative(
        rtt_ms=ordered.at(np.concatenate([ranks[:1], ranks])),
        percent=np.concatenate([ranks[:1] * 0.0, (ranks + 1) * 100 / max(ordered.size, 1)]),
        sent=sent,
        lost=lost,
        median_ms=median,
        p95_ms=p95,
        p99_ms=p99,
    )


MAX_POINTS = 2000
"""Of a distribution's curve: finer than a printer's dots."""

PART = 1 << 20
"""Numbers that are summed up at once, as floats of 8 MB."""
