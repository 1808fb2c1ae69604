"""Records in plain words: grade, summary, and a sentence beside each chart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.errors import counted
from weirlab.plots.caption import number
from weirlab.record.differences import DURING, WHEN, common_load, load_of, load_phase
from weirlab.scores import of_a_line, score_all, verdict
from weirlab.scores.bufferbloat import grade, sentence
from weirlab.scores.gradable import is_gradable
from weirlab.scores.measured import met_limit_mbps
from weirlab.stats import summarise
from weirlab.ui.numbers import milliseconds

__all__ = ["TERMS", "Grade", "comparison_says", "grade_of", "record_says", "summary_of"]

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weirlab.record import Record
    from weirlab.scores import Loaded, Measured
    from weirlab.stats import DirectionSummary, Distribution, LatencySummary, Summary


@dataclass(frozen=True)
class Grade:
    """A bufferbloat grade.

    Attributes:
        letter: from `A+` to `F`.
        says: what it means, in a sentence.
    """

    letter: str
    says: str


def grade_of(record: Record) -> Grade | None:
    """The grade of a run; None if it has no pings without load, or none of a line that was full to the end.

    Of a record of `weir test` it is that command's own, of a speed test of another's the one that `weir show`
    tells. Of any other it is that of the increase under load.
    """
    for row in record.columns("method").rows():
        said = verdict(json.loads(row["result"])) if row["result"] else None
        if said is None or said.grade is None:
            return None
        reason = said.says.partition(": ")[2]
        return Grade(said.grade, reason[:1].upper() + reason[1:])
    if not is_gradable(record):
        return None
    figures = of_a_line(record)
    if figures is not None:
        return _grade_of_parts(record, figures)
    summary = summarise(record)
    increase = summary.latency.increase_mean_ms
    if increase is None:
        return None
    down, up = (None if way is None else way.goodput_mbps for way in (summary.down, summary.up))
    return Grade(grade(increase), sentence(increase, limit_mbps=met_limit_mbps(record, down, up)))


def _grade_of_parts(record: Record, figures: Measured) -> Grade | None:
    """That of the worst of the parts with load, and which it is; None if one was not measured."""
    scores = score_all(record, figures)
    if scores.grade is None:
        return None
    worst = f" It is worst {WHEN[figures.worst.phase]}." if len(figures.loaded) > 1 else ""
    return Grade(scores.grade, f"{scores.scores[0].says}{worst}")


def summary_of(record: Record) -> list[str]:
    """Sentences about throughput, pings and loss; of a test of a line those of all its parts."""
    figures = of_a_line(record)
    if figures is not None:
        return [one for one in _parts_of(figures, load_of(record)) if one]
    summary = summarise(record)
    said = [
        _throughput("Download", summary.down),
        _throughput("Upload", summary.up),
    ]
    latency = summary.latency
    if latency.idle is not None and _is_before_load(record):
        said.append(f"{BEFORE_LOAD} A ping took {milliseconds(latency.idle.mean)} ms (mean).")
    elif latency.loaded is not None:
        said.append(f"{_took(latency)} (mean).")
    if latency.loaded is not None and latency.lost is not None:
        said.append(f"{latency.lost} of {latency.sent} pings under load were lost.")
    if latency.loaded is not None and latency.is_of_some:
        said.append(f"Of all probes together a ping took {milliseconds(latency.loaded.mean)} ms under load.")
    said += summary.remarks
    return [one for one in said if one]


def _parts_of(figures: Measured, during: str) -> list[str]:
    """Sentences on all parts of a test of a line, as its command has them; `during` as `load_of` has it."""
    parts = figures.loaded.values()
    rates = "; ".join(filter(None, map(_rates, parts)))
    pings = ", ".join(f"{milliseconds(one.latency.mean)} ms {WHEN[one.phase]}" for one in parts)
    lost = sum(one.pings.unanswered for one in parts)
    sent = sum(one.pings.sent for one in parts)
    also = f"also of that before {figures.reached}."
    where = "on the full line" if figures.limit_mbps is None else "under load"
    return [
        f"No grade: {figures.ungraded}." if figures.ungraded else "",
        f"Once {figures.reached}: {rates}." if rates else "",
        f"A ping took {milliseconds(figures.idle.mean)} ms before, and {where} {pings} (means).",
        f"{lost} of {sent} pings {where} were lost.",
        f"Flows and round trips {during}, below, are those of all of that time, {also}",
    ]


def _rates(one: Loaded) -> str:
    """What came through in a part of a test of a line."""
    ways = (("download", one.down_mbps), ("upload", one.up_mbps))
    told = ", ".join(f"{word} {mbps:.2f} Mbit/s" for word, mbps in ways if mbps is not None)
    return f"both at once: {told}" if told and one.phase == "load" else told


def record_says(record: Record) -> dict[str, str]:
    """A sentence on each chart of one record, by the name of the chart."""
    summary = summarise(record)
    if _is_before_load(record):
        return _before_load_says(summary.latency.idle)
    during = load_of(record)
    return {
        "down": _goodput("download", summary.down, during),
        "up": _goodput("upload", summary.up, during),
        "ping": _pings(summary.latency, during),
        "cdf": _quantiles([("", summary.latency)], during),
        "boxes": _spread([summary.latency], during),
    }


def _is_before_load(record: Record) -> bool:
    """Whether a run is still before the load that its test has, or ended before it."""
    phases = record.manifest.scenario["phases"]
    return any(one["name"] == "load" for one in phases) and record.phase(load_phase(record)) is None


def _before_load_says(found: Distribution | None) -> dict[str, str]:
    """The sentences of `record_says` of a run that has no load, with the figures of its idle pings."""
    if found is None:
        return dict.fromkeys(("down", "up", "ping", "cdf", "boxes"), BEFORE_LOAD)
    half = f"half of the pings took at most {number(found.median)} ms"
    return {
        "down": BEFORE_LOAD,
        "up": BEFORE_LOAD,
        "ping": f"{BEFORE_LOAD} So far a ping took {number(found.mean)} ms in the mean.",
        "cdf": f"{BEFORE_LOAD} So far {half}.",
        "boxes": f"{BEFORE_LOAD} So far {half}.",
    }


def comparison_says(records: Sequence[Record], names: Sequence[str]) -> dict[str, str]:
    """A sentence on each chart of several records together, by the name of the chart."""
    summaries = [summarise(one) for one in records]
    named = list(zip(names, summaries, strict=True))
    during = common_load(map(load_of, records))
    pings = [one.latency for one in summaries]
    return {
        "down": _totals(((name, one.down) for name, one in named), during),
        "up": _totals(((name, one.up) for name, one in named), during),
        "ping": _best_and_worst(named, during),
        "cdf": _quantiles(
            [(f" with {_quoted(name)}", one) for name, one in zip(names, pings, strict=True)], during
        ),
        "boxes": _spread(pings, during),
    }


def _throughput(word: str, found: DirectionSummary | None) -> str:
    if found is None or found.goodput_mbps is None:
        return ""
    used = "" if found.utilisation is None else f", {found.utilisation:.1%} of the line in use"
    return f"{word}: {found.goodput_mbps:.2f} Mbit/s with {counted(found.flows, 'flow')}{used}."


def _took(latency: LatencySummary) -> str:
    """How long a ping took, idle and under load, which it must have."""
    idle, loaded = latency.told
    before = "" if idle is None else f"{milliseconds(idle.mean)} ms before the load and "
    return f"A ping took {before}{milliseconds(0.0 if loaded is None else loaded.mean)} ms under load"


def _goodput(word: str, found: DirectionSummary | None, during: str) -> str:
    if found is None or found.goodput_mbps is None:
        return f"No {word} was measured {during}."
    flows = f"one {word}" if found.flows == 1 else f"{found.flows} {word}s together"
    each = list(found.per_flow_running_mbps.values())
    whose = "each" if len(each) == found.flows else f"each of the {len(each)} that ran"
    spread = f", from {number(min(each))} to {number(max(each))} {whose}" if len(each) > 1 else ""
    spread += " while it runs" if spread and found.runs_in_part(number) else ""
    share = found.utilisation
    used = "" if share is None else f"; the line was in use for {share:.0%} of what it carries"
    return f"{during.capitalize()} {flows} received {number(found.goodput_mbps)} Mbit/s{spread}{used}."


def _pings(latency: LatencySummary, during: str) -> str:
    _, loaded = latency.told
    if loaded is None:
        return f"No ping was answered {during}."
    lost = ""
    if latency.lost is not None:
        lost = f", and {latency.lost} of {latency.sent} were lost" if latency.lost else ", and none was lost"
    tail = f"one in twenty took {number(loaded.p95)} ms or more{lost}"
    if during != DURING:
        return f"{during.capitalize()} a ping took {milliseconds(loaded.mean)} ms in the mean; {tail}."
    return f"{_took(latency)} in the mean; {tail}."


def _best_and_worst(named: Iterable[tuple[str, Summary]], during: str) -> str:
    told = [(one.latency.told[1], name) for name, one in named]
    means = [(loaded.mean, name) for loaded, name in told if loaded is not None]
    if len(means) < 2:
        return "Only one of the runs has pings under load." if means else "No run has pings under load."
    best, worst = min(means), max(means)
    each = " and ".join(f"{number(mean)} ms with {_quoted(name)}" for mean, name in (best, worst))
    return f"{'Under load' if during == DURING else during.capitalize()} a ping took {each} in the mean."


def _totals(found: Iterable[tuple[str, DirectionSummary | None]], during: str) -> str:
    parts = [
        f"{number(one.goodput_mbps)} Mbit/s with {_quoted(name)}"
        for name, one in found
        if one is not None and one.goodput_mbps is not None
    ]
    if not parts:
        return "Nothing was measured in this direction."
    return f"{during.capitalize()} all flows together received {', '.join(parts[:MAX_NAMED])}."


def _quantiles(found: Iterable[tuple[str, LatencySummary]], during: str) -> str:
    parts = [
        f"half of the {_answered([pings])} took at most {number(one.median)} ms "
        f"and 99 of 100 at most {number(one.p99)} ms{of}"
        for of, pings in found
        if (one := pings.loaded) is not None
    ]
    if not parts:
        return f"No ping was answered {during}."
    return f"{during.capitalize()} {'; '.join(parts[:MAX_NAMED])}."


def _answered(found: Iterable[LatencySummary]) -> str:
    """What figures of pings are of: where any was lost, of those that were answered."""
    return "answered pings" if any(one.lost for one in found) else "pings"


def _spread(pings: Sequence[LatencySummary], during: str) -> str:
    """Where nine of ten pings lie; over several runs no more is known than that it holds of each."""
    found = [one.loaded for one in pings if one.loaded is not None]
    if not found:
        return "The spread of the throughput in each interval of the load."
    low, high = min(one.p5 for one in found), max(one.p95 for one in found)
    of = _answered(pings)
    share = f"nine of ten {of}" if len(found) == 1 else f"at least nine of ten {of} of each run"
    return f"{during.capitalize()} {share} took between {number(low)} and {number(high)} ms."


def _quoted(name: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"


BEFORE_LOAD = "The load has not begun."
"""What is said of a run that has only its idle phase, in place of figures under load."""

TERMS = (
    (
        "goodput",
        "What applications received, each byte once: without headers and without what was sent again.",
    ),
    ("idle, loaded", "How long a ping took before the load, and during it."),
    ("increase", "How much longer a ping took under load than before it: the time in queues."),
    ("factor", "How many times smaller the increase is than that of the first run; > 9: surely more than 9."),
    ("median, p95, p99", "Half, 95 % and 99 % of the pings took no longer than that."),
    ("Jain", "How evenly the flows of one direction share: 1 if all get the same."),
    (
        "BE, BK or CS1, CS5, EF",
        "Service classes (DSCP): marks for ordinary, background and urgent packets, which some queues heed.",
    ),
    ("backlog", "What waits in a queue."),
    ("congestion window", "How many segments (packets of TCP) a sender may have under way."),
    ("retransmitted, timeouts", "Segments that were sent again, and how often a sender gave up waiting."),
    (
        "hop",
        "A place on the path with a queue: the router, the modem, or the provider's end of a cable (CMTS).",
    ),
)
"""Words of the page for a reader who does not know them, and what they mean."""

MAX_NAMED = 4
"""Runs that a sentence names; more nobody keeps in mind."""
