"""Totals over time of several configurations in one picture (Flent's `totals_combine`).

A line is a configuration: goodput of all flows of a direction together, and the mean of all pings, in steps
of 200 ms and longer ones for long runs. Of several runs of a configuration it is their mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import caption, panels, series
from weirlab.plots.named import configurations
from weirlab.plots.panels import Line, Panel, Things
from weirlab.plots.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from weirlab.plots.series import Lines, Numbers
    from weirlab.record import Configuration, Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of all configurations in `records`."""
    scope = scope or Scope(records)
    groups = configurations(records)
    styles = scope.of_styles([one.records for one in groups])
    shown = []
    for label, axis, lines_of, line_of in QUANTITIES:
        lines = [
            Line(name=one.name, style=style, t_s=found[0], values=found[1])
            for one, style in zip(groups, styles, strict=True)
            if (found := _mean(one, lines_of, line_of)) is not None
        ]
        if lines:
            shown.append(Panel(label=label, lines=lines, axis=axis))
    if not shown:
        raise UsageError(f"`{records[0].path}` has no samples to draw")
    longest = max(records, key=lambda record: record.reached_ns)
    step = caption.length(series.step_ns(longest.reached_ns) / 1e9)
    note = f"Goodput of all flows of a direction together, and the mean of all pings, in steps of {step}."
    if len(records) > len(groups):
        note += " Of several runs: their mean."
    if any(series.exceeds_line(one, way) for one in records for way in ("down", "up")):
        note += f" {series.PEAKS}"
    note += series.none_answered(records)
    return panels.draw(records, title, note, shown, things=Things(name="configurations"), scope=scope)


def _mean(
    one: Configuration, lines_of: Callable[[Record], Lines | None], line_of: Callable[[Lines], Numbers]
) -> tuple[Numbers, Numbers] | None:
    """Middles of the steps and the mean over the runs; None if no run has the quantity."""
    found = [lines for record in one.records if (lines := lines_of(record)) is not None]
    if not found:
        return None
    longest = max(found, key=lambda lines: lines.t_s.size)
    alike = [lines for lines in found if lines.step_s == longest.step_s]
    every = np.full((len(alike), longest.t_s.size), np.nan)
    for row, lines in zip(every, alike, strict=True):
        row[: lines.t_s.size] = line_of(lines)
    there = np.isfinite(every).sum(axis=0)
    return longest.t_s, np.where(there > 0, np.nansum(every, axis=0) / np.maximum(there, 1), np.nan)


def _total(lines: Lines) -> Numbers:
    return np.asarray(np.sum(list(lines.lines.values()), axis=0))


QUANTITIES = (
    ("Download, Mbit/s", "throughput", lambda record: series.throughput_mbps(record, "down"), _total),
    ("Upload, Mbit/s", "throughput", lambda record: series.throughput_mbps(record, "up"), _total),
    ("Ping, ms", "ping", series.latency_ms, lambda lines: lines.average),
)
"""What is drawn: label, kind of axis, the lines of a record, and the one that is made of them."""
