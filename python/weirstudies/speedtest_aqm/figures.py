"""Figures of a run: a few kilobytes in place of a record of megabytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from weirlab.scenario import Direction, Model
from weirstudies.speedtest_aqm import design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirstudies.speedtest_aqm.design import Cell

WAYS: tuple[Direction, ...] = ("down", "up")


class Spread(Model):
    """A distribution.

    Attributes:
        count: how many values there are.
        mean: their mean.
        at: their quantiles `QUANTILES`, interpolated linearly.
    """

    count: int
    mean: float
    at: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle."""
        return self.at[QUANTILES.index(0.5)]

    @property
    def least(self) -> float:
        """The minimum."""
        return self.at[0]

    def quantile(self, q: float) -> float:
        """One of `QUANTILES`."""
        return self.at[QUANTILES.index(q)]


class Way(Model):
    """Figures of the time in which the method loaded one direction and not the other.

    Attributes:
        loaded_s: how long that was.
        mbps: what its application received meanwhile.
        cross_mbps: what cross traffic received meanwhile, over TCP.
        rates: the method's Mbit/s in each interval.
        own: round trips of packets of the load itself, the mean of each 10 ms of each connection, in ms; the
            simulator only.
        srtt: SRTT at each interval, in ms: in the simulator of the sender with most in flight, in the lab of
            every sender that moved data in the interval.
        other: round trips of pings in a flow of their own, in ms.
        queue: the empty path's round trip and what the packets of each interval waited in the router on
            average, both ways together, in ms.
    """

    loaded_s: float
    mbps: float
    cross_mbps: float | None
    rates: Spread
    own: Spread | None
    srtt: Spread | None
    other: Spread | None
    queue: Spread | None


class Series(Model):
    """The run over time, a value each `STEP_S` from when the method began: Mbit/s, and SRTT in ms."""

    rates: dict[Direction, list[float]]
    srtt: dict[Direction, list[float | None]]


class Run(Model):
    """Figures of a run.

    Attributes:
        key: digest of the scenario and seed that it was.
        cell: name of the cell.
        seed: seed, or number of the repetition in the lab.
        world: `sim` or `lab`.
        result: what the method reports.
        seconds: how long the method took; None if it did not come to its end.
        idle_ms: median ping before it began; None beside cross traffic.
        ways: by direction, if it was loaded at all.
        series: over time; the simulator only.
        late_ms: how late the slowest hundredth of packets left the lab; None in the simulator.
        programs_late_ms: how late at least the latest tenth of the test's pings were sent, for want of a
            processor; None in the simulator.
        disturbed: why the lab itself spoiled the run, so that it counts nowhere.
        warnings: what speaks against trusting it.
    """

    key: str
    cell: str
    seed: int
    world: str
    result: dict[str, Any]
    seconds: float | None
    idle_ms: float | None
    ways: dict[Direction, Way]
    series: Series | None = None
    late_ms: float | None = None
    programs_late_ms: float | None = None
    disturbed: str | None = None
    warnings: list[str] = Field(default_factory=list)


