"""The study `linux`: the simulator beside what a real Linux did with the same configurations.

The reference is data (`linux-6.12.toml`, which says how it came about). Each experiment becomes
a scenario of test and link, runs with several seeds, and the same figures are taken from its records.
"""

from __future__ import annotations

import dataclasses
import math
import random
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from weirlab.record import of_reasons
from weirlab.scenario import (
    Direction,
    LinkSpec,
    Model,
    PositiveNanoseconds,
    ResolvedRun,
    ScenarioSpec,
    TestSpec,
    check,
    congestion_controls,
    queue_names,
    resolve,
    time_text,
)
from weirlab.stats import Finding, Goal, finding, jain_index
from weirstudies import choosing
from weirstudies.linux.parking_lot import ParkingLot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record


class Family(Model):
    """Settings that the experiments of a family have in common.

    Attributes:
        title: what they are, in a line.
        duration: how long they run.
        rtt: round trip of the empty path.
        downloads, uploads: loads in each direction.
        bottlenecks: how many stand in a row on the way up. Several make a parking lot: the first upload
            passes all of them, each other upload one.
        ping: time between two pings.
        start_jitter: each load starts up to so much later.
        stagger: each load starts so much after the one before.
        voice: whether a voice stream runs in each direction.
    """

    title: str
    duration: PositiveNanoseconds
    rtt: PositiveNanoseconds
    downloads: int
    uploads: int = 0
    bottlenecks: int = 1
    ping: PositiveNanoseconds
    start_jitter: PositiveNanoseconds
    stagger: PositiveNanoseconds | None = None
    voice: bool = False

    @property
    def parking_lot(self) -> ParkingLot | None:
        """The bottlenecks in a row; None if there is one."""
        if self.bottlenecks == 1:
            return None
        return ParkingLot(title=self.title, bottlenecks=self.bottlenecks, rtt_ns=self.rtt)


class Experiment(Model):
    """One configuration, and what Linux made of it.

    Attributes:
        name: its name; the first letter is its family's.
        family: its family's name.
        disciplines: the queue disciplines that it needs.
        down, up: queue specs of the two directions, of several bottlenecks each; none stands for a line
            without limits.
        congestion_control, ecn, sack: TCP of the loads.
        dscp: service classes of the loads, in turn.
        unwritten: why its configuration cannot be written here.
        note: what else one should know of it.
        linux: Linux' figures, one value a seed.
    """

    name: str
    family: str
    disciplines: list[str]
    down: str | None = None
    up: str | None = None
    congestion_control: str = "cubic"
    ecn: bool = False
    sack: bool = True
    dscp: tuple[str, ...] = ("BE",)
    unwritten: str | None = None
    note: str | None = None
    linux: dict[str, Annotated[list[float], Field(min_length=1)]]

    @property
    def seeds(self) -> int:
        """With how many seeds Linux was run."""
        return len(next(iter(self.linux.values())))


class Reference(Model):
    """The whole reference: what was run on a real Linux, and what came out."""

    kernel: str
    families: dict[str, Family]
    experiment: list[Experiment]


@dataclass(frozen=True, kw_only=True)
class Result:
    """Outcome of one experiment.

    Attributes:
        name: the experiment's name.
        missing: why it was not run; None if it was.
        seeds: how many runs there were.
        findings: its figures beside Linux'.
    """

    name: str
    missing: str | None
    seeds: int
    findings: dict[str, Finding]

    @property
    def met(self) -> bool:
        """Whether it was run and all goals are met."""
        return self.missing is None and all(one.met is not False for one in self.findings.values())

    def as_dict(self) -> dict[str, Any]:
        """The result as plain values, for JSON."""
        return dataclasses.asdict(self) | {"met": self.met}


def reference() -> Reference:
    """The reference as shipped."""
    source = resources.files("weirstudies.linux") / "linux-6.12.toml"
    return check(Reference, tomllib.loads(source.read_text(encoding="utf-8")), "study `linux`")


def chosen(only: Sequence[str], *, of: Reference) -> list[Experiment]:
    """The experiments whose names match one of the patterns, all of them if there is none.

    Raises:
        UsageError: if none matches a pattern.
    """
    known = {experiment.name: experiment for experiment in of.experiment}
    return choosing.chosen(known, only, study="linux", what="experiment")


def missing(experiment: Experiment) -> str | None:
    """Why an experiment cannot be run here; None if it can."""
    known = queue_names()
    absent = [name for name in experiment.disciplines if name not in known]
    if absent:
        return f"queue not here yet: {', '.join(absent)}"
    if experiment.congestion_control not in congestion_controls():
        return f"congestion control not here yet: {experiment.congestion_control}"
    return experiment.unwritten and f"cannot be written: {experiment.unwritten}"


