"""Exact figures of whole numbers of any count, in memory that does not grow with it.

Up to `MOST_HELD` numbers are held and sorted. More are looked at twice; up to `MOST_KEPT` of them, if they
are small, are read once for that. First they are counted in buckets of `WIDTH`; mean and standard deviation
come of the same pass, chunk by chunk (Chan, Golub and LeVeque 1979). Where an order statistic lies is then
known to a bucket or a few, and only numbers in these are looked at: they are counted by value, of which a
bucket has `WIDTH` at most. This is a radix selection with two digits; nothing is estimated, and both ways
come to the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.distribution import QUANTILES, Distribution, between

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Pool = Mapping[int, float]
    Whole = NDArray[np.int64]
    Integers = NDArray[np.integer[Any]]

DIGIT = 14
"""Binary digits of a number within its bucket."""

WIDTH = 1 << DIGIT
"""Width of a bucket: of times in nanoseconds, 16 us."""

MAX_SPAN = 1 << 20
"""Values that lie that close together are counted in a table, which is ten times as fast as by sorting."""

MOST_HELD = 1 << 20
"""Numbers that are held, which take 8 MB: to sort the few of a usual run costs less than buckets do."""

MOST_KEPT = 1 << 24
"""Numbers that are kept while their figures are made, in four bytes each: 64 MB."""

INT32 = np.iinfo(np.int32)

MERGED_AT = 64
"""Chunks whose counts are kept apart until they are added up."""


@dataclass(frozen=True)
class Chunk:
    """Rows with whole numbers in groups.

    Attributes:
        group: the group of each row.
        value: its number; anything where there is none.
        known: whether there is one; None if there is one everywhere.
    """

    group: Whole
    value: Integers
    known: NDArray[np.bool_] | None

    def missing(self) -> Iterator[tuple[int, int]]:
        """How many rows without a number a group has, of each that has any."""
        if self.known is not None:
            for group, count in zip(*counts_of(self.group[~self.known], None), strict=True):
                yield int(group), int(count)

    @cached_property
    def numbers(self) -> list[tuple[int, Integers]]:
        """The numbers of each group."""
        group, values = self.group, self.value
        if self.known is not None:
            group, values = group.compress(self.known), values.compress(self.known)
        if group.size and group[0] == group[-1] and (group == group[0]).all():
            return [(int(group[0]), values)]
        return [(int(one), values.compress(group == one)) for one in counts_of(group, None)[0]]


class Counted:
    """Whole numbers in groups, counted."""

    def __init__(self, read: Callable[[], Iterable[Chunk]]) -> None:
        """Counts numbers.

        Args:
            read: gives the numbers each time that it is called, in chunks that fit into memory.
        """
        self._read = read
        self._missing: dict[int, int] = {}
        self._moments: dict[int, Moments] = {}
        self._held: dict[int, list[Integers]] | None = {}
        self._kept: list[tuple[int, NDArray[np.int32]]] | None = []
        self._room = MOST_KEPT
        buckets: dict[int, Tally] = {}
        room = MOST_HELD
        for chunk in read():
            for group, count in chunk.missing():
                self._missing[group] = self._missing.get(group, 0) + count
            for group, values in chunk.numbers:
                moments = moments_of(values)
                self._moments[group] = self._moments.get(group, Moments()).with_those_of(moments)
                room -= values.size
                if self._held is not None and room >= 0:
                    self._held.setdefault(group, []).append(values)
                    continue
                for of, parts in (self._held or {}).items():
                    for part in parts:
                        buckets.setdefault(of, Tally()).add(part >> DIGIT)
                        self._keep(of, part)
                self._held = None
                buckets.setdefault(group, Tally()).add(values >> DIGIT)
                self._keep(group, values)
        self._buckets = {group: tally.counts() for group, tally in buckets.items()}

    def groups(self) -> list[int]:
        """The groups that have a row, be it without a number, in order."""
        return sorted({*self._missing, *self._moments})

    def count(self, group: int) -> int:
        """How many numbers a group has."""
        return self._moments.get(group, Moments()).count

    def missing(self, group: int) -> int:
        """How many rows of a group have no number."""
        return self._missing.get(group, 0)

    def mean(self, group: int) -> float:
        """The mean of a group that has a number."""
        return self._moments[group].mean

    def describe(self, pools: Sequence[Pool], scale: float) -> list[Distribution | None]:
        """The figures of the numbers of several groups together; None of pools without a number.

        Args:
            pools: the groups of each pool, and what is taken off each number of theirs.
            scale: by what each difference is divided.
        """
        if self._held is not None:
            return [self._sorted(self._held, pool, scale) for pool in pools]
        selections = [self._selection(pool) for pool in pools]
        wanted: dict[int, set[int]] = {}
        for one in selections:
            for group, bucket in one.wanted if one else ():
                wanted.setdefault(group, set()).add(bucket)
        values = self._values(wanted)
        return [
            None
            if one is None
            else _figures(one.moments, dict(zip(one.places, _ordered(one, values), strict=True)), scale)
            for one in selections
        ]

    def _keep(self, group: int, values: Integers) -> None:
        """Keeps numbers in half their room until they are looked at again, if there is room for all."""
        self._room -= values.size
        if self._room < 0 or not fit_in_half(values):
            self._kept = None
        if self._kept is not None:
            self._kept.append((group, values.astype(np.int32, copy=False)))

    def _again(self) -> Iterable[tuple[int, Integers]]:
        """All numbers once more, by group: those that were kept, or else they are read again."""
        if self._kept is not None:
            return self._kept
        return (one for chunk in self._read() for one in chunk.numbers)

    def _sorted(self, held: Mapping[int, list[Integers]], pool: Pool, scale: float) -> Distribution | None:
        there = self._there(pool)
        if not there:
            return None
        moments = self._moments_of(there)
        numbers = np.concatenate([part - offset for group, offset in there.items() for part in held[group]])
        numbers.sort()
        at = {place: float(numbers[place]) for place in _all_places(moments.count)}
        return _figures(moments, at, scale)

    def _there(self, pool: Pool) -> Pool:
        """The groups of a pool that have a number."""
        return {group: offset for group, offset in pool.items() if group in self._moments}

    def _moments_of(self, there: Pool) -> Moments:
        moments = Moments()
        for group, offset in there.items():
            of = self._moments[group]
            moments = moments.with_those_of(Moments(of.count, of.mean - offset, of.squares))
        return moments

    def _selection(self, pool: Pool) -> _Selection | None:
        there = self._there(pool)
        if not there:
            return None
        moments = self._moments_of(there)
        low = np.concatenate([_low(self._buckets[group][0], offset) for group, offset in there.items()])
        counts = np.concatenate([self._buckets[group][1] for group in there])
        order = np.argsort(low, kind="stable")
        low, until = low[order], np.cumsum(counts[order])
        places = _all_places(moments.count)
        # Buckets below this one have too few numbers; those up to it have enough, all less than WIDTH above.
        bounds = [float(low[np.searchsorted(until, place + 1)]) for place in places]
        wanted = [
            (group, int(bucket))
            for group, offset in there.items()
            for bound in dict.fromkeys(bounds)
            for bucket in self._buckets[group][0][_near(_low(self._buckets[group][0], offset), bound)]
        ]
        return _Selection(there, moments, low, until, wanted, places, bounds)

    def _values(self, wanted: Mapping[int, set[int]]) -> dict[int, tuple[Whole, Whole]]:
        """The numbers in these buckets of groups, and how often each is there."""
        buckets = {group: np.array(sorted(chosen)) for group, chosen in wanted.items()}
        found = {group: Tally() for group in wanted}
        for group, values in self._again() if wanted else ():
            if group in buckets:
                chosen = values[np.isin(values >> DIGIT, buckets[group])]
                found[group].add(chosen.astype(np.int64, copy=False))
        return {group: tally.counts() for group, tally in found.items()}


@dataclass(frozen=True)
class Moments:
    """Count, mean, and sum of the squares of what numbers differ from it."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_those_of(self, other: Moments) -> Moments:
        """The moments of the numbers of both."""
        count = self.count + other.count
        if not self.count or not other.count:
            return self if self.count else other
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * other.count / count,
            self.squares + other.squares + apart * apart * self.count * other.count / count,
        )


