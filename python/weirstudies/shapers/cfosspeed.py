"""The study `cfosspeed`: the report of 2018 on a VDSL-100 line, repeated in the simulator and in the lab.

Base ping for 60 s, then one download or upload for 60 s: without shaping, with Weir's controller in both
modes, and with a fixed shaper at 95 %. Pings as in the report (UDP without payload, every 200 ms, to the
third router) and every 10 ms. The line is `vdsl-100-40` with what the report's distributions tell of it: its
idle jitter, an upload that a receive window holds while something varies, and a download from a server
further away. In the lab the shaper is that of `weir shape` on the client's device, and the modem's buffers
are in the lab's data path.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from weirlab.scenario import HopSpec, LinkSpec, ResolvedRun, TestSpec, load_link, mean_rate, time_text
from weirlab.stats import Factor, Interval, calm_after_s, describe, factor, interval, summarise
from weirstudies import choosing, judge
from weirstudies.shapers import controls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.record import Record
    from weirlab.scenario import Direction
    from weirlab.stats import Distribution

CONTROLS = (controls.NONE, controls.PING, controls.BANDWIDTH, controls.FIXED)
DIRECTIONS: tuple[Direction, ...] = ("down", "up")

PATIENT = "auto, ping mode, target 20 ms"
"""Ping mode with a CoDel that bears a longer queue of a flow, which a far server needs."""
PATIENT_QUEUE = "fq_codel target 20ms interval 200ms"


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load of the report on one reading of its line.

    Attributes:
        name: by which it is chosen.
        direction: download or upload.
        varies: what varies under load: nothing, the line's rate, or the path behind the third router.
        compared: the controls that are compared.
        judged: the controls whose statements are judged.
    """

    name: str
    direction: Direction
    varies: Literal["nothing", "rate", "path"] = "nothing"
    compared: tuple[str, ...] = CONTROLS
    judged: tuple[str, ...] = (controls.PING,)


