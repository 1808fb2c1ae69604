"""Pings of one or several records: which were answered, how long they took, how much longer under load.

Tables and charts take round trips from here, so that they cannot disagree about lost pings: every figure
and every curve is of the answered pings, and the lost ones are told beside it as a share of those sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.stats.counted import Chunk, Counted
from weirlab.stats.distribution import Distribution, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from weirlab.record import Record

    Whole = NDArray[np.int64]


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


def answered_count(record: Record) -> int:
    """How many round trips the record has, of pings and all others."""
    return sum(
        chunk.t_ns.size if chunk.known is None else int(chunk.known.sum())
        for chunk in record.round_trip_chunks()
    )


@dataclass(frozen=True, kw_only=True)
class PingFigures:
    """Figures of the pings of a record, however many there are, in milliseconds.

    Attributes:
        idle: all pings in the phase `idle`; None of a test without it beside its load, or without any.
        loaded: all pings during the load, or the whole run where a test has none.
        idle_increase, loaded_increase: how much longer pings took than on the idle line: each by its round
            trip less the mean of its own probe's idle pings, so that probes at different distances may be
            pooled. A probe without idle pings is left out; None without any.
        probes: of each probe during the load, also of those that are no pings over the whole path, by number;
            empty if they were not asked for.
        sent: pings that were sent during the load; where losses are not known how many samples there are.
        lost: how many of them were lost, on either way; None if that is not known.
    """

    idle: Distribution | None
    loaded: Distribution | None
    idle_increase: Distribution | None
    loaded_increase: Distribution | None
    probes: dict[int, Distribution | None]
    sent: int
    lost: int | None

    @property
    def loss_rate(self) -> float | None:
        """Share of them that was lost; None if none was sent, or if that is not known."""
        return self.lost / self.sent if self.sent and self.lost is not None else None


def ping_figures(record: Record, *, of_probes: bool = True) -> PingFigures:
    """The figures of all pings of a record, which are read in chunks and not held.

    Args:
        record: the record.
        of_probes: whether those of each probe are among them.
    """
    counted = Counted(_reading(record))
    over_path = set(record.ping_probes)
    idle = {group: 0.0 for group in counted.groups() if group < 0 and ~group in over_path}
    probes = [group for group in counted.groups() if group >= 0]
    loaded = {probe: 0.0 for probe in probes if probe in over_path}
    means = {~group: counted.mean(group) for group in idle if counted.count(group)}
    pools = [
        idle,
        loaded,
        {~probe: mean for probe, mean in means.items()},
        {probe: mean for probe, mean in means.items() if probe in loaded},
        *({probe: 0.0} for probe in probes if of_probes),
    ]
    found = counted.describe(pools, NS_PER_MS)
    imported = record.manifest.imported
    known = imported is None or loaded.keys().isdisjoint(imported.losses_unknown)
    lost = sum(counted.missing(probe) for probe in loaded)
    return PingFigures(
        idle=found[0],
        loaded=found[1],
        idle_increase=found[2],
        loaded_increase=found[3],
        probes=dict(zip(probes, found[4:], strict=True)) if of_probes else {},
        sent=lost + sum(counted.count(probe) for probe in loaded),
        lost=lost if known else None,
    )


def _reading(record: Record) -> Callable[[], Iterable[Chunk]]:
    """Reads the round trips of a record as often as it is asked: chosen once where they are held anyway."""
    if not record.holds("latency"):
        return lambda: _by_window_and_probe(record)
    chosen = list(_by_window_and_probe(record))
    return lambda: chosen


def _by_window_and_probe(record: Record) -> Iterator[Chunk]:
    """Round trips in ns: those during the load in groups by probe, idle ones by its inverse, `~probe`."""
    windows = [(load_window_ns(record), False)]
    if idle := _idle_window_ns(record):
        windows.append((idle, True))
    for at, probe, value, known in record.round_trip_chunks():
        for window, inverse in windows:
            rows = _rows_in(at, probe, window)
            group = probe[rows]
            if group.size:
                missing = None if known is None else known[rows]
                yield Chunk(group=~group if inverse else group, value=value[rows], known=missing)


def _rows_in(at: Whole, probe: Whole, window: tuple[int, int]) -> slice | NDArray[np.bool_]:
    """Which rows were sent within a window: a slice if all are in order, as Weir's own are."""
    start, end = window
    # A record of a stranger may give its rows any number.
    if at.size and (at[1:] >= at[:-1]).all() and probe.min() >= 0:
        first, last = np.searchsorted(at, window)
        return slice(int(first), int(last))
    return np.asarray((at >= start) & (at < end) & (probe >= 0))


def _idle_window_ns(record: Record) -> tuple[int, int] | None:
    phase = record.phase("idle")
    return None if phase == load_window_ns(record) else phase


def _of(record: Record, window: tuple[int, int], probe: int | None) -> Pings:
    if record.is_long("latency"):
        return pings_in(record, _chosen_rows(record, window, probe), window)
    rows = record.pings if probe is None else record.round_trips(probe)
    return pings_in(record, rows, window)


def _chosen_rows(record: Record, window: tuple[int, int], probe: int | None) -> pl.DataFrame:
    """Rows of a long record that were sent within `window`, with the columns that `pings_in` needs."""
    import polars as pl  # noqa: PLC0415 - figures of all pings need none

    start, end = window
    of = pl.col("probe").is_in(record.ping_probes if probe is None else [probe])
    inside = of & (pl.col("t_ns") >= start) & (pl.col("t_ns") < end)
    chunks = record.chunks("latency", ["t_ns", "probe", "rtt_ns"])
    return pl.concat([chunk.filter(inside) for chunk in chunks]).sort("t_ns", "probe", maintain_order=True)


def pings_in(record: Record, rows: pl.DataFrame, window: tuple[int, int]) -> Pings:
    """The pings of rows of `record.latency`, in their order, sent from start to end of a window in ns."""
    inside = _inside(rows, window)
    imported = record.manifest.imported
    known = imported is None or not inside["probe"].is_in(imported.losses_unknown).any()
    round_trips = inside["rtt_ns"]
    answered = round_trips.drop_nulls() if round_trips.null_count() else round_trips
    return Pings(rtt_ms=answered / 1e6, sent=inside.height, losses_known=known)


def _inside(rows: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    first, last = np.searchsorted(rows["t_ns"].to_numpy(), window)
    return rows.slice(int(first), int(last - first))


def _pooled(found: Sequence[Pings]) -> Pings:
    if len(found) == 1:
        return found[0]
    import polars as pl  # noqa: PLC0415 - figures of all pings need none

    round_trips = [one.rtt_ms for one in found] or [pl.Series(dtype=pl.Float64)]
    known = all(one.losses_known for one in found)
    return Pings(rtt_ms=pl.concat(round_trips), sent=sum(one.sent for one in found), losses_known=known)


NS_PER_MS = 1e6
