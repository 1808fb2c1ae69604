"""Reading files that others give: regular ones only, and no more of them than fits the purpose."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


class Unreadable(Exception):
    """A file cannot be read: why, in words that end a sentence."""


def whole(text: str, most_digits: int) -> int | None:
    """The whole number that `text` is, of up to so many digits, 0 to 9; None if it is none.

    Python's `int` takes digits of all scripts, and raises where there are more than 4300.
    """
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= most_digits else None


def read_bytes(file: Traversable, most: int) -> bytes:
    """Reads a regular file of no more than `most` bytes.

    Raises:
        Unreadable: if it is no such file, or cannot be read.
    """
    if not isinstance(file, Path):
        # Not of the file system: data that is shipped with Weir.
        return file.read_bytes()
    try:
        with opened(file) as regular:
            found = regular.read(most + 1)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    if len(found) > most:
        raise Unreadable(f"it has more than {_in_words(most)}")
    return found


def opened(file: Path) -> BinaryIO:
    """Opens a regular file for reading.

    Raises:
        Unreadable: if it is no such file, or cannot be opened.
    """
    try:
        # Opening a named pipe would wait for who writes into it.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    except UnicodeEncodeError as error:
        raise Unreadable("its name is no text in UTF-8") from error
    except ValueError as error:
        raise Unreadable("its name has a zero byte in it") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise Unreadable(f"it is a {_kind(mode)}, and no regular file")
    return os.fdopen(descriptor, "rb")


def read_text(file: Traversable, most: int) -> str:
    """Reads a regular file of no more than `most` bytes as text in UTF-8."""
    try:
        return read_bytes(file, most).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error.reason} at byte {error.start}") from error


def read_named(name: str, most: int) -> str:
    """Reads a text file that a command line, a scenario, a test or a link names.

    Raises:
        Unreadable: if it cannot be read. Of a relative path that leads nowhere it says from where.
    """
    path = Path(name)
    try:
        return read_text(path, most)
    except Unreadable as error:
        folder = working_folder()
        if path.is_absolute() or folder is None or not isinstance(error.__cause__, FileNotFoundError):
            raise
        why = f"{error}: relative paths are those from the working folder `{folder}`"
        raise Unreadable(why) from error


def working_folder() -> Path | None:
    """The working folder; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def parse_toml(text: str) -> dict[str, Any]:
    """Parses `text` as TOML.

    Raises:
        Unreadable: if it is no TOML, or nested so deeply that reading it takes all memory.
    """
    import tomllib  # noqa: PLC0415 - most commands read no TOML here

    deep = _LONG_KEY.search(text)
    if deep:
        line = text.count("\n", 0, deep.start()) + 1
        raise Unreadable(f"line {line}: a key has more than {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"it is not TOML: {error}") from error
    except RecursionError as error:
        raise Unreadable("its brackets are nested too deep") from error
    except ValueError as error:
        # A whole number of thousands of digits.
        raise Unreadable(f"it is not TOML: {error}") from error


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
    return next((name for is_it, name in kinds if is_it(mode)), "device")


def _in_words(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


MAX_TOML_BYTES = 1 << 20
"""Bytes of a scenario, link, list of rules or set of settings: the longest that are shipped have 20 kB."""

MAX_TRACE_BYTES = 64 << 20
"""Bytes of a recorded line: 9 million packets, an hour and a half at 20 Mbit/s."""

MAX_RECORDING_BYTES = 256 << 20
"""Bytes of a recording of queues or of a shaper's log: 8 to 10 hours of it under load."""

MAX_KEY_PARTS = 32
"""A dotted key of n parts takes memory in proportion to the square of n: 100 kB of it take 4 GB."""

_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:"[^"\n]*+"|'[^'\n]*+'|[\w-]++)[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}""", re.ASCII
)
