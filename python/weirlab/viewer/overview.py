"""What a page draws of very many pings until a reader zooms in: rows that make the same picture, and curves.

A screen has a few thousand columns of pixels. Of each short spell of time the shortest and the longest ping
are taken, as rows of the table itself, and a lost one: drawn as lines, these cannot be told from all rows
unless a spell is wider than a pixel. For closer looks, and for figures of a span, the page reads the part
files that have rows in it.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.plots.series import step_ns
from weirlab.record import pack
from weirlab.record.parts import packed
from weirlab.stats import load_window_ns
from weirlab.stats.counted import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record

    Whole = NDArray[np.int64]

__all__ = ["Overview", "is_large", "overview_of"]


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What a page has of a record with very many pings.

    Attributes:
        rows: how many rows `latency` has.
        spell_s: of each spell of that length are the rows in `latency`.
        parts: from when to when the pings of each part file were sent, in s; None as the end if that is not
            known.
        means_ms: means of the pings over the whole path in each step of the charts; None where there is none.
        curves: of each probe by number, and of all pings over the whole path together (-1), how many % took
            no longer than so many ms during the load.
        reached: of each curve the quantiles at `SHARES` in ms, as near as its buckets tell.
        latency: the shortest, the longest and a lost ping of each spell and probe, as a Parquet file.
    """

    rows: int
    spell_s: float
    parts: list[tuple[float, float | None]]
    means_ms: list[float | None]
    curves: dict[int, tuple[list[float], list[float]]]
    reached: dict[int, list[float]]
    latency: bytes

    def told(self) -> dict[str, Any]:
        """What the viewer is told of it, as plain values."""
        return {
            "rows": self.rows,
            "spell_s": self.spell_s,
            "parts": self.parts,
            "means_ms": self.means_ms,
            "curves": {
                str(probe): {
                    "ms": ms,
                    "percent": part,
                    "reached": dict(zip(map(str, SHARES), self.reached[probe], strict=True)),
                }
                for probe, (ms, part) in self.curves.items()
            },
        }

    def archive(self, record: Record, *, compressed: bool) -> bytes:
        """The record as a `.weir` file that has the rows of the overview in place of its pings."""
        content = io.BytesIO()
        instead = {"latency/part-000000.parquet": self.latency}
        pack(record, content, compressed=compressed, without=record.parts("latency"), more=instead)
        return content.getvalue()


def is_large(record: Record) -> bool:
    """Whether a record has so many pings that a page begins with an overview of them."""
    parts, written = record.parts("latency"), (record.manifest.tables or {}).get("latency")
    return len(parts) > MANY_PARTS if written is None else written.rows > MANY_ROWS


def overview_of(record: Record) -> Overview:
    """The overview of a record's pings, which are read in chunks.

    Raises:
        RecordError: if a part file is damaged.
    """
    step = step_ns(record.reached_ns)
    spell = _spell_ns(step, record.reached_ns)
    window, means = load_window_ns(record), _Means(record.reached_ns, step)
    kept, curves = [], _Curves(record.ping_probes)
    spans: list[tuple[float, float | None]] = []
    rows = 0
    for chunk in record.chunks("latency", COLUMNS):
        rows += chunk.height
        at, probe, value = (_numbers(chunk[name]) for name in COLUMNS)
        spans.append((float(at.min()) / 1e9, float(at.max()) / 1e9) if at.size else (0.0, 0.0))
        chosen = np.zeros(at.size, np.bool_)
        for one, places in _by_probe(probe):
            t, values, there = at[places], value[places], places
            answered = values != LOST
            if not answered.all():
                lost = ~answered
                chosen[places[lost][_firsts(t[lost], spell)]] = True
                t, values, there = t[answered], values[answered], places[answered]
            chosen[there[_extremes(t, values, spell)]] = True
            inside = (t >= window[0]) & (t < window[1])
            curves.add(one, values if inside.all() else values[inside])
            if one in record.ping_probes:
                means.add(t, values)
        kept.append([column[chosen] for column in (at, probe, value)])
    if len(spans) != len(record.parts("latency")):
        # Rows that are held already come in one chunk: any part may have any of them.
        spans = [(0.0, None)] * len(record.parts("latency"))
    return Overview(
        rows=rows,
        spell_s=spell / 1e9,
        parts=spans,
        means_ms=means.found(),
        **curves.found(),
        latency=_written(kept),
    )