def runs_of(
    experiment: Experiment, family: Family, *, seeds: int, duration_ns: int | None = None
) -> list[ResolvedRun]:
    """The runs of an experiment, one a seed; the record's label is the experiment's name."""
    duration = duration_ns or family.duration
    runs: list[ResolvedRun] = []
    for seed in range(1, seeds + 1):
        spec = ScenarioSpec(
            **_written(experiment, family, duration, _starts(family, seed)),
            seed=seed,
            start_jitter="0s",
            tcp={
                "congestion_control": experiment.congestion_control,
                "ecn": experiment.ecn,
                "sack": experiment.sack,
            },
            sampling={"ping": time_text(family.ping), "tcp": "0s"},
        )
        runs += [dataclasses.replace(run, queue=experiment.name) for run in resolve(spec)]
    return runs


def result(experiment: Experiment, family: Family, records: Sequence[Record]) -> Result:
    """An experiment's figures over its records, beside those of Linux with the same seeds.

    Of round trips the part above the empty path's is compared, and named `delay_`: what queues add.
    """
    why = missing(experiment)
    runs = [figures(record, of_each=family.parking_lot is not None) for record in records]
    findings = {}
    for name, linux in experiment.linux.items():
        base = base_ms(name, family)
        shown = name if base is None else f"delay_{name}"
        # A run in which no ping came back has no quantiles.
        ours = [run.get(name, math.nan) - (base or 0.0) for run in runs]
        reference = [value - (base or 0.0) for value in linux[: len(runs)]]
        if not why:
            findings[shown] = finding(shown, ours, reference, GOALS.get(shown))
    return Result(name=experiment.name, missing=why, seeds=len(runs), findings=findings)


def base_ms(figure: str, family: Family) -> float | None:
    """Round trip of the empty path that is part of a figure, in ms; None if the figure is no round trip."""
    if figure in ROUND_TRIPS:
        return family.rtt / 1e6
    lot = family.parking_lot
    return lot.exit_rtt_ns / 1e6 if lot and figure.endswith(ROUND_TRIPS) else None


