"""One run in a few figures: what came through, how long a ping took, how evenly it was shared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from weirlab.arguments import record_of
from weirlab.record.differences import load_of
from weirlab.record.flows import WITHOUT_TCP
from weirlab.record.tables import of_reasons
from weirlab.stats.arrivals import Arrivals
from weirlab.stats.capacity import carried_together, limiting_hops
from weirlab.stats.fairness import coefficient_of_variation, jain_index
from weirlab.stats.intervals import middles_ns, whole_intervals
from weirlab.stats.pings import PingFigures, compared_remark, idle_remark, load_window_ns, ping_figures
from weirlab.stats.probing import IdleUse, idle_loss_remark, idle_use, idle_use_remark
from weirlab.stats.sharing import sharing
from weirlab.stats.transfers import TransferSummary, completion_ms, transfer_summaries
from weirlab.stats.udp import UdpSummary, udp_summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.record.manifest import Manifest
    from weirlab.scenario import Direction
    from weirlab.stats.distribution import Distribution


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Round trips of the probes of which the increase is, in milliseconds.

    Attributes:
        idle: during the phase `idle`.
        loaded: during the load.
    """

    idle: Distribution
    loaded: Distribution


@dataclass(frozen=True, kw_only=True)
class LatencySummary:
    """Round trips of all probes together, in milliseconds.

    Attributes:
        idle: during the phase `idle`; None without one.
        loaded: during the phase `load`, or the whole run if its test has none (`load_window_ns`).
        compared: both of the probes that have pings of each, which are all of most tests; None without any.
        increase_mean_ms, increase_median_ms, increase_p95_ms, increase_p99_ms: the loaded figure less
            the idle one of the same kind, of pings of these probes that each count from their own probe's
            idle mean; None without idle pings.
        sent: pings sent during the load.
        lost: how many of them were lost, on either way; None if the record does not tell.
        loss_rate: lost / sent; None if none was sent, or `lost` is.
        idle_sent, idle_lost: the same of pings sent during the phase `idle`.
    """

    idle: Distribution | None
    loaded: Distribution | None
    compared: Compared | None
    increase_mean_ms: float | None
    increase_median_ms: float | None
    increase_p95_ms: float | None
    increase_p99_ms: float | None
    sent: int
    lost: int | None
    loss_rate: float | None
    idle_sent: int
    idle_lost: int | None

    @property
    def idle_loss_rate(self) -> float | None:
        """idle_lost / idle_sent; None if none was sent, or that is not known."""
        return self.idle_lost / self.idle_sent if self.idle_sent and self.idle_lost is not None else None

    @property
    def told(self) -> tuple[Distribution | None, Distribution | None]:
        """Idle and loaded round trips to tell beside the increase: those of its probes, if it has any."""
        one = self.compared
        return (self.idle, self.loaded) if one is None else (one.idle, one.loaded)

    @property
    def is_of_some(self) -> bool:
        """Whether other probes answered during the load than those of which the increase is."""
        return self.compared is not None and self.compared.loaded != self.loaded


@dataclass(frozen=True, kw_only=True)
class KnownResent:
    """What some TCP flows of a direction sent again, where it is not known of all.

    Attributes:
        flows: of how many flows it is known.
        retransmitted_segments, timeouts: totals of these over the whole run.
    """

    flows: int
    retransmitted_segments: int
    timeouts: int


