"""Figures of the phases of one test, from which the scores are computed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from weirlab import _native
from weirlab.record.differences import WHEN, finds_its_loads
from weirlab.stats.arrivals import Arrivals
from weirlab.stats.pings import answered_of_each, idle_window_ns, is_any_of, pings_within

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.stats import Distribution, Pings

Way = Literal["down", "up"]


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """One phase with load, from when the line was full until the phase's end.

    Attributes:
        phase: its name: `download`, `upload`, or `load` for both at once.
        start_ns, end_ns: what was taken.
        latency: figures of the answered ones of `pings`, of probes that answered on the idle line too: those
            of which the increase is, which are all of most tests.
        pings: those of all UDP and ICMP probes: packets in a flow of their own.
        in_flow_ms: smoothed round trips of the loads' own senders (TCP_INFO): packets within the load.
        down_mbps, up_mbps: goodput; None without loads that way, or a whole interval of samples.
        increase_ms: how much longer pings of these probes took, each than the mean of its own probe's idle
            ones, so that probes at different distances may be pooled: the mean over all.
    """

    phase: str
    start_ns: int
    end_ns: int
    latency: Distribution
    pings: Pings
    in_flow_ms: NDArray[np.float64]
    down_mbps: float | None
    up_mbps: float | None
    increase_ms: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One test.

    Attributes:
        idle: round trips without load, in milliseconds, of probes that answered under load too.
        before: the pings without load of all probes.
        loaded: the phases with load, by name; there is one at least.
        unmeasured: the phases with load that the test was to have, and of which it did not reach the end
            or in which nothing came, by name.
        ungraded: why the test has no grade, in a sentence without its end; None if all was measured.
        limit_mbps: what the server lets pass, if the loads may have met that and never filled the line.
    """

    idle: Distribution
    before: Pings
    loaded: dict[str, Loaded]
    unmeasured: tuple[str, ...] = ()
    ungraded: str | None = None
    limit_mbps: float | None = None

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
    def reached(self) -> str:
        """From when on the figures under load count, in words; a line is full where no server's limit was."""
        return "the line was full" if self.limit_mbps is None else "the loads were at their most"

    @property
    def worst(self) -> Loaded:
        """The phase in which pings grew most."""
        return max(self.loaded.values(), key=lambda one: one.increase_ms)

    @property
    def loss_rate(self) -> float | None:
        """Share of probes that were lost, over idle and loaded phases."""
        every = [self.before, *(one.pings for one in self.loaded.values())]
        sent = sum(one.sent for one in every)
        return sum(one.unanswered for one in every) / sent if sent else None


def measured(record: Record) -> Measured | None:
    """The figures of a record; None if no probe has pings both of its idle phase and of a load.

    A phase `idle` in which a load runs is none.
    """
    phase = idle_window_ns(record)
    if phase is None:
        return None
    probes = record.ping_probes
    before, *of_each = pings_within(record, phase, probes, *([one] for one in probes))
    means_of = zip(probes, (one.distribution for one in of_each), strict=True)
    means = {probe: one.mean for probe, one in means_of if one is not None}
    loaded, compared = {}, set[int]()
    for name in LOADED:
        span = record.phase(name)
        of_phase = _loaded(record, name, span, means) if span else None
        if of_phase is not None:
            loaded[name], probes_of_phase = of_phase
            compared |= probes_of_phase
    idle = _of_probes(record, phase, before, compared, means)
    if idle is None:
        return None
    unmeasured, why = _unmeasured(record, loaded)
    found = Measured(idle=idle, before=before, loaded=loaded, unmeasured=tuple(unmeasured), ungraded=why)
    return replace(found, limit_mbps=met_limit_mbps(record, found.down_mbps, found.up_mbps))


def met_limit_mbps(record: Record, down_mbps: float | None, up_mbps: float | None) -> float | None:
    """The servers' limit, if loads that carried so much may have met that and not the line's."""
    told = ("server", "servers", "echoes")
    notes = {name: said for name, said in record.manifest.extra.items() if name in told}
    return _native.met_limit_mbps(json.dumps(notes), down_mbps, up_mbps)


def of_a_line(record: Record) -> Measured | None:
    """The figures of a record of Weir's own test of a line; None of any other, or if it has none."""
    return measured(record) if finds_its_loads(record) else None


def _unmeasured(record: Record, pinged: Collection[str]) -> tuple[list[str], str | None]:
    """The phases with load that were not measured, and why there is no grade; `pinged` are those with pings.

    Of any test that is a phase whose end was not reached, and of one of a line also one in which nothing
    came: what a scenario does to its own line is what it shows.
    """
    spans = {one["name"]: (one["start_ns"], one["end_ns"]) for one in record.manifest.scenario["phases"]}
    phases = [(name, *spans[name]) for name in LOADED if name in spans]
    reached = record.reached_ns
    if not finds_its_loads(record):
        phases = [one for one in phases if one[2] > reached]
    if not phases:
        return [], None
    return _native.unmeasured(phases, reached, _answers(record), _data(record), list(pinged))


