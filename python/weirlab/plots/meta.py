"""Figures of whole runs against what sets the runs apart, such as the median ping against the line's rate.

A point is the mean of a figure over the runs that have one value on the axis below and are of one group; the
line at it is Student's 95 % confidence interval. Figures and parameters are columns of `weirlab.frame`, with
`title`, `note` and `tags` of the records beside them, and `started_at`, along which time passes. Another
parameter that is no number has its values side by side.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, measure, theme
from weirlab.plots.look import current
from weirlab.record.configurations import distinct
from weirlab.stats import interval
from weirlab.tidy import frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.scope import Scope
    from weirlab.plots.theme import Style
    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of `records`, with a panel for each figure that was asked for."""
    del scope  # what has a colour here is no configuration
    look = current()
    rows = _rows(records)
    figures = list(look.figures) or ["loaded_median_ms"]
    for option, names in (("--against", [look.against]), ("--figure", figures), ("--group", [look.group])):
        for name in filter(None, names):
            _check(rows, option, name)
    rows = rows.drop_nulls([look.against])
    if look.group:
        rows = rows.with_columns(_in_words(rows[look.group]).alias(GROUP))
    groups = _values(rows[GROUP]) if look.group else [None]
    if not rows.height or not groups:
        raise UsageError(f"--against {look.against}: no record tells that")
    places = _places(rows[look.against])
    below = _Below(rows[look.against], places)
    height = 2.0 + max(ROW * len(figures), 2.6) + below.more
    chart = theme.blank(records, title, _note(records) + below.note, height=height)
    drawn = list(chart.subplots(len(figures), sharex=True, squeeze=False)[:, 0])
    for axes, name in zip(drawn, figures, strict=True):
        _panel(axes, rows, name, groups, places)
    below.add(drawn)
    if look.group:
        handles, words = drawn[0].get_legend_handles_labels()
        theme.legend_beside(drawn[0], handles, words, title=_words(look.group))
    theme.in_column(chart, 0.6 + 0.1 * len(groups) + max(1.3 * len(figures), 1.8) + below.more)
    return chart


def _rows(records: Sequence[Record]) -> pl.DataFrame:
    """A row for each run, with what `weirlab.frame` has of it, its title and tags."""
    runs = distinct(records)
    days = [_days(one.manifest.started_at) for one in runs]
    return frame(runs).with_columns(
        pl.Series(STARTED, days, dtype=pl.Float64),
        note=pl.Series([one.manifest.note or NO_NOTE for one in runs], dtype=pl.String),
        title=pl.Series([one.manifest.title for one in runs], dtype=pl.String),
        tags=pl.Series([", ".join(one.manifest.tags) or NO_TAGS for one in runs], dtype=pl.String),
    )


def _days(started_at: str) -> float | None:
    """A time in the days by which charts count; None if it is none."""
    try:
        return float(date2num(datetime.fromisoformat(started_at)))  # type: ignore[no-untyped-call]
    except ValueError:
        return None


def _check(rows: pl.DataFrame, option: str, name: str) -> None:
    """Refuses a name that these records have not, and figures that are no numbers."""
    numbers = [column for column in rows.columns if rows[column].dtype.is_numeric() and column != STARTED]
    known = numbers if option == "--figure" else rows.columns
    if name not in known:
        raise UsageError(f"{option} {name}: these records have {', '.join(known)}")
    if option == "--figure" and rows[name].null_count() == rows.height:
        raise UsageError(f"--figure {name}: no record tells that")


def _places(values: pl.Series) -> dict[Any, float]:
    """Where each value stands on the axis below: numbers at themselves, others side by side."""
    found = _values(values)
    if values.dtype.is_numeric():
        return {value: float(value) for value in found}
    return {value: float(place) for place, value in enumerate(found)}


def _values(values: pl.Series) -> list[Any]:
    found = values.drop_nulls().unique(maintain_order=True)
    return (found.sort() if values.dtype.is_numeric() else found).to_list()


def _panel(
    axes: Axes, rows: pl.DataFrame, name: str, groups: Sequence[str | None], places: dict[Any, float]
) -> None:
    look = current()
    axes.set_ylabel(_words(name))
    highest = []
    styles = theme.styles(len(groups))
    labels = caption.told_apart([group or "" for group in groups])
    for number, (group, style, label) in enumerate(zip(groups, styles, labels, strict=True)):
        mine = rows if group is None else rows.filter(pl.col(GROUP) == group)
        # Groups stand a little beside each other where there are no numbers between.
        beside = 0.0 if rows[look.against].dtype.is_numeric() else 0.5 * ((number + 0.5) / len(groups) - 0.5)
        moved = {key: at + beside for key, at in places.items()}
        highest.append(_points(axes, mine, name, style, moved, label=None if group is None else label))
    values = np.concatenate(highest)
    if name.endswith("_ms"):
        parts.ping_axis(axes, "y", values)
    elif name.endswith("_mbps"):
        parts.throughput_axis(axes, "y", float(values.max(initial=0.0)))
    else:
        parts.from_zero(axes, "y", float(values.max(initial=0.0)))
    least = float(rows[name].min() or 0.0)  # type: ignore[arg-type]
    if least < 0 and not (look.ping_ms or look.throughput_mbps) and look.ping_scale == "linear":
        axes.set_ylim(bottom=1.06 * least)


