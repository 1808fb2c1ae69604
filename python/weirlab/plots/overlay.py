"""Overlay: ping over time of several configurations in one chart, as in the cFosSpeed report.

Every ping of all probes is a point, round trip in ms, of the first run of each configuration; dashed lines
are the averages under load, dotted ones those of the idle line. Below stand the figures of all runs, as
tables have them: of two configurations with the factor between them, increase without / increase with, as
in that report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.plots import axes as parts
from weirlab.plots import caption, table, theme
from weirlab.plots.named import configurations, run_names
from weirlab.plots.scope import Scope
from weirlab.plots.thinned import EVERY_PING, drawn_pings
from weirlab.stats import beside, load_window_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.theme import Style
    from weirlab.record import Record
    from weirlab.stats import Comparison, Factor, Interval


@dataclass(frozen=True)
class _Drawn:
    """A configuration: its name, the run whose pings are drawn, how many there are, and its figures."""

    name: str
    record: Record
    runs: int
    figures: Comparison


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the configurations of `records`, of which the first is the baseline.

    Records of a single configuration are drawn each by itself. Of more than `MAX_CONFIGURATIONS` the first is
    drawn and the one under which pings take least longer.
    """
    scope = scope or Scope(records)
    every = _configurations(records)
    drawn = _chosen(every)
    chart = theme.blank(
        [one.record for one in drawn],
        title,
        _note(records, every, drawn),
        runs=[one.runs for one in drawn],
    )
    styles = scope.styles([one.record for one in drawn])
    if len({style.colour for style in styles}) < len(drawn):
        # Points have no dashes: of very many configurations two have one colour.
        styles = theme.styles(len(drawn))
    rows = [
        table.Row({"color": style.colour, "linewidth": 6}, one.name, _cells(one.figures))
        for style, one in zip(styles, drawn, strict=True)
    ]
    headings = ["pings", "idle, ms", "average, ms", "increase, ms", "factor", "lost"]
    foot = factor_line([one.figures for one in drawn]) if len(drawn) == 2 else ""
    table.add(chart, headings, rows, foot=foot)
    _draw(chart.subplots(), drawn, styles, scope)
    return chart


def factor_line(comparisons: Sequence[Comparison]) -> str:
    """By which factor the load's increase of the ping became smaller; empty if that is unknown."""
    before, after = comparisons
    if before.increase_ms is None or after.increase_ms is None or after.factor.factor is None:
        return ""
    increases = [caption.number(one.mean) for one in (before.increase_ms, after.increase_ms)]
    factor = caption.number(after.factor.factor)
    return f"Increase {increases[0]} ms / increase {increases[1]} ms = factor {factor}"


def _configurations(records: Sequence[Record]) -> list[_Drawn]:
    groups = configurations(records)
    if len(groups) == 1:
        names = run_names(records)
        return [
            _Drawn(name, record, 1, beside([record])[0]) for name, record in zip(names, records, strict=True)
        ]
    return [
        _Drawn(one.name, one.records[0], len(one.records), figures)
        for one, figures in zip(groups, beside(records), strict=True)
    ]


def _chosen(every: Sequence[_Drawn]) -> list[_Drawn]:
    if len(every) <= MAX_CONFIGURATIONS:
        return list(every)

    def increase(one: _Drawn) -> float:
        return one.figures.increase_ms.mean if one.figures.increase_ms else np.inf

    best = min(every[1:], key=increase)
    return [every[0], best]


def _note(records: Sequence[Record], every: Sequence[_Drawn], drawn: Sequence[_Drawn]) -> str:
    note = f"{EVERY_PING}. Dashed: averages {caption.when(records)}."
    if any(one.figures.idle_ms for one in drawn):
        note = f"{note[:-1]}; dotted: idle."
    if max(one.runs for one in drawn) > 1:
        note += " Points: the first run of each configuration; averages and table: means of all its runs."
    if len(drawn) < len(every):
        note += f" Of {len(every)} configurations the first is drawn, and the one with the least increase."
    return note


def _draw(axes: Axes, drawn: Sequence[_Drawn], styles: Sequence[Style], scope: Scope) -> None:
    pings = [drawn_pings(one.record, scope.span_s) for one in drawn]
    parts.pings(axes, np.concatenate([one.of_all_ms for one in pings]))
    records = [one.record for one in drawn]
    parts.time_axis([axes], max(record.reached_ns for record in records), scope)
    parts.phases_of_all(axes, records, named=True)
    labels = []
    for one, points, style in zip(drawn, pings, styles, strict=True):
        parts.points(axes, points, style.colour)
        if one.figures.loaded_ms:
            mean = one.figures.loaded_ms.mean
            axes.plot(
                [t / 1e9 for t in load_window_ns(one.record)],
                [mean, mean],
                color=theme.darker(style.colour),
                linestyle=(0, (6, 2)) if style.dash == "-" else style.dash,
                linewidth=2.0,
                zorder=5,
                path_effects=parts.halo(2.0),
            )
            labels.append((mean, f"average {caption.number(mean)}", theme.darker(style.colour)))
    # Configurations that are on one line have one idle average, as far as its digits tell.
    idle = {
        caption.number(one.figures.idle_ms.mean): one.figures.idle_ms.mean
        for one in drawn
        if one.figures.idle_ms
    }
    for words, mean in idle.items():
        axes.axhline(mean, color=theme.INK, linestyle=(0, (1, 1.5)), linewidth=1.3, zorder=4)
        labels.append((mean, f"idle {words}", theme.INK))
    parts.beside(axes, labels, 4.0)


def _factor(found: Factor) -> str:
    if found.factor is not None:
        return caption.number(found.factor)
    return "-" if found.low is None else f"> {caption.number(found.low)}"


def _cells(one: Comparison) -> list[str]:
    def figure_of(value: Interval | None) -> str:
        return "-" if value is None else caption.number(value.mean)

    lost = one.lost_share
    return [
        figure_of(one.idle_ms),
        figure_of(one.loaded_ms),
        figure_of(one.increase_ms),
        _factor(one.factor),
        "-" if lost is None else caption.per_cent(lost) if lost else "0",
    ]


MAX_CONFIGURATIONS = 4
"""More configurations than this hide each other's points."""
