"""Part files of a record's tables: whether they are what they should be, their rows, and their bytes."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Literal

import polars as pl

from weirlab.record.tables import MAX_PART_ROWS, OF_WHAT, TABLES, is_always_there, schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Kinds = Mapping[str, pl.DataType]

__all__ = ["PartError", "decoded", "decoded_as_one", "packed"]


def packed(
    rows: pl.DataFrame, compression: Literal["zstd", "snappy"] = "zstd", *, statistics: bool = True
) -> bytes:
    """The rows as a Parquet file, for who writes it: Polars tells a full disk as an error of its own."""
    content = io.BytesIO()
    rows.write_parquet(content, compression=compression, statistics=statistics)
    return content.getvalue()


class PartError(ValueError):
    """What is wrong with a part file, in words that name it but not its record."""


def decoded(part: str, content: bytes, names: Sequence[str] | None, version: int) -> pl.DataFrame:
    """The rows of a part file.

    Args:
        part: its name in the record, such as `latency/part-000000.parquet`.
        content: its bytes.
        names: the columns that are wanted, in this order; None for all. One that the record's format did not
            have yet is null.
        version: the record's `schema_version`.

    Raises:
        PartError: if it is damaged, or is no part of that table.
    """
    try:
        columns = pl.read_parquet_schema(io.BytesIO(content))
        there = None if names is None else [name for name in names if name in columns]
        # A part is read in a few ms: to share it out among threads would take longer.
        frame = pl.read_parquet(io.BytesIO(content), columns=there, n_rows=MAX_PART_ROWS + 1, parallel="none")
    except DAMAGED as error:
        raise PartError(f"`{part}` is damaged: it is no whole Parquet file") from error
    if frame.height > MAX_PART_ROWS:
        raise PartError(f"`{part}` has more than {MAX_PART_ROWS} rows, which is the most")
    return _of_table(part, frame, columns, names, version)


def decoded_as_one(parts: Sequence[str], contents: Sequence[bytes], version: int) -> pl.DataFrame:
    """The rows of all part files of a table, with all columns, in one frame.

    Args:
        parts: their names in the record.
        contents: their bytes.
        version: the record's `schema_version`.

    Raises:
        PartError: if one is damaged, is no part of that table, or has other columns than the first.
    """
    whole = _together(parts, contents, version) if len(parts) > 1 else None
    if whole is None:
        # Alone each tells what is wrong with it.
        frames = [decoded(part, one, None, version) for part, one in zip(parts, contents, strict=True)]
        try:
            whole = pl.concat(frames)
        except pl.exceptions.PolarsError as error:
            name = parts[0].partition("/")[0]
            raise PartError(f"the part files of `{name}` have different columns") from error
    return whole.rechunk()


def _together(parts: Sequence[str], contents: Sequence[bytes], version: int) -> pl.DataFrame | None:
    """All read in one go, in a part of the time of one by one; None if one is not as it should be."""
    try:
        first, *others = (pl.read_parquet_schema(io.BytesIO(content)) for content in contents)
        if any(other != first for other in others):
            return None
        files: list[IO[bytes]] = [io.BytesIO(content) for content in contents]
        # Of more rows than a part may have one alone may have too many.
        whole = pl.read_parquet(files, n_rows=MAX_PART_ROWS + 1)
        fits = whole.height <= MAX_PART_ROWS
        return _of_table(parts[0], whole, first, None, version) if fits else None
    except (*DAMAGED, PartError):
        return None


def _of_table(
    part: str, frame: pl.DataFrame, columns: Kinds, names: Sequence[str] | None, version: int
) -> pl.DataFrame:
    """The frame of a part that has these columns, with those that are wanted.

    Raises:
        PartError: if a column is missing or is another, or a row does not say of what it is.
    """
    name = part.partition("/")[0]
    kinds, later = schema(name), []
    for column, kind in kinds.items():
        found = columns.get(column)
        if found is None and not is_always_there(TABLES[name][column], version):
            later.append(column)
        elif found != kind:
            has = "is missing" if found is None else f"is {found}"
            raise PartError(f"`{part}` is no part of `{name}`: `{column}` {has} and should be {kind}")
        elif column in OF_WHAT and column in frame.columns and (nulls := frame[column].null_count()):
            raise PartError(
                f"`{part}` is no part of `{name}`: {nulls} of {frame.height} rows have no `{column}`, which "
                "all should have"
            )
    if later:
        frame = frame.with_columns(pl.lit(None, kinds[column]).alias(column) for column in later)
        frame = frame.select(*kinds, pl.exclude(*kinds)) if names is None else frame
    return frame if names is None else frame.select(names)


DAMAGED = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What Polars raises of a file that is no whole Parquet file."""
