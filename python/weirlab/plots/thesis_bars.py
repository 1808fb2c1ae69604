"""The bar charts of the thesis, chapter 4: a configuration's four metrics, ours beside the published ones."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from weirlab.plots import axes as parts
from weirlab.plots import caption, theme
from weirlab.studies.thesis import METRICS, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure(rows: Sequence[Row], number: int) -> Figure:
    """The charts 4.`number`.1 to 4.`number`.4 of a configuration, from its rows."""
    configuration = rows[0].cell.configuration
    chart = theme.framed(
        (
            f"Configuration {configuration.name}: {configuration.tcp.upper()}, {configuration.parameters} "
            "RED-like parameters",
            "marker at R0, queue at R1: 10 Mbit/s, 200 ms round trip",
            f"world sim · {len(rows[0].whole)} seeds · figures 4.{number}.1 to 4.{number}.4 of the thesis",
        ),
        "Coloured: means of our runs from t = 0, with their 95 % intervals. Outlined, with the number in "
        "grey: the thesis.",
        f"Weir {metadata.version('weirlab')}",
        height=8.4,
    )
    panels = chart.subplots(2, 2).flatten()
    for place, (axes, metric) in enumerate(zip(panels, METRICS, strict=True)):
        _panel(axes, rows, metric)
        axes.set_title(f"Figure 4.{number}.{place + 1}: {TITLES[metric]}", size=10, loc="left")
    handles, labels = panels[0].get_legend_handles_labels()
    chart.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return chart


def _panel(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    """Bars in groups: 50 flows, then 100, each with the cases in the thesis' order."""
    flows = sorted({row.cell.flows for row in rows})
    cases = list(dict.fromkeys(row.cell.case.name for row in rows))
    highest = 0.0
    for case, style in zip(cases, theme.styles(len(cases)), strict=True):
        for row in (row for row in rows if row.cell.case.name == case):
            at = flows.index(row.cell.flows) + (cases.index(case) - (len(cases) - 1) / 2) * STEP
            interval = row.interval(metric)
            label = case if row.cell.flows == flows[0] else None
            axes.bar(at - STEP / 4, interval.mean, WIDTH, color=style.colour, label=label)
            top = interval.mean
            if interval.low is not None and interval.high is not None:
                top = interval.high
                axes.vlines(at - STEP / 4, interval.low, interval.high, color=theme.INK, linewidth=1)
            axes.text(at - STEP / 4, top, f" {_short(interval.mean)}", size=6.5, ha="center", va="bottom")
            highest = max(highest, top)
            if row.published is not None:
                theirs = float(getattr(row.published, metric))
                axes.bar(at + STEP / 4, theirs, WIDTH, fill=False, edgecolor=style.colour, linewidth=1.2)
                axes.text(
                    at + STEP / 4,
                    theirs,
                    _short(theirs),
                    size=6.5,
                    ha="center",
                    va="bottom",
                    color=theme.QUIET,
                )
                highest = max(highest, theirs)
    parts.from_zero(axes, "y", highest)
    axes.set_xticks(range(len(flows)), [f"{count} flows" for count in flows])
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def _short(value: float) -> str:
    """A number above a bar, with three digits at most."""
    return (
        f"{value / 1000:.1f}k"
        if value >= 10_000
        else caption.number(value)
        if value < 100
        else f"{value:.0f}"
    )


STEP = 0.22
WIDTH = 0.1
"""From case to case and of a bar, where groups are 1 apart."""

TITLES = {
    "timeouts": "number of timeouts",
    "loss_percent": "probability of loss, %",
    "goodput": "average per-flow goodput, bytes/s",
    "variation": "goodput, coefficient of variation",
}
