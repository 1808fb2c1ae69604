"""The records below a folder, as a list to search in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.errors import RecordError, UsageError
from weirlab.record import Record, record_paths
from weirlab.record.store import MANIFEST, NOTES

__all__ = ["NO_TEXT", "Entry", "Library", "as_text", "is_text", "state_of"]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A record in the list, or why it cannot be read.

    Attributes:
        place: where it lies below the folder, by which it is asked for.
        error: why it cannot be read; empty if it can.
        test, link, queue, world, seed, started_at, note, tags: what it says of itself.
        complete: whether its run came to its end.
        has_ended: whether it is over, which of one that was killed nobody has written down.
    """

    place: str
    error: str = ""
    test: str = ""
    link: str = ""
    queue: str = ""
    world: str = ""
    seed: int | None = None
    started_at: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    complete: bool = True
    has_ended: bool = True


class Library:
    """The records below `folder`."""

    def __init__(self, folder: Path) -> None:
        """Reads nothing yet."""
        self.folder = folder
        self._read: dict[Path, tuple[int, Entry]] = {}

    def entries(self) -> list[Entry]:
        """All records, the latest first; of more than `MAX_ENTRIES` those that were written last."""
        paths = self._paths()
        if len(paths) > MAX_ENTRIES:
            paths = sorted(paths, key=_written_ns)[-MAX_ENTRIES:]
        found = [self._entry(path) for path in paths]
        # Of records that are gone nothing is kept.
        for path in set(self._read).difference(paths):
            self._read.pop(path, None)
        return sorted(found, key=lambda one: (one.started_at, one.place), reverse=True)

    def count(self) -> int:
        """How many records there are, also those that `entries` leaves out."""
        return len(self._paths())

    def records(self, places: Sequence[str]) -> list[Record]:
        """The records at `places`, read in full.

        Raises:
            UsageError: if there are none or too many, or one is none of the folder's.
            RecordError: if one cannot be read.
        """
        found = self.opened(places)
        for record in found:
            record.check()
        return found

    def opened(self, places: Sequence[str]) -> list[Record]:
        """The records at `places`, of which no table is read yet.

        Raises:
            UsageError: if there are none or too many, or one is none of the folder's.
            RecordError: if the manifest of one cannot be read.
        """
        if not 1 <= len(places) <= MAX_SHOWN:
            raise UsageError(f"{len(places)} records: choose 1 to {MAX_SHOWN}")
        known = {self._place(path): path for path in self._paths()}
        found = []
        for place in dict.fromkeys(places):
            # Only what the folder's own list has: a path of the request is never opened.
            if place not in known:
                raise UsageError(f"`{place}`: there is no such record in `{self.folder}`")
            found.append(Record(known[place]))
        return found

    def _paths(self) -> list[Path]:
        try:
            return record_paths(self.folder)
        except RecordError:
            return []

    def _place(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _entry(self, path: Path) -> Entry:
        """The manifest of a record, read again only if it was written since."""
        written = _written_ns(path)
        before = self._read.get(path)
        if before is None or before[0] != written:
            before = self._read[path] = written, self._said(path)
        return before[1]

    def _said(self, path: Path) -> Entry:
        place = self._place(path)
        if not is_text(place):
            return Entry(place=as_text(place), error=NO_TEXT)
        try:
            manifest = Record(path).manifest
            return Entry(
                place=place,
                test=manifest.title,
                link=str(manifest.link.get("title", "")),
                queue=manifest.queue,
                world=manifest.world,
                seed=manifest.seed,
                started_at=manifest.started_at,
                note=manifest.note,
                tags=tuple(manifest.tags),
                complete=manifest.complete,
                has_ended=manifest.has_ended,
            )
        except RecordError as error:
            return Entry(place=place, error=str(error))


def is_text(place: str) -> bool:
    """Whether the name of a file is UTF-8, as addresses and pages are; of Linux it may be any bytes."""
    return as_text(place) == place


def as_text(name: str) -> str:
    """The name of a file with a sign in place of each byte that is no UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def state_of(path: Path) -> tuple[tuple[str, int, int], ...]:
    """The files of the record at `path` with the time of their last change in ns and their bytes.

    As long as it is the same nothing needs to be read again.
    """
    files = [path, path.with_name(f"{path.name}.{NOTES}"), *(path.rglob("*") if path.is_dir() else ())]
    return tuple(sorted(found for one in files if (found := _stamp(one)) is not None))


def _stamp(path: Path) -> tuple[str, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return str(path), found.st_mtime_ns, found.st_size


def _written_ns(path: Path) -> int:
    """When a record was written or noted last, by its manifest or archive; 0 if that cannot be told."""
    is_folder = path.is_dir()
    files = (path / MANIFEST, path / NOTES) if is_folder else (path, path.with_name(f"{path.name}.{NOTES}"))
    return max(map(_file_written_ns, files))


def _file_written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


NO_TEXT = "its name is not UTF-8, so that no page can ask for it: give it another name"
"""Why a file or folder cannot be opened from a page."""

MAX_ENTRIES = 5000
"""Rows of a table that a browser still searches while one types."""

MAX_SHOWN = 24
"""Records in one page: more lines nobody tells apart."""
