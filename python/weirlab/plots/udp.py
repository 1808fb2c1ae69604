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
from weirlab.plots import caption, panels, theme
from weirlab.plots.panels import Line, Panel, Things
from weirlab.plots.scope import Scope
from weirlab.stats.udp import mos_by_second
from weirlab.stats.udp_losses import of_packets, udp_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the only one of `records`."""
    (record,) = records
    scope = scope or Scope(records)
    numbers = record.udp["flow"].unique().sort().to_list()
    if not numbers:
        raise UsageError(f"`{record.path}` has no UDP flows to draw")
    names = dict(record.flow_names.select("flow", "name").iter_rows())
    labels = caption.short_names([names[number] for number in numbers])
    delays, jitters, losses, scores = [], [], [], []
    every = udp_rows(record)
    for number, name, style in zip(numbers, labels, theme.styles(len(numbers)), strict=True):
        rows = every.filter(pl.col("flow") == number)
        t_s = rows["t_ns"].to_numpy() / 1e9
        delay = rows["delay_mean_ns"].cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1e6
        expected = of_packets(rows).to_numpy().astype(float)
        lost = 100 * rows["lost_packets"].to_numpy() / np.where(expected > 0, expected, np.nan)
        delays.append(Line(name=name, style=style, t_s=t_s, values=delay))
        jitters.append(
            Line(name=name, style=style, t_s=t_s, values=rows["jitter_ns"].cast(pl.Float64).to_numpy() / 1e6)
        )
        losses.append(Line(name=name, style=style, t_s=t_s, values=lost))
        score = mos_by_second(record, number, every)
        if score.height:
            t_s, mos = score["t_s"].to_numpy(), score["mos"].to_numpy()
            scores.append(Line(name=name, style=style, t_s=t_s, values=mos))
    shown = [
        Panel(label="One-way delay, ms", lines=delays),
        Panel(label="Jitter, ms", lines=jitters),
        Panel(label="Lost, %", lines=losses, least=1.0),
    ]
    note = "One-way delay, jitter (RFC 3550) and loss of each interval, as receivers of UDP flows count them."
    if scores:
        shown.append(Panel(label="MOS", lines=scores, ends=(0.8, 4.6)))
        note += (
            " MOS: the mean opinion score of each second by the E-model (ITU-T G.107); 4.4 is the best call."
        )
    things, runs = Things(name="flows", averaged=True), [scope.runs(record)]
    return panels.draw(records, title, note, shown, things=things, scope=scope, runs=runs)
