"""The study `thesis`: a published comparison of markers and queues, repeated in full.

G. Lo Monaco's thesis on TCP-friendly marking measured four configurations (SACK or Reno, appropriate or
inappropriate parameters), each with 50 and 100 flows and four cases of marker and queue. Its tables and every
setting of this study are data (`thesis.toml`, `tables.csv`): what the thesis gives, what was inferred from it
and what was chosen, with what other readings give. Each combination runs with several seeds in the simulator,
with controls that the thesis lacks; some also in the lab.
"""

from __future__ import annotations

import csv
import dataclasses
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from weirlab.scenario import (
    LinkSpec,
    Model,
    PositiveNanoseconds,
    ResolvedRun,
    ScenarioSpec,
    TcpSpec,
    TestSpec,
    check,
    load_link,
    queue_names,
    resolve,
    time_text,
)
from weirlab.stats import Interval, coefficient_of_variation, interval
from weirstudies import choosing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weirlab.record import Record

Tcp = Literal["sack", "reno"]
Parameters = Literal["appropriate", "inappropriate"]
Status = Literal["given", "inferred", "chosen"]


class Configuration(Model):
    """A configuration of the thesis.

    Attributes:
        name: its letter.
        tcp: the hosts' TCP.
        parameters: which thresholds the queue has.
    """

    name: str
    tcp: Tcp
    parameters: Parameters

    @property
    def title(self) -> str:
        """Name in the thesis."""
        tcp = {"sack": "SACK", "reno": "Reno"}[self.tcp]
        return f"Configuration {self.name}: {tcp}, {self.parameters} RED-like parameters"


class Case(Model):
    """A marker and a queue.

    Attributes:
        name: its name in tables.
        marker: name of the marker in `Study.markers`; none without one.
        queue: name of the queue in `Study.queues`.
        published: whether the thesis has it; the others are controls.
    """

    name: str
    marker: str | None = None
    queue: str
    published: bool = False


class Setting(Model):
    """One setting of the study, and where it comes from.

    Attributes:
        name: what is set.
        value: to what.
        status: whether the thesis gives it, it was inferred, or it was chosen.
        reason: from what, or why.
        fitted: whether the thesis' own results had a part in the choice.
    """

    name: str
    value: str
    status: Status
    reason: str
    fitted: bool = False


class Variant(Model):
    """Another reading of one setting, of which the study shows what it gives.

    Attributes:
        name: the reading.
        configuration: the configuration for which it is tried.
        marker, queue: words added to every spec of a marker, of a queue; later words win.
        tcp: TCP in place of the study's.
        framing: framing of the bottleneck.
        duration: length of the run.
        cases: the cases for which it makes a difference.
    """

    name: str
    configuration: str = "A"
    marker: dict[str, str] = Field(default_factory=dict)
    queue: dict[str, str] = Field(default_factory=dict)
    tcp: TcpSpec = TcpSpec()
    framing: str | None = None
    duration: PositiveNanoseconds | None = None
    cases: tuple[str, ...] = ()


