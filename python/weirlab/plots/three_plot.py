"""Three-plot: download, upload and latency of one run above each other (Flent's `all`).

Throughput is goodput in Mbit/s of each flow, latency the round trip in ms of each probe, both as
means of 200 ms; black is the average of the flows that run, or of the probes. More flows than there are
colours are drawn as thin lines, those of each load in one colour; of more than can be told apart a band from
the least to the greatest is drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, series, theme
from weirlab.plots.look import current
from weirlab.plots.scope import Scope
from weirlab.stats import summarise
from weirlab.stats.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.series import Lines, Numbers
    from weirlab.record import Record
    from weirlab.stats import Direction, DirectionSummary, Summary


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """One of the three: its lines, and the words beside them.

    Attributes:
        lines: what is drawn.
        black: the average, as it is drawn.
        direction: that of the flows; None for pings.
        axis: label of the y axis.
        title: heads the legend.
        average: what the black line is.
        values: a figure for each of the lines, by name.
        band: what the band is; empty if there is none.
        groups: the loads that the lines belong to, if the lines are too many for a colour each.
        remark: a last line of the legend; may be empty.
    """

    lines: Lines
    black: Numbers
    axis: str
    title: str
    average: str
    values: dict[str, str]
    band: str
    groups: dict[str, _Group] = field(default_factory=dict)
    remark: str = ""
    direction: Direction | None = None


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Flows of one load, such as the second of two tests.

    Attributes:
        names: of the flows.
        words: what the legend says of them.
    """

    names: list[str]
    words: str


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the one record in `records`."""
    (record,) = records
    if not record.flow_rows:
        instead = ": try the chart `ping`" if record.has_rows("latency") else ""
        raise UsageError(f"`{record.path}` has no flows to draw{instead}")
    summary = summarise(record)
    during = "under load" if record.phase("load") else "in the whole run"
    possible = (
        _throughput(record, summary.down, "down", during),
        _throughput(record, summary.up, "up", during),
        _latency(series.latency_ms(record), summary, during),
    )
    panels = [panel for panel in possible if panel is not None]
    if not panels:
        raise UsageError(f"`{record.path}` has no samples to draw")
    scope = scope or Scope(records)
    runs = [scope.runs(record)]
    peaks = any(one.direction and series.exceeds_line(record, one.direction, one.lines) for one in panels)
    note = _note(panels[0].lines, peaks=peaks)
    if any(len(sharing(record, flows)) < len(flows) for flows in map(record.flows_in, ("down", "up"))):
        note += " Connections that carried no more than an initial window are not averaged."
    if panels[-1].direction:
        note += series.none_answered(records)
    chart = theme.blank(records, title, note, runs=runs)
    drawn = chart.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
    parts.time_axis(list(drawn), record.reached_ns, scope)
    for axes, panel in zip(drawn, panels, strict=True):
        parts.phases(axes, record, named=axes is drawn[0] and not current().paper)
        _draw(axes, panel)
    theme.in_column(chart, 0.4 + 1.5 * len(panels))
    return chart


def _note(lines: Lines, *, peaks: bool) -> str:
    step = caption.length(lines.step_s)
    steps = _averaged_steps(lines)
    over = f" (throughput: over {caption.length(lines.step_s * steps)})" if steps > 1 else ""
    note = f"Lines: means of {step}, black: their average{over}, grey: range within {step}."
    return f"{note} {series.PEAKS}" if peaks else note


def _throughput(
    record: Record, summary: DirectionSummary | None, direction: Direction, during: str
) -> _Panel | None:
    lines = series.throughput_mbps(record, direction)
    if lines is None or summary is None or summary.goodput_mbps is None:
        return None
    count, total, steps = summary.flows, summary.goodput_mbps, _averaged_steps(lines)
    spans = {(flow["start_ns"], flow["stop_ns"]) for flow in record.flows_in(direction)}
    # The lines are those of flows that run, and so are the figures beside them.
    running = summary.per_flow_running_mbps
    each = {name: caption.number(mbps) for name, mbps in running.items()}
    if len(spans) > 1 or summary.runs_in_part(caption.number):
        average = f"average of those that run; all: {caption.number(total)}"
    else:
        average = f"average  {caption.number(total / count)}"
        if count > 1:
            average += f", {TIMES}{count} = {caption.number(total)}"
    heading = "Download" if direction == "down" else "Upload"
    return _Panel(
        lines=lines,
        direction=direction,
        black=series.running_mean(lines.average, steps) if steps > 1 else lines.average,
        axis=f"{heading},\nMbit/s per flow" if count > 1 else f"{heading},\nMbit/s",
        title=f"Goodput {during}, Mbit/s",
        average=average,
        values=each,
        band=f"lowest to highest of {count}" if len(lines.lines) > MAX_LINES else "",
        groups=_groups(lines.lines, running) if len(theme.COLOURS) < len(lines.lines) <= MAX_LINES else {},
    )


def _groups(flows: Iterable[str], running_mbps: dict[str, float]) -> dict[str, _Group]:
    """The flows by their load: their names before a number, or if these are too many before a direction."""
    for end in (NUMBER, LOAD):
        groups: dict[str, list[str]] = {}
        for name in flows:
            groups.setdefault(end.split(name)[0].strip() or name, []).append(name)
        if len(groups) <= len(theme.COLOURS):
            break
    else:
        groups = {"": list(flows)}
    # A flow alone is named as one that has a line of its own.
    said = caption.in_a_line([names[0] if len(names) == 1 else load for load, names in groups.items()])
    return {
        load: _Group(names=names, words=_words(words, names, running_mbps))
        for words, (load, names) in zip(said, groups.items(), strict=True)
    }


def _words(load: str, names: list[str], running_mbps: dict[str, float]) -> str:
    # A flow that ran for less than an interval of samples has none.
    of_each = [running_mbps[name] for name in names if name in running_mbps]
    if len(names) == 1:
        return f"{load}  {caption.number(of_each[0]) if of_each else ''}"
    words = f"{load + ': ' if load else ''}{len(names)} flows"
    if not of_each:
        return words
    # A test of a line has flows of its own in each phase, and figures are of that with both at once.
    these = f"{len(of_each)} of them " if len(of_each) < len(names) else ""
    return f"{words}, {these}{caption.number(min(of_each))} to {caption.number(max(of_each))}"


def _alone(lines: Lines) -> str:
    """The name of the one line that there is, for a key."""
    return caption.in_a_line(caption.short_names(list(lines.lines)))[0]


def _latency(lines: Lines | None, summary: Summary, during: str) -> _Panel | None:
    if lines is None:
        return None
    loaded, idle, lost = summary.latency.loaded, summary.latency.idle, summary.latency.loss_rate
    average = "average" if len(lines.lines) > 1 else _alone(lines)
    average += f"  {caption.number(loaded.mean)}" if loaded else "  none answered"
    if idle:
        average += f" (idle {caption.number(idle.mean)})"
    return _Panel(
        lines=lines,
        black=lines.average,
        axis="Ping, ms",
        title=f"Mean ping {during}, ms",
        average=average,
        values={
            name: caption.number(probe.mean) if probe else "lost" for name, probe in summary.probes.items()
        },
        band="shortest to longest ping",
        remark=f"{caption.per_cent(lost)} of pings lost" if lost else "",
    )


def _draw(axes: Axes, panel: _Panel) -> None:
    lines = panel.lines
    count = len(lines.lines)
    axes.set_ylabel(panel.axis, linespacing=1.4)
    (average,) = axes.plot(
        lines.t_s,
        panel.black,
        color=theme.INK,
        linewidth=1.5,
        zorder=5,
        path_effects=parts.halo(1.5),
    )
    parts.lone_points(axes, lines.t_s, panel.black, theme.INK)
    legend: list[tuple[Artist, str]] = [(average, panel.average)]
    seen = [panel.black]
    # A line that its average would cover is left out: a single probe, or flow in a short run.
    loads = theme.styles(len(panel.groups))
    for style, group in zip(loads, panel.groups.values(), strict=True):
        for name in group.names:
            axes.plot(lines.t_s, lines.lines[name], color=style.colour, linewidth=0.6, alpha=0.8)
            seen.append(lines.lines[name])
        legend.append((Line2D([], [], color=style.colour, linewidth=1.2), group.words))
    few = not panel.groups and count <= len(theme.COLOURS)
    if few and (count > 1 or panel.black is not lines.average):
        names = caption.in_a_line(caption.short_names(list(lines.lines)))
        for number, (name, values) in enumerate(lines.lines.items()):
            style = theme.styles(count)[number]
            axes.plot(lines.t_s, values, color=style.colour, linewidth=0.9)
            parts.markers(axes, lines.t_s, values, style, (number, count))
            sample = Line2D([], [], color=style.colour, marker=style.marker, markersize=4.5)
            legend.append((sample, f"{names[number]}  {panel.values.get(name, '')}"))
            seen.append(values)
    if panel.band:
        band = axes.fill_between(lines.t_s, lines.low, lines.high, color=theme.BAND, linewidth=0)
        legend.append((band, panel.band))
        seen.append(lines.high)
    top, highest = parts.without_peaks(seen, panel.black)
    if panel.direction:
        parts.throughput_axis(axes, "y", top)
    else:
        lowest = np.concatenate([one[np.isfinite(one)] for one in (panel.black, lines.low)]).min()
        parts.ping_axis(axes, "y", np.array([lowest, top]))
    remarks = [panel.remark, f"peaks to {caption.number(highest)} cut off" if highest > top else ""]
    legend += [(Line2D([], [], linestyle="none"), remark) for remark in remarks if remark]
    if current().paper:
        # Figures are the text's: names alone, of lines whose colour would else tell nothing.
        legend = [
            (handle, "range" if words == panel.band else words.split("  ")[0])
            for handle, words in legend
            if words != panel.remark
        ]
    handles, words = zip(*legend, strict=True)
    theme.legend_beside(axes, handles, words, title=panel.title, sample=1.8)


def _averaged_steps(lines: Lines) -> int:
    """Over how many steps the average of throughput runs: one in a run of a few seconds."""
    return AVERAGED if lines.t_s.size >= 20 * AVERAGED else 1


TIMES = "\N{MULTIPLICATION SIGN}"

NUMBER = re.compile("::")
"""Start of a flow's number behind the name of its load, as in `TCP upload BE::3`."""

LOAD = re.compile(r"\b(?:upload|download)\b|::")
"""Start of a flow's name behind that of its load, as in `first upload BE` or `cubic::3`."""

MAX_LINES = 32
"""More thin lines in a panel of 25 mm cover each other."""

AVERAGED = 5
"""A lost packet holds up what arrived after it, which then reaches the application at once. Over
1 s such gaps and peaks cancel out (Flent averages ten samples of 200 ms)."""
