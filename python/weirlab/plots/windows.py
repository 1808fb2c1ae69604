"""Congestion windows over time, run above run, to see whether flows lose together.

Each line is a flow's congestion window in segments as its sender had it when it was sampled; black is the
mean over the flows. Ticks at the top are samples in which a flow began to retransmit. The whole time is drawn
unless a span is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.lines import Line2D

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, theme
from weirlab.plots.look import current
from weirlab.plots.named import run_names
from weirlab.plots.scope import Scope
from weirlab.record.configurations import configurations, numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.theme import Style
    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of `records`, one above the other."""
    scope = scope or Scope(records)
    longest = max(record.reached_ns for record in records) / 1e9
    start, end = scope.span_s or (0.0, longest)
    if start >= longest:
        raise UsageError(f"span {start:g}s..{end:g}s: the run ends at {longest:g} s")
    rows = [_samples(record, start, end) for record in records]
    flows = max(one["flow"].n_unique() for one in rows)
    high = max(ROW, 0.45 + LEGEND_ROW * (min(flows, MAX_FLOWS) + 1))
    note = (
        "Coloured: the congestion window of each flow. Black: their average. Ticks at the top: a flow "
        "began to retransmit, one row for each flow."
    )
    alone = len(configurations(records)) == len(records)
    runs = [scope.runs(record) for record in records] if alone else []
    chart = theme.blank(records, title, note, height=1.8 + high * len(records), runs=runs)
    drawn = chart.subplots(len(records), sharex=True, squeeze=False)[:, 0]
    parts.time_axis(list(drawn), max(record.reached_ns for record in records), scope)
    for axes, record, samples, name in zip(drawn, records, rows, run_names(records), strict=True):
        axes.set_ylabel("Window, segments")
        parts.phases(axes, record, named=axes is drawn[0] and len(records) == 1 and not current().paper)
        # In a column one legend stands above all runs, if their flows are the same in the same styles.
        shared = current().paper and axes is not drawn[0] and _names(record) == _names(records[0])
        _draw(axes, samples, _names(record), legend_too=not shared)
        if len(records) > 1:
            short = caption.short(name, 48 if current().paper else 120)
            axes.set_title(short, loc="left", size=parts.small() + 0.5, pad=3)
    theme.in_column(chart, 0.5 + 0.08 * min(flows, MAX_FLOWS) + 1.25 * len(records))
    return chart


def _samples(record: Record, start: float, end: float) -> pl.DataFrame:
    samples = record.tcp.filter((pl.col("t_ns") >= start * 1e9) & (pl.col("t_ns") <= end * 1e9))
    if samples.height == 0:
        raise UsageError(f"`{record.path}` has no samples of TCP senders to draw")
    return samples.sort("t_ns")


def _names(record: Record) -> dict[int, str]:
    """Name of each flow, by number: without what all have in common."""
    names = caption.short_names(numbered(record.flow_names["name"].to_list()))
    return dict(zip(record.flow_names["flow"].to_list(), names, strict=True))


def _draw(axes: Axes, samples: pl.DataFrame, names: dict[int, str], *, legend_too: bool) -> None:
    numbers = samples["flow"].unique().sort().to_list()
    table = samples.pivot(on="flow", index="t_ns", values="cwnd_segments", aggregate_function="first")
    times = table["t_ns"].to_numpy() / 1e9
    windows = table.select(str(number) for number in numbers).to_numpy().astype(float)
    top = float(np.nanmax(windows)) * (1 + MARGIN)
    many = len(numbers) > MAX_FLOWS
    grey = theme.Style(theme.QUIET, "-", "o")
    styles = [grey] * len(numbers) if many else theme.styles(len(numbers))
    legend: list[tuple[Artist, str]] = []
    for place, (number, style) in enumerate(zip(numbers, styles, strict=True)):
        (line,) = axes.plot(
            times,
            windows[:, place],
            color=style.colour,
            linestyle=style.dash,
            linewidth=0.5 if many else 0.9,
            drawstyle="steps-post",
        )
        height = top * (1 - MARGIN * (0.15 + 0.7 * place / max(1, len(numbers) - 1)))
        _ticks(axes, samples.filter(pl.col("flow") == number), height, style)
        if not many:
            legend.append((line, caption.short(names.get(number, f"flow {number}"), 24)))
    average = np.nanmean(windows, axis=1)
    axes.plot(times, average, color=theme.INK, linewidth=1.5, path_effects=parts.halo(1.5))
    parts.from_zero(axes, "y", top)
    legend.insert(0, (Line2D([], [], color=theme.INK, linewidth=1.5), "average"))
    if many:
        legend.append((Line2D([], [], color=grey.colour, linewidth=0.9), f"each of {len(numbers)} flows"))
    handles, words = zip(*legend, strict=True)
    if not legend_too:
        return
    theme.legend_beside(axes, handles, words, above=ABOVE, sample=2.6, pitch=1.34)


def _ticks(axes: Axes, samples: pl.DataFrame, height: float, style: Style) -> None:
    """A tick where a flow began to retransmit."""
    began = samples.with_columns(new=pl.col("retransmits").diff())
    began = began.filter((pl.col("new") > 0) & (pl.col("new").shift(1, fill_value=0) == 0))
    axes.plot(
        began["t_ns"].to_numpy() / 1e9,
        np.full(began.height, height),
        linestyle="none",
        marker="|",
        markersize=4,
        color=style.colour,
    )


ROW, LEGEND_ROW = 1.5, 0.17
"""Least height of a run, and that of a line of its legend; inches."""

ABOVE = 12.0
"""Points between axes and legend in a column of a paper: the name of a run stands there."""

MAX_FLOWS = 24
"""More flows than this cannot be told apart: all are grey then."""

MARGIN = 0.35
"""Room above the windows for the ticks, as a share of the tallest one."""
