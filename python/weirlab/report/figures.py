"""What `weir show` and the page of a record show of it: the same tables and sentences, in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from weirlab.record.differences import finds_its_loads, load_of
from weirlab.report.applications import application_tables, rrul_table
from weirlab.report.methods import method_tables, method_verdicts
from weirlab.report.tables import flow_table, increase_line, latency_table, quality_table, udp_table
from weirlab.stats import summarise
from weirlab.stats.capacity import share_remarks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.record import Record
    from weirlab.ui.table import Table


def figures_of(record: Record) -> Iterator[Table | Text]:
    """The tables and sentences of a record, as they follow each other."""
    summary = summarise(record)
    during = load_of(record)
    if (quality := quality_table(record)) is not None:
        yield quality
    if finds_its_loads(record):
        yield from _of_a_line(record)
    if summary.down or summary.up:
        yield flow_table(summary, during)
    for table in (udp_table(summary), *application_tables(summary), rrul_table(record)):
        if table is not None:
            yield table
    if summary.latency.sent or summary.latency.idle is not None:
        yield latency_table(summary, during)
    for text in filter(None, [increase_line(summary.latency), *summary.remarks, *share_remarks(record)]):
        yield Text(text)
    yield from method_tables(record)
    yield from method_verdicts(record)


def _of_a_line(record: Record) -> Iterator[Table | Text]:
    """What `weir test` showed of a record of its own, or why it has no grade."""
    from weirlab.report.scores import line_table, why_ungraded  # noqa: PLC0415 - few records are of it

    if (table := line_table(record)) is not None:
        yield table
    if ungraded := why_ungraded(record):
        yield Text(ungraded, style="bold")