def key_of(run: ResolvedRun) -> str:
    """Digest of what is run, by which kept figures are known again."""
    text = json.dumps([run.scenario, run.seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def spread(values: NDArray[np.floating[Any]]) -> Spread | None:
    """The distribution of `values`; None of nothing."""
    if values.size == 0:
        return None
    found = np.quantile(values, QUANTILES)
    return Spread(
        count=int(values.size),
        mean=round(float(values.mean()), 4),
        at=tuple(round(float(value), 4) for value in found),
    )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Samples of a run, all on one clock.

    Attributes:
        cell: which it was.
        step: length of an interval in nanoseconds.
        flows: by direction the flows of the method in `throughput`.
        cross: the flows of cross traffic.
        throughput, queue: as in the record.
        pings: `t_ns` and `rtt_ns` of pings in a flow of their own.
        samples: the same of round trips of the load's own packets.
        senders: `t_ns` and `srtt_ns` of the load's senders.
    """

    cell: Cell
    step: int
    flows: Mapping[Direction, Sequence[int]]
    cross: Mapping[Direction, Sequence[int]]
    throughput: pl.DataFrame
    queue: pl.DataFrame
    pings: pl.DataFrame
    samples: pl.DataFrame
    senders: Mapping[Direction, pl.DataFrame]

    def ways(self) -> dict[Direction, Way]:
        """Figures of the times in which one direction was loaded and the other was not, by direction."""
        loaded = {way: self._loaded(way) for way in WAYS}
        both = loaded["down"] & loaded["up"]
        return {way: self._way(way, sorted(loaded[way] - both)) for way in WAYS if loaded[way] - both}

    def first_loaded_ns(self) -> int | None:
        """When the method first loaded a direction."""
        starts = [min(bins) * self.step for way in WAYS if (bins := self._loaded(way))]
        return min(starts, default=None)

    def last_loaded_ns(self) -> int | None:
        """When it no longer did."""
        ends = [(max(bins) + 1) * self.step for way in WAYS if (bins := self._loaded(way))]
        return max(ends, default=None)

    def _loaded(self, way: Direction) -> set[int]:
        """The intervals in which the method received at least `LOADED` of the rate."""
        least = LOADED * self.cell.rate_mbps * 1e6 / 8 * self.step / 1e9
        rows = self.throughput.filter(pl.col("flow").is_in(self.flows[way]))
        sums = rows.group_by(bin=pl.col("t_ns") // self.step - 1).agg(pl.col("bytes").sum())
        return set(sums.filter(pl.col("bytes") >= least)["bin"].to_list())

    def _way(self, way: Direction, bins: Sequence[int]) -> Way:
        seconds = len(bins) * self.step / 1e9
        sent_in = (pl.col("t_ns") // self.step).is_in(bins)
        ended_in = (pl.col("t_ns") // self.step - 1).is_in(bins)
        rows = self.throughput.filter(ended_in)
        mine = rows.filter(pl.col("flow").is_in(self.flows[way])).group_by("t_ns").agg(pl.col("bytes").sum())
        cross = self.cross[way]
        theirs = int(rows.filter(pl.col("flow").is_in(cross))["bytes"].sum())
        rates = spread(mine["bytes"].to_numpy() * 8e3 / self.step)
        assert rates is not None  # noqa: S101 - bins are those in which bytes came
        return Way(
            loaded_s=round(seconds, 3),
            mbps=round(int(mine["bytes"].sum()) * 8 / seconds / 1e6, 4),
            cross_mbps=round(theirs * 8 / seconds / 1e6, 4) if cross else None,
            rates=rates,
            own=_ms(self.samples.filter(sent_in)["rtt_ns"]),
            srtt=_ms(self.senders[way].filter(ended_in)["srtt_ns"]),
            other=_ms(self.pings.filter(sent_in)["rtt_ns"]),
            queue=spread(self.cell.rtt_ms + waits_ms(self.queue.filter(ended_in))),
        )


def figures(record: Record, run: ResolvedRun, cell: Cell) -> Run:
    """The figures of a simulated run."""
    start = record.manifest.scenario["phases"][0]["end_ns"]
    sampling = record.interval_ns("throughput")
    flows = {way: _flows(record, f"{cell.method} {way}") for way in WAYS}
    own = _probe(record, f"{cell.method} in flow")
    pings = record.latency.filter(pl.col("probe") == _probe(record, design.PING))
    seen = Seen(
        cell=cell,
        step=sampling,
        flows=flows,
        cross={way: _flows(record, f"{design.CROSS} {way}") for way in WAYS},
        throughput=record.throughput,
        queue=record.queue,
        pings=pings,
        samples=record.latency.filter(pl.col("probe") == (-1 if own is None else own)),
        senders={way: record.tcp.filter(pl.col("flow").is_in(flows[way])) for way in WAYS},
    )
    result, ended = _result(record, cell, start)
    idle = pings.filter(pl.col("t_ns") < start)["rtt_ns"].drop_nulls().median()
    return Run(
        key=key_of(run),
        cell=cell.name,
        seed=run.seed,
        world="sim",
        result=result,
        seconds=None if ended is None else round((ended - start) / 1e9, 3),
        idle_ms=round(idle / 1e6, 4) if isinstance(idle, float) and cell.cross == "none" else None,
        ways=seen.ways(),
        series=_series(record, cell, start, ended or record.reached_ns, sampling),
        warnings=record.manifest.warnings,
    )


def _ms(nanoseconds: pl.Series) -> Spread | None:
    return spread(nanoseconds.drop_nulls().to_numpy() / 1e6)


def _flows(record: Record, beginning: str) -> list[int]:
    names = record.flow_names
    return names.filter(pl.col("name").str.starts_with(beginning))["flow"].to_list()


def _probe(record: Record, name: str) -> int | None:
    return record.probe_names.index(name) if name in record.probe_names else None


def waits_ms(queue: pl.DataFrame) -> NDArray[np.floating[Any]]:
    """Mean time that packets waited in the router in each interval, both ways added, in ms."""
    rows = queue.filter((pl.col("class") == "") & pl.col("queue").str.ends_with(f"/{design.ROUTER}"))
    sums = rows.group_by("t_ns").agg(pl.col("sojourn_mean_ns").fill_null(0).sum())
    return sums["sojourn_mean_ns"].to_numpy() / 1e6


def _result(record: Record, cell: Cell, start: int) -> tuple[dict[str, Any], int | None]:
    """The method's report, and when it was over."""
    if cell.method != design.OWN:
        test = record.methods.row(0, named=True)
        return json.loads(test["result"] or "{}"), test["ended_ns"]
    spans = design.own_spans(start)
    said: dict[str, Any] = {"method": design.OWN}
    for way, begin in spans.items():
        # From when its ramp is over, as `weir test` has it.
        full, end = begin + design.RAMP_NS * (len(design.RAMP) - 1), begin + design.OWN_LOAD_NS
        inside = (pl.col("t_ns") >= full) & (pl.col("t_ns") < end)
        ping = pl.col("probe") == _probe(record, design.PING)
        pings = record.latency.filter(inside & ping)["rtt_ns"].drop_nulls()
        flows = pl.col("flow").is_in(_flows(record, f"{design.OWN} {way}"))
        arrived = record.throughput.filter(flows & (pl.col("t_ns") > full) & (pl.col("t_ns") <= end))["bytes"]
        said[f"{way}load_mbps"] = int(arrived.sum()) * 8e3 / (end - full)
        said[f"{way}_loaded_ms"] = float(np.median(pings.to_numpy())) / 1e6 if pings.len() else None
    return said, max(spans.values()) + design.OWN_LOAD_NS


def _series(record: Record, cell: Cell, start: int, end: int, sampling: int) -> Series:
    steps = max(1, round((end - start) / 1e9 / STEP_S))
    width = int(STEP_S * 1e9)
    rates: dict[Direction, list[float]] = {}
    srtt: dict[Direction, list[float | None]] = {}
    at = (pl.col("t_ns") - sampling - start) // width
    for way in WAYS:
        mine = pl.col("flow").is_in(_flows(record, f"{cell.method} {way}"))
        arrived = record.throughput.filter(mine).group_by(step=at).agg(pl.col("bytes").sum())
        sums = dict(arrived.iter_rows())
        rates[way] = [round(sums.get(step, 0) * 8e3 / width, 2) for step in range(steps)]
        told = record.tcp.filter(mine).group_by(step=at).agg(pl.col("srtt_ns").mean())
        means = dict(told.iter_rows())
        srtt[way] = [
            None if means.get(step) is None else round(means[step] / 1e6, 2) for step in range(steps)
        ]
    return Series(rates=rates, srtt=srtt)


QUANTILES = (0.0, 0.01, *(round(0.05 * step, 2) for step in range(1, 20)), 0.99, 1.0)
"""Quantiles that are kept."""

LOADED = 0.01
"""Share of the rate from which on an interval counts as loaded."""

STEP_S = 0.2
"""Of series: ndt7 reports four times a second."""
