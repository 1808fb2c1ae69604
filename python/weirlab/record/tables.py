"""The tables of a record and their columns, declared by `crates/scenario/src/rows.rs` for all languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

TABLES: Mapping[str, Mapping[str, _native.Column]] = {
    table["name"]: {column["name"]: column for column in table["columns"]} for table in _native.tables()
}
"""The columns of each table, by their names and in their order."""

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


def of_reasons(what: str) -> list[str]:
    """The columns of `queue` that count packets by reason.

    Args:
        what: `dropped` or `marked`.
    """
    return [name for name, column in TABLES["queue"].items() if column["family"] == what]
