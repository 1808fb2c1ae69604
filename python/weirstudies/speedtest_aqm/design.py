"""The design: cells of rate, round trip, queue, shaper's bucket, cross traffic and method, as data."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from dataclasses import dataclass
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from weirlab.net.methods import METHODS
from weirlab.scenario import (
    Direction,
    LinkSpec,
    Model,
    PositiveNanoseconds,
    ResolvedRun,
    ScenarioSpec,
    check,
    resolve,
    time_text,
)
from weirstudies import choosing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Numbers = dict[str, list[float]]


class Queue(Model):
    """The queue beneath the shaper.

    Attributes:
        name: its name in cells.
        words: it, in `tc` syntax; `{packets}` stands for `bdp` bandwidth-delay products.
        bdp: how many.
        says: what it is.
    """

    name: str
    words: str
    bdp: float | None = None
    says: str


class Burst(Model):
    """The shaper's bucket.

    Attributes:
        name: its name in cells.
        ceil: the class's ceiling as a multiple of its rate, without meaning for a class without a parent.
        kb_per_mbps: KiB of burst for each Mbit/s of rate; tc's default of one packet without it.
        says: what it is.
    """

    name: str
    ceil: float | None = None
    kb_per_mbps: int | None = None
    says: str


class Cross(Model):
    """Cross traffic beside the test.

    Attributes:
        name: its name in cells.
        flows: how many each way.
        cc: congestion control of TCP flows; UDP without it.
        share: of the rate that one UDP stream sends.
        ways: which way TCP's data flows.
        extra: not part of the grid.
        says: what it is.
    """

    name: str
    flows: int = 0
    cc: str | None = None
    share: float | None = None
    ways: tuple[Direction, ...] = ()
    extra: bool = False
    says: str


class Metric(Model):
    """A latency that a method reports.

    Attributes:
        name: its name in tables.
        path: where it stands in the method's result.
        way: under which load it is taken; None on the idle line.
        flow: in which flow it is taken: the load's own, another, or both.
        per_minute: whether it stands there as round trips a minute.
        says: what it is.
    """

    name: str
    path: str
    way: Direction | None = None
    flow: Literal["own", "other", "both"]
    per_minute: bool = False
    says: str


class Method(Model):
    """A speed test.

    Attributes:
        name: its name.
        cc, client_cc: congestion controls of server and client.
        longest: how long it may take.
        says: what it is.
        metric: the latencies that it reports.
    """

    name: str
    cc: str
    client_cc: str
    longest: PositiveNanoseconds
    says: str
    metric: list[Metric]


class Block(Model):
    """A product of lists of the design. A list that is left out is one usual value."""

    name: str
    why: str
    repetitions: Annotated[int, Field(ge=1)]
    rates_mbps: list[int]
    rtts_ms: list[int] = Field(default=[20])
    queues: list[str]
    bursts: list[str] = Field(default=["g0"])
    crosses: list[str] = Field(default=["none"])
    methods: list[str]
    client_cc: str | None = None


class Published(Model):
    """Figures of the authors by rate, and by queue."""

    what: str
    rates_mbps: list[int]
    min_rtt_ms: tuple[float, float] | None = None
    upload_mbps: Numbers
    srtt_ms: Numbers = Field(default_factory=dict)
    seconds: Numbers = Field(default_factory=dict)

    def at(self, figure: Literal["upload_mbps", "srtt_ms", "seconds"], queue: str, rate: int) -> float:
        """A figure of a queue at a rate."""
        numbers: Numbers = getattr(self, figure)
        return numbers[queue][self.rates_mbps.index(rate)]


class Study(Model):
    """The whole study, as data. `queue`, `burst`, `cross` and `method` are what cells name."""

    title: str
    source: str
    rates_mbps: list[int]
    rtts_ms: list[int]
    repetitions: int
    queue: list[Queue]
    burst: list[Burst]
    cross: list[Cross]
    method: list[Method]
    block: list[Block]
    lab: list[Block]
    published: dict[Literal["g0", "cross"], Published]

    def queue_named(self, name: str) -> Queue:
        """The queue of that name."""
        return next(one for one in self.queue if one.name == name)

    def cross_named(self, name: str) -> Cross:
        """The cross traffic of that name."""
        return next(one for one in self.cross if one.name == name)

    def method_named(self, name: str) -> Method:
        """The method of that name."""
        return next(one for one in self.method if one.name == name)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One configuration.

    Attributes:
        rate_mbps: rate of the shaper, both ways.
        rtt_ms: round trip of the empty path.
        queue, burst, cross, method: names.
        client_cc: the client's congestion control where it is not the method's.
    """

    rate_mbps: int
    rtt_ms: int
    queue: str
    burst: str
    cross: str
    method: str
    client_cc: str | None = None

    @property
    def name(self) -> str:
        """Name of the experiment, by which it can be chosen."""
        sender = f" {self.client_cc}" if self.client_cc else ""
        return (
            f"{self.rate_mbps}mbit {self.rtt_ms}ms {self.queue} {self.burst} {self.cross} "
            f"{self.method}{sender}"
        )

    @property
    def folder(self) -> str:
        """The folder of its figures."""
        return self.name.replace(" ", "_")


