"""Overlay: ping over time of two runs in one chart, before and after, as in the cFosSpeed report.

Every ping of all probes is a point, round trip in ms: light the first run, dark the second; dashed
lines are the averages under load. Below stand the increases over the idle line and, as there, the
factor between them: increase without / increase with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.plots import axes as parts
from weirlab.plots import caption, series, table, theme
from weirlab.record.set_ups import run_names
from weirlab.stats import compare, load_window_ns, summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from weirlab.record import Record
    from weirlab.stats import LatencySummary


@dataclass(frozen=True)
class _Look:
    """How a run is drawn: colours of its pings and of their average, and the latter's dashes."""

    pings: str
    average: str
    dash: Any


def figure(records: Sequence[Record], title: str | None) -> Figure:
    """The chart of the two records, the first one light."""
    found = [summarise(record).latency for record in records]
    both = [series.pings(record) for record in records]
    names = run_names(records)
    note = f"Every ping of all probes is a point. Dashed: averages {caption.when(records)}."
    chart = theme.blank(records, title, note)
    rows = [
        table.Row({"color": look.pings, "linewidth": 6}, name, _cells(one))
        for look, name, one in zip(LOOKS, names, found, strict=True)
    ]
    headings = ["pings", "idle, ms", "average, ms", "increase, ms", "lost"]
    table.add(chart, headings, rows, foot=factor_line(records))
    axes = chart.subplots()
    parts.milliseconds(axes, np.concatenate([one.rtt_ms for one in both]))
    axes.set_ylabel("Ping, ms")
    axes.set_xlabel("Time, s")
    longest = max(records, key=lambda record: record.reached_ns)
    axes.set_xlim(0, longest.reached_ns / 1e9)
    parts.phases(axes, longest, named=True)
    labels = []
    for record, pings, one, look in zip(records, both, found, LOOKS, strict=True):
        parts.points(axes, pings, look.pings)
        if one.loaded:
            mean = one.loaded.mean
            window = [t / 1e9 for t in load_window_ns(record)]
            axes.plot(
                window,
                [mean, mean],
                color=look.average,
                linestyle=look.dash,
                linewidth=1.8,
                zorder=5,
                path_effects=parts.halo(1.8),
            )
            labels.append((mean, f"average {caption.number(mean)}", look.average))
    parts.beside(axes, labels, 4.0)
    return chart


def factor_line(records: Sequence[Record]) -> str:
    """By which factor the load's increase of the ping became smaller; empty if that is unknown.

    It is unknown for two runs of one set-up too, which are repetitions and not before and after.
    """
    before, *others = compare(records)
    if not others or not before.increase_ms or not others[0].increase_ms:
        return ""
    after = others[0]
    if after.factor.factor is None or after.increase_ms is None:
        return ""
    increases = [caption.number(one.mean) for one in (before.increase_ms, after.increase_ms)]
    factor = caption.number(after.factor.factor)
    return f"Increase {increases[0]} ms / increase {increases[1]} ms = factor {factor}"


def _cells(found: LatencySummary) -> list[str]:
    def figure_of(value: float | None) -> str:
        return "-" if value is None else caption.number(value)

    return [
        figure_of(found.idle.mean if found.idle else None),
        figure_of(found.loaded.mean if found.loaded else None),
        figure_of(found.increase_mean_ms),
        caption.per_cent(found.loss_rate) if found.loss_rate else "0",
    ]


LOOKS = (
    _Look("#f5b971", "#a85400", (0, (6, 2))),
    _Look("#20407f", "#0a1c40", (0, (2, 1.2))),
)
"""Light and dark, in colour and in grey."""
