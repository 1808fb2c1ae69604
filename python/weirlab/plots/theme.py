"""How all charts look: colours, fonts, heading and footer, and the bytes of the file."""

from __future__ import annotations

import io
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from weirlab.errors import UsageError, WeirWarning
from weirlab.plots import caption, letters
from weirlab.plots.canvas import Canvas, canvas_of
from weirlab.plots.frame import Frame
from weirlab.plots.key import Key
from weirlab.plots.layout import Grid
from weirlab.plots.look import LOOK, current
from weirlab.plots.measure import FONT, width_of, wrapped

__all__ = ["COLOURS", "INK", "QUIET", "Style", "framed", "styles"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from weirlab.plots.look import Look
    from weirlab.record import Record


@dataclass(frozen=True)
class Style:
    """How one of several things is drawn: by colour, brightness, dashes and marker at once.

    Attributes:
        colour: its colour.
        dash: its dashes, for smooth curves.
        marker: its marker, for ragged ones, on which dashes cannot be seen.
        hatch: its hatching, for areas; empty unless an earlier thing has the colour.
    """

    colour: str
    dash: Any
    marker: str
    hatch: str = ""


def styles(count: int) -> list[Style]:
    """Styles for `count` things, dark to light; of up to 30 no two have both colour and dashes."""
    chosen = _CHOICES.get(count) or [number % len(COLOURS) for number in range(count)]
    colours = [COLOURS[colour] for colour in chosen]
    set_by_user = current().colours[:count]
    colours[: len(set_by_user)] = set_by_user
    return [
        Style(
            colour,
            DASHES[number % len(DASHES)],
            MARKERS[number % len(MARKERS)],
            HATCHES[colours[:number].count(colour) % len(HATCHES)],
        )
        for number, colour in enumerate(colours)
    ]


def darker(colour: str) -> str:
    """A dark shade of a colour, which stands out from points in it."""
    red, green, blue = to_rgb(colour)
    return to_hex((DARK * red, DARK * green, DARK * blue))


class Chart(Figure):
    """A figure that a notebook shows as it is, without a backend of Matplotlib's.

    Attributes:
        note: what the chart does not say itself, for its caption; empty if it says all.
    """

    note: str = ""

    def add_subplot(self, *places: Any, **more: Any) -> Axes:
        """Axes at a place of the grid, as `Frame` has them."""
        made: Axes = super().add_subplot(*places, **{"axes_class": Frame, **more})
        return made

    def _repr_png_(self) -> bytes:
        with applied():
            return render(self, "png")


@contextmanager
def applied(look: Look | None = None) -> Iterator[None]:
    """Within it Matplotlib's settings are ours alone, and the look is in force; then as before."""
    before = LOOK.set(look)
    try:
        with mpl.rc_context(), warnings.catch_warnings():
            # A letter that no font has is told of by `render`, once for all texts.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            # As `mpl.rcdefaults`, which reads all styles that there are.
            defaults = mpl.rcParamsDefault
            mpl.rcParams.update({name: defaults[name] for name in defaults if name not in OF_THE_SCREEN})
            mpl.rcParams.update(SETTINGS)
            if current().paper:
                mpl.rcParams.update(PAPER_SETTINGS)
            yield
    finally:
        LOOK.reset(before)


def blank(
    records: Sequence[Record],
    title: str | None,
    note: str,
    *,
    height: float | None = None,
    runs: Sequence[int] = (),
) -> Figure:
    """A figure with heading and footer, and between them all room for axes.

    Args:
        records: what is drawn: heading and footer are made from them.
        title: heading in place of the test's title.
        note: what was done to the samples, in small print.
        height: height of the whole in inches; `HEIGHT` if nothing is said.
        runs: how many runs there are of the configuration of each record, if one of them is drawn.

    Raises:
        UsageError: if it would be higher than an image can be.
    """
    height = height or HEIGHT
    check_height(records, height)
    lines = (
        caption.title_of(title, records),
        caption.short(caption.configuration_line(records), 400),
        caption.short(caption.origin_line(records, runs), 400),
    )
    return framed(lines, note, caption.versions(records), height=height)


def check_height(records: Sequence[Record], height: float) -> None:
    """Refuses a chart that would be higher than an image can be.

    Args:
        records: what is drawn.
        height: height of the whole in inches, as far as it is known.

    Raises:
        UsageError: if it is too much.
    """
    if height <= MAX_HEIGHT_INCHES:
        return
    several = len(records) > 1
    what = f"{len(records)} records" if several else f"what `{records[0].path}` has"
    fewer = "fewer records at a time" if several else ONE_RECORD
    raise UsageError(
        f"a chart of {what} would be {height:.0f} inches high, and {MAX_HEIGHT_INCHES:.0f} are the most: "
        f"draw {fewer}"
    )


def framed(lines: tuple[str, str, str], note: str, version: str, *, height: float) -> Figure:
    """Begins a chart that is drawn from figures instead of records.

    Args:
        lines: the heading, what was set up, and where it comes from.
        note: what was done to the samples, in small print.
        version: which Weir made it.
        height: height of the whole in inches.
    """
    note = " ".join(filter(None, (note, current().words())))
    if current().paper:
        return _column(lines[0], note)
    figure = Chart(figsize=(WIDTH, height))
    Canvas(figure)
    room = WIDTH - 2 * MARGIN
    text = " ".join(lines[0].split())
    top = height - MARGIN
    for words, size, weight, colour in (
        (text, 13.0, "bold", INK),
        (lines[1], 10.0, "normal", INK),
        (lines[2], 8.5, "normal", QUIET),
    ):
        for line in wrapped(words, room, size, weight=weight):
            figure.text(MARGIN / WIDTH, top / height, line, size=size, weight=weight, color=colour, va="top")
            top -= size * LINE / 72
    bottom = MARGIN
    figure.text(1 - MARGIN / WIDTH, bottom / height, version, size=8, color=QUIET, ha="right")
    # The version stands at the right end of the last line.
    for line in reversed(wrapped(note, room - width_of(version, 8) - 0.2, 8)):
        figure.text(MARGIN / WIDTH, bottom / height, line, size=8, color=QUIET)
        bottom += 8 * LINE / 72
    low, high = (bottom + 0.04) / height, (top - 0.06) / height
    side = MARGIN / WIDTH
    figure.set_layout_engine(Grid((side, low, 1 - 2 * side, high - low), (0.06, 0.05)))
    figure.set_label(text)
    return figure


def _column(title: str, note: str) -> Figure:
    """A chart for a column of a paper: axes and legend; what a caption must say is in the file's data."""
    figure = Chart(figsize=(PAPER_WIDTH, PAPER_HEIGHT))
    Canvas(figure)
    figure.set_layout_engine(Grid((0.0, 0.0, 1.0, 1.0), (0.03, 0.03)))
    figure.set_label(" ".join(title.split()))
    figure.note = note
    return figure


def in_column(figure: Figure, height: float) -> None:
    """Gives a chart for a column of a paper its height in inches; any other keeps its own."""
    if current().paper:
        figure.set_figheight(min(height, PAPER_MAX_HEIGHT))


def legend_beside(  # noqa: PLR0913 - what it says, and how
    axes: Axes,
    handles: Sequence[Artist],
    names: Sequence[str],
    *,
    title: str = "",
    above: float = 0.0,
    sample: float = 2.0,
    pitch: float = 1.54,
    of_all: bool = False,
) -> None:
    """A legend to the right of the axes; in a column, where there is no room, `above` points above them.

    Args:
        axes: whose legend it is.
        handles: what is told apart.
        names: what each of them is.
        title: heads the legend; empty for none.
        above: points between a legend above the axes and them.
        sample: width of a sample, in sizes of letters.
        pitch: from line to line, in sizes of letters.
        of_all: whether it is that of the axes below too, beside which it may reach.
    """
    if not current().paper:
        Key(axes, handles, names, title=title, sample=sample, pitch=pitch, of_all=of_all)
        return
    if not names:
        return
    # As many columns as the longest name leaves room for.
    longest = max(width_of(name, 7) for name in names) + 0.42
    axes.legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=axes.transAxes + ScaledTranslation(-0.05, above / 72, axes.figure.dpi_scale_trans),
        ncols=max(1, min(len(names), int((PAPER_WIDTH - 0.6) / longest))),
        frameon=False,
        borderaxespad=0,
        borderpad=0.2,
        handlelength=1.8,
        handletextpad=0.5,
        columnspacing=0.8,
        labelspacing=0.25,
    )


