"""Congestion windows over time, run above run, to see whether flows lose together.

Each line is a flow's congestion window in segments as its sender had it when it was sampled; black is the sum
of all windows divided by their number. Ticks at the top are samples in which a flow began to retransmit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import theme
from weirlab.record.set_ups import run_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None) -> Figure:
    """The chart of `records`, one above the other: `SHOWN` seconds from the middle of the load on."""
    start, end = _part(records)
    note = (
        "Coloured: the congestion window of each flow. Black: their average. Ticks at the top: a flow "
        "began to retransmit, one row for each flow."
    )
    chart = theme.blank(records, title, note, height=1.8 + ROW * len(records))
    drawn = chart.subplots(len(records), sharex=True, squeeze=False)[:, 0]
    for axes, record, name in zip(drawn, records, run_names(records), strict=True):
        samples = record.tcp.filter((pl.col("t_ns") >= start * 1e9) & (pl.col("t_ns") <= end * 1e9))
        if samples.height == 0:
            raise UsageError(f"`{record.path}` has no samples of TCP senders to draw")
        axes.set_xlim(start, end)
        axes.set_ylabel("Window, segments")
        _draw(axes, samples.sort("t_ns"))
        if len(records) > 1:
            axes.set_title(name, loc="left", size=9, pad=3)
    drawn[-1].set_xlabel("Time, s")
    chart.align_ylabels()
    return chart


def _part(records: Sequence[Record]) -> tuple[float, float]:
    """Which seconds are drawn: windows of a whole minute would be a thicket."""
    start, end = records[0].phase("load") or (0, records[0].reached_ns)
    middle = (start + end) / 2e9
    return middle, min(middle + SHOWN, end / 1e9)


def _draw(axes: Axes, samples: pl.DataFrame) -> None:
    numbers = samples["flow"].unique().sort().to_list()
    table = samples.pivot(on="flow", index="t_ns", values="cwnd_segments", aggregate_function="first")
    times = table["t_ns"].to_numpy() / 1e9
    windows = table.select(str(number) for number in numbers).to_numpy().astype(float)
    top = float(np.nanmax(windows)) * (1 + MARGIN)
    for place, number in enumerate(numbers):
        colour = theme.COLOURS[place % len(theme.COLOURS)]
        axes.plot(times, windows[:, place], color=colour, linewidth=0.9, drawstyle="steps-post")
        began = samples.filter(pl.col("flow") == number).with_columns(new=pl.col("retransmits").diff())
        began = began.filter((pl.col("new") > 0) & (pl.col("new").shift(1, fill_value=0) == 0))
        height = top * (1 - MARGIN * (0.15 + 0.7 * place / max(1, len(numbers) - 1)))
        axes.plot(
            began["t_ns"].to_numpy() / 1e9,
            np.full(began.height, height),
            linestyle="none",
            marker="|",
            markersize=4,
            color=colour,
        )
    average = np.nanmean(windows, axis=1)
    axes.plot(times, average, color=theme.INK, linewidth=1.5, path_effects=parts.halo(1.5))
    parts.from_zero(axes, "y", top)


SHOWN = 20.0
ROW = 1.5
MARGIN = 0.35
"""Room above the windows for the ticks, as a share of the tallest one."""