def _spell_ns(step: int, reached: int) -> int:
    """The length of a spell, an equal part of a step of the charts; there are about `SPELLS`."""
    parts = max(1, math.ceil(SPELLS * step / max(reached, 1)))
    return max(step // parts, 1)


def _numbers(column: pl.Series) -> Whole:
    """The numbers of a column, with `LOST` where there is none."""
    there = column.set(column.is_null(), LOST) if column.null_count() else column
    return there.to_numpy()


def _by_probe(probe: Whole) -> Iterator[tuple[int, Whole]]:
    """The places of the rows of each probe; a record of a stranger may have any number."""
    if probe.size == 0:
        return
    if probe[0] == probe[-1] and (probe == probe[0]).all():
        yield int(probe[0]), np.arange(probe.size)
    elif probe.min() >= 0 and probe.max() < MAX_COUNTED:
        for one in np.flatnonzero(np.bincount(probe)):
            yield int(one), np.flatnonzero(probe == one)
    else:
        for one in np.unique(probe):
            yield int(one), np.flatnonzero(probe == one)


def _extremes(t: Whole, values: Whole, spell: int) -> Whole:
    """The places of the least and the greatest value of each spell."""
    if t.size == 0:
        return t
    starts = _starts(t, spell)
    # A value and its place in one number, of which the least and the greatest are found at once.
    both = (np.clip(values, 0, MAX_VALUE) << PLACE_BITS) | np.arange(t.size)
    found = np.concatenate([np.minimum.reduceat(both, starts), np.maximum.reduceat(both, starts)])
    return np.asarray(found & ((1 << PLACE_BITS) - 1))


def _firsts(t: Whole, spell: int) -> Whole:
    """The places of the first of each spell."""
    return _starts(t, spell) if t.size else t


def _starts(t: Whole, spell: int) -> Whole:
    """Where in `t` another spell begins."""
    of = t // spell
    return np.concatenate([[0], np.flatnonzero(of[1:] != of[:-1]) + 1])


class _Means:
    """Means of pings in each step of the charts."""

    def __init__(self, reached: int, step: int) -> None:
        """Of steps of `step` ns up to `reached`."""
        self._step, self._steps = step, max(reached // step, 1)
        self._sums, self._counts = np.zeros(self._steps), np.zeros(self._steps, np.int64)

    def add(self, t: Whole, values: Whole) -> None:
        """Takes pings in; those behind the last whole step are left out."""
        step = np.clip(t // self._step, 0, self._steps)
        self._sums += np.bincount(step, values, self._steps + 1)[: self._steps]
        self._counts += np.bincount(step, minlength=self._steps + 1)[: self._steps]

    def found(self) -> list[float | None]:
        """The means in ms; None of a step without an answered ping."""
        both = zip(self._sums, self._counts, strict=True)
        return [float(total / count / NS_PER_MS) if count else None for total, count in both]


class _Curves:
    """Which share of the pings of each probe took no longer than how long."""

    def __init__(self, over_path: Sequence[int]) -> None:
        """Curves of every probe, and of those over the whole path together."""
        self._over_path = over_path
        self._digit: int | None = None
        self._tallies: dict[int, Tally] = {}
        self._ends: dict[int, tuple[int, int]] = {}

    def add(self, probe: int, values: Whole) -> None:
        """Counts round trips in ns of a probe, in buckets that are narrow beside the first ones' median."""
        if values.size == 0:
            return
        if self._digit is None:
            self._digit = max(0, int(np.median(values)).bit_length() - NARROW_BITS)
        self._tallies.setdefault(probe, Tally()).add(values >> self._digit)
        low, high = int(values.min()), int(values.max())
        least, greatest = self._ends.get(probe, (low, high))
        self._ends[probe] = min(low, least), max(high, greatest)

    def found(self) -> dict[str, Any]:
        """The curves: ms, and % that took no longer; and quantiles of each in ms, at `SHARES`."""
        tallies, ends = dict(self._tallies), dict(self._ends)
        together = [probe for probe in tallies if probe in self._over_path]
        if together:
            tallies[POOLED] = whole = Tally()
            for probe in together:
                whole.add(*tallies[probe].counts())
            lows, highs = zip(*(ends[probe] for probe in together), strict=True)
            ends[POOLED] = min(lows), max(highs)
        counted = {probe: tally.counts() for probe, tally in tallies.items()}
        return {
            "curves": {probe: self._curve(*counts, *ends[probe]) for probe, counts in counted.items()},
            "reached": {probe: self._reached(*counts, *ends[probe]) for probe, counts in counted.items()},
        }

    def _curve(self, buckets: Whole, counts: Whole, low: int, high: int) -> tuple[list[float], list[float]]:
        until = np.cumsum(counts)
        total = int(until[-1])
        # Even shares, and the tail ever finer: one ping in a thousand, in ten thousand and so on.
        even, tail = np.linspace(1, total, CURVE_POINTS), total - np.geomspace(1, total, CURVE_POINTS)
        ranks = np.concatenate([even, tail])
        chosen = np.unique(np.clip(np.searchsorted(until, np.sort(ranks)), 0, until.size - 1))
        # All numbers of a bucket lie below its upper end.
        ends = np.minimum((buckets[chosen] + 1) << (self._digit or 0), high)
        ms = np.concatenate([[low], ends]) / NS_PER_MS
        percent = np.concatenate([[min(100 / total, 100.0)], 100 * until[chosen] / total])
        return np.round(ms, 6).tolist(), np.round(percent, 6).tolist()

    def _reached(self, buckets: Whole, counts: Whole, low: int, high: int) -> list[float]:
        """The quantiles at `SHARES`, as if every number were the middle one of its bucket."""
        middles = np.clip((buckets * 2 + 1) << (self._digit or 0) >> 1, low, high) / NS_PER_MS
        until = np.cumsum(counts)
        places = np.array(SHARES) / 100 * (int(until[-1]) - 1)
        below = np.floor(places).astype(np.int64)
        first, second = (
            middles[np.searchsorted(until, np.minimum(place, until[-1] - 1), side="right")]
            for place in (below, below + 1)
        )
        reached: list[float] = np.round(first + (second - first) * (places - below), 6).tolist()
        return reached


def _written(kept: Sequence[Sequence[Whole]]) -> bytes:
    columns = [np.concatenate(each) for each in zip(*kept, strict=True)] or [np.array([], np.int64)] * len(
        COLUMNS
    )
    table = pl.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    table = table.with_columns(rtt_ns=pl.when(pl.col("rtt_ns") != LOST).then(pl.col("rtt_ns")))
    # Packed as the viewer itself unpacks it, without a library.
    return packed(table, "snappy", statistics=False)


COLUMNS = ["t_ns", "probe", "rtt_ns"]

POOLED = -1
"""All pings over the whole path together, in place of a probe's number."""

LOST = -(1 << 63)
"""In place of a round trip that there is none of."""

MAX_COUNTED = 1 << 16
"""Probes up to that number are looked for by counting."""

MANY_ROWS = 1_000_000
"""Pings that a page reads and draws as they are within a third of a second."""

MANY_PARTS = 12
"""Part files of pings of a run that was cut short; each has 100 000 rows or fewer."""

SPELLS = 1 << 15
"""Many times the pixels of a screen, so that a reader may zoom in before rows are read."""

SHARES = (90, 99.9)
"""Shares in % that the table of a distribution has and the figures of a run (`weirlab.stats`) have not."""

CURVE_POINTS = 1000
"""A curve on a screen has no more steps that can be seen."""

NARROW_BITS = 12
"""A bucket is narrower than a 2000th of the median."""

PLACE_BITS = 24
"""A part file has no more rows than that."""

MAX_VALUE = (1 << (62 - PLACE_BITS)) - 1
"""275 s: longer round trips are taken for that long when the longest of a spell is sought."""

NS_PER_MS = 1e6
