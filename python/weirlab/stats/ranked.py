"""Numbers at any places of the order of whole numbers of any count, in memory that does not grow with it.

`Counted` knows the usual quantiles; the curve of a distribution takes some thousand places. Numbers are
looked at twice; up to `MOST_KEPT` of them, if they are small, are read once for that. First they are counted
in buckets that are narrow beside what they hold: all of a bucket have the same leading `FIRST_BITS` binary
digits. Then it is known in which bucket each place lies, and the different numbers of these buckets are
counted. Where they would be too many for that, those are looked at in finer buckets first, which takes
another reading. This is a radix selection; nothing is estimated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.counted import MOST_KEPT, Chunk, counts_of, fit_in_half

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    Integers = NDArray[np.integer[Any]]
    Whole = NDArray[np.int64]


class Ranked:
    """Whole numbers in groups, each of which is looked at in order, the least first."""

    def __init__(self, read: Callable[[], Iterable[Chunk]], groups: int) -> None:
        """Counts numbers.

        Args:
            read: gives the numbers each time that it is called, in chunks that fit into memory.
            groups: how many groups there may be; they have the numbers from 0.
        """
        self._read, self._groups = read, groups
        self._missing = np.zeros(groups, np.int64)
        self._kept: list[tuple[Integers, Integers]] | None = []
        tally, count = _Tally(), 0
        for chunk in read():
            if chunk.known is not None:
                self._missing += np.bincount(chunk.group.compress(~chunk.known), minlength=groups)
            group, values = answered(chunk)
            count += values.size
            self._keep(group, values, count)
            buckets = buckets_of(values, FIRST_BITS)
            # Of all groups at once: to take them apart costs as much as to count them.
            buckets *= groups
            buckets += group
            tally.add(buckets)
        self._buckets = tally.counts()

    def count(self, group: int) -> int:
        """How many numbers a group has."""
        return int(self._of(group)[1].sum())

    def missing(self, group: int) -> int:
        """How many rows of a group have no number."""
        return int(self._missing[group])

    def at(self, places: Mapping[int, Whole]) -> dict[int, Whole]:
        """The numbers at places of the order of each group, from 0, which are below its `count`.

        Args:
            places: the places by group; groups without any number have none.
        """
        sought = {group: _Sought(of, *self._of(group)) for group, of in places.items() if of.size}
        bits = FIRST_BITS
        while sum(one.different(bits) for one in sought.values()) > MOST_DIFFERENT and bits < ALL_BITS:
            self._look(sought, bits, bits + MORE_BITS)
            bits += MORE_BITS
        self._look(sought, bits, None)
        return {group: sought[group].keys if group in sought else np.zeros(0, np.int64) for group in places}

    def _of(self, group: int) -> tuple[Whole, Whole]:
        """The buckets of a group in order, and how many numbers are in each."""
        keys, counts = self._buckets
        mine = keys % self._groups == group
        return keys[mine] // self._groups, counts[mine]

    def _keep(self, group: Whole, values: Integers, count: int) -> None:
        """Keeps numbers in half their room until they are looked at again, if there is room for all."""
        if count > MOST_KEPT or not fit_in_half(values):
            self._kept = None
        if self._kept is not None:
            few = np.uint8 if self._groups <= np.iinfo(np.uint8).max else np.int32
            self._kept.append((group.astype(few), values.astype(np.int32)))

    def _again(self) -> Iterable[tuple[Integers, Integers]]:
        """All numbers once more, and their groups."""
        return map(answered, self._read()) if self._kept is None else self._kept

    def _look(self, sought: Mapping[int, _Sought], bits: int, finer: int | None) -> None:
        """Looks at numbers in the buckets that are sought, for finer buckets or the numbers themselves."""
        tallies = {group: _Tally() for group in sought}
        for group, values in self._near(sought, bits) if sought else ():
            tallies[group].add(values if finer is None else buckets_of(values, finer))
        for group, tally in tallies.items():
            keys, counts = tally.counts()
            coarse = buckets_of(keys, bits) if finer is None else wider(keys, MORE_BITS)
            sought[group].look(coarse, keys, counts)

    def _near(self, sought: Mapping[int, _Sought], bits: int) -> Iterator[tuple[int, Integers]]:
        """The numbers in the buckets of so many bits that are sought, by group."""
        wanted = {group: np.unique(one.keys) for group, one in sought.items()}
        coarse = {group: wider(keys, bits - FIRST_BITS) for group, keys in wanted.items()}
        first = min(int(keys[0]) for keys in coarse.values()) - 1
        size = max(int(keys[-1]) for keys in coarse.values()) - first + 2
        there = np.zeros((size, self._groups), np.bool_)
        for group, keys in coarse.items():
            there[keys - first, group] = True
        for groups, every in self._again():
            places = buckets_of(every, FIRST_BITS)
            np.clip(places, first, first + size - 1, out=places)
            places -= first
            places *= self._groups
            places += groups
            # A look into a table takes a tenth of a search, and leaves few to be searched for.
            chosen = there.ravel().take(places)
            near, of = every.compress(chosen), groups.compress(chosen)
            for group, keys in wanted.items():
                values = near.compress(of == group)
                if bits > FIRST_BITS:
                    values = values.compress(np.isin(buckets_of(values, bits), keys))
                yield group, values


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


class _Tally:
    """How often values are there, counted some at a time."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._waiting: list[Integers] = []
        self._room = MOST_WAITING

    def add(self, values: Integers) -> None:
        """Counts values."""
        self._waiting.append(values)
        self._room -= values.size
        if self._room < 0:
            self.counts()

    def counts(self) -> tuple[Whole, Whole]:
        """The different values in order, and how often each is there."""
        if self._waiting:
            found = counts_of(np.concatenate(self._waiting), None)
            both = zip(self._counts, found, strict=True)
            self._counts = counts_of(*(np.concatenate(each) for each in both))
            self._waiting, self._room = [], MOST_WAITING
        return self._counts


def answered(chunk: Chunk) -> tuple[Whole, Integers]:
    """The numbers of a chunk, and their groups."""
    if chunk.known is None:
        return chunk.group, chunk.value
    return chunk.group.compress(chunk.known), chunk.value.compress(chunk.known)


def buckets_of(values: Integers, bits: int) -> Whole:
    """The buckets of whole numbers: those of a bucket have the first `bits` + 1 binary digits in common.

    They have the order of the numbers. 0 and all that is less is bucket 0.
    """
    # A float begins with its exponent, behind which the digits follow: in order, floats are whole numbers.
    digits = values.astype(np.float64).view(np.int64)
    digits >>= np.finfo(np.float64).nmant - bits
    digits -= (EXPONENT_OF_1 << bits) - 1
    return np.maximum(digits, 0, out=digits)


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

MOST_WAITING = 1 << 21
"""Numbers that are kept until they are counted, which take 16 MB."""

EXPONENT_OF_1 = 1023
"""How the exponent of 1.0 is written (IEEE 754, binary64)."""
