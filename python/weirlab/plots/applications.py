"""Applications over time: how long pages and names took, and the bitrate and buffer of videos.

A point of the upper panels is a page or a name, at the time at which it was wanted. The bitrate is that of
the segment that came, the buffer what is loaded and not yet played: it grows by a segment at once, and is 0
while the picture stands still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import caption, panels, theme
from weirlab.plots.panels import Line, Panel, Things
from weirlab.plots.scope import Scope
from weirlab.stats.transfers import applications, ends_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from weirlab.record import Record

    Numbers = NDArray[np.float64]


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the only one of `records`."""
    (record,) = records
    scope = scope or Scope(records)
    there = applications(record)
    if not there:
        raise UsageError(f"`{record.path}` has no applications to draw: no web pages, names or videos")
    labels = caption.short_names([name for _, name, _ in there])
    lines: dict[str, list[Line]] = {label: [] for label in LABELS}
    ends = ends_ns(record)
    for (number, _, kind), name, style in zip(there, labels, theme.styles(len(there)), strict=True):
        every = record.transfers.filter(pl.col("flow") == number)
        rows = every.filter(pl.col("outcome") == "done").sort("t_ns")
        for label, column, per in PANELS[kind]:
            t_ns = rows["t_ns"] if kind != "video" else rows["t_ns"] + rows["took_ns"]
            found = t_ns.to_numpy(), rows[column].cast(pl.Float64).to_numpy()
            at_ns, values = found if column != "buffer_ns" else _buffer_over_time(every, ends[number])
            # A segment is played with the bitrate that it came with until the next one is.
            steps = column == "bitrate_bps"
            one = Line(name=name, style=style, t_s=at_ns / 1e9, values=values / per, steps=steps)
            lines[label].append(one)
    shown = [Panel(label=label, lines=of) for label, of in lines.items() if of]
    note = "Pages and names at the time at which they were wanted, segments of videos when they came."
    note += _not_drawn(record)
    things, runs = Things(name="applications"), [scope.runs(record)]
    return panels.draw(records, title, note, shown, things=things, scope=scope, runs=runs)


def _buffer_over_time(rows: pl.DataFrame, end_ns: int) -> tuple[Numbers, Numbers]:
    """The corners of a video's buffer over time, times and levels in ns, of all its rows of `transfers`.

    Behind each segment the level falls as the picture plays, to 0 at most: behind the last one until the
    video ends at `end_ns`, or to 0, since of a run that was killed nothing tells what came then.
    """
    corners: list[tuple[int, int]] = []
    rows = rows.with_columns(end_ns=pl.col("t_ns") + pl.col("took_ns")).sort("end_ns")
    for there, level in rows.select("end_ns", "buffer_ns").drop_nulls().iter_rows():
        if corners:
            empty = sum(corners[-1])
            if empty < there:
                corners.append((empty, 0))
            corners.append((there, max(0, empty - there)))
        corners.append((there, level))
    if corners:
        empty = sum(corners[-1])
        last = max(corners[-1][0], min(end_ns, empty))
        corners.append((last, empty - last))
    found = np.array(corners, dtype=float).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _not_drawn(record: Record) -> str:
    """A sentence on what did not come whole; empty if all did."""
    outcomes = record.transfers["outcome"]
    counts = {words: int((outcomes == word).sum()) for word, words in NOT_WHOLE.items()}
    told = [f"{count} {words}" for words, count in counts.items() if count]
    return f" Not drawn: {', '.join(told)}." if told else ""


NOT_WHOLE = {"given_up": "that were given up", "cut": "that the end of their flow cut off"}
"""What a transfer came to that is not drawn, and what is said of it."""

LABELS = ("Page load time, s", "DNS lookup, ms", "Bitrate, Mbit/s", "Buffer, s")
"""The panels, from above."""

PANELS = {
    "web": (("Page load time, s", "took_ns", 1e9),),
    "dns": (("DNS lookup, ms", "took_ns", 1e6),),
    "video": (("Bitrate, Mbit/s", "bitrate_bps", 1e6), ("Buffer, s", "buffer_ns", 1e9)),
}
"""For each kind of application the panels that it has a line in: column, and how much of it is one unit."""
