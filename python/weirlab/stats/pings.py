"""Pings of one or several records: which were answered, how long they took, how much longer under load.

Tables and charts take round trips from here, so that they cannot disagree about lost pings: every figure
and every curve is of the answered pings, and the lost ones are told beside it as a share of those sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weirlab.stats.distribution import Distribution, describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record


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
    idle = _answered(record, idle_window)
    means = idle.group_by("probe").agg(idle_mean_ms=pl.col("rtt_ms").mean())

    def longer(pings: pl.DataFrame) -> Distribution | None:
        joined = pings.join(means, on="probe")
        return describe(joined["rtt_ms"] - joined["idle_mean_ms"])

    return longer(idle), longer(_answered(record, load_window_ns(record)))


def _idle_window_ns(record: Record) -> tuple[int, int] | None:
    phase = record.phase("idle")
    return None if phase == load_window_ns(record) else phase


def _of(record: Record, window: tuple[int, int], probe: int | None) -> Pings:
    rows = record.pings if probe is None else record.latency.filter(pl.col("probe") == probe)
    return pings_in(record, rows, window)


def pings_in(record: Record, rows: pl.DataFrame, window: tuple[int, int]) -> Pings:
    """The pings of `rows` of `record.latency` that were sent from start to end of a window, in ns."""
    inside = _inside(rows, window)
    imported = record.manifest.imported
    known = imported is None or not inside["probe"].is_in(imported.losses_unknown).any()
    return Pings(rtt_ms=inside["rtt_ns"].drop_nulls() / 1e6, sent=inside.height, losses_known=known)


def _answered(record: Record, window: tuple[int, int]) -> pl.DataFrame:
    inside = _inside(record.pings, window).drop_nulls("rtt_ns")
    return inside.select("probe", rtt_ms=pl.col("rtt_ns") / 1e6)


def _inside(rows: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    start, end = window
    return rows.filter((pl.col("t_ns") >= start) & (pl.col("t_ns") < end))


def _pooled(found: Sequence[Pings]) -> Pings:
    round_trips = [one.rtt_ms for one in found] or [pl.Series(dtype=pl.Float64)]
    known = all(one.losses_known for one in found)
    return Pings(rtt_ms=pl.concat(round_trips), sent=sum(one.sent for one in found), losses_known=known)