def moments_of(values: NDArray[np.number[Any]]) -> Moments:
    """The moments of numbers."""
    if not values.size:
        return Moments()
    numbers = values.astype(float)
    mean = float(numbers.mean())
    return Moments(values.size, mean, float(np.square(numbers - mean).sum()))


def fit_in_half(values: NDArray[np.number[Any]]) -> bool:
    """Whether whole numbers have room in 32 bits each: times in nanoseconds of up to two seconds."""
    return values.size == 0 or bool(values.max() <= INT32.max and values.min() >= INT32.min)


def in_little_room(values: NDArray[np.number[Any]]) -> Integers:
    """Whole numbers in half the usual room, where they have room there; a copy in any case."""
    return values.astype(np.int32 if fit_in_half(values) else np.int64)


class Tally:
    """How often values are there, of which many come again."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._parts: list[tuple[Whole, Whole]] = []

    def add(self, values: Whole, counts: Whole | None = None) -> None:
        """Counts values, each once or so often."""
        self._parts.append(counts_of(values, counts))
        if len(self._parts) > MERGED_AT:
            self._parts = [self.counts()]

    def counts(self) -> tuple[Whole, Whole]:
        """The different values in order, and how often each is there."""
        values, counts = (np.concatenate(both) for both in zip(*self._parts, strict=True))
        return counts_of(values, counts)


def counts_of(values: Whole, weights: Whole | None) -> tuple[Whole, Whole]:
    """The different ones of `values` in order, and how often each is there, or the sum of its weights."""
    if values.size == 0:
        return values, values
    least = int(values.min())
    if int(values.max()) - least < MAX_SPAN:
        # Weights are counts, whose sums are exact as floats.
        table = np.bincount(values - least, weights)
        there = np.flatnonzero(table)
        return there + least, table[there].astype(np.int64)
    if weights is None:
        return np.unique(values, return_counts=True)
    different, place = np.unique(values, return_inverse=True)
    return different, np.bincount(place, weights).astype(np.int64)


@dataclass(frozen=True)
class _Selection:
    """What must be looked at for the figures of a pool.

    Attributes:
        pool: its groups that have numbers.
        moments: those of all its numbers.
        low: lower ends of its buckets, less what is taken off, in order.
        until: how many numbers there are up to each of these buckets.
        wanted: groups and buckets whose numbers must be known.
        places: places in the order of all numbers, from 0, that must be known.
        bounds: of each of them, what the number there is not below; it is less than WIDTH above.
    """

    pool: Pool
    moments: Moments
    low: NDArray[np.float64]
    until: Whole
    wanted: list[tuple[int, int]]
    places: list[int]
    bounds: list[float]


def _figures(moments: Moments, at: Mapping[int, float], scale: float) -> Distribution:
    """The figures of numbers with these moments, and these numbers at the places of `_all_places`."""
    count = moments.count
    quantiles = {
        name: between(at[below] / scale, at[above] / scale, q * (count - 1) - below)
        for q, name in QUANTILES.items()
        for below, above in [_places(q, count)]
    }
    return Distribution(
        count=count,
        mean=moments.mean / scale,
        std=math.sqrt(moments.squares / (count - 1)) / scale if count > 1 else None,
        min=at[0] / scale,
        max=at[count - 1] / scale,
        **quantiles,
    )


def _ordered(of: _Selection, values: Mapping[int, tuple[Whole, Whole]]) -> Iterator[float]:
    """The numbers at the places of a selection."""
    pool = [(group, offset) for group, offset in of.pool.items() if group in values]
    numbers = np.concatenate([values[group][0] - offset for group, offset in pool])
    counts = np.concatenate([values[group][1] for group, _ in pool])
    lows = np.concatenate([_low(values[group][0] >> DIGIT, offset) for group, offset in pool])
    order = np.argsort(numbers, kind="stable")
    numbers, counts, lows = numbers[order], counts[order], lows[order]
    for place, bound in zip(of.places, of.bounds, strict=True):
        # All numbers of the buckets up to `first` are below the one that is looked for.
        first = int(np.searchsorted(of.low, bound - WIDTH, side="right"))
        below = int(of.until[first - 1]) if first else 0
        near = _near(lows, bound)
        yield float(numbers[near][np.searchsorted(np.cumsum(counts[near]), place - below + 1)])


def _near(low: NDArray[np.float64], bound: float) -> NDArray[np.bool_]:
    """Whether buckets with these lower ends can have a number from `bound` to WIDTH above it."""
    return np.asarray((low > bound - WIDTH) & (low < bound + WIDTH))


def _low(bucket: Whole, offset: float) -> NDArray[np.float64]:
    """The lower ends of buckets, less what is taken off their numbers."""
    return np.asarray((bucket << DIGIT) - offset)


def _all_places(count: int) -> list[int]:
    """The places in the order of that many numbers, from 0, that figures are made of."""
    return sorted({place for q in QUANTILES for place in _places(q, count)} | {0, count - 1})


def _places(q: float, count: int) -> tuple[int, int]:
    """The places in the order, from 0, between which the quantile `q` of that many numbers lies."""
    below = int(q * (count - 1))
    return below, min(below + 1, count - 1)
