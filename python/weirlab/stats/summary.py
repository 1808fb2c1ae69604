"""One run in a few figures: what came through, how long a ping took, how evenly it was shared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import polars as pl

from weirlab.arguments import record_of
from weirlab.record.tables import of_reasons
from weirlab.stats.capacity import capacity_bytes, carried_bytes, slowest_hop
from weirlab.stats.fairness import coefficient_of_variation, jain_index
from weirlab.stats.pings import idle_pings, increases_ms, load_window_ns, loaded_pings

if TYPE_CHECKING:
    from collections.abc import Container

    from weirlab.record import Record
    from weirlab.record.manifest import Manifest
    from weirlab.scenario import Direction
    from weirlab.stats.distribution import Distribution


@dataclass(frozen=True, kw_only=True)
class LatencySummary:
    """Round trips of all probes together, in milliseconds.

    Attributes:
        idle: during the phase `idle`; None without one.
        loaded: during the phase `load`, or the whole run if it has none.
        increase_mean_ms, increase_median_ms, increase_p95_ms, increase_p99_ms: the loaded figure less
            the idle one of the same kind, of pings that each count from their own probe's idle mean;
            None without idle pings.
        sent: pings sent during the load.
        lost: how many of them were lost, on either way; None if the record does not tell.
        loss_rate: lost / sent; None if none was sent, or `lost` is.
    """

    idle: Distribution | None
    loaded: Distribution | None
    increase_mean_ms: float | None
    increase_median_ms: float | None
    increase_p95_ms: float | None
    increase_p99_ms: float | None
    sent: int
    lost: int | None
    loss_rate: float | None


@dataclass(frozen=True, kw_only=True)
class DirectionSummary:
    """The flows of one direction, during the load. What the record does not tell is None, never 0.

    Attributes:
        flows: how many there are.
        goodput_mbps: bytes that applications received, each once, of all flows; Mbit/s. None if the run
            did not sample throughput.
        throughput_mbps: bytes of IP packets with data that arrived; Mbit/s. None like `goodput_mbps`, and if
            the record does not tell packets.
        utilisation: share of the slowest line's capacity that was occupied, by whatever; None if
            the line is unlimited.
        per_flow_mbps: goodput of each flow while it runs; empty if the run did not sample throughput.
        jain_index, coefficient_of_variation: of the goodputs in the part of the load in which all flows
            run; None for fewer than two, and if there is no such part.
        loss_rate: data packets dropped on the path / data packets sent, over the whole run.
        mark_rate: data packets marked CE / data packets sent, over the whole run.
        retransmitted_segments, timeouts: totals over the whole run; of a run that was cut short those up to
            the last sample of TCP's state.
    """

    flows: int
    goodput_mbps: float | None
    throughput_mbps: float | None
    utilisation: float | None
    per_flow_mbps: dict[str, float]
    jain_index: float | None
    coefficient_of_variation: float | None
    loss_rate: float | None
    mark_rate: float | None
    retransmitted_segments: int | None
    timeouts: int | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One run in a few figures.

    Attributes:
        path: where the record lies.
        test, link: their titles.
        world: which world made it.
        started_at: when the run started, UTC.
        note, tags: what the user said of the run.
        queue: the queue set-up.
        seed: the run's seed; None of an imported one.
        complete: whether the run came to its end.
        latency: round trips.
        probes: round trips of each probe by itself, during the load.
        up, down: the flows of each direction; None without any.
        warnings: why the figures should not be trusted, if anything.
    """

    path: str
    test: str
    link: str
    world: str
    started_at: str
    note: str
    tags: list[str]
    queue: str
    seed: int | None
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
    """The figures of one run, which are computed once for each record.

    Raises:
        UsageError: if it is no record, such as a path.
    """
    record = record_of(record, "summarise")
    manifest, summary = _SUMMARIES.get(record, (None, None))
    if summary is None or manifest is not record.manifest:
        summary = _summarised(record)
        _SUMMARIES[record] = (record.manifest, summary)
    return summary


