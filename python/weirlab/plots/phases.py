"""Phases: what came through in each direction, and every ping, over the phases of one test.

Throughput is the goodput of all flows of a direction together, as means of 200 ms. Pings are drawn one by
one, by phase; the line is the median of each 200 ms, with a gap where all were lost. For each phase the mean
increase over the idle phase is written above it, and the share of its pings that was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, series, theme
from weirlab.plots.look import current
from weirlab.plots.scope import Scope
from weirlab.plots.thinned import drawn_pings, ping_chunks
from weirlab.record.in_order import least_after
from weirlab.scores import measured
from weirlab.scores.bufferbloat import grade
from weirlab.scores.gradable import is_gradable
from weirlab.scores.measured import PHASES
from weirlab.stats.intervals import middles_ns
from weirlab.stats.pings import answered_of_each, idle_window_ns
from weirlab.stats.summary import latency_summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers
    from weirlab.record import Record
    from weirlab.scores import Measured
    from weirlab.scores.measured import Loaded
    from weirlab.stats import Direction

    Whole = NDArray[np.int64]


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the one record in `records`."""
    (record,) = records
    figures = measured(record)
    if figures is None:
        instead = ": try `three-plot`" if record.flow_rows else ""
        raise UsageError(f"`{record.path}` {_lacks(record)}{instead}")
    graded = is_gradable(record) and figures.ungraded is None
    words = {name: _words(one, graded=graded) for name, one in figures.loaded.items()}
    note = _note(record, figures)
    # They hold what the senders had, of which nothing more is drawn.
    del figures
    if record.is_long("latency"):
        record.release()
    scope = scope or Scope(records)
    chart = theme.blank(records, title, note, runs=[scope.runs(record)])
    above, below = chart.subplots(2, sharex=True, height_ratios=[2, 3])
    parts.time_axis([above, below], record.reached_ns, scope)
    _throughput(above, record)
    _pings(below, record, words, scope.span_s)
    theme.in_column(chart, 3.4)
    return chart


def _lacks(record: Record) -> str:
    """What a record has not of which this chart is made."""
    loads = [phase for phase in PHASES if record.phase(phase)]
    idle = idle_window_ns(record)
    if not loads or record.phase("idle") is None:
        return "has no idle phase and phases with load"
    if idle is None:
        return "has no idle line to compare with: something loads it in the phase `idle` already"
    before = answered_of_each(record, idle)
    during = any(answered_of_each(record, span) for span in map(record.phase, PHASES) if span)
    if before and during:
        return "has no probe of which pings were answered both in its idle phase and once the line was full"
    return f"has no answered ping {'in its phases with load' if before else 'in its idle phase'}"


def _throughput(axes: Axes, record: Record) -> None:
    highest = 0.0
    for (direction, name), style in zip(DIRECTIONS, theme.styles(2), strict=True):
        t, mbps = _total(record, direction)
        if t.size == 0:
            continue
        axes.plot(t, mbps, color=style.colour, linewidth=1.4, label=name)
        highest = max(highest, float(np.nanmax(mbps)))
    parts.throughput_axis(axes, "y", highest)
    axes.set_ylabel("Goodput,\nMbit/s")
    axes.legend(loc="upper left", frameon=False)
    _shade(axes, record)


