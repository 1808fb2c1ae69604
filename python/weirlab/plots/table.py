"""A table below the axes: legend and figures in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from weirlab.plots.caption import in_a_line, short
from weirlab.plots.layout import grid_of, make_room_above
from weirlab.plots.look import current
from weirlab.plots.measure import width_of, wrapped
from weirlab.plots.theme import INK, LINE, MARGIN, PAPER_WIDTH, QUIET, WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Row:
    """A line of the table, whose name is shortened if it is very long.

    Attributes:
        look: how it is drawn above: keywords of a line.
        name: what it is.
        cells: its figures.
    """

    look: dict[str, Any]
    name: str
    cells: list[str]

    def __post_init__(self) -> None:
        """Shortens the name."""
        object.__setattr__(self, "name", short(self.name))


def height(headings: Sequence[str], rows: Sequence[Row], foot: str = "") -> float:
    """How high the table is, in inches."""
    room = _room(headings, rows)
    lines = 1 + sum(len(wrapped(row.name, room, SIZE)) for row in rows) + 1.5 * bool(foot)
    return ROW * lines + 2 * GAP


def alike(rows: Sequence[Row]) -> str:
    """A sentence on rows that are drawn in one look, since there are too many; empty if no two are."""
    looks = [str(row.look) for row in rows]
    last: dict[str, int] = {}
    apart = []
    for number, look in enumerate(looks):
        if look in last:
            apart.append(number - last[look])
        last[look] = number
    return f" Rows {min(apart)} apart look the same." if apart else ""


def add(figure: Figure, headings: Sequence[str], rows: Sequence[Row], foot: str = "") -> None:
    """Writes the table at the foot of the room for axes, which become less high by it.

    Args:
        figure: made by `theme.blank`.
        headings: of the names and of each column of cells.
        rows: what stands below them.
        foot: what it comes to, below the table.
    """
    if current().paper:
        _legend(figure, rows)
        return
    wide, high = (float(length) for length in figure.get_size_inches())
    layout = grid_of(figure)
    y = layout.rect_in(figure)[1]
    listed = height(headings, rows, foot)
    layout.less(below=listed)

    def write(text: str, left: float, line: float, colour: str, align: str = "left") -> None:
        at = (left / wide, line / high)
        figure.text(*at, text, size=SIZE, color=colour, ha=align, va="center")

    line = y * high + listed - GAP - ROW / 2
    room = _room(headings, rows)
    ends = _ends(headings, rows, MARGIN + SAMPLE + room)
    write(headings[0], MARGIN + SAMPLE, line, QUIET)
    for heading, end in zip(headings[1:], ends, strict=True):
        write(heading, end, line, QUIET, "right")
    for row in rows:
        line -= ROW
        ends_of_sample = [MARGIN / wide, (MARGIN + SAMPLE - 0.12) / wide]
        sample = Line2D(ends_of_sample, [line / high] * 2, transform=figure.transFigure, **row.look)
        figure.add_artist(sample)
        for cell, end in zip(row.cells, ends, strict=True):
            write(cell, end, line, INK, "right")
        lines = wrapped(row.name, room, SIZE)
        for number, words in enumerate(lines):
            write(words, MARGIN + SAMPLE, line - number * ROW, INK)
        line -= (len(lines) - 1) * ROW
    if foot:
        at = ((MARGIN + SAMPLE) / wide, (line - 1.4 * ROW) / high)
        figure.text(*at, foot, size=9.5, weight="bold", color=INK, va="center")


def _legend(figure: Figure, rows: Sequence[Row]) -> None:
    """The names alone, above the axes: a paper has its figures in a table of its own."""
    samples = [Line2D([], [], **row.look) for row in rows]
    said = in_a_line([row.name for row in rows], 48)
    names = ["\n".join(wrapped(name, PAPER_WIDTH - 0.7, 7)) for name in said]
    legend = figure.legend(
        samples, names, loc="upper left", frameon=False, handlelength=2.4, borderpad=0.1, borderaxespad=0.4
    )
    make_room_above(figure, legend)


def _room(headings: Sequence[str], rows: Sequence[Row]) -> float:
    """Width of the names' column: no more than they need, no less than the figures leave."""
    needed = max(width_of(name, SIZE) for name in [headings[0], *(row.name for row in rows)]) + 0.02
    return min(needed, WIDTH - 2 * MARGIN - SAMPLE - sum(_columns(headings, rows)))


def _columns(headings: Sequence[str], rows: Sequence[Row]) -> list[float]:
    """Width of each column of figures."""
    columns = zip(headings[1:], *(row.cells for row in rows), strict=True)
    return [max(width_of(text, SIZE) for text in column) + 0.3 for column in columns]


def _ends(headings: Sequence[str], rows: Sequence[Row], left: float) -> list[float]:
    ends = []
    for width in _columns(headings, rows):
        left += width
        ends.append(left)
    return ends


SIZE = 8.5
ROW = SIZE * LINE / 72
GAP, SAMPLE = 0.06, 0.55
"""Above and below the table; the line that shows how a row is drawn, with space after. Inches."""
