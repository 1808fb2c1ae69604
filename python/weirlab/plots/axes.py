"""Parts that several charts share: axes, phases, labels and tables."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.patheffects import AbstractPathEffect, Normal, Stroke
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from weirlab.errors import UsageError
from weirlab.plots import caption
from weirlab.plots.look import current
from weirlab.plots.measure import width_of
from weirlab.plots.theme import INK, LINE, QUIET, SHADE

__all__ = ["LOG_SCALE", "beyond", "from_zero", "logarithmic", "ping_axis", "throughput_axis", "time_axis"]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from matplotlib.axes import Axes

    from weirlab.plots.quantity import Quantity
    from weirlab.plots.scope import Scope
    from weirlab.plots.series import Numbers, Pings
    from weirlab.plots.theme import Style
    from weirlab.record import Record


def halo(linewidth: float) -> list[AbstractPathEffect]:
    """Sets a line of that width off from what it crosses."""
    return [Stroke(linewidth=linewidth + 1.2, foreground="white"), Normal()]


def time_axis(drawn: Sequence[Axes], end_ns: int, scope: Scope) -> None:
    """The time axis that panels above each other share: from 0 to `end_ns`, or the span that the user set.

    The user's notes are lines through all panels, each with its words in the uppermost.

    Raises:
        UsageError: if the span begins, or a note is, when the run has ended.
    """
    end = end_ns / 1e9
    first, last = scope.span_s or (0.0, end)
    if first >= end > 0:
        raise UsageError(f"span {first:g}s..{last:g}s: the run ends at {end:g} s")
    last = min(last, end)
    for at, words in current().notes:
        if at > end > 0:
            raise UsageError(f"note `{words}` at {at:g} s: the run ends at {end:g} s")
    for axes in drawn:
        axes.set_xlim(first, last)
        for at, _ in current().notes:
            axes.axvline(at, color=INK, linewidth=0.9, linestyle=(0, (3, 1.5)), zorder=4)
    drawn[-1].set_xlabel("Time, s")
    for at, words in current().notes:
        if first <= at <= last:
            right = (at - first) > 0.7 * (last - first)
            drawn[0].annotate(
                words,
                (at, 0.94),
                (-3 if right else 3, 0),
                xycoords=drawn[0].get_xaxis_transform(),
                textcoords="offset points",
                ha="right" if right else "left",
                va="top",
                size=small(),
                zorder=7,
                path_effects=halo(2.0),
            )


def ping_axis(  # noqa: PLR0913 - an axis, and what it holds
    axes: Axes,
    which: Literal["x", "y"],
    values: Numbers,
    *,
    room: float = 1.0,
    most: int = 9,
    told: bool = True,
) -> None:
    """An axis of round trips in ms, whose label must be set before.

    It is linear unless a logarithmic one was asked for, and ends where the user set it. Otherwise it begins
    at 0 and holds all values, but for a few that are far above all others (`end_of`); `room` times the
    greatest still fits. What lies beyond is `told` at the end of the axis.
    """
    look = current()
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        from_zero(axes, which, 0.0)
        return
    if look.ping_scale == "log":
        low, high = float(positive.min()), float(positive.max()) * room
        logarithmic(axes, which, low, high, most=most, exact=look.ping_ms)
    else:
        from_zero(axes, which, end_of(positive) * room, exact=look.ping_ms)
    if told:
        beyond(axes, which, positive)


def quantity_axis(axes: Axes, which: Literal["x", "y"], one: Quantity, values: Numbers) -> None:
    """Labels and scales the axis of a quantity, as those of pings and throughput are."""
    if one.name == "mos":
        from_zero(axes, which, 0, exact=(1.0, 4.6))
    elif one.axis == "ping":
        ping_axis(axes, which, values)
    elif one.axis == "throughput":
        throughput_axis(axes, which, float(values.max()))
    else:
        from_zero(axes, which, float(values.max()))


def throughput_axis(axes: Axes, which: Literal["x", "y"], high: float, *, told: bool = True) -> None:
    """A linear axis of throughput in Mbit/s, from 0 to a little above `high` or as the user set it."""
    ends = current().throughput_mbps
    from_zero(axes, which, high, exact=ends)
    if told and ends and high > ends[1]:
        at_end(axes, which, "more")


def end_of(values: Numbers) -> float:
    """The greatest of `values`; a little above the others if a few are very far above all others.

    Of 1000 round trips of 10 to 50 ms a single one of 2 s would press all others flat.
    """
    usual, highest = float(np.quantile(values, 0.995)), float(values.max())
    return 1.25 * usual if highest > FAR * usual else highest


def beyond(axes: Axes, which: Literal["x", "y"], values: Numbers, unit: str = "ms") -> None:
    """Says at the upper end of an axis with its final limits how far `values` reach beyond it."""
    highest = float(values[np.isfinite(values)].max(initial=0.0))
    if highest > (axes.get_xlim() if which == "x" else axes.get_ylim())[1]:
        at_end(axes, which, f"to {caption.number(highest)} {unit}")


def at_end(axes: Axes, which: Literal["x", "y"], words: str) -> None:
    """Writes `words` with an arrow at the upper end of an axis, within the axes."""
    arrow, at, va = ("\N{RIGHTWARDS ARROW}", 0.06, "bottom") if which == "x" else (UP, 0.95, "top")
    axes.text(
        0.995,
        at,
        f"{words} {arrow}",
        transform=axes.transAxes,
        ha="right",
        va=va,
        size=small(),
        color=INK,
        zorder=8,
        path_effects=halo(2.5),
    )


def logarithmic(  # noqa: PLR0913 - an axis, and what it holds
    axes: Axes,
    which: Literal["x", "y"],
    low: float,
    high: float,
    *,
    most: int = 9,
    exact: tuple[float, float] | None = None,
) -> None:
    """A logarithmic axis for `low` to `high`, with ticks as one says them: 20, 50, 100, 200.

    Its label, which must be set before, says that it is logarithmic.

    Args:
        axes: whose axis it is.
        which: which axis.
        low: least value that it has to hold; a little room is left below.
        high: greatest one.
        most: how many ticks have room.
        exact: the ends of the axis, without room, in place of `low` and `high`.
    """
    low, high = exact or (low / 1.15, high * 1.1)
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    label = axes.get_xlabel() if which == "x" else axes.get_ylabel()
    (axes.set_xlabel if which == "x" else axes.set_ylabel)(label + LOG_SCALE)
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(log_ticks(low, high, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from `low` to `high`, evenly spread on a logarithmic axis."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= most:
            break
    return ticks


def from_zero(
    axes: Axes, which: Literal["x", "y"], high: float, *, exact: tuple[float, float] | None = None
) -> None:
    """A linear axis from 0 to a little above `high`, or with the ends `exact`."""
    ends = exact or (0.0, high * 1.06 if high > 0 else 1.0)
    if which == "x":
        axes.set_xlim(*ends)
    else:
        axes.set_ylim(*ends)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))


def pings(axes: Axes, round_trips: Numbers, *, room: float = 1.0, most: int = 9, told: bool = True) -> None:
    """Sets and labels the y axis for `round_trips`, as `ping_axis` does."""
    axes.set_ylabel("Ping, ms")
    ping_axis(axes, "y", round_trips, room=room, most=most, told=told)


def points(axes: Axes, pings: Pings, colour: str) -> None:
    """Every answered ping as a point; as an image within SVG and PDF, which else become huge."""
    size = 1.8 if pings.t_s.size > 2000 else 3.0
    axes.plot(
        pings.t_s,
        pings.rtt_ms,
        linestyle="none",
        marker="o",
        markersize=size,
        markeredgewidth=0,
        color=colour,
        rasterized=True,
    )


def rug(axes: Axes, lost_s: Numbers) -> None:
    """A tick at the top for every lost ping."""
    axes.plot(
        lost_s,
        np.full(lost_s.size, 0.985),
        transform=axes.get_xaxis_transform(),
        linestyle="none",
        marker="|",
        markersize=5,
        markeredgewidth=0.5,
        color=QUIET,
        rasterized=True,
    )


def phases(axes: Axes, record: Record, *, named: bool) -> None:
    """Shades the phases before and after the load; writes their names above if `named`."""
    first, end = axes.get_xlim()
    taken: list[tuple[float, float]] = []
    for name in ("load", "idle", "cooldown"):
        phase = record.phase(name)
        if phase is None:
            continue
        start, stop = max(phase[0] / 1e9, first), min(phase[1] / 1e9, end)
        if start >= stop:
            continue
        if name != "load" and record.phase("load"):
            place = axes.get_xaxis_transform()
            shade = Rectangle(
                (start, 0), stop - start, 1, color=SHADE, linewidth=0, zorder=0, transform=place
            )
            axes.add_artist(shade)
        # The name of a narrow phase begins or ends where the axes do, not beyond them; where there
        # is no room for it beside the others it is left out.
        wide_as = width_of(name, 8) / (2.4 if current().paper else AXES_WIDTH) * (end - first)
        low = min(max((start + stop - wide_as) / 2, first), end - wide_as)
        if named and all(low + wide_as <= left or right <= low for left, right in taken):
            taken.append((low, low + wide_as))
            axes.annotate(
                name,
                (low + wide_as / 2, 1),
                (0, 2),
                xycoords=axes.get_xaxis_transform(),
                textcoords="offset points",
                ha="center",
                va="bottom",
                size=min(small(), 8.0),
                color=QUIET,
            )


def phases_of_all(axes: Axes, records: Sequence[Record], *, named: bool) -> None:
    """`phases` of several records, if all have the same; else none: a run would stand under another's."""
    first = records[0].manifest.scenario["phases"]
    if all(record.manifest.scenario["phases"] == first for record in records):
        phases(axes, max(records, key=lambda record: record.reached_ns), named=named)