def _answers(record: Record) -> list[tuple[int, int]]:
    """When answers to pings came, and the longest round trip of those that came then, in milliseconds."""
    longest: dict[int, int] = {}
    for at, probe, rtt_ns, known in record.round_trip_chunks():
        mine = is_any_of(probe, list(record.ping_probes))
        answered = mine if known is None else mine & known
        took = rtt_ns[answered]
        came, took_ms = (at[answered] + took) // NS_PER_MS, took // NS_PER_MS
        order = np.lexsort((-took_ms, came))
        times, first = np.unique(came[order], return_index=True)
        for ms, most in zip(times.tolist(), took_ms[order][first].tolist(), strict=True):
            longest[ms] = max(most, longest.get(ms, 0))
    return sorted(longest.items())


def _data(record: Record) -> tuple[list[int], list[int]]:
    """When data of downloads and of uploads came to their receivers, in milliseconds."""
    flows = {way: [row["flow"] for row in record.flows_in(way)] for way in ("down", "up")}
    ways = (set[int](), set[int]())
    for rows in record.pieces("throughput", ("t_ns", "flow", "bytes")):
        came = rows.numbers("bytes") > 0
        for times, mine in zip(ways, flows.values(), strict=True):
            which = came & np.isin(rows.numbers("flow"), mine)
            times.update(np.unique(rows.numbers("t_ns")[which] // NS_PER_MS).tolist())
    down, up = map(sorted, ways)
    return down, up


def _loaded(
    record: Record, name: str, span: tuple[int, int], idle_means: Mapping[int, float]
) -> tuple[Loaded, set[int]] | None:
    """The figures of a phase, and the probes of which its increase is; None if none has pings of both."""
    start, end = max(span[0] + SETTLING_NS, _full(record, name)), span[1]
    (pings,) = pings_within(record, (start, end), record.ping_probes)
    answered = answered_of_each(record, (start, end))
    compared = answered.keys() & idle_means.keys()
    latency = _of_probes(record, (start, end), pings, compared, answered)
    if latency is None:
        return None
    count = sum(answered[probe] for probe in compared)
    idle_mean = sum(answered[probe] / count * idle_means[probe] for probe in sorted(compared))
    figures = Loaded(
        phase=name,
        start_ns=start,
        end_ns=end,
        latency=latency,
        pings=pings,
        in_flow_ms=_smoothed_ms(record, start, end),
        down_mbps=_goodput(record, "down", start, end),
        up_mbps=_goodput(record, "up", start, end),
        increase_ms=latency.mean - idle_mean,
    )
    return figures, compared


def _of_probes(
    record: Record,
    span: tuple[int, int],
    every: Pings,
    wanted: Collection[int],
    answered: Collection[int],
) -> Distribution | None:
    """The figures of pings of the `wanted` probes, of `every` ping in a span; None without any.

    Those that are `answered` are of these probes, so that they are not read again if all are wanted.
    """
    if set(wanted) == set(answered):
        return every.distribution
    (found,) = pings_within(record, span, wanted)
    return found.distribution


def _smoothed_ms(record: Record, start: int, end: int) -> NDArray[np.float64]:
    """What the senders of TCP took for their round trips within a span."""
    found = [np.zeros(0)]
    for rows in record.pieces("tcp", ("t_ns", "srtt_ns")):
        at, known = rows.numbers("t_ns"), rows.known("srtt_ns")
        inside = (at >= start) & (at < end)
        told = rows.numbers("srtt_ns")[inside if known is None else inside & known]
        found.append(np.asarray(told / 1e6, np.float64))
    return np.concatenate(found)


def _full(record: Record, name: str) -> int:
    """When the line was full in that phase, in nanoseconds; 0 if the test does not say."""
    ramps = record.manifest.extra.get("ramps", [])
    return max((ramp["full_ns"] or 0 for ramp in ramps if ramp["phase"] == name), default=0)


def _goodput(record: Record, way: Way, start: int, end: int) -> float | None:
    flows = [
        flow
        for flow in record.flow_rows
        if flow["direction"] == way and flow["start_ns"] < end and flow["stop_ns"] > start
    ]
    return Arrivals(record).rate_mbps(flows, (start, end), "bytes") if flows else None


LOADED = tuple(WHEN)
"""The phases with load, in order."""

PHASES = {"download": "download", "upload": "upload", "load": "both at once"}
"""Names of the phases with load, for people."""

NS_PER_MS = 1_000_000

SETTLING_NS = 1_000_000_000
"""Slow start and the first full buffer are no state of the line: at least so much is left out."""
