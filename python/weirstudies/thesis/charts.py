"""The bar charts of the thesis, chapter 4: a configuration's four metrics, ours beside the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.plots import axes as parts
from weirlab.plots import theme
from weirstudies.thesis.findings import DIGITS
from weirstudies.thesis.study import METRICS, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure(rows: Sequence[Row], number: int) -> Figure:
    """The charts 4.`number`.1 to 4.`number`.4 of a configuration, from its rows."""
    seeds = len(rows[0].whole)
    counted = f"{seeds} seeds" if seeds > 1 else "1 seed"
    ours = "means of our runs from t = 0, with their 95 % intervals" if seeds > 1 else "our run from t = 0"
    chart = theme.framed(
        (
            rows[0].cell.configuration.title,
            "marker at R0, queue at R1: 10 Mbit/s, 200 ms round trip",
            f"world sim · {counted} · figures 4.{number}.1 to 4.{number}.4 of the thesis",
        ),
        f"Coloured: {ours}. Outlined, with the number in grey: the thesis.",
        f"Weir {_native.version()}",
        height=8.4,
    )
    panels = chart.subplots(2, 2).flatten()
    for place, (axes, metric) in enumerate(zip(panels, METRICS, strict=True)):
        _panel(axes, rows, metric)
        axes.set_title(f"Figure 4.{number}.{place + 1}: {TITLES[metric]}", size=10, loc="left")
    # Where the bars of few flows leave room.
    panels[0].legend(loc="upper left", frameon=False)
    return chart


def _panel(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    """Bars in groups: 50 flows, then 100, each with the cases in the thesis' order."""
    flows = sorted({row.cell.flows for row in rows})
    cases = list(dict.fromkeys(row.cell.case.name for row in rows))
    highest = 0.0
    for case, style in zip(cases, theme.styles(len(cases)), strict=True):
        for row in (row for row in rows if row.cell.case.name == case):
            at = flows.index(row.cell.flows) + (cases.index(case) - (len(cases) - 1) / 2) * STEP
            label = case if row.cell.flows == flows[0] else None
            tops = [_ours(axes, at - STEP / 4, row, metric, style.colour, label)]
            if row.published is not None:
                theirs = float(getattr(row.published, metric)) * SCALE.get(metric, 1.0)
                tops.append(_theirs(axes, at + STEP / 4, theirs, metric, style.colour))
            highest = max(highest, *tops)
    parts.from_zero(axes, "y", highest)
    axes.set_xticks(range(len(flows)), [f"{count} flows" for count in flows])
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def _ours(  # noqa: PLR0913, PLR0917 - what is drawn where and how
    axes: Axes, at: float, row: Row, metric: str, colour: str, label: str | None
) -> float:
    """A full bar with its interval; returns where it ends."""
    interval = row.interval(metric)
    scale = SCALE.get(metric, 1.0)
    top = interval.mean * scale
    axes.bar(at, top, WIDTH, color=colour, label=label)
    number = _short(top, metric)
    if interval.low is not None and interval.high is not None:
        top = interval.high * scale
        axes.vlines(at, interval.low * scale, top, color=theme.INK, linewidth=1)
    axes.text(at, top, number, **NUMBER)
    return top


def _theirs(axes: Axes, at: float, value: float, metric: str, colour: str) -> float:
    """An outlined bar; returns where it ends."""
    axes.bar(at, value, WIDTH, fill=False, edgecolor=colour, linewidth=1.2)
    axes.text(at, value, _short(value, metric), **NUMBER, color=theme.QUIET)
    return value


def _short(value: float, metric: str) -> str:
    """A number above a bar, as short as the thesis' own."""
    return f"{value:.{1 if metric == 'goodput' else DIGITS[metric]}f}"


NUMBER: Any = {"size": 6.5, "ha": "center", "va": "bottom"}

STEP = 0.22
WIDTH = 0.1
"""From case to case and of a bar, where groups are 1 apart."""

SCALE = {"goodput": 1e-3}
"""Figures that are drawn in thousands."""

TITLES = {
    "timeouts": "number of timeouts",
    "loss_percent": "probability of loss, %",
    "goodput": "average per-flow goodput, kB/s",
    "variation": "goodput, coefficient of variation",
}
