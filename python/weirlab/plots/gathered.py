"""Lines over time of records of any length: their points come piece by piece, and of very many some are kept.

A line of a day has a million points, of which a chart has room for a thousand beside each other. Up to
`MOST_POINTS` points of a chart all are drawn. Of more, each line keeps of every short spell the first and
the last, the least and the greatest of what lies between two gaps, so that no extreme is lost and gaps stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.plots import caption

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers

    Points = tuple[Numbers, Numbers]
    Places = NDArray[np.intp]
    Flags = NDArray[np.bool_]


class Gathered:
    """The points of the lines of a chart, as they come."""

    def __init__(
        self, reached_s: float, span_s: tuple[float, float] | None = None, *, averaged: Collection[str] = ()
    ) -> None:
        """Gathers lines, of which there are none yet.

        Args:
            reached_s: how long the run took, in seconds.
            span_s: first and last second that are drawn; all if None. Of what is not drawn little is kept.
            averaged: quantities of which the average of all lines is asked for.
        """
        self._reached_s, self._span_s = reached_s, span_s or (0.0, reached_s)
        self._averaged = averaged
        self._parts: dict[tuple[str, Hashable], list[Points]] = {}
        self._averages: dict[str, _Average] = {}
        self._room, self._spells = MOST_POINTS, 0

    def add(self, quantity: str, line: Hashable, t_s: Numbers, values: Numbers) -> None:
        """Adds points of a line.

        Args:
            quantity: what the line is of.
            line: by what it is asked for.
            t_s: times of the points, in seconds.
            values: the points; NaN where there is none.
        """
        self._parts.setdefault((quantity, line), []).append((t_s, values))
        if quantity in self._averages:
            self._averages[quantity].add(t_s, values)
        self._room -= t_s.size
        if self._room < 0:
            self._thin()

    def lines(self, quantity: str) -> list[Hashable]:
        """The lines of a quantity that have a point or a gap, in the order in which they came."""
        return [line for of, line in self._parts if of == quantity]

    def points(self, quantity: str, line: Hashable) -> Points:
        """Times of a line in seconds, in order, and its values: all points, or those that are kept."""
        parts = self._parts[quantity, line]
        if len(parts) == 1:
            t_s, values = parts[0]
        else:
            t_s, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        if (t_s[1:] < t_s[:-1]).any():
            order = np.argsort(t_s, kind="stable")
            t_s, values = t_s[order], values[order]
        self._parts[quantity, line] = [(t_s, values)]
        return t_s, values

    def average(self, quantity: str) -> Points | None:
        """The times at which lines of a quantity have points, and the mean of all that have one there.

        None if all points of all lines are kept, or if it was not to be asked for.
        """
        if quantity not in self._averages:
            return None
        t_s, values = self._averages[quantity].points()
        kept = worth_drawing(t_s, values, self._span_s, MOST_SPELLS)
        return t_s[kept], values[kept]

    @property
    def note(self) -> str:
        """A sentence on which points are kept; empty if all are."""
        if not self._spells:
            return ""
        start, end = self._span_s
        spell = caption.length(float(f"{(end - start) / self._spells:.2g}"))
        return f" Of each {spell} of a line: first and last, least and greatest."

    def _thin(self) -> None:
        """Lets go of points that are not worth drawing."""
        for quantity in self._averaged:
            if quantity not in self._averages:
                lines = [self.points(quantity, line) for line in self.lines(quantity)]
                self._averages[quantity] = _Average(lines, self._reached_s)
        self._spells = min(MOST_SPELLS, max(MOST_POINTS // (2 * OF_SPELL * len(self._parts)), 1))
        kept = 0
        for quantity, line in list(self._parts):
            t_s, values = self.points(quantity, line)
            places = worth_drawing(t_s, values, self._span_s, self._spells)
            self._parts[quantity, line] = [(t_s[places], values[places])]
            kept += places.size
        # Gaps may keep more than half of them.
        self._room = max(MOST_POINTS - kept, kept)


class _Average:
    """The mean of several lines over time.

    Ends of a live path sample at times of their own: points of one step are of one time.
    """

    def __init__(self, lines: Sequence[Points], reached_s: float) -> None:
        """The mean of these lines, and of what is added, in steps such as these have."""
        steps = [float(np.median(np.diff(t_s))) for t_s, _ in lines if t_s.size > 1]
        self._step = max(max(steps, default=0.0) or 1.0, reached_s / MOST_STEPS)
        self._count, self._times, self._sums = np.zeros(0), np.zeros(0), np.zeros(0)
        for t_s, values in lines:
            self.add(t_s, values)

    def add(self, t_s: Numbers, values: Numbers) -> None:
        """Adds points of a line."""
        there = np.isfinite(values)
        t_s, values = t_s[there], values[there]
        number = np.round(t_s / self._step).astype(np.int64)
        more = max(int(number.max(initial=-1)) + 1 - self._count.size, 0)
        sums = (np.pad(one, (0, more)) for one in (self._count, self._times, self._sums))
        self._count, self._times, self._sums = sums
        for into, what in ((self._count, 1.0), (self._times, t_s), (self._sums, values)):
            np.add.at(into, number, what)

    def points(self) -> Points:
        """Its times and values."""
        there = self._count > 0
        return self._times[there] / self._count[there], self._sums[there] / self._count[there]


def worth_drawing(t_s: Numbers, values: Numbers, span_s: tuple[float, float], spells: int) -> Places:
    """The places of the points that make the picture of a line which has many in each spell of its time.

    Of each stretch of a spell between two gaps that is the first, the last, the least and the greatest; of
    gaps it is one point. Of stretches that lie within a spell and between two gaps, such as single points,
    those are left out that lie where another one does and are not the spell's least or greatest.

    Args:
        t_s: times of the points in seconds, in order.
        values: the points; NaN where there is none.
        span_s: first and last second that are drawn; all before is a spell, and all behind.
        spells: how many spells there are between them.
    """
    if t_s.size == 0:
        return np.zeros(0, dtype=np.intp)
    start, end = span_s
    spell = np.floor(np.clip((t_s - start) * (spells / max(end - start, LEAST_S)), -1, spells))
    there = np.isfinite(values)
    # Where a gap goes on over several spells, it is one.
    begins = (spell[1:] != spell[:-1]) & there[1:] | (there[1:] != there[:-1])
    first = np.concatenate([[0], np.flatnonzero(begins) + 1])
    is_gap = ~there[first]
    least, greatest = _extremes(values, first)
    kept = ~_repeated(spell[first], values[least], values[greatest], is_gap)
    # A gap behind what is left out would stand beside the one before it.
    kept[1:] &= ~(is_gap[1:] & ~kept[:-1])
    whole = kept & ~is_gap
    last = np.append(first[1:], t_s.size) - 1
    return np.unique(np.concatenate([first[kept], last[whole], least[whole], greatest[whole]]))


def _extremes(values: Numbers, first: Places) -> tuple[Places, Places]:
    """Where the least and the greatest value of each stretch stand first, and its first where it has none."""
    stretch = np.repeat(np.arange(first.size), np.diff(np.append(first, values.size)))
    found = []
    for extreme in (np.minimum, np.maximum):
        at = np.flatnonzero(values == extreme.reduceat(values, first)[stretch])
        place = first.copy()
        # Of several the one that is written last stays.
        place[stretch[at[::-1]]] = at[::-1]
        found.append(place)
    return found[0], found[1]


def _repeated(spell: Numbers, least: Numbers, greatest: Numbers, is_gap: Flags) -> Flags:
    """Which stretches lie between two gaps and where another such one of their spell does."""
    between = ~is_gap
    between[1:] &= is_gap[:-1]
    between[:-1] &= is_gap[1:]
    # The last one may go on.
    between[-1] = False
    chosen = np.flatnonzero(between)
    repeated = np.zeros(spell.size, np.bool_)
    if not chosen.size:
        return repeated
    spell, least, greatest = spell[chosen], least[chosen], greatest[chosen]
    cell = max(float(np.abs(greatest).max()), float(np.abs(least).max())) / HEIGHTS or 1.0
    cells = [(one // cell).astype(np.int64) for one in (least, greatest)]
    _, others = np.unique(np.stack([spell.astype(np.int64), *cells], axis=1), axis=0, return_index=True)
    begins = np.concatenate([[0], np.flatnonzero(spell[1:] != spell[:-1]) + 1])
    ends = [_extremes(least, begins)[0], _extremes(greatest, begins)[1]]
    repeated[chosen] = True
    repeated[chosen[np.concatenate([others, *ends])]] = False
    return repeated


MOST_POINTS = 1 << 22
"""Points of a chart of which none is left out: four hours of eight flows that are sampled every 100 ms have
fewer. With what Matplotlib makes of them they take 130 MB."""

MOST_STEPS = 1 << 22
"""Steps of an average, which take 100 MB: five days of samples every 100 ms. Longer runs have longer ones."""

MOST_SPELLS = 4096
"""Spells of a line that has too many points: several for each dot of a page's width."""

OF_SPELL = 4
"""Points that are kept of a spell without gaps."""

HEIGHTS = 256
"""Heights of stretches between gaps that are told apart, up to the greatest."""

LEAST_S = 1e-9
"""A nanosecond: what can be told apart at all."""
