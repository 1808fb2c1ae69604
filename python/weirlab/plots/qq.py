"""Q-Q plot: quantiles of pings of one distribution against those of another (Flent's `qq_icmp`).

A point is a quantile, the same of both: round trips in ms of the answered pings during the load. Several
configurations stand against the first, with all their repetitions; a single one against the normal
distribution of its mean and standard deviation. On the diagonal both distributions are the same; a straight
line beside it means that they differ in place and spread only, and an end that bends up is a longer tail.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, distribution, measure, quantity, table, theme
from weirlab.plots.distribution import Ordered
from weirlab.plots.look import current
from weirlab.plots.named import configurations
from weirlab.plots.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.series import Numbers
    from weirlab.record import Record
    from weirlab.record.configurations import Configuration


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the configurations of `records`; the first is the baseline if there are others."""
    groups = configurations(records)
    of = quantity.asked()
    found = [_ordered(one.records) for one in groups]
    styles = (scope or Scope(records)).of_styles([one.records for one in groups])
    alone = len(groups) == 1
    if alone:
        baseline = "the normal distribution of its mean and deviation"
        drawn = [(groups[0].name, styles[0], against_normal(found[0]))]
    else:
        baseline = caption.short(groups[0].name, 60)
        others = zip(groups[1:], styles[1:], found[1:], strict=True)
        drawn = [(one.name, style, pairs(found[0], values)) for one, style, values in others]
    # The baseline is the diagonal, and its figures are those of the first column of points.
    first = _cells_of_points(drawn[0][2][0]) if alone else _cells(groups[0])
    rows = [table.Row({**DIAGONAL}, baseline, first)]
    rows += [
        table.Row(_look(style) | {"markersize": 5}, name, _cells(one))
        for one, (name, style, _) in zip(groups if alone else groups[1:], drawn, strict=True)
    ]
    unit = f", {of.unit}" if of and of.unit else "" if of else ", ms"
    headings = ["configuration", *(f"p{share:g}{unit}" for share in SHARES)]
    height = 6.2 + table.height(headings, rows)
    chart = theme.blank(records, title, _note(records, alone=alone) + table.alike(rows), height=height)
    table.add(chart, headings, rows)
    axes = chart.subplots()
    named = f"{of.label.split(',')[0]} of" if of else "Ping of"
    across = f"Normal distribution{unit}" if alone else f"{named} {baseline}{unit}"
    _scale(axes, across, [points for _, _, points in drawn], alone=alone)
    for _, style, points in drawn:
        axes.plot(
            *points,
            **_look(style),
            rasterized=True,
        )
    return chart


def _look(style: theme.Style) -> dict[str, Any]:
    """How points are drawn: of many configurations only colour and marker together tell them apart."""
    return {
        "linestyle": "none",
        "marker": style.marker,
        "markersize": 3.5,
        "markeredgewidth": 0,
        "color": style.colour,
    }


def _ordered(records: Sequence[Record]) -> Ordered:
    """What is drawn of runs: their answered pings, or their values of another quantity."""
    of = quantity.asked()
    if of:
        return Ordered.of(np.sort(of.pooled(records)))
    return distribution.ordered_pings(records)


def pairs(baseline: Ordered, other: Ordered) -> tuple[Numbers, Numbers]:
    """The same quantiles of both, as many as the smaller of them has values."""
    shares = _shares(min(baseline.size, other.size))
    return baseline.quantiles(shares), other.quantiles(shares)


def against_normal(values: Ordered) -> tuple[Numbers, Numbers]:
    """Quantiles of the normal distribution with the mean and deviation of `values`, and theirs."""
    shares = _shares(values.size)
    normal = NormalDist()
    expected = np.array([normal.inv_cdf(share) for share in shares.tolist()])
    return values.mean + values.deviation * expected, values.quantiles(shares)


def _shares(count: int) -> Numbers:
    """The middles of `count` equal parts of 0 to 1: no distribution without ends has those themselves."""
    count = min(count, distribution.MAX_POINTS)
    return np.asarray((np.arange(count) + 0.5) / count)


def _cells(one: Configuration) -> list[str]:
    """The quantiles of the table: the means of those of the runs, as tables have them."""
    runs = [found for found in (_ordered([record]) for record in one.records) if found.size]
    each = [found.quantiles(np.array(SHARES) / 100) for found in runs]
    return [caption.number(float(mean)) for mean in np.mean(each, axis=0)]


def _cells_of_points(points: Numbers) -> list[str]:
    """The quantiles of the table, of a distribution that no run has."""
    return [caption.number(float(np.percentile(points, share))) for share in SHARES]


def _scale(axes: Axes, across: str, drawn: Sequence[tuple[Numbers, Numbers]], *, alone: bool) -> None:
    axes.set_xlabel("\n".join(measure.wrapped(across, 2.6 if current().paper else 9.0, 7.5)))
    of = quantity.asked()
    axes.set_ylabel(of.label if of else "Ping, ms")
    every = np.concatenate([axis for points in drawn for axis in points])
    # A normal distribution is straight on linear axes only.
    if current().ping_scale == "log" and alone:
        raise UsageError("logarithmic scale: a normal distribution is straight on linear axes only")
    both: tuple[Literal["x", "y"], ...] = ("x", "y")
    for which in both:
        if of:
            parts.quantity_axis(axes, which, of, every)
        else:
            parts.ping_axis(axes, which, every)
    if float(every.min()) < 0 and not (current().ping_ms or current().throughput_mbps):
        axes.set_xlim(left=1.06 * float(every.min()))
    ends = (max(axes.get_xlim()[0], axes.get_ylim()[0]), min(axes.get_xlim()[1], axes.get_ylim()[1]))
    axes.plot(ends, ends, zorder=1, **DIAGONAL)


def _note(records: Sequence[Record], *, alone: bool) -> str:
    against = "the normal distribution" if alone else "the first configuration"
    of = quantity.asked()
    above = "values are greater" if of else "pings take longer"
    return (
        f"Points: the same quantiles of the {of.plural if of else 'answered pings'} {caption.when(records)} "
        f"and of {against}. Dashed: both are the same. Above it {above} than there."
    )


DIAGONAL: Any = {"color": theme.QUIET, "linewidth": 1.0, "linestyle": (0, (4, 2))}
"""Line on which both distributions are the same."""

SHARES = (50.0, 95.0, 99.0)
"""Percent; quantiles that the table below has."""
