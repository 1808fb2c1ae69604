"""Pings of one or several records: which were answered, how long they took, how much longer under load.

Tables and charts take round trips from here, so that they cannot disagree about lost pings: every figure
and every curve is of the answered pings, and the lost ones are told beside it as a share of those sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.stats.distribution import Distribution, describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record

    Numbers = NDArray[np.number[Any]]


@dataclass(frozen=True, kw_only=True)
class Pings:
    """Pings that were sent in a span of time.

    Attributes:
        rtt_ms: round trips in milliseconds of those that were answered, by the time of sending.
        sent: how many were sent; where losses are not known how many samples there are.
        losses_known: whether the record tells what was lost (`Imported.losses_unknown`).
    """

    rtt_ms: pl.Series
    sent: int
    losses_known: bool = True

    @property
    def lost(self) -> int | None:
        """Number of pings that were lost, on either way; None if that is not known."""
        return self.sent - self.rtt_ms.len() if self.losses_known else None

    @property
    def loss_rate(self) -> float | None:
        """Share of them that was lost; None if none was sent, or if that is not known."""
        return self.lost / self.sent if self.sent and self.lost is not None else None

    @property
    def distribution(self) -> Distribution | None:
        """The figures of the answered pings, in milliseconds; None if none was answered."""
        return describe(self.rtt_ms)


def loaded_pings(records: Sequence[Record], *, probe: int | None = None) -> Pings:
    """The pings of all `records` during the load, or the whole run where a test has none.

    Args:
        records: the records, whose pings are pooled.
        probe: number of the one probe to take, which may also be that of a speed test's own flow; None takes
            all pings over the whole path.
    """
    return _pooled([_of(record, load_window_ns(record), probe) for record in records])


def idle_pings(records: Sequence[Record], *, probe: int | None = None) -> Pings:
    """The pings of all `records` in the phase `idle`; none of a test without that phase beside its load."""
    windows = [(record, _idle_window_ns(record)) for record in records]
    return _pooled([_of(record, window, probe) for record, window in windows if window])


def load_window_ns(record: Record) -> tuple[int, int]:
    """Start and end of the phase `load`, or of the whole run if it has none, in nanoseconds."""
    return record.phase("load") or (0, record.reached_ns)


def increases_ms(record: Record) -> tuple[Distribution | None, Distribution | None]:
    """How much longer pings took than on the idle line, in the phases `idle` and `load`, in milliseconds.

    Each ping counts by its round trip less the mean of its own probe's idle pings, so that probes at
    different distances may be pooled. A probe without idle pings is left out. Each is None without any.
    """
    idle_window = _idle_window_ns(record)
    if idle_window is None:
        return None, None
    probes, idle_ms = _answered(record, idle_window)
    known = np.unique(probes)
    means = np.array([idle_ms[probes == probe].mean() for probe in known])

    def longer(probes: Numbers, rtt_ms: Numbers) -> Distribution | None:
        here = np.isin(probes, known)
        return describe(
            pl.Series(rtt_ms[here] - means[np.searchsorted(known, probes[here])], dtype=pl.Float64)
        )

    return longer(probes, idle_ms), longer(*_answered(record, load_window_ns(record)))


def _idle_window_ns(record: Record) -> tuple[int, int] | None:
    phase = record.phase("idle")
    return None if phase == load_window_ns(record) else phase


def _of(record: Record, window: tuple[int, int], probe: int | None) -> Pings:
    rows = record.pings if probe is None else record.round_trips(probe)
    return pings_in(record, rows, window)


def pings_in(record: Record, rows: pl.DataFrame, window: tuple[int, int]) -> Pings:
    """The pings of rows of `record.latency`, in their order, sent from start to end of a window in ns."""
    inside = _inside(rows, window)
    imported = record.manifest.imported
    known = imported is None or not inside["probe"].is_in(imported.losses_unknown).any()
    round_trips = inside["rtt_ns"]
    answered = round_trips.drop_nulls() if round_trips.null_count() else round_trips
    return Pings(rtt_ms=answered / 1e6, sent=inside.height, losses_known=known)


def _answered(record: Record, window: tuple[int, int]) -> tuple[Numbers, Numbers]:
    """Of each answered ping its probe, and its round trip in milliseconds."""
    inside = _inside(record.pings, window)
    rtt_ms = inside["rtt_ns"].to_numpy() / 1e6
    answered = np.isfinite(rtt_ms)
    return inside["probe"].to_numpy()[answered], rtt_ms[answered]


def _inside(rows: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    first, last = np.searchsorted(rows["t_ns"].to_numpy(), window)
    return rows.slice(int(first), int(last - first))


def _pooled(found: Sequence[Pings]) -> Pings:
    if len(found) == 1:
        return found[0]
    round_trips = [one.rtt_ms for one in found] or [pl.Series(dtype=pl.Float64)]
    known = all(one.losses_known for one in found)
    return Pings(rtt_ms=pl.concat(round_trips), sent=sum(one.sent for one in found), losses_known=known)