class Study(Model):
    """The whole study, as data.

    Attributes:
        title, source: what it follows.
        duration: how long a run lasts.
        warm_up: where the second window of measurement starts.
        start_jitter: each flow starts up to so much later.
        framing: how packets are wrapped on the bottleneck.
        flows: numbers of flows.
        tcp: TCP of the hosts, for SACK and for Reno.
        markers: markers by name, as a scenario writes them.
        queues: queues by name; `{thresholds}` stands for those of the parameters.
        thresholds: thresholds by parameters.
        configuration, case, setting, variant: see there.
    """

    title: str
    source: str
    duration: PositiveNanoseconds
    warm_up: PositiveNanoseconds
    start_jitter: PositiveNanoseconds
    framing: str
    flows: tuple[int, ...]
    tcp: dict[Tcp, TcpSpec]
    markers: dict[str, str]
    queues: dict[str, str]
    thresholds: dict[Parameters, str]
    configuration: list[Configuration]
    case: list[Case]
    setting: list[Setting]
    variant: list[Variant]

    def missing(self, case: Case) -> str | None:
        """Why a case cannot be run here; None if it can."""
        name = self.queues[case.queue].split()[0]
        return None if name in queue_names() else f"queue not here yet: {name}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of the study.

    Attributes:
        configuration, flows, case: what is combined.
        variant: the other reading, if it is one.
    """

    configuration: Configuration
    flows: int
    case: Case
    variant: Variant | None = None

    @property
    def name(self) -> str:
        """Its name, which is the label of its records."""
        text = f"{self.configuration.name}/{self.flows} {self.case.name}"
        return f"{text} ({self.variant.name})" if self.variant else text


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The thesis' metrics of one run, in one window of time.

    Attributes:
        timeouts: expirations of retransmission timers, of all flows.
        loss_percent: bytes that the bottleneck's queue dropped, of those that came to it.
        goodput: average over flows of bytes delivered in order, each once, in bytes per second.
        variation: population standard deviation of the flows' goodput over its mean.
    """

    timeouts: float
    loss_percent: float
    goodput: float
    variation: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """A combination over its seeds.

    Attributes:
        cell: the combination.
        whole, late: figures of each run from the start, and from the end of the warm-up.
        published: the thesis' figures, if it has this combination.
    """

    cell: Cell
    whole: list[Figures]
    late: list[Figures]
    published: Figures | None

    def interval(self, metric: str, *, late: bool = False) -> Interval:
        """A metric's mean over the runs with its 95 % interval."""
        found = interval([getattr(one, metric) for one in (self.late if late else self.whole)])
        if found is None:
            raise ValueError(f"row `{self.cell.name}` has no runs")
        return found

    def ratio(self, metric: str, *, late: bool = False) -> float | None:
        """Our mean over the thesis' figure; None if the thesis has none."""
        if self.published is None:
            return None
        return self.interval(metric, late=late).mean / float(getattr(self.published, metric))

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values, for JSON."""
        windows = {"from_0s": False, "from_warm_up": True}
        return {
            "name": self.cell.name,
            "runs": len(self.whole),
            "published": self.published and dataclasses.asdict(self.published),
            **{
                window: {metric: dataclasses.asdict(self.interval(metric, late=late)) for metric in METRICS}
                for window, late in windows.items()
            },
        }


@cache
def study() -> Study:
    """The study as shipped."""
    text = (_data() / "thesis.toml").read_text(encoding="utf-8")
    return check(Study, tomllib.loads(text), "study `thesis`")


def published() -> dict[tuple[str, int, str | None, str], Figures]:
    """The thesis' tables: figures by configuration, flows, marker and queue."""
    lines = (_data() / "tables.csv").read_text(encoding="utf-8").splitlines()
    return {
        (
            line["configuration"],
            int(line["flows"]),
            None if line["marker"] == "none" else line["marker"],
            # Without a marker every packet is OUT, and RIO is RED with the parameters of OUT.
            "rio" if line["queue"] == "red" else line["queue"],
        ): Figures(
            timeouts=float(line["timeouts"]),
            loss_percent=float(line["loss_percent"]),
            goodput=float(line["goodput_bytes_per_s"]),
            variation=float(line["goodput_cov"]),
        )
        for line in csv.DictReader(lines)
    }


def cells(of: Study) -> list[Cell]:
    """All combinations of configurations, flows and cases that can be run here."""
    return [
        Cell(configuration=configuration, flows=flows, case=case)
        for configuration in of.configuration
        for flows in of.flows
        for case in of.case
        if of.missing(case) is None
    ]


def variants(of: Study) -> list[Cell]:
    """The other readings, each for one configuration with the most flows."""
    return [
        Cell(configuration=configuration, flows=max(of.flows), case=case, variant=variant)
        for variant in of.variant
        for configuration in of.configuration
        if configuration.name == variant.configuration
        for case in of.case
        if (case.name in variant.cases if variant.cases else case.published)
    ]


def lab_cells(of: Study) -> list[Cell]:
    """Cases that also run in the lab: A and B with the most flows, the thesis' cases."""
    return [
        cell
        for cell in cells(of)
        if cell.configuration.name in LAB_CONFIGURATIONS
        and cell.flows == max(of.flows)
        and cell.case.published
    ]


def chosen(only: Sequence[str], *, of: Study) -> list[Cell]:
    """The combinations whose names match one of the patterns, all of them if there is none.

    Raises:
        UsageError: if none matches a pattern.
    """
    known = {cell.name: cell for cell in cells(of)}
    return choosing.chosen(known, only, study="thesis", what="combination")


def runs_of(
    cell: Cell, *, of: Study, seeds: int, tcp: TcpSpec | None = None, duration_ns: int | None = None
) -> list[ResolvedRun]:
    """The runs of a combination, one a seed; the record's label is its name.

    `tcp` stands in for the study's where a world has a TCP of its own.
    """
    duration = duration_ns or (cell.variant and cell.variant.duration) or of.duration
    own = of.tcp[cell.configuration.tcp]
    base = tcp or (cell.variant.tcp.over(own) if cell.variant else own)
    spec = ScenarioSpec(
        test=_test(cell, duration),
        link=_link(cell, of),
        seed=1,
        repeat=seeds,
        start_jitter=time_text(of.start_jitter),
        tcp=base.over(TcpSpec(sack=cell.configuration.tcp == "sack", congestion_control="reno")),
        sampling=dict.fromkeys(("throughput", "tcp", "queue"), time_text(SAMPLE_NS)),
    )
    return [dataclasses.replace(run, queue=cell.name) for run in resolve(spec)]


