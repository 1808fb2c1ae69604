"""Questions to the compiled part, with the errors that users see."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from weirlab import _native
from weirlab.errors import ShapeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

ResultT = TypeVar("ResultT")


def asked(question: Callable[[], ResultT]) -> ResultT:
    """The answer to a question.

    Raises:
        UsageError: if what was given cannot be used.
        ShapeError: if something else has failed.
    """
    try:
        return question()
    except _native.InputError as error:
        raise UsageError(str(error)) from error
    except _native.NativeError as error:
        raise ShapeError(str(error)) from error
