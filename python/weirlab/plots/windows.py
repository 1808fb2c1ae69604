"""Congestion windows over time, run above run, to see whether flows lose together.

Each line is a flow's congestion window in segments as its sender had it when it was sampled; black is the
mean over the flows. Ticks at the top are samples in which a flow began to retransmit. The whole time is drawn
unless a span is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from weirlab.errors import UsageError
from weirlab.plots import axes as parts
from weirlab.plots import caption, theme
from weirlab.plots.gathered import Gathered
from weirlab.plots.look import current
from weirlab.plots.named import run_names
from weirlab.plots.scope import Scope
from weirlab.record.configurations import configurations, numbered

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers
    from weirlab.plots.theme import Style
    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of `records`, one above the other."""
    scope = scope or Scope(records)
    longest = max(record.reached_ns for record in records) / 1e9
    start, end = scope.span_s or (0.0, longest)
    if start >= longest:
        raise UsageError(f"span {start:g}s..{end:g}s: the run ends at {longest:g} s")
    theme.check_height(records, 1.8 + ROW * len(records))
    rows = [_samples(record, start, end) for record in records]
    keys = [_key(record, one.lines) for record, one in zip(records, rows, strict=True)]
    lines = max(min(len(key), MAX_FLOWS) + sum(name.count("\n") for name in key) for key in keys)
    high = max(ROW, 0.45 + LEGEND_ROW * (lines + 1))
    note = (
        "Coloured: the congestion window of each flow. Black: their average. Ticks at the top: a flow "
        f"began to retransmit, one row for each flow.{max((one.note for one in rows), key=len)}"
    )
    alone = len(configurations(records)) == len(records)
    runs = [scope.runs(record) for record in records] if alone else []
    chart = theme.blank(records, title, note, height=1.8 + high * len(records), runs=runs)
    drawn = chart.subplots(len(records), sharex=True, squeeze=False)[:, 0]
    parts.time_axis(list(drawn), max(record.reached_ns for record in records), scope)
    for axes, record, samples, key, name in zip(drawn, records, rows, keys, run_names(records), strict=True):
        axes.set_ylabel("Window, segments")
        parts.phases(axes, record, named=axes is drawn[0] and len(records) == 1 and not current().paper)
        # In a column one legend stands above all runs, if their flows are the same in the same styles.
        shared = current().paper and axes is not drawn[0] and key == keys[0]
        _draw(axes, samples, key, legend_too=not shared)
        if len(records) > 1:
            short = caption.short(name, 48 if current().paper else 120)
            axes.set_title(short, loc="left", size=parts.small() + 0.5, pad=3)
    theme.in_column(chart, 0.5 + 0.08 * lines + 1.25 * len(records))
    return chart


@dataclass(frozen=True, kw_only=True)
class _Samples:
    """What the senders of a run had.

    Attributes:
        lines: of each flow, by number and in their order, the times of its samples in seconds and its windows
            in segments; NaN where another flow has a sample and it has none.
        average: these times, and the mean of the windows that are told there.
        began: when each flow began to retransmit, in seconds.
        note: a sentence on which samples these are; empty if all are.
    """

    lines: dict[int, tuple[Numbers, Numbers]]
    average: tuple[Numbers, Numbers]
    began: dict[int, Numbers]
    note: str


def _samples(record: Record, start: float, end: float) -> _Samples:
    found = Gathered(record.reached_ns / 1e9, (start, end), averaged=(WINDOW,))
    retransmits: dict[int, _Beginnings] = {}
    for piece in record.pieces("tcp", ("t_ns", "flow", WINDOW, "retransmits")):
        t_ns, flow = piece.numbers("t_ns"), piece.numbers("flow")
        inside = (t_ns >= start * 1e9) & (t_ns <= end * 1e9)
        for number in np.unique(flow[inside]).tolist():
            mine = np.flatnonzero(inside & (flow == number))
            mine = mine[np.argsort(t_ns[mine], kind="stable")]
            t_s = t_ns[mine].astype(float) / 1e9
            found.add(WINDOW, number, t_s, piece.with_nan(WINDOW)[mine].astype(float))
            counts = piece.with_nan("retransmits")[mine].astype(float)
            began = t_s[retransmits.setdefault(number, _Beginnings()).among(counts)]
            found.add("began", number, began, np.ones(began.size))
    numbers = sorted(retransmits)
    if not numbers:
        raise UsageError(f"`{record.path}` has no samples of TCP senders to draw")
    lines = {number: found.points(WINDOW, number) for number in numbers}
    average = found.average(WINDOW)
    if average is None:
        lines, average = _side_by_side(lines)
    return _Samples(
        lines=lines,
        average=average,
        began={number: found.points("began", number)[0] for number in numbers},
        note=found.note,
    )


