"""The store of a sweep: Parquet part files that appear when whole, a row a run, in a folder or object store.

    STORE/runs/part-TIME-RANDOM.parquet   the rows
    STORE/samples/RUN.weir                raw samples of a run, if they are kept
    STORE/plans/DIGEST.json               the plans that were run into it
    STORE/manifest.json                   what stood there when it was last written; made again from the parts

Any number of processes may write at once: no file is ever changed. Where several rows are of one run, because
two machines did it or because a later plan names more axes, the last one without an error counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from weirlab.errors import RecordError, UsageError
from weirlab.record import open_record
from weirlab.record.parts import packed
from weirlab.sweeps.columns import OWN, VARIABLE, VARYING, table
from weirlab.sweeps.places import Folder, place_of, wait_for
from weirlab.sweeps.samples import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from weirlab.record import Record
    from weirlab.sweeps.places import Place

__all__ = ["Store"]

_ReadT = TypeVar("_ReadT")

FORMAT = 1
"""Version of the store's format."""


@dataclass(frozen=True)
class Store:
    """A store in a place."""

    place: Place

    @classmethod
    def made(cls, place: str | Path) -> Store:
        """The store at a path or URL, made if there is nothing yet.

        Raises:
            UsageError: if something else stands there, or it is no place for a store.
        """
        store = cls(place_of(place))
        occupied = store.place.exists()
        if not store.there():
            if occupied:
                raise UsageError(f"`{place}` holds something else than a store: choose another folder")
            store.write_manifest()
        store.check()
        return store

    @classmethod
    def opened(cls, place: str | Path) -> Store:
        """The store at a path or URL.

        Raises:
            RecordError: if there is none.
        """
        store = cls.found(place)
        if store is None:
            raise RecordError(
                f"`{place}` is no store of a sweep: there is neither manifest.json nor runs/ in it"
            )
        return store

    @classmethod
    def found(cls, place: str | Path) -> Store | None:
        """The store at a path or URL; None if there is none.

        Raises:
            RecordError: if it is of a later version.
        """
        store = cls(place_of(place))
        if not store.there():
            return None
        store.check()
        return store

    @property
    def path(self) -> Path:
        """The folder of a store of this machine.

        Raises:
            TypeError: if it lies in an object store.
        """
        if not isinstance(self.place, Folder):
            raise TypeError(f"`{self.name}` is no folder")
        return self.place.path

    @property
    def name(self) -> str:
        """The path or URL."""
        return self.place.name

    def there(self) -> bool:
        """Whether there is a store: what is lost of its manifest can be made again."""
        if self._manifest().get("kind") == KIND or self.place.names("runs") or self.plans():
            return True
        return isinstance(self.place, Folder) and (self.place.path / "runs").is_dir()

    def check(self) -> None:
        """Refuses a store of a later version.

        Raises:
            RecordError: if its format is not known.
        """
        found = self._manifest().get("format", FORMAT)
        if found != FORMAT:
            raise RecordError(f"`{self.name}` has format {found}; this version of Weir reads {FORMAT}")

    def parts(self) -> list[str]:
        """Names of the part files, in the order in which they were written.

        Raises:
            RecordError: if they change again and again.
        """
        # A folder is not read at one instant: a look may miss a part that was joined with others, and the
        # part that they came into.
        last: list[str] | None = None
        for _ in range(MAX_LOOKS):
            found = [name for name in self.place.names("runs") if name.endswith(".parquet")]
            if found == last:
                return self._with_hinted(found)
            last = found
        raise RecordError(f"`{self.name}`: its parts change again and again while they are listed")

    def _with_hinted(self, found: list[str]) -> list[str]:
        """The parts that are listed, and those that an object store has but does not list yet."""
        if isinstance(self.place, Folder):
            return found
        said = self._manifest().get("parts", [])
        hinted = {f"runs/{one['name']}" for one in said if isinstance(one, dict) and "name" in one}
        return sorted({*found, *(name for name in hinted.difference(found) if self.place.has(name))})

    def append(self, rows: list[dict[str, Any]], axes: Mapping[str, Any]) -> None:
        """Writes rows into a new part.

        Raises:
            WriteError: if the disk is full or broken.
        """
        if rows:
            self._write(table(rows, axes), time.time_ns())

    def scan(self) -> pl.LazyFrame:
        """The rows, each run once, as a lazy frame; columns that a part does not have are null.

        Raises:
            RecordError: if a part cannot be read.
        """
        return self._read_again(self._joined)

    def row_bytes(self) -> float | None:
        """Bytes of a row in the largest part; None if no part has so many rows that it says something.

        Raises:
            RecordError: if a part cannot be read.
        """
        with suppress(FileNotFoundError):
            files = [self.place.file(part) for part in self.parts()]
            sizes = [(file.stat().st_size, file) for file in files]
            if sizes:
                size, file = max(sizes)
                rows = _scanned(file).select(pl.len()).collect().item()
                return size / rows if rows >= MIN_ROWS else None
        return None

    def collected(self) -> pl.DataFrame:
        """The rows, each run once, also while others join parts.

        Raises:
            RecordError: if a part cannot be read.
        """
        return self._read()[1]

    def _read(
        self, wanted: Callable[[pl.LazyFrame], pl.LazyFrame] = lambda rows: rows
    ) -> tuple[list[str], pl.DataFrame]:
        """The parts of one look at the store, and what is wanted of the rows of exactly these."""

        def read(parts: list[str]) -> tuple[list[str], pl.DataFrame]:
            try:
                return parts, wanted(self._joined(parts)).collect()
            except pl.exceptions.PolarsError as error:
                self._refuse_damaged(parts)
                raise RecordError(f"`{self.name}` cannot be read: {_SPACES.sub(' ', str(error))}") from error

        return self._read_again(read)

    def _refuse_damaged(self, parts: list[str]) -> None:
        """Names the first of these parts whose rows cannot be read, if there is one."""
        for part in parts:
            file = self.place.file(part)
            try:
                _scanned(file).collect()
            except pl.exceptions.PolarsError as error:
                raise RecordError(f"`{file}` is damaged: {_SPACES.sub(' ', str(error))}") from error

    def _read_again(self, read: Callable[[list[str]], _ReadT]) -> _ReadT:
        """What is read of the parts; they are looked up anew while one is gone when it is read."""
        for _ in range(MAX_LOOKS):
            with suppress(FileNotFoundError):
                return read(self.parts())
            wait_for(self.place)
        raise RecordError(f"`{self.name}`: its parts are joined again and again while it is read")

    def _joined(self, parts: list[str]) -> pl.LazyFrame:
        return _joined([self.place.file(part) for part in parts])

    def done(self, columns: Sequence[str], *, retry: bool) -> pl.DataFrame:
        """Those of these columns that there are, of the runs that need not be done again.

        Args:
            columns: their names.
            retry: whether runs that failed are done again.

        Raises:
            RecordError: if a part cannot be read.
        """
        return self._read(
            lambda rows: (rows.filter(pl.col("error").is_null()) if retry else rows).select(
                name for name in columns if name in rows.collect_schema()
            )
        )[1]

    def compact(self) -> tuple[int, int]:
        """Joins all parts into one; returns how many parts and rows there were and are.

        What others write meanwhile stays. Rows of runs that stand there several times become one.
        """
        parts, rows = self._read()
        if len(parts) > 1:
            # In the place of the last one that was read: what others write meanwhile is newer.
            self._write(rows, _time_of(parts[-1]))
            for part in parts:
                self.place.remove(part)
        self.write_manifest()
        return len(parts), rows.height

    def write_manifest(self) -> None:
        """Writes the manifest anew, of the parts that there are.

        Raises:
            RecordError: if a part cannot be read.
        """
        parts = []
        for part in self.parts():
            # One that is gone was joined with others, whose part is in the next manifest.
            with suppress(FileNotFoundError):
                parts.append(_said_of(self.place.file(part)))
        said = {"kind": KIND, "format": FORMAT, "parts": parts, "plans": self.plans()}
        self._put_json("manifest.json", said)
        if isinstance(self.place, Folder):
            (self.place.path / "runs").mkdir(exist_ok=True)

    def keep_plan(self, said: Mapping[str, Any]) -> None:
        """Keeps a plan that is run into the store."""
        text = json.dumps(said, indent=2, default=str) + "\n"
        name = f"plans/{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        if self.place.read(name) is None:
            self.place.put(name, lambda path: path.write_text(text, encoding="utf-8"))

    def plans(self) -> list[str]:
        """Names of the plans that were run into the store."""
        named = (name.removeprefix("plans/") for name in self.place.names("plans"))
        return [name for name in named if name.endswith(".json")]

    def kept_plans(self) -> list[dict[str, Any]]:
        """The plans that were run into the store: `weir`, the version that ran it, `plan`, and its `file`.

        Raises:
            RecordError: if one is damaged.
        """
        return [self._plan(f"plans/{name}") for name in self.plans()]

    def keep_samples(self, run: str, phases: Sequence[str], archive: Path) -> None:
        """Keeps the raw samples of a run, which are in the file `archive`, of these phases or of all."""
        name = f"samples/{sample_name(run, phases)}"
        self.place.put(name, lambda path: shutil.copyfile(archive, path))

    def samples(self) -> set[str]:
        """Names of the files of raw samples that there are."""
        return {name.removeprefix("samples/") for name in self.place.names("samples")}

    def record(self, run: str, phases: Sequence[str] = ALL) -> Record:
        """The raw samples of a run as a record: all if they are there, else those of these phases.

        Raises:
            RecordError: if they were not kept, or are damaged.
        """
        names = [f"samples/{sample_name(run, which)}" for which in (ALL, phases)]
        for name in names:
            if self.place.has(name):
                return open_record(self.place.file(name))
        raise RecordError(f"`{self.name}` has no raw samples `{names[-1]}`")

    def _plan(self, name: str) -> dict[str, Any]:
        where = f"{self.name}/{name}"
        try:
            found = json.loads(self.place.read(name) or b"")
        except ValueError as error:
            raise RecordError(f"`{where}` is damaged: {error}") from error
        kinds = {"plan": dict, "file": str}
        if (
            not isinstance(found, dict)
            or not {"weir", "plan"} <= found.keys()
            or not all(isinstance(found[key], kind) for key, kind in kinds.items() if key in found)
        ):
            raise RecordError(f"`{where}` is damaged: it is no plan of a sweep")
        return found

    def axes(self) -> list[str]:
        """Columns of the axes: all but a store's own, and those of `VARYING` that vary.

        Not those of the latter that an axis of another name varies, whose column says the same.

        Raises:
            RecordError: if the store cannot be read.
        """
        rows, said = self.scan(), self._said_by_others()
        # A world that has no kernel of its own is apart from the others by its name.
        values = [pl.col(*VARYING - {"kernel"}).n_unique(), pl.col("kernel").drop_nulls().n_unique()]
        counts = rows.select(*values).collect().row(0, named=True)
        return [
            name
            for name in rows.collect_schema().names()
            if name not in OWN or (name in VARYING and counts[name] > 1 and name not in said)
        ]

    def _said_by_others(self) -> set[str]:
        """Those of `VARIABLE` that are keys of axes with other names, and no axes of any plan themselves."""
        said: set[str] = set()
        named: set[str] = set()
        for kept in self.kept_plans():
            for name, written in kept["plan"].get("sweep", {}).get("axes", {}).items():
                keys = written.get("key", name) if isinstance(written, dict) else name
                said |= VARIABLE.intersection([keys] if isinstance(keys, str) else keys)
                named.add(name)
        return said - named

    def _write(self, rows: pl.DataFrame, time_ns: int) -> None:
        name = f"runs/part-{time_ns:020d}-{uuid.uuid4().hex[:12]}.parquet"
        content = packed(rows)
        self.place.put(name, lambda path: path.write_bytes(content))

    def _put_json(self, name: str, said: Mapping[str, Any]) -> None:
        text = json.dumps(said, indent=2) + "\n"
        self.place.put(name, lambda path: path.write_text(text, encoding="utf-8"))

    def _manifest(self) -> dict[str, Any]:
        try:
            found = json.loads(self.place.read("manifest.json") or b"")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def sample_name(run: str, phases: Sequence[str]) -> str:
    """The name of the file with the raw samples of a run, of these phases or of all."""
    return f"{run}.weir" if tuple(phases) == ALL else f"{run}.{'+'.join(phases)}.weir"


