"""TCP senders over time: round trip, pacing and delivery rate of each flow (Flent's `tcp_rtt` and others).

Each line is a flow's sender, a point a sample of its state (Linux: `tcp_info`). The smoothed round trip is
that of segments and their acknowledgements, hosts included; the delivery rate is the kernel's own estimate,
which the simulator has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import caption, panels, theme
from weirlab.plots.gathered import Gathered
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
    gathered, told = _gathered(record, scope)
    if not gathered.lines("srtt_ns"):
        raise UsageError(f"`{record.path}` has no samples of TCP senders to draw")
    shown = [
        _panel("Smoothed RTT, ms", record, gathered, "srtt_ns"),
        _panel("Pacing, Mbit/s", record, gathered, "pacing_rate_bps", axis="throughput"),
    ]
    note = "The state of each flow's TCP sender: smoothed round trip, and rate at which it paces or would."
    if "delivery_rate_bps" in told:
        shown.append(_panel("Delivery, Mbit/s", record, gathered, "delivery_rate_bps", axis="throughput"))
        note += " Delivery: the kernel's own estimate of what arrives."
    note += gathered.note
    things, runs = Things(name="flows", averaged=True), [scope.runs(record)]
    return panels.draw(records, title, note, shown, things=things, scope=scope, runs=runs)


def _gathered(record: Record, scope: Scope) -> tuple[Gathered, set[str]]:
    """The lines of each flow in ms and Mbit/s, and the columns that have any value."""
    many = len(record.flow_rows) > panels.MAX_NAMED
    found = Gathered(record.reached_ns / 1e9, scope.span_s, averaged=COLUMNS if many else ())
    told: set[str] = set()
    for rows in record.pieces("tcp", ("t_ns", "flow", *COLUMNS)):
        t_s, flow = rows.numbers("t_ns") / 1e9, rows.numbers("flow")
        for column in COLUMNS:
            values = rows.with_nan(column) / PER_UNIT
            if np.isfinite(values).any():
                told.add(column)
            # Of what nobody has told yet a gap is enough, so that its flow is in the legend.
            first = slice(None) if column in told else slice(1)
            for number in np.unique(flow).tolist():
                mine = flow == number
                found.add(column, number, t_s[mine][first], values[mine][first])
    return found, told


def _panel(label: str, record: Record, gathered: Gathered, column: str, *, axis: str = "") -> Panel:
    """A panel with a line for each flow that has samples."""
    numbers = [flow["flow"] for flow in record.flow_rows]
    names = caption.short_names(numbered([flow["name"] for flow in record.flow_rows]))
    there, lines = set(gathered.lines(column)), []
    for number, name, style in zip(numbers, names, theme.styles(len(numbers)), strict=True):
        if number in there:
            t_s, values = gathered.points(column, number)
            lines.append(Line(name=name, style=style, t_s=t_s, values=values))
    return Panel(label=label, lines=lines, axis=axis, average=gathered.average(column))


COLUMNS = ("srtt_ns", "pacing_rate_bps", "delivery_rate_bps")
"""What is drawn: columns of the table `tcp`."""

PER_UNIT = 1e6
"""Nanoseconds in a millisecond, and bit/s in a Mbit/s."""