@dataclass(frozen=True, kw_only=True)
class DirectionSummary:
    """The flows of one direction, during the load. What the record does not tell is None, never 0.

    Attributes:
        flows: how many there are.
        tcp_flows: how many of them are of TCP, as pages and videos are too.
        goodput_mbps: bytes that applications received, each once, of all flows; Mbit/s. None if the run
            did not sample throughput.
        throughput_mbps: bytes of IP packets with data that arrived; Mbit/s. None like `goodput_mbps`, and if
            the record does not tell packets.
        utilisation: share of the slowest line's capacity that was occupied, by whatever, or of the lines
            that limit all paths of loads together; None if no line limits a path, or the paths share hops so
            that their lines add up to no one capacity.
        per_flow_mbps: goodput of each flow, over the whole load as that of all; empty if the run did not
            sample throughput.
        per_flow_running_mbps: goodput of each flow while it runs, which is more for one that runs for a part
            of the load.
        jain_index, coefficient_of_variation: of the goodputs of the TCP flows in the part of the load in
            which all of them run; None for fewer than two, and if there is no such part.
        loss_rate: data packets dropped on the path / data packets sent, over the whole run.
        mark_rate: data packets marked CE / data packets sent, over the whole run.
        retransmitted_segments, timeouts: totals over the whole run; of a run that was cut short, and of
            programs in a lab, those up to the last sample of TCP's state. None without a flow of TCP, and if
            they are not known of each of these, such as of pages in the lab.
        known_resent: what is known of them if that is not all, and not nothing.
    """

    flows: int
    tcp_flows: int
    goodput_mbps: float | None
    throughput_mbps: float | None
    utilisation: float | None
    per_flow_mbps: dict[str, float]
    per_flow_running_mbps: dict[str, float]
    jain_index: float | None
    coefficient_of_variation: float | None
    loss_rate: float | None
    mark_rate: float | None
    retransmitted_segments: int | None
    timeouts: int | None
    known_resent: KnownResent | None

    def runs_in_part(self, shown: Callable[[float], str]) -> bool:
        """Whether a flow has another goodput while it runs than during the load, as `shown` writes them."""
        whole = {name: shown(mbps) for name, mbps in self.per_flow_mbps.items()}
        return any(whole.get(name) != shown(mbps) for name, mbps in self.per_flow_running_mbps.items())


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One run in a few figures.

    Attributes:
        path: where the record lies.
        test, link: their titles.
        world: which world made it.
        started_at: when the run started, UTC.
        note, tags: what the user said of the run.
        queue: the queue spec.
        seed: the run's seed; None of an imported one.
        complete: whether the run came to its end.
        during: when the load was of which the figures are: `during the load`, or of a test of a line, which
            loads each direction by itself before, `with both at once`; of one that was cut short before
            that, `during the upload` or `during the download`, whichever it reached last.
        latency: round trips.
        idle_remark: what loads the line in the phase `idle`, if anything, and what idle pings then are.
        compared_remark: which probes have no idle pings, if others have.
        idle_use: what pings take of a line in the phase `idle` already, if that is a good part of it.
        probes: round trips of each probe by itself, during the load.
        up, down: the flows of each direction; None without any.
        udp: what the receivers of UDP flows counted, by the flow's name.
        applications: how long what applications asked for took, by the flow's name.
        completion_ms: how long each flow of fixed size took, in ms, by name; None if it was not delivered.
        speed_tests: how many speed tests of others ran, of which the record may have no flows.
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
    during: str
    latency: LatencySummary
    idle_remark: str | None
    compared_remark: str | None
    idle_use: IdleUse | None
    probes: dict[str, Distribution | None]
    up: DirectionSummary | None
    down: DirectionSummary | None
    udp: dict[str, UdpSummary]
    applications: dict[str, TransferSummary]
    completion_ms: dict[str, float | None]
    speed_tests: int
    warnings: list[str]

    @property
    def remarks(self) -> list[str]:
        """What has to be known of idle pings, and so of the increase, if anything."""
        lost = self.latency.idle_loss_rate
        found = (
            self.idle_remark,
            self.compared_remark,
            idle_use_remark([] if self.idle_use is None else [("", self.idle_use)], named=False),
            idle_loss_remark([] if lost is None else [("", lost)], named=False),
        )
        return [one for one in found if one is not None]

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain values, for JSON."""
        return asdict(self)


def summarise(record: Record) -> Summary:
    """The figures of one run, which are computed once for each record.

    Raises:
        UsageError: if it is no record, such as a path.
    """
    record = record_of(record, "summarise")
    summary = _made(record)
    if summary is None:
        summary = _summarised(record)
        _SUMMARIES[record] = (record.manifest, summary)
    return summary


def latency_summary(record: Record) -> LatencySummary:
    """The round trips of `summarise`, without the tables that take most of the memory of a long record."""
    summary = _made(record)
    return latency_of(ping_figures(record, of_probes=False)) if summary is None else summary.latency


def _made(record: Record) -> Summary | None:
    """The summary of a record that was made before, if there is one and it holds."""
    manifest, summary = _SUMMARIES.get(record, (None, None))
    return summary if manifest is record.manifest else None


def _summarised(record: Record) -> Summary:
    pings = ping_figures(record)
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
        during=load_of(record),
        latency=latency_of(pings),
        idle_remark=idle_remark(record),
        compared_remark=compared_remark(record, pings),
        idle_use=idle_use(record),
        probes={name: pings.probes.get(number) for number, name in enumerate(record.probe_names)},
        up=direction_of(record, "up"),
        down=direction_of(record, "down"),
        udp=udp_summaries(record),
        applications=transfer_summaries(record),
        completion_ms=completion_ms(record),
        speed_tests=len(record.columns("method").values("method")),
        warnings=record.manifest.warnings,
    )


def totals_mbps(record: Record, direction: Direction) -> pl.DataFrame:
    """Goodput of all flows of a direction together: `t_s` and `mbps` of each interval of the load.

    An interval in which nothing arrived counts as 0, so that the mean over all is the direction's goodput.
    There are none without flows of the direction, or if the run did not sample throughput.
    """
    import polars as pl  # noqa: PLC0415 - a summary needs none

    t_s, mbps = totals(record, direction)
    return pl.DataFrame({"t_s": t_s, "mbps": mbps})


def totals(record: Record, direction: Direction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What `totals_mbps` has, as arrays: the end of each interval in seconds, and its goodput in Mbit/s."""
    start, end = load_window_ns(record)
    flows = [flow["flow"] for flow in _flows_during(record, direction, (start, end))]
    if not record.has_rows("throughput") or not flows or end <= start:
        return np.zeros(0), np.zeros(0)
    interval = record.interval_ns("throughput")
    start, end = whole_intervals((start, end), interval)
    count = max(0, end - start) // interval
    got = np.zeros(count)
    for samples in record.pieces("throughput", ("t_ns", "flow", "bytes")):
        at = samples.numbers("t_ns")
        number = (middles_ns(at, interval) - start) // interval
        counted = np.isin(samples.numbers("flow"), flows) & (number >= 0) & (number < count)
        got += np.bincount(number[counted], samples.numbers("bytes")[counted], count)
    ends = start + np.arange(1, count + 1) * interval
    return np.asarray(ends / 1e9, np.float64), np.asarray(got * 8e3 / interval, np.float64)


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
    flows = _flows_during(record, direction, (start, end))
    if names is not None:
        flows = [flow for flow in flows if flow["name"] in names]
    return Arrivals(record).goodputs_mbps(flows, (start, end), together=together)


