"""Records whose rows are in memory and nowhere else: for who wants figures of a run, and no record of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.record.columns import Columns
from weirlab.record.reader import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from numpy.typing import NDArray

    from weirlab.record.columns import Values
    from weirlab.record.manifest import Manifest


class HeldRecord(Record):
    """A record that was never written: it has what the figures of a run are made of that came to its end.

    Of its tables there are `flows`, `throughput`, `latency`, `queue` and `methods`, with the columns of
    `COLUMNS`; to ask for others is an error.
    """

    def __init__(
        self,
        manifest: Manifest,
        tables: Mapping[str, Mapping[str, Values]],
        recordings: Mapping[str, str],
    ) -> None:
        """Holds the rows of a run.

        Args:
            manifest: under which circumstances the run came about.
            tables: the columns of each table, by the names of both.
            recordings: texts of the recorded lines that the scenario names, by name.
        """
        self.path = Path("in memory")
        self.manifest = manifest
        self._held, self._recordings, self._kept, self._columns = tables, recordings, {}, {}

    def recording(self, name: str) -> str:
        """The text of a recorded line that the scenario names, as the run had it: no file is read."""
        return self._recordings[name]

    def is_long(self, table: str) -> bool:  # noqa: ARG002 - all are held
        """No table is: all are held."""
        return False

    def _table(self, name: str) -> pl.DataFrame:
        return self.columns(name).frame()

    def _read(self, table: str) -> Columns:
        held = self._held[table]
        columns = Columns.of_values(table, {name: held[name] for name in COLUMNS.get(table, held)})
        if table != "latency":
            return columns
        return columns.in_order(_order(columns.numbers("t_ns"), columns.numbers("probe")))


def _order(time: NDArray[np.number[Any]], number: NDArray[np.number[Any]]) -> NDArray[np.intp]:
    """The order of rows by time, and by number where times are equal."""
    most = int(number.max(initial=0)) + 1
    if number.min(initial=0) < 0 or int(time.max(initial=0)) >= np.iinfo(np.int64).max // most:
        return np.lexsort((number, time))
    # Rows come almost in order, which one stable sort profits from.
    return np.argsort(time * most + number, kind="stable")


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