class _Beginnings:
    """Where a flow begins to retransmit: a sample tells more than the one before, which did not."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._before = np.full(2, np.nan)

    def among(self, counts: Numbers) -> NDArray[np.intp]:
        """The places of the beginnings in the next samples, which tell what was counted until then."""
        more = np.diff(np.concatenate([self._before, counts]))
        self._before = np.concatenate([self._before, counts])[-2:]
        return np.flatnonzero((more[1:] > 0) & (more[:-1] == 0))


def _side_by_side(
    lines: Mapping[int, tuple[Numbers, Numbers]],
) -> tuple[dict[int, tuple[Numbers, Numbers]], tuple[Numbers, Numbers]]:
    """Lines of which each ends where it has no sample at its time, and their average at all times."""
    times = np.unique(np.concatenate([t_s for t_s, _ in lines.values()]))
    # Where nothing is sampled for long no flow runs: all lines end a step behind the last sample before.
    step = float(np.median(np.diff(times))) if times.size > 1 else 0.0
    before = np.flatnonzero(np.diff(times) > LONG_GAP * step)
    times = np.insert(times, before + 1, times[before] + step)
    sums, count = np.zeros(times.size), np.zeros(times.size)
    ended = {}
    for number, (every_s, every) in lines.items():
        t_s, first = np.unique(every_s, return_index=True)
        values = every[first]
        place = np.searchsorted(times, t_s)
        told = np.isfinite(values)
        sums[place[told]] += values[told]
        count[place[told]] += 1
        alone = np.flatnonzero(np.diff(np.append(place, times.size)) > 1)
        ended[number] = (
            np.insert(t_s, alone + 1, times[place[alone] + 1]),
            np.insert(values, alone + 1, np.nan),
        )
    return ended, (times, np.where(count > 0, sums / np.maximum(count, 1), np.nan))


LONG_GAP = 3.0
"""So many steps without a sample of any flow are a pause, and not a sample that is missing."""


def _key(record: Record, numbers: Collection[int]) -> list[str]:
    """What the key calls the flows of these numbers: nothing if they are too many to be named."""
    if len(numbers) > MAX_FLOWS:
        return []
    short = caption.short_names(numbered([flow["name"] for flow in record.flow_rows]))
    names = dict(zip((flow["flow"] for flow in record.flow_rows), short, strict=True))
    return caption.told_apart([names.get(number, f"flow {number}") for number in numbers])


def _draw(axes: Axes, samples: _Samples, key: Sequence[str], *, legend_too: bool) -> None:
    numbers = list(samples.lines)
    windows = np.concatenate([values for _, values in samples.lines.values()])
    top = float(np.nanmax(windows)) * (1 + MARGIN)
    many = len(numbers) > MAX_FLOWS
    grey = theme.Style(theme.QUIET, "-", "o")
    styles = [grey] * len(numbers) if many else theme.styles(len(numbers))
    legend: list[tuple[Artist, str]] = []
    for place, (number, style) in enumerate(zip(numbers, styles, strict=True)):
        (line,) = axes.plot(
            *samples.lines[number],
            color=style.colour,
            linestyle=style.dash,
            linewidth=0.5 if many else 0.9,
            drawstyle="steps-post",
        )
        height = top * (1 - MARGIN * (0.15 + 0.7 * place / max(1, len(numbers) - 1)))
        _ticks(axes, samples.began[number], height, style)
        if not many:
            legend.append((line, key[place]))
    axes.plot(*samples.average, color=theme.INK, linewidth=1.5, path_effects=parts.halo(1.5))
    parts.from_zero(axes, "y", top)
    legend.insert(0, (Line2D([], [], color=theme.INK, linewidth=1.5), "average"))
    if many:
        legend.append((Line2D([], [], color=grey.colour, linewidth=0.9), f"each of {len(numbers)} flows"))
    handles, words = zip(*legend, strict=True)
    if not legend_too:
        return
    theme.legend_beside(axes, handles, words, above=ABOVE, sample=2.6, pitch=1.34)


def _ticks(axes: Axes, began_s: Numbers, height: float, style: Style) -> None:
    """A tick where a flow began to retransmit."""
    axes.plot(
        began_s,
        np.full(began_s.size, height),
        linestyle="none",
        marker="|",
        markersize=4,
        color=style.colour,
    )


WINDOW = "cwnd_segments"
"""What is drawn: a column of the table `tcp`."""

ROW, LEGEND_ROW = 1.5, 0.17
"""Least height of a run, and that of a line of its legend; inches."""

ABOVE = 12.0
"""Points between axes and legend in a column of a paper: the name of a run stands there."""

MAX_FLOWS = 24
"""More flows than this cannot be told apart: all are grey then."""

MARGIN = 0.35
"""Room above the windows for the ticks, as a share of the tallest one."""
