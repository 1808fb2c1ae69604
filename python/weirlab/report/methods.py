"""Report on a foreign speed test, beside Weir's own pings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich import box
from rich.text import Text

from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weirlab.record import MethodResult, Record
    from weirlab.scores import Truth


def method_tables(record: Record) -> Iterator[Table]:
    """Rows about each speed test of a run: its result, or that it did not end; our own pings beside it."""
    rows = record.columns("method").rows()
    if not rows:
        return
    from weirlab.scores import truth_of  # noqa: PLC0415 - most runs have no speed test

    truth = truth_of(record)
    for row in rows:
        began = row["began_ns"] / 1e9
        if row["result"] is None:
            table = Table("", title=f"{row['name']}: {row['kind']}", box=box.SIMPLE_HEAD, pad_edge=False)
            table.add_row(f"begun at {began:.1f} s, not ended when the run did")
            yield table
            continue
        table = method_table(json.loads(row["result"]), truth)
        table.title = f"{row['name']}: {table.title}"
        when = f"from {began:.1f} to {row['ended_ns'] / 1e9:.1f} s"
        table.caption = f"{when}; {table.caption}" if table.caption else when
        yield table


def method_results(record: Record) -> list[dict[str, Any]]:
    """Results of each speed test of a run as plain values, for JSON."""
    return [
        {**row, "result": row["result"] and json.loads(row["result"])}
        for row in record.columns("method").rows()
    ]


def method_verdicts(record: Record) -> Iterator[Text]:
    """Meaning of the result of each speed test, in a sentence, and of our own pings beside it."""
    rows = record.columns("method").rows()
    if not rows:
        return
    from weirlab.scores import truth_of, verdict, verdict_of_truth  # noqa: PLC0415 - most runs have none

    for row in rows:
        if row["result"] is not None:
            yield Text(verdict(json.loads(row["result"])).says)
    if (seen := verdict_of_truth(truth_of(record))) is not None:
        yield Text(seen.says)


def method_table(result: MethodResult, truth: Truth | None) -> Table:
    """All its figures by name; the truth below them."""
    title = Text(f"{result['method']}, by {result['formula']}")
    caption = RATES.get(result["method"])
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    for name, value in _flat(result):
        if name not in {"method", "formula", "failures"}:
            table.add_row(name, Text(value))
    if truth is not None:
        table.add_section()
        for name, one in (("before it", truth.idle), ("during it", truth.during)):
            figures = f"median {one.median:.1f}, p95 {one.p95:.1f}, max {one.max:.1f} ms"
            table.add_row(f"our own pings {name}", figures)
        table.add_row("our own pings lost", str(truth.lost))
    return table


def _flat(values: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        full = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _flat(value, f"{full}: ")
        elif isinstance(value, list):
            yield full, ", ".join(str(one) for one in value) or "-"
        elif isinstance(value, float):
            yield full, f"{value:.2f}"
        else:
            yield full, "-" if value is None else str(value)


RATES = {
    "ookla": "download and upload mbps: by its own formula, which may give more than a line has; "
    "mean mbps: all bytes over the whole time",
    "rpm": "goodput mbps: of the last 4 s, by which the method ends, and which may be more than a line has; "
    "mean mbps: all bytes over the whole load",
}
"""Of methods with two figures of a rate, what each is."""
