"""Panels of lines over one time axis, one above the other: what several charts of a run are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.plots import axes as parts
from weirlab.plots import caption, theme
from weirlab.plots.look import current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from weirlab.plots.scope import Scope
    from weirlab.plots.series import Numbers
    from weirlab.plots.theme import Style
    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line: its name in the legend, its look, and its points; NaN where there is none."""

    name: str
    style: Style
    t_s: Numbers
    values: Numbers


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel: what its vertical axis counts, and its lines.

    Attributes:
        label: the quantity with its unit.
        lines: what is drawn.
        least: the axis reaches at least to this.
        ends: the ends of the axis; None for 0 to a little above what is drawn.
        axis: `ping` or `throughput` for an axis of which the user may set the ends.
    """

    label: str
    lines: Sequence[Line]
    least: float = 0.0
    ends: tuple[float, float] | None = None
    axis: str = ""


def draw(chart: Figure, longest: Record, scope: Scope, panels: Sequence[Panel]) -> list[Axes]:
    """Draws the panels, the first above, with one legend for all: which panels share a style share a name."""
    drawn = list(chart.subplots(len(panels), sharex=True, squeeze=False)[:, 0])
    parts.time_axis(drawn, longest.reached_ns, scope)
    legend: dict[str, Line2D] = {}
    for axes, panel in zip(drawn, panels, strict=True):
        parts.phases(axes, longest, named=axes is drawn[0] and not current().paper)
        axes.set_ylabel(panel.label)
        for line in panel.lines:
            (made,) = axes.plot(
                line.t_s, line.values, color=line.style.colour, linestyle=line.style.dash, linewidth=1.0
            )
            legend.setdefault(line.name, made)
        _scale(axes, panel)
    names = [caption.short(name, 24) for name in legend]
    theme.legend_beside(drawn[0], list(legend.values()), names)
    theme.in_column(chart, 0.5 + PAPER_ROW * len(panels) + 0.07 * len(names))
    return drawn


def _scale(axes: Axes, panel: Panel) -> None:
    if panel.ends is not None:
        axes.set_ylim(*panel.ends)
        return
    values = np.concatenate([line.values for line in panel.lines] or [np.zeros(1)])
    finite = values[np.isfinite(values)]
    top = max(panel.least, ROOM * float(finite.max(initial=0.0))) or 1.0
    if panel.axis == "ping" and finite.size:
        parts.ping_axis(axes, "y", values)
    elif panel.axis == "throughput":
        parts.throughput_axis(axes, "y", top)
    else:
        parts.from_zero(axes, "y", top)


ROW, PAPER_ROW = 1.7, 1.05
"""Height of a panel, in inches; and in a column of a paper."""

ROOM = 1.08
"""What an axis holds, as a multiple of the greatest value that is drawn."""
