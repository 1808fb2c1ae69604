"""When what was to happen in the test of a Flent file, and when it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.flent.document import MAX_LENGTH_S, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirlab.flent.document import Document
    from weirlab.flent.own import Own
    from weirlab.flent.series import Series, Stream

    Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """When what was to happen, in nanoseconds of the record.

    Attributes:
        phases: name, start and end of each.
        flows: start and end of the flows that have their own, by their names.
        load: start and end of all others.
        end: that of the last phase.
        reached: how far the run got at least.
        cut: whether the file says that it was cut short.
        warning: where the samples contradict what the file says; empty if they do not.
    """

    phases: list[tuple[str, int, int]]
    flows: Mapping[str, tuple[int, int]]
    load: tuple[int, int]
    end: int
    reached: int
    cut: bool
    warning: str = ""


def told_plan(own: Own, ahead_s: float) -> Plan:
    """What the file of a record says itself; its times begin `ahead_s` after those of the new record."""

    def at(time_s: float) -> int:
        return max(_ns(time_s + ahead_s), 0)

    phases = [(one.name, at(one.start_s), at(one.end_s)) for one in own.phases]
    end = max(end for _, _, end in phases)
    return Plan(
        phases=phases,
        flows={name: (at(one.start_s), at(one.end_s)) for name, one in own.flows.items()},
        load=next(((start, stop) for name, start, stop in phases if name == "load"), (0, end)),
        end=end,
        reached=at(own.reached_s),
        cut=not own.complete,
    )


def planned(document: Document, series: Series, zero: float) -> Plan:
    """What follows from the lengths of Flent, unless the samples of the load contradict it.

    Flent waits as long before a load as behind it. Its flows may begin earlier or later than that, each at
    its own time, since the programs that make them need time to start.
    """
    idle_s = (document.total_s - document.length_s) / 2
    by_length = (idle_s, document.total_s - idle_s)
    spans = {stream.name: _ran(stream, zero, document.step_s) for stream in series.streams}
    is_on_steps = any(stream.on_steps for stream in series.streams)
    load = _load(by_length, spans, series, zero, max(USUAL_S, document.step_s) if is_on_steps else USUAL_S)
    total_s = max(document.total_s, load[1])
    if not series.streams:
        phases = [("idle", 0.0, total_s)]
    else:
        phases = [("idle", 0.0, load[0]), ("load", *load), ("cooldown", load[1], total_s)]
    return Plan(
        phases=[(name, _ns(start), _ns(end)) for name, start, end in phases if start < end],
        flows={
            name: (_ns(span[0]), _ns(span[1]))
            for name, span in spans.items()
            if load != by_length or (not is_on_steps and _contradicts(span, load, USUAL_S))
        },
        load=(_ns(load[0]), _ns(load[1])),
        end=_ns(total_s),
        reached=0,
        cut=False,
        warning="" if load == by_length else _warning(by_length, load),
    )


def _load(by_length: Span, spans: Mapping[str, Span], series: Series, zero: float, slack_s: float) -> Span:
    """When the load ran: by the settings, or by its samples if these differ by more than `slack_s`."""
    if not spans:
        return by_length
    begins, ends = min(begin for begin, _ in spans.values()), max(end for _, end in spans.values())
    if any(stream.on_steps for stream in series.streams) and begins < by_length[1] and ends > by_length[0]:
        # There is no value in a long interval, which may be the first or the last one.
        begins, ends = min(begins, by_length[0]), max(ends, by_length[1])
    last_ping = max((ping.points[-1]["t"] - zero for ping in series.pings if ping.points), default=0.0)
    if ends < by_length[1] and last_ping < ends + USUAL_S:
        # The whole run ended before its time.
        ends = by_length[1]
    return (max(begins, 0.0), ends) if _contradicts((begins, ends), by_length, slack_s) else by_length


def _ran(stream: Stream, zero: float, step_s: float) -> Span:
    """When a stream ran by its samples, in seconds: from the beginning of its first interval."""
    length = number(stream.points[0].get("dur"))
    first_s = step_s if length is None or not 0 < length <= MAX_LENGTH_S else length
    begin, end = (float(stream.points[place]["t"]) - zero for place in (0, -1))
    return max(begin - first_s, 0.0), end


def _contradicts(one: Span, other: Span, slack_s: float) -> bool:
    return any(abs(mine - theirs) > slack_s for mine, theirs in zip(one, other, strict=True))


def _warning(by_length: Span, load: Span) -> str:
    said = [f"from {start:.3g} s to {end:.3g} s" for start, end in (by_length, load)]
    return f"LENGTH and TOTAL_LENGTH say that the load ran {said[0]}, and its samples that it ran {said[1]}"


def _ns(time_s: float) -> int:
    return round(time_s * 1e9)


USUAL_S = 0.5
"""By how much flows begin and end at other times than planned as a rule."""
