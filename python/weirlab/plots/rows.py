"""A row for each configuration, in panels side by side: the layout of the box plot and the bar chart."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from weirlab.plots import caption, measure, theme
from weirlab.plots.look import current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.record import Configuration


class Rows:
    """The rows of configurations: their names as they are written, and how high they are.

    Attributes:
        names: in lines that fit.
        heights: in inches; rows with long names are higher, what is drawn in them is not.
    """

    def __init__(self, groups: Sequence[Configuration]) -> None:
        """One row for each of `groups`, of which there is at least one."""
        paper = current().paper
        room, size = (PAPER_NAMES, 7.0) if paper else (NAMES, 9.0)
        self.names = ["\n".join(measure.wrapped(caption.short(one.name), room, size)) for one in groups]
        least = 0.36 if paper else 0.3 + 1.2 / len(self.names)
        self.heights = [max(least, 0.2 + 0.17 * (name.count("\n") + 1)) for name in self.names]

    @property
    def height(self) -> float:
        """The height of all rows, in inches."""
        return sum(self.heights)

    @property
    def middles(self) -> list[float]:
        """The middle of each row on the y axis, which counts inches downwards."""
        ends = accumulate(self.heights)
        return [end - height / 2 for height, end in zip(self.heights, ends, strict=True)]

    def panels(self, chart: Figure, labels: Sequence[str]) -> list[Axes]:
        """A panel for each label of an x axis, with a row in it for each configuration."""
        shape = (len(labels), 1) if current().paper else (1, len(labels))
        drawn: list[Axes] = list(chart.subplots(*shape, sharey=True, squeeze=False).flat)
        theme.in_column(chart, len(labels) * (self.height + 0.5) + 0.1)
        drawn[0].set_ylim(self.height, 0)
        drawn[0].set_yticks(self.middles, self.names)
        for axes, label in zip(drawn, labels, strict=True):
            axes.set_xlabel(label)
            axes.tick_params(axis="y", length=0)
            axes.grid(visible=False, axis="y")
        return drawn


NAMES, PAPER_NAMES = 2.0, 0.9
"""Width of the configurations' names in inches, longer ones are wrapped; and in a column of a paper."""