def _summarised(record: Record) -> Summary:
    return Summary(
        path=str(record.path),
        test=record.manifest.title,
        link=record.manifest.link["title"],
        world=record.manifest.world,
        started_at=record.manifest.started_at,
        note=record.manifest.note,
        tags=record.manifest.tags,
        queue=record.label,
        seed=record.manifest.seed,
        complete=record.manifest.complete,
        latency=_latency(record),
        probes={
            name: loaded_pings([record], probe=number).distribution
            for number, name in enumerate(record.probe_names)
        },
        up=_direction(record, "up"),
        down=_direction(record, "down"),
        warnings=record.manifest.warnings,
    )


def totals_mbps(record: Record, direction: Direction) -> pl.DataFrame:
    """Goodput of all flows of a direction together: `t_s` and `mbps` of each interval of the load.

    An interval in which nothing arrived counts as 0, so that the mean over all is the direction's goodput.
    There are none without flows of the direction, or if the run did not sample throughput.
    """
    start, end = load_window_ns(record)
    arrived = _arrived(record, direction)
    empty = pl.DataFrame(schema={"t_s": pl.Float64, "mbps": pl.Float64})
    if arrived is None or _flows_during(record, direction).height == 0 or end <= start:
        return empty
    interval = record.manifest.scenario["sampling"]["throughput_ns"]
    count = max(1, round((end - start) / interval))
    # A live world samples a little late: a sample belongs to the interval whose end is nearest.
    number = ((pl.col("t_ns") - start) / interval).round().cast(pl.Int64).clip(1, count)
    got = arrived.group_by(number.alias("number")).agg(pl.col("bytes").sum())
    every = pl.DataFrame({"number": range(1, count + 1)}, schema={"number": pl.Int64})
    length = (end - start) / count
    return (
        every.join(got, on="number", how="left")
        .sort("number")
        .select(
            t_s=(start + pl.col("number") * length) / 1e9,
            mbps=pl.col("bytes").fill_null(0) * 8e3 / length,
        )
    )


def goodputs_mbps(
    record: Record,
    direction: Direction,
    *,
    names: Container[str] | None = None,
    span_ns: tuple[int, int] | None = None,
    together: bool = False,
) -> dict[str, float]:
    """Goodput in Mbit/s of each flow of a direction while it runs, by name.

    Args:
        record: the run.
        direction: `down` or `up`.
        names: only these flows; without it all of the direction.
        span_ns: within this span, its start and end in ns since the run began; without it that of the load.
        together: only in the part of the span in which all of these flows run, so that their shares can be
            compared; there is no goodput at all if there is no such part.

    Returns:
        Nothing for flows that do not run in the span, nor for any if the run did not sample throughput.
    """
    start, end = span_ns or load_window_ns(record)
    flows = record.flow_names.filter(_runs_during(direction, start, end))
    if names is not None:
        flows = flows.filter(pl.Series([name in names for name in flows["name"]], dtype=pl.Boolean))
    if record.throughput.height == 0 or flows.height == 0:
        return {}
    spans = flows.select(
        "flow",
        "name",
        starts=pl.max_horizontal(pl.col("start_ns"), pl.lit(start)),
        ends=pl.min_horizontal(pl.col("stop_ns"), pl.lit(end)),
    )
    if together:
        spans = spans.with_columns(starts=pl.col("starts").max(), ends=pl.col("ends").min())
        spans = spans.filter(pl.col("starts") < pl.col("ends"))
    arrived = (
        record.throughput.join(spans, on="flow")
        .filter((pl.col("t_ns") > pl.col("starts")) & (pl.col("t_ns") <= pl.col("ends")))
        .group_by("flow")
        .agg(pl.col("bytes").sum())
    )
    mbps = pl.col("bytes").fill_null(0) * 8e3 / (pl.col("ends") - pl.col("starts"))
    each = spans.join(arrived, on="flow", how="left").select("flow", "name", mbps=mbps).sort("flow")
    return dict(zip(each["name"], each["mbps"], strict=True))


def _latency(record: Record) -> LatencySummary:
    during = loaded_pings([record])
    idle, loaded = increases_ms(record)

    def increase(figure: str) -> float | None:
        if idle is None or loaded is None:
            return None
        return float(getattr(loaded, figure) - getattr(idle, figure))

    return LatencySummary(
        idle=idle_pings([record]).distribution,
        loaded=during.distribution,
        increase_mean_ms=increase("mean"),
        increase_median_ms=increase("median"),
        increase_p95_ms=increase("p95"),
        increase_p99_ms=increase("p99"),
        sent=during.sent,
        lost=during.lost,
        loss_rate=during.loss_rate,
    )


