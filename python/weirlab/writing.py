"""Writing files that are there as a whole or not at all."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

from weirlab.errors import cannot_write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def replaced(target: Path, write: Callable[[Path], object]) -> None:
    """Writes beside `target` and renames: whoever looks sees the whole file or the old one.

    That holds after a loss of power too: the file is on the disk before it has its name, and its name before
    this returns.

    Args:
        target: the file; folders that are missing are made.
        write: writes the content into the path that it is given.

    Raises:
        UsageError: if the name cannot be written.
        WriteError: if the disk is full or broken.
    """
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write(part)
            _on_disk(part)
            part.replace(target)
            _on_disk(target.parent)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(f"`{target}` cannot be written", error) from error


def _on_disk(path: Path) -> None:
    """Waits until what was written into a file, or the names in a folder, are on the disk."""
    held = os.open(path, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)
