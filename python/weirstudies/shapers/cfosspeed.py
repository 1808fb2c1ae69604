"""The study `cfosspeed`: the report of 2018 on a VDSL-100 line, repeated in the simulator and in the lab.

Base ping for 60 s, then one download or upload for 60 s: without shaping, with Weir's controller in both
modes, and with a fixed shaper at 95 %. Pings as in the report (UDP without payload, every 200 ms, to the
third router) and every 10 ms. In the lab the shaper is that of `weir shape` on the client's device, and the
modem's buffers are in the lab's data path.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.scenario import ResolvedRun, TestSpec, load_link, mean_rate, time_text
from weirlab.stats import Factor, Interval, calm_after_s, describe, factor, interval, summarise
from weirstudies.shapers import controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.scenario import Direction
    from weirlab.stats import Distribution

CONTROLS = (controls.NONE, controls.PING, controls.BANDWIDTH, controls.FIXED)
DIRECTIONS: tuple[Direction, ...] = ("down", "up")


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a control made of the line, over the seeds.

    Attributes:
        direction: download or upload.
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

    direction: Direction
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


def runs_of(
    direction: Direction, *, seeds: int, idle_ns: int | None = None, load_ns: int | None = None
) -> list[ResolvedRun]:
    """The runs of all controls in one direction."""
    link = load_link("vdsl-100-40")
    usual = {way: mean_rate(link, way) or 0 for way in DIRECTIONS}
    return [
        run
        for control in CONTROLS
        for run in controls.runs(
            link,
            _test(direction, control, (idle_ns or SPAN_NS, load_ns or SPAN_NS)),
            control,
            usual=usual,
            seeds=seeds,
        )
    ]


def rows(direction: Direction, by_control: dict[str, list[Record]]) -> list[Row]:
    """A row for each control."""
    plain = by_control[controls.NONE]
    increases = {name: [_increase(record) for record in records] for name, records in by_control.items()}
    rates = {
        name: interval([_goodput(record, direction) for record in records])
        for name, records in by_control.items()
    }
    found = []
    for control, records in by_control.items():
        without, with_it = rates[controls.NONE], rates[control]
        found.append(
            Row(
                direction=direction,
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


def disturbances(records: Sequence[Record]) -> list[str]:
    """What the lab says of its own work that a reader must know before any figure."""
    return [f"{record.label}: {text}" for record in records for text in record.manifest.warnings]


def _pings(record: Record, probe: str, phase: str) -> Distribution | None:
    window = record.phase(phase)
    if window is None:
        return None
    at, number = pl.col("t_ns"), record.probe_names.index(probe)
    rows = record.latency.filter((at >= window[0]) & (at < window[1]) & (pl.col("probe") == number))
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


def _test(direction: Direction, control: str, spans_ns: tuple[int, int]) -> TestSpec:
    """Pings go to the third router; a shaper at the client is one more hop, and so one more router."""
    name = "Download" if direction == "down" else "Upload"
    shaped = control != controls.NONE
    return TestSpec.model_validate(
        {
            "name": f"cfosspeed-{direction}",
            "title": f"{name} on VDSL-100, as in the cFosSpeed report",
            "phases": {name: time_text(ns) for name, ns in zip(("idle", "load"), spans_ns, strict=True)},
            "flows": [{"name": name, "direction": direction}],
            "probes": [
                {
                    "name": REPORT,
                    "kind": "udp_ttl",
                    "ttl": 3 + shaped,
                    "period": "200ms",
                    "payload": 0,
                },
                {"name": OURS, "kind": "udp", "period": "10ms"},
            ],
        }
    )


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
