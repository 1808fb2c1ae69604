"""Samples of a record as points and steps of Flent's format, read part by part."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.record.in_order import in_order, least_of
from weirlab.stats import loaded_pings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from weirlab.record import Record

    Numbers = NDArray[np.floating[Any]]
    Point = dict[str, Any]
    Points = Iterable[Point]
    """Points, which are read anew each time that they are asked for."""
    Results = list[float | None]

__all__ = ["ReadAnew", "aligned", "epoch_of", "means", "ping_series", "start_of", "step_s", "t0_ns"]


def start_of(record: Record) -> datetime:
    """Time 0 of Flent: that of the record, or of the file it was made of.

    Raises:
        UsageError: if it is no time.
    """
    try:
        started = datetime.fromisoformat(record.manifest.started_at)
    except ValueError as error:
        raise UsageError(f"`{record.path}`: its time `{record.manifest.started_at}` is none") from error
    began = started if started.tzinfo else started.replace(tzinfo=UTC)
    return began.astimezone(UTC) + timedelta(microseconds=t0_ns(record) / 1e3)


def t0_ns(record: Record) -> int:
    """Flent's time 0 in times of the record."""
    of = record.manifest.imported
    return of.t0_ns if of else 0


def epoch_of(record: Record) -> Callable[[float], float]:
    """Makes of a time of the record, in ns, seconds since 1970."""
    start_s, zero_ns = start_of(record).timestamp(), t0_ns(record)
    return lambda t_ns: round(start_s + (t_ns - zero_ns) / 1e9, 7)


def step_s(record: Record) -> float:
    """Time between two values of a series in seconds."""
    if record.manifest.imported is not None:
        return record.interval_ns("throughput") / 1e9
    return STEP_S


def ping_series(record: Record, number: int, at_s: Numbers) -> tuple[Points, Results, dict[str, Any]]:
    """The points of a probe, its values at the times `at_s`, and its metadata."""
    probe = _Probe(record, number)
    sent = lost = 0

    def answered() -> Iterator[tuple[Numbers, Numbers]]:
        nonlocal sent, lost
        for rows in probe.rows():
            there = rows.drop_nulls("rtt_ns")
            sent, lost = sent + rows.height, lost + rows.height - there.height
            yield there["at_ns"].to_numpy() / 1e9, there["rtt_ns"].to_numpy() / 1e6

    results = aligned(at_s, answered(), step_s(record))
    meta: dict[str, Any] = {"UNITS": "ms", "RUNNER": probe.runner}
    found = loaded_pings([record], probe=number).distribution
    if found is not None:
        meta |= {"MEAN_VALUE": found.mean, "MIN_VALUE": found.min, "MAX_VALUE": found.max}
    if probe.udp and sent:
        meta |= {
            "PACKETS_SENT": sent,
            "PACKETS_RECEIVED": sent - lost,
            "PACKET_LOSS_RATE": lost / sent,
        }
    return probe, results, meta


@dataclass(frozen=True)
class ReadAnew:
    """Points that are made each time that they are asked for, and not held.

    Attributes:
        made: makes them.
    """

    made: Callable[[], Iterable[Point]]

    def __iter__(self) -> Iterator[Point]:
        """The points, from the first one."""
        return iter(self.made())


