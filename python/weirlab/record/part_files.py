"""The part files of a record: that they are those that were written, and what stands in them."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from weirlab import _native
from weirlab.errors import RecordError
from weirlab.record.columns import Columns
from weirlab.record.tables import MAX_PART_ROWS, OF_WHAT, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    import polars as pl

    from weirlab.record.manifest import Manifest
    from weirlab.record.store import Store

__all__ = ["PartFiles"]

Rows = TypeVar("Rows", "pl.DataFrame", Columns)


class PartFiles:
    """The part files of a record; what reads them raises `RecordError` if they are not what was written."""

    def __init__(self, store: Store, path: Path, manifest: Manifest) -> None:
        """Those of the record at `path`, which lie in `store`.

        Raises:
            RecordError: if one that the manifest counts is missing, or one does not belong to it.
        """
        self._store, self._path = store, path
        self._written, self._version = manifest.tables, manifest.schema_version
        self._compared: set[str] = set()
        there = store.parts()
        self._names = {
            table: self._counted(table, [part for part in there if part.startswith(f"{table}/")])
            for table in TABLES
        }

    def names(self, table: str) -> list[str]:
        """The names of a table's part files, in their order."""
        return self._names[table]

    def columns(self, table: str) -> Columns | None:
        """All rows of a table as arrays; None if the files are not such as this Weir writes."""
        parts = self._names[table]
        contents = list(self._store.contents(parts))
        if parts:
            self._compare(table, contents)
        columns = _read(table, contents, None)
        if columns is not None:
            self._compare_rows(table, columns.height)
        return columns

    def frame(self, table: str) -> pl.DataFrame:
        """All rows of a table that has part files."""
        from weirlab.record.parts import decoded_as_one  # noqa: PLC0415 - loads Polars

        contents = list(self._store.contents(self._names[table]))
        self._compare(table, contents)
        with self._told():
            whole = decoded_as_one(self._names[table], contents, self._version)
        self._compare_rows(table, whole.height)
        return whole

    def pieces(self, table: str, names: Sequence[str]) -> Iterator[Columns]:
        """Some columns of a table as arrays, a few part files at a time."""
        several = _several(self._whole(table))
        return self._all_of(table, (piece for some in several for piece in self._arrays(table, some, names)))

    def frames(self, table: str, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns of a table, one part file at a time."""
        return self._all_of(
            table, (self._decoded(one, content, names) for one, content in self._whole(table))
        )

    def frames_at_once(self, table: str, names: Sequence[str]) -> list[pl.DataFrame]:
        """As `frames`, all at once: one thread reads and compares part files, others decode them."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most figures need none

        parts = self._names[table]
        pending: list[Future[pl.DataFrame]] = []
        with ThreadPoolExecutor(DECODERS) as pool:

            def handed_over() -> Iterator[bytes]:
                for part, content in zip(parts, self._store.contents(parts), strict=True):
                    pending.append(pool.submit(self._decoded, part, content, names))
                    yield content

            try:
                self._compare(table, handed_over())
                frames = [one.result() for one in pending]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return list(self._all_of(table, frames))

    def _counted(self, table: str, found: list[str]) -> list[str]:
        """The part files of a table that were found, if they are those that the manifest counts."""
        if self._written is None:
            return found
        count = self._written[table].parts if table in self._written else 0
        wanted = [f"{table}/part-{number:06d}.parquet" for number in range(count)]
        files = f"the run wrote {count} part files of `{table}`"
        for part in wanted:
            if part not in found:
                raise RecordError(f"`{self._path}`: `{part}` is missing: {files}")
        for part in found:
            if part not in wanted:
                raise RecordError(f"`{self._path}`: `{part}` does not belong to it: {files}")
        return found

    def _whole(self, table: str) -> Iterator[tuple[str, bytes]]:
        """The part files of a table, which are those that were written: names and bytes."""
        parts = self._names[table]
        if table not in self._compared:
            self._compare(table, self._store.contents(parts))
        return zip(parts, self._store.contents(parts), strict=True)

    def _all_of(self, table: str, pieces: Iterable[Rows]) -> Iterator[Rows]:
        """The pieces of a table, which together have as many rows as were written."""
        rows = 0
        for piece in pieces:
            rows += piece.height
            yield piece
        self._compare_rows(table, rows)

    def _arrays(
        self, table: str, some: Sequence[tuple[str, bytes]], names: Sequence[str]
    ) -> Iterable[Columns]:
        read = _read(table, [content for _, content in some], names)
        if read is not None:
            return [read]
        return (Columns.of_frame(table, self._decoded(part, content, names)) for part, content in some)

    def _decoded(self, part: str, content: bytes, names: Sequence[str]) -> pl.DataFrame:
        from weirlab.record.parts import decoded  # noqa: PLC0415 - loads Polars

        with self._told():
            return decoded(part, content, names, self._version)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What is wrong with a part file is told with the record's name."""
        from weirlab.record.parts import PartError  # noqa: PLC0415 - loads Polars

        try:
            yield
        except PartError as error:
            raise RecordError(f"`{self._path}`: {error}") from error

    def _compare_rows(self, table: str, rows: int) -> None:
        """Refuses a table that has more or fewer rows than were written, if that is known."""
        written = (self._written or {}).get(table)
        if written is not None and rows != written.rows:
            raise RecordError(f"`{self._path}`: `{table}` has {rows} rows of {written.rows}")

    def _compare(self, table: str, contents: Iterable[bytes]) -> None:
        """Compares the bytes of a table's part files with the digest of what was written, if there is one."""
        written = (self._written or {}).get(table)
        if written is not None:
            digest = hashlib.sha256()
            for content in contents:
                digest.update(content)
            if digest.hexdigest() != written.sha256:
                raise RecordError(
                    f"`{self._path}`: `{table}` is damaged: its bytes are not those that were written"
                )
        self._compared.add(table)


def _several(parts: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Part files that are read together, as one by one takes longer where they are small."""
    some: list[tuple[str, bytes]] = []
    size = 0
    for name, content in parts:
        if some and size + len(content) > PIECE_BYTES:
            yield some
            some, size = [], 0
        some.append((name, content))
        size += len(content)
    if some:
        yield some


def _read(table: str, contents: Sequence[bytes], names: Sequence[str] | None) -> Columns | None:
    """Columns of part files, or all; None if they are not such as this Weir writes."""
    values = _native.read_table(table, contents, MAX_PART_ROWS, names)
    if values is None:
        return None
    columns = Columns.of_values(table, values)
    told = all(columns.known(name) is None for name in OF_WHAT if name in columns)
    return columns if told else None


DECODERS = 2
"""Threads that decode part files while a third reads them: more wait for the disk and for each other."""

PIECE_BYTES = 1 << 19
"""Part files that are read together have no more bytes, if there are several."""
