"""Records for other programs: one file a record for Weir, Flent or Wireshark, or tidy tables.

The same records give the same bytes.
"""

from __future__ import annotations

import io
import os
import re
from functools import partial
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, cast

import polars as pl
from polars.io.plugins import register_io_source

from weirlab.capture import Packets, check_packets, write_packets
from weirlab.errors import UsageError
from weirlab.flent.exporting import FLENT_SUFFIX, check_exportable, export_flent, flent_name
from weirlab.record import pack
from weirlab.record.configurations import distinct, numbered, shared_parts
from weirlab.tidy import TABLES, frame, samples
from weirlab.writing import all_replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from weirlab.record import Record
    from weirlab.tidy import Rows

FORMATS = ("weir", "flent", "pcapng", "csv", "jsonl", "parquet")

SUFFIXES = {
    ".weir": "weir",
    FLENT_SUFFIX: "flent",
    ".pcapng": "pcapng",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
}
"""The suffixes of files and their formats."""

NAMES = ("runs", "probes", "flows", *TABLES)
"""All tables that can be exported: figures first, then samples."""


def export(  # noqa: PLR0913 - what may be said of one format each
    records: Sequence[Record],
    out: Path,
    form: str | None = None,
    table: str | None = None,
    packets: Packets | None = None,
    *,
    title: str | None = None,
) -> list[Path]:
    """Writes `records` for other programs.

    Args:
        records: the records; one that is given twice is written once.
        out: a file with one of `SUFFIXES`, or a folder for several files.
        form: one of `FORMATS`; of a file the one that its suffix names if None.
        table: one of `NAMES`; None is `runs` for a file, and all tables that have a row for a folder.
        packets: which packets, of a pcapng file only; None for those that leave the slowest hops.
        title: TITLE of a file for Flent; None for link and queue, or that of the file that was imported.

    Returns:
        The files that were written.

    Raises:
        UsageError: if something is there already, or words do not fit together; nothing is written then.
        WriteError: if a file cannot be written; none of them stays.
    """
    wanted, alone = planned(out, form, table, packets, title=title)
    chosen = distinct(records)
    if wanted in OF_ONE_RECORD:
        if alone and len(chosen) > 1:
            suffix = next(suffix for suffix, one in SUFFIXES.items() if one == wanted)
            raise UsageError(
                f"`{out}`: a {suffix} file holds one record, not {len(chosen)}: "
                f"name a folder and give --format {wanted}"
            )
        if wanted == "flent":
            return _write(_for_flent(chosen, out, title, alone=alone))
        targets = [out] if alone else _names(chosen, out, wanted)
        if wanted == "pcapng":
            return _write(_captures(chosen, targets, packets or Packets()))
        return _write({path: partial(pack, one) for path, one in zip(targets, chosen, strict=True)})
    if alone:
        return _write({out: _table(chosen, table or "runs", wanted)})
    tables = [table] if table else [name for name in NAMES if _any_rows(chosen, name)]
    return _write({out / f"{name}.{wanted}": _table(chosen, name, wanted) for name in tables})


def planned(
    out: Path,
    form: str | None,
    table: str | None,
    packets: Packets | None = None,
    *,
    title: str | None = None,
) -> tuple[str, bool]:
    """The format, and whether one file is written.

    Raises:
        UsageError: if words do not fit together, or something is there already.
    """
    named = [(suffix, one) for suffix, one in SUFFIXES.items() if out.name.lower().endswith(suffix)]
    alone = bool(named)
    if form is not None and form not in FORMATS:
        raise UsageError(f"there is no format `{form}` (known: {', '.join(FORMATS)})")
    if named and form not in (None, named[0][1]):
        raise UsageError(f"`{out}`: its name says {named[0][0]}, --format says {form}: leave one of them out")
    wanted = named[0][1] if named else form
    if wanted is None:
        raise UsageError(f"`{out}`: name a file that ends in {_any_of(SUFFIXES)}, or give --format too")
    if table is not None and table not in NAMES:
        raise UsageError(f"there is no table `{table}` (known: {', '.join(NAMES)})")
    if table is not None and wanted in OF_ONE_RECORD:
        suffix = next(suffix for suffix, one in SUFFIXES.items() if one == wanted)
        raise UsageError(f"table `{table}`: a {suffix} file always holds the whole record; leave it out")
    if packets is not None and wanted != "pcapng":
        raise UsageError(f"`{out}`: only a .pcapng file has packets: leave the words about packets out")
    if title is not None and wanted != "flent":
        raise UsageError(f"`{out}`: only a {FLENT_SUFFIX} file has a title: leave `{title}` out")
    if alone and os.path.lexists(out):
        raise UsageError(f"`{out}` exists: choose another name, or take it away first")
    if not alone and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"`{out}` exists and is not an empty folder: choose another one")
    return wanted, alone


