"""Numbers at any places of the order of whole numbers of any count, in memory that does not grow with it.

`Counted` knows the usual quantiles; the curve of a distribution takes some thousand places. Numbers are
read two times. First they are counted in buckets that are narrow beside what they hold: all of a bucket
have the same leading `FIRST_BITS` binary digits. Then it is known in which bucket each place lies, and the
different numbers of these buckets are counted. Where they would be too many for that, those are looked at
in finer buckets first, which takes another reading. This is a radix selection; nothing is estimated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.counted import Chunk, Moments, counts_of, moments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    Integers = NDArray[np.integer[Any]]
    Whole = NDArray[np.int64]


class Ranked:
    """Whole numbers in groups, each of which is looked at in order, the least first."""

    def __init__(self, read: Callable[[], Iterable[Chunk]]) -> None:
        """Counts numbers.

        Args:
            read: gives the numbers each time that it is called, in chunks that fit into memory.
        """
        self._read = read
        self._missing: dict[int, int] = {}
        self._moments: dict[int, Moments] = {}
        buckets = _Tallies()
        for chunk in read():
            for group, count in chunk.missing():
                self._missing[group] = self._missing.get(group, 0) + count
            for group, values in chunk.numbers:
                self._moments[group] = self._moments_of(group).with_those_of(moments_of(values))
                buckets.add(group, buckets_of(values, FIRST_BITS))
        self._buckets = buckets.counts()

    def groups(self) -> list[int]:
        """The groups that have a row, be it without a number, in order."""
        return sorted({*self._missing, *self._moments})

    def count(self, group: int) -> int:
        """How many numbers a group has."""
        return self._moments_of(group).count

    def missing(self, group: int) -> int:
        """How many rows of a group have no number."""
        return self._missing.get(group, 0)

    def moments(self, group: int) -> Moments:
        """The moments of the numbers of a group."""
        return self._moments_of(group)

    def at(self, places: Mapping[int, Whole]) -> dict[int, Whole]:
        """The numbers at places of the order of each group, from 0, which are below its `count`.

        Args:
            places: the places by group; groups without any number have none.
        """
        sought = {group: _Sought(of, *self._buckets[group]) for group, of in places.items() if of.size}
        bits = FIRST_BITS
        while sum(one.different(bits) for one in sought.values()) > MOST_DIFFERENT and bits < ALL_BITS:
            self._look(sought, bits, bits + MORE_BITS)
            bits += MORE_BITS
        self._look(sought, bits, None)
        return {group: sought[group].keys if group in sought else np.zeros(0, np.int64) for group in places}

    def _look(self, sought: Mapping[int, _Sought], bits: int, finer: int | None) -> None:
        """Reads numbers in the buckets that are sought: seeks finer ones, or the numbers themselves."""
        tallies = _Tallies()
        wanted = {group: _Buckets(one.keys, bits) for group, one in sought.items()}
        for chunk in self._read() if sought else ():
            for group, every in chunk.numbers:
                if group in wanted:
                    values = wanted[group].of(every)
                    tallies.add(group, values if finer is None else buckets_of(values, finer))
        for group, (keys, counts) in tallies.counts().items():
            coarse = buckets_of(keys, bits) if finer is None else wider(keys, MORE_BITS)
            sought[group].look(coarse, keys, counts)

    def _moments_of(self, group: int) -> Moments:
        return self._moments.get(group, Moments())


class _Sought:
    """Where the places of an order lie.

    Attributes:
        keys: of each place the bucket that its number is in, or the number.
    """

    def __init__(self, places: Whole, keys: Whole, counts: Whole) -> None:
        """Seeks places among buckets in order that hold so many numbers each."""
        self._rank, self._number = places, np.zeros(places.size, np.int64)
        self.keys = self._number
        self.look(np.zeros(keys.size, np.int64), keys, counts)

    def different(self, bits: int) -> int:
        """How many different numbers the buckets may have."""
        _, first = np.unique(self.keys, return_index=True)
        return int(np.minimum(self._number[first], widths(self.keys[first], bits)).sum())

    def look(self, coarse: Whole, keys: Whole, counts: Whole) -> None:
        """Seeks in finer buckets: those that lie within coarse ones, in order, and how many each holds."""
        until = np.concatenate([[0], np.cumsum(counts)])
        rank = self._rank + until[np.searchsorted(coarse, self.keys)]
        found = np.searchsorted(until, rank, side="right") - 1
        self.keys, self._number, self._rank = keys[found], counts[found], rank - until[found]


class _Tallies:
    """How often values are there in each group, counted some at a time."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._counts: dict[int, tuple[Whole, Whole]] = {}
        self._waiting: dict[int, list[Integers]] = {}
        self._room = MOST_WAITING

    def add(self, group: int, values: Integers) -> None:
        """Counts values of a group."""
        self._waiting.setdefault(group, []).append(values)
        self._room -= values.size
        if self._room < 0:
            self.counts()

    def counts(self) -> dict[int, tuple[Whole, Whole]]:
        """The different values of each group in order, and how often each is there."""
        for group, parts in self._waiting.items():
            found = counts_of(np.concatenate(parts), None)
            if before := self._counts.get(group):
                found = counts_of(*(np.concatenate(both) for both in zip(before, found, strict=True)))
            self._counts[group] = found
        self._waiting, self._room = {}, MOST_WAITING
        return self._counts


