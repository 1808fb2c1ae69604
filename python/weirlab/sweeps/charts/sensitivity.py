"""Sensitivity: how much of a figure's variance each axis explains, by itself and with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import theme
from weirlab.sweeps.charts.data import plain
from weirlab.sweeps.charts.panels import panelled
from weirlab.sweeps.sensitivity import indices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weirlab.sweeps.charts.asked import Asked
    from weirlab.sweeps.charts.data import Drawn


def figure(drawn: Drawn, asked: Asked) -> Figure:
    """The chart."""
    for name, value in (("--x", asked.x), ("--by", asked.by)):
        if value is not None:
            raise UsageError(f"{name} {value}: sensitivity shows all axes: leave it out")
    shown = drawn.figure(asked.figure, "--figure")
    note = (
        "Sobol' indices over the grid of the plan, each value as likely as the next; exact, not estimated. "
        "First order: share of the variance that goes if the axis is held at one value. Total: share that "
        "stays if all others are held; what it has beyond the first order are interactions."
    )
    panels = panelled(drawn, asked, f"which axis matters to {plain(shown)}", note)
    held = {asked.panels} if asked.panels else set()
    every = [
        indices(rows, [name for name in drawn.axes if name not in held], shown) for _, rows in panels.parts
    ]
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


LABELS = {"first": "first order: by itself", "total": "total: with its interactions"}
"""Names of both indices in the legend."""
