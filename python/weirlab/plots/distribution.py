"""The distribution of pings that the CDF draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.plots.series import need_pings
from weirlab.record.configurations import numbered
from weirlab.stats import load_window_ns
from weirlab.stats.counted import fit_in_half
from weirlab.stats.distribution import quantile_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers
    from weirlab.record import Record


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
class Answered:
    """Pings during the load, of which those that were answered took so long.

    Attributes:
        rtt_ns: round trips in nanoseconds, in parts and in any order.
        sent: how many were sent; where losses are not known how many samples there are.
        lost: how many of them were lost; None if that is not known.
    """

    rtt_ns: Sequence[NDArray[np.integer[Any]]]
    sent: int
    lost: int | None

    @property
    def rtt_ms(self) -> Numbers:
        """Round trips in milliseconds, the least first."""
        every = np.concatenate([np.zeros(0, np.int32), *self.rtt_ns])
        every.sort()
        return np.asarray(every / 1e6)


def pings_of(records: Sequence[Record]) -> Answered:
    """The pings of all `records` together during the load.

    Raises:
        UsageError: if one of the records has none that was answered.
    """
    found = []
    for record in records:
        of_probes = _by_number(record)
        one = _together([of_probes[number] for number in record.ping_probes if number in of_probes])
        need_pings(record, one.sent, one.lost)
        found.append(one)
    return _together(found)


def pings_by_probe(record: Record) -> dict[str, Answered]:
    """The pings of each probe during the load. Routers, and probes without a ping, are left out.

    Raises:
        UsageError: if none was answered.
    """
    found = _by_number(record)
    names = numbered(record.probe_names)
    probes = {names[number]: found[number] for number in found if number not in record.manifest.routers}
    if not any(one.sent != one.lost for one in probes.values()):
        pings = _together([found[number] for number in record.ping_probes if number in found])
        need_pings(record, pings.sent, pings.lost)
    return probes


def _by_number(record: Record) -> dict[int, Answered]:
    """The round trips of each probe that has any during the load, by its number, read in chunks."""
    start, end = load_window_ns(record)
    parts: dict[int, list[NDArray[np.integer[Any]]]] = {}
    sent: dict[int, int] = {}
    for at, probe, rtt_ns, known in record.round_trip_chunks():
        inside = (at >= start) & (at < end)
        for number in range(len(record.probe_names)):
            mine = inside & (probe == number)
            count = int(mine.sum())
            if count:
                sent[number] = sent.get(number, 0) + count
                answered = mine if known is None else mine & known
                parts.setdefault(number, []).append(_small(rtt_ns[answered]))
    imported = record.manifest.imported
    unknown = () if imported is None else imported.losses_unknown
    return {
        number: Answered(
            rtt_ns=parts[number],
            sent=sent[number],
            lost=None if number in unknown else sent[number] - sum(part.size for part in parts[number]),
        )
        for number in sorted(sent)
    }


def _small(values: NDArray[np.number[Any]]) -> NDArray[np.integer[Any]]:
    """Whole numbers in half the room, where they have room there: round trips of up to two seconds."""
    return values.astype(np.int32 if fit_in_half(values) else np.int64)


def _together(found: Sequence[Answered]) -> Answered:
    known = all(one.lost is not None for one in found)
    return Answered(
        rtt_ns=[part for one in found for part in one.rtt_ns],
        sent=sum(one.sent for one in found),
        lost=sum(one.lost or 0 for one in found) if known else None,
    )


def cumulative_of(values: Numbers) -> Cumulative:
    """The distribution of values of which none can be lost."""
    return _curve(np.sort(values), values.size, None)


def cumulative(pings: Answered) -> Cumulative:
    """The distribution of the answered pings."""
    return _curve(pings.rtt_ms, pings.sent, pings.lost)


def _curve(ordered: Numbers, sent: int, lost: int | None) -> Cumulative:
    # More points than can be seen only make files large. First and last are always among them.
    points = min(ordered.size, MAX_POINTS)
    ranks = np.linspace(0, ordered.size - 1, points).round().astype(int)
    some = ordered.size > 0
    return Cumulative(
        rtt_ms=np.concatenate([ordered[:1], ordered[ranks]]),
        percent=np.concatenate([ranks[:1] * 0.0, (ranks + 1) * 100 / max(ordered.size, 1)]),
        sent=sent,
        lost=lost,
        median_ms=quantile_in(ordered, 0.5) if some else None,
        p95_ms=quantile_in(ordered, 0.95) if some else None,
        p99_ms=quantile_in(ordered, 0.99) if some else None,
    )


MAX_POINTS = 2000
"""Of a distribution's curve: finer than a printer's dots."""