class _Probe:
    """The points of a probe, in the order of their times.

    Attributes:
        udp: whether it is one of which lost pings are told.
    """

    def __init__(self, record: Record, number: int) -> None:
        self._record, self._number = record, number
        of = record.manifest.imported
        # Flent has the time of the answer, a record that of sending; some files had neither.
        self._own_time = of is not None and number in of.means
        kind = record.manifest.scenario["probes"][number]["kind"]
        self._is_web = kind == "http"
        self.udp = kind not in {"icmp", "http"} and not self._own_time
        self._leasts = [least_of(chunk["at_ns"]) for chunk in self._chunks([])]

    @property
    def runner(self) -> str:
        """Flent's name of what measured it: that of an imported file, or what measures the same."""
        if not self._own_time and not self._is_web:
            return "IrttRunner" if self.udp else "PingRunner"
        of, name = self._record.manifest.imported, self._record.probe_names[self._number]
        told = of.series.get(name, {}).get("RUNNER") if of else None
        return told if isinstance(told, str) else "HttpGetterRunner" if self._is_web else "NetperfDemoRunner"

    def __iter__(self) -> Iterator[Point]:
        epoch_s, told = epoch_of(self._record), self._told()
        for rows in self.rows():
            for row in rows.iter_rows(named=True):
                point: Point = {} if row["seq"] is None else {"seq": row["seq"]}
                if row["rtt_ns"] is None:
                    if told is None:
                        continue
                    point |= told(row["up_ns"] is None)
                    if row["up_ns"] is not None:
                        # Flent reads none of a lost ping; who reads the file here knows it again.
                        point["owd_up"] = row["up_ns"] / 1e6
                else:
                    point["val"] = row["rtt_ns"] / 1e6
                    for key, way in (("owd_up", "up_ns"), ("owd_down", "down_ns")) if self.udp else ():
                        if row[way] is not None:
                            point[key] = row[way] / 1e6
                point["t"] = epoch_s(row["at_ns"])
                yield point

    def rows(self) -> Iterator[pl.DataFrame]:
        """The rows of the probe by `at_ns`, the time of their points."""
        return in_order(self._leasts, self._chunks(["seq", "up_ns", "down_ns"]), ("at_ns", "t_ns"))

    def _chunks(self, more: list[str]) -> Iterator[pl.DataFrame]:
        took = pl.lit(0) if self._own_time else pl.col("rtt_ns").fill_null(0)
        for chunk in self._record.chunks("latency", ["t_ns", "probe", "rtt_ns", *more]):
            rows = chunk.filter(pl.col("probe") == self._number)
            yield rows.with_columns(at_ns=pl.col("t_ns") + took)

    def _told(self) -> Callable[[bool], Point] | None:
        """How a lost ping is told, by whether it was lost on its way up; None if it is not."""
        if not self.udp:
            return None
        # Where both ways have one clock, a lost ping tells on which of them it was lost.
        ways = (
            chunk["up_ns"].null_count() < chunk.height for chunk in self._record.chunks("latency", ["up_ns"])
        )
        if any(ways):
            return lambda up: {"lost": True, "lost_dir": "up" if up else "down"}
        return lambda _: {"lost": "true"}


def aligned(at_s: Numbers, blocks: Iterable[tuple[Numbers, Numbers]], step: float) -> Results:
    """Values at times, by Flent's rule: linear between neighbours, nothing in gaps of over five steps.

    Args:
        at_s: the times, in order.
        blocks: times, in order, and values there, one block after the other.
        step: time between two of `at_s` in seconds.
    """
    found: Results = []
    before: tuple[Numbers, Numbers] | None = None
    for block in blocks:
        if not block[0].size:
            continue
        times, values = block if before is None else map(np.concatenate, zip(before, block, strict=True))
        until = int(np.searchsorted(at_s, times[-1], side="right"))
        for x in at_s[len(found) : until]:
            found.append(_at(x, times, values, step))
        before = times[-1:], values[-1:]
    return found + [None] * (at_s.size - len(found))


def means(at_s: Numbers, ends_s: Numbers, lengths_s: Numbers, rates: Numbers, step: float) -> Results:
    """Means of a rate over the step that ends at each of these times: what was carried is told once.

    Args:
        at_s: the times, in order.
        ends_s: ends of intervals, in order.
        lengths_s: lengths of these.
        rates: the rate in each of them, 0 between them.
        step: time between two of `at_s` in seconds.

    Returns:
        The means; None of a step in which no interval lies.
    """
    if not ends_s.size:
        return [None] * at_s.size
    begins = np.maximum(ends_s - lengths_s, np.concatenate([[-np.inf], ends_s[:-1]]))
    edges = np.column_stack([begins, ends_s]).ravel()
    spans = ends_s - begins
    until = np.column_stack([at_s - step, at_s])

    def over_steps(carried: Numbers) -> Numbers:
        whole = np.cumsum(carried)
        so_far = np.column_stack([np.concatenate([[0.0], whole[:-1]]), whole]).ravel()
        return np.asarray(np.diff(np.interp(until, edges, so_far), axis=1)[:, 0])

    known, carried = over_steps(spans), over_steps(spans * rates)
    return [
        float(one) / step if there > step * ROUNDING else None
        for one, there in zip(carried, known, strict=True)
    ]


def _at(x: float, times: Numbers, values: Numbers, step: float) -> float | None:
    """The value at a time that is no later than the last of `times`."""
    place = int(np.searchsorted(times, x))
    if place == 0:
        return float(values[0]) if times[0] - x <= step / 2 else None
    if times[place] - times[place - 1] > MAX_GAP_STEPS * step:
        return None
    share = (x - times[place - 1]) / (times[place] - times[place - 1])
    return float(values[place - 1] + share * (values[place] - values[place - 1]))


STEP_S = 0.2
"""Flent's own time between two values of a series, in seconds."""

ROUNDING = 1e-6
"""Less of a step than this part of it is none."""

MAX_GAP_STEPS = 5
"""Flent interpolates over no longer gap."""