def _flows_of(record: Record, direction: Direction) -> pl.DataFrame:
    return record.throughput.join(_flows_during(record, direction).select("flow", "name"), on="flow")


def _flows_during(record: Record, direction: Direction) -> pl.DataFrame:
    """The flows of a direction that run during the load."""
    return record.flow_names.filter(_runs_during(direction, *load_window_ns(record)))


def _runs_during(direction: Direction, start: int, end: int) -> pl.Expr:
    """Whether a flow is of a direction and runs within a span."""
    return (pl.col("direction") == direction) & (pl.col("start_ns") < end) & (pl.col("stop_ns") > start)


def _direction(record: Record, direction: Direction) -> DirectionSummary | None:
    start, end = load_window_ns(record)
    flows = record.flows.filter(_runs_during(direction, start, end))
    if flows.height == 0:
        return None
    shares = list(goodputs_mbps(record, direction, together=True).values())
    sent = _total(record, flows, "sent_segments")
    return DirectionSummary(
        flows=flows.height,
        goodput_mbps=_rate(record, direction, "bytes"),
        throughput_mbps=_rate(record, direction, "wire_bytes"),
        utilisation=busy_share(record, direction, start, end),
        per_flow_mbps=goodputs_mbps(record, direction),
        jain_index=jain_index(shares),
        coefficient_of_variation=coefficient_of_variation(shares),
        loss_rate=_share(_packets(record, direction, flows, "dropped"), sent),
        mark_rate=_share(_packets(record, direction, flows, "marked"), sent),
        retransmitted_segments=_total(record, flows, "retransmitted_segments"),
        timeouts=_total(record, flows, "timeouts"),
    )


def _arrived(record: Record, direction: Direction) -> pl.DataFrame | None:
    """Rows of `throughput` during the load; None if the run did not sample it, which is not nothing."""
    if record.throughput.height == 0:
        return None
    start, end = load_window_ns(record)
    return _flows_of(record, direction).filter((pl.col("t_ns") > start) & (pl.col("t_ns") <= end))


def _rate(record: Record, direction: Direction, column: str) -> float | None:
    """Rate of all flows of a direction during the load, in Mbit/s; None if the run did not sample it.

    `column` is the column of `throughput` that counts their bytes.
    """
    arrived = _arrived(record, direction)
    if arrived is None:
        return None
    start, end = load_window_ns(record)
    if arrived[column].null_count():
        return None
    return int(arrived[column].sum()) * 8e3 / (end - start)


def _total(record: Record, flows: pl.DataFrame, column: str) -> int | None:
    """The sum of a column of totals; None if it is not known of every flow.

    A run that was cut short has no totals. What the senders had counted until then stands in `tcp`.
    """
    if column in flows.columns:
        return None if flows[column].null_count() else int(flows[column].sum())
    so_far = COUNTED_SO_FAR.get(column)
    # Of a speed test `tcp` follows one of its connections at a time, which are not all.
    followed = flows.filter(pl.col("flow") < len(record.manifest.scenario["flows"]))
    if so_far not in record.tcp.columns or followed.height < flows.height:
        return None
    last = record.tcp.group_by("flow").agg(pl.col(so_far).max())
    counted = flows.select("flow").join(last, on="flow", how="left")[so_far]
    return None if counted.null_count() else int(counted.sum())


def _packets(record: Record, direction: Direction, flows: pl.DataFrame, what: str) -> int | None:
    """Data packets that the path dropped or marked; where queues do not tell flows apart, all packets."""
    column = f"{what}_packets"
    if column not in flows.columns or flows[column].null_count() < flows.height:
        return _total(record, flows, column)
    queues = record.queue.filter(pl.col("queue").str.starts_with(f"{direction}/") & (pl.col("class") == ""))
    return sum(int(queues[name].sum()) for name in of_reasons(what)) if queues.height else None


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


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


COUNTED_SO_FAR = {"retransmitted_segments": "retransmits", "timeouts": "timeouts"}
"""Columns of `flows` that a sender also tells while it runs: their names in `tcp`."""

_SUMMARIES: WeakKeyDictionary[Record, tuple[Manifest, Summary]] = WeakKeyDictionary()
"""Summaries of the records that are in use. Reports, tables, charts and exports each ask for them."""
