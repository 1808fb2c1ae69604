"""View of a running shaper, for people."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple, TypedDict

from rich import box

from weirlab import _native
from weirlab.ui.table import Table

Wanted = Literal["continue", "open", "shape", "stop"]
"""Order to a shaper after a view: go on as it does, let everything pass, shape, or end."""


class Counts(TypedDict):
    """Counts of a side's queue since the start, and its backlog."""

    bytes: int
    departed_bytes: int
    backlog_packets: int
    backlog_bytes: int
    dropped: int
    marked: int
    sojourn_ns: int | None


class SideView(TypedDict):
    """One side."""

    rate_bps: int | None
    load_bps: int
    state: str
    reason: str
    value: float
    unit: str
    counts: Counts


class ShaperView(TypedDict):
    """A view of a shaper, a few times a second; `delays` are when, round trip (both ns), and source.

    `late_ns` is how late the shaper itself was at worst since the last view: a busy machine's part of all
    delays.
    """

    t_ns: int
    pid: int
    device: str
    open: bool
    sides: list[SideView | None]
    delays: list[tuple[int, int, int]]
    reflectors: list[str]
    trouble: str | None
    late_ns: int
    missed: int
    warnings: list[str]


SIDES = ("up", "down")
"""The sides by the names of their options."""
LATE_NS = 5_000_000
"""As much as the increase that a shaper is to keep delays below."""


class ViewWords(NamedTuple):
    """A view in words.

    Attributes:
        line: all of it in one line.
        delay: the median of its round trips.
        remarks: what a reader needs beside the numbers.
        reasons: the reason of each side that is shaped.
    """

    line: str
    delay: str
    remarks: list[str]
    reasons: list[str]


def words_of(view: ShaperView) -> ViewWords:
    """A view in words."""
    return ViewWords(*_native.shaper_view_words(json.dumps(view)))


def line_of(view: ShaperView) -> str:
    """A view in one line."""
    return words_of(view).line


def table_of(view: ShaperView) -> Table:
    """A view as a table."""
    words = words_of(view)
    table = Table(
        title=f"{view['device']}, {view['t_ns'] / 1e9:.0f} s, {words.delay}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    table.caption = "\n".join(words.remarks) or None
    table.caption_justify = "left"
    # A terminal of 80 columns is enough: only the reason may take a second line.
    table.add_column("", no_wrap=True)
    for heading in ("rate,\nMbit/s", "used,\nMbit/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("because")
    for heading in ("wait,\npackets", "wait,\nms", "dropped", "marked"):
        table.add_column(heading, justify="right", no_wrap=True)
    reasons = iter(words.reasons)
    for name, side in zip(SIDES, view["sides"], strict=True):
        if side is not None:
            counts = side["counts"]
            sojourn_ns = counts["sojourn_ns"]
            table.add_row(
                name,
                "open" if side["rate_bps"] is None else f"{side['rate_bps'] / 1e6:.2f}",
                f"{side['load_bps'] / 1e6:.2f}",
                side["state"].replace("_", " "),
                next(reasons),
                str(counts["backlog_packets"]),
                "" if sojourn_ns is None else f"{sojourn_ns / 1e6:.1f}",
                str(counts["dropped"]),
                str(counts["marked"]),
            )
    return table


def metrics_of(view: ShaperView) -> str:
    """A view as metrics in Prometheus' text format, version 0.0.4."""
    return _native.shaper_metrics(json.dumps(view))
