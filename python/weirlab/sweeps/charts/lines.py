"""Lines with bands: a figure along one axis, a line for each value of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import theme
from weirlab.plots.axes import LOG_SCALE
from weirlab.sweeps.charts.asked import MOST_COLOURS
from weirlab.sweeps.charts.data import SINGLE, is_logarithmic, number, plain, text, words
from weirlab.sweeps.charts.panels import panelled
from weirlab.sweeps.charts.told import Told

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.sweeps.charts.asked import Asked
    from weirlab.sweeps.charts.data import Drawn


def figure(drawn: Drawn, asked: Asked) -> Figure:
    """The chart."""
    x, shown, by = _columns(drawn, asked)
    values = drawn.values(by, "--by", MOST_COLOURS) if by is not None else [None]
    over = drawn.over(x, by, asked.panels)
    drawn_as = (
        "Lines: single runs."
        if over == SINGLE
        else f"Lines: medians over {over}. Bands: from the 10th to the 90th percentile of these runs."
    )
    note = drawn_as + drawn.beside(x, by, asked.panels)
    panels = panelled(drawn, asked, _heading(x, shown, by), note)
    places = drawn.values(x, "--x", MOST_PLACES)
    logarithmic = is_logarithmic(places)
    for axes, (name, rows) in zip(panels.axes, panels.parts, strict=True):
        for value, style in zip(values, theme.styles(len(values)), strict=True):
            of_value = rows if by is None else rows.filter(pl.col(by) == value)
            _draw(axes, of_value, (x, shown), style, "" if value is None else text(value))
        axes.set_title(name, fontsize=9)
        if logarithmic:
            _logarithmic(axes, places)
    if not (drawn.rows[shown] < 0).any():
        panels.axes[0].set_ylim(bottom=0)
    panels.label(words(x) + (LOG_SCALE if logarithmic else ""), words(shown))
    if by is not None:
        panels.name(words(by))
    return panels.figure


def told(drawn: Drawn, asked: Asked) -> Told:
    """The figures that it draws."""
    x, shown, by = _columns(drawn, asked)
    keys = [name for name in (asked.panels, by, x) if name is not None]
    named = {"median": f"median {words(shown)}", "low": "10th percentile", "high": "90th percentile"}
    rows = drawn.rows.drop_nulls(keys)
    averaged = drawn.averaged("Medians and percentiles", *keys)
    return Told(
        heading=_heading(x, shown, by),
        figures=f"{averaged}, as they are drawn.{drawn.beside(*keys)}",
        keys=keys,
        value=named["median"],
        table=_bands(rows, keys, shown).select(*keys, *named).rename(named),
    )


def _columns(drawn: Drawn, asked: Asked) -> tuple[str, str, str | None]:
    """What is drawn from left to right, the figure, and what has a line for each of its values."""
    numbers = [name for name in drawn.axes if drawn.rows[name].dtype.is_numeric()]
    x = asked.x or next((name for name in numbers if name not in {asked.by, asked.panels}), None)
    if x is None:
        raise UsageError(
            "lines need an axis of numbers from left to right: none of this store varies beside those named"
        )
    x = drawn.figure(x, "--x")
    shown = drawn.figure(asked.figure, "--figure")
    free = (name for name in drawn.with_room(MOST_COLOURS) if name not in {x, asked.panels})
    by = asked.by or next((name for name in free if name not in numbers), None)
    asked.tell_apart(x=x, by=by, figure=shown)
    return x, shown, by


def _heading(x: str, shown: str, by: str | None) -> str:
    return f"{plain(shown)} by {plain(x)}" + (f" and {plain(by)}" if by else "")


def _bands(rows: pl.DataFrame, keys: list[str], shown: str) -> pl.DataFrame:
    """Median and the 10th and 90th percentile of a figure, for all values of `keys` in their order."""
    groups = rows.drop_nulls([*keys, shown]).group_by(keys)
    return groups.agg(
        low=pl.col(shown).quantile(0.1, "linear"),
        median=pl.col(shown).median(),
        high=pl.col(shown).quantile(0.9, "linear"),
    ).sort(keys)


def _draw(axes: Axes, rows: pl.DataFrame, of: tuple[str, str], style: theme.Style, name: str) -> None:
    x, shown = of
    found = _bands(rows, [x], shown)
    places = found[x].to_numpy()
    low, high = found["low"].to_numpy(), found["high"].to_numpy()
    axes.fill_between(places, low, high, color=style.colour, alpha=0.15, linewidth=0)
    axes.plot(
        places,
        found["median"].to_numpy(),
        color=style.colour,
        linestyle=style.dash,
        marker=style.marker,
        markersize=4,
        label=name,
    )


def _logarithmic(axes: Axes, values: list[float]) -> None:
    """A logarithmic scale with the values of the axis on it, as far as there is room."""
    axes.set_xscale("log")
    chosen = values[:: -(-len(values) // TICKS)]
    axes.set_xticks(chosen, [number(value) for value in chosen])
    axes.set_xticks([], minor=True)


MOST_PLACES = 10_000
"""Values along a line."""

TICKS = 8
"""Values that a scale names."""
