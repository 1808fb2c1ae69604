"""The distribution of pings that the CDF draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.plots.series import load_window_ns, need_pings
from weirlab.record.set_ups import numbered
from weirlab.stats import load_latency_ms, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.plots.series import Numbers
    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Cumulative:
    """Which share of the pings took at most how long. A lost ping is one that never comes back.

    Attributes:
        rtt_ms, percent: the curve, from 0 to less than 100 % if pings were lost.
        sent, lost: numbers of pings.
        median_ms, p95_ms, p99_ms: where the curve crosses 50, 95, 99 %; None if it does not.
    """

    rtt_ms: Numbers
    percent: Numbers
    sent: int
    lost: int
    median_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


def loaded_pings_ms(records: Sequence[Record]) -> pl.Series:
    """Round trips during the load of all `records` together, in milliseconds; null where lost.

    Raises:
        UsageError: if one of the records has none.
    """
    found = []
    for record in records:
        found.append(load_latency_ms(record))
        need_pings(record, found[-1])
    return pl.concat(found)


def loaded_pings_by_probe_ms(record: Record) -> dict[str, pl.Series]:
    """Round trips of each probe during the load, in milliseconds; null where lost. Routers are left out.

    Raises:
        UsageError: if there are none.
    """
    start, end = load_window_ns(record)
    inside = (pl.col("t_ns") >= start) & (pl.col("t_ns") < end)
    during = record.latency.filter(inside & ~pl.col("probe").is_in(record.manifest.routers))
    need_pings(record, during["rtt_ns"])
    probes = {
        name: during.filter(pl.col("probe") == number)["rtt_ns"] / 1e6
        for number, name in enumerate(numbered(record.probe_names))
    }
    return {name: round_trips for name, round_trips in probes.items() if round_trips.len()}


def cumulative(rtt_ms: pl.Series) -> Cumulative:
    """The distribution of round trips in milliseconds, of which null are the lost ones."""
    answered = np.sort(rtt_ms.drop_nulls().to_numpy())
    sent = rtt_ms.len()
    # More points than can be seen only make files large. First and last are always among them.
    points = min(answered.size, MOST_POINTS)
    ranks = np.linspace(0, answered.size - 1, points).round().astype(int)
    return Cumulative(
        rtt_ms=np.concatenate([answered[:1], answered[ranks]]),
        percent=np.concatenate([ranks[:1] * 0.0, (ranks + 1) * 100 / sent]),
        sent=sent,
        lost=sent - answered.size,
        median_ms=_crossing(rtt_ms, 0.5),
        p95_ms=_crossing(rtt_ms, 0.95),
        p99_ms=_crossing(rtt_ms, 0.99),
    )


def _crossing(rtt_ms: pl.Series, share: float) -> float | None:
    """The quantile `share` with the lost ones as the longest; None if it falls among them."""
    if np.ceil(share * (rtt_ms.len() - 1)) >= rtt_ms.count():
        return None
    # Which large number the lost ones become does not matter: none of them is touched.
    return quantile(rtt_ms.fill_null(float(np.finfo(float).max)), share)


MOST_POINTS = 2000
"""Of a distribution's curve: finer than a printer's dots."""
