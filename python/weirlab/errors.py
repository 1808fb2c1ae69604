"""Errors that a person sees: one sentence each, and an exit code for scripts."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from weirlab.ending import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AssertionBroken",
    "Interrupted",
    "LabError",
    "NetError",
    "RecordError",
    "ShapeError",
    "UsageError",
    "WeirError",
    "WeirWarning",
    "WriteError",
    "cannot_write",
    "counted",
    "of_several",
    "sentence",
]


class WeirError(Exception):
    """Something is wrong that the user can mend.

    Attributes:
        exit_code: what `weir` exits with (see docs/cli.md).
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        """The sentence, in which what is quoted is shortened and shown as text."""
        super().__init__(sentence(message))


class WeirWarning(UserWarning):
    """Something that the user should know of a result, in a sentence; the command line tells it as such."""


class UsageError(WeirError):
    """A name, value or file that Weir was given cannot be used."""

    exit_code = 2


class RecordError(WeirError):
    """A record cannot be read."""

    exit_code = 3


class Interrupted(WeirError):
    """The user ended a run; what was measured until then is kept."""

    exit_code = INTERRUPTED


class WriteError(WeirError):
    """A file or folder cannot be written: the disk is full, read-only or broken."""


class AssertionBroken(WeirError):
    """An assertion of a scenario about its runs does not hold."""


class LabError(WeirError):
    """The lab could not do what was asked."""


class NetError(WeirError):
    """A server elsewhere cannot be reached, refuses, or went away."""


class ShapeError(WeirError):
    """An interface cannot be shaped, or its shaper did not help."""


def cannot_write(what: str, error: OSError) -> WeirError:
    """The error of something that cannot be written: wrong input if the name is wrong, else a failure."""
    said = f"{what}: {error.strerror or error}"
    return UsageError(said) if error.errno in _WRONG_NAME else WriteError(said)


def of_several(errors: Sequence[WeirError], message: str) -> WeirError:
    """The error of a command that has told what is wrong with each of several files, and did the others.

    Its exit code is the least of theirs: a disk that is full is no file that cannot be read.
    """
    kinds = {kind.exit_code: kind for kind in (WeirError, UsageError, RecordError)}
    return kinds[min(one.exit_code for one in errors)](message)


def sentence(message: str) -> str:
    """`message` as it is told: long values are cut, and signs that steer a terminal are written out."""
    message = _LONG_VALUE.sub(lambda quoted: f"{quoted[1]}{_cut(quoted[2])}{quoted[1]}", message)
    if len(message) > MAX_SENTENCE_CHARS:
        message = _cut(message, MAX_SENTENCE_CHARS)
    return written_out(message)


def counted(number: int, what: str) -> str:
    """A number of things, such as `1 run` and `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def written_out(text: str) -> str:
    """`text` for a terminal, which it then cannot steer: signs that could are written out, others stay."""
    return _STEERING.sub(lambda one: one[0].encode("unicode_escape").decode("ascii"), text)


def _cut(value: str, most: int = 0) -> str:
    kept = (most or MAX_VALUE_CHARS) * 2 // 3
    return f"{value[:kept]}... ({len(value)} characters)"


MAX_VALUE_CHARS = 300
"""Signs of a quoted value: a queue spec of several classes is shown whole."""

MAX_SENTENCE_CHARS = 6000
"""Signs of a whole sentence: one with the faults of a file, a line each, has 4000."""

_LONG_VALUE = re.compile(rf"""([`'"])((?:(?!\1)[\s\S]){{{MAX_VALUE_CHARS + 1},}}+)\1""")

_STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for the end of a line, halves of signs, and what turns the direction of writing."""

_WRONG_NAME = {
    errno.EACCES,
    errno.EEXIST,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
}
"""Error numbers that mean a wrong file name, and not a broken disk."""
