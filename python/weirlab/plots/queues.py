"""Queues over time: what waits, for how long, what they drop and mark (Flent's `backlog`, `delay`, `drops`).

Each line is a queue of the path, all its classes together, a point an interval of the record. Queues in which
nothing ever waited and which dropped nothing are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from weirlab.errors import UsageError
from weirlab.plots import panels, theme
from weirlab.plots.panels import Line, Panel
from weirlab.plots.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from weirlab.plots.theme import Style
    from weirlab.record import Record


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the only one of `records`."""
    (record,) = records
    scope = scope or Scope(records)
    whole = _counted(record).filter(pl.col("class") == "").sort("t_ns")
    if whole.height == 0:
        raise UsageError(f"`{record.path}` has no samples of queues to draw")
    names = whole["queue"].unique(maintain_order=True).to_list()
    queues = {name: whole.filter(pl.col("queue") == name) for name in names}
    busy = {name: rows for name, rows in queues.items() if _has_work(rows)}
    idle = [name for name in names if name not in busy]
    if not busy:
        raise UsageError(f"`{record.path}`: nothing waited in any of its queues ({', '.join(names)})")
    styles = dict(zip(busy, theme.styles(len(busy)), strict=True))
    shown = [
        Panel(label="Backlog, kB", lines=_lines(busy, styles, "backlog_bytes", 1e3)),
        Panel(label="Sojourn, ms", lines=_lines(busy, styles, "sojourn_mean_ns", 1e6)),
        Panel(label="Dropped,\npackets/s", lines=_lines(busy, styles, "dropped"), least=1.0),
    ]
    if any(rows["marked"].sum() for rows in busy.values()):
        shown.append(Panel(label="Marked,\npackets/s", lines=_lines(busy, styles, "marked"), least=1.0))
    note = (
        "Each queue of the path: what waits in it, how long what left had waited on average, and what it "
        "dropped, by interval."
    )
    if idle:
        note += f" Nothing waited in {', '.join(idle[:MAX_NAMED])}{' and others' * (len(idle) > MAX_NAMED)}."
    height = 1.8 + panels.ROW * len(shown)
    chart = theme.blank(records, title, note, height=height, runs=[scope.runs(record)])
    panels.draw(chart, record, scope, shown)
    return chart


def _counted(record: Record) -> pl.DataFrame:
    """The table of queues with packets dropped and marked a second, for whatever reason."""
    interval_s = record.manifest.scenario["sampling"]["queue_ns"] / 1e9
    columns = record.queue.columns

    def together(kind: str) -> pl.Expr:
        named = [name for name in columns if name.startswith(f"{kind}_") and not name.endswith("_bytes")]
        rate: pl.Expr = pl.sum_horizontal(named) / interval_s
        return rate.alias(kind)

    return record.queue.with_columns(together("dropped"), together("marked"))


def _has_work(rows: pl.DataFrame) -> bool:
    return any(rows[column].sum() > 0 for column in ("backlog_bytes", "dropped", "marked"))


def _lines(
    queues: dict[str, pl.DataFrame], styles: dict[str, Style], column: str, unit: float = 1.0
) -> list[Line]:
    """A line of each queue's column, in units of `unit`."""
    return [
        Line(
            name=name,
            style=styles[name],
            t_s=rows["t_ns"].to_numpy() / 1e9,
            values=rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy() / unit,
        )
        for name, rows in queues.items()
    ]


MAX_NAMED = 6
"""More names than this make a note unreadable."""
