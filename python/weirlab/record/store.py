"""Where the files of a record lie: a folder, or a zip archive. Both may come from strangers.

Nothing outside the record is ever read, nothing is unpacked onto the disk, and sizes are looked at before
anything is read.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from weirlab import reading
from weirlab.errors import RecordError
from weirlab.record.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MANIFEST = "manifest.json"
NOTES = "notes.json"


class Store(Protocol):
    """Where the files of a record lie."""

    def read(self, name: str) -> bytes:
        """The bytes of `manifest.json` or of a part file.

        Raises:
            RecordError: if it is not there, too large, or cannot be read.
        """
        ...

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """The bytes of several files, one after the other.

        Raises:
            RecordError: if one is not there, too large, or cannot be read.
        """
        ...

    def parts(self) -> list[str]:
        """The names of all part files, such as `latency/part-000000.parquet`, sorted."""
        ...

    @property
    def notes_file(self) -> Path:
        """Where notes that are written later are kept: in the folder, or beside the archive."""
        ...

    def notes(self) -> bytes | None:
        """Notes that were written later, as JSON; None if there are none.

        Raises:
            RecordError: if it is too large or cannot be read.
        """
        ...


def open_store(path: Path) -> Store:
    """The folder or archive at `path`.

    Raises:
        RecordError: if it is none, or holds no record.
    """
    try:
        is_folder = path.is_dir()
    except OSError as error:
        raise RecordError(f"`{path}` cannot be read: {error.strerror or error}") from error
    return Folder(path) if is_folder else Archive(path)


class Folder:
    """A record's folder."""

    def __init__(self, path: Path) -> None:
        """The record in the folder `path`."""
        self.path = path

    def read(self, name: str) -> bytes:
        """The bytes of a file of the record."""
        content = _content(self.path, self.path / name, name)
        if content is None:
            raise _no_record(self.path) if name == MANIFEST else _missing(self.path, name)
        return content

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """The bytes of several files, one after the other."""
        return map(self.read, names)

    @property
    def notes_file(self) -> Path:
        """Notes are kept in the folder."""
        return self.path / NOTES

    def notes(self) -> bytes | None:
        """Notes that were written later, from the folder."""
        return _content(self.path, self.notes_file, NOTES)

    def parts(self) -> list[str]:
        """The names of all part files, sorted."""
        found = []
        for table in TABLES:
            folder = self.path / table
            try:
                if folder.is_symlink():
                    raise _link(self.path, table)
                names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
            except OSError as error:
                raise RecordError(f"`{folder}` cannot be read: {error.strerror or error}") from error
            found += [f"{table}/{name}" for name in names]
        return _part_files(sorted(found))


