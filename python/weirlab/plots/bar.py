"""Bars: mean throughput, latency and fairness of each configuration (Flent's `bar_combine`, `bar_fairness`).

A row is a configuration with all its repetitions, a bar the mean over them: goodput of all flows together in
Mbit/s, round trip in ms of the answered pings, Jain's index of the flows of a direction. Figures are those of
`weir compare`; the line at the end of a bar is Student's 95 % confidence interval of its mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, quantity, series, theme
from weirlab.plots.named import configurations
from weirlab.plots.rows import Rows
from weirlab.plots.scope import Scope
from weirlab.stats import beside, interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.record import Record
    from weirlab.stats import Comparison, Interval


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of all configurations in `records`, with a panel for each quantity that one of them has."""
    groups = configurations(records)
    rows = Rows(groups)
    theme.check_height(records, 1.9 + rows.height)
    of = quantity.asked()
    if of:
        panels: Mapping[str, list[Interval | None]] = {
            f"Mean: {of.label}": [
                interval([float(of.of(one).mean()) for one in group.records]) for group in groups
            ]
        }
    else:
        panels = bars(beside(records))
    if not panels:
        raise UsageError(f"`{records[0].path}` has no samples of the load to draw")
    styles = (scope or Scope(records)).of_styles([one.records for one in groups])
    repeated = len(records) > len(groups)
    chart = theme.blank(records, title, _note(records, repeated=repeated), height=1.9 + rows.height)
    for axes, (label, found) in zip(rows.panels(chart, list(panels)), panels.items(), strict=True):
        ends = [one.mean if one.high is None else max(one.mean, one.high) for one in found if one]
        if label in FAIRNESS:
            parts.from_zero(axes, "x", ROOM, exact=(0.0, ROOM))
        elif of and not of.axis:
            parts.from_zero(axes, "x", ROOM * max(ends))
        elif label == PING or (of and of.axis == "ping"):
            parts.ping_axis(axes, "x", np.array([ROOM * max(ends)]))
        else:
            parts.throughput_axis(axes, "x", ROOM * max(ends))
        for middle, one, style in zip(rows.middles, found, styles, strict=True):
            _draw(axes, middle, one, style)
    return chart


def bars(compared: Sequence[Comparison]) -> Mapping[str, list[Interval | None]]:
    """The bars of each panel by its label, one a configuration; panels without any are left out."""
    panels = {
        label: [getattr(one, figure) for one in compared]
        for label, figure in {
            "Total download, Mbit/s": "down_mbps",
            "Total upload, Mbit/s": "up_mbps",
            PING: "loaded_ms",
            **FAIRNESS,
        }.items()
    }
    return {label: found for label, found in panels.items() if any(found)}


def _draw(axes: Axes, middle: float, one: Interval | None, style: theme.Style) -> None:
    if one is None:
        at = axes.get_yaxis_transform()
        axes.text(0.02, middle, "none", transform=at, va="center", size=parts.small(), color=theme.QUIET)
        return
    # The number stands above the bar, which therefore lies a little below the row's middle.
    middle += 0.07
    axes.barh(
        [middle],
        [one.mean],
        height=THICK,
        facecolor=style.colour,
        # Of the hatching: an edge of no width is not drawn.
        edgecolor="white",
        hatch=style.hatch or None,
        linewidth=0,
    )
    parts.above(axes, one.mean, middle - THICK / 2, caption.number(one.mean))
    if one.low is None or one.high is None:
        return
    # No bar has a negative value: an interval that reaches below 0 is cut there.
    ends = [[one.mean - max(one.low, 0.0)], [one.high - one.mean]]
    axes.errorbar(
        [one.mean], [middle], xerr=ends, ecolor=theme.INK, elinewidth=1.2, capsize=2.5, fmt="none", zorder=5
    )


def _note(records: Sequence[Record], *, repeated: bool) -> str:
    of = quantity.asked()
    note = (
        f"Bars: means of {of.plural}, {caption.when(records)}."
        if of
        else (
            f"Bars: means {caption.when(records)}: goodput of all flows together, answered pings, and Jain's "
            "index of the flows of a direction where there are several (1: all get the same)."
        )
    )
    if repeated:
        note += " Of several runs: the mean of their figures; line: its 95 % confidence interval."
    return note if of else note + series.none_answered(records)


PING = "Mean ping, ms"

FAIRNESS = {"Jain's index, down": "down_jain", "Jain's index, up": "up_jain"}
"""Panels of Jain's index by their label, whose axis ends at 1."""

THICK = 0.18
"""Height of a bar in inches."""

ROOM = 1.12
"""Of the longest bar: what the axis leaves for the number at its end."""
