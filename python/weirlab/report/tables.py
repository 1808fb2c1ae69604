"""Tables and sentences about records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rich import box
from rich.text import Text

from weirlab.errors import counted
from weirlab.record.configurations import IN_WORDS, joined, run_names, shortened
from weirlab.record.differences import DURING, WHEN, WITH_BOTH, common_load, load_of
from weirlab.stats import bypassed_queues, factor_text, quantile
from weirlab.stats.probing import idle_loss_remark, idle_use_remark
from weirlab.ui.numbers import four_digits, unsigned_zero
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.record import Record
    from weirlab.stats import (
        Bypassed,
        Comparison,
        DirectionSummary,
        Distribution,
        Interval,
        LatencySummary,
        Summary,
    )
    from weirlab.stats.assertions import Outcome
    from weirlab.stats.summary import KnownResent


def comparison_table(records: Sequence[Record], comparisons: Sequence[Comparison]) -> Table:
    """One line a queue spec: what came through, how long pings took, by which factor that fell.

    A wide terminal gets more figures than a narrow one; `--json` has all.
    """
    table = Table(title=_subject(records), **LOOK)
    table.add_column("queue", overflow="fold", min_width=16)
    heading = UNLOADED if not any(has_load(run) for one in comparisons for run in one.runs) else {}
    for column in COLUMNS:
        table.add_column(heading.get(column.heading, column.heading), justify="right", no_wrap=True)
    rows = [[one.name, *(column.cell(one) for column in COLUMNS)] for one in comparisons]
    for row in rows:
        table.add_row(*row)
    ranked = [(column.rank, number) for number, column in enumerate(COLUMNS, start=1) if column.rank]
    table.dispensable = [number for _, number in sorted(ranked, reverse=True)]
    fewest, most = (pick(len(one.runs) for one in comparisons) for pick in (min, max))
    if most > 1:
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        table.caption = f"means of {count} runs, ± half of the 95 % interval"
        if any(OF_SOME in cell for row in rows for cell in row[1:]):
            table.caption += "; `of N`: only N of the runs have that figure"
    return table


def has_load(summary: Summary) -> bool:
    """Whether anything but pings ran: otherwise no figure is of a loaded line."""
    return summary.up is not None or summary.down is not None or summary.speed_tests > 0


def _carried(summary: Summary) -> bool:
    """Whether something is known of what a load carried; a speed test knows it itself."""
    ways = [one for one in (summary.up, summary.down) if one is not None]
    return summary.speed_tests > 0 or any(one.goodput_mbps is not None for one in ways)


def _subject(records: Sequence[Record]) -> str:
    """Test and link, or of several which or how many; and the part of the test, where it has several."""
    tests = joined((record.manifest.title for record in records), "tests")
    links = joined((record.manifest.link["title"] for record in records), "links")
    whens = list(dict.fromkeys(map(load_of, records)))
    parts = " / ".join(when for when in whens if when != DURING)
    of_some = "; tests of a line " if DURING in whens else ", "
    return f"{tests}: {links}{of_some}{parts}" if parts else f"{tests}: {links}"


def assertion_table(runs: Sequence[str], outcomes: Sequence[Sequence[Outcome]]) -> Table:
    """Table of assertions: the text, the figures of the runs, and whether it holds.

    Args:
        runs: the names of the runs.
        outcomes: those of the assertions, for each run.
    """
    table = Table(title="Assertions", **LOOK)
    if len(runs) > 1:
        table.add_column("run", overflow="fold")
    table.add_column("assertion", overflow="fold")
    table.add_column("left", justify="right")
    table.add_column("right", justify="right")
    table.add_column("unit")
    table.add_column("")
    for run, of_run in zip(runs, outcomes, strict=True):
        for found in of_run:
            verdict = Text("holds", style="green") if found.holds else Text("broken", style="bold red")
            sides = (four_digits(found.left), four_digits(found.right), found.unit)
            text = Text("\n".join(filter(None, (found.text, found.remark))))
            table.add_row(*([run] if len(runs) > 1 else []), text, *sides, verdict)
    return table


def story(comparisons: Sequence[Comparison]) -> Text:
    """Summary of the comparison in a sentence or two."""
    runs = [run for one in comparisons for run in one.runs]
    remarks = dict.fromkeys(text for run in runs for text in (run.idle_remark, run.compared_remark))
    shares = ((one.name, one.idle_lost_share) for one in comparisons)
    idle_losses = [(name, share) for name, share in shares if share is not None]
    uses = [(one.name, run.idle_use) for one in comparisons for run in one.runs if run.idle_use is not None]
    some = len({name for name, _ in uses}) < len(comparisons)
    of_idle = (
        idle_use_remark(uses, named=some),
        idle_loss_remark(idle_losses, named=len(comparisons) > 1),
    )
    return Text(" ".join(filter(None, (_told(comparisons), _losses(comparisons), *remarks, *of_idle))))


def _losses(comparisons: Sequence[Comparison]) -> str:
    """A sentence on pings that were lost under load, where they are many; empty where they are not.

    Round trips are those of answered pings: where many were lost they say little.
    """
    many = [
        (one.name, one.lost_share)
        for one in comparisons
        if any(has_load(run) for run in one.runs) and (one.lost_share or 0.0) >= MANY_LOST
    ]
    if not many:
        return ""
    if len(comparisons) == 1:
        return f"Of the pings under load {many[0][1]:.1%} were lost."
    each = ", ".join(f"{share:.1%} with `{name}`" for name, share in many)
    return f"Pings lost under load: {each}."


def _told(comparisons: Sequence[Comparison]) -> str:
    """What a queue did to pings under load."""
    baseline, *others = comparisons
    runs = [run for one in comparisons for run in one.runs]
    if not any(has_load(run) for run in runs):
        return (
            "Nothing but pings ran: these are round trips of the line without load."
            if any(run.latency.sent or run.latency.idle_sent or any(run.probes.values()) for run in runs)
            else "Neither loads nor pings of the scenario ran: there are no figures to compare."
        )
    if baseline.increase_ms is None and any(one.increase_ms for one in others):
        return (
            f"By how much load makes pings slower cannot be compared with `{baseline.name}`, "
            f"where {_missing(baseline)}."
        )
    if baseline.increase_ms is None:
        return f"By how much load makes pings slower cannot be told: {_missing(baseline)}."
    unknown = [one for one in comparisons if not any(_carried(run) for run in one.runs)]
    if unknown:
        whose = "" if len(unknown) == len(comparisons) else f" with `{unknown[0].name}`"
        return (
            f"By how much load makes pings slower cannot be told: what it carried{whose} is not known, "
            "since no interval of its samples lies within it."
        )
    when = common_load(run.during for run in runs)
    if not others:
        longer = f"{baseline.increase_ms.mean:.1f} ms" if baseline.increase_ms.mean >= 0.05 else "no"
        under = "Under load" if when == DURING else when.capitalize()
        return f"{under} a ping takes {longer} longer than before it."
    return _beside(baseline, baseline.increase_ms, others, when)


def _beside(baseline: Comparison, usual: Interval, others: Sequence[Comparison], when: str) -> str:
    """Which configuration is better than the baseline, and whether repetitions show that."""
    known = [(one, _times_less(usual, one)) for one in others if one.increase_ms]
    if not known:
        return ""
    felt = [(one, times) for one, times in known if _is_felt(usual, one, times)]
    if not felt:
        return _no_cure(baseline, others, when)
    sure = [(one, times) for one, times in felt if _verdict(one) is not False]
    best, _ = max(sure or felt, key=itemgetter(1))
    if not sure:
        repeats = next(each.repeats for each in best.differences if each.figure == "increase_ms")
        told = _cure(baseline, best, LOADS[when])
        return f"{told}; {repeats} repetitions do not show that this is more than chance."
    return f"{_cure(baseline, best, LOADS[when], told=True)}{_cost(baseline, best)}."


def _is_felt(usual: Interval, one: Comparison, times: float) -> bool:
    """Whether pings wait so much less that somebody notices: by the ratio, and by the time itself.

    Of waits that are short anyway, thousands of times less may be microseconds.
    """
    less_ms = 0.0 if one.increase_ms is None else usual.mean - one.increase_ms.mean
    if less_ms < FELT_MS:
        return times >= MUCH_LESS and less_ms >= WORTH_A_WORD_MS
    return times >= NOTICEABLE


def _verdict(one: Comparison) -> bool | None:
    """Whether it is shown that the increase differs from the baseline's; None if it could not be tested."""
    found = next((each for each in one.differences if each.figure == "increase_ms"), None)
    return None if found is None or found.p is None else found.better is not None