def figures(record: Record, *, of_each: bool = False) -> dict[str, float]:
    """The figures of one run, taken as those of the reference were.

    Args:
        record: the run.
        of_each: whether the goodput of each flow is among them, by its name, and the round trips of the
            second probe and those after it.
    """
    end = record.reached_ns
    start = min(WARM_UP_NS, end // 4)
    found = _pings(record, PING, start, end)
    if of_each:
        rates = _rates_mbps(record, start, end).iter_rows(named=True)
        found |= {f"{_word(flow['name'])}_mbps": flow["mbps"] for flow in rates}
        for number, name in enumerate(record.probe_names[1:], start=1):
            of_probe = _pings(record, number, start, end)
            found |= {f"{_word(name.removeprefix('ping '))}_{key}": value for key, value in of_probe.items()}
    reasons = of_reasons("dropped"), of_reasons("marked")
    queues = record.queue.filter(pl.col("class") == "")
    drops, marks = (sum(int(queues[name].sum()) for name in names) for names in reasons)
    return {
        **_goodput(record, "down", start, end),
        **_goodput(record, "up", start, end),
        **found,
        "drops": drops,
        "marks": marks,
        "retransmits": int(record.flows["retransmitted_segments"].sum()),
        "timeouts": int(record.flows["timeouts"].sum()),
    }


def _pings(record: Record, probe: int, start: int, end: int) -> dict[str, float]:
    """Round trips of a probe's pings, and how many were lost."""
    pings = record.latency.filter(pl.col("probe") == probe).with_columns(
        late=pl.col("rtt_ns").is_null() | (pl.col("t_ns") + pl.col("rtt_ns") > end + LINGER_NS)
    )
    answered = pings.filter(~pl.col("late"))
    steady = answered.filter(pl.col("t_ns") >= start)["rtt_ns"].sort().to_list()
    return {
        **{f"{name}_ms": _at(steady, q) / 1e6 for name, q in QUANTILES.items() if steady},
        "max_all_ms": max(answered["rtt_ns"].to_list(), default=0) / 1e6,
        "lost_pings": int(pings["late"].sum()),
    }


def _goodput(record: Record, direction: Direction, start: int, end: int) -> dict[str, float]:
    """Goodput of a direction's flows; nothing if it has none."""
    rates = _rates_mbps(record, start, end).filter(pl.col("direction") == direction)["mbps"]
    if rates.is_empty():
        return {}
    return {
        f"{direction}_mbps": float(rates.sum()),
        f"{direction}_jain": jain_index(rates.to_list()) or 0.0,
        f"{direction}_least_mbps": float(np.min(rates.to_numpy())),
        f"{direction}_most_mbps": float(np.max(rates.to_numpy())),
    }


def _rates_mbps(record: Record, start: int, end: int) -> pl.DataFrame:
    """Goodput `mbps` of each flow, beside its `name` and `direction`."""
    arrived = (
        record.throughput.filter((pl.col("t_ns") > start) & (pl.col("t_ns") <= end))
        .group_by("flow")
        .agg(pl.col("bytes").sum())
    )
    flows = record.flow_names.join(arrived, on="flow", how="left", maintain_order="left")
    return flows.with_columns(mbps=pl.col("bytes").fill_null(0) * 8e3 / (end - start))


def _word(name: str) -> str:
    """A name as part of a figure's."""
    return name.replace(" ", "_")


def _at(values: Sequence[int], q: float) -> int:
    """The reference's quantile: the value at place floor(q n)."""
    return values[min(len(values) - 1, math.floor(q * len(values)))]


def _starts(family: Family, seed: int) -> list[int]:
    """When each load starts: drawn as for the reference, so that each run has its twin there.

    Who starts a round trip earlier has twice the window when the queue overflows: with other starts five
    seeds of slow-start overshoot cannot be compared.
    """
    draw = random.Random(seed)  # noqa: S311 - the reference's draws, not secrets
    return [
        number * (family.stagger or 0) + int(family.start_jitter * draw.random())
        for number in range(family.downloads + family.uploads)
    ]


def _written(experiment: Experiment, family: Family, duration: int, starts: Sequence[int]) -> dict[str, Any]:
    """Test, link and queues of an experiment."""
    if lot := family.parking_lot:
        return {
            "test": lot.test(experiment.name, duration, starts),
            "link": lot.link(experiment.up or UNLIMITED),
        }
    return {
        "test": _test(experiment, family, duration, starts),
        "link": _link(family),
        "queue": [UNLIMITED],
        "queue_down": experiment.down or UNLIMITED,
        "queue_up": experiment.up or UNLIMITED,
    }


def _test(experiment: Experiment, family: Family, duration: int, starts: Sequence[int]) -> TestSpec:
    ways = ["down"] * family.downloads + ["up"] * family.uploads
    flows = [
        {
            "name": f"{way} {number + 1}",
            "direction": way,
            # On Linux the sender opened the connection.
            "opened_by": "server" if way == "down" else "client",
            "dscp": experiment.dscp[number % len(experiment.dscp)],
            "start": time_text(start),
        }
        for number, (way, start) in enumerate(zip(ways, starts, strict=True))
    ]
    probes: list[dict[str, Any]] = [{"name": "ping", "kind": "icmp", "stop": time_text(duration)}]
    if family.voice:
        voice = {"kind": "udp", "dscp": "EF", "payload": 172, "period": "20ms", "stop": time_text(duration)}
        probes.append({"name": "voice"} | voice)
    return TestSpec.model_validate(
        {
            "name": experiment.name,
            "title": f"Beside Linux: {family.title}",
            "phases": {"load": time_text(duration)},
            # The delay lies between the queue and the server, both ways.
            "hosts": [{"name": "server", "delay": time_text(family.rtt // 2)}],
            "flows": flows,
            "probes": probes,
        }
    )


def _link(family: Family) -> LinkSpec:
    """The queue alone: as on Linux, the rate is its configuration's."""
    queue = {"name": "router", "place": "queue"}
    return LinkSpec.model_validate(
        {"name": "linux-study", "title": family.title, "up": [queue], "down": [queue]}
    )


PING = 0
"""Number of the train of pings whose round trips count."""

UNLIMITED = "pfifo limit 10000"
"""The queue of a direction without a bottleneck."""

WARM_UP_NS = 5_000_000_000
"""From here on steady figures are taken; a quarter of a run that is shorter than four times this."""

LINGER_NS = 500_000_000
"""A ping that is not answered so long after the end counts as lost."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}

ROUND_TRIPS = ("p50_ms", "p95_ms", "p99_ms", "max_ms", "max_all_ms")
"""The figures that are round trips of pings; those of a probe other than the first end with them."""

RATE, SHARES = Goal(share=0.015), Goal(amount=0.02)
DELAY, EVENTS = Goal(share=0.05, amount=0.5), Goal(share=0.2, amount=5.0)
"""How near is near enough. A handful of events is as good as none, and so is less than the time that one full
packet takes at 20 Mbit/s, 0.6 ms."""

GOALS = {
    "down_mbps": RATE,
    "up_mbps": RATE,
    "long_mbps": RATE,
    "cross_a_mbps": RATE,
    "cross_b_mbps": RATE,
    "cross_c_mbps": RATE,
    "down_jain": SHARES,
    "up_jain": SHARES,
    "delay_p50_ms": DELAY,
    "delay_p95_ms": DELAY,
    "delay_exit_b_p50_ms": DELAY,
    "delay_exit_b_p95_ms": DELAY,
    "retransmits": EVENTS,
    "marks": EVENTS,
    "timeouts": EVENTS,
}
"""The figures that are judged, and by what. A load of the parking lot is judged as a direction is."""
