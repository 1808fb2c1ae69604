"""`weir query`: asks a store of a sweep in SQL."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.cli.options import OneOf, argument, option
from weirlab.errors import UsageError, counted
from weirlab.record.parts import packed
from weirlab.sweeps.query import answer
from weirlab.sweeps.store import Store
from weirlab.ui import Table, console, note
from weirlab.writing import replaced

if TYPE_CHECKING:
    import polars as pl


@click.command("query")
@argument("place", metavar="STORE")
@argument("sql", metavar="SQL")
@option("--out", type=click.Path(path_type=Path), help="File for the answer: .csv, .jsonl or .parquet.")
@option("--format", "form", type=OneOf(["csv", "jsonl"]), help="Print the answer so, nothing else.")
def command(place: str, sql: str, *, out: Path | None, form: str | None) -> None:
    """Ask a store of a sweep in SQL. Its rows are the table `runs`, each run once.

    \b
    weir query rates.sweep 'SELECT queue, avg(increase_p95_ms) FROM runs GROUP BY queue'
    weir query rates.sweep 'DESCRIBE runs'
    weir query rates.sweep 'FROM runs WHERE error IS NULL' --out rows.parquet

    DuckDB answers, in whose SQL the question is written. It sees the rows and no other file, and changes
    nothing. What is there already is never replaced.
    """  # noqa: D301 - \b keeps click from folding the examples
    if out is not None:
        _check(out, form)
    found = answer(Store.opened(place), sql)
    if out is not None:
        replaced(out, lambda part: part.write_bytes(_content(found, out.suffix)))
        note(f"{counted(found.height, 'row')} in {out}")
    elif form is not None:
        click.echo(_content(found, f".{form}"), nl=False)
    elif not found.height:
        note("the answer has no rows")
    else:
        console.print(_table(found))
        if found.height > MAX_SHOWN:
            note(f"the first {MAX_SHOWN} of {found.height} rows: `--out FILE` and `--format` have all")


def _check(out: Path, form: str | None) -> None:
    if form is not None:
        raise UsageError("--out and --format exclude each other: the suffix of the file is its format")
    if out.suffix not in SUFFIXES:
        raise UsageError(
            f"`{out}`: write a file with the suffix {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        )
    if out.exists():
        raise UsageError(f"`{out}` is there already: choose another name")


def _content(found: pl.DataFrame, suffix: str) -> bytes:
    content = io.BytesIO()
    if suffix == ".csv":
        found.write_csv(content)
    elif suffix == ".jsonl":
        found.write_ndjson(content)
    else:
        content.write(packed(found))
    return content.getvalue()


def _table(found: pl.DataFrame) -> Table:
    table = Table()
    for name, kind in found.schema.items():
        table.add_column(name, justify="right" if kind.is_numeric() else "left")
    for row in found.head(MAX_SHOWN).iter_rows():
        table.add_row(*map(_cell, row))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


SUFFIXES = (".csv", ".jsonl", ".parquet")

MAX_SHOWN = 100
"""Rows of an answer that are shown as a table."""
