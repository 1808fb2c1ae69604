"""The tables of a record and their columns, declared by `crates/scenario/src/rows.rs` for all languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

TABLES: Mapping[str, Mapping[str, _native.Column]] = {
    table["name"]: {column["name"]: column for column in table["columns"]} for table in _native.tables()
}
"""The columns of each table, by their names and in their order."""

OF_EACH: Mapping[str, Literal["run", "moment", "interval"]] = {
    table["name"]: table["of_each"] for table in _native.tables()
}
"""What of a run each table has a row of: of an interval `t_ns` is the end, of a moment it is that moment, and
a table of whole runs has none. By it rows belong to a span of time."""

NEWEST = max(column["since"] for columns in TABLES.values() for column in columns.values())
"""The format of the record that the newest columns came with."""

OF_WHAT = {"t_ns", "flow", "probe", "queue", "method"}
"""Columns that say of when and of what a row is. Others may be null in records that were imported."""

MAX_PART_ROWS = 10_000_000
"""A part file has about 100000 rows: this bounds the memory that a damaged or hostile one can ask for."""


def schema(table: str) -> dict[str, pl.DataType]:
    """The types of a table's columns in a data frame, by their names and in their order."""
    import polars as pl  # noqa: PLC0415 - figures need none

    kinds: dict[str, pl.DataType] = {"integer": pl.Int64(), "float": pl.Float64(), "text": pl.String()}
    return {name: kinds[column["kind"]] for name, column in TABLES[table].items()}


def is_always_there(column: _native.Column, version: int) -> bool:
    """Whether all records of the format `version` have the column.

    Those that count by reason may be absent: an older Weir had fewer reasons for drops and marks.
    """
    return column["since"] <= version and column["family"] is None


def spans_of_rows(
    table: str, spans: Sequence[tuple[int, int]], sampling: Mapping[str, Any]
) -> list[tuple[int, int]]:
    """Where `t_ns` lies of the rows of a table that belong to spans of time, in ns, the ends excluded.

    A row of a moment belongs to the span in which the moment lies, one of an interval to that in which the
    interval's middle does: its `t_ns` is the interval's end, which a live world tells a little late.

    Args:
        table: a table whose rows are not of the whole run.
        spans: starts and ends in ns.
        sampling: how often what was sampled, as a record's manifest has it.
    """
    if OF_EACH[table] == "moment":
        return list(spans)
    half_ns = sampling.get(f"{SAMPLED_WITH.get(table, table)}_ns", EMULATOR_NS) // 2
    return [(start + half_ns, end + half_ns) for start, end in spans]


def of_reasons(what: str) -> list[str]:
    """The columns of `queue` that count packets by reason.

    Args:
        what: `dropped` or `marked`.
    """
    return [name for name, column in TABLES["queue"].items() if column["family"] == what]


SAMPLED_WITH = {"udp": "throughput"}
"""Tables whose intervals are those of another."""

EMULATOR_NS = 100_000_000
"""Interval of the table `emulator`, which no scenario sets."""