def beside(axes: Axes, labels: Sequence[tuple[float, str, str]], height: float) -> None:
    """Writes labels to the right of the axes at their values, moved apart where they would touch.

    Args:
        axes: with their final scale and limits.
        labels: value on the y axis, text and colour of each.
        height: about how high the axes are, in inches.
    """
    # What the user's limits leave out has no place.
    low, high = sorted(axes.get_ylim())
    labels = [one for one in labels if low <= one[0] <= high]
    if not labels:
        return
    to_axes = axes.transScale + axes.transLimits
    wanted = [float(to_axes.transform((0.0, value))[1]) for value, _, _ in labels]
    size = small()
    if current().paper:
        height = min(height, 1.9)
    places = spread(wanted, size * LINE / 72 / height)
    for place, (_, text, colour) in zip(places, labels, strict=True):
        axes.text(1.01, place, text, transform=axes.transAxes, va="center", size=size, color=colour)


def small() -> float:
    """Size of words within and beside axes, in points."""
    return 7.0 if current().paper else 8.5


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places from 0 to 1, near those wanted, in their order, `gap` apart if they fit."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    gap = min(gap, 1 / max(len(wanted) - 1, 1))
    places = [min(max(wanted[number], 0.0), 1.0) for number in order]
    for lower, upper in pairwise(range(len(places))):
        places[upper] = max(places[upper], places[lower] + gap)
    limit = 1.0
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - gap
    found = dict(zip(order, places, strict=True))
    return [found[number] for number in range(len(wanted))]


