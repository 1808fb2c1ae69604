"""Writing files that are there as a whole or not at all, also after the machine has lost its power."""

from __future__ import annotations

import errno
import fcntl
import os
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from weirlab.errors import WriteError, cannot_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


def replaced(target: Path, write: Callable[[Path], object]) -> None:
    """Writes beside `target` and renames: whoever looks sees the whole file or the old one.

    Content and name are on the disk when it returns, so that what the new file stands for may be removed.

    Args:
        target: the file; folders that are missing are made.
        write: writes the content into the path that it is given.

    Raises:
        UsageError: if the name cannot be written.
        WriteError: if the disk is full or broken.
    """
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    made: list[Path] = []
    try:
        try:
            made += folders_made(target.parent)
            _sync_names(made)
            write(part)
            _sync(part)
            part.replace(target)
            _sync_folder(target.parent)
        except BaseException:
            # Polars tells of a request to end itself, and Python once more at the next call: at this one.
            try:
                _remove([part], made)
            except KeyboardInterrupt:
                _remove([part], made)
                raise
            raise
    except OSError as error:
        raise cannot_write(f"`{target}` cannot be written", error) from error
    except WriteError as error:
        raise WriteError(str(error).replace(str(part), str(target))) from error


def all_replaced(files: Mapping[Path, Callable[[Path], object]]) -> None:
    """Writes new files as `replaced` does, all of them or none.

    Args:
        files: files that are not there, and what writes the content of each.

    Raises:
        UsageError: if a name cannot be written.
        WriteError: if the disk is full or broken.
    """
    begun: list[Path] = []
    missing = [one for target in files for one in target.parents if not os.path.lexists(one)]
    made = list(dict.fromkeys(missing))
    try:
        for target, write in files.items():
            begun.append(target)
            replaced(target, write)
    except BaseException:
        # As above.
        try:
            _remove(begun, made)
        except KeyboardInterrupt:
            _remove(begun, made)
            raise
        raise


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Has who else changes files of `folder` this way wait, so that none changes what another replaces.

    Where the file system locks no folder (NFS), or who asks may not read it, nobody waits.

    Raises:
        UsageError: if there is no such folder.
        WriteError: if another program holds its lock, such as flock(1), or it cannot be locked.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        yield
        return
    except OSError as error:
        raise cannot_write(f"`{folder}` cannot be written", error) from error
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    """Locks a folder as soon as nobody else has it locked; a change takes milliseconds."""
    until_s = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in NO_LOCKS:
                return
            if error.errno not in {errno.EWOULDBLOCK, errno.EINTR}:
                raise cannot_write(f"`{folder}` cannot be locked", error) from error
        else:
            return
        if time.monotonic() >= until_s:
            raise WriteError(
                f"`{folder}` has been locked by another program for {LOCK_WAIT_S:g} s (flock): lock another "
                "file for your own jobs"
            )
        time.sleep(LOCK_STEP_S)


def _remove(files: Sequence[Path], folders: Sequence[Path]) -> None:
    """Removes files, if they are there, and the folders that are empty then, the innermost first."""
    for file in files:
        with suppress(OSError):
            file.unlink()
    remove_empty(folders)


def folders_made(folder: Path) -> list[Path]:
    """Makes a folder, and those above it that are missing; returns what was made, the innermost first.

    Raises:
        OSError: if one of them cannot be made; none stays then.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_empty(missing)
        raise
    return missing


def remove_empty(folders: Sequence[Path]) -> None:
    """Removes those of the folders, the innermost first, that are there and empty."""
    for one in folders:
        with suppress(OSError):
            one.rmdir()


def _sync_names(made: Sequence[Path]) -> None:
    """Puts the names of folders that were made, the innermost first, on the disk."""
    for one in reversed(made):
        _sync_folder(one.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Puts the names in a folder on the disk, where its file system can do so by itself.

    Some network file systems refuse fsync on folders with EINVAL: they order renames on their own. A folder
    that may be written but not read cannot be opened; the kernel writes its names when it finds the time.
    """
    try:
        _sync(folder)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EACCES}:
            raise


NO_LOCKS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""How file systems say that they do not lock folders (flock(2), under NFS and CIFS too)."""

LOCK_WAIT_S = 10.0
"""How long it is waited for who else changes a folder; hundreds of changes come to an end in it."""

LOCK_STEP_S = 0.005
"""Time between two looks."""
