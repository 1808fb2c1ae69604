"""One run in a few figures: what came through, how long a ping took, how evenly it was shared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from weirlab.stats.capacity import capacity_bytes, carried_bytes, slowest_hop
from weirlab.stats.distribution import Distribution, describe
from weirlab.stats.fairness import coefficient_of_variation, jain_index

if TYPE_CHECKING:
    from weirlab.record import Record

Direction = Literal["up", "down"]


@dataclass(frozen=True, kw_only=True)
class LatencySummary:
    """Round trips of all probes together, in milliseconds.

    Attributes:
        idle: during the phase `idle`; None without one.
        loaded: during the phase `load`, or the whole run if it has none.
        increase_mean_ms, increase_median_ms, increase_p95_ms, increase_p99_ms: the loaded figure less
            the idle one of the same kind.
        sent: pings sent during the load.
        lost: how many of them were lost, on either way.
        loss_rate: lost / sent.
    """

    idle: Distribution | None
    loaded: Distribution | None
    increase_mean_ms: float | None
    increase_median_ms: float | None
    increase_p95_ms: float | None
    increase_p99_ms: float | None
    sent: int
    lost: int
    loss_rate: float | None


@dataclass(frozen=True, kw_only=True)
class DirectionSummary:
    """The flows of one direction, during the load.

    Attributes:
        flows: how many there are.
        goodput_mbps: bytes that applications received, each once, of all flows; Mbit/s.
        throughput_mbps: bytes of IP packets with data that arrived; Mbit/s.
        utilisation: share of the slowest line's capacity that was occupied, by whatever; None if
            the line is unlimited.
        per_flow_mbps: goodput of each flow.
        jain_index, coefficient_of_variation: of the flows' goodputs; None for fewer than two.
        loss_rate: data packets dropped on the path / data packets sent, over the whole run.
        mark_rate: data packets marked CE / data packets sent, over the whole run.
        retransmitted_segments, timeouts: totals over the whole run.
    """

    flows: int
    goodput_mbps: float
    throughput_mbps: float
    utilisation: float | None
    per_flow_mbps: dict[str, float]
    jain_index: float | None
    coefficient_of_variation: float | None
    loss_rate: float | None
    mark_rate: float | None
    retransmitted_segments: int
    timeouts: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One run in a few figures.

    Attributes:
        queue: the queue set-up.
        seed: the run's seed.
        complete: whether the run came to its end.
        latency: round trips.
        probes: round trips of each probe by itself, during the load.
        up, down: the flows of each direction; None without any.
        warnings: why the figures should not be trusted, if anything.
    """

    queue: str
    seed: int
    complete: bool
    latency: LatencySummary
    probes: dict[str, Distribution | None]
    up: DirectionSummary | None
    down: DirectionSummary | None
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain values, for JSON."""
        return asdict(self)


def summarise(record: Record) -> Summary:
    """The figures of one run."""
    during = _within(record.latency, *_load(record))
    return Summary(
        queue=record.label,
        seed=record.manifest.seed,
        complete=record.manifest.complete,
        latency=_latency(record),
        probes={
            name: describe(during.filter(pl.col("probe") == number)["rtt_ms"])
            for number, name in enumerate(record.probe_names)
        },
        up=_direction(record, "up"),
        down=_direction(record, "down"),
        warnings=record.manifest.warnings,
    )


def load_latency_ms(record: Record) -> pl.Series:
    """Round trips of all pings during the load, in milliseconds; null where one was lost."""
    return _load_latency(record)["rtt_ms"]


def totals_mbps(record: Record, direction: Direction) -> pl.DataFrame:
    """Goodput of all flows of a direction together: `t_s` and `mbps` of each interval of the load."""
    start, end = _load(record)
    return (
        _flows_of(record, direction)
        .filter((pl.col("t_ns") > start) & (pl.col("t_ns") <= end))
        .group_by("t_ns")
        .agg(pl.col("bytes").sum())
        .sort("t_ns")
        .with_columns(interval_ns=pl.col("t_ns").diff().fill_null(pl.col("t_ns").diff().min()))
        .select(t_s=pl.col("t_ns") / 1e9, mbps=pl.col("bytes") * 8e3 / pl.col("interval_ns"))
    )


def _load(record: Record) -> tuple[int, int]:
    """The phase `load`, or the whole run if it has none."""
    return record.phase("load") or (0, record.reached_ns)


def _load_latency(record: Record) -> pl.DataFrame:
    return _within(record.pings, *_load(record))


def _within(rows: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    return rows.filter((pl.col("t_ns") >= start) & (pl.col("t_ns") < end)).with_columns(
        rtt_ms=pl.col("rtt_ns") / 1e6
    )


def _latency(record: Record) -> LatencySummary:
    during = _load_latency(record)
    loaded = describe(during["rtt_ms"])
    phase = record.phase("idle")
    idle = describe(_within(record.pings, *phase)["rtt_ms"]) if phase else None
    if phase == _load(record):
        idle = None

    def increase(figure: str) -> float | None:
        if idle is None or loaded is None:
            return None
        return float(getattr(loaded, figure) - getattr(idle, figure))

    lost = during["rtt_ms"].null_count()
    return LatencySummary(
        idle=idle,
        loaded=loaded,
        increase_mean_ms=increase("mean"),
        increase_median_ms=increase("median"),
        increase_p95_ms=increase("p95"),
        increase_p99_ms=increase("p99"),
        sent=during.height,
        lost=lost,
        loss_rate=lost / during.height if during.height else None,
    )


def _flows_of(record: Record, direction: Direction) -> pl.DataFrame:
    start, end = _load(record)
    during = (pl.col("start_ns") < end) & (pl.col("stop_ns") > start)
    flows = record.flow_names.filter((pl.col("direction") == direction) & during).select("flow", "name")
    return record.throughput.join(flows, on="flow")


def _direction(record: Record, direction: Direction) -> DirectionSummary | None:
    start, end = _load(record)
    during = (pl.col("start_ns") < end) & (pl.col("stop_ns") > start)
    flows = record.flows.filter((pl.col("direction") == direction) & during)
    if flows.height == 0:
        return None
    seconds = (end - start) / 1e9
    arrived = (
        _flows_of(record, direction)
        .filter((pl.col("t_ns") > start) & (pl.col("t_ns") <= end))
        .group_by("name")
        .agg(pl.col("bytes").sum(), pl.col("wire_bytes").sum())
    )
    got = dict(zip(arrived["name"], arrived["bytes"], strict=True))
    per_flow = {name: got.get(name, 0) * 8 / seconds / 1e6 for name in flows["name"]}
    sent = _total(flows, "sent_segments")
    return DirectionSummary(
        flows=flows.height,
        goodput_mbps=sum(per_flow.values()),
        throughput_mbps=int(arrived["wire_bytes"].sum()) * 8 / seconds / 1e6,
        utilisation=busy_share(record, direction, start, end),
        per_flow_mbps=per_flow,
        jain_index=jain_index(list(per_flow.values())),
        coefficient_of_variation=coefficient_of_variation(list(per_flow.values())),
        loss_rate=_fate(record, direction, flows, "dropped") / sent if sent else None,
        mark_rate=_fate(record, direction, flows, "marked") / sent if sent else None,
        retransmitted_segments=_total(flows, "retransmitted_segments"),
        timeouts=_total(flows, "timeouts"),
    )


def _total(flows: pl.DataFrame, column: str) -> int:
    """The sum of a column of totals, which a run that was cut short does not have."""
    return int(flows[column].sum()) if column in flows.columns else 0


def _fate(record: Record, direction: Direction, flows: pl.DataFrame, what: str) -> int:
    """Data packets that the path dropped or marked; where queues do not tell flows apart, all packets."""
    column = f"{what}_packets"
    if column not in flows.columns or flows[column].null_count() < flows.height:
        return _total(flows, column)
    queues = record.queue.filter(pl.col("queue").str.starts_with(f"{direction}/") & (pl.col("class") == ""))
    reasons = [name for name in queues.columns if name.startswith(f"{what}_")]
    return sum(int(queues[name].sum()) for name in reasons)


def busy_share(record: Record, direction: Direction, start: int, end: int) -> float | None:
    """Bytes that the slowest hop's line carried, of those that it could have."""
    hop = slowest_hop(record, direction, start, end)
    if hop is None:
        return None
    capacity = capacity_bytes(hop, [start, end])
    carried = carried_bytes(record, direction, hop).filter(
        (pl.col("middle_ns") > start) & (pl.col("middle_ns") <= end)
    )
    if capacity is None or capacity[1] <= capacity[0] or not carried.height:
        return None
    return float(carried["bytes"].sum()) / float(capacity[1] - capacity[0])