def latency_of(pings: PingFigures) -> LatencySummary:
    """Round trips of all probes together."""
    idle, loaded = pings.idle_increase, pings.loaded_increase
    before, during = pings.compared_idle, pings.compared_loaded

    def increase(figure: str) -> float | None:
        if idle is None or loaded is None:
            return None
        return float(getattr(loaded, figure) - getattr(idle, figure))

    return LatencySummary(
        idle=pings.idle,
        loaded=pings.loaded,
        compared=None if before is None or during is None else Compared(idle=before, loaded=during),
        increase_mean_ms=increase("mean"),
        increase_median_ms=increase("median"),
        increase_p95_ms=increase("p95"),
        increase_p99_ms=increase("p99"),
        sent=pings.sent,
        lost=pings.lost,
        loss_rate=pings.loss_rate,
        idle_sent=pings.idle_sent,
        idle_lost=pings.idle_lost,
    )


def _flows_during(record: Record, direction: Direction, span_ns: tuple[int, int]) -> list[dict[str, Any]]:
    """The rows of `flow_names` of the flows of a direction that run within a span."""
    start, end = span_ns
    if start >= end:
        return []
    flows = record.flows_in(direction)
    return [flow for flow in flows if flow["start_ns"] < end and flow["stop_ns"] > start]


def direction_of(record: Record, direction: Direction) -> DirectionSummary | None:
    """The flows of one direction, during the load; None without any."""
    start, end = load_window_ns(record)
    running = _flows_during(record, direction, (start, end))
    if not running:
        return None
    numbers = {flow["flow"] for flow in running}
    flows = [row for row, flow in enumerate(record.flow_rows) if flow["flow"] in numbers]
    span, arrivals = (start, end), Arrivals(record)
    # UDP takes what it is told to, not a share.
    compete = sharing(record, [flow for flow in running if flow["protocol"] == "tcp"])
    shares = list(arrivals.goodputs_mbps(compete, span, together=True).values())
    sent = _total(record, flows, "sent_segments")
    # What UDP lost is not sent again.
    resending = [row for row in flows if record.flow_rows[row]["protocol"] not in WITHOUT_TCP]
    return DirectionSummary(
        flows=len(flows),
        tcp_flows=len(resending),
        goodput_mbps=arrivals.rate_mbps(running, span, "bytes"),
        throughput_mbps=arrivals.rate_mbps(running, span, "wire_bytes"),
        utilisation=busy_share(record, direction, start, end),
        per_flow_mbps=arrivals.rates_mbps(running, span),
        per_flow_running_mbps=arrivals.goodputs_mbps(running, span),
        jain_index=jain_index(shares),
        coefficient_of_variation=coefficient_of_variation(shares),
        loss_rate=_share(_packets(record, direction, flows, "dropped"), sent),
        mark_rate=_share(_packets(record, direction, flows, "marked"), sent),
        retransmitted_segments=_total(record, resending, "retransmitted_segments") if resending else None,
        timeouts=_total(record, resending, "timeouts") if resending else None,
        known_resent=_known_resent(record, resending),
    )


