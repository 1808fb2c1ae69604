"""Reading records: folders and `.weir` files, whole or cut short."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl
from pydantic import ValidationError

from weirlab import reading
from weirlab.errors import RecordError, UsageError
from weirlab.record.manifest import SCHEMA, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST = "manifest.json"

EPOCH, READABLE = (1980, 1, 1, 0, 0, 0), 0o644 << 16
"""Time and rights of the files in an archive: the same in all, whatever the disk says."""


class _Store(Protocol):
    """Where the files of a record lie."""

    def read(self, name: str) -> bytes: ...
    def names(self) -> list[str]: ...


class _Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str) -> bytes:
        try:
            return reading.read_bytes(self.path / name, reading.MOST_OF_RECORDING)
        except reading.Unreadable as error:
            raise OSError(str(error)) from error

    def names(self) -> list[str]:
        files = (file for file in self.path.rglob("*") if file.is_file())
        return sorted(file.relative_to(self.path).as_posix() for file in files)


class _Archive:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str) -> bytes:
        with zipfile.ZipFile(self.path) as archive:
            if archive.getinfo(name).file_size > reading.MOST_OF_RECORDING:
                raise OSError(f"{name} in it is longer than {reading.MOST_OF_RECORDING >> 20} MiB")
            return archive.read(name)

    def names(self) -> list[str]:
        with zipfile.ZipFile(self.path) as archive:
            return sorted(archive.namelist())


class Record:
    """What happened in one run.

    The tables are Polars data frames, sorted by time; docs/record.md describes their columns. A record
    whose run was cut short reads like any other, up to where it was cut.
    """

    manifest: Manifest

    def __init__(self, path: Path) -> None:
        """Opens the record at `path`: a folder, or a `.weir` file.

        Raises:
            RecordError: if it is none.
        """
        self.path = path
        self._store: _Store = _Folder(path) if path.is_dir() else _Archive(path)
        try:
            text = self._store.read(MANIFEST)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise RecordError(f"`{path}` is no record: there is no {MANIFEST} in it") from error
        try:
            raw = json.loads(text)
            version = raw.get("schema_version") if isinstance(raw, dict) else None
            if isinstance(version, int) and version > SCHEMA:
                raise RecordError(
                    f"`{path}` has format {version}; this Weir reads up to {SCHEMA}: use a newer Weir"
                )
            self.manifest = Manifest.model_validate(raw)
        except (ValueError, ValidationError, RecursionError) as error:
            raise RecordError(f"`{path}`: its {MANIFEST} is damaged") from error

    def __repr__(self) -> str:
        """Which record it is."""
        return f"Record({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """What was run and what came of it, for notebooks."""
        from weirlab.report.html import record_html  # noqa: PLC0415 - only notebooks need it

        return record_html(self)

    @property
    def label(self) -> str:
        """The queue set-up, which is what tells runs of one comparison apart."""
        return self.manifest.queue

    @cached_property
    def latency(self) -> pl.DataFrame:
        """One row a ping: `t_ns`, `probe`, `seq`, `rtt_ns` (null: lost), `up_ns`, `down_ns`."""
        return self._table("latency").sort("t_ns", "probe", maintain_order=True)

    @cached_property
    def throughput(self) -> pl.DataFrame:
        """Bytes that arrived in each interval: `t_ns`, `flow`, `bytes`, `wire_bytes`."""
        return self._table("throughput")

    @cached_property
    def tcp(self) -> pl.DataFrame:
        """State of the senders: `t_ns`, `flow`, `cwnd_segments`, `srtt_ns` and so on."""
        return self._table("tcp")

    @cached_property
    def queue(self) -> pl.DataFrame:
        """State of queues and classes: `t_ns`, `queue`, `class`, backlog, sojourn, drops, marks."""
        return self._table("queue")

    @cached_property
    def emulator(self) -> pl.DataFrame:
        """How well a live data path kept its times: `t_ns`, `packets`, `late_p99_ns` and so on."""
        return self._table("emulator")

    @cached_property
    def shaper(self) -> pl.DataFrame:
        """What a shaper changed: `t_ns`, `queue`, `rate_bps` (null: none), `state`, `reason` and so on."""
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
        return names.join(totals, on="flow", how="left") if totals.height else names

    @cached_property
    def flow_names(self) -> pl.DataFrame:
        """Name, direction and settings of each flow, from the scenario."""
        flows = [*self.manifest.scenario["flows"], *self._method_flows()]
        rows = [
            {
                "flow": number,
                "name": flow["name"],
                "direction": flow["direction"],
                "dscp": flow["dscp"],
                "congestion_control": flow["tcp"]["congestion_control"],
                "ecn": bool(flow["tcp"]["overrides"].get("ecn")),
                "start_ns": flow["start_ns"],
                "stop_ns": flow["stop_ns"],
            }
            for number, flow in enumerate(flows)
        ]
        return pl.DataFrame(rows, schema=_FLOW_NAMES)

    def _method_flows(self) -> Iterator[dict[str, Any]]:
        """Both flows of each speed test, as if the scenario had named them."""
        scenario = self.manifest.scenario
        ended = dict(self.methods.select("method", "ended_ns").iter_rows())
        for number, method in enumerate(scenario.get("methods", [])):
            stop = ended.get(number) or scenario["duration_ns"]
            controls = {
                "down": method["tcp"]["congestion_control"],
                "up": method["client_congestion_control"],
            }
            for direction, control in controls.items():
                yield {
                    **method,
                    "name": f"{method['name']} {direction}",
                    "direction": direction,
                    "tcp": {**method["tcp"], "congestion_control": control},
                    "stop_ns": stop,
                }

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

        Neither what speed tests saw within their own flows, nor what routers on the way answered.
        """
        pings = pl.col("probe") < len(self.manifest.scenario["probes"])
        return self.latency.filter(pings & ~pl.col("probe").is_in(self.manifest.routers))

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
        tables = (self.throughput, self.latency, self.queue)
        return max((_last(table) for table in tables), default=0)

    def _table(self, name: str) -> pl.DataFrame:
        parts = [
            part for part in self._store.names() if part.startswith(f"{name}/") and part.endswith(".parquet")
        ]
        if not parts:
            return pl.DataFrame(schema=_EMPTY[name])
        frames = [pl.read_parquet(io.BytesIO(self._store.read(part))) for part in parts]
        return pl.concat(frames, rechunk=True)


