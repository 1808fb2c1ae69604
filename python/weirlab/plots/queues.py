"""Queues over time: what waits, for how long, what they drop and mark (Flent's `backlog`, `delay`, `drops`).

Each line is a queue of the path, all its classes together, a point an interval of the record. Queues in which
nothing ever waited and which dropped nothing are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import panels, theme
from weirlab.plots.panels import Line, Panel, Things
from weirlab.plots.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from weirlab.plots.series import Numbers
    from weirlab.plots.theme import Style
    from weirlab.record import Record
    from weirlab.record.columns import Columns


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the only one of `records`."""
    (record,) = records
    scope = scope or Scope(records)
    queues = _queues(record)
    if not queues:
        raise UsageError(f"`{record.path}` has no samples of queues to draw")
    busy = {name: one for name, one in queues.items() if one.has_work}
    idle = [name for name in queues if name not in busy]
    if not busy:
        raise UsageError(f"`{record.path}`: nothing waited in any of its queues ({', '.join(queues)})")
    styles = dict(zip(busy, theme.styles(len(busy)), strict=True))
    shown = [
        Panel(label="Backlog, kB", lines=_lines(busy, styles, "backlog_kb")),
        Panel(label="Sojourn, ms", lines=_lines(busy, styles, "sojourn_ms")),
        Panel(label="Dropped,\npackets/s", lines=_lines(busy, styles, "dropped"), least=1.0),
    ]
    if any(one.marked.any() for one in busy.values()):
        shown.append(Panel(label="Marked,\npackets/s", lines=_lines(busy, styles, "marked"), least=1.0))
    note = (
        "Each queue of the path: what waits in it, how long what left had waited on average, and what it "
        "dropped, by interval."
    )
    if idle:
        note += f" Nothing waited in {', '.join(idle[:MAX_NAMED])}{' and others' * (len(idle) > MAX_NAMED)}."
    things, runs = Things(name="queues"), [scope.runs(record)]
    return panels.draw(records, title, note, shown, things=things, scope=scope, runs=runs)


@dataclass(frozen=True, kw_only=True)
class _Queue:
    """Samples of a queue, in the order of their times; NaN where a sample does not tell something.

    Attributes:
        t_s: their times in seconds.
        backlog_kb: what waited.
        sojourn_ms: how long what left had waited on average.
        dropped, marked: packets a second, for whatever reason.
    """

    t_s: Numbers
    backlog_kb: Numbers
    sojourn_ms: Numbers
    dropped: Numbers
    marked: Numbers

    @property
    def has_work(self) -> bool:
        return any(np.nansum(one) > 0 for one in (self.backlog_kb, self.dropped, self.marked))


def _queues(record: Record) -> dict[str, _Queue]:
    """Each queue of the path, all its classes together, in the order of their first samples."""
    rows = record.columns("queue")
    whole = np.flatnonzero(rows.is_text("class", ""))
    if not whole.size:
        return {}
    whole = whole[np.argsort(rows.numbers("t_ns")[whole], kind="stable")]
    of = rows.numbers("queue")[whole]
    texts = rows.texts("queue")
    interval_s = record.interval_ns("queue") / 1e9
    return {
        texts[place]: _queue(rows, whole[of == place], interval_s) for place in dict.fromkeys(of.tolist())
    }


def _queue(rows: Columns, places: NDArray[np.intp], interval_s: float) -> _Queue:
    """The queue of the samples at these places of the table."""

    def told(column: str) -> Numbers:
        values, known = rows.numbers(column)[places].astype(float), rows.known(column)
        return values if known is None else np.where(known[places], values, np.nan)

    def together(kind: str) -> Numbers:
        named = [name for name in rows.names if name.startswith(f"{kind}_") and not name.endswith("_bytes")]
        packets = np.zeros(places.size)
        for name in named:
            packets += np.nan_to_num(told(name))
        return packets / interval_s

    return _Queue(
        t_s=told("t_ns") / 1e9,
        backlog_kb=told("backlog_bytes") / 1e3,
        sojourn_ms=told("sojourn_mean_ns") / 1e6,
        dropped=together("dropped"),
        marked=together("marked"),
    )


def _lines(queues: dict[str, _Queue], styles: dict[str, Style], quantity: str) -> list[Line]:
    """A line of each queue's quantity."""
    return [
        Line(name=name, style=styles[name], t_s=one.t_s, values=getattr(one, quantity))
        for name, one in queues.items()
    ]


MAX_NAMED = 6
"""More names than this make a note unreadable."""
