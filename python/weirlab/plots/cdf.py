"""CDF: which share of the pings during the load took at most how long (Flent's `ping_cdf`).

Round trips in ms, per cent of the pings that were answered; how many were lost stands in the table
below. One record has a curve for each probe, several have one for each configuration with all its
repetitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, distribution, quantity, table, theme
from weirlab.plots.look import current
from weirlab.plots.named import configurations
from weirlab.plots.scope import Scope
from weirlab.stats import beside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.distribution import Cumulative
    from weirlab.plots.quantity import Quantity
    from weirlab.plots.series import Numbers
    from weirlab.record import Record
    from weirlab.stats import Comparison


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of one record, or of several beside each other.

    The table below has the figures of `compare`: of repetitions the means over the runs.
    """
    of = quantity.asked()
    if len(records) == 1 and current().names:
        raise UsageError("names: of one record chart `cdf` has a curve for each of its parts; use a title")
    if of and len(records) == 1:
        curves, what = _of_parts(of, records[0]), "flow" if of.axis != "throughput" else "direction"
        figures = [_quantiles(of, [values]) for values in of.by_part(records[0]).values()]
        styles = theme.styles(len(curves))
    elif of:
        groups = configurations(records)
        curves, what = (
            {one.name: distribution.cumulative_of(of.pooled(one.records)) for one in groups},
            CONFIGURATION,
        )
        figures = [_quantiles(of, [of.of(record) for record in one.records]) for one in groups]
        styles = (scope or Scope(records)).of_styles([one.records for one in groups])
    elif len(records) == 1:
        curves, what = _of_probes(records[0]), "probe"
        figures = [[one.median_ms, one.p95_ms, one.p99_ms] for one in curves.values()]
        styles = theme.styles(len(curves))
    else:
        curves, what = _of_configurations(records), CONFIGURATION
        figures = [_means(one) for one in beside(records)]
        styles = (scope or Scope(records)).of_styles([one.records for one in configurations(records)])
    rows = [
        table.Row(
            {"color": style.colour, "linestyle": style.dash, "linewidth": 2.0},
            name,
            [*map(_ms, of_curve), *([] if of else [_lost(one)])],
        )
        for style, (name, one), of_curve in zip(styles, curves.items(), figures, strict=True)
    ]
    unit = of.unit if of else "ms"
    names = ["median", *(f"p{share}" for share in of.shares[1:])] if of else ["median", "p95", "p99"]
    headings = [what, *(f"{name}, {unit}" if unit else name for name in names)]
    headings += [] if of else ["lost"]
    height = max(theme.HEIGHT, 5.4 + table.height(headings, rows))
    chart = theme.blank(records, title, _note(records, curves) + table.alike(rows), height=height)
    table.add(chart, headings, rows)
    axes = chart.subplots()
    _scale(axes, list(curves.values()))
    for style, one in zip(styles, curves.values(), strict=True):
        _draw(axes, one, style)
    return chart


def _of_probes(record: Record) -> dict[str, Cumulative]:
    probes = distribution.pings_by_probe(record)
    return dict(zip(caption.short_names(list(probes)), probes.values(), strict=True))


def _of_parts(of: Quantity, record: Record) -> dict[str, Cumulative]:
    found = of.by_part(record)
    names = caption.short_names(list(found))
    curves = [distribution.cumulative_of(values) for values in found.values()]
    return dict(zip(names, curves, strict=True))


def _quantiles(of: Quantity, runs: Sequence[Numbers]) -> list[float | None]:
    """The quantiles of its table: the means of those of the runs."""
    return [float(np.mean([np.percentile(values, share) for values in runs])) for share in of.shares]


def _of_configurations(records: Sequence[Record]) -> dict[str, Cumulative]:
    return {one.name: distribution.pooled_pings(one.records) for one in configurations(records)}


def _means(one: Comparison) -> list[float | None]:
    """Median, p95 and p99 of a configuration, as tables have them."""
    return [found.mean if found else None for found in (one.median_ms, one.p95_ms, one.p99_ms)]


def _scale(axes: Axes, curves: Sequence[Cumulative]) -> None:
    of = quantity.asked()
    every = np.concatenate([one.rtt_ms for one in curves])
    if of:
        axes.set_xlabel(of.label)
        parts.quantity_axis(axes, "x", of, every)
        axes.set_ylabel("Values that are no greater, %")
    else:
        axes.set_xlabel("Ping, ms")
        parts.ping_axis(axes, "x", every)
        answered = "" if current().paper else " of those answered"
        axes.set_ylabel(f"Pings that took no longer, %{answered}")
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 10))
    for share in (50, 95, 99):
        axes.axhline(share, color=theme.QUIET, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    parts.beside(axes, [(share, f"{share} %", theme.QUIET) for share in (50, 95, 99)], 4.0)


def _draw(axes: Axes, one: Cumulative, style: theme.Style) -> None:
    if one.percent.size == 0 or one.lost == one.sent:
        # Lines without a point have no place, and the layout would make room for one.
        return
    axes.plot(
        one.rtt_ms,
        one.percent,
        color=style.colour,
        linestyle=style.dash,
        linewidth=2.0,
        clip_on=one.rtt_ms[-1] > axes.get_xlim()[1] or one.rtt_ms[0] < axes.get_xlim()[0],
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else caption.number(value)


def _lost(one: Cumulative) -> str:
    if one.lost is None:
        return "-"
    return caption.per_cent(one.lost / one.sent) if one.lost else "0"


def _note(records: Sequence[Record], curves: Mapping[str, Cumulative]) -> str:
    of = quantity.asked()
    note = f"All {of.plural if of else 'pings'} {caption.when(records)}"
    if len(records) > len(curves) > 0 and len(records) > 1:
        note += ": curves of all runs of a configuration together, figures the means of its runs"
    if any(one.lost for one in curves.values()):
        note += ". Curves and quantiles are of the answered ones"
    return note + "."


CONFIGURATION = "configuration"
