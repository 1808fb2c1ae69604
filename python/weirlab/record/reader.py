"""Reading records: folders and `.weir` files, whole or cut short."""

from __future__ import annotations

import json
import zipfile
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import numpy as np

from weirlab.errors import RecordError, UsageError
from weirlab.given import path_of
from weirlab.record.columns import Columns
from weirlab.record.flows import FLOW, rows_of_connections, rows_of_flows
from weirlab.record.in_order import in_order, least_of, order_of
from weirlab.record.manifest import SCHEMA, Manifest
from weirlab.record.notes import keep_notes, notes_in
from weirlab.record.part_files import PartFiles
from weirlab.record.places import record_paths, store_paths
from weirlab.record.round_trips import COLUMNS as ROUND_TRIPS
from weirlab.record.round_trips import round_trips_in
from weirlab.record.store import MANIFEST, NOTES, open_store
from weirlab.record.tables import OF_WHAT, TABLES, schema
from weirlab.record.upgrade import upgraded
from weirlab.scenario.plain import load_trace
from weirlab.scenario.recordings import digest_of
from weirlab.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

    from weirlab.record.round_trips import RoundTrips

EPOCH, READABLE = (1980, 1, 1, 0, 0, 0), 0o644 << 16
"""Time and rights of the files in an archive: the same in all, whatever the disk says."""