def _times_less(usual: Interval, one: Comparison) -> float:
    """How many times less the load makes pings slower, to rank by: without end if nothing is left."""
    if one.nothing_left:
        return math.inf if usual.mean > 0 else 0.0
    return one.factor.factor or 0.0


def _cure(baseline: Comparison, best: Comparison, load: str, *, told: bool = False) -> str:
    """How much less the load makes pings slower with the best configuration; if `told`, as a factor too."""
    usual = _ms(baseline.increase_ms)
    if best.nothing_left:
        least = best.factor.low if told else None
        bound = "" if least is None else f" (95 %: more than {factor_text(least)} times less)"
        return f"With `{best.name}` {load} makes pings no slower, instead of {usual} slower{bound}"
    slower = f"With `{best.name}` {load} makes pings {_ms(best.increase_ms)} slower instead of {usual}"
    return f"{slower}: {best.factor.factor:.1f} times less" if told else slower


def _no_cure(baseline: Comparison, others: Sequence[Comparison], when: str) -> str:
    """That no configuration is better than the baseline, and by how much the worst is worse."""
    part = "" if when == DURING else f" {when}"
    longer = f"None of them shortens the wait of `{baseline.name}`{part}"
    told = f"{longer} noticeably"
    waits = [
        (one.name, one.increase_ms, one.increase_ms.mean)
        for one in others
        if one.increase_ms and _verdict(one) is not False
    ]
    if not waits or baseline.increase_ms is None:
        return f"{told}."
    name, worst, ms = max(waits, key=itemgetter(2))
    if ms - baseline.increase_ms.mean < FELT_MS:
        return f"{told}."
    return f"{longer}: with `{name}` it is longer, {_ms(worst)} instead of {_ms(baseline.increase_ms)}."


