"""Shaper: rate, delay and use of the line over time, of several runs on one line.

Grey is what the line can carry, in means of 500 ms. Above, the rates of the shapers; in the middle, the
mean ping; below, which share of the line was used. The direction is that in which more was delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.plots import axes as parts
from weirlab.plots import caption, table, theme
from weirlab.plots.look import current
from weirlab.plots.named import run_names
from weirlab.plots.scope import Scope
from weirlab.record.configurations import configurations
from weirlab.stats import busy_share, load_window_ns, summarise
from weirlab.stats.shaping import course, loaded_direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.theme import Style
    from weirlab.record import Record
    from weirlab.stats.shaping import Course


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of `records`."""
    direction = loaded_direction(records[0])
    courses = [course(record, direction, SLOT_S) for record in records]
    scope = scope or Scope(records)
    # Runs of one configuration must be told apart here, where each is a line.
    alone = len(configurations(records)) == len(records)
    styles = scope.styles(records) if alone else theme.styles(len(records))
    note = (
        f"Means of {SLOT_S * 1e3:.0f} ms; the rate is that at the end of each. Grey: what the line can carry "
        f"({direction}). A run without a shaper has no rate."
    )
    runs = [scope.runs(record) for record in records] if alone else []
    chart = theme.blank(records, title, note, height=9.0, runs=runs)
    rows = [
        table.Row({"color": style.colour, "linewidth": 6}, name, _cells(record, one))
        for style, name, record, one in zip(styles, run_names(records), records, courses, strict=True)
    ]
    table.add(chart, ["runs", "ping, ms", "p99, ms", "line used, %"], rows)
    rate, delay, used = chart.subplots(3, sharex=True)
    parts.time_axis([rate, delay, used], max(record.reached_ns for record in records), scope)
    for axes in (rate, delay, used):
        parts.phases_of_all(axes, records, named=axes is rate and not current().paper)
    _rates(rate, courses, styles)
    _delays(delay, courses, styles)
    _shares(used, courses, styles)
    theme.in_column(chart, 3.8 + 0.14 * len(records))
    return chart


def _cells(record: Record, one: Course) -> list[str]:
    """Mean and 99th percentile of the pings under load, and the share of the line that was used."""
    loaded = summarise(record).latency.loaded
    start, end = load_window_ns(record)
    share = busy_share(record, one.direction, start, end)
    pings = ["-", "-"] if loaded is None else [caption.number(loaded.mean), caption.number(loaded.p99)]
    return [*pings, "-" if share is None else f"{share * 100:.1f}"]


def _rates(axes: Axes, courses: Sequence[Course], styles: Sequence[Style]) -> None:
    first = courses[0]
    axes.stairs(
        first.capacity_mbps,
        first.edges_s,
        color=theme.BAND,
        fill=True,
        zorder=1,
        label="what the line can carry",
    )
    for one, style in zip(courses, styles, strict=True):
        axes.stairs(one.rate_mbps, one.edges_s, color=style.colour, linewidth=1.3, baseline=None, zorder=3)
    rates = np.concatenate([one.rate_mbps for one in courses])
    shown = rates[np.isfinite(rates)]
    most = float(first.capacity_mbps.max())
    top = max(most, min(float(shown.max()), 1.5 * most) if shown.size else 0.0)
    parts.throughput_axis(axes, "y", top)
    axes.set_ylabel("Rate, Mbit/s")


def _delays(axes: Axes, courses: Sequence[Course], styles: Sequence[Style]) -> None:
    delays = np.concatenate([one.delay_ms for one in courses])
    parts.pings(axes, delays[np.isfinite(delays)], most=6)
    for one, style in zip(courses, styles, strict=True):
        axes.plot(one.middles_s, one.delay_ms, color=style.colour, linewidth=1.1)
        parts.lone_points(axes, one.middles_s, one.delay_ms, style.colour)


def _shares(axes: Axes, courses: Sequence[Course], styles: Sequence[Style]) -> None:
    for one, style in zip(courses, styles, strict=True):
        steps = round(1 / SLOT_S)
        used, could = (
            np.convolve(values, np.ones(steps), "valid") for values in (one.used_mbps, one.could_mbps)
        )
        share = np.where(could > 0, used / np.maximum(could, 1e-9), np.nan) * 100
        axes.plot(one.edges_s[steps:], share, color=style.colour, linewidth=1.1)
        parts.lone_points(axes, one.edges_s[steps:], share, style.colour)
    axes.set_ylim(0, 105)
    axes.set_ylabel("Line used, %,\nlast second")


SLOT_S = 0.5
"""Half a second: shorter slots show the packets of a slow line, longer ones hide what a shaper does."""
