"""Figures of the phases of one test, from which the scores are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from weirlab.stats import Distribution, describe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weirlab.record import Record

Way = Literal["down", "up"]


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """One phase with load, from when the line was full until the phase's end.

    Attributes:
        phase: its name: `download`, `upload`, or `load` for both at once.
        start_ns, end_ns: what was taken.
        latency: figures of `rtt_ms`.
        rtt_ms: round trips of all UDP and ICMP probes: packets in a flow of their own.
        in_flow_ms: smoothed round trips of the loads' own senders (TCP_INFO): packets within the load.
        down_mbps, up_mbps: goodput; None without loads that way.
        sent, lost: probes.
        increase_ms: mean of `rtt_ms` less that of the idle phase.
    """

    phase: str
    start_ns: int
    end_ns: int
    latency: Distribution
    rtt_ms: NDArray[np.float64]
    in_flow_ms: NDArray[np.float64]
    down_mbps: float | None
    up_mbps: float | None
    sent: int
    lost: int
    increase_ms: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One test.

    Attributes:
        idle: round trips without load, in milliseconds.
        idle_rtts: the same, ping by ping, in order.
        loaded: the phases with load, by name; there is one at least.
        idle_sent, idle_lost: probes without load.
    """

    idle: Distribution
    idle_rtts: NDArray[np.float64]
    loaded: dict[str, Loaded]
    idle_sent: int
    idle_lost: int

    @property
    def down_mbps(self) -> float | None:
        """Goodput of the download by itself, or in the load where there is none."""
        return self._goodput("download", "down")

    @property
    def up_mbps(self) -> float | None:
        """Goodput of the upload by itself, or in the load where there is none."""
        return self._goodput("upload", "up")

    def _goodput(self, phase: str, way: Way) -> float | None:
        one = self.loaded.get(phase) or self.loaded.get("load")
        if one is None:
            return None
        return one.down_mbps if way == "down" else one.up_mbps

    @property
    def worst(self) -> Loaded:
        """The phase in which pings grew most."""
        return max(self.loaded.values(), key=lambda one: one.increase_ms)

    @property
    def loss_rate(self) -> float | None:
        """Share of probes that were lost, over idle and loaded phases."""
        sent = self.idle_sent + sum(one.sent for one in self.loaded.values())
        lost = self.idle_lost + sum(one.lost for one in self.loaded.values())
        return lost / sent if sent else None


def measured(record: Record) -> Measured | None:
    """The figures of a record; None if it has no idle phase with pings, or no load with any."""
    phase = record.phase("idle")
    if phase is None:
        return None
    before = _pings(record, *phase)
    idle = describe(before["rtt_ms"])
    if idle is None:
        return None
    loaded = {}
    for name in LOADED:
        span = record.phase(name)
        one = _loaded(record, name, span, idle.mean) if span else None
        if one is not None:
            loaded[name] = one
    if not loaded:
        return None
    return Measured(
        idle=idle,
        idle_rtts=before["rtt_ms"].drop_nulls().to_numpy(),
        loaded=loaded,
        idle_sent=before.height,
        idle_lost=before["rtt_ms"].null_count(),
    )


def _loaded(record: Record, name: str, span: tuple[int, int], idle_mean: float) -> Loaded | None:
    start, end = max(span[0] + SETTLING_NS, _full(record, name)), span[1]
    pings = _pings(record, start, end)
    latency = describe(pings["rtt_ms"])
    if latency is None:
        return None
    senders = record.tcp.filter((pl.col("t_ns") >= start) & (pl.col("t_ns") < end))["srtt_ns"].drop_nulls()
    return Loaded(
        phase=name,
        start_ns=start,
        end_ns=end,
        latency=latency,
        rtt_ms=pings["rtt_ms"].drop_nulls().to_numpy(),
        in_flow_ms=senders.to_numpy() / 1e6,
        down_mbps=_goodput(record, "down", start, end),
        up_mbps=_goodput(record, "up", start, end),
        sent=pings.height,
        lost=pings["rtt_ms"].null_count(),
        increase_ms=latency.mean - idle_mean,
    )


def _full(record: Record, name: str) -> int:
    """When the line was full in that phase, in nanoseconds; 0 if the test does not say."""
    ramps = record.manifest.extra.get("ramps", [])
    return max((ramp["full_ns"] or 0 for ramp in ramps if ramp["phase"] == name), default=0)


def _pings(record: Record, start: int, end: int) -> pl.DataFrame:
    inside = (pl.col("t_ns") >= start) & (pl.col("t_ns") < end)
    return record.pings.filter(inside).with_columns(rtt_ms=pl.col("rtt_ns") / 1e6)


def _goodput(record: Record, way: Way, start: int, end: int) -> float | None:
    flows = record.flow_names.filter((pl.col("direction") == way) & (pl.col("start_ns") < end))
    flows = flows.filter(pl.col("stop_ns") > start)
    if flows.height == 0:
        return None
    rows = record.throughput.filter(
        pl.col("flow").is_in(flows["flow"].to_list()) & (pl.col("t_ns") > start) & (pl.col("t_ns") <= end)
    )
    return int(rows["bytes"].sum()) * 8e3 / (end - start)


WHEN = {"download": "during the download", "upload": "during the upload", "load": "with both at once"}
"""The phases with load, in order, in words."""

LOADED = tuple(WHEN)

PHASES = {"download": "download", "upload": "upload", "load": "both at once"}
"""Names of the phases with load, for people."""

SETTLING_NS = 1_000_000_000
"""Slow start and the first full buffer are no state of the line: at least so much is left out."""
