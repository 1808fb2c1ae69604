"""View of a running shaper, for people."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple, TypedDict

from rich import box

from weirlab import _native
from weirlab.shape.asked import asked
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

    `last_delay` is when a view had delays last, and the median of their round trips (both ns).

    `late_ns` is how late the shaper itself was at worst since the last view: a busy machine's part of all
    delays.
    """

    t_ns: int
    pid: int
    device: str
    open: bool
    sides: list[SideView | None]
    delays: list[tuple[int, int, int]]
    last_delay: tuple[int, int] | None
    reflectors: list[str]
    trouble: str | None
    late_ns: int
    missed: int
    warnings: list[str]


SIDES = ("up", "down")
"""The sides by the names of their options."""


class Column(NamedTuple):
    """A column of a view as a table.

    Attributes:
        heading: with a new line where a terminal breaks it.
        is_number: whether it holds numbers.
    """

    heading: str
    is_number: bool


REASON = "because"
COLUMNS = (
    Column("side", is_number=False),
    Column("rate,\nMbit/s", is_number=True),
    Column("used,\nMbit/s", is_number=True),
    Column("state", is_number=False),
    Column(REASON, is_number=False),
    Column("wait,\npackets", is_number=True),
    Column("wait,\nms", is_number=True),
    Column("dropped", is_number=True),
    Column("marked", is_number=True),
)
"""The columns of `rows_of`, in a terminal and in a browser."""


class ViewWords(NamedTuple):
    """A view in words.

    Attributes:
        line: all of it in one line.
        delay: the median of its round trips.
        remarks: what a reader needs beside the numbers.
        reasons: the reason of each side that is shaped.
        delay_ns: the median as a number; None if no round trip was measured.
    """

    line: str
    delay: str
    remarks: list[str]
    reasons: list[str]
    delay_ns: int | None


def words_of(view: ShaperView) -> ViewWords:
    """A view in words.

    Raises:
        ShapeError: if it is none.
    """
    return ViewWords(*asked(lambda: _native.shaper_view_words(json.dumps(view))))


def line_of(view: ShaperView) -> str:
    """A view in one line."""
    return words_of(view).line


def table_of(view: ShaperView) -> Table:
    """A view as a table."""
    table = Table(
        title=title_of(view),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    table.caption = "\n".join(words_of(view).remarks) or None
    table.caption_justify = "left"
    for one in COLUMNS:
        # A terminal of 80 columns is enough: only the reason may take a second line.
        table.add_column(
            one.heading, justify="right" if one.is_number else "left", no_wrap=one.heading != REASON
        )
    for row in rows_of(view):
        table.add_row(*row)
    return table


def title_of(view: ShaperView) -> str:
    """Which device is shaped, for how long, and the delay."""
    return f"{view['device']}, {view['t_ns'] / 1e9:.0f} s, {words_of(view).delay}"


def probed_in(view: ShaperView) -> str:
    """Who answers the shaper's probes."""
    return ", ".join(view["reflectors"]) or "nobody"


def rows_of(view: ShaperView) -> list[list[str]]:
    """The sides that are shaped, as rows below `COLUMNS`."""
    reasons = iter(words_of(view).reasons)
    rows = []
    for name, side in zip(SIDES, view["sides"], strict=True):
        if side is not None:
            counts = side["counts"]
            sojourn_ns = counts["sojourn_ns"]
            rows.append(
                [
                    name,
                    "open" if side["rate_bps"] is None else f"{side['rate_bps'] / 1e6:.2f}",
                    f"{side['load_bps'] / 1e6:.2f}",
                    side["state"].replace("_", " "),
                    next(reasons),
                    str(counts["backlog_packets"]),
                    "" if sojourn_ns is None else f"{sojourn_ns / 1e6:.1f}",
                    str(counts["dropped"]),
                    str(counts["marked"]),
                ]
            )
    return rows


def metrics_of(view: ShaperView) -> str:
    """A view as metrics in Prometheus' text format, version 0.0.4."""
    return _native.shaper_metrics(json.dumps(view))