LOADS = {
    one.name: one
    for one in (
        Load(
            name="down",
            direction="down",
            compared=(*CONTROLS, PATIENT),
            judged=(controls.PING, PATIENT),
        ),
        Load(name="up", direction="up", varies="rate"),
        Load(name="up-path", direction="up", varies="path"),
    )
}
"""The report does not tell why the pings of its upload vary: a rate and a path that do both give its figures.
The rate is the reading that counts, as it leaves alone the paths of the shaper's own probes, of which the
report tells nothing. With the path, all of them vary together."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Figures of a control on the line, over the seeds.

    Attributes:
        load: the load's name.
        control: the control's name.
        loaded_ms: mean of the report's pings under load.
        increase_ms: that less their mean on the idle line.
        factor: increase without shaping / increase with this control.
        p99_ms: 99th percentile of the pings every 10 ms under load, less the median of the idle line.
        goodput_mbps: what came through.
        cost: share of the goodput without shaping that is lost.
        tamed_s: after the load began: until the mean ping was within 5 ms of the idle line and stayed so.
        runs: how many there were.
    """

    load: str
    control: str
    loaded_ms: Interval | None
    increase_ms: Interval | None
    factor: Factor
    p99_ms: Interval | None
    goodput_mbps: Interval | None
    cost: float | None
    tamed_s: Interval | None
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Series:
    """The report's pings in one series: its five figures.

    Attributes:
        name: the series.
        figures: least, mean, greatest, standard deviation and median over the runs, in ms.
        published: the same of the report, if it has the series.
    """

    name: str
    figures: dict[str, Interval | None]
    published: tuple[float, ...] | None


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of the report, or a goal of ours, and the judge's rulings on it.

    Attributes:
        load: the load's name.
        control: the shaper that it is about.
        says: what it says.
        rulings: what the judge makes of it.
    """

    load: str
    control: str
    says: str
    rulings: list[judge.Ruling]

    @property
    def seen(self) -> bool | None:
        """Whether it was seen; None if that is undecided."""
        return judge.seen(self.rulings)


def chosen(only: Sequence[str]) -> list[Load]:
    """The loads whose names match one of the patterns, all of them if there is none.

    Raises:
        UsageError: if none matches a pattern.
    """
    return choosing.chosen(LOADS, only, study="cfosspeed", what="load")


def runs_of(
    load: Load, *, seeds: int, idle_ns: int | None = None, load_ns: int | None = None
) -> list[ResolvedRun]:
    """The runs of all controls of a load."""
    spans_ns = (idle_ns or SPAN_NS, load_ns or SPAN_NS)
    link = line(load, sum(spans_ns))
    usual = {way: mean_rate(link, way) or 0 for way in DIRECTIONS}
    found = []
    for control in load.compared:
        patient = control == PATIENT
        runs = controls.runs(
            link,
            _test(load, control, spans_ns),
            controls.PING if patient else control,
            usual=usual,
            seeds=seeds,
            **({"queue": [PATIENT_QUEUE]} if patient else {}),
        )
        found += [replace(run, queue=control) for run in runs]
    return found


def line(load: Load, length_ns: int) -> LinkSpec:
    """The report's line: `vdsl-100-40` with its idle jitter, the download's buffer, and what varies.

    Jitter is drawn evenly within `JITTER_NS` each way, the delay is less by half of it. The download's buffer
    goes with the delay of its server, the upload's window with what varies: all are fitted to the report's
    five figures.

    Args:
        load: the load.
        length_ns: how long something varies, ns.
    """
    link = load_link("vdsl-100-40")
    modem = {"jitter": JITTER_NS, "delay": DELAY_NS}
    queue = {"queue": f"bfifo limit {DOWN_BUFFER_BYTES}"} if load.direction == "down" else {}
    router, up = link.up
    down, lan = link.down
    hops = [router, up.model_copy(update=modem)]
    if load.varies == "rate":
        rates = _varying(mean_rate(link, "up") or 0, RATE_VARIES, length_ns)
        hops[1] = hops[1].model_copy(update=_changes("rate", [f"{round(bps)}bit" for bps in rates]))
    if load.varies == "path":
        delays = _varying(2 * UPLOAD_SERVER_NS, PATH_VARIES, length_ns)
        changes = _changes("delay", [time_text(max(0, round(ns))) for ns in delays])
        hops.append(
            HopSpec.model_validate({"name": "path", "delay": time_text(2 * UPLOAD_SERVER_NS)} | changes)
        )
    return link.model_copy(
        update={"up": hops, "down": [down.model_copy(update=modem | queue), lan]},
    )


def _varying(mean: float, share: float, length_ns: int) -> list[float]:
    """Values of a normal distribution whose standard deviation is `share` of its mean, one a step."""
    drawn = np.random.default_rng(DRAWN).normal(mean, share * mean, -(-length_ns // STEP_NS))
    return [float(value) for value in drawn]


def _changes(what: Literal["rate", "delay"], values: Sequence[str]) -> dict[str, Any]:
    """The changes of a hop, one a step, as a hop of a link has them."""
    said = [{"at": time_text(number * STEP_NS), what: value} for number, value in enumerate(values)]
    return {"changes": HopSpec.model_validate({"name": "varies", "changes": said}).changes}


def rows(load: Load, by_control: dict[str, list[Record]]) -> list[Row]:
    """A row for each control."""
    plain = by_control[controls.NONE]
    increases = {name: [_increase(record) for record in records] for name, records in by_control.items()}
    rates = {
        name: interval([_goodput(record, load.direction) for record in records])
        for name, records in by_control.items()
    }
    found = []
    for control, records in by_control.items():
        without, with_it = rates[controls.NONE], rates[control]
        found.append(
            Row(
                load=load.name,
                control=control,
                loaded_ms=interval([_mean(_pings(record, REPORT, "load")) for record in records]),
                increase_ms=interval(increases[control]),
                factor=factor(
                    _known(increases[controls.NONE]), _known(increases[control]), same=records is plain
                ),
                p99_ms=interval([_p99(record) for record in records]),
                goodput_mbps=with_it,
                cost=1 - with_it.mean / without.mean if with_it and without else None,
                tamed_s=interval([_tamed(record) for record in records]),
                runs=len(records),
            )
        )
    return found


def series(load: Load, by_control: dict[str, list[Record]]) -> list[Series]:
    """The report's pings as the report describes them: of the idle line, and under load.

    Without a shaper from two seconds behind the start of the load on: the report's least ping of the upload
    is 99.3 ms, so that its series have no start. With a shaper they have.
    """
    plain = by_control[controls.NONE]
    found = [_series(f"{load.name}, idle", [_pings(record, REPORT, "idle") for record in plain], "idle")]
    for control, records in by_control.items():
        skipped = START_NS if control == controls.NONE else 0
        loaded = [_pings(record, REPORT, "load", skipped) for record in records]
        way = load.direction
        theirs = {controls.NONE: f"{way}, without", controls.PING: f"{way}, with"}.get(control)
        found.append(_series(f"{load.name}, {control}", loaded, theirs))
    return found


def _series(name: str, runs: Sequence[Distribution | None], theirs: str | None) -> Series:
    figures = {one: interval([getattr(run, one) if run else None for run in runs]) for one in FIVE}
    return Series(name=name, figures=figures, published=SERIES[theirs] if theirs else None)


def statements(
    load: Load, by_control: dict[str, list[Record]], *, world: str, looks: Sequence[int]
) -> list[Statement]:
    """The report's statements of a load and goals of ours, judged over the repetitions.

    Args:
        load: the load.
        by_control: its records.
        world: where they were made.
        looks: after how many repetitions the judge looks, as planned before the run.
    """
    return [
        Statement(load=load.name, control=control, says=says, rulings=judge.judge([claim], looks))
        for control in load.judged
        for says, claim in _claims(load, by_control, control, world=world)
    ]


def are_decided(found: Sequence[Statement]) -> bool:
    """Whether each statement is seen or not seen, so that no more repetitions are wanted."""
    return all(one.seen is not None for one in found)


def _claims(
    load: Load, by_control: dict[str, list[Record]], control: str, *, world: str
) -> list[tuple[str, judge.Claim]]:
    """Statements on a control, each with a claim: where its quantity must lie."""

    def values(control: str, figure: Callable[[Record], float | None]) -> dict[int, float]:
        # Live runs have no seed that makes two of them alike: they are paired in the order in which they ran.
        live = world != "sim"
        found = {
            place if live or record.manifest.seed is None else record.manifest.seed: figure(record)
            for place, record in enumerate(by_control[control])
        }
        return {key: value for key, value in found.items() if value is not None}

    increases = {name: values(name, _increase) for name in (controls.NONE, control)}
    tamed = values(control, _tamed)
    theirs = REPORTED[load.direction]
    with_it, without = (
        values(name, partial(_goodput, direction=load.direction)) for name in (control, controls.NONE)
    )
    claims = [
        (
            f"{bound:g} times less delay ({whose})",
            judge.Claim(
                what="increase without over with the shaper",
                ours=increases[controls.NONE],
                other=increases[control],
                above=bound,
            ),
        )
        for bound, whose in ((theirs["factor"], "the report"), (GOALS[load.direction], "goal"))
    ]
    claims += [
        (
            f"tamed within {bound:g} s ({whose})",
            judge.Claim(what="seconds until tamed", ours=tamed, below=bound),
        )
        for bound, whose in ((theirs["tamed_s"], "the report"), (TAMED_GOAL_S, "goal"))
    ]
    return [
        *claims,
        (
            "at most 5 % of the goodput (goal)",
            judge.Claim(what="goodput with over without the shaper", ours=with_it, other=without, above=0.95),
        ),
        (
            "p99 within 10 ms of the idle line (goal)",
            judge.Claim(what="p99, ms", ours=values(control, _p99), below=P99_GOAL_MS),
        ),
    ]


def disturbances(records: Sequence[Record]) -> list[str]:
    """Remarks of the lab on its own work, which a reader must know before any figure."""
    return [f"{record.label}: {text}" for record in records for text in record.manifest.warnings]


def _pings(record: Record, probe: str, phase: str, skipped_ns: int = 0) -> Distribution | None:
    window = record.phase(phase)
    if window is None:
        return None
    at, number = pl.col("t_ns"), record.probe_names.index(probe)
    rows = record.latency.filter(
        (at >= window[0] + skipped_ns) & (at < window[1]) & (pl.col("probe") == number)
    )
    return describe(rows["rtt_ns"] / 1e6)


def _mean(found: Distribution | None) -> float | None:
    return found.mean if found else None


def _increase(record: Record) -> float | None:
    idle, loaded = _pings(record, REPORT, "idle"), _pings(record, REPORT, "load")
    return loaded.mean - idle.mean if idle and loaded else None


def _p99(record: Record) -> float | None:
    idle, loaded = _pings(record, OURS, "idle"), _pings(record, OURS, "load")
    return loaded.p99 - idle.median if idle and loaded else None


def _goodput(record: Record, direction: Direction) -> float | None:
    found = summarise(record)
    flows = found.down if direction == "down" else found.up
    return flows.goodput_mbps if flows else None


def _tamed(record: Record) -> float | None:
    window, idle = record.phase("load"), _pings(record, OURS, "idle")
    if window is None or idle is None:
        return None
    begin, end = window[0] / 1e9, window[1] / 1e9
    # From the first long ping on: before it the load has not come.
    at, rtt_ms = pl.col("t_ns"), pl.col("rtt_ns") / 1e6
    late = record.latency.filter((at >= window[0]) & (rtt_ms > idle.median + CALM_MS))["t_ns"]
    if late.is_empty():
        return 0.0
    since = late[0] / 1e9
    calm = calm_after_s(record, since, idle.median + CALM_MS, end)
    return None if calm is None else since - begin + calm


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _test(load: Load, control: str, spans_ns: tuple[int, int]) -> TestSpec:
    """Pings go to the third router; a shaper at the client is one more hop, and so one more router."""
    down = load.direction == "down"
    name = "Download" if down else "Upload"
    far_ns = {"nothing": DOWNLOAD_SERVER_NS, "rate": UPLOAD_SERVER_NS, "path": 0}[load.varies]
    third = {"kind": "udp_ttl", "ttl": 3 + (control != controls.NONE), "payload": 0, "host": "near"}
    return TestSpec.model_validate(
        {
            "name": f"cfosspeed-{load.name}",
            "title": f"{name} on VDSL-100, as in the cFosSpeed report",
            "phases": {name: time_text(ns) for name, ns in zip(("idle", "load"), spans_ns, strict=True)},
            "hosts": [{"name": "near"}, {"name": "server", "delay": time_text(far_ns)}],
            "flows": [
                {
                    "name": name,
                    "direction": load.direction,
                    "host": "server",
                    "tcp": {} if down else {"receive_window": UPLOAD_WINDOW_BYTES},
                }
            ],
            "probes": [
                {"name": REPORT, "period": "200ms"} | third,
                {"name": OURS, "period": "10ms"} | third,
            ],
        }
    )


START_NS = 2_000_000_000
"""Slow start is over; the report's own series without a shaper begin later."""