def cell_named(name: str) -> Cell:
    """The cell of that name."""
    rate, rtt, queue, burst, cross, method, *sender = name.split()
    return Cell(
        rate_mbps=int(rate.removesuffix("mbit")),
        rtt_ms=int(rtt.removesuffix("ms")),
        queue=queue,
        burst=burst,
        cross=cross,
        method=method,
        client_cc=sender[0] if sender else None,
    )


def study() -> Study:
    """The study as shipped."""
    source = resources.files("weirstudies.speedtest_aqm") / "speedtest-aqm.toml"
    return check(Study, tomllib.loads(source.read_text(encoding="utf-8")), "study `speedtest-aqm`")


def methods(of: Study) -> list[str]:
    """The methods that there are here: Weir's own, and those that `weir test --method` speaks."""
    return [one.name for one in of.method if one.name == OWN or one.name in METHODS]


def all_cells(of: Study) -> dict[Cell, int]:
    """The whole grid, with the repetitions of each cell."""
    return {
        Cell(rate_mbps=rate, rtt_ms=rtt, queue=queue, burst=burst, cross=cross, method=method): of.repetitions
        for method, rate, rtt, queue, burst, cross in product(
            methods(of),
            of.rates_mbps,
            of.rtts_ms,
            [one.name for one in of.queue],
            [one.name for one in of.burst],
            [one.name for one in of.cross if not one.extra],
        )
    }


def in_grid(cell: Cell, of: Study) -> bool:
    """Whether a cell is one of the grid's: none of the authors' own set, or with another sender."""
    return cell.client_cc is None and not of.cross_named(cell.cross).extra


def usual_cells(of: Study) -> dict[Cell, int]:
    """The cells that are run if nothing is said: each as often as the block that wants it most."""
    return _cells(of.block, methods(of))


def lab_cells(of: Study) -> dict[Cell, int]:
    """The cells that run in the lab if nothing is said."""
    return _cells(of.lab, methods(of))


def _cells(blocks: Iterable[Block], known: Sequence[str]) -> dict[Cell, int]:
    found: dict[Cell, int] = {}
    for block in blocks:
        axes = (block.rates_mbps, block.rtts_ms, block.queues, block.bursts, block.crosses, block.methods)
        for rate, rtt, queue, burst, cross, method in product(*axes):
            if method in known:
                cell = Cell(
                    rate_mbps=rate,
                    rtt_ms=rtt,
                    queue=queue,
                    burst=burst,
                    cross=cross,
                    method=method,
                    client_cc=block.client_cc,
                )
                found[cell] = max(block.repetitions, found.get(cell, 0))
    return found


def chosen(known: dict[Cell, int], only: Sequence[str], *, repetitions: int | None = None) -> dict[Cell, int]:
    """The cells whose names match one of the patterns, all of them if there is none.

    Args:
        known: cells with their repetitions.
        only: patterns.
        repetitions: in place of those of each cell.

    Raises:
        UsageError: if none matches a pattern.
    """
    named = {cell.name: cell for cell in known}
    found = choosing.chosen(named, only, study="speedtest-aqm", what="cell", more="--full has all of them")
    return {cell: repetitions or known[cell] for cell in found}


def runs_of(cell: Cell, *, of: Study, repetitions: int) -> list[ResolvedRun]:
    """The simulated runs of a cell, one a seed; the record's label is the cell's name."""
    start = LEAD_NS if cell.cross != "none" else IDLE_NS
    spec = check(
        ScenarioSpec,
        {
            "test": _test(cell, of, start),
            "link": link(cell),
            "queue": [queue_words(cell, of)],
            "repeat": repetitions,
            "sampling": {"ping": time_text(PING_NS)},
        },
        f"study `speedtest-aqm`, `{cell.name}`",
    )
    return [dataclasses.replace(run, queue=cell.name) for run in resolve(spec)]


def queue_words(cell: Cell, of: Study) -> str:
    """Shaper and queue, in `tc` syntax, as the authors' script writes them."""
    queue = of.queue_named(cell.queue)
    burst = next(one for one in of.burst if one.name == cell.burst)
    kbit = cell.rate_mbps * 1000
    shaper = f"htb rate {kbit}kbit"
    if burst.ceil is not None and burst.kb_per_mbps is not None:
        size = burst.kb_per_mbps * cell.rate_mbps
        shaper += f" ceil {round(burst.ceil * kbit)}kbit burst {size}k cburst {size}k"
    return "\n".join(
        [
            "qdisc add dev eth0 root handle 1: htb default 11",
            f"class add dev eth0 parent 1: classid 1:11 {shaper}",
            f"qdisc add dev eth0 parent 1:11 handle 20: {queue.words.format(packets=packets(cell, queue))}",
        ]
    )


