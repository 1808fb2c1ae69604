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
    """A line.

    Attributes:
        name: in the legend.
        style: how it looks.
        t_s: times of its points.
        values: its points; NaN where there is none.
        steps: whether a value holds until the next one.
    """

    name: str
    style: Style
    t_s: Numbers
    values: Numbers
    steps: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel: what its vertical axis counts, and its lines.

    Attributes:
        label: the quantity with its unit.
        lines: what is drawn.
        least: the axis reaches at least to this.
        ends: the ends of the axis; None for 0 to a little above what is drawn.
        axis: `ping` or `throughput` for an axis of which the user may set the ends.
        average: times and values of the mean of the lines, if they have not all points that it is made of.
    """

    label: str
    lines: Sequence[Line]
    least: float = 0.0
    ends: tuple[float, float] | None = None
    axis: str = ""
    average: tuple[Numbers, Numbers] | None = None


@dataclass(frozen=True, kw_only=True)
class Things:
    """What the lines are of.

    Attributes:
        name: in the plural, such as `flows`.
        averaged: whether their average says something where they are too many to be told apart.
    """

    name: str
    averaged: bool = False


def draw(  # noqa: PLR0913 - what is drawn, and what stands around it
    records: Sequence[Record],
    title: str | None,
    note: str,
    panels: Sequence[Panel],
    *,
    things: Things,
    scope: Scope,
    runs: Sequence[int] = (),
) -> Figure:
    """Draws the panels, the first above, with one legend for all: which panels share a style share a name.

    More things than can be told apart are thin grey lines.

    Args:
        records: what is drawn; the time axis is that of the longest.
        title: heading in place of the test's title.
        note: what was done to the samples, in small print.
        panels: the panels, from above.
        things: what the lines are of.
        scope: among which records these are.
        runs: how many runs there are of the configuration of each record, if one of them is drawn.
    """
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    many = len(names) > MAX_NAMED
    said = {} if many else dict(zip(names, caption.told_apart(names), strict=True))
    rows = sum(1 + name.count("\n") for name in said.values())
    height = 1.8 + max(ROW * len(panels), LEGEND_ROW * rows)
    chart = theme.blank(records, title, note, height=height, runs=runs)
    drawn = list(chart.subplots(len(panels), sharex=True, squeeze=False)[:, 0])
    parts.time_axis(drawn, max(record.reached_ns for record in records), scope)
    legend: dict[str, Line2D] = {}
    for axes, panel in zip(drawn, panels, strict=True):
        parts.phases_of_all(axes, records, named=axes is drawn[0] and not current().paper)
        axes.set_ylabel(panel.label)
        legend = (_many(axes, panel, things, len(names)) if many else _each(axes, panel)) | legend
        _scale(axes, panel)
    order = {name: place for place, name in enumerate(names)}
    words = sorted(legend, key=lambda name: order.get(name, 0))
    theme.legend_beside(
        drawn[0], [legend[name] for name in words], [said.get(name, name) for name in words], of_all=True
    )
    above = PAPER_LINE * rows if rows > len(said) else 0.07 * len(words)
    theme.in_column(chart, 0.5 + PAPER_ROW * len(panels) + above)
    return chart


def _each(axes: Axes, panel: Panel) -> dict[str, Line2D]:
    """Draws each line in its own style; what the legend says of them."""
    legend: dict[str, Line2D] = {}
    for line in panel.lines:
        (made,) = axes.plot(
            line.t_s,
            line.values,
            color=line.style.colour,
            linestyle=line.style.dash,
            linewidth=1.0,
            drawstyle="steps-post" if line.steps else "default",
        )
        parts.lone_points(axes, line.t_s, line.values, line.style.colour)
        legend.setdefault(line.name, made)
    return legend


def _many(axes: Axes, panel: Panel, things: Things, count: int) -> dict[str, Line2D]:
    """Draws lines that are too many to be told apart; what the legend says of them."""
    legend: dict[str, Line2D] = {}
    for line in panel.lines:
        (legend[f"each of {count} {things.name}"],) = axes.plot(
            line.t_s, line.values, color=theme.QUIET, linewidth=0.4
        )
        parts.lone_points(axes, line.t_s, line.values, theme.QUIET)
    if things.averaged:
        times, average = panel.average or _average(panel.lines)
        (legend["average"],) = axes.plot(
            times, average, color=theme.INK, linewidth=1.5, path_effects=parts.halo(1.5)
        )
    return legend


def _average(lines: Sequence[Line]) -> tuple[Numbers, Numbers]:
    """The times at which lines have points, and the mean of those that have one there.

    Ends of a live path sample at times of their own: points of one step are of one time.
    """
    t_s, values = (np.concatenate([getattr(line, one) for line in lines]) for one in ("t_s", "values"))
    there = np.isfinite(values)
    steps = [float(np.median(np.diff(line.t_s))) for line in lines if line.t_s.size > 1]
    number = np.round(t_s[there] / (max(steps, default=0.0) or 1.0))
    _, place = np.unique(number, return_inverse=True)
    count = np.bincount(place)
    return np.bincount(place, t_s[there]) / count, np.bincount(place, values[there]) / count


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

LEGEND_ROW = 0.19
"""Height of a line of the legend, in inches."""

PAPER_LINE = 0.13
"""Height of a line of names in two lines above the axes of a column of a paper, in inches."""

MAX_NAMED = 24
"""More lines than this cannot be told apart: all are grey then."""

ROOM = 1.08
"""What an axis holds, as a multiple of the greatest value that is drawn."""