def _total(record: Record, direction: Direction) -> tuple[Numbers, Numbers]:
    """Middle of each step and goodput of all flows in it; NaN where no flow ran."""
    flows = record.flows_in(direction)
    count = max(int(record.reached_ns / STEP_NS), 1)
    mbps, runs = np.zeros(count), np.zeros(count, dtype=bool)
    for flow in flows:
        runs[int(flow["start_ns"] / STEP_NS) : int(np.ceil(flow["stop_ns"] / STEP_NS))] = True
    interval = record.interval_ns("throughput") if record.has_rows("throughput") else 0
    for rows in record.pieces("throughput", ("t_ns", "flow", "bytes")):
        mine = np.isin(rows.numbers("flow"), [flow["flow"] for flow in flows])
        steps = np.clip(middles_ns(rows.numbers("t_ns")[mine], interval) // STEP_NS, 0, count - 1)
        np.add.at(mbps, steps.astype(int), rows.numbers("bytes")[mine] * 8e3 / STEP_NS)
    t = (np.arange(count) + 0.5) * STEP_NS / 1e9
    return (t, np.where(runs, mbps, np.nan)) if runs.any() else (t[:0], mbps[:0])


def _words(one: Loaded, *, graded: bool) -> str:
    """The increase of a phase, its grade if `graded`, and which share of its pings was lost."""
    words, lost = f"+{max(one.increase_ms, 0):.0f} ms", one.pings.loss_rate
    if graded:
        words += f": {grade(one.increase_ms)}"
    return f"{words}, {caption.per_cent(lost)} lost" if lost else words


def _pings(axes: Axes, record: Record, words: Mapping[str, str], span_s: tuple[float, float] | None) -> None:
    drawn = drawn_pings(record, span_s)
    parts.points(axes, drawn, theme.COLOURS[2])
    t, middle = medians(record)
    t, middle = np.insert(t, 0, t[0]), np.insert(middle, 0, middle[0])
    axes.plot(t, middle, color=theme.INK, linewidth=1.3, path_effects=parts.halo(1.3))
    parts.lone_points(axes, t, middle, theme.INK)
    parts.pings(axes, drawn.of_all_ms, room=1.5)
    _shade(axes, record)
    if drawn.lost_s.size:
        parts.rug(axes, drawn.lost_s)
    for name, says in words.items():
        span = record.phase(name)
        if span is None:
            continue
        axes.annotate(
            says,
            ((span[0] + span[1]) / 2e9, 1),
            (0, -9 if drawn.lost_s.size else 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            va="top",
            size=7 if current().paper else 10,
            weight="bold",
            color=theme.INK,
        )


def medians(record: Record) -> tuple[Numbers, Numbers]:
    """Middle of each step in which a ping was sent, and the median of the round trips in milliseconds.

    It is NaN where all were lost.
    """
    found: dict[int, float] = {}
    # Steps that are not at their end: of those that come later a piece may have rows.
    begun: dict[int, list[Whole]] = {}
    later = least_after(int(at.min()) if at.size else None for at, _, _ in ping_chunks(record))
    for (at, rtt_ns, known), least in zip(ping_chunks(record), later, strict=True):
        for step in [] if known is None else np.unique(at[~known] // STEP_NS).tolist():
            begun.setdefault(step, [])
        answered = slice(None) if known is None else known
        steps = at[answered] // STEP_NS
        order = np.argsort(steps, kind="stable")
        present, first = np.unique(steps[order], return_index=True)
        parts = np.split(rtt_ns[answered][order], first[1:]) if first.size else []
        for step, part in zip(present.tolist(), parts, strict=True):
            begun.setdefault(step, []).append(part)
        for step in [step for step in begun if least is None or step < least // STEP_NS]:
            took = begun.pop(step)
            found[step] = float(np.median(np.concatenate(took) / 1e6)) if took else np.nan
    times = sorted(found)
    return (np.array(times) + 0.5) * STEP_NS / 1e9, np.array([found[step] for step in times])


def _shade(axes: Axes, record: Record) -> None:
    """Sets phases with load off from the rest, and names them."""
    for phase in record.manifest.scenario["phases"]:
        span = record.phase(phase["name"])
        if span is None:
            continue
        start, end = span[0] / 1e9, span[1] / 1e9
        if phase["name"] == "idle":
            axes.axvspan(start, end, color=theme.SHADE, linewidth=0, zorder=0)
        for edge in (start, end):
            axes.axvline(edge, color=theme.GRID, linewidth=0.8, zorder=0.5)
        name = _name(record, phase["name"])
        place = axes.get_subplotspec()
        if place is not None and place.is_first_row():
            axes.annotate(
                name,
                ((start + end) / 2, 1),
                (0, 3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                size=7 if current().paper else 9,
                color=theme.QUIET,
            )


def _name(record: Record, phase: str) -> str:
    """Name of a phase for people; `load` is both at once only where each direction also has its own."""
    return PHASES.get(phase, phase) if phase != "load" or record.phase("download") else phase


def _note(record: Record, figures: Measured) -> str:
    """Sentence on what was done; where tables take another part of the load, their figure too."""
    increase = f"the mean increase over the idle phase once {figures.reached}, and its grade"
    note = f"{NOTE} Above them: {increase}."
    whole = latency_summary(record).increase_mean_ms
    one = figures.loaded.get("load")
    if whole is not None and one is not None:
        from_s = caption.number(one.start_ns / 1e9)
        note += f" Of `load` that is from {from_s} s on; over the whole of it, as in tables, the mean is "
        note += f"+{caption.number(max(whole, 0))} ms."
    if figures.loss_rate or latency_summary(record).loss_rate:
        note += " Ticks at the top: lost pings."
    if any(_exceeds_line(record, way) for way, _ in DIRECTIONS):
        note += f" {series.PEAKS}"
    return note


def _exceeds_line(record: Record, direction: Direction) -> bool:
    """Whether a step of the throughput that is drawn is above what the line carries."""
    t, mbps = _total(record, direction)
    drawn = np.nan_to_num(mbps)
    lines = series.Lines(step_s=STEP_NS / 1e9, t_s=t, lines={}, average=drawn, low=drawn, high=drawn)
    return series.exceeds_line(record, direction, lines)


DIRECTIONS: tuple[tuple[Direction, str], ...] = (("down", "download"), ("up", "upload"))

STEP_NS = 200_000_000

NOTE = (
    f"Throughput: all flows of a direction together, means of {caption.length(STEP_NS / 1e9)}. Points: "
    "pings, line: their median within 200 ms."
)