JITTER_NS = 600_000
DELAY_NS = 4_310_000
"""Each way: idle pings of 8.7 to 9.8 ms with a standard deviation of 0.25 ms, as the report's."""

DOWNLOAD_SERVER_NS = 25_000_000
DOWN_BUFFER_BYTES = 410_000
"""Fitted together: of servers 20, 25 and 30 ms away each way and buffers of 25 to 32 ms (of 109.341 Mbit/s)
the pair whose mean is the report's, with its standard deviation."""

UPLOAD_WINDOW_BYTES = 524_288
UPLOAD_SERVER_NS = 3_000_000
"""A window of 512 KiB, whose ping is the report's greatest where the server answers at once, and a server so
far away each way that the mean is the report's. Without a window the ping is a saw from 86 to 123 ms, where
the report has a band from 99 to 112."""

RATE_VARIES = 0.02
PATH_VARIES = 0.37
"""Standard deviations, as shares of the mean: of the line's rate, and of the 6 ms behind the third router.
Each gives the report's 2.2 ms."""
STEP_NS = 200_000_000
"""For how long a value stays: the time between two of the report's pings."""
DRAWN = 1
"""Seed of the values, which are the same in all runs."""

FIVE = ("min", "mean", "max", "std", "median")

SERIES = {
    "idle": (8.71, 9.233, 10.148, 0.24624, 9.216),
    "down, without": (15.486, 26.162, 49.045, 6.6275, 23.841),
    "up, without": (99.338, 105.07, 111.83, 2.1675, 105.22),
    "down, with": (9.713, 15.343, 53.004, 3.849, 14.615),
    "up, with": (8.888, 19.999, 114.14, 18.29, 12.791),
}
"""The report's statistics of each series: least, mean, greatest, standard deviation, median; ms."""

TAMED_GOAL_S = 1.0
P99_GOAL_MS = 10.0

REPORT = "Ping as in the report"
OURS = "Ping every 10 ms"
SPAN_NS = 60_000_000_000
CALM_MS = 5.0
"""cFosSpeed's own increases were 5 and 10 ms."""

REPORTED = {
    "down": {"without": 15.825, "with": 5.006, "factor": 3.2, "tamed_s": 2.0},
    "up": {"without": 94.733, "with": 9.662, "factor": 9.8, "tamed_s": 2.0},
}
"""cFos Software, "The effect of cFosSpeed Traffic Shaping on a VDSL-100 connection", 2018; ms."""

GOALS = {"down": 10.0, "up": 30.0}
"""Factors that the controller in ping mode is to reach."""