def _any_of(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"


def _for_flent(
    records: Sequence[Record], out: Path, title: str | None, *, alone: bool
) -> dict[Path, Callable[[Path], object]]:
    """Files to write for Flent and what writes them; in a folder they have Flent's own names.

    Raises:
        UsageError: if Flent has no test for one of the records; nothing is written then.
    """
    for record in records:
        check_exportable(record)
    named = numbered([flent_name(one, title).removesuffix(FLENT_SUFFIX) for one in records], "{}_{}")
    names = [out] if alone else [out / f"{name}{FLENT_SUFFIX}" for name in named]
    return {path: partial(export_flent, one, title=title) for path, one in zip(names, records, strict=True)}


def _captures(
    records: Sequence[Record], targets: Sequence[Path], packets: Packets
) -> dict[Path, Callable[[Path], object]]:
    """Files of packets to write, and what writes them.

    Raises:
        UsageError: if one of the runs cannot be made again; nothing is written then.
    """
    for record in records:
        check_packets(record)
    pairs = zip(targets, records, strict=True)
    return {path: partial(write_packets, one, packets=packets) for path, one in pairs}


def _any_rows(records: Sequence[Record], name: str) -> bool:
    return any(rows.height > 0 for rows in _content(records, name))


def _content(records: Sequence[Record], name: str) -> Iterator[pl.DataFrame]:
    """A table in frames of the same columns, the first of which tells them."""
    by: dict[str, Rows] = {"runs": "run", "probes": "probe", "flows": "flow"}
    return iter([frame(records, by=by[name])]) if name in by else samples(records, name)


def _table(records: Sequence[Record], name: str, form: str) -> Callable[[Path], object]:
    def write(part: Path) -> None:
        with part.open("wb") as opened:
            file = _Watched(opened)
            try:
                WRITERS[form](_content(records, name), cast("IO[bytes]", file))
            except (OSError, pl.exceptions.PolarsError):
                if file.failed is not None:
                    raise file.failed from None
                raise

    return write


def _write_csv(frames: Iterator[pl.DataFrame], file: IO[bytes]) -> None:
    for number, rows in enumerate(frames):
        rows.write_csv(file, include_header=number == 0)


def _write_jsonl(frames: Iterator[pl.DataFrame], file: IO[bytes]) -> None:
    for rows in frames:
        rows.write_ndjson(file)


def _write_parquet(frames: Iterator[pl.DataFrame], file: IO[bytes]) -> None:
    first = next(frames)
    failed: list[Exception] = []

    def source(
        _columns: list[str] | None, _predicate: object, _rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        try:
            yield from chain([first], frames)
        except Exception as error:
            failed.append(error)
            raise

    try:
        register_io_source(source, schema=first.schema).sink_parquet(
            file, compression="zstd", row_group_size=ROW_GROUP_ROWS, engine="streaming"
        )
    except pl.exceptions.PolarsError:
        # Polars tells what went wrong while it was asked for rows as an error of its own.
        if failed:
            raise failed[0] from None
        raise


class _Watched(io.RawIOBase):
    """A file that keeps the error that writing ended in: Polars tells it as one of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.failed: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        try:
            return self._file.write(content)
        except OSError as error:
            self.failed = error
            raise


def _names(records: Sequence[Record], folder: Path, suffix: str) -> list[Path]:
    """A file for each record: the parts of its path in which it differs from the others."""
    paths = [one.path.resolve() for one in records]
    parts = [(*path.parts[:-1], path.name.removesuffix(".weir")) for path in paths]
    # Whatever they share, a file has the last part of its record's path in its name.
    shared = min(shared_parts(parts), min(map(len, parts)) - 1)
    names = [re.sub(r"[^\w.-]+", "-", "-".join(one[shared:])) for one in parts]
    return [folder / f"{name}.{suffix}" for name in numbered(names, "{}-{}")]


def _write(files: dict[Path, Callable[[Path], object]]) -> list[Path]:
    all_replaced(files)
    return list(files)


WRITERS = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}
"""What writes frames of one table into a file, by format; none holds more than a few of them."""

ROW_GROUP_ROWS = 2**18
"""Rows of a group of a Parquet file, which is what readers read at a time."""

OF_ONE_RECORD = ("weir", "flent", "pcapng")
"""Formats of which a file holds one record, and not tables of several."""
