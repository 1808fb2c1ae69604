"""Pareto front: latency against throughput of each point, and the points that no other beats in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import theme
from weirlab.sweeps.charts.asked import MOST_COLOURS
from weirlab.sweeps.charts.data import plain, text, words
from weirlab.sweeps.charts.panels import panelled, parts_of
from weirlab.sweeps.charts.told import Told
from weirlab.sweeps.columns import FIGURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from weirlab.sweeps.charts.asked import Asked
    from weirlab.sweeps.charts.data import Drawn


def figure(drawn: Drawn, asked: Asked) -> Figure:
    """The chart."""
    costs, gains, by = _columns(drawn, asked)
    values = drawn.values(by, "--by", MOST_COLOURS) if by is not None else [None]
    note = (
        f"Better is up and left. A point: means over the runs of a point of the plan. Line: the front, whose "
        f"points no other of the panel beats in both {plain(costs)} and {plain(gains)}."
    )
    panels = panelled(drawn, asked, _heading(costs, gains), note)
    for axes, (name, rows) in zip(panels.axes, panels.parts, strict=True):
        means = _means(rows, drawn.axes, [costs, gains])
        for value, style in zip(values, theme.styles(len(values)), strict=True):
            of_value = means if by is None else means.filter(pl.col(by) == value)
            _points(axes, of_value, (costs, gains), style, "" if value is None else text(value))
        _front(axes, means[costs].to_numpy(), means[gains].to_numpy())
        axes.set_title(name, fontsize=9)
    panels.label(words(costs), words(gains))
    panels.name(words(by) if by else None)
    return panels.figure


def told(drawn: Drawn, asked: Asked) -> Told:
    """The figures that it draws."""
    costs, gains, _ = _columns(drawn, asked)
    found = []
    for _, rows in parts_of(drawn, asked.panels):
        means = _means(rows, drawn.axes, [costs, gains])
        if asked.panels is not None and asked.panels not in drawn.axes:
            means = means.with_columns(pl.lit(rows[asked.panels][0]).alias(asked.panels))
        best = np.zeros(means.height, bool)
        best[front(means[costs].to_numpy(), means[gains].to_numpy())] = True
        found.append(means.with_columns(pl.Series(FRONT, np.where(best, "yes", "no"))))
    table = pl.concat(found)
    return Told(
        heading=_heading(costs, gains),
        figures="Means over the runs of each point, and whether it is on the front, as they are drawn.",
        keys=[name for name in table.columns if name not in {costs, gains, FRONT}],
        value=costs,
        table=table,
    )


def _columns(drawn: Drawn, asked: Asked) -> tuple[str, str, str | None]:
    """The figure of latency, that of throughput, and the axis whose values have a colour each."""
    if asked.x is not None:
        raise UsageError(f"--x {asked.x}: a Pareto front has figures on both scales: --figure and --against")
    if asked.figure == asked.against:
        raise UsageError(f"--figure and --against are both {asked.figure}: a Pareto front is of two figures")
    costs = drawn.figure(asked.figure, "--figure")
    gains = drawn.figure(asked.against, "--against")
    by = asked.by or next((name for name in drawn.with_room(MOST_COLOURS) if name != asked.panels), None)
    return costs, gains, by


def _heading(costs: str, gains: str) -> str:
    return f"{plain(gains)} against {plain(costs)}"


def front(costs: NDArray[np.float64], gains: NDArray[np.float64]) -> NDArray[np.int64]:
    """The places of the points that no other one beats: none gains as much for less, or more for as much.

    In the order of their costs. Of points that are equal in both the first one stands for all.
    """
    order = np.lexsort((-gains, costs))
    best = np.maximum.accumulate(gains[order])
    better = np.concatenate([[True], gains[order][1:] > best[:-1]])
    return np.asarray(order[better])


def _means(rows: pl.DataFrame, axes: list[str], figures: list[str]) -> pl.DataFrame:
    """The means of each point; a point of which one of the figures is not known is left out."""
    whole = rows.drop_nulls(figures)
    if whole.is_empty():
        raise UsageError(f"no run has both `{figures[0]}` and `{figures[1]}`{_instead(rows, figures)}")
    if not axes:
        return whole.select(pl.col(figures).mean())
    return whole.group_by(axes).agg(pl.col(figures).mean()).sort(axes)


def _instead(rows: pl.DataFrame, figures: list[str]) -> str:
    """Which figures of the kind of each that no run has these runs do have."""
    told = []
    for name, option in zip(figures, ("--figure", "--against"), strict=True):
        kind = "_goodput_mbps" if name.endswith("_goodput_mbps") else "_ms"
        there = [one for one in FIGURES if one.endswith(kind) and rows[one].drop_nulls().len()]
        if there and rows[name].drop_nulls().is_empty():
            told.append(f"{option} may be {', '.join(there)}")
    return f": {'; '.join(told)}" if told else ""


def _points(axes: Axes, means: pl.DataFrame, of: tuple[str, str], style: theme.Style, name: str) -> None:
    axes.plot(
        means[of[0]].to_numpy(),
        means[of[1]].to_numpy(),
        linestyle="none",
        marker=style.marker,
        markersize=4,
        markeredgewidth=0,
        alpha=0.6,
        color=style.colour,
        label=name,
    )


def _front(axes: Axes, costs: NDArray[np.float64], gains: NDArray[np.float64]) -> None:
    chosen = front(costs, gains)
    axes.step(costs[chosen], gains[chosen], where="post", color=theme.INK, linewidth=1.0, label="front")
    axes.plot(
        costs[chosen],
        gains[chosen],
        linestyle="none",
        marker="o",
        markersize=7,
        markerfacecolor="none",
        markeredgecolor=theme.INK,
        markeredgewidth=0.8,
    )


FRONT = "on the front"
"""The column that says whether no other point beats this one."""
