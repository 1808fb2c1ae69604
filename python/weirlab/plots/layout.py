"""The layout of charts: axes in a grid, as large as what stands around them leaves room for.

Each side is measured once. Matplotlib's constrained layout measures all twice and has a solver, whose last
digits differ from run to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.layout_engine import ConstrainedLayoutEngine, LayoutEngine

from weirlab.plots.canvas import measuring
from weirlab.plots.frame import Frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.legend import Legend
    from numpy.typing import NDArray

__all__ = ["Grid", "constrained", "grid_of", "make_room_above", "name_above"]


class Grid(LayoutEngine):
    """Places axes of a grid in a part of the figure."""

    _adjust_compatible = True
    _colorbar_gridspec = False

    def __init__(self, rect: tuple[float, float, float, float], pad: tuple[float, float]) -> None:
        """A grid.

        Args:
            rect: left, bottom, width and height of the part, as shares of the figure.
            pad: inches to the left and right of what belongs to axes, and above and below.
        """
        super().__init__()
        self._rect, self._pad = rect, pad
        self._above, self._below = 0.0, 0.0

    def less(self, *, above: float = 0.0, below: float = 0.0) -> None:
        """Leaves so many inches of its part to others."""
        self._above += above
        self._below += below

    def rect_in(self, figure: Figure) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of the part of a figure, as shares of it."""
        x, y, width, height = self._rect
        above, below = (inches / figure.get_figheight() for inches in (self._above, self._below))
        return x, y + below, width, height - above - below

    def execute(self, fig: Figure) -> None:
        """Places the axes of a figure."""
        every = [one for one in fig.axes if isinstance(one, Frame) and one.get_in_layout()]
        if not every:
            return
        size = fig.get_size_inches()
        renderer = measuring(fig)
        for _ in range(MOST_PASSES):
            reached = _align(every, renderer)
            self._place(every, renderer, size, self.rect_in(fig))
            # Longer axes may have other ticks.
            if _align(every, renderer) == reached:
                break

    def _place(
        self,
        every: Sequence[Frame],
        renderer: Any,
        size: NDArray[np.float64],
        rect: tuple[float, float, float, float],
    ) -> None:
        grid = _cell(every[0]).get_gridspec()
        margins = _margins(every, renderer, grid)
        places = []
        for axis, (count, ratios) in enumerate(
            ((grid.ncols, grid.get_width_ratios()), (grid.nrows, grid.get_height_ratios()))
        ):
            before, after = margins[axis] + self._pad[axis]
            room = rect[2 + axis] * size[axis]
            least = LEAST * count
            inner = max(room - before.sum() - after.sum(), least) * np.asarray(ratios) / np.sum(ratios)
            ends = np.cumsum(before + inner + after) - after
            places.append((ends - inner, ends))
        (lefts, rights), (tops, bottoms) = places
        for axes in every:
            cell = _cell(axes)
            left, right = lefts[cell.colspan.start], rights[cell.colspan.stop - 1]
            # Rows count from the top.
            whole = rect[3] * size[1]
            top, bottom = whole - tops[cell.rowspan.start], whole - bottoms[cell.rowspan.stop - 1]
            x, y = rect[0] * size[0], rect[1] * size[1]
            axes.set_position(
                (
                    (x + left) / size[0],
                    (y + bottom) / size[1],
                    (right - left) / size[0],
                    (top - bottom) / size[1],
                )
            )
            # Who sets a place takes the axes out of the layout.
            axes.set_in_layout(True)


def grid_of(figure: Figure) -> Grid:
    """The layout of a chart of Weir."""
    engine = figure.get_layout_engine()
    if not isinstance(engine, Grid):
        raise TypeError("a chart of Weir has a grid")
    return engine


def name_above(figure: Figure, *, columns: int, title: str | None = None) -> None:
    """Puts the names of what the first axes draw between the heading and all axes, which make room."""
    left, bottom, _, height = _part_of(figure)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend = figure.legend(
        handles,
        labels,
        title=title,
        loc="upper left",
        bbox_to_anchor=(left, bottom + height),
        ncols=columns,
        frameon=False,
        alignment="left",
        borderaxespad=0,
    )
    make_room_above(figure, legend)


def make_room_above(figure: Figure, legend: Legend) -> None:
    """Lets the axes of a chart begin below a legend that stands where they did."""
    legend.set_in_layout(False)
    taken = legend.get_window_extent(measuring(figure)).height / figure.dpi
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        left, bottom, width, height = _part_of(figure)
        engine.set(rect=(left, bottom, width, height - taken / figure.get_figheight()))
    else:
        grid_of(figure).less(above=taken)


def _part_of(figure: Figure) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of the part of a chart that its axes have, as shares of it."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        left, bottom, width, height = engine.get()["rect"]
        return left, bottom, width, height
    return grid_of(figure).rect_in(figure)


def constrained(figure: Figure) -> None:
    """Gives a chart Matplotlib's own layout, which has places for bars of colours and legends beside all."""
    rect = grid_of(figure).rect_in(figure)
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=rect, w_pad=0.05, h_pad=0.04))


def _align(every: Sequence[Frame], renderer: Any) -> list[float]:
    """Gives axes above each other, and beside each other, one place for their labels.

    Returns:
        How far the labels of all ticks reach, in thousandths of inches.
    """
    found: dict[tuple[str, int], float] = {}
    reached: list[float] = []
    for axes in every:
        cell = _cell(axes)
        for key, axis in ((("y", cell.colspan.start), axes.yaxis), (("x", cell.rowspan.stop), axes.xaxis)):
            reach = axis.reach(renderer)
            found[key] = max(found.get(key, 0.0), reach[0])
            reached += [round(1000 * length) for length in reach]
    for axes in every:
        cell = _cell(axes)
        axes.yaxis.room = found["y", cell.colspan.start]
        axes.xaxis.room = found["x", cell.rowspan.stop]
    return reached


def _margins(
    every: Sequence[Frame], renderer: Any, grid: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What stands left and right of the axes of each column, above and below those of each row; in inches."""
    across, down = np.zeros((2, grid.ncols)), np.zeros((2, grid.nrows))
    for axes in every:
        cell, box, inner = (
            _cell(axes),
            axes.get_tightbbox(renderer, for_layout_only=True),
            axes.bbox,
        )
        if box is None:
            continue
        dpi = renderer.dpi
        for sides, first, last, before, after in (
            (across, cell.colspan.start, cell.colspan.stop - 1, inner.x0 - box.x0, box.x1 - inner.x1),
            (down, cell.rowspan.start, cell.rowspan.stop - 1, box.y1 - inner.y1, inner.y0 - box.y0),
        ):
            sides[0, first] = max(sides[0, first], before / dpi)
            sides[1, last] = max(sides[1, last], after / dpi)
    return across, down


def _cell(axes: Frame) -> SubplotSpec:
    """The place of axes in the grid."""
    cell = axes.get_subplotspec()
    if cell is None:
        raise TypeError("axes of a chart stand in its grid")
    return cell


MOST_PASSES = 3
"""Times that axes are placed, if their ticks change with their place."""

LEAST = 0.2
"""Inches that axes have in any case."""