class Archive:
    """A record's `.weir` file; the record may lie in a folder of the archive."""

    def __init__(self, path: Path) -> None:
        """The record in the zip archive `path`."""
        self.path = path
        with self._open() as archive:
            members = archive.infolist()
        names = [one.filename for one in members]
        if len(set(names)) < len(names):
            raise RecordError(f"`{path}` is damaged: it has two files of one name")
        for one in members:
            if one.filename.startswith("/") or "\\" in one.filename or ".." in one.filename.split("/"):
                raise RecordError(f"`{path}`: the path `{one.filename}` leaves the archive")
            if stat.S_ISLNK(one.external_attr >> 16):
                raise RecordError(f"`{path}`: `{one.filename}` is a symbolic link; a record has none")
            # Of the other methods that `zipfile` knows it unpacks more than a file says that it has.
            if one.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise RecordError(
                    f"`{path}`: `{one.filename}` is packed by method {one.compress_type} of zip; "
                    "a record's files are stored (0) or deflated (8)"
                )
        manifests = [name for name in names if name == MANIFEST or name.endswith(f"/{MANIFEST}")]
        if not manifests:
            raise _no_record(path)
        if MANIFEST not in manifests and len(manifests) > 1:
            raise RecordError(f"`{path}` has {len(manifests)} records in it: unpack it and give the folder")
        self._before = "" if MANIFEST in manifests else manifests[0].removesuffix(MANIFEST)
        self._members = {one.filename.removeprefix(self._before): one for one in members}

    def read(self, name: str) -> bytes:
        """The bytes of a file of the record."""
        (content,) = self.contents([name])
        return content

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """The bytes of several files, for which the archive's directory is read once."""
        members = [self._member(name) for name in names]
        with self._open() as archive:
            yield from map(archive.read, members)

    def _member(self, name: str) -> zipfile.ZipInfo:
        member = self._members.get(name)
        if member is None:
            raise _missing(self.path, name)
        # What it says of its size is a bound: no more than that is unpacked.
        _bounded(self.path, name, member.file_size)
        return member

    @property
    def notes_file(self) -> Path:
        """Notes are kept beside the archive, which stays as it is."""
        return self.path.with_name(f"{self.path.name}.{NOTES}")

    def notes(self) -> bytes | None:
        """Notes that were written later beside the archive; without these, the notes in the archive."""
        beside = _content(self.path, self.notes_file, self.notes_file.name)
        return beside if beside is not None or NOTES not in self._members else self.read(NOTES)

    def parts(self) -> list[str]:
        """The names of all part files, sorted."""
        return _part_files(sorted(name for name in self._members if name.partition("/")[0] in TABLES))

    @contextmanager
    def _open(self) -> Iterator[zipfile.ZipFile]:
        try:
            with reading.opened(self.path) as file, zipfile.ZipFile(file) as archive:
                yield archive
        except reading.Unreadable as error:
            if error.__cause__ is None:
                # A device, a pipe, a socket.
                raise _neither(self.path) from error
            raise RecordError(f"`{self.path}` cannot be read: {error}") from error
        except OSError as error:
            raise RecordError(f"`{self.path}` cannot be read: {error.strerror or error}") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, KeyError) as error:
            if self.path.suffix == ".weir" or zipfile.is_zipfile(self.path) or self._begins_as_zip():
                raise RecordError(
                    f"`{self.path}` is damaged: it is no whole zip archive ({error})"
                ) from error
            raise _neither(self.path) from error

    def _begins_as_zip(self) -> bool:
        try:
            with self.path.open("rb") as file:
                return file.read(2) == b"PK"
        except OSError:
            return False


def _content(record: Path, file: Path, name: str) -> bytes | None:
    """The bytes of a file that messages call `name`; None if it is not there."""
    try:
        found = file.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise _link(record, name)
        if not stat.S_ISREG(found.st_mode):
            raise RecordError(f"`{record}`: `{name}` is no file")
        _bounded(record, name, found.st_size)
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"`{record}`: `{name}` cannot be read: {error.strerror}") from error


def _part_files(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.endswith(".parquet") and name.count("/") == 1]


def _bounded(path: Path, name: str, size: int) -> None:
    most = MAX_MANIFEST_BYTES if name == MANIFEST else MAX_PART_BYTES
    if name.endswith(NOTES):
        most = MAX_NOTES_BYTES
    if size > most:
        raise RecordError(
            f"`{path}`: `{name}` has {size} bytes; no such file of a record has more than {most}"
        )


def _link(path: Path, name: str) -> RecordError:
    return RecordError(f"`{path}`: `{name}` is a symbolic link; a record's files lie in its folder")


def _missing(path: Path, name: str) -> RecordError:
    return RecordError(f"`{path}`: `{name}` is missing")


def _neither(path: Path) -> RecordError:
    is_flents = not OF_FLENT.isdisjoint(path.suffixes)
    hint = "; `weir import` makes records of Flent's files" if is_flents else ""
    return RecordError(f"`{path}` is no record: neither a folder nor a .weir file{hint}")


def _no_record(path: Path) -> RecordError:
    return RecordError(f"`{path}` is no record: there is no {MANIFEST} in it")


MAX_MANIFEST_BYTES = 64 * 2**20
"""A scenario with 10000 flows takes a sixth of it."""

MAX_NOTES_BYTES = 2**20
"""A note has 10000 letters at most, and there are 100 tags at most."""

MAX_PART_BYTES = 256 * 2**20
"""A part has little more than 100000 rows of numbers, which is a tenth of it."""

OF_FLENT = frozenset({".flent", ".flnt"})
"""Suffixes of data files of Flent, which may have that of a packer behind."""
