"""Pings of long records as charts draw them: dots that would lie on each other are drawn once.

An hour of pings every millisecond is 14 million dots, of which a chart can show some hundred thousand. They
are read in chunks, so that memory grows with what is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.plots import axes as parts
from weirlab.plots.look import current
from weirlab.plots.series import Pings, need_pings, pings
from weirlab.stats.pings import is_any_of
from weirlab.stats.ranked_pings import POOLED, RankedPings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers
    from weirlab.record import Record

    Whole = NDArray[np.int64]


def drawn_pings(record: Record, span_s: tuple[float, float] | None = None) -> Pings:
    """The pings of all probes; of a long record the first in each cell of a grid that is finer than the dots.

    Args:
        record: the record.
        span_s: first and last second that are drawn; all if None.

    Raises:
        UsageError: if none was answered.
    """
    if not record.is_long("latency"):
        return pings(record)
    shares_ms = _shares_ms(record)
    start_ns, end_ns = (0, record.reached_ns) if span_s is None else (int(t * 1e9) for t in span_s)
    taken = np.zeros((COLUMNS + 1) * (ROWS + 1), dtype=bool)
    t_s, rtt_ms, lost_s = [], [], []
    for at, rtt_ns, known in ping_chunks(record):
        inside = (at >= start_ns) & (at <= end_ns)
        if known is not None:
            lost_s.append(at[~known] / 1e9)
            inside &= known
        t_ns, took_ms = at[inside], rtt_ns[inside] / 1e6
        across = _cells((t_ns - start_ns) / max(end_ns - start_ns, 1), COLUMNS)
        cells = across * (ROWS + 1) + _cells(_heights(took_ms, shares_ms), ROWS)
        cells, first = np.unique(cells, return_index=True)
        kept = np.sort(first[~taken[cells]])
        taken[cells] = True
        t_s.append(t_ns[kept] / 1e9)
        rtt_ms.append(took_ms[kept])
    return Pings(
        t_s=np.concatenate(t_s),
        rtt_ms=np.concatenate(rtt_ms),
        lost_s=np.concatenate([np.zeros(0), *lost_s]),
        shares_ms=shares_ms,
    )


def _shares_ms(record: Record) -> Numbers:
    """What parts the answered round trips in `SHARES` equal shares, with the least and the greatest.

    Raises:
        UsageError: if none was answered.
    """
    every = RankedPings([(record, ALWAYS_NS)])
    sent, answered = every.sent(POOLED), every.answered(POOLED)
    need_pings(record, sent, sent - answered)
    places = np.linspace(0, answered - 1, SHARES + 1).round().astype(int)
    return np.asarray(every.at_ns({POOLED: places})[POOLED] / 1e6)


def _heights(took_ms: Numbers, shares_ms: Numbers) -> Numbers:
    """How high round trips lie on their axis: from 0 to 1, or beyond."""
    look = current()
    if look.ping_scale == "log":
        ends = look.ping_ms or (float(shares_ms[0]), float(shares_ms[-1]))
        low, high = (np.log(max(end, LEAST_MS)) for end in ends)
        return np.asarray((np.log(np.maximum(took_ms, LEAST_MS)) - low) / max(high - low, LEAST_MS))
    low, high = look.ping_ms or (0.0, parts.end_of(shares_ms))
    return np.asarray((took_ms - low) / max(high - low, LEAST_MS))


def _cells(shares: Numbers, count: int) -> NDArray[np.int64]:
    return np.clip(shares * count, 0, count).astype(np.int64)


def ping_chunks(record: Record) -> Iterator[tuple[Whole, Whole, NDArray[np.bool_] | None]]:
    """The times, round trips and answers of pings, as `RoundTrips` has them."""
    for at, probe, rtt_ns, known in record.round_trip_chunks():
        mine = is_any_of(probe, record.ping_probes)
        if mine.all():
            yield at, rtt_ns, known
        else:
            yield at[mine], rtt_ns[mine], None if known is None else known[mine]


EVERY_PING = "Every ping of all probes is a point"
"""What charts say of their dots; dots that are left out would not be seen."""

COLUMNS, ROWS = 4000, 2000
"""Cells of the grid: several for each dot of a page's width, and of a chart's height."""

ALWAYS_NS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""From when to when pings are looked at that may have been sent at any time."""

SHARES = 1000
"""By which the ends of an axis are found (`axes.end_of` takes the 995th)."""

LEAST_MS = 1e-6
"""A nanosecond: what can be told apart at all."""
