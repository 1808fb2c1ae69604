"""The figures that an assertion may name: what each is taken of, its dimension, which way is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from weirlab.errors import UsageError
from weirlab.stats.arrivals import Arrivals
from weirlab.stats.capacity import share_remark
from weirlab.stats.dimensions import NONE, RATE, TIME
from weirlab.stats.pings import compared_probes, pings_within
from weirlab.stats.summary import busy_share
from weirlab.stats.transfers import APPLICATIONS, TransferSummary, completion_ms, transfer_summaries
from weirlab.stats.udp import udp_summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weirlab.record import Record
    from weirlab.stats.dimensions import Dimension
    from weirlab.stats.pings import Pings


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The flows or probes that a figure is taken of.

    Attributes:
        figure: the figure's name.
        phase: the phase over which it is taken.
        span: start and end of the span over which it is, in ns, instead of the phase.
        pattern: what names of flows or probes match.
        text: the whole text that it stands in.
        of_compared: whether round trips are of those probes alone that have pings before and under load.
    """

    figure: str
    phase: str
    span: tuple[int, int] | None
    pattern: str
    text: str
    of_compared: bool

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Whether a run of that scenario has the phase and something of that name."""
        phases = [phase["name"] for phase in scenario["phases"]]
        if self.span is None and self.phase not in phases:
            raise UsageError(
                f"assertion `{self.text}`: the run has no phase `{self.phase}` (it has: {', '.join(phases)})"
            )
        names = names_of(self.figure, scenario)
        if self.pattern != "*" and not any(fnmatchcase(name, self.pattern) for name in names):
            kind = named_by(self.figure)
            there = ", ".join(dict.fromkeys(names)) or "none"
            raise UsageError(
                f"assertion `{self.text}`: `{kind}={self.pattern}` matches no {kind} of `{self.figure}` "
                f"(there are: {there}; `*` stands for anything)"
            )

    def window(self, record: Record) -> tuple[int, int]:
        """Start and end in nanoseconds; of one that was not reached the end is not after the start."""
        if self.span is not None:
            return self.span[0], min(self.span[1], record.reached_ns)
        return record.phase(self.phase) or (0, 0)

    def check_span(self, scenario: Mapping[str, Any]) -> None:
        """Whether a run of that scenario can reach the span."""
        if self.span is not None and self.span[0] >= scenario["duration_ns"]:
            raise UsageError(
                f"assertion `{self.text}`: the run ends at {scenario['duration_ns'] / 1e9:g} s: write a span "
                "that begins before"
            )

    def why_no_share(self, record: Record) -> str | None:
        """Of a share of the line why the record has none: the lines do not say what they carry together."""
        direction, _, name = self.figure.partition(".")
        start, end = self.window(record)
        if name != "utilisation" or start >= end:
            return None
        return share_remark(record, "up" if direction == "up" else "down", start, end)


def named_by(figure: str) -> str | None:
    """By what a figure is told apart: `probe`, `flow`, or nothing."""
    if figure.startswith("latency."):
        return "probe"
    return "flow" if figure.endswith((".goodput", ".mos")) or family_of(figure) else None


def family_of(figure: str) -> str | None:
    """The kind of application that a figure is of, or `completion`; None for others."""
    family = figure.partition(".")[0]
    return family if family in (*APPLICATIONS, "completion") else None


def names_of(figure: str, scenario: Mapping[str, Any]) -> list[str]:
    """Names of the probes or flows of which a figure may be taken."""
    methods = [method["name"] for method in scenario.get("methods", [])]
    if named_by(figure) == "probe":
        return [probe["name"] for probe in scenario["probes"]] + [f"{name} in flow" for name in methods]
    family = family_of(figure)
    if family is not None:
        return [
            flow["name"]
            for flow in scenario["flows"]
            if (flow.get("bytes") if family == "completion" else family in flow.get("application", {}))
        ]
    direction = figure.partition(".")[0]
    flows = [flow["name"] for flow in scenario["flows"] if flow["direction"] == direction]
    return flows + [f"{name} {direction}" for name in methods]


def dimension_of(figure: str) -> Dimension:
    """Exponents of time and rate of a figure."""
    if figure.endswith((".loss", ".utilisation", ".mos", ".failed", ".stalled", ".response")):
        return NONE
    if figure.startswith("latency.") or (family_of(figure) and figure != "video.bitrate"):
        return TIME
    return RATE


def better_of(figure: str) -> int:
    """Whether more of a figure is better, or less."""
    rises = figure.endswith((".utilisation", ".mos", ".response"))
    return MORE if rises or dimension_of(figure) == RATE else LESS


def _latency(figure: str) -> Callable[[Record, Selection], float]:
    def of(record: Record, selection: Selection) -> float:
        found = _pings(record, selection, of_compared=selection.of_compared).distribution
        return float(getattr(found, figure)) if found else math.nan

    return of


def _loss(record: Record, selection: Selection) -> float:
    share = _pings(record, selection).loss_rate
    return math.nan if share is None else share


def _pings(record: Record, selection: Selection, *, of_compared: bool = False) -> Pings:
    if selection.pattern != "*":
        probes = [n for n, name in enumerate(record.probe_names) if fnmatchcase(name, selection.pattern)]
    else:
        # What a speed test saw within its own flow counts only where it is named.
        probes = compared_probes(record) if of_compared else record.ping_probes
    (found,) = pings_within(record, selection.window(record), probes)
    return found


def _goodput(direction: str) -> Callable[[Record, Selection], float]:
    def of(record: Record, selection: Selection) -> float:
        wanted = [
            flow
            for flow in record.flow_rows
            if flow["direction"] == direction and fnmatchcase(flow["name"], selection.pattern)
        ]
        if not wanted:
            return math.nan
        rate = Arrivals(record).rate_mbps(wanted, selection.window(record), "bytes")
        return math.nan if rate is None else rate

    return of


def _mos(direction: str) -> Callable[[Record, Selection], float]:
    """The score of the worst of the voice streams."""

    def of(record: Record, selection: Selection) -> float:
        flows = [flow["name"] for flow in record.flows_in(direction)]
        wanted = [name for name in flows if fnmatchcase(name, selection.pattern)]
        found = udp_summaries(record, selection.window(record))
        scores = [one.voice.mos for name, one in found.items() if one.voice and name in wanted]
        return min(scores, default=math.nan)

    return of


def _application(kind: str, figure: str) -> Callable[[Record, Selection], float]:
    """A figure of what applications of a kind asked for: the worst of several flows that run in the span."""

    def of(record: Record, selection: Selection) -> float:
        start, end = span = selection.window(record)
        since = start if figure == "startup" else -math.inf
        running = {
            row["name"]
            for row in record.flow_rows
            if since <= row["start_ns"] < end and row["stop_ns"] > start
        }
        found = [
            summary
            for name, summary in transfer_summaries(record, span).items()
            if name in running and summary.kind == kind and fnmatchcase(name, selection.pattern)
        ]
        values = [_APPLICATION_FIGURES[figure](one) for one in found]
        if not values or any(value is None for value in values):
            return math.nan
        worst = min if figure in {"bitrate", "response"} else max
        return float(worst(value for value in values if value is not None))

    return of


def _completion(record: Record, selection: Selection) -> float:
    """How long the last flow of fixed size took; NaN if one of them was not delivered."""
    found = [took for name, took in completion_ms(record).items() if fnmatchcase(name, selection.pattern)]
    known = [took for took in found if took is not None]
    return max(known) if known and len(known) == len(found) else math.nan


def _utilisation(direction: str) -> Callable[[Record, Selection], float]:
    def of(record: Record, selection: Selection) -> float:
        share = busy_share(record, "up" if direction == "up" else "down", *selection.window(record))
        return math.nan if share is None else share

    return of


def _shaper(direction: str, aggregate: str) -> Callable[[Record, Selection], float]:
    """Least, mean (over time) or greatest rate of the shaper; infinite while it has none."""

    def of(record: Record, selection: Selection) -> float:
        import polars as pl  # noqa: PLC0415 - most assertions need none

        start, end = selection.window(record)
        rows = record.shaper.filter(pl.col("queue").str.starts_with(f"{direction}/"))
        before = rows.filter(pl.col("t_ns") <= start).tail(1)
        during = pl.concat([before, rows.filter((pl.col("t_ns") > start) & (pl.col("t_ns") < end))])
        if during.height == 0:
            return math.nan
        rates = [math.inf if rate is None else rate / 1e6 for rate in during["rate_bps"]]
        times = [max(t, start) for t in during["t_ns"]] + [end]
        if aggregate == "min":
            return min(rates)
        if aggregate == "max":
            return max(rates)
        lengths = [after - before for before, after in pairwise(times)]
        total = sum(rate * length for rate, length in zip(rates, lengths, strict=True))
        return float(total / sum(lengths))

    return of


FIGURES: Mapping[str, Callable[[Record, Selection], float]] = {
    **{f"latency.{name}": _latency(name) for name in ("mean", "median", "p95", "p99", "max", "min")},
    "latency.loss": _loss,
    **{f"{way}.goodput": _goodput(way) for way in ("up", "down")},
    **{f"{way}.mos": _mos(way) for way in ("up", "down")},
    **{
        f"{kind}.{name}": _application(kind, name)
        for kind in ("web", "dns")
        for name in ("mean", "median", "p95", "max", "failed", "response")
    },
    **{f"video.{name}": _application("video", name) for name in ("bitrate", "stalled", "startup")},
    "completion.max": _completion,
    **{f"{way}.utilisation": _utilisation(way) for way in ("up", "down")},
    **{f"{way}.rate.{name}": _shaper(way, name) for way in ("up", "down") for name in ("min", "mean", "max")},
}
"""Every figure by name: latency and other times in ms, goodput and rates in Mbit/s, shares, scores."""

_APPLICATION_FIGURES: Mapping[str, Callable[[TransferSummary], float | None]] = {
    "mean": lambda one: one.mean_ms,
    "median": lambda one: one.median_ms,
    "p95": lambda one: one.p95_ms,
    "max": lambda one: one.max_ms,
    "failed": lambda one: one.failed_rate,
    "response": lambda one: one.response,
    "bitrate": lambda one: one.video.bitrate_mbps if one.video else None,
    "stalled": lambda one: one.video.stalled_rate if one.video else None,
    "startup": lambda one: one.video.startup_ms if one.video else None,
}
"""Figures of applications."""

MORE, LESS = 1, -1
"""Which is better."""
