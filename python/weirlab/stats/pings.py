"""Pings of one or several records: which were answered, how long they took, how much longer under load.

Tables and charts take round trips from here, so that they cannot disagree about lost pings: every figure
and every curve is of the answered pings, and the lost ones are told beside it as a share of those sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.record.differences import load_phase
from weirlab.record.flows import WITHOUT_TCP
from weirlab.stats.counted import MOST_HELD, MOST_KEPT, Chunk, Counted, in_little_room
from weirlab.stats.distribution import Distribution, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record

    Whole = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Pings:
    """Pings that were sent in a span of time.

    Attributes:
        rtt_ns: round trips in nanoseconds of those that were answered, in parts; of each record by the time
            of sending, but of more than `counted.MOST_HELD` as they stand there, which is nearly so. If a
            record has more than `counted.MOST_KEPT`, they are read each time that they are gone through.
        sent: how many were sent; where losses are not known how many samples there are.
        answered: how many were answered.
        lost: how many of them were lost, on either way; None if that is not known.
    """

    rtt_ns: Iterable[NDArray[np.integer[Any]]]
    sent: int
    answered: int
    lost: int | None

    @property
    def unanswered(self) -> int:
        """How many rows have no round trip: where losses are known, those that were lost."""
        return self.sent - self.answered

    @property
    def all_ns(self) -> NDArray[np.integer[Any]]:
        """The round trips in one array of its own."""
        return np.concatenate([np.zeros(0, np.int32), *self.rtt_ns])

    @property
    def rtt_ms(self) -> NDArray[np.float64]:
        """The round trips in milliseconds."""
        return np.asarray(self.all_ns / NS_PER_MS)

    @property
    def loss_rate(self) -> float | None:
        """Share of them that was lost; None if none was sent, or if that is not known."""
        return self.lost / self.sent if self.sent and self.lost is not None else None

    @cached_property
    def distribution(self) -> Distribution | None:
        """The figures of the answered pings, in milliseconds; None if none was answered."""
        if self.answered <= MOST_HELD:
            return describe(self.rtt_ms)
        return Counted(self._chunks).describe([{0: 0.0}], NS_PER_MS)[0]

    def _chunks(self) -> Iterator[Chunk]:
        for every in self.rtt_ns:
            for part in np.split(every, range(CHUNK, every.size, CHUNK)):
                yield Chunk(group=np.broadcast_to(0, part.size), value=part, known=None)


def loaded_pings(records: Sequence[Record], *, probe: int | None = None) -> Pings:
    """The pings of all `records` during the load, or the whole run where a test has none.

    Args:
        records: the records, whose pings are pooled.
        probe: number of the one probe to take, which may also be that of a speed test's own flow; None takes
            all pings over the whole path.
    """
    return pooled([_of(record, load_window_ns(record), probe) for record in records])


def idle_pings(records: Sequence[Record], *, probe: int | None = None) -> Pings:
    """The pings of all `records` in the phase `idle`; none of a test without that phase beside its load."""
    windows = [(record, idle_window_ns(record)) for record in records]
    return pooled([_of(record, window, probe) for record, window in windows if window])


def pings_within(record: Record, window: tuple[int, int], *pools: Collection[int]) -> list[Pings]:
    """The pings that were sent from start to end of a window in ns, read in chunks.

    Args:
        record: the record.
        window: when they were sent.
        pools: for each of the `Pings` that are wanted the numbers of its probes.
    """
    imported = record.manifest.imported
    unknown = () if imported is None else imported.losses_unknown
    found = [_Gathered(pool, [one for one in unknown if one in pool]) for pool in pools]
    for at, probe, rtt_ns, known in record.round_trip_chunks():
        rows = rows_in(at, probe, window)
        for one in found:
            one.add(at[rows], probe[rows], rtt_ns[rows], None if known is None else known[rows])
    return [one.pings(_Read(record, window, pool)) for one, pool in zip(found, pools, strict=True)]


class _Read:
    """The round trips in ns of the answered pings of some probes, which are read each time."""

    def __init__(self, record: Record, window: tuple[int, int], probes: Collection[int]) -> None:
        """Those of `record` that were sent from start to end of a window in ns."""
        self._record, self._window, self._probes = record, window, list(probes)

    def __iter__(self) -> Iterator[Whole]:
        """Reads them, in parts."""
        for at, probe, rtt_ns, known in self._record.round_trip_chunks():
            rows = rows_in(at, probe, self._window)
            mine = is_any_of(probe[rows], self._probes)
            yield rtt_ns[rows].compress(mine if known is None else mine & known[rows])


class _Gathered:
    """The pings of some probes, as they are read."""

    def __init__(self, probes: Collection[int], unknown: Collection[int]) -> None:
        """Gathers the pings of `probes`; of the `unknown` ones of them it is not known what was lost."""
        self._probes, self._unknown = list(probes), list(unknown)
        self._parts: list[NDArray[np.integer[Any]]] | None = []
        self._keys: list[tuple[Whole, Whole]] | None = []
        self._sent = self._answered = 0
        self._knows = True

    def add(self, at: Whole, probe: Whole, rtt_ns: Whole, known: NDArray[np.bool_] | None) -> None:
        """Adds rows, of which those of other probes are left out."""
        mine = is_any_of(probe, self._probes)
        self._sent += int(mine.sum())
        self._knows = self._knows and not is_any_of(probe, self._unknown).any()
        answered = mine if known is None else mine & known
        self._answered += int(answered.sum())
        if self._answered > MOST_KEPT:
            self._parts = None
        if self._sent > MOST_HELD:
            self._keys = None
        if self._parts is not None:
            self._parts.append(in_little_room(rtt_ns[answered]))
        if self._keys is not None:
            self._keys.append((probe[answered], at[answered]))

    def pings(self, read: Iterable[Whole]) -> Pings:
        """What was gathered, in order if all times are known, or what reads it again if it is too much."""
        return Pings(
            rtt_ns=read if self._parts is None else [self._together(self._parts)],
            sent=self._sent,
            answered=self._answered,
            lost=self._sent - self._answered if self._knows else None,
        )

    def _together(self, parts: list[NDArray[np.integer[Any]]]) -> NDArray[np.integer[Any]]:
        # Large arrays are given back to the system when they are let go, small ones seldom.
        every = np.concatenate([np.zeros(0, np.int32), *parts])
        if self._keys:
            every = every[np.lexsort([np.concatenate(key) for key in zip(*self._keys, strict=True)])]
        return every


def is_any_of(probe: Whole, numbers: Sequence[int]) -> NDArray[np.bool_]:
    """Which rows are of one of these probes: of a few, `numpy.isin` takes several times as long."""
    mine = np.zeros(probe.size, np.bool_)
    for number in numbers:
        mine |= probe == number
    return mine


def pooled(found: Sequence[Pings]) -> Pings:
    """All of them together; what was lost is known if it is of each."""
    known = all(one.lost is not None for one in found)
    return Pings(
        rtt_ns=_Pooled(found),
        sent=sum(one.sent for one in found),
        answered=sum(one.answered for one in found),
        lost=sum(one.lost or 0 for one in found) if known else None,
    )


class _Pooled:
    """The round trips of several."""

    def __init__(self, found: Sequence[Pings]) -> None:
        """Those of all that were found."""
        self._found = found

    def __iter__(self) -> Iterator[NDArray[np.integer[Any]]]:
        """One after the other, in parts."""
        for one in self._found:
            yield from one.rtt_ns


def load_window_ns(record: Record) -> tuple[int, int]:
    """Start and end of the phase `load` in nanoseconds, or of the whole run if its test has none.

    Of a test of a line that was cut short before it, those of the direction by itself that it reached last
    (`load_phase`). Of a run that was cut short before all of its load the end is the start.
    """
    reached = record.reached_ns
    has_load = any(phase["name"] == "load" for phase in record.manifest.scenario["phases"])
    return record.phase(load_phase(record)) or (reached if has_load else 0, reached)


def any_answered(record: Record, window: tuple[int, int]) -> bool:
    """Whether a ping over the whole path was answered of those that were sent in a window in ns."""
    for at, probe, _, known in record.round_trip_chunks():
        rows = rows_in(at, probe, window)
        mine = is_any_of(probe[rows], record.ping_probes)
        if (mine if known is None else mine & known[rows]).any():
            return True
    return False


def answered_of_each(record: Record, window: tuple[int, int]) -> dict[int, int]:
    """How many pings over the whole path each probe has that were sent in a window in ns and answered.

    Probes without any are left out.
    """
    found: dict[int, int] = {}
    for at, probe, _, known in record.round_trip_chunks():
        rows = rows_in(at, probe, window)
        answered = probe[rows] if known is None else probe[rows][known[rows]]
        for number in record.ping_probes:
            if count := int(np.count_nonzero(answered == number)):
                found[number] = found.get(number, 0) + count
    return found


def compared_probes(record: Record) -> list[int]:
    """The probes over the whole path of which increases are: those with pings before and under load.

    All, if none has both.
    """
    idle = idle_window_ns(record)
    before = answered_of_each(record, idle) if idle else {}
    during = answered_of_each(record, load_window_ns(record)) if before else {}
    return sorted(before.keys() & during.keys()) or list(record.ping_probes)


def answered_count(record: Record) -> int:
    """How many round trips the record has, of pings and all others."""
    return sum(
        chunk.t_ns.size if chunk.known is None else int(chunk.known.sum())
        for chunk in record.round_trip_chunks()
    )


@dataclass(frozen=True, kw_only=True)
class PingFigures:
    """Figures of the pings of a record, however many there are, in milliseconds.

    Attributes:
        idle: all pings in the phase `idle`; None of a test without it beside its load, or without any.
        loaded: all pings during the load, or the whole run where a test has none.
        compared_idle, compared_loaded: of these those of probes of which pings were answered both on the idle
            line and during the load; None without any.
        idle_increase, loaded_increase: how much longer these pings took than on the idle line: each by its
            round trip less the mean of its own probe's idle pings, so that probes at different distances may
            be pooled; None without any.
        late: numbers of the probes of which pings were answered during the load only.
        probes: of each probe during the load, also of those that are no pings over the whole path, by number;
            empty if they were not asked for.
        sent: pings that were sent during the load; where losses are not known how many samples there are.
        lost: how many of them were lost, on either way; None if that is not known.
        idle_sent, idle_lost: the same of the phase `idle`.
    """

    idle: Distribution | None
    loaded: Distribution | None
    compared_idle: Distribution | None
    compared_loaded: Distribution | None
    idle_increase: Distribution | None
    loaded_increase: Distribution | None
    late: tuple[int, ...]
    probes: dict[int, Distribution | None]
    sent: int
    lost: int | None
    idle_sent: int
    idle_lost: int | None

    @property
    def loss_rate(self) -> float | None:
        """Share of them that was lost; None if none was sent, or if that is not known."""
        return self.lost / self.sent if self.sent and self.lost is not None else None


def ping_figures(record: Record, *, of_probes: bool = True) -> PingFigures:
    """The figures of all pings of a record, which are read in chunks and not held.

    Args:
        record: the record.
        of_probes: whether those of each probe are among them.
    """
    counted = Counted(_reading(record))
    over_path = set(record.ping_probes)
    idle = {group: 0.0 for group in counted.groups() if group < 0 and ~group in over_path}
    probes = [group for group in counted.groups() if group >= 0]
    loaded = {probe: 0.0 for probe in probes if probe in over_path}
    answered = [probe for probe in loaded if counted.count(probe)]
    means = {probe: counted.mean(~probe) for probe in answered if counted.count(~probe)}
    increases = [{~probe: mean for probe, mean in means.items()}, means]
    compared = [dict.fromkeys(pool, 0.0) for pool in increases]
    each = [{probe: 0.0} for probe in probes if of_probes]
    pools = [idle, loaded, *increases, *each]
    # Most tests ping with the same probes all along, and the figures of these are made once.
    more = [pool for pool in compared if pool not in pools]
    found = counted.describe([*pools, *more], NS_PER_MS)
    compared_idle, compared_loaded = (found[[*pools, *more].index(pool)] for pool in compared)
    imported = record.manifest.imported
    unknown = set() if imported is None else set(imported.losses_unknown)
    lost = sum(counted.missing(probe) for probe in loaded)
    idle_lost = sum(counted.missing(group) for group in idle)
    return PingFigures(
        idle=found[0],
        loaded=found[1],
        compared_idle=compared_idle,
        compared_loaded=compared_loaded,
        idle_increase=found[2],
        loaded_increase=found[3],
        late=tuple(probe for probe in answered if probe not in means),
        probes=dict(zip(probes, found[4 : len(pools)], strict=True)) if of_probes else {},
        sent=lost + sum(counted.count(probe) for probe in loaded),
        lost=lost if unknown.isdisjoint(loaded) else None,
        idle_sent=idle_lost + sum(counted.count(group) for group in idle),
        idle_lost=idle_lost if unknown.isdisjoint(~group for group in idle) else None,
    )


def _reading(record: Record) -> Callable[[], Iterable[Chunk]]:
    """Reads the round trips of a record as often as it is asked: chosen once where they are held anyway."""
    if not record.holds("latency"):
        return lambda: _by_window_and_probe(record)
    chosen = list(_by_window_and_probe(record))
    return lambda: chosen


def _by_window_and_probe(record: Record) -> Iterator[Chunk]:
    """Round trips in ns: those during the load in groups by probe, idle ones by its inverse, `~probe`."""
    windows = [(load_window_ns(record), False)]
    if idle := idle_window_ns(record):
        windows.append((idle, True))
    for at, probe, value, known in record.round_trip_chunks():
        for window, inverse in windows:
            rows = rows_in(at, probe, window)
            group = probe[rows]
            if group.size:
                missing = None if known is None else known[rows]
                yield Chunk(group=~group if inverse else group, value=value[rows], known=missing)


def rows_in(at: Whole, probe: Whole, window: tuple[int, int]) -> slice | NDArray[np.bool_]:
    """Which rows were sent within a window: a slice if all were, or if all are in order."""
    start, end = window
    # A record of a stranger may give its rows any number.
    if at.size and probe.min() >= 0:
        if at.min() >= start and at.max() < end:
            return slice(None)
        if (at[1:] >= at[:-1]).all():
            first, last = np.searchsorted(at, window)
            return slice(int(first), int(last))
    return np.asarray((at >= start) & (at < end) & (probe >= 0))


def idle_window_ns(record: Record) -> tuple[int, int] | None:
    """Start and end of the phase `idle` in nanoseconds; None without one beside the load.

    Where something that loads the line begins within it, only the part before that; None if that is shorter
    than `MIN_IDLE_NS`.
    """
    phase = _idle_phase_ns(record)
    if phase is None:
        return None
    loads = _loads_within(record, phase)
    if not loads:
        return phase
    begin = min(flow["start_ns"] for flow in loads)
    return (phase[0], begin) if begin - phase[0] >= MIN_IDLE_NS else None


def idle_remark(record: Record) -> str | None:
    """That something loads the line in the phase `idle`, and what that means; None if nothing does."""
    phase = _idle_phase_ns(record)
    loads = [] if phase is None else _loads_within(record, phase)
    if not loads:
        return None
    first = min(loads, key=itemgetter("start_ns"))
    name, more = f"`{first['name']}`", len({flow["name"] for flow in loads}) - 1
    others = "" if not more else f" and {more} other{'s' if more > 1 else ''}"
    verb = "load" if more else "loads"
    if idle_window_ns(record) is not None:
        since = f"{first['start_ns'] / 1e9:g} s"
        return f"{name}{others} {verb} the line in the phase `idle`: idle pings are those before {since}."
    return (
        f"{name}{others} {verb} the line in the phase `idle` already: pings there are not those of an idle "
        "line, and there is no increase to tell."
    )


def compared_remark(record: Record, figures: PingFigures) -> str | None:
    """Which probes have no idle pings, where others have, and what is told of those others alone."""
    if not figures.late or figures.compared_idle is None:
        return None
    first, more = record.probe_names[figures.late[0]], len(figures.late) - 1
    others = f" and {more} other probe{'s' if more > 1 else ''}" if more else ""
    return (
        f"`{first}`{others} {'have' if more else 'has'} no pings of the idle line: the increase, and pings "
        "before and under load beside it, are of the other probes."
    )


def _idle_phase_ns(record: Record) -> tuple[int, int] | None:
    """Start and end of the phase `idle`; None of a test that has no other phase.

    Such a test only pings, and its pings count as those of a load, answered after the phase or not.
    """
    is_alone = all(phase["name"] == "idle" for phase in record.manifest.scenario["phases"])
    return None if is_alone else record.phase("idle")


def _loads_within(record: Record, span_ns: tuple[int, int]) -> list[dict[str, Any]]:
    """The flows that load the line within a span: TCP, pages, videos, and UDP from `MIN_UDP_LOAD_BPS` on.

    Calls, other slow UDP streams and DNS queries are no load: they are what a line is to be quick for. Pages
    of an imported file, of which it tells the times alone, are probes.
    """
    planned: list[dict[str, Any]] = record.manifest.scenario.get("flows", [])

    def loads(flow: dict[str, Any]) -> bool:
        if flow["protocol"] not in WITHOUT_TCP:
            return True
        number = flow["flow"]
        udp = (planned[number].get("udp") if number < len(planned) else None) or {}
        return (udp.get("rate_bps") or 0) >= MIN_UDP_LOAD_BPS

    start, end = span_ns
    flows = (flow for flow in record.flow_rows if loads(flow))
    return [one for one in (*flows, *_fetched(record)) if one["start_ns"] < end and one["stop_ns"] > start]


def _fetched(record: Record) -> Iterator[dict[str, Any]]:
    """What probes of an imported record fetched that count as no pings, with their names."""
    imported = record.manifest.imported
    if imported is None or not imported.fetched:
        return
    names = dict(enumerate(record.probe_names))
    for one in imported.fetched:
        if one["probe"] in record.manifest.probes_apart and one["probe"] in names:
            yield {"name": names[one["probe"]], **one}


def _of(record: Record, window: tuple[int, int], probe: int | None) -> Pings:
    (found,) = pings_within(record, window, record.ping_probes if probe is None else [probe])
    return found


NS_PER_MS = 1e6

MIN_IDLE_NS = 1_000_000_000
"""What is left of a phase `idle` before a load counts from here on: pings of a second tell an idle line."""

MIN_UDP_LOAD_BPS = 1_000_000
"""A UDP stream of less is a call or a game, which takes 0.1 Mbit/s at most, and loads no line."""

CHUNK = 1 << 17
"""Pings of which figures are made at once: about as many as a part file has."""