def render(figure: Figure, suffix: str) -> bytes:
    """The figure as a file: the same bytes for the same figure.

    A warning tells of letters that are boxes in it.
    """
    said = letters.complete(figure)
    # The text of an SVG is text.
    if said and suffix != "svg":
        warnings.warn(said, WeirWarning, stacklevel=2)
    _settle(figure)
    dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    metadata: dict[str, Any] = {"Title": figure.get_label(), **dates[suffix]}
    if isinstance(figure, Chart) and figure.note:
        metadata["Subject" if suffix == "pdf" else "Description"] = figure.note
    if suffix == "png":
        return canvas_of(figure).png(metadata)
    file = io.BytesIO()
    # Within SVG and PDF only the points are an image, and those formats go to print.
    figure.savefig(file, format=suffix, metadata=metadata, dpi=300)
    return file.getvalue()


def _settle(figure: Figure) -> None:
    """Lays the axes out once and for all formats."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    # Not "none", which leaves an engine that does nothing: for its sake Matplotlib would draw all twice.
    figure.set_layout_engine(None)


WIDTH, HEIGHT, MARGIN = 10.0, 7.0, 0.2
"""Of a chart, in inches."""

PAPER_WIDTH, PAPER_HEIGHT = 3.5, 2.7
"""Of a chart for a column of a paper with two columns (IEEE, ACM: 3.3 to 3.5 inches), in inches."""

PAPER_MAX_HEIGHT = 9.0
"""Inches: what a column of a page of a paper holds (US letter and A4)."""

MAX_HEIGHT_INCHES = 200.0
"""Inches; an image three times as high cannot be made any more."""

ONE_RECORD = "fewer of its probes or flows, as by --kind cdf --probe 'UDP *'"
"""What to draw of one record that has too much for a chart."""

LINE = 1.35
"""Height of a line of text, in its font's size."""