def rows(wanted: Sequence[Cell], runs: Sequence[ResolvedRun], found: Sequence[Any]) -> list[Row]:
    """Figures of each combination, in the order of `wanted`.

    Args:
        wanted: the combinations.
        runs: their runs.
        found: of each of `runs` what `reduced` makes of its record.
    """
    tables = published()
    by_name: dict[str, list[Any]] = {}
    for run, one in zip(runs, found, strict=True):
        by_name.setdefault(run.queue, []).append(one)
    return [
        Row(
            cell=cell,
            whole=[Figures(**one["whole"]) for one in by_name[cell.name]],
            late=[Figures(**one["late"]) for one in by_name[cell.name]],
            published=None
            if cell.variant
            else tables.get((cell.configuration.name, cell.flows, cell.case.marker, cell.case.queue)),
        )
        for cell in wanted
    ]


def reduced(record: Record, run: ResolvedRun) -> dict[str, Any]:
    """The figures of a run from the start, and from the end of the warm-up, as plain values."""
    del run
    return {
        "whole": dataclasses.asdict(figures(record, 0)),
        "late": dataclasses.asdict(figures(record, study().warm_up)),
    }


def figures(record: Record, start: int) -> Figures:
    """The thesis' metrics of one run from `start` to its end, as section 3.2 defines them."""
    end = record.reached_ns
    # A live world samples a little late.
    is_before = pl.col("t_ns") <= start + SAMPLE_NS // 2
    last = pl.col("timeouts").max()
    flows = record.flows
    timeouts = int(flows["timeouts"].sum())
    delivered = flows["delivered_bytes"].to_numpy().astype(float)
    if start > 0:
        timeouts -= int(record.tcp.filter(is_before).group_by("flow").agg(last)["timeouts"].sum())
        before = record.throughput.filter(is_before).group_by("flow").agg(pl.col("bytes").sum())
        joined = flows.select("flow").join(before, on="flow", how="left", maintain_order="left")
        delivered -= joined["bytes"].fill_null(0).to_numpy().astype(float)
    queue = record.queue.filter((pl.col("queue") == BOTTLENECK) & (pl.col("class") == ""))
    if start > 0:
        queue = queue.filter(~is_before)
    dropped, departed = int(queue["dropped_bytes"].sum()), int(queue["departed_bytes"].sum())
    rates = delivered * 1e9 / (end - start)
    return Figures(
        timeouts=timeouts,
        loss_percent=100 * dropped / max(1, dropped + departed),
        goodput=float(rates.mean()),
        variation=coefficient_of_variation(rates.tolist()) or 0.0,
    )


def _test(cell: Cell, duration: int) -> TestSpec:
    return TestSpec.model_validate(
        {
            "name": "thesis",
            "title": f"{cell.flows} flows through a marker and a queue",
            "phases": {"load": time_text(duration)},
            "flows": [
                {"name": "flow", "direction": "down", "opened_by": "server", "count": cell.flows},
            ],
        }
    )


def _link(cell: Cell, of: Study) -> LinkSpec:
    """The shipped line of the thesis, with the case's marker at R0 and its queue at R1."""
    link = load_link("thesis-10")
    variant = cell.variant or Variant(name="")
    marker = None
    if cell.case.marker is not None:
        marker = f"{of.markers[cell.case.marker]} {variant.marker.get(cell.case.marker, '')}".strip()
    queue = of.queues[cell.case.queue].format(thresholds=of.thresholds[cell.configuration.parameters])
    queue = f"{queue} {variant.queue.get(cell.case.queue, '')}".strip()
    conditioner, bottleneck = link.down
    down = [
        conditioner.model_copy(update={"marker": marker}),
        bottleneck.model_copy(update={"queue": queue, "framing": variant.framing or of.framing}),
    ]
    return link.model_copy(update={"down": down})


def values(wanted: Sequence[Row]) -> Mapping[tuple[str, int, str], Row]:
    """The rows by configuration, flows and case."""
    return {
        (row.cell.configuration.name, row.cell.flows, row.cell.case.name): row
        for row in wanted
        if row.cell.variant is None
    }


def _data() -> Any:
    return resources.files("weirstudies.thesis")


METRICS = ("timeouts", "loss_percent", "goodput", "variation")
"""Timeouts, byte loss probability, average per-flow goodput, and its coefficient of variation."""

REDUCTION = f"{__name__}:{reduced.__name__}"
"""How workers call what makes figures of a record."""

BOTTLENECK = "down/r1"
SAMPLE_NS = 5_000_000_000
LAB_CONFIGURATIONS = ("A", "B")
