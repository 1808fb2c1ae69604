"""UDP flows over time: how long packets took, how many were lost, and how good voice streams sounded.

Each line is a UDP flow, a point an interval of the record (the score: a second). Lost packets are those whose
sequence numbers the receiver found missing; those of a voice stream that came too late for its jitter buffer
count in the score only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, theme
from weirlab.plots.scope import Scope
from weirlab.stats.udp import mos_by_second

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.theme import Style
    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the only one of `records`."""
    (record,) = records
    scope = scope or Scope(records)
    numbers = record.udp["flow"].unique().sort().to_list()
    if not numbers:
        raise UsageError(f"`{record.path}` has no UDP flows to draw")
    scores = {number: mos_by_second(record, number) for number in numbers}
    has_voice = any(one.height for one in scores.values())
    note = "One-way delay and loss of each interval, as the receivers of UDP flows count them."
    if has_voice:
        note += (
            " MOS: the mean opinion score of each second by the E-model (ITU-T G.107); 4.4 is the best call."
        )
    panels = 3 if has_voice else 2
    chart = theme.blank(records, title, note, height=1.8 + ROW * panels, runs=[scope.runs(record)])
    drawn = chart.subplots(panels, sharex=True, squeeze=False)[:, 0]
    parts.time_axis(list(drawn), record.reached_ns, scope)
    for axes in drawn:
        parts.phases(axes, record, named=axes is drawn[0])
    names = dict(record.flow_names.select("flow", "name").iter_rows())
    labels = caption.short_names([names[number] for number in numbers])
    for number, label, style in zip(numbers, labels, theme.styles(len(numbers)), strict=True):
        rows = record.udp.filter(pl.col("flow") == number).sort("t_ns")
        times = rows["t_ns"].to_numpy() / 1e9
        delay = rows["delay_mean_ns"].cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1e6
        expected = (rows["received_packets"] + rows["lost_packets"]).to_numpy().astype(float)
        lost = 100 * rows["lost_packets"].to_numpy() / np.where(expected > 0, expected, np.nan)
        _line(drawn[0], times, delay, style, label)
        _line(drawn[1], times, lost, style, label)
        if has_voice and scores[number].height:
            _line(drawn[2], scores[number]["t_s"].to_numpy(), scores[number]["mos"].to_numpy(), style, label)
    for axes, words in zip(drawn, ("One-way delay, ms", "Lost, %", "MOS"), strict=False):
        axes.set_ylabel(words)
    parts.from_zero(drawn[0], "y", _top(drawn[0]))
    parts.from_zero(drawn[1], "y", max(1.0, _top(drawn[1])))
    if has_voice:
        drawn[2].set_ylim(1, 4.6)
    drawn[0].legend(loc="upper left", bbox_to_anchor=(1.005, 1.03), borderaxespad=0, frameon=False)
    chart.align_ylabels()
    return chart


def _line(axes: Axes, x: np.ndarray, y: np.ndarray, style: Style, label: str) -> None:
    axes.plot(x, y, color=style.colour, linestyle=style.dash, linewidth=1.0, label=caption.short(label, 24))


def _top(axes: Axes) -> float:
    """A little above the greatest value that is drawn."""
    tops = [np.nanmax(line.get_ydata()) for line in axes.lines if np.isfinite(line.get_ydata()).any()]
    return 1.08 * float(max(tops, default=1.0)) or 1.0


ROW = 1.7
"""Height of a panel, in inches."""
