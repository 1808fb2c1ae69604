"""Ellipses: throughput against latency during the load; the better, the further up and left.

A point is a step of at least 200 ms of a run: the mean round trip in ms of the answered pings that were sent
in it, and the goodput in Mbit/s of all flows of a direction together. The ellipse of a configuration has its
centre at the means of all its steps; it reaches one standard deviation, and leans as the two vary together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, series, table, theme
from weirlab.plots.look import current
from weirlab.plots.named import configurations
from weirlab.plots.scope import Scope
from weirlab.stats.pings import load_window_ns
from weirlab.stats.summary import totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.series import Numbers
    from weirlab.record import Record
    from weirlab.stats import Direction


@dataclass(frozen=True)
class Steps:
    """Latency and throughput of the steps of a load, side by side.

    Attributes:
        ping_ms: mean round trip of the answered pings that were sent in each step, in ms.
        mbps: goodput of all flows of the direction in each step, in Mbit/s.
    """

    ping_ms: Numbers
    mbps: Numbers

    def outline(self) -> tuple[Numbers, Numbers]:
        """Pings and throughputs on the ellipse that reaches one standard deviation; needs two steps."""
        variances, axes = np.linalg.eigh(np.cov(self.ping_ms, self.mbps))
        turn = np.linspace(0, 2 * np.pi, 181)
        # A variance of 0 may come out a little below it.
        circle = np.sqrt(np.maximum(variances, 0))[:, None] * np.array([np.cos(turn), np.sin(turn)])
        ping, mbps = axes @ circle
        return ping + self.ping_ms.mean(), mbps + self.mbps.mean()


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of all configurations in `records`, with a panel for each direction that has flows."""
    groups = configurations(records)
    panels: dict[str, list[Steps]] = {}
    for label, direction in DIRECTIONS.items():
        found = [steps(one.records, direction) for one in groups]
        if any(one.mbps.size for one in found):
            panels[label] = found
    if not panels:
        raise UsageError(f"`{records[0].path}` has no throughput beside answered pings to draw")
    styles = (scope or Scope(records)).of_styles([one.records for one in groups])
    rows = [
        table.Row(
            {"color": style.colour, "linestyle": style.dash, "linewidth": 2.0, "marker": style.marker},
            one.name,
            [cell for found in panels.values() for cell in _cells(found[place])],
        )
        for place, (style, one) in enumerate(zip(styles, groups, strict=True))
    ]
    headings = ["configuration", *(text for label in panels for text in (f"{label}, Mbit/s", "at ping, ms"))]
    height = 5.2 + table.height(headings, rows)
    chart = theme.blank(records, title, _note(records) + table.alike(rows), height=height)
    table.add(chart, headings, rows)
    for axes, (label, found) in zip(_panels(chart, len(panels)), panels.items(), strict=True):
        _scale(axes, label, found)
        for one, style in zip(found, styles, strict=True):
            _draw(axes, one, style)
    return chart


def _panels(chart: Figure, count: int) -> list[Axes]:
    """Axes side by side, or above each other in a column."""
    if current().paper:
        chart.set_figheight(theme.PAPER_HEIGHT * (0.25 + 0.75 * count))
        return list(chart.subplots(count, 1, squeeze=False)[:, 0])
    return list(chart.subplots(1, count, squeeze=False)[0])


def steps(records: Sequence[Record], direction: Direction) -> Steps:
    """The steps of all runs that have both answered pings and flows of the direction."""
    ping_ms, mbps = zip(*(_of(record, direction) for record in records), strict=True)
    return Steps(np.concatenate(ping_ms), np.concatenate(mbps))


def _of(record: Record, direction: Direction) -> tuple[Numbers, Numbers]:
    start, end = load_window_ns(record)
    interval = record.interval_ns("throughput") or STEP_NS
    length = interval * max(1, -(-STEP_NS // interval))
    # An interval is known by its end; its middle tells in which step it lies.
    t_s, mbps = totals(record, direction)
    of_interval = ((t_s * 1e9 - interval / 2 - start) // length).astype(int)
    count = int(of_interval.max(initial=0)) + 1
    total, number = np.zeros(count), np.zeros(count)
    for at, probe, rtt_ns, known in record.round_trip_chunks():
        answered = (
            np.isin(probe, record.ping_probes) & (at >= start) & (at < min(end, start + count * length))
        )
        if known is not None:
            answered &= known
        step = (at[answered] - start) // length
        total += np.bincount(step, rtt_ns[answered] / 1e6, count)
        number += np.bincount(step, minlength=count)
    intervals = np.bincount(of_interval, minlength=count)
    both = (number > 0) & (intervals > 0)
    goodput = np.bincount(of_interval, mbps, count)
    return total[both] / number[both], goodput[both] / intervals[both]


def _scale(axes: Axes, label: str, found: Sequence[Steps]) -> None:
    axes.set_xlabel("Ping, ms")
    axes.set_ylabel(f"Total {label}, Mbit/s")
    parts.ping_axis(axes, "x", np.concatenate([one.ping_ms for one in found]))
    parts.throughput_axis(axes, "y", max(float(one.mbps.max()) for one in found if one.mbps.size))


def _draw(axes: Axes, one: Steps, style: theme.Style) -> None:
    if one.mbps.size == 0:
        return
    axes.plot(
        one.ping_ms,
        one.mbps,
        linestyle="none",
        marker=style.marker,
        markersize=3.0,
        markeredgewidth=0,
        color=style.colour,
        alpha=0.35,
        rasterized=True,
    )
    if one.mbps.size > 1:
        axes.plot(*one.outline(), color=style.colour, linestyle=style.dash, linewidth=2.0)
    axes.plot(
        [one.ping_ms.mean()],
        [one.mbps.mean()],
        linestyle="none",
        marker=style.marker,
        markersize=6,
        markeredgecolor="white",
        color=style.colour,
        zorder=6,
    )


def _cells(one: Steps) -> list[str]:
    if one.mbps.size == 0:
        return ["-", "-"]
    return [caption.number(float(one.mbps.mean())), caption.number(float(one.ping_ms.mean()))]


def _note(records: Sequence[Record]) -> str:
    note = (
        "Better is up and left. Points: goodput and mean of the answered pings in each step of 200 ms, "
        f"or one longer interval, {caption.when(records)}. Large marker and figures: means of the steps that "
        "have pings; ellipse: one standard deviation around them."
    )
    if any(series.exceeds_line(one, "down") or series.exceeds_line(one, "up") for one in records):
        note += f" {series.PEAKS}"
    return note


DIRECTIONS: dict[str, Direction] = {"download": "down", "upload": "up"}
"""The directions by what a reader calls them."""

STEP_NS = 200_000_000
"""Nanoseconds; the least length of a step, in which some pings are sent and goodput is no single burst."""
