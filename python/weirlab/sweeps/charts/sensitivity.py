"""Sensitivity: how much of a figure's variance each axis explains, by itself and with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import theme
from weirlab.sweeps.charts.data import plain
from weirlab.sweeps.charts.panels import panelled, parts_of
from weirlab.sweeps.charts.told import Told
from weirlab.sweeps.sensitivity import indices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weirlab.sweeps.charts.asked import Asked
    from weirlab.sweeps.charts.data import Drawn
    from weirlab.sweeps.sensitivity import Index


def figure(drawn: Drawn, asked: Asked) -> Figure:
    """The chart."""
    shown = _figure(drawn, asked)
    note = (
        "Sobol' indices over the grid of the plan, each value as likely as the next; exact, not estimated. "
        "First order: share of the variance that goes if the axis is held at one value. Total: share that "
        "stays if all others are held; what it has beyond the first order are interactions."
    )
    panels = panelled(drawn, asked, _heading(shown), note)
    every = [_indices(drawn, asked, rows, shown) for _, rows in panels.parts]
    # One order in all panels: that of the first.
    order = [one.axis for one in every[0]]
    for axes, (name, _), found in zip(panels.axes, panels.parts, every, strict=True):
        by_axis = {one.axis: one for one in found}
        places = np.arange(len(order), dtype=float)
        for shift, label, colour in ((-0.2, "first", theme.COLOURS[2]), (0.2, "total", theme.COLOURS[4])):
            shares = [getattr(by_axis[axis], label) if axis in by_axis else 0.0 for axis in order]
            bars = axes.barh(places + shift, shares, 0.38, color=colour, label=LABELS[label])
            axes.bar_label(bars, [f"{share:.3f}" for share in shares], padding=2, size=8)
        axes.set_yticks(places, [plain(axis) for axis in order])
        axes.set_xlim(0, 1.1)
        axes.set_title(name, fontsize=9)
        axes.grid(visible=False, axis="y")
    panels.axes[0].invert_yaxis()
    panels.label("share of the variance", "")
    panels.name(None)
    return panels.figure


def told(drawn: Drawn, asked: Asked) -> Told:
    """The figures that it draws."""
    shown = _figure(drawn, asked)
    keys = [*([] if asked.panels is None else [asked.panels]), "axis"]
    rows = [
        [*([] if asked.panels is None else [part[asked.panels][0]]), plain(one.axis), one.first, one.total]
        for _, part in parts_of(drawn, asked.panels)
        for one in _indices(drawn, asked, part, shown)
    ]
    columns = [*keys, *LABELS.values()]
    return Told(
        heading=_heading(shown),
        figures="Shares of the variance, 0 to 1, as they are drawn.",
        keys=keys,
        value=LABELS["total"],
        table=pl.DataFrame(rows, schema=columns, orient="row"),
    )


def _figure(drawn: Drawn, asked: Asked) -> str:
    """The figure of which it is."""
    for name, value in (("--x", asked.x), ("--by", asked.by)):
        if value is not None:
            raise UsageError(f"{name} {value}: sensitivity shows all axes: leave it out")
    return drawn.figure(asked.figure, "--figure")


def _heading(shown: str) -> str:
    return f"which axis matters to {plain(shown)}"


def _indices(drawn: Drawn, asked: Asked, rows: pl.DataFrame, shown: str) -> list[Index]:
    """The indices of all axes of a panel, within which that of the panels does not vary."""
    return indices(rows, [name for name in drawn.axes if name != asked.panels], shown)


LABELS = {"first": "first order: by itself", "total": "total: with its interactions"}
"""Names of both indices in the legend."""