def _known_resent(record: Record, flows: Sequence[int]) -> KnownResent | None:
    """What those of some rows of `flow_rows` sent again of which that is known; None if it is all or none."""
    again, timeouts = (totals_of_flows(record, column) for column in COUNTED_SO_FAR)
    if again is None or timeouts is None:
        return None
    known = [row for row in flows if again[row] is not None and timeouts[row] is not None]
    if not known or _total(record, flows, "retransmitted_segments") is not None:
        return None
    return KnownResent(
        flows=len(known),
        retransmitted_segments=sum(again[row] for row in known),
        timeouts=sum(timeouts[row] for row in known),
    )


def _total(record: Record, flows: Sequence[int], column: str) -> int | None:
    """The sum of a column of totals over some rows of `flow_rows`; None if it is not known of every one."""
    values = totals_of_flows(record, column)
    if values is None:
        return None
    # The end of a connection that sends nothing is not looked at, and counts nothing.
    carried = _carrying(record) if None in values and _is_of_programs(record) else None
    numbers = [record.flow_rows[row]["flow"] for row in flows]
    known = [
        values[row]
        for row, number in zip(flows, numbers, strict=True)
        if values[row] is not None or carried is None or number in carried
    ]
    return None if None in known else sum(known)


def totals_of_flows(record: Record, column: str) -> list[Any] | None:
    """A column of totals in the order of `flow_rows`: None of a flow of which it is not known, or of all.

    A run that was cut short has no totals, nor has one of programs in a lab, whose connections nobody but the
    kernel knows. What the senders had counted until then stands in `tcp`.
    """
    values = record.totals(column)
    so_far = COUNTED_SO_FAR.get(column)
    if values is not None or so_far is None:
        return values
    # Of a speed test `tcp` follows one of its connections at a time, which are not all. Each way of a
    # connection is a flow.
    named = len(record.flow_rows) if _is_of_programs(record) else len(record.manifest.scenario["flows"])
    last: dict[int, int] = {}
    for rows in record.pieces("tcp", ("flow", so_far)):
        if so_far not in rows:
            return None
        for number, value in zip(rows.values("flow"), rows.values(so_far), strict=True):
            if value is not None and number < named:
                last[number] = max(value, last.get(number, value))
    return [last.get(flow["flow"]) for flow in record.flow_rows]


def _is_of_programs(record: Record) -> bool:
    """Whether its flows are connections of programs in the lab, which no scenario names."""
    return not record.manifest.scenario["flows"] and bool(record.manifest.extra.get("connections"))


def _carrying(record: Record) -> set[int]:
    """The flows of which something arrived."""
    found: set[int] = set()
    for rows in record.pieces("throughput", ("flow", "bytes")):
        found.update(rows.numbers("flow")[rows.numbers("bytes") > 0].tolist())
    return found


def _packets(record: Record, direction: Direction, flows: Sequence[int], what: str) -> int | None:
    """Data packets that the path dropped or marked; where queues do not tell flows apart, all packets."""
    column = f"{what}_packets"
    values = record.totals(column)
    if values is None or any(values[row] is not None for row in flows):
        return _total(record, flows, column)
    found, reasons = None, of_reasons(what)
    for queue in record.pieces("queue", ("queue", "class", *reasons)):
        ways = [text.startswith(f"{direction}/") for text in queue.texts("queue")]
        whole = np.array([*ways, False])[queue.numbers("queue")] & queue.is_text("class", "")
        if whole.any():
            found = (found or 0) + sum(sum(filter(None, queue.values_in(name, whole))) for name in reasons)
    return found


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def busy_share(record: Record, direction: Direction, start: int, end: int) -> float | None:
    """Bytes that the lines which limit a direction carried, of those that these lines could have.

    Those of the whole intervals of samples within the span. None if there are none, no line is limited, or
    the capacities of several paths do not add up.
    """
    hops = limiting_hops(record, direction, start, end)
    if not hops or not record.has_rows("queue"):
        return None
    start, end = whole_intervals((start, end), record.interval_ns("queue"))
    if end <= start:
        return None
    middle, carried, could = carried_together(record, direction, hops)
    within = (middle > start) & (middle <= end)
    if not could[within].sum() > 0:
        return None
    return float(carried[within].sum()) / float(could[within].sum())


COUNTED_SO_FAR = {"retransmitted_segments": "retransmits", "timeouts": "timeouts"}
"""Columns of `flows` that a sender also tells while it runs: their names in `tcp`."""

_SUMMARIES: WeakKeyDictionary[Record, tuple[Manifest, Summary]] = WeakKeyDictionary()
"""Summaries of the records that are in use. Reports, tables, charts and exports each ask for them."""