def _ms(value: Interval | None) -> str:
    """The mean with its unit; never a 0 with a minus."""
    return "-" if value is None else f"{unsigned_zero(value.mean, 1)} ms"


def advice(records: Sequence[Record]) -> list[str]:
    """For each queue under test that stayed empty: on which way, where packets waited instead, what helps."""
    found: dict[tuple[str, str], dict[str, Bypassed]] = {}
    for record in records:
        for one in bypassed_queues(record):
            if one.queue.split()[0] not in PLAIN_QUEUES:
                found.setdefault((one.queue, one.hop), {}).setdefault(one.direction, one)
    told = []
    for (queue, hop), ways in found.items():
        waits = [f"{one.wait_ms:.0f} ms in `{one.other_hop}` on the way {way}" for way, one in ways.items()]
        helps = dict.fromkeys(_what_helps(one) for one in ways.values())
        which = "either way" if len(ways) > 1 else f"on the way {next(iter(ways))}"
        whose = f"`{shortened(queue, IN_WORDS)}` at `{hop}`"
        nothing = f"{whose} has nothing to manage {which}: packets wait elsewhere, "
        told.append(" ".join([f"{nothing}{' and '.join(waits)}.", *helps]))
    return told


def _what_helps(one: Bypassed) -> str:
    if one.joined:
        return (
            f"Loads come to `{one.other_hop}` that do not pass `{one.hop}`, where no rate holds them back: "
            f"it takes a queue at `{one.other_hop}` to manage them."
        )
    if SHAPING & {*one.queue.split()}:
        follows = ", and `weir shape` follows a line whose rate changes" if one.varies else ""
        return (
            "Its own rate is above what the line carries then: a lower one moves the wait to "
            f"`{one.hop}`{follows}."
        )
    return "A shaper below the line's rate moves the wait to it, such as `htb rate 95% fq_codel`."


def cautions(records: Sequence[Record]) -> list[str]:
    """Why runs should not be trusted: what a reader must know before any number."""
    told = [
        text if len(records) == 1 else f"{name}: {text}"
        for record, name in zip(records, run_names(records), strict=True)
        for text in record.manifest.warnings
    ]
    if len(told) > MAX_CAUTIONS:
        rest = len(told) - MAX_CAUTIONS
        told[MAX_CAUTIONS:] = [f"{rest} more of that kind: `weir show` has all"]
    return told