class _Buckets:
    """Some buckets, out of which numbers are picked."""

    def __init__(self, buckets: Whole, bits: int) -> None:
        """These buckets of so many `bits`, of which there is one at least."""
        self._buckets, self._bits = np.unique(buckets), bits
        coarse = wider(self._buckets, bits - FIRST_BITS)
        self._first = int(coarse[0]) - 1
        self._there = np.zeros(int(coarse[-1]) - self._first + 2, np.bool_)
        self._there[coarse - self._first] = True

    def of(self, values: Integers) -> Integers:
        """The numbers in these buckets."""
        # A look into a table takes a tenth of a search, and leaves few to be searched for.
        places = np.clip(buckets_of(values, FIRST_BITS) - self._first, 0, self._there.size - 1)
        near = values[self._there[places]]
        if self._bits == FIRST_BITS:
            return near
        return np.asarray(near[np.isin(buckets_of(near, self._bits), self._buckets)])


def buckets_of(values: Integers, bits: int) -> Whole:
    """The buckets of whole numbers: those of a bucket have the first `bits` + 1 binary digits in common.

    They have the order of the numbers. 0 and all that is less is bucket 0.
    """
    # A float begins with its exponent, behind which the digits follow: in order, floats are whole numbers.
    digits = values.astype(np.float64).view(np.int64) >> (np.finfo(np.float64).nmant - bits)
    return np.asarray(np.maximum(digits - ((EXPONENT_OF_1 << bits) - 1), 0))


def wider(buckets: Whole, bits: int) -> Whole:
    """The buckets with `bits` digits less that have these within them."""
    return np.where(buckets > 0, ((buckets - 1) >> bits) + 1, 0)


def widths(buckets: Whole, bits: int) -> Whole:
    """How many different whole numbers are in each of these buckets, as `buckets_of` made them."""
    return np.where(buckets > 0, 1 << np.maximum(((buckets - 1) >> bits) - bits, 0), np.iinfo(np.int64).max)


FIRST_BITS = 16
"""Of the buckets that all numbers are counted in: round trips of 20 ms have some of 256 ns."""

MORE_BITS, ALL_BITS = 8, 48
"""By how many each digits finer buckets are, and where they have one number each."""

MOST_DIFFERENT = 1 << 21
"""Different numbers that are counted at once, which take 32 MB."""

MOST_WAITING = 1 << 20
"""Numbers that are kept until they are counted, which take 8 MB."""

EXPONENT_OF_1 = 1023
"""How the exponent of 1.0 is written (IEEE 754, binary64)."""
