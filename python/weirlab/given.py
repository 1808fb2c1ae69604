"""What callers of Python give for paths, texts, counts and spans: told apart, and refused in one sentence."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["count_of", "path_of", "plain", "shown_value", "span_of", "text_of"]


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
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        raise _wrong(given, name, f"the path of {what}")
    if given == "":
        raise UsageError(f"{name} is empty: give the path of {what}, `.` for the folder where you are")
    if "\0" in given:
        raise UsageError(f"{name}: `{given}` has a zero byte in it: give the path of {what}")
    if _is_no_text(given, os.fsencode):
        raise UsageError(f"{name}: {shown_value(given)} is no text in UTF-8: give the path of {what}")
    return Path(given)


def text_of(given: object, name: str, what: str) -> str | None:
    """The text that was given for the argument `name`; None if there is none.

    Raises:
        UsageError: if it is anything else.
    """
    if given is not None and not isinstance(given, str):
        raise _wrong(given, name, what)
    if given is not None and _is_no_text(given, str.encode):
        raise UsageError(f"{name}: {shown_value(given)} is no text in UTF-8: give {what}")
    return given


def count_of(given: object, name: str, what: str) -> int | None:
    """The number, 1 or more, that was given for the argument `name`; None if there is none.

    Raises:
        UsageError: if it is anything else.
    """
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, numbers.Integral) or given < 1:
        raise UsageError(f"{name}: {shown_value(given)}: give {what}, a whole number of 1 or more")
    return int(given)


def span_of(given: object, name: str) -> tuple[float, float] | None:
    """The two seconds that were given for the argument `name`; None if there are none.

    Raises:
        UsageError: if it is anything else.
    """
    if given is None:
        return None
    ends: list[float] = []
    # An array of no dimension has no values, and a number of 400 digits is no float.
    with suppress(TypeError, OverflowError):
        # Of a set or a mapping none is the first.
        if isinstance(given, Collection) and not isinstance(given, str | bytes | AbstractSet | Mapping):
            ends = [float(one) if _is_number(one) else math.nan for one in given]
    if len(ends) != 2 or math.isnan(ends[0]) or math.isnan(ends[1]):
        raise _wrong(given, name, "its first and last second, such as (35, 55)")
    return ends[0], ends[1]


def plain(given: object) -> object:
    """What was given as a file has it: whole numbers of NumPy as Python's, paths as texts, also in tables."""
    if isinstance(given, bool | str):
        return given
    if isinstance(given, os.PathLike):
        return os.fspath(given)
    if isinstance(given, numbers.Integral):
        return int(given)
    if isinstance(given, Mapping):
        return {key: plain(value) for key, value in given.items()}
    return [plain(one) for one in given] if isinstance(given, list | tuple) else given


def shown_value(given: object) -> str:
    """A wrong value as a message has it, in one line."""
    try:
        text = " ".join(repr(given).split())
    except ValueError:
        # Python writes no number of more than 4300 digits.
        text = "a number of thousands of digits"
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


def _is_number(given: object) -> bool:
    return isinstance(given, numbers.Real) and not isinstance(given, bool)


def _is_no_text(given: str, encoded: Callable[[str], bytes]) -> bool:
    """Whether there is half of a pair of UTF-16 in it, which stands for no sign."""
    try:
        encoded(given)
    except UnicodeEncodeError:
        return True
    return False


def _wrong(given: object, name: str, what: str) -> UsageError:
    return UsageError(f"{name}: {shown_value(given)}: give {what}, not `{type(given).__name__}`")


MAX_SHOWN_CHARS = 60
"""Characters of a wrong value in a message."""
