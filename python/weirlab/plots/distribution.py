"""The distributions that the CDF and the Q-Q plot draw: numbers at some places of an order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.plots.series import need_pings
from weirlab.record.configurations import numbered
from weirlab.stats import load_window_ns
from weirlab.stats.counted import moments_of
from weirlab.stats.distribution import HALF
from weirlab.stats.pings import NS_PER_MS, any_answered
from weirlab.stats.ranked_pings import POOLED, RankedPings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers
    from weirlab.record import Record
    from weirlab.stats.counted import Moments

    Whole = NDArray[np.int64]


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


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """Numbers in order, the least first, of which those at some places are looked at.

    Attributes:
        size: how many there are.
        at: gives the numbers at places in the order, from 0. Each call may read whole records.
        mean, deviation: their mean and standard deviation (n).
    """

    size: int
    at: Callable[[Whole], Numbers]
    mean: float
    deviation: float

    @staticmethod
    def of(numbers: Numbers) -> Ordered:
        """Numbers that are in order and held."""
        return _ordered(moments_of(numbers), 1.0, numbers.__getitem__)

    def quantiles(self, shares: Numbers) -> Numbers:
        """The quantiles of these shares, 0 to 1: those that `numpy.quantile` gives."""
        return _quantiles(self.at(_around(shares, self.size)), shares, self.size)


def _around(shares: Numbers, size: int) -> Whole:
    """The places in an order between which the quantiles of these shares lie: all below, and all above."""
    below = (shares * (size - 1)).astype(int)
    return np.concatenate([below, np.minimum(below + 1, size - 1)])


def _quantiles(around: Numbers, shares: Numbers, size: int) -> Numbers:
    """The quantiles of these shares, of the numbers at the places of `_around`."""
    wanted = shares * (size - 1)
    low, high = np.split(around, 2)
    step, part = high - low, wanted - wanted.astype(int)
    return np.asarray(np.where(part < HALF, low + step * part, high - step * (1 - part)))


def ordered_pings(records: Sequence[Record]) -> Ordered:
    """The answered pings of all `records` together during the load, in milliseconds.

    Raises:
        UsageError: if one of the records has none.
    """
    pings = _pooled(records)

    def at(places: Whole) -> Numbers:
        return np.asarray(pings.at_ns({POOLED: places})[POOLED] / NS_PER_MS)

    return _ordered(pings.moments_ns, NS_PER_MS, at)


def _ordered(of: Moments, unit: float, at: Callable[[Whole], Numbers]) -> Ordered:
    """Numbers in units of which these are the moments once each is multiplied by `unit`."""
    return Ordered(
        size=of.count, at=at, mean=of.mean / unit, deviation=math.sqrt(of.squares / of.count) / unit
    )


def pooled_pings(records: Sequence[Record]) -> Cumulative:
    """The distribution of the pings of all `records` together during the load.

    Raises:
        UsageError: if one of the records has none that was answered.
    """
    return _curves(_pooled(records), [POOLED])[POOLED]


def pings_by_probe(record: Record) -> dict[str, Cumulative]:
    """The distribution of each probe's pings during the load, without routers and probes without a ping.

    Raises:
        UsageError: if none was answered.
    """
    names = numbered(record.probe_names)
    spans = [(record, load_window_ns(record))]
    pings = RankedPings(spans, probes=range(len(names)))
    there = [number for number in range(len(names)) if pings.sent(number)]
    found = _curves(pings, [number for number in there if number not in record.manifest.routers])
    curves = {names[number]: one for number, one in found.items()}
    if not any(one.sent != one.lost for one in curves.values()):
        over_path = RankedPings(spans)
        need_pings(record, over_path.sent(POOLED), over_path.lost(POOLED))
    return curves


def cumulative_of(values: Numbers) -> Cumulative:
    """The distribution of values of which none can be lost."""
    ordered = np.sort(values)
    return _curve(ordered[_of_curve(ordered.size)], ordered.size, values.size, None)


def _pooled(records: Sequence[Record]) -> RankedPings:
    """The pings of all `records` together during the load.

    Raises:
        UsageError: if one of the records has none that was answered.
    """
    spans = [(record, load_window_ns(record)) for record in records]
    for record, span in spans if len(spans) > 1 else []:
        if not any_answered(record, span):
            alone = RankedPings([(record, span)])
            need_pings(record, alone.sent(POOLED), alone.lost(POOLED))
    pings = RankedPings(spans)
    need_pings(records[0], pings.sent(POOLED), pings.lost(POOLED))
    return pings


def _curves(pings: RankedPings, groups: Sequence[int]) -> dict[int, Cumulative]:
    """The distribution of the answered pings of some groups."""
    found = pings.at_ns({group: _of_curve(pings.answered(group)) for group in groups})
    return {
        group: _curve(at / NS_PER_MS, pings.answered(group), pings.sent(group), pings.lost(group))
        for group, at in found.items()
    }


def _of_curve(size: int) -> Whole:
    """The places in an order of so many numbers that a curve and its figures are made of."""
    return np.concatenate([_ranks(size), _around(FIGURES, size)]) if size else np.zeros(0, np.int64)


def _ranks(size: int) -> Whole:
    """The places of a curve's points: both ends, and not more than can be seen, which make files large."""
    return np.linspace(0, size - 1, min(size, MAX_POINTS)).round().astype(int)


def _curve(numbers: Numbers, size: int, sent: int, lost: int | None) -> Cumulative:
    """The curve of the numbers at the places of `_of_curve`."""
    ranks = _ranks(size)
    points, around = numbers[: ranks.size], numbers[ranks.size :]
    median, p95, p99 = _quantiles(around, FIGURES, size).tolist() if size else [None] * 3
    return Cumulative(
        rtt_ms=np.concatenate([points[:1], points]),
        percent=np.concatenate([ranks[:1] * 0.0, (ranks + 1) * 100 / max(size, 1)]),
        sent=sent,
        lost=lost,
        median_ms=median,
        p95_ms=p95,
        p99_ms=p99,
    )


FIGURES = np.array([0.5, 0.95, 0.99])
"""Shares of the quantiles that stand below a curve."""

MAX_POINTS = 2000
"""Of a distribution's curve: finer than a printer's dots."""
