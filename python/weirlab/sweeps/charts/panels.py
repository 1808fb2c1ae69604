"""Small multiples: a panel for each value of an axis, all on the same scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weirlab.plots import theme
from weirlab.plots.layout import name_above
from weirlab.sweeps.charts.data import plain, text, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.sweeps.charts.asked import Asked
    from weirlab.sweeps.charts.data import Drawn


@dataclass(frozen=True)
class Panels:
    """The panels of a chart.

    Attributes:
        figure: the whole.
        axes: one for each panel.
        parts: heading and rows of each panel.
        columns: how many stand side by side.
    """

    figure: Figure
    axes: Sequence[Axes]
    parts: Sequence[tuple[str, pl.DataFrame]]
    columns: int

    def label(self, x: str, y: str) -> None:
        """Names the scales, at the outer panels only."""
        for number, axes in enumerate(self.axes):
            if number % self.columns == 0:
                axes.set_ylabel(y)
            if number + self.columns >= len(self.axes):
                axes.set_xlabel(x)

    def name(self, title: str | None) -> None:
        """Puts the names of what the first panel draws above all panels, which make room for them."""
        name_above(self.figure, columns=LEGEND, title=title)


def panelled(drawn: Drawn, asked: Asked, heading: str, note: str) -> Panels:
    """A chart with its panels, in which nothing is drawn yet.

    Args:
        drawn: the runs.
        asked: which axis has panels.
        heading: heading, if none is asked for.
        note: what was done to the runs, in small print.
    """
    parts = parts_of(drawn, asked.panels)
    columns = min(len(parts), WIDEST)
    lines = math.ceil(len(parts) / columns)
    varied = f"axes: {', '.join(plain(name) for name in drawn.axes)}" if drawn.axes else "one point"
    figure = theme.framed(
        (asked.title or heading[:1].upper() + heading[1:], varied, drawn.origin()),
        f"{note} {drawn.left_out}".strip(),
        f"Weir {drawn.version}",
        height=theme.HEIGHT if lines == 1 else min(2.2 + 3.0 * lines, TALLEST),
    )
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    every = list(grid.flat)
    for axes in every[len(parts) :]:
        axes.remove()
    for number, axes in enumerate(every[: len(parts)]):
        # The panel below may not be there.
        axes.tick_params(labelbottom=number + columns >= len(parts))
    return Panels(figure, every[: len(parts)], parts, columns)


def parts_of(drawn: Drawn, panels: str | None) -> list[tuple[str, pl.DataFrame]]:
    """Heading and rows of each panel."""
    if panels is None:
        return [("", drawn.rows)]
    values = drawn.values(panels, "--panels", MOST)
    return [
        (f"{words(panels)}: {text(value)}", drawn.rows.filter(pl.col(panels) == value)) for value in values
    ]


MOST = 16
"""Panels of a chart."""

LEGEND = 4
"""Names side by side in the legend."""

WIDEST = 3
"""Panels side by side."""

TALLEST = 20.0
"""Height of a chart in inches."""
