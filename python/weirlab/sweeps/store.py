"""The store of a sweep: a folder of Parquet part files that appear when whole, a row a run.

    STORE/runs/part-TIME-RANDOM.parquet   the rows
    STORE/plans/DIGEST.json               the plans that were run into it
    STORE/manifest.json                   what stood there when it was last written; made again from the parts

Any number of processes may write at once: no file is ever changed. Where several rows are of one run, because
two machines did it or because a later plan names more axes, the last one without an error counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import RecordError, UsageError
from weirlab.sweeps.columns import OWN, VARIABLE, table
from weirlab.writing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

FORMAT = 1
"""Version of the store's format."""


@dataclass(frozen=True)
class Store:
    """A store in a folder."""

    path: Path

    @classmethod
    def made(cls, path: Path) -> Store:
        """The store at `path`, made if there is nothing yet.

        Raises:
            UsageError: if something else stands there.
        """
        store = cls(path)
        if path.exists() and not path.is_dir():
            raise UsageError(f"`{path}` is no folder: a store is a folder")
        if path.is_dir() and any(path.iterdir()) and not store.there():
            raise UsageError(f"`{path}` holds something else than a store: choose another folder")
        if not store.there():
            store.write_manifest()
        store.check()
        return store

    @classmethod
    def opened(cls, path: Path) -> Store:
        """The store at `path`.

        Raises:
            RecordError: if there is none.
        """
        store = cls(path)
        if not store.there():
            raise RecordError(
                f"`{path}` is no store of a sweep: there is neither manifest.json nor runs/ in it"
            )
        store.check()
        return store

    def there(self) -> bool:
        """Whether there is a store: what is lost of its manifest can be made again."""
        return (self.path / "runs").is_dir() or self._manifest().get("kind") == KIND

    def check(self) -> None:
        """Refuses a store of a later version.

        Raises:
            RecordError: if its format is not known.
        """
        found = self._manifest().get("format", FORMAT)
        if found != FORMAT:
            raise RecordError(f"`{self.path}` has format {found}; this version of Weir reads {FORMAT}")

    def parts(self) -> list[Path]:
        """The part files, in the order in which they were written.

        Raises:
            RecordError: if they change again and again.
        """
        # A folder is not read at one instant: a look may miss a part that was joined with others, and the
        # part that they came into.
        last: list[Path] | None = None
        for _ in range(MAX_LOOKS):
            found = sorted(
                path for path in (self.path / "runs").glob("*.parquet") if not path.name.startswith(".")
            )
            if found == last:
                return found
            last = found
        raise RecordError(f"`{self.path}`: its parts change again and again while they are listed")

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
        return _joined(self.parts())

    def row_bytes(self) -> float | None:
        """Bytes of a row in the largest part; None if no part has so many rows that it says something.

        Raises:
            RecordError: if a part cannot be read.
        """
        with suppress(FileNotFoundError):
            sizes = [(part.stat().st_size, part) for part in self.parts()]
            if sizes:
                size, part = max(sizes)
                rows = _scanned(part).select(pl.len()).collect().item()
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
    ) -> tuple[list[Path], pl.DataFrame]:
        """The parts of one look at the folder, and what is wanted of the rows of exactly these."""
        for _ in range(MAX_LOOKS):
            with suppress(FileNotFoundError):
                parts = self.parts()
                return parts, wanted(_joined(parts)).collect()
        raise RecordError(f"`{self.path}`: its parts are joined again and again while it is read")

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
                part.unlink(missing_ok=True)
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
                parts.append(_said_of(part))
        said = {"kind": KIND, "format": FORMAT, "parts": parts, "plans": self.plans()}
        text = json.dumps(said, indent=2) + "\n"
        replaced(self.path / "manifest.json", lambda path: path.write_text(text, encoding="utf-8"))
        (self.path / "runs").mkdir(exist_ok=True)

    def keep_plan(self, said: Mapping[str, Any]) -> None:
        """Keeps a plan that is run into the store."""
        text = json.dumps(said, indent=2, default=str) + "\n"
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        target = self.path / "plans" / f"{name}.json"
        if not target.exists():
            replaced(target, lambda path: path.write_text(text, encoding="utf-8"))

    def plans(self) -> list[str]:
        """Names of the plans that were run into the store."""
        return sorted(path.name for path in (self.path / "plans").glob("*.json"))

    def kept_plans(self) -> list[dict[str, Any]]:
        """The plans that were run into the store: `weir`, the version that ran it, and `plan`.

        Raises:
            RecordError: if one is damaged.
        """
        return [_plan_in(self.path / "plans" / name) for name in self.plans()]

    def axes(self) -> list[str]:
        """Columns of the axes: all but a store's own, and `test`, `link`, `queue` and `cc` if they vary."""
        rows = self.scan()
        counts = rows.select(pl.col(*VARIABLE).n_unique()).collect().row(0, named=True)
        return [
            name
            for name in rows.collect_schema().names()
            if name not in OWN or (name in VARIABLE and counts[name] > 1)
        ]

    def _write(self, rows: pl.DataFrame, time_ns: int) -> None:
        name = f"part-{time_ns:020d}-{uuid.uuid4().hex[:12]}.parquet"
        replaced(self.path / "runs" / name, lambda path: rows.write_parquet(path, compression="zstd"))

    def _manifest(self) -> dict[str, Any]:
        try:
            found = json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _plan_in(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"`{path}` is damaged: {error}") from error
    if not isinstance(found, dict) or "weir" not in found or not isinstance(found.get("plan"), dict):
        raise RecordError(f"`{path}` is damaged: it is no plan of a sweep")
    return found


def _joined(parts: list[Path]) -> pl.LazyFrame:
    """The rows of these parts, each run once."""
    frames = [_scanned(part).with_columns(pl.lit(number).alias(_PART)) for number, part in enumerate(parts)]
    if not frames:
        return table([], {}).lazy()
    rows = pl.concat(frames, how="diagonal_relaxed")
    ranked = rows.sort(pl.col("error").is_null(), _PART, maintain_order=True)
    return ranked.unique("run", keep="last", maintain_order=True).drop(_PART)


def _time_of(part: Path) -> int:
    """The time in nanoseconds in the name of a part; 0 of one with a name that is not Weir's."""
    found = re.fullmatch(r"part-(\d{20})-[0-9a-f]{12}\.parquet", part.name)
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
