"""Records and paths as callers of Python give them: told apart, and refused in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from weirlab.record.reader import Record


def records_of(given: object, where: str) -> list[Record]:
    """The records in `given`: one, or several.

    Raises:
        UsageError: if it is anything else, such as a path.
    """
    several = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [given]
    for one in several:
        if not _is_record(one):
            raise UsageError(
                f"{where}({_shown(given)}): give records, such as those of `run`, or `open_record(PATH)`; "
                f"{_shown(one)} is of type `{type(one).__name__}`"
            )
    return cast("list[Record]", several)


def record_of(given: object, where: str) -> Record:
    """`given` if it is a record.

    Raises:
        UsageError: if it is anything else, such as a path or a list of records.
    """
    if not _is_record(given):
        raise UsageError(
            f"{where}({_shown(given)}): give one record, such as `open_record(PATH)` or `records[0]`; "
            f"this is of type `{type(given).__name__}`"
        )
    return cast("Record", given)


def path_of(given: object, name: str, what: str) -> Path:
    """The path that was given for the argument `name`, which may be no path at all.

    Whether something stands there, or can, is not looked at.

    Args:
        given: what was given.
        name: the argument's name, for the message.
        what: what the path leads to, for the message: "a folder for records".

    Raises:
        UsageError: if it is no path, an empty one, or one with a zero byte, which no file system takes.
    """
    if not isinstance(given, str | Path):
        raise _wrong(given, name, f"the path of {what}")
    if given == "":
        raise UsageError(f"{name} is empty: give the path of {what}, `.` for the folder where you are")
    if "\0" in str(given):
        raise UsageError(f"{name}: `{given}` has a zero byte in it: give the path of {what}")
    return Path(given)


def text_of(given: object, name: str, what: str) -> str | None:
    """The text that was given for the argument `name`; None if there is none.

    Raises:
        UsageError: if it is anything else.
    """
    if given is not None and not isinstance(given, str):
        raise _wrong(given, name, what)
    return given


def count_of(given: object, name: str, what: str) -> int | None:
    """The number, 1 or more, that was given for the argument `name`; None if there is none.

    Raises:
        UsageError: if it is anything else.
    """
    if given is not None and (type(given) is not int or given < 1):
        raise UsageError(f"{name}: {_shown(given)}: give {what}, a whole number of 1 or more")
    return given


def span_of(given: object, name: str) -> tuple[float, float] | None:
    """The two seconds that were given for the argument `name`; None if there are none.

    Raises:
        UsageError: if it is anything else.
    """
    if given is None:
        return None
    ends = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else ()
    if len(ends) != 2 or not all(isinstance(one, int | float) and not math.isnan(one) for one in ends):
        raise _wrong(given, name, "its first and last second, such as (35, 55)")
    return ends[0], ends[1]


def _wrong(given: object, name: str, what: str) -> UsageError:
    return UsageError(f"{name}: {_shown(given)}: give {what}, not `{type(given).__name__}`")


def _is_record(given: object) -> bool:
    # By its parts, so that the command line does not wait for data frames to say so.
    return hasattr(given, "manifest") and hasattr(given, "path")


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


MAX_SHOWN_CHARS = 60
"""Characters of a wrong value in a message."""