INK, QUIET, GRID, SHADE, BAND = "#000000", "#555555", "#dddddd", "#f2f2f2", "#dcdcdc"
"""Text and averages; lesser text; grid lines; phases without load; from least to greatest."""

COLOURS = ("#332288", "#a3195b", "#2b7bba", "#1b9e77", "#e8813a", "#dfab1f")
"""Dark to light (L* 22, 36, 50, 58, 64, 73), so that they differ in grey too."""

_CHOICES = {1: [2], 2: [0, 4], 3: [0, 3, 5], 4: [0, 1, 2, 5], 5: [0, 1, 2, 4, 5]}
"""Colours to take for fewer series: the furthest apart, also for eyes without red or green receptors."""

DARK = 0.5
"""Of the brightness of a colour: what a dark shade of it keeps."""

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (7, 1.5, 1.2, 1.5)),
    (0, (9, 3)),
)

MARKERS = ("o", "s", "^", "D", "v", "P", "X")

HATCHES = ("", "////", "....", "xxxx", "----")
"""For the first thing of a colour, the second, and so on."""

OF_THE_SCREEN = {"backend", "backend_fallback", "interactive", "toolbar"}
"""Settings that are no matter of looks."""

SETTINGS: Any = {
    "font.family": [FONT, "sans-serif"],  # comes with Matplotlib: looks the same everywhere
    "font.sans-serif": [FONT, "Verdana", "Bitstream Vera Sans"],  # as wide, for readers of an SVG
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "text.parse_math": False,  # a `$` in a queue or title is a dollar
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.solid_capstyle": "butt",
    "figure.dpi": 150,
    "svg.fonttype": "none",  # text stays text: it can be searched and edited
    "svg.hashsalt": "weir",  # else the names inside an SVG are drawn by lot
    "pdf.fonttype": 42,  # publishers refuse type 3
}

PAPER_SETTINGS: Any = {
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.dpi": 300,
}
"""In the size in which they are printed: 7 points is the least that journals take."""