def packets(cell: Cell, queue: Queue) -> int:
    """How many full packets the queue's bandwidth-delay products are."""
    bits = (queue.bdp or 0) * cell.rate_mbps * 1000 * cell.rtt_ms
    return math.ceil(bits / 8 / PACKET_BYTES)


def link(cell: Cell) -> LinkSpec:
    """Hosts on Ethernet of 1 Gbit/s, and a router that shapes both ways.

    The host's own card stands in front of the router, as in the authors' testbed: without it a burst would
    meet the queue all at once.
    """
    line = {"rate": "1gbit", "framing": "ethernet"}
    hops = [
        {"name": "host", "queue": HOST_QUEUE, **line},
        {"name": ROUTER, "place": "queue", "delay": f"{cell.rtt_ms / 2:g}ms", **line},
    ]
    return LinkSpec.model_validate(
        {
            "name": "speedtest-aqm",
            "title": f"{cell.rate_mbps} Mbit/s, {cell.rtt_ms} ms",
            "up": hops,
            "down": hops,
        }
    )


def _test(cell: Cell, of: Study, start: int) -> dict[str, Any]:
    method = of.method_named(cell.method)
    end = start + method.longest
    said: dict[str, Any] = {
        "name": "speedtest-aqm",
        "title": f"{cell.method} beneath {cell.queue}",
        "phases": {"idle": time_text(start), "load": time_text(method.longest)},
        "flows": list(cross_flows(cell, of, end)),
        "probes": [{"name": PING, "kind": "udp"}, *cross_streams(cell, of, end)],
    }
    if cell.method == OWN:
        said["flows"] += _own_flows(method, start)
    else:
        said["methods"] = [
            {
                "name": cell.method,
                "kind": cell.method,
                "start": time_text(start),
                "cc": method.cc,
                "client_cc": cell.client_cc or method.client_cc,
            }
        ]
    return said


def cross_flows(cell: Cell, of: Study, end: int) -> Iterable[dict[str, Any]]:
    """Cross traffic over TCP, from the start of the run to `end`."""
    cross = of.cross_named(cell.cross)
    if cross.cc is None:
        return
    for way in cross.ways:
        yield {
            "name": f"{CROSS} {way}",
            "direction": way,
            "count": cross.flows,
            "start": "0s",
            "stop": time_text(end),
            "tcp": {"congestion_control": cross.cc},
        }


def cross_streams(cell: Cell, of: Study, end: int) -> Iterable[dict[str, Any]]:
    """Streams of UDP as trains of large pings, which the server sends back."""
    cross = of.cross_named(cell.cross)
    if cross.share is None:
        return
    period = round(STREAM_BYTES * 8e3 / (cross.share * cell.rate_mbps))
    for number in range(cross.flows):
        yield {
            "name": f"{CROSS} {number + 1}",
            "kind": "udp",
            "payload": STREAM_BYTES - IP_UDP_BYTES,
            "period": time_text(period),
            "start": "0s",
            "stop": time_text(end),
        }


def _own_flows(method: Method, start: int) -> Iterable[dict[str, Any]]:
    """The ramp of `weir test` as it goes on these lines: after every interval as many flows again."""
    for way, begin in own_spans(start).items():
        for step, count in enumerate(RAMP):
            yield {
                "name": f"{OWN} {way} {step + 1}",
                "direction": way,
                "count": count,
                "start": time_text(begin + step * RAMP_NS),
                "stop": time_text(begin + OWN_LOAD_NS),
                "tcp": {"congestion_control": method.cc if way == "down" else method.client_cc},
            }


def own_spans(start: int) -> dict[Direction, int]:
    """When the loads of Weir's own test begin."""
    return {"down": start, "up": start + OWN_LOAD_NS + OWN_GAP_NS}


OWN = "weir"
"""Weir's own test: ordinary loads and probes of the scenario."""

PING = "UDP ping"
CROSS = "cross"
ROUTER = "router"

HOST_QUEUE = "fq limit 100000 flow_limit 100000"
"""Of a host's own card: it never drops, as TCP small queues see to; other flows pass what waits in it."""

PACKET_BYTES = 1514
"""A full packet, as queues count it."""

STREAM_BYTES = 1428
IP_UDP_BYTES = 28
"""A packet of a UDP stream, and its headers."""

PING_NS = 10_000_000
IDLE_NS = 1_000_000_000
"""Before the method begins."""
LEAD_NS = 5_000_000_000
"""Beside cross traffic, which by then shares the line."""

RAMP = (2, 2, 4)
RAMP_NS = 500_000_000
"""`weir test` begins with 2 flows and doubles them while an interval brings 10 % more than the best before;
here slow start is over within the second."""
OWN_LOAD_NS = 8_000_000_000
OWN_GAP_NS = 2_000_000_000
"""Load and pause of `weir test`."""
