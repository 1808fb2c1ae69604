"""TCP senders over time: round trip, pacing and delivery rate of each flow (Flent's `tcp_rtt` and others).

Each line is a flow's sender, a point a sample of its state (Linux: `tcp_info`). The smoothed round trip is
that of segments and their acknowledgements, hosts included; the delivery rate is the kernel's own estimate,
which the simulator has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import caption, panels, theme
from weirlab.plots.panels import Line, Panel, Things
from weirlab.plots.scope import Scope
from weirlab.record.configurations import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the only one of `records`."""
    (record,) = records
    scope = scope or Scope(records)
    if record.tcp.height == 0:
        raise UsageError(f"`{record.path}` has no samples of TCP senders to draw")
    shown = [
        Panel(label="Smoothed RTT, ms", lines=_lines(record, "srtt_ns", 1e6)),
        Panel(label="Pacing, Mbit/s", lines=_lines(record, "pacing_rate_bps", 1e6), axis="throughput"),
    ]
    note = "The state of each flow's TCP sender: smoothed round trip, and rate at which it paces or would."
    if record.tcp["delivery_rate_bps"].null_count() < record.tcp.height:
        delivered = _lines(record, "delivery_rate_bps", 1e6)
        shown.append(Panel(label="Delivery, Mbit/s", lines=delivered, axis="throughput"))
        note += " Delivery: the kernel's own estimate of what arrives."
    things, runs = Things(name="flows", averaged=True), [scope.runs(record)]
    return panels.draw(records, title, note, shown, things=things, scope=scope, runs=runs)


def _lines(record: Record, column: str, unit: float) -> list[Line]:
    """A line for each flow of a column of table `tcp`, in units of `unit`."""
    numbers = record.flow_names["flow"].to_list()
    names = caption.short_names(numbered(record.flow_names["name"].to_list()))
    found = []
    for number, name, style in zip(numbers, names, theme.styles(len(numbers)), strict=True):
        rows = record.tcp.filter(pl.col("flow") == number).sort("t_ns")
        if rows.height:
            values = rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy() / unit
            found.append(Line(name=name, style=style, t_s=rows["t_ns"].to_numpy() / 1e9, values=values))
    return found
