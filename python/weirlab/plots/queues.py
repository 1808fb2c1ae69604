"""Queues over time: what waits, for how long, what they drop and mark (Flent's `backlog`, `delay`, `drops`).

Each line is a queue of the path, all its classes together, a point an interval of the record. Queues in which
nothing ever waited and which dropped nothing are left out.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots import panels, theme
from weirlab.plots.gathered import Gathered
from weirlab.plots.panels import Line, Panel, Things
from weirlab.plots.scope import Scope
from weirlab.record.tables import of_reasons

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from weirlab.plots.series import Numbers
    from weirlab.plots.theme import Style
    from weirlab.record import Record
    from weirlab.record.columns import Columns


def figure(records: Sequence[Record], title: str | None, scope: Scope | None = None) -> Figure:
    """The chart of the only one of `records`."""
    (record,) = records
    scope = scope or Scope(records)
    queues, gathered = _gathered(record, scope)
    if not queues:
        raise UsageError(f"`{record.path}` has no samples of queues to draw")
    busy = _busy(queues, gathered)
    idle = [name for name in queues if name not in busy]
    if not busy:
        raise UsageError(f"`{record.path}`: nothing waited in any of its queues ({', '.join(queues)})")
    styles = dict(zip(busy, theme.styles(len(busy)), strict=True))
    shown = [
        Panel(label="Backlog, kB", lines=_lines(gathered, styles, "backlog")),
        Panel(label="Sojourn, ms", lines=_lines(gathered, styles, "sojourn")),
        Panel(label="Dropped,\npackets/s", lines=_lines(gathered, styles, "dropped"), least=1.0),
    ]
    marks = any(_any(gathered, "marked", name) for name in busy)
    if marks:
        shown.append(Panel(label="Marked,\npackets/s", lines=_lines(gathered, styles, "marked"), least=1.0))
    note = (
        "Each queue of the path: what waits in it, how long what left had waited on average, and what it "
        f"dropped{' or marked' if marks else ''}, by interval."
    )
    if idle:
        note += f" Nothing waited in {', '.join(idle[:MAX_NAMED])}{' and others' * (len(idle) > MAX_NAMED)}."
    note += gathered.note
    things, runs = Things(name="queues"), [scope.runs(record)]
    return panels.draw(records, title, note, shown, things=things, scope=scope, runs=runs)


def has_work(record: Record) -> bool:
    """Whether anything waited in a queue, or one dropped or marked something: then there is a chart."""
    return bool(_busy(*_gathered(record, Scope([record]))))


def _busy(queues: Sequence[str], gathered: Gathered) -> list[str]:
    """The queues in which anything waited, or that dropped or marked something."""
    return [name for name in queues if any(_any(gathered, quantity, name) for quantity in WORK)]


def _gathered(record: Record, scope: Scope) -> tuple[list[str], Gathered]:
    """The queues of the path in the order of their first samples, and the lines of each with all classes."""
    found = Gathered(record.reached_ns / 1e9, scope.span_s)
    began: dict[str, int] = {}
    interval_s: float | None = None
    reasons = {kind: of_reasons(kind) for kind in ("dropped", "marked")}
    columns = ("t_ns", "queue", "class", *MEANS, *chain.from_iterable(reasons.values()))
    for piece in record.pieces("queue", columns):
        rows = piece.in_order(np.flatnonzero(piece.is_text("class", "")))
        if not rows.height:
            continue
        interval_s = interval_s or record.interval_ns("queue") / 1e9
        t_ns, of, names = rows.numbers("t_ns"), rows.numbers("queue"), rows.texts("queue")
        lines = {quantity: rows.with_nan(column) / per for column, (quantity, per) in MEANS.items()}
        lines |= {kind: _together(rows, reasons[kind]) / interval_s for kind in reasons}
        for place in dict.fromkeys(of.tolist()):
            mine = of == place
            began[names[place]] = min(int(t_ns[mine].min()), began.get(names[place], int(t_ns[mine].min())))
            for quantity, values in lines.items():
                found.add(quantity, names[place], t_ns[mine] / 1e9, values[mine])
    return sorted(began, key=lambda name: began[name]), found


def _together(rows: Columns, reasons: Sequence[str]) -> Numbers:
    """How many packets the samples tell for all reasons together."""
    packets = np.zeros(rows.height)
    for name in reasons:
        if name in rows:
            packets += np.nan_to_num(rows.with_nan(name))
    return packets


def _any(gathered: Gathered, quantity: str, queue: str) -> bool:
    """Whether a queue had any of a quantity."""
    return bool((gathered.points(quantity, queue)[1] > 0).any())


def _lines(gathered: Gathered, styles: Mapping[str, Style], quantity: str) -> list[Line]:
    """A line of each queue's quantity."""
    lines = []
    for name, style in styles.items():
        t_s, values = gathered.points(quantity, name)
        lines.append(Line(name=name, style=style, t_s=t_s, values=values))
    return lines


MEANS = {"backlog_bytes": ("backlog", 1e3), "sojourn_mean_ns": ("sojourn", 1e6)}
"""Columns of the table `queue`, what is drawn of them, and how much is one unit."""

WORK = ("backlog", "dropped", "marked")
"""What a queue in which something happened has any of."""

MAX_NAMED = 6
"""More names than this make a note unreadable."""
