"""The distribution of pings that the CDF draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.plots.series import need_pings
from weirlab.record.configurations import numbered
from weirlab.stats import Pings as Made
from weirlab.stats import loaded_pings

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def pings_of(records: Sequence[Record]) -> Pings:
    """The pings of all `records` together during the load.

    Raises:
        UsageError: if one of the records has none that was answered.
    """
    for record in records:
        found = loaded_pings([record])
        need_pings(record, found.sent, found.lost)
    return loaded_pings(records)


def pings_by_probe(record: Record) -> dict[str, Pings]:
    """The pings of each probe during the load. Routers, and probes without a ping, are left out.

    Raises:
        UsageError: if none was answered.
    """
    probes = {
        name: loaded_pings([record], probe=number)
        for number, name in enumerate(numbered(record.probe_names))
        if number not in record.manifest.routers
    }
    if not any(pings.rtt_ms.len() for pings in probes.values()):
        found = loaded_pings([record])
        need_pings(record, found.sent, found.lost)
    return {name: pings for name, pings in probes.items() if pings.sent}


def cumulative_of(values: Numbers) -> Cumulative:
    """The distribution of values of which none can be lost."""
    return replace(cumulative(Made(rtt_ms=pl.Series(values), sent=values.size)), lost=None)


def cumulative(pings: Pings) -> Cumulative:
    """The distribution of the answered pings."""
    answered = np.sort(pings.rtt_ms.to_numpy())
    # More points than can be seen only make files large. First and last are always among them.
    points = min(answered.size, MAX_POINTS)
    ranks = np.linspace(0, answered.size - 1, points).round().astype(int)
    figures = pings.distribution
    return Cumulative(
        rtt_ms=np.concatenate([answered[:1], answered[ranks]]),
        percent=np.concatenate([ranks[:1] * 0.0, (ranks + 1) * 100 / max(answered.size, 1)]),
        sent=pings.sent,
        lost=pings.lost,
        median_ms=figures.median if figures else None,
        p95_ms=figures.p95 if figures else None,
        p99_ms=figures.p99 if figures else None,
    )


MAX_POINTS = 2000
"""Of a distribution's curve: finer than a printer's dots."""
