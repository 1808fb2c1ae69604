"""Records whose rows are in memory and nowhere else: for who wants figures of a run, and no record of it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.record.reader import Record
from weirlab.record.round_trips import COLUMNS as ROUND_TRIPS
from weirlab.record.round_trips import RoundTrips
from weirlab.record.tables import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from weirlab.record.manifest import Manifest

Column = tuple[bytes | tuple[bytes, list[str]], bytes | None]
"""A column as `weirlab._native.simulate_rows` gives it: its values, and of each row whether it has one."""


class HeldRecord(Record):
    """A record that was never written: it has what the figures of a run are made of that came to its end.

    Of its tables there are `flows`, `throughput`, `latency`, `queue` and `methods`, with the columns of
    `COLUMNS`; to ask for others is an error.
    """

    def __init__(
        self,
        manifest: Manifest,
        tables: Mapping[str, Mapping[str, Column]],
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
        self._held, self._recordings, self._kept = tables, recordings, {}

    @cached_property
    def latency(self) -> pl.DataFrame:
        """The pings by the time of sending, as those of a written record."""
        return self._made("latency", self._latency_order)

    @cached_property
    def _latency_order(self) -> NDArray[np.intp]:
        columns = self._held["latency"]
        return _order(_numbers(columns["t_ns"][0]), _numbers(columns["probe"][0]))

    def round_trip_chunks(self) -> Iterator[RoundTrips]:
        """The rows of `latency` as arrays, of which no data frame is made."""
        columns, order = self._held["latency"], self._latency_order
        at, probe, value = (
            _numbers(columns[name][0])[order].astype(np.int64, copy=False) for name in ROUND_TRIPS
        )
        known = columns["rtt_ns"][1]
        yield RoundTrips(at, probe, value, None if known is None else np.frombuffer(known, np.bool_)[order])

    def recording(self, name: str) -> str:
        """The text of a recorded line that the scenario names, as the run had it: no file is read."""
        return self._recordings[name]

    def line(self, queue: str) -> tuple[NDArray[np.number[Any]], NDArray[np.number[Any]]]:
        """Of a queue such as `up/modem` the ends of intervals in ns, and bytes of the line it occupied."""
        columns = self._held["queue"]
        whole = _is(columns["queue"][0], queue) & _is(columns["class"][0], "")
        return _numbers(columns["t_ns"][0])[whole], _numbers(columns["wire_bytes"][0])[whole]

    def is_long(self, table: str) -> bool:  # noqa: ARG002 - all are held
        """No table is: all are held."""
        return False

    def _table(self, name: str) -> pl.DataFrame:
        return self._made(name, None)

    def _made(self, name: str, order: NDArray[np.intp] | None) -> pl.DataFrame:
        """A table with its rows in an order, or in that in which they came."""
        columns, kinds = self._held[name], schema(name)
        chosen = COLUMNS.get(name, kinds)
        return pl.DataFrame([_series(column, kinds[column], columns[column], order) for column in chosen])


def _order(time: NDArray[np.number[Any]], number: NDArray[np.number[Any]]) -> NDArray[np.intp]:
    """The order of rows by time, and by number where times are equal."""
    most = int(number.max(initial=0)) + 1
    if number.min(initial=0) < 0 or int(time.max(initial=0)) >= np.iinfo(np.int64).max // most:
        return np.lexsort((number, time))
    # Rows come almost in order, which one stable sort profits from.
    return np.argsort(time * most + number, kind="stable")


def _series(name: str, kind: pl.DataType, column: Column, order: NDArray[np.intp] | None) -> pl.Series:
    """A column as a series of that type."""
    content, known = column
    numbers = _numbers(content, kind)
    missing = None if known is None else ~np.frombuffer(known, np.bool_)
    if order is not None:
        numbers = numbers[order]
        missing = None if missing is None else missing[order]
    values = pl.Series(name, numbers)
    if missing is not None:
        values = values.set(pl.Series(missing), None)
    if isinstance(content, tuple):
        return pl.Series(name, content[1], pl.String).gather(values)
    return values


def _numbers(
    content: bytes | tuple[bytes, list[str]], kind: pl.DataType | None = None
) -> NDArray[np.number[Any]]:
    """The numbers of a column, or the places of its texts; 0 where there is none."""
    if isinstance(content, tuple):
        return np.frombuffer(content[0], np.int64)
    return np.frombuffer(content, np.float64 if kind == pl.Float64 else np.int64)


def _is(content: bytes | tuple[bytes, list[str]], text: str) -> NDArray[np.bool_]:
    """Which rows of a column of texts have that one."""
    texts = content[1] if isinstance(content, tuple) else []
    return np.asarray(_numbers(content) == (texts.index(text) if text in texts else -1), dtype=np.bool_)


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