class Record(Shown):
    """Record of one run.

    The tables are Polars data frames, sorted by time; docs/record.md describes their columns. A record
    whose run was cut short reads like any other, up to where it was cut.
    """

    shown_as = "record"

    manifest: Manifest

    def __init__(self, path: Path) -> None:
        """Opens the record at `path`: a folder, or a `.weir` file.

        Tables are read when they are first asked for.

        Raises:
            RecordError: if it is none, is damaged, or a part file is missing or does not belong to it.
        """
        self.path = path
        self._store = open_store(path)
        text = self._store.read(MANIFEST)
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._damaged("it is no JSON") from error
        if isinstance(raw, dict) and "schema_version" not in raw and store_paths(path):
            raise RecordError(f"`{path}` is no record, but a store of a sweep: `weir sweep show {path}`")
        try:
            version = raw.get("schema_version") if isinstance(raw, dict) else None
            if isinstance(version, int) and version > SCHEMA:
                raise RecordError(
                    f"`{path}` has format {version}; this Weir reads up to {SCHEMA}: use a newer Weir"
                )
            self.manifest = Manifest.read(upgraded(raw) if isinstance(raw, dict) else raw)
        except ValueError as error:
            raise self._damaged(str(error)) from error
        self._take_notes()
        self._files = PartFiles(self._store, path, self.manifest)
        self._kept: dict[str, dict[str, list[pl.Series]]] = {}
        self._columns: dict[str, Columns] = {}

    def annotate(self, note: str, tags: Iterable[str]) -> None:
        """Keeps a note and tags for this record, in place of those that it had.

        They stand in a file of their own, `notes.json` in the record's folder or `NAME.weir.notes.json`
        beside its archive: nothing that was measured changes.

        Args:
            note: free text of up to 10000 letters; empty for none.
            tags: up to 100 words without spaces; one that is given twice is kept once.

        Raises:
            UsageError: if the note is too long, or a tag is no word.
            WriteError: if the file cannot be written.
        """
        kept = note, list(tags)
        keep_notes(self._store, lambda: kept)
        self._take_notes()

    def note_more(self, change: Callable[[str, list[str]], tuple[str, list[str]]]) -> None:
        """Keeps as `annotate` what `change` makes of note and tags, as they are by now.

        What others note of the record meanwhile, in this process or another, is not lost.

        Raises:
            RecordError: if those that are there cannot be read.
            UsageError, WriteError: as `annotate`.
        """

        def changed() -> tuple[str, list[str]]:
            self._take_notes()
            return change(self.manifest.note, list(self.manifest.tags))

        keep_notes(self._store, changed)
        self._take_notes()

    def _take_notes(self) -> None:
        notes = notes_in(self._store, self.path)
        if notes is not None:
            self.manifest = replace(self.manifest, note=notes.note, tags=notes.tags)

    def __repr__(self) -> str:
        """The record's path, as code."""
        return f"Record({str(self.path)!r})"

    def keep_alive(self, owner: object) -> None:
        """Holds `owner`, in which the record's files lie, as long as this record is held."""
        self._owner = owner

    def check(self) -> None:
        """Reads all tables.

        Raises:
            RecordError: if one is damaged, or is not what was written.
        """
        for name in TABLES:
            if self.is_long(name):
                deque(self.pieces(name, [one for one in TABLES[name] if one in OF_WHAT]), maxlen=0)
            else:
                self.columns(name)
        self.flow_rows  # noqa: B018 - whether they can be told

    def _damaged(self, why: str) -> RecordError:
        return RecordError(f"`{self.path}`: its {MANIFEST} is damaged: {why}")

    def release(self) -> None:
        """Lets go of the tables that were read as arrays; who asks for one has it read again."""
        self._columns.clear()

    @property
    def label(self) -> str:
        """The queue spec, which is what tells runs of one comparison apart."""
        return self.manifest.queue

    @cached_property
    def latency(self) -> pl.DataFrame:
        """One row a ping: `t_ns`, `probe`, `seq`, `rtt_ns` (null: lost), `up_ns`, `down_ns`."""
        rows = self._table("latency")
        order = order_of(rows["t_ns"].to_numpy(), rows["probe"].to_numpy())
        return rows if order is None else rows[order]

    @cached_property
    def throughput(self) -> pl.DataFrame:
        """Bytes that arrived in each interval: `t_ns`, `flow`, `bytes`, `wire_bytes`."""
        return self._table("throughput")

    @cached_property
    def tcp(self) -> pl.DataFrame:
        """State of the senders: `t_ns`, `flow`, `cwnd_segments`, `srtt_ns` and so on."""
        return self._table("tcp")

    @cached_property
    def udp(self) -> pl.DataFrame:
        """What receivers of UDP flows counted: `t_ns`, `flow`, packets received and lost, delay, jitter."""
        return self._table("udp")

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """What applications asked for: `t_ns`, `flow`, `took_ns`, `outcome`, of videos bitrate and buffer."""
        return self._table("transfers")

    @cached_property
    def queue(self) -> pl.DataFrame:
        """State of queues and classes: `t_ns`, `queue`, `class`, backlog, sojourn, drops, marks."""
        return self._table("queue")

    def columns(self, table: str) -> Columns:
        """A whole table as arrays, with rows and order of its data frame; of pings see `round_trip_chunks`.

        Tables that a Weir with these columns wrote are read without Polars, which takes longer to load
        than to read all of them; the others are columns of the data frame.

        Args:
            table: name of the table, such as `latency`.

        Raises:
            RecordError: if a part file is damaged.
        """
        if table not in self._columns:
            read = None if self._has_frame(table) else self._read(table)
            self._columns[table] = Columns.of_frame(table, self._frame(table)) if read is None else read
        return self._columns[table]

    def _frame(self, table: str) -> pl.DataFrame:
        """The data frame of a table, by the table's name."""
        return cast("pl.DataFrame", getattr(self, FRAMES.get(table, table)))

    def _has_frame(self, table: str) -> bool:
        """Whether the data frame of a table is in memory."""
        return FRAMES.get(table, table) in self.__dict__

    def pieces(self, table: str, names: Sequence[str]) -> Iterator[Columns]:
        """Columns of a table of any length as arrays: all its rows at once, or some after the others.

        They are in the order in which they were written, which need not be that of time. A piece may have
        more columns than were asked for.

        Args:
            table: name of the table, such as `queue`.
            names: names of the columns.

        Raises:
            RecordError: if a part file is damaged.
        """
        if not self.is_long(table) or table in self._columns:
            yield self.columns(table)
        elif self._has_frame(table) or table in self._kept:
            for frame in self.chunks(table, names):
                yield Columns.of_frame(table, frame)
        else:
            yield from self._files.pieces(table, list(names))

    def has_rows(self, table: str) -> bool:
        """Whether a table has any rows.

        Args:
            table: name of the table, such as `throughput`.

        Raises:
            RecordError: if a part file is damaged.
        """
        return any(rows.height for rows in self.pieces(table, [next(iter(TABLES[table]))]))

    def _read(self, table: str) -> Columns | None:
        """The columns of a table; None if its part files are not such as this Weir writes."""
        columns = self._files.columns(table)
        if columns is None:
            return None
        if table == "latency":
            order = order_of(columns.numbers("t_ns"), columns.numbers("probe"))
            return columns if order is None else columns.in_order(order)
        if table == "method":
            return columns.in_order(np.argsort(columns.numbers("method"), kind="stable"))
        return columns

    def interval_ns(self, table: Literal["throughput", "tcp", "queue"]) -> int:
        """How long after each other the samples of a table were taken.

        Raises:
            RecordError: if the record does not tell.
        """
        key = f"{table}_ns"
        said = self.manifest.scenario["sampling"].get(key)
        if said is None:
            raise self._damaged(f"`scenario.sampling.{key}` is missing")
        if said == 0 and self._files.names(table):
            raise self._damaged(f"`scenario.sampling.{key}` is {said}, and the table has rows")
        return int(said)

    def recording(self, name: str) -> str:
        """The text of a recorded line that the scenario names: one that is shipped, or the file of that path.

        Raises:
            UsageError: if there is none, or the file has other contents than the run had.
        """
        text = load_trace(name)
        if name in self.manifest.recordings and self.manifest.recordings[name] != digest_of(text):
            raise UsageError(f"trace `{name}` was changed since the run had it")
        return text

    def line(self, queue: str) -> tuple[NDArray[np.number[Any]], NDArray[np.number[Any]]]:
        """Of a queue such as `up/modem` the ends of intervals in ns, and bytes of the line it occupied."""
        at, carried = [], []
        for rows in self.pieces("queue", ("t_ns", "queue", "class", "wire_bytes")):
            whole = rows.is_text("queue", queue) & rows.is_text("class", "")
            at.append(rows.numbers("t_ns")[whole])
            carried.append(rows.with_nan("wire_bytes")[whole])
        return np.concatenate(at), np.concatenate(carried)

    @cached_property
    def emulator(self) -> pl.DataFrame:
        """How well a live data path kept its times: `t_ns`, `packets`, `late_p99_ns` and so on."""
        return self._table("emulator")

    @cached_property
    def shaper(self) -> pl.DataFrame:
        """Changes by a shaper: `t_ns`, `queue`, `rate_bps` (null: none), `state`, `reason` and so on."""
        return self._table("shaper")

    @cached_property
    def methods(self) -> pl.DataFrame:
        """One row a speed test: `method`, `name`, `kind`, `began_ns`, `ended_ns` and `result`.

        `result` is what its official client would show, as JSON. Both are null if the run ended before it.
        """
        return self._table("method").sort("method")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """Totals of each flow, with its name, direction, service class and congestion control."""
        totals = self._table("flows")
        names = self.flow_names
        if totals.height == 0:
            return names
        if totals["flow"].equals(names["flow"]):
            return names.hstack([totals[name] for name in totals.columns if name != "flow"])
        return names.join(totals, on="flow", how="left")

    def totals(self, column: str) -> list[Any] | None:
        """A column of the totals of flows, in the order of `flow_rows`; None of a run without totals.

        Args:
            column: name of a column of the table `flows`.
        """
        rows = self.columns("flows")
        if column not in rows or not rows.height:
            return None
        of = dict(zip(rows.values("flow"), rows.values(column), strict=True))
        return [of.get(flow["flow"]) for flow in self.flow_rows]

    @cached_property
    def flow_names(self) -> pl.DataFrame:
        """Name, direction and settings of each flow, from the scenario."""
        import polars as pl  # noqa: PLC0415 - figures need none

        kinds: dict[type, pl.DataType] = {int: pl.Int64(), str: pl.String(), bool: pl.Boolean()}
        return pl.DataFrame(self.flow_rows, schema={name: kinds[kind] for name, kind in FLOW.items()})

    @cached_property
    def flow_rows(self) -> list[dict[str, Any]]:
        """The rows of `flow_names` as dicts, which several figures look through.

        A flow of fixed size stops when all of it was delivered.
        """
        if "flow_names" in self.__dict__:
            # Those of a view are of some flows.
            return self.flow_names.to_dicts()
        methods = self.columns("method") if self.manifest.scenario.get("methods") else None
        ended = methods and dict(zip(methods.values("method"), methods.values("ended_ns"), strict=True))
        connections = self.manifest.extra.get("connections")
        try:
            rows = rows_of_flows(self.manifest.scenario, ended or {})
            if connections and not rows:
                # Of programs in the lab, which no scenario names.
                rows = rows_of_connections(connections, self._carried_ns(), self.reached_ns)
        except KeyError as error:
            raise self._damaged(f"`{error.args[0]}` of a flow is missing") from error
        except (TypeError, AttributeError) as error:
            raise self._damaged(str(error)) from error
        for flow, completed in self.completed_ns.items():
            if flow < len(rows):
                rows[flow]["stop_ns"] = min(rows[flow]["stop_ns"], completed)
        return rows

    def flows_in(self, direction: str) -> list[dict[str, Any]]:
        """The rows of `flow_rows` of one direction, `down` or `up`."""
        return [flow for flow in self.flow_rows if flow["direction"] == direction]

    @cached_property
    def completed_ns(self) -> dict[int, int]:
        """When each flow of fixed size was delivered, of those that were, by number; in ns of the run."""
        if not any(flow.get("bytes") for flow in self.manifest.scenario["flows"]):
            return {}
        rows = self.columns("flows")
        if "completed_ns" not in rows:
            return {}
        when = zip(rows.values("flow"), rows.values("completed_ns"), strict=True)
        return {int(flow): completed for flow, completed in when if completed is not None and flow >= 0}

    def _carried_ns(self) -> dict[int, tuple[int, int]]:
        """From when to when each flow carried something, by the samples of `throughput`."""
        interval = self.interval_ns("throughput")
        spans: dict[int, tuple[int, int]] = {}
        for rows in self.pieces("throughput", ("t_ns", "flow")):
            at, flows = rows.numbers("t_ns"), rows.numbers("flow")
            for flow in np.unique(flows).tolist():
                own = at[flows == flow]
                before = spans.get(int(flow), (2**63, 0))
                start, stop = min(before[0], int(own.min()) - interval), max(before[1], int(own.max()))
                spans[int(flow)] = (max(start, 0), stop)
        return spans

    @cached_property
    def probe_names(self) -> list[str]:
        """Name of each probe, by number; behind the pings what speed tests saw within their own flows."""
        scenario = self.manifest.scenario
        methods = scenario.get("methods", [])
        return [probe["name"] for probe in scenario["probes"]] + [
            f"{method['name']} in flow" for method in methods
        ]

    @cached_property
    def pings(self) -> pl.DataFrame:
        """The rows of `latency` that are pings over the whole path.

        Neither what speed tests saw within their own flows, nor what routers on the way answered, nor other
        probes that are no pings.
        """
        import polars as pl  # noqa: PLC0415 - figures need none

        return self.latency.filter(pl.col("probe").is_in(self.ping_probes))

    @property
    def ping_probes(self) -> list[int]:
        """The numbers of the probes that `pings` are of."""
        apart = {*self.manifest.routers, *self.manifest.probes_apart}
        return [number for number in range(len(self.manifest.scenario["probes"])) if number not in apart]

    def round_trips(self, probe: int) -> pl.DataFrame:
        """The rows of `latency` of one probe."""
        return self._round_trips.get((probe,), self.latency.clear())

    @cached_property
    def _round_trips(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        if self.latency.height and self.latency["probe"].min() == self.latency["probe"].max():
            return {(self.latency["probe"][0],): self.latency}
        return self.latency.partition_by("probe", as_dict=True)

    def phase(self, name: str) -> tuple[int, int] | None:
        """Start and end of a phase in nanoseconds, cut to what was reached; None if there is none."""
        for phase in self.manifest.scenario["phases"]:
            if phase["name"] == name:
                reached = self.reached_ns
                start, end = phase["start_ns"], min(phase["end_ns"], reached)
                return (start, end) if start < end else None
        return None

    @cached_property
    def reached_ns(self) -> int:
        """How far the run got: its end, or the last sample of one that was cut short."""
        if self.manifest.reached_ns is not None:
            return self.manifest.reached_ns
        return max(self._last_ns(table) for table in ("throughput", "latency", "queue"))

    def _last_ns(self, table: str) -> int:
        """The time of the last sample in a table; 0 if there is none."""
        return max(int(rows.numbers("t_ns").max(initial=0)) for rows in self.pieces(table, ["t_ns"]))

    def chunks(self, table: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Columns of a table of any length, as one data frame or as several one after the other.

        They are in the order in which they were written, which need not be that of time.

        Args:
            table: name of the table, such as `latency`.
            columns: names of the columns.

        Raises:
            RecordError: if a part file is damaged.
        """
        if not self.is_long(table) or self._has_frame(table):
            yield self._frame(table).select(columns)
        elif (kept := self._kept.get(table)) is not None and set(columns) <= kept.keys():
            import polars as pl  # noqa: PLC0415 - figures of a table that is held need none

            for each in zip(*(kept[name] for name in columns), strict=True):
                yield pl.DataFrame(each)
        else:
            yield from self._files.frames(table, list(columns))

    def ordered_chunks(self, table: str) -> Iterator[pl.DataFrame]:
        """The rows of a table of any length in the order of its data frame, as one or several frames.

        Args:
            table: name of the table, such as `latency`.

        Raises:
            RecordError: if a part file is damaged.
        """
        if not self.is_long(table) or self._has_frame(table):
            yield self._frame(table)
        elif table == "latency":
            leasts = (least_of(chunk["t_ns"]) for chunk in self.chunks(table, ["t_ns"]))
            yield from in_order(leasts, self.chunks(table, list(schema(table))), ("t_ns", "probe"))
        else:
            yield from self.chunks(table, list(schema(table)))

    def round_trip_chunks(self) -> Iterator[RoundTrips]:
        """The rows of `latency` as arrays, as `pieces` gives them."""
        return map(round_trips_in, self.pieces("latency", ROUND_TRIPS))

    @contextmanager
    def keeping(self, table: str, columns: Sequence[str]) -> Iterator[None]:
        """Keeps columns of a long table for as long as they are read again and again, unless it is too long.

        Raises:
            RecordError: if a part file is damaged.
        """
        written = (self.manifest.tables or {}).get(table)
        if not self.is_long(table) or written is None or written.rows > MAX_KEPT_ROWS:
            yield
            return
        kept: dict[str, list[pl.Series]] = {name: [] for name in columns}
        for frame in self._files.frames_at_once(table, list(columns)):
            for name in columns:
                kept[name].append(frame[name])
        self._kept[table] = kept
        try:
            yield
        finally:
            del self._kept[table]

    def parts(self, table: str) -> list[str]:
        """The names of a table's part files, in their order."""
        return self._files.names(table)

    def is_long(self, table: str) -> bool:
        """Whether a table is, or may be, too long to be held just because the record is used."""
        written = (self.manifest.tables or {}).get(table)
        # Of others a record has several, which have up to three times as many columns.
        most = MAX_HELD_ROWS if table == "latency" else MAX_HELD_ROWS // 10
        return bool(self._files.names(table)) and (written is None or written.rows > most)

    def holds(self, table: str) -> bool:
        """Whether a table is in memory once it was read, if need be by `keeping`."""
        return not self.is_long(table) or table in self._kept

    def _table(self, name: str) -> pl.DataFrame:
        if not self._files.names(name):
            import polars as pl  # noqa: PLC0415 - figures need none

            return pl.DataFrame(schema=schema(name))
        if name in self._columns:
            # In the order of the table's data frame, which it then has already.
            return self._columns[name].frame()
        return self._files.frame(name)


def open_record(path: str | Path) -> Record:
    """Opens the record at `path`: a folder, or a `.weir` file.

    Raises:
        RecordError: if it is none.
        UsageError: if `path` is no path.
    """
    return Record(path_of(path, "open_record", "a record"))


def find_records(path: Path) -> list[Record]:
    """All records at or below `path`, sorted by name.

    Raises:
        RecordError: if there is none, or one of them cannot be read.
    """
    return [Record(one) for one in record_paths(path)]


def pack(
    record: Record,
    archive: Path | IO[bytes],
    *,
    compressed: bool = True,
    without: Collection[str] = (),
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Writes a record as one `.weir` file; the same record gives the same bytes.

    Args:
        record: the record.
        archive: the file to write, which is replaced if it is there; or an open one.
        compressed: whether its files are made smaller, which takes twenty times as long.
        without: part files that are left out. What is left is no whole record, but enough for a page to draw.
        more: files that are written besides, by name; one of a part that is left out stands in its place.
    """
    store = record._store  # noqa: SLF001 - of this module
    notes = store.notes()
    extra = [*([] if notes is None else [(NOTES, notes)]), *(more or {}).items()]
    names = [MANIFEST, *sorted(part for part in store.parts() if part not in without)]
    files = zip(names, store.contents(names), strict=True)
    with zipfile.ZipFile(archive, "w") as out:
        for name, content in chain(extra, files):
            entry = zipfile.ZipInfo(name, date_time=EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            entry.external_attr = READABLE
            out.writestr(entry, content)


FRAMES = {"method": "methods"}
"""Tables whose data frame has another name than they have."""

MAX_HELD_ROWS = 1_000_000
"""Pings that are held as soon as a record is used: 72 MB. Of other tables a tenth as many rows are."""

MAX_KEPT_ROWS = 16_000_000
"""Rows of the longest table that is kept while it is read several times: three columns of it have 384 MB."""