def markers(axes: Axes, t: Numbers, values: Numbers, style: Style, place: tuple[int, int]) -> None:
    """Sets a few markers on a line, each line's beside the others'.

    Args:
        axes: where the line is.
        t: its times.
        values: its values; where there is none, or nothing moved, there is no marker.
        style: colour and marker.
        place: number of the line, and how many there are.
    """
    every = max(t.size // 12, place[1])
    chosen = np.arange(place[0] * every // place[1], t.size, every)
    chosen = chosen[values[chosen] > 0]
    axes.plot(
        t[chosen],
        values[chosen],
        linestyle="none",
        color=style.colour,
        marker=style.marker,
        markersize=4.5,
        markeredgecolor="white",
        markeredgewidth=0.5,
        zorder=6,
    )


def lone_points(axes: Axes, t: Numbers, values: Numbers, colour: str) -> None:
    """A dot for each value without a neighbour, of which a line shows nothing."""
    there = np.concatenate([[False], np.isfinite(values), [False]])
    alone = there[1:-1] & ~there[:-2] & ~there[2:]
    if alone.any():
        axes.plot(t[alone], values[alone], linestyle="none", marker="o", markersize=3, color=colour)


def without_peaks(values: Sequence[Numbers], always: Numbers) -> tuple[float, float]:
    """Up to where a linear axis should go, and the greatest of `values`.

    They are the same unless a few values are far above all others: then the axis goes a little
    above those others, lest single peaks press everything else flat, yet not below `always`.
    """
    numbers = np.concatenate([one[np.isfinite(one)] for one in values])
    if numbers.size == 0:
        return 0.0, 0.0
    highest = float(numbers.max())
    usual = 1.25 * max(float(np.quantile(numbers, 0.995)), float(np.nanmax(always)))
    return (usual, highest) if highest > 1.3 * usual else (highest, highest)


def above(axes: Axes, x: float, y: float, text: str, *, colour: str = INK) -> None:
    """Writes `text` above the point, shifted where it would stick out of the axes at a side."""
    share = float((axes.transScale + axes.transLimits).transform((x, 0.5))[0])
    align = "left" if share < 0.06 else "right" if share > 0.94 else "center"
    axes.annotate(
        text,
        (x, y),
        (0, 2),
        textcoords="offset points",
        ha=align,
        va="bottom",
        size=small(),
        color=colour,
    )


LOG_SCALE = ", log scale"
"""Behind the label of a logarithmic axis: a reader must not take it for a linear one."""

UP = "\N{UPWARDS ARROW}"

FAR = 4.0
"""So many times above 99.5 % of all values lies what an axis of pings leaves out, and says so."""

AXES_WIDTH = 6.5
"""At least so wide are axes that have the whole width of a chart, in inches."""