def quality_table(record: Record) -> Table | None:
    """How well a live world did its own work; None for a simulation, which does it perfectly."""
    quality = record.manifest.emulator
    if quality is None:
        return None
    import polars as pl  # noqa: PLC0415 - only live worlds need it

    late_by = [chunk["timer_error_ns"].drop_nulls() for chunk in record.chunks("latency", ["timer_error_ns"])]
    errors = pl.concat(late_by)
    table = Table(title="The lab's own work", **LOOK)
    for heading in ("", "p50", "p99", "p99.9"):
        table.add_column(heading, justify="right" if heading else "left")
    late = [quality.get(f"late_{name}_ns") for name in ("p50", "p99", "p999")]
    table.add_row("packets handed over late, ms", *map(_milliseconds, late))
    if errors.len():
        table.add_row(
            "pings sent late, ms", *(_milliseconds(quantile(errors, q)) for q in (0.5, 0.99, 0.999))
        )
    device = record.manifest.device or "unknown"
    share = quality.get("cpu_percent")
    used = "" if share is None else f", {share:.1f} % of a processor"
    table.caption = f"device {device}{used}"
    return table


def _milliseconds(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1e6:.3f}"


def latency_table(summary: Summary, during: str = DURING) -> Table:
    """Round trips of each probe during the load, if there was one, and of all together.

    `during` says when the load was, as `load_of` does.
    """
    title = f"Round trips {during}, ms" if has_load(summary) else "Round trips without load, ms"
    if not summary.latency.sent:
        title = "Round trips before the load, ms"
    table = Table(title=title, **LOOK)
    table.add_column("probe")
    figures = ("mean", "std", "min", "median", "p95", "p99", "max", "count")
    for figure in figures:
        table.add_column(figure, justify="right")
    rows: list[tuple[str, Distribution | None]] = [
        *summary.probes.items(),
        ("all", summary.latency.loaded),
        ("idle, all", summary.latency.idle),
    ]
    if summary.latency.compared is not None and summary.latency.is_of_some:
        rows.insert(-1, ("with idle pings", summary.latency.compared.loaded))
    digits = 3 if _is_short(summary.latency) else 2
    for name, figures_of in rows if summary.latency.sent else rows[-1:]:
        if figures_of is not None:
            values = [getattr(figures_of, figure) for figure in figures]
            told = ["-" if value is None else f"{value:.{digits}f}" for value in values[:-1]]
            table.add_row(name, *told, str(values[-1]))
        elif name != "idle, all":
            # It was sent during the load, and never answered.
            table.add_row(name, *["-"] * (len(figures) - 1), "0")
    return table


def _is_short(latency: LatencySummary) -> bool:
    """Whether no round trip took a millisecond: hundredths of one would leave little of them, or nothing."""
    known = [one.max for one in (latency.loaded, latency.idle) if one is not None]
    return bool(known) and max(known) < 1


def flow_table(summary: Summary, during: str = DURING) -> Table:
    """Goodput of each flow during the load; `during` says when that was, as `load_of` does.

    Where a flow runs for a part of the load only, a second column has that of each while it runs.
    """
    table = Table(title=f"Flows {during}", **LOOK)
    table.add_column("flow")
    table.add_column("goodput Mbit/s", justify="right")
    ways = [direction for direction in (summary.down, summary.up) if direction is not None]
    in_part = any(direction.runs_in_part(_mbps) for direction in ways)
    if in_part:
        table.add_column("while it runs", justify="right")
    for direction in ways:
        whole, running = direction.per_flow_mbps, direction.per_flow_running_mbps
        for name in dict.fromkeys([*whole, *running]):
            cells = [_mbps(of_each.get(name)) for of_each in ((whole, running) if in_part else (whole,))]
            table.add_row(name, *cells)
        untold = direction.flows - len(running)
        if not whole and untold > 0:
            table.add_row(f"{counted(untold, 'flow')} without a whole interval of samples", "-")
        way = "download" if direction is summary.down else "upload"
        used = "" if direction.utilisation is None else f": {direction.utilisation:.1%} of the line"
        table.add_row(
            Text(f"{way}{used}{_senders_did(direction)}{_queues_did(direction)}", style="dim"),
            _mbps(direction.goodput_mbps),
            end_section=True,
        )
    return table