def open_record(path: str | Path) -> Record:
    """Opens the record at `path`: a folder, or a `.weir` file.

    Raises:
        RecordError: if it is none.
        UsageError: if `path` is no path.
    """
    if not isinstance(path, str | Path):
        raise UsageError(f"open_record({path!r}): give a path, not `{type(path).__name__}`")
    return Record(Path(path))


def find_records(path: Path) -> list[Record]:
    """All records at or below `path`, sorted by name.

    Raises:
        RecordError: if there is none.
    """
    if path.is_file():
        return [Record(path)]
    found = sorted(_manifests(path))
    if not found:
        raise RecordError(f"there is no record in `{path}`")
    return [Record(folder) for folder in found]


def pack(record: Path, archive: Path) -> None:
    """Writes a record as one `.weir` file; the same record gives the same bytes.

    Args:
        record: the folder of a record, or a `.weir` file.
        archive: the file to write, which is replaced if it is there.
    """
    store = Record(record)._store  # noqa: SLF001 - of this module
    with zipfile.ZipFile(archive, "w") as out:
        for name in store.names():
            entry = zipfile.ZipInfo(name, date_time=EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = READABLE
            out.writestr(entry, store.read(name))


def _manifests(path: Path) -> Iterator[Path]:
    for file in path.rglob(MANIFEST):
        yield file.parent
    yield from path.rglob("*.weir")


def _last(table: pl.DataFrame) -> int:
    last = table["t_ns"].max() if table.height else 0
    return last if isinstance(last, int) else 0


_FLOW_NAMES: dict[str, pl.DataType] = {
    "flow": pl.Int64(),
    "name": pl.String(),
    "direction": pl.String(),
    "dscp": pl.Int64(),
    "congestion_control": pl.String(),
    "ecn": pl.Boolean(),
    "start_ns": pl.Int64(),
    "stop_ns": pl.Int64(),
}

# What a table looks like before its first part is written.
_EMPTY: dict[str, dict[str, pl.DataType]] = {
    "latency": dict.fromkeys(
        (
            "t_ns",
            "probe",
            "seq",
            "rtt_ns",
            "up_ns",
            "down_ns",
            "timer_error_ns",
            "server_received_ns",
            "server_sent_ns",
        ),
        pl.Int64(),
    ),
    "throughput": dict.fromkeys(("t_ns", "flow", "bytes", "wire_bytes"), pl.Int64()),
    "tcp": dict.fromkeys(("t_ns", "flow", "cwnd_segments", "srtt_ns"), pl.Int64()),
    "queue": {
        "t_ns": pl.Int64(),
        "queue": pl.String(),
        "class": pl.String(),
        "departed_bytes": pl.Int64(),
        "wire_bytes": pl.Int64(),
    },
    "flows": {"flow": pl.Int64()},
    "method": {
        "method": pl.Int64(),
        "name": pl.String(),
        "kind": pl.String(),
        "began_ns": pl.Int64(),
        "ended_ns": pl.Int64(),
        "result": pl.String(),
    },
    "shaper": {
        "t_ns": pl.Int64(),
        "queue": pl.String(),
        "rate_bps": pl.Int64(),
        "state": pl.String(),
        "reason": pl.String(),
        "value": pl.Float64(),
        "unit": pl.String(),
    },
    "emulator": dict.fromkeys(
        ("t_ns", "packets", "late_p50_ns", "late_p99_ns", "late_p999_ns", "late_max_ns", "cpu_ns"), pl.Int64()
    ),
}
