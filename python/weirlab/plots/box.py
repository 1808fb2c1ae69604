"""Box plot: spread of download, upload and latency during the load (Flent's `box_totals`).

A row is a configuration with all its repetitions. Throughput is goodput of all flows together in Mbit/s, a
value for each sampling interval; latency the round trip in ms of each ping. Boxes reach from the
25th to the 75th percentile, whiskers over the full range. Of several runs the figures are means of the
runs' figures, as in tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, quantity, series, theme
from weirlab.plots.look import current
from weirlab.plots.named import configurations
from weirlab.plots.rows import Rows
from weirlab.plots.scope import Scope
from weirlab.stats import Distribution, answered_count, describe
from weirlab.stats.summary import latency_summary
from weirlab.stats.summary import totals as goodput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.series import Numbers
    from weirlab.record import Configuration, Record
    from weirlab.stats import Direction

    Boxes = list[Distribution | None]


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of all configurations in `records`."""
    for record in records:
        if answered_count(record) == 0 and not record.has_rows("throughput"):
            raise UsageError(f"`{record.path}` has no samples to draw")
    groups = configurations(records)
    rows = Rows(groups)
    theme.check_height(records, 1.9 + rows.height)
    of = quantity.asked()
    if of:
        possible: dict[str, Boxes] = {
            of.label: [together([_box(of.of(one)) for one in group.records]) for group in groups]
        }
    else:
        possible = {
            "Total download, Mbit/s": [totals(one.records, "down") for one in groups],
            "Total upload, Mbit/s": [totals(one.records, "up") for one in groups],
            PING: [latency(one.records) for one in groups],
        }
    styles = (scope or Scope(records)).of_styles([one.records for one in groups])
    panels = {label: boxes for label, boxes in possible.items() if any(boxes)}
    if not panels:
        raise UsageError(f"`{records[0].path}` has no samples of the load to draw")
    cut = any(_leaves(boxes, label) for label, boxes in panels.items())
    chart = theme.blank(records, title, _note(records, groups, cut=cut), height=1.9 + rows.height)
    drawn = rows.panels(chart, list(panels))
    for axes, boxes in zip(drawn, panels.values(), strict=True):
        _scale(axes, boxes)
        for middle, box, style in zip(rows.middles, boxes, styles, strict=True):
            _draw(axes, middle, box, style)
    return chart


def _box(values: Numbers) -> Distribution | None:
    return describe(values)


def totals(records: Sequence[Record], direction: Direction) -> Distribution | None:
    """Goodput of all flows together in Mbit/s, of each interval of the load: the runs' figures together."""
    return together([describe(goodput(record, direction)[1]) for record in records])


def latency(records: Sequence[Record]) -> Distribution | None:
    """Round trips in milliseconds during the load, without the lost ones: the runs' figures together."""
    return together([latency_summary(record).loaded for record in records])


def together(runs: Sequence[Distribution | None]) -> Distribution | None:
    """The means of the runs' figures, as tables have them, and the range of all of them.

    None if no run has any.
    """
    there = [one for one in runs if one is not None]
    if len(there) <= 1:
        return there[0] if there else None
    means = {name: float(np.mean([getattr(one, name) for one in there])) for name in MEANS}
    return Distribution(
        count=sum(one.count for one in there),
        std=None,  # no part of a box
        min=min(one.min for one in there),
        max=max(one.max for one in there),
        **means,
    )


def _scale(axes: Axes, boxes: Boxes) -> None:
    there = [box for box in boxes if box]
    highest = _usual(there) if _leaves(boxes, axes.get_xlabel()) else max(box.max for box in there)
    of = quantity.asked()
    if of and not of.axis:
        parts.quantity_axis(axes, "x", of, np.array([highest]))
    elif axes.get_xlabel() == PING or (of and of.axis == "ping"):
        ends = np.array([min(box.min for box in there), highest])
        parts.ping_axis(axes, "x", ends, most=6, told=False)
    else:
        parts.throughput_axis(axes, "x", highest, told=False)


def _leaves(boxes: Boxes, label: str) -> bool:
    """Whether a range leaves its axis: one that would press the boxes flat on a linear one.

    What a lost packet held up reaches the application at once: single intervals are far above the line's
    rate. Single pings may take far longer than all others.
    """
    of = quantity.asked()
    if (label == PING or of) and current().ping_scale == "log":
        return False
    if of and not of.axis:
        return False
    there = [box for box in boxes if box]
    return max(box.max for box in there) > 1.5 * _usual(there)


def _usual(boxes: Sequence[Distribution]) -> float:
    """Where an axis ends if a range leaves it, in its unit."""
    return 1.3 * max(box.p95 for box in boxes)


def _draw(axes: Axes, middle: float, box: Distribution | None, style: theme.Style) -> None:
    if box is None:
        at = axes.get_yaxis_transform()
        axes.text(0.02, middle, "none", transform=at, va="center", size=parts.small(), color=theme.QUIET)
        return
    # The number stands above the box, which therefore lies a little below the row's middle.
    middle += 0.07
    low, high, colour = middle - THICK / 2, middle + THICK / 2, style.colour
    whiskers = [box.min, box.p25, np.nan, box.p75, box.max]
    axes.plot(whiskers, [middle] * 5, color=colour, linewidth=1.2, linestyle=(0, (2, 1.5)))
    ends = [box.min, box.min, np.nan, box.max, box.max]
    cap = [middle - THICK / 4, middle + THICK / 4]
    axes.plot(ends, [*cap, np.nan, *cap], color=colour, linewidth=1.2)
    axes.add_patch(
        Rectangle(
            (box.p25, low),
            box.p75 - box.p25,
            THICK,
            facecolor=colour + "55",
            edgecolor=colour,
            hatch=style.hatch or None,
            linewidth=1.2,
            zorder=2,
        )
    )
    axes.plot([box.median] * 2, [low, high], color=theme.INK, linewidth=2.2, zorder=5)
    axes.plot([box.mean], [middle], linestyle="none", zorder=5, **MEAN)
    parts.above(axes, box.median, middle - THICK / 2, caption.number(box.median))
    if box.max > axes.get_xlim()[1]:
        to = f"to {caption.number(box.max)}"
        parts.above(axes, axes.get_xlim()[1], middle, to, colour=theme.QUIET)


def _note(records: Sequence[Record], groups: Sequence[Configuration], *, cut: bool) -> str:
    intervals = {one.interval_ns("throughput") / 1e9 for one in records}
    lengths = " or ".join(caption.length(seconds) for seconds in sorted(intervals))
    of = quantity.asked()
    what = f"of {of.plural}" if of else f"of goodput in each {lengths} and of answered pings"
    note = (
        "Box: 25 % to 75 %, line and number: median, diamond: mean, dashed: full range, "
        f"{what}, {caption.when(records)}."
    )
    if len(records) > len(groups):
        note += " Of several runs: means of their figures, and the range of all."
    if cut:
        note += " Numbers after “to”: ends of ranges beyond the axis."
    rates = of is None or of.axis == "throughput"
    if rates and any(series.exceeds_line(one, "down") or series.exceeds_line(one, "up") for one in records):
        note += f" {series.PEAKS}"
    return note if of else note + series.none_answered(records)


PING = "Ping, ms"

THICK = 0.18
"""Height of a box in inches."""

MEANS = ("mean", "p5", "p25", "median", "p75", "p95", "p99")
"""The figures of a distribution of which several runs have a mean."""

MEAN: dict[str, Any] = {
    "marker": "D",
    "markersize": 4,
    "markerfacecolor": "white",
    "markeredgecolor": theme.INK,
}