def _senders_did(direction: DirectionSummary) -> str:
    """A line on what a direction's senders did, all that they sent before and behind the load too; of TCP."""
    if not direction.tcp_flows:
        return ""
    of: DirectionSummary | KnownResent = direction
    which = ""
    if direction.known_resent is not None:
        of = direction.known_resent
        which = f" in {direction.known_resent.flows} of {direction.tcp_flows} flows, not known of the others"
    again, timeouts = _known(of.retransmitted_segments), _known(of.timeouts)
    return f"\nwhole run: retransmitted {again}, timeouts {timeouts}{which}"


def _queues_did(direction: DirectionSummary) -> str:
    """A line on what became of a direction's packets on the path, if some were dropped or marked."""
    shares = {"dropped": direction.loss_rate, "marked CE": direction.mark_rate}
    told = [f"{what} {_at_least(share)}" for what, share in shares.items() if share]
    return f"\nof its data packets: {', '.join(told)}" if told else ""


def _at_least(share: float) -> str:
    """A share above 0, which is never shown as none."""
    return f"{share:.2%}" if share >= LEAST_SHOWN else f"below {LEAST_SHOWN:.2%}"


def _mbps(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.3f}"


def udp_table(summary: Summary) -> Table | None:
    """What became of UDP flows during the load, and how good voice streams sounded; None without any."""
    if not summary.udp:
        return None
    table = Table(title="UDP flows during the load", **LOOK)
    table.add_column("flow")
    has_voice = any(one.voice for one in summary.udp.values())
    headings = ["lost", "delay ms", "max", "jitter ms"]
    headings += ["late", "mouth to ear ms", "MOS", "median", "min"] if has_voice else []
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, one in summary.udp.items():
        loss = "-" if one.loss_rate is None else f"{one.loss_rate:.2%}"
        delays = ["-" if value is None else f"{value:.1f}" for value in (one.delay_mean_ms, one.delay_max_ms)]
        cells = [loss, *delays, f"{one.jitter_ms:.2f}"]
        if one.voice is not None:
            ear = one.voice.mouth_to_ear_ms
            scores = (one.voice.mos, one.voice.mos_median, one.voice.mos_min)
            cells += [f"{one.voice.late_rate:.2%}", "-" if ear is None else f"{ear:.0f}"]
            cells += [f"{score:.2f}" for score in scores]
        table.add_row(name, *cells, *[""] * (len(headings) - len(cells)))
    return table


def increase_line(latency: LatencySummary) -> str | None:
    """By how much pings took longer under load, and how many were lost; None if neither is known."""
    if latency.increase_mean_ms is None:
        return f"{latency.lost} of {latency.sent} pings lost." if latency.lost else None
    lost = "" if latency.lost is None else f"; {latency.lost} of {latency.sent} pings lost"
    figures = ("mean", "median", "p95", "p99")
    digits = 3 if _is_short(latency) else 1
    each = (f"{name} {unsigned_zero(getattr(latency, f'increase_{name}_ms'), digits)} ms" for name in figures)
    return f"Increase under load: {', '.join(each)}{lost}."


def cut_short(record: Record) -> str | None:
    """That a run did not come to its end, and how far it got; None if it did."""
    if record.manifest.complete:
        return None
    return f"the run was cut short at {record.reached_ns / 1e9:.1f} s"


def _missing(one: Comparison) -> str:
    """Why a configuration has no increase."""
    if not any(run.probes for run in one.runs):
        return "the test sends no pings"
    if not any(has_load(run) for run in one.runs):
        return "nothing loads the line"
    if one.loaded_ms is None:
        return "no ping was answered during the load"
    return "there are no pings of the idle line, before any load"


def _known(count: int | None) -> str:
    """A count; `-` for one that the record does not tell."""
    return "-" if count is None else str(count)


@dataclass(frozen=True)
class _Column:
    """A column of the comparison.

    Attributes:
        heading: what stands above it.
        cell: its text for a configuration.
        rank: 0 if it is always shown; otherwise columns with a higher rank are left out first.
    """

    heading: str
    cell: Callable[[Comparison], str]
    rank: int = 0


def _interval_column(heading: str, figure: str, digits: int, *, rank: int = 0) -> _Column:
    def cell(one: Comparison) -> str:
        return interval_cell(getattr(one, figure), digits, of=len(one.runs))

    return _Column(heading, cell, rank)


