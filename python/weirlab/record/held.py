"""Records whose rows are in memory and nowhere else: for who wants figures of a run, and no record of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.record.reader import Record
from weirlab.record.tables import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weirlab.record.manifest import Manifest

Column = tuple[bytes | tuple[bytes, list[str]], bytes | None]
"""A column as `weirlab._native.simulate_rows` gives it: its values, and of each row whether it has one."""


class HeldRecord(Record):
    """A record that was never written: it has what the figures of a run are made of that came to its end.

    Of its tables there are `flows`, `throughput`, `latency`, `queue` and `methods`, with the columns of
    `COLUMNS`; to ask for others is an error.
    """

    def __init__(self, manifest: Manifest, tables: Mapping[str, Mapping[str, Column]]) -> None:
        """Holds the rows of a run.

        Args:
            manifest: under which circumstances the run came about.
            tables: the columns of each table, by the names of both.
        """
        self.path = Path("in memory")
        self.manifest = manifest
        self._held = tables

    def _is_long(self, table: str) -> bool:  # noqa: ARG002 - all are held
        return False

    def _table(self, name: str) -> pl.DataFrame:
        columns, kinds = self._held[name], schema(name)
        return pl.DataFrame(
            [_series(column, kinds[column], *columns[column]) for column in COLUMNS.get(name, kinds)]
        )


def _series(
    name: str, kind: pl.DataType, content: bytes | tuple[bytes, list[str]], known: bytes | None
) -> pl.Series:
    """A column as a series of that type."""
    if isinstance(content, tuple):
        codes, texts = content
        return pl.Series(name, texts, pl.String).gather(_where_known(np.frombuffer(codes, np.int64), known))
    numbers = np.frombuffer(content, dtype=np.float64 if kind == pl.Float64 else np.int64)
    return _where_known(numbers, known).alias(name)


def _where_known(numbers: NDArray[Any], known: bytes | None) -> pl.Series:
    """The numbers as a series, null in the rows that have none."""
    values = pl.Series(numbers)
    return values if known is None else values.set(pl.Series(~np.frombuffer(known, np.bool_)), None)


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "flows": (
        "flow",
        "sent_segments",
        "retransmitted_segments",
        "timeouts",
        "dropped_packets",
        "marked_packets",
    ),
    "throughput": ("t_ns", "flow", "bytes", "wire_bytes"),
    "latency": ("t_ns", "probe", "rtt_ns"),
    "queue": ("t_ns", "queue", "class", "wire_bytes"),
}
"""Columns of tables that a held record has. To make a column takes as long as to compute a figure of it."""
