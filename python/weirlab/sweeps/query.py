"""Questions to a store in SQL, answered by DuckDB, which sees the store's rows and nothing else.

The rows are copied into a database in memory. Then DuckDB is told to touch no file, no network and no object
of this process any more, and that this cannot be changed; only then the SQL is read. So a question of others
can neither read another file nor change the store.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import UsageError, WeirError, cannot_write
from weirlab.record.parts import packed

if TYPE_CHECKING:
    from weirlab.sweeps.store import Store


def answer(store: Store, sql: str) -> pl.DataFrame:
    """What a question in SQL comes to; the rows of the store are the table `runs`, each run once.

    Args:
        store: the store.
        sql: one `SELECT` in the SQL of DuckDB, or what stands for one, such as `DESCRIBE`.

    Raises:
        UsageError: if DuckDB is missing, the SQL is none, does something else than to ask, or asks for a
            column of a type that no table of text holds.
        WeirError: if the answer needs more memory than there is.
        RecordError: if a part of the store cannot be read.
    """
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            "DuckDB is not installed, which answers SQL: `pip install 'weirlab[query]'`"
        ) from error
    with duckdb.connect(":memory:", config=dict(_CLOSED)) as base:
        _load(base, store)
        try:
            return _answered(duckdb, base, sql)
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            raise WeirError(f"the answer needs more memory than there is: {_said(error)}") from error
        except duckdb.Error as error:
            raise UsageError(f"SQL: {_said(error)}") from error
        except RuntimeError as error:
            # So DuckDB tells of Ctrl-C while it works.
            if isinstance(error.__cause__, KeyboardInterrupt):
                # Its other threads would work on, and keep the database.
                base.interrupt()
                raise error.__cause__ from None
            raise


def _load(base: Any, store: Store) -> None:
    """Copies the rows of a store into the table `runs`, then shuts the doors for good."""
    with tempfile.TemporaryDirectory(prefix="weir-query-") as folder:
        rows = Path(folder) / "runs.parquet"
        try:
            rows.write_bytes(packed(store.collected()))
        except OSError as error:
            raise cannot_write(f"`{rows}` cannot be written", error) from error
        base.read_parquet(str(rows)).create("runs")
    base.execute("SET enable_external_access = false")
    base.execute("SET lock_configuration = true")


def _answered(duckdb: Any, base: Any, sql: str) -> pl.DataFrame:
    statements = base.extract_statements(sql)
    if len(statements) != 1:
        raise UsageError(f"SQL: {len(statements)} statements: write one")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(f"SQL: `{statements[0].type.name}` is refused: write a `SELECT`")
    found = base.sql(statements[0].query)
    for name, kind in zip(found.columns, found.types, strict=True):
        if kind.id not in _SCALARS:
            raise UsageError(f"SQL: column `{name}` is of type {kind}: cast it, as in `{name}::VARCHAR`")
    doubled = {name for name in found.columns if found.columns.count(name) > 1}
    if doubled:
        raise UsageError(f"SQL: two columns `{min(doubled)}`: name one of them with `AS`")
    columns = [_read_as(name, kind.id) for name, kind in zip(found.columns, found.types, strict=True)]
    # First the answer as a whole: what goes wrong is told by DuckDB, not by who reads its rows.
    found.project(", ".join(columns)).create("answer")
    return pl.DataFrame(base.table("answer"))


def _read_as(name: str, kind: str) -> str:
    """A column as it is handed over: no reader has integers of 128 bits, which sums of integers are."""
    quoted = '"' + name.replace('"', '""') + '"'
    return f"{quoted}::DOUBLE AS {quoted}" if kind == "hugeint" else quoted


def _said(error: BaseException) -> str:
    """The first paragraph of what DuckDB says, in one line."""
    return re.sub(r"\s+", " ", str(error).split("\n\n", maxsplit=1)[0]).strip()


_CLOSED = {
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}
"""Settings with which DuckDB fetches no extensions, spills into no file, and sees no variables of Python."""

_SCALARS = {
    *(
        "boolean",
        "varchar",
        "date",
        "time",
        "timestamp",
        "timestamp with time zone",
        "decimal",
        "float",
        "double",
    ),
    *("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint"),
}
"""Types that a table, CSV, JSON lines and Parquet all hold."""
