"""Heat map: the mean of a figure for each value of one axis with each of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from weirlab.errors import UsageError
from weirlab.plots.layout import constrained
from weirlab.sweeps.charts.asked import MOST_CELLS
from weirlab.sweeps.charts.data import number, plain, text, words
from weirlab.sweeps.charts.panels import panelled
from weirlab.sweeps.charts.told import Told
from weirlab.sweeps.shown import of_points

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from weirlab.sweeps.charts.asked import Asked
    from weirlab.sweeps.charts.data import Drawn


def figure(drawn: Drawn, asked: Asked) -> Figure:
    """The chart."""
    x, y, shown = _columns(drawn, asked)
    columns = drawn.values(x, "--x", MOST_CELLS)
    lines = drawn.values(y, "--by", MOST_CELLS)
    kept = drawn.beside(x, y, asked.panels)
    averaged = drawn.averaged("Means", x, y, asked.panels)
    note = f"Cells: {plain(shown)}. {averaged}, each point once.{kept}"
    panels = panelled(drawn, asked, _heading(x, y, shown), note)
    means = [of_points(rows.lazy(), [*drawn.axes, x, y], [shown]).collect() for _, rows in panels.parts]
    grids = [_means(rows, (x, y), shown, (columns, lines)) for rows in means]
    known = np.concatenate([grid[np.isfinite(grid)] for grid in grids])
    if known.size == 0:
        raise UsageError(f"no run has `{shown}`")
    low, high = float(known.min()), float(known.max())
    scale = Normalize(low, high)
    colours = ScalarMappable(scale, "viridis")
    for axes, (name, _), grid in zip(panels.axes, panels.parts, grids, strict=True):
        axes.imshow(grid, cmap=colours.cmap, norm=scale, aspect="auto", origin="lower", interpolation="none")
        _label(axes, grid, (low, high))
        _scale(axes, columns, lines)
        axes.set_title(name, fontsize=9)
    panels.label(words(x), words(y))
    constrained(panels.figure)
    bar = panels.figure.colorbar(colours, ax=list(panels.axes), shrink=0.8, pad=0.01)
    bar.set_label(words(shown))
    bar.outline.set_visible(False)
    return panels.figure


def told(drawn: Drawn, asked: Asked) -> Told:
    """The figures that it draws."""
    x, y, shown = _columns(drawn, asked)
    keys = [name for name in (asked.panels, y, x) if name is not None]
    points = of_points(drawn.rows.lazy(), [*drawn.axes, *keys], [shown])
    cells = points.drop_nulls([*keys, shown]).group_by(keys).agg(pl.col(shown).mean()).sort(keys).collect()
    return Told(
        heading=_heading(x, y, shown),
        figures=f"{drawn.averaged('Means', *keys)}, each point once, as they are drawn.{drawn.beside(*keys)}",
        keys=keys,
        value=shown,
        table=cells,
    )


def _columns(drawn: Drawn, asked: Asked) -> tuple[str, str, str]:
    """The axes from left to right and from below upwards, and the figure."""
    fitting = drawn.with_room(MOST_CELLS)
    x = asked.x or next((name for name in fitting if name not in {asked.by, asked.panels}), None)
    y = asked.by or next((name for name in fitting if name not in {x, asked.panels}), None)
    if x is None or y is None:
        raise UsageError("a heat map needs two axes that vary" + _too_many(drawn, fitting))
    shown = drawn.figure(asked.figure, "--figure")
    asked.tell_apart(x=x, by=y, figure=shown)
    return x, y, shown


def _too_many(drawn: Drawn, fitting: Sequence[str]) -> str:
    """Why axes that vary were not taken, or what to do."""
    large = [f"{name} has {count}" for name, count in drawn.counts().items() if name not in fitting]
    if not large:
        return ": name them with --x and --by"
    return (
        f", of 2 to {MOST_CELLS} values each, and {', '.join(large)}: `--kind lines` has room for more "
        "from left to right"
    )


def _heading(x: str, y: str, shown: str) -> str:
    return f"{plain(shown)} by {plain(x)} and {plain(y)}"


def _means(
    rows: pl.DataFrame, by: tuple[str, str], shown: str, values: tuple[Sequence[Any], Sequence[Any]]
) -> NDArray[np.float64]:
    """The mean over the points of each cell, by line and column; not a number where there is none.

    `by` and `values` are the axes from left to right and from below upwards, and their values.
    """
    columns, lines = values
    grid = np.full((len(lines), len(columns)), np.nan)
    points = rows.group_by(*by).agg(pl.col(shown).mean())
    for at_x, at_y, mean in points.iter_rows():
        if None not in {at_x, at_y, mean}:
            grid[lines.index(at_y), columns.index(at_x)] = mean
    return grid


def _label(axes: Axes, grid: NDArray[np.float64], span: tuple[float, float]) -> None:
    """Writes the numbers into the cells, where there is room for them."""
    if grid.size > MOST_NUMBERS:
        return
    low, high = span
    for (line, column), value in np.ndenumerate(grid):
        dark = not np.isfinite(value) or value < low + BRIGHT * (high - low)
        said = number(value) if np.isfinite(value) else "-"
        colour = "black" if not dark or not np.isfinite(value) else "white"
        axes.text(column, line, said, ha="center", va="center", size=7.5, color=colour)


def _scale(axes: Axes, columns: Sequence[Any], lines: Sequence[Any]) -> None:
    axes.set_xticks(range(len(columns)), [text(value) for value in columns])
    axes.set_yticks(range(len(lines)), [text(value) for value in lines])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    if max(len(text(value)) for value in columns) * len(columns) > LONG:
        axes.tick_params(axis="x", labelrotation=45)


MOST_NUMBERS = 80
"""Cells of a panel up to which their numbers are written into them."""

BRIGHT = 0.6
"""Share of the colours from which on black is read better than white."""

LONG = 60
"""Letters of the values along an axis from which on they are turned."""