def _joined(parts: list[Path]) -> pl.LazyFrame:
    """The rows of these parts, each run once."""
    frames = [_scanned(part).with_columns(pl.lit(number).alias(_PART)) for number, part in enumerate(parts)]
    if not frames:
        return table([], {}).lazy()
    # Parts of earlier builds have not all columns.
    rows = pl.concat([*frames, table([], {}).lazy()], how="diagonal_relaxed")
    ranked = rows.sort(pl.col("error").is_null(), _PART, maintain_order=True)
    return ranked.unique("run", keep="last", maintain_order=True).drop(_PART)


def _time_of(part: str) -> int:
    """The time in nanoseconds in the name of a part; 0 of one with a name that is not Weir's."""
    found = re.fullmatch(r"runs/part-(\d{20})-[0-9a-f]{12}\.parquet", part)
    return int(found[1]) if found else 0


def _said_of(part: Path) -> dict[str, Any]:
    """What a manifest says of a part."""
    content = part.read_bytes()
    return {
        "name": part.name,
        "rows": _scanned(part).select(pl.len()).collect().item(),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _scanned(part: Path) -> pl.LazyFrame:
    try:
        frame = pl.scan_parquet(part, glob=False)
        names = frame.collect_schema().names()
    except FileNotFoundError:
        raise
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RecordError(f"`{part}` is damaged: {_SPACES.sub(' ', str(error))}") from error
    if "run" not in names or "error" not in names:
        raise RecordError(f"`{part}` is no part of a store: it has no column `run`")
    return frame


KIND = "weir sweep"
"""What a manifest says that it is of."""

MAX_LOOKS = 20
"""How often a store is read anew because a part has gone meanwhile."""

MIN_ROWS = 100
"""Rows of a part from which on its size says what a row takes: what a part has besides is spread."""

_PART = "\x00part"

_SPACES = re.compile(r"\s+")