def _points(  # noqa: PLR0913 - points, and how they are drawn
    axes: Axes, rows: pl.DataFrame, name: str, style: Style, places: dict[Any, float], *, label: str | None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Draws the means of a group; the values that its axis must hold."""
    against = current().against
    numbers = rows[against].dtype.is_numeric()
    points = []
    for value, at in places.items():
        found = interval(rows.filter(pl.col(against) == value)[name].to_list())
        if found:
            points.append((at, found.mean, found.low, found.high))
    if not points:
        return np.zeros(0)
    x, means = np.array([one[:2] for one in points]).T
    low, high = (
        np.array(
            [
                mean if end is None else max(end, min(mean, 0.0))
                for _, mean, *ends in points
                for end in [ends[which]]
            ]
        )
        for which in (0, 1)
    )
    axes.errorbar(
        x,
        means,
        yerr=[np.maximum(means - low, 0), high - means],
        color=style.colour,
        linestyle=style.dash if numbers else "none",
        linewidth=1.4,
        marker=style.marker,
        markersize=5,
        elinewidth=1.0,
        capsize=2.5,
        label=label,
    )
    return high


def _in_words(values: pl.Series) -> pl.Series:
    """The values of a column as a legend has them."""
    if values.name != STARTED:
        return values.cast(pl.String)
    times = [None if day is None else f"{num2date(day):%Y-%m-%d %H:%M:%S}" for day in values]  # type: ignore[no-untyped-call]
    return pl.Series(times, dtype=pl.String)


class _Below:
    """What stands below: an axis of numbers or of time, or texts side by side.

    Texts that have no room beside each other stand upright, and of very many one in so many is written.

    Attributes:
        note: which texts are written; empty if all are.
        more: what the chart is higher by for them, in inches.
    """

    def __init__(self, values: pl.Series, places: dict[Any, float]) -> None:
        """The axis below of these values, which stand at these places."""
        self._name, self._numbers, self._places = values.name, values.dtype.is_numeric(), places
        self.note, self.more = "", 0.0
        if self._numbers:
            return
        paper, size = current().paper, parts.small()
        room = (2.6 if paper else 7.0) / len(places)
        texts = [caption.short(str(value), 60) for value in places]
        words = {word for text in texts for word in text.split()}
        self._upright = max(measure.width_of(word, size) for word in words) > room
        if not self._upright:
            self._texts = ["\n".join(measure.wrapped(text, room, size)) for text in texts]
            return
        step = math.ceil(1.1 * size / 72 / room)
        short = caption.in_a_line(texts, UPRIGHT)
        self._texts = [text if number % step == 0 else "" for number, text in enumerate(short)]
        self.more = max(measure.width_of(text, size) for text in self._texts)
        if step > 1:
            self.note = f" Of {len(texts)} texts below one in {step} is written."

    def add(self, drawn: Sequence[Axes]) -> None:
        """Writes it below the last of the panels."""
        below = drawn[-1]
        below.set_xlabel(_words(self._name))
        if self._name == STARTED:
            _dates(below, self._places)
            return
        if self._numbers:
            parts.from_zero(below, "x", max(self._places.values()))
            return
        below.set_xlim(-0.6, len(self._places) - 0.4)
        written = [(at, text) for at, text in zip(self._places.values(), self._texts, strict=True) if text]
        below.set_xticks([at for at, _ in written], [text for _, text in written])
        below.tick_params(axis="x", labelrotation=90 if self._upright else 0)
        for axes in drawn:
            axes.grid(visible=False, axis="x")


def _dates(below: Axes, places: dict[Any, float]) -> None:
    """Makes the axis below one of time, which names its years, or its day."""
    ends = [num2date(one).date() for one in (min(places), max(places))]  # type: ignore[no-untyped-call]
    days = dict.fromkeys(ends)
    said = days if len(days) == 1 else dict.fromkeys(day.year for day in ends)
    below.set_xlabel(f"started at, UTC, {' to '.join(map(str, said))}")
    locator = AutoDateLocator(maxticks=MOST_DATES)  # type: ignore[no-untyped-call]
    below.xaxis.set_major_locator(locator)
    dates = ConciseDateFormatter(locator, show_offset=False)  # type: ignore[no-untyped-call]
    # Seconds by themselves would be taken for numbers.
    dates.formats[-1] = dates.zero_formats[-1] = "%H:%M:%S"
    below.xaxis.set_major_formatter(dates)


def _words(column: str) -> str:
    """The name of a column as words, with its unit behind a comma: `loaded median, ms`."""
    for end, unit in UNITS.items():
        if column.endswith(end):
            return f"{column.removesuffix(end).replace('_', ' ')}, {unit}"
    return column.replace("_", " ")


def _note(records: Sequence[Record]) -> str:
    note = f"Points: figures of the runs, {caption.when(records)}, as tables have them."
    if len(distinct(records)) > 1:
        note += " Of several runs with one value below and of one group: their mean, and its 95 % interval."
    return note


NO_NOTE = "no note"
"""What a run without a note has in its place."""

NO_TAGS = "no tags"
"""What a run without tags has in their place: no tag has two words."""

MOST_DATES = 8
"""More have no room in a column of a paper."""

STARTED = "started_at"
"""The column of when a run started."""

GROUP = "of group"
"""The column of the group of a run, in words; none of `weirlab.frame` has a space."""

UNITS = {"_ms": "ms", "_mbps": "Mbit/s", "_s": "s"}
"""Units by the ends of columns."""

UPRIGHT = 40
"""Characters of an upright text below; of longer ones the middle is left out."""

ROW = 2.0
"""Height of a panel, in inches."""
