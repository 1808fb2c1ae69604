"""Tables about applications: web pages, names and videos, and the scores of the RRUL specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.report.tables import LOOK
from weirlab.stats.rrul import rrul_scores
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.stats import Summary


def application_tables(summary: Summary) -> list[Table]:
    """What became of what applications asked for during the load, and of flows of fixed size."""
    tables = (_transfers(summary), _videos(summary), _completions(summary))
    return [table for table in tables if table is not None]


def rrul_table(record: Record) -> Table | None:
    """The scores of the RRUL specification; None of a run that has not what they are of."""
    scores = rrul_scores(record)
    if not scores:
        return None
    table = Table(title="Scores of the RRUL specification, %", **LOOK)
    for heading in ("", "score", "ideal"):
        table.add_column(heading, justify="right" if heading else "left")
    for one in scores:
        ideal = "" if one.ideal is None else f"{one.ideal:.0f} or less"
        table.add_row(one.name, f"{one.percent:.1f}", ideal)
    return table


def _transfers(summary: Summary) -> Table | None:
    rows = {name: one for name, one in summary.applications.items() if one.kind != "video"}
    if not rows:
        return None
    table = Table(title="Pages and names during the load", **LOOK)
    table.add_column("flow")
    for heading in ("came", "given up", "idle ms", "mean ms", "median", "p95", "max", "first byte"):
        table.add_column(heading, justify="right")
    for name, one in rows.items():
        figures = (one.idle_ms, one.mean_ms, one.median_ms, one.p95_ms, one.max_ms, one.first_byte_ms)
        table.add_row(name, str(one.done), str(one.given_up), *(_figure(figure) for figure in figures))
    return table


def _videos(summary: Summary) -> Table | None:
    rows = {name: one for name, one in summary.applications.items() if one.video is not None}
    if not rows:
        return None
    table = Table(title="Videos during the load", **LOOK)
    table.add_column("flow")
    for heading in ("segments", "bitrate Mbit/s", "switches", "stalls", "stalled s", "startup s"):
        table.add_column(heading, justify="right")
    for name, one in rows.items():
        if one.video is not None:
            video = one.video
            startup = None if video.startup_ms is None else video.startup_ms / 1e3
            table.add_row(
                name,
                str(one.done),
                _figure(video.bitrate_mbps, 2),
                str(video.switches),
                str(video.stalls),
                _figure(video.stalled_ms / 1e3, 2),
                _figure(startup, 2),
            )
    return table


def _completions(summary: Summary) -> Table | None:
    if not summary.completion_ms:
        return None
    table = Table(title="Flows of fixed size", **LOOK)
    table.add_column("flow")
    table.add_column("complete after s", justify="right")
    for name, took in summary.completion_ms.items():
        table.add_row(name, "not complete" if took is None else f"{took / 1e3:.3f}")
    return table


def _figure(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
