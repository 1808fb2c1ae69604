"""Ping over time, run above run, after the manner of the cFosSpeed report.

Every ping of all probes is a point, round trip in ms; dashed is the average under load, dotted that
of the idle line, with the numbers beside. All runs have one scale, so that they compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.plots import axes as parts
from weirlab.plots import caption, theme
from weirlab.plots.look import current
from weirlab.plots.named import run_names
from weirlab.plots.scope import Scope
from weirlab.plots.thinned import EVERY_PING, drawn_pings
from weirlab.record.configurations import configurations
from weirlab.stats import load_window_ns
from weirlab.stats.summary import latency_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.series import Pings
    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of `records`, one above the other."""
    scope = scope or Scope(records)
    high = PAPER_ROW if current().paper else max(MIN_ROW_INCHES, 5.2 / len(records))
    theme.check_height(records, 1.8 + high * len(records))
    rows = [drawn_pings(record, scope.span_s) for record in records]
    note = (
        f"{EVERY_PING}. Dashed: average {caption.when(records)}, dotted: of "
        "the idle line. Ticks at the top: lost pings. Shaded: no load."
    )
    runs = [scope.runs(record) for record in records] if _one_each(records) else []
    chart = theme.blank(records, title, note, height=1.8 + high * len(records), runs=runs)
    drawn = chart.subplots(len(records), sharex=True, sharey=True, squeeze=False)[:, 0]
    lost = any(one.lost_s.size for one in rows)
    every = np.concatenate([one.of_all_ms for one in rows])
    parts.pings(drawn[0], every, room=1.25 if lost else 1.0, most=6, told=False)
    parts.time_axis(list(drawn), max(record.reached_ns for record in records), scope)
    names = run_names(records)
    styles = scope.styles(records)
    label = drawn[0].get_ylabel().replace(parts.LOG_SCALE, f",\n{parts.LOG_SCALE.removeprefix(', ')}")
    for axes, record, pings, name, style in zip(drawn, records, rows, names, styles, strict=True):
        parts.phases(axes, record, named=len(records) == 1 and not current().paper)
        axes.set_ylabel(label)
        _draw(axes, record, pings, high - 0.4, style.colour)
        if len(records) > 1:
            axes.set_title(
                caption.short(name, 48 if current().paper else 120),
                loc="left",
                size=parts.small() + 0.5,
                pad=3,
            )
    theme.in_column(chart, 0.5 + PAPER_ROW * len(records))
    return chart


def _one_each(records: Sequence[Record]) -> bool:
    """Whether one run of each configuration is drawn."""
    return len(configurations(records)) == len(records)


def _draw(axes: Axes, record: Record, pings: Pings, high: float, colour: str) -> None:
    parts.points(axes, pings, colour)
    found = latency_summary(record)
    start, end = (t / 1e9 for t in load_window_ns(record))
    labels = []
    if found.loaded:
        mean = found.loaded.mean
        axes.plot([start, end], [mean] * 2, linestyle=(0, (5, 2)), **AVERAGE)
        labels.append((mean, f"average {caption.number(mean)}", theme.INK))
    if found.idle:
        mean = found.idle.mean
        axes.axhline(mean, linestyle=(0, (1, 1.5)), **AVERAGE)
        labels.append((mean, f"idle {caption.number(mean)}", theme.INK))
    parts.beyond(axes, "y", pings.of_all_ms)
    if pings.lost_s.size:
        parts.rug(axes, pings.lost_s)
    if found.loss_rate:
        lost = f"lost {caption.per_cent(found.loss_rate)}"
        labels.append((axes.get_ylim()[1], lost, theme.QUIET))
    parts.beside(axes, labels, high)


AVERAGE: dict[str, Any] = {
    "color": theme.INK,
    "linewidth": 1.2,
    "zorder": 5,
    "path_effects": parts.halo(1.2),
}

PAPER_ROW = 1.0
"""Height of a run in a column of a paper, in inches."""

MIN_ROW_INCHES = 1.0
"""Height of a run in inches, if there are many."""