def interval_cell(value: Interval | None, digits: int, *, of: int) -> str:
    """A figure in a cell: its mean, half of its interval, and of how many of `of` runs, if not of all."""
    if value is None:
        return "-"
    text = unsigned_zero(value.mean, digits)
    text += "" if value.high is None else f"\n±{value.high - value.mean:.{digits}f}"
    return text if value.count == of else f"{text}{OF_SOME}{value.count}"


def _increase(one: Comparison) -> str:
    """How much longer pings take under load; nothing where it is not known that there was any."""
    if any(map(has_load, one.runs)) and not any(map(_carried, one.runs)):
        return "-"
    return interval_cell(one.increase_ms, 1, of=len(one.runs))


def _factor(one: Comparison) -> str:
    factor = one.factor
    if factor.factor is None:
        return "-" if factor.low is None else f"> {factor_text(factor.low)}"
    text = factor_text(factor.factor)
    if factor.low is None:
        return text
    return (
        f"{text}\n{factor_text(factor.low)}{' up' if factor.high is None else f'-{factor_text(factor.high)}'}"
    )


def _lost(one: Comparison) -> str:
    return "-" if one.lost_share is None else f"{one.lost_share:.2%}"


def _cost(baseline: Comparison, best: Comparison) -> str:
    """Words about the change of the throughput."""
    parts = []
    for word, before, after in (
        ("download", baseline.down_mbps, best.down_mbps),
        ("upload", baseline.up_mbps, best.up_mbps),
    ):
        if before is not None and after is not None and before.mean > 0:
            change = after.mean / before.mean - 1
            parts.append(f"{word} {change:+.1%}")
    return f" ({', '.join(parts)})" if parts else ""


LOOK: Any = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
"""Look of all tables about records: a line below the headings and nothing else."""

PLAIN_QUEUES = {"pfifo", "bfifo", "pfifo_fast", "pfifo_head_drop", "noqueue"}
"""Nobody expects these to shorten a wait."""

SHAPING = {"rate", "bandwidth"}
"""Words of queue specs that shape: `htb rate 95% fq_codel`, `tbf rate 18mbit`, `cake bandwidth 18mbit`."""

LOADS = {
    DURING: "the load",
    WHEN["download"]: "the load of the download",
    WHEN["upload"]: "the load of the upload",
    WITH_BOTH: "the load of both directions at once",
}
"""What makes pings slower, by when it did: a test of a line loads each direction by itself too."""

MAX_CAUTIONS = 5
"""More lines than this nobody reads before the numbers."""

MANY_LOST = 0.01
"""A smaller share of lost pings is not worth a word: full queues drop some."""

FELT_MS = 5.0
"""By how much longer or shorter a wait is told of: less is no difference to a call."""

WORTH_A_WORD_MS = 1.0
"""A change of less is told of no factor at all: a line's own delays vary by that, and no program minds it."""

MUCH_LESS = 2.0
"""A factor from which on less than `FELT_MS` is told of too: on a line of short waits half of one is much."""

NOTICEABLE = 1.1
"""A factor below this is not worth a word."""

LEAST_SHOWN = 0.0001
"""A share has two digits behind the point, in per cent."""

OF_SOME = "\nof "
"""Stands in a cell before the number of runs that have the figure, if some have not."""

COLUMNS = (
    _interval_column("down\nMbit/s", "down_mbps", 2),
    _interval_column("up\nMbit/s", "up_mbps", 2),
    _interval_column("idle\nms", "idle_ms", 1, rank=2),
    _interval_column("loaded\nms", "loaded_ms", 1),
    _interval_column("median\nms", "median_ms", 1, rank=5),
    _interval_column("p95\nms", "p95_ms", 1, rank=4),
    _interval_column("p99\nms", "p99_ms", 1, rank=1),
    _Column("increase\nms", _increase),
    _Column("factor", _factor),
    _interval_column("Jain\ndown", "down_jain", 3, rank=7),
    _interval_column("Jain\nup", "up_jain", 3, rank=6),
    _Column("pings\nlost", _lost, rank=3),
)
"""The figures of the comparison; latency is that of all probes together."""

UNLOADED = {"loaded\nms": "mean\nms"}
"""Headings of tests without load, in place of those of others."""
