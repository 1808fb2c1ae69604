"""Arguments of the public functions that take records: told apart, and refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from weirlab.errors import UsageError
from weirlab.given import shown_value

if TYPE_CHECKING:
    from weirlab.record.reader import Record


def records_of(given: object, where: str) -> list[Record]:
    """The records in `given`: one, or several in order, such as a list, an array or what a generator yields.

    Raises:
        UsageError: if it is anything else, such as a path.
    """
    several = _in_order(given)
    for one in several:
        if not _is_record(one):
            raise UsageError(
                f"{where}({shown_value(given)}): give records, such as those of `run`, "
                f"or `open_record(PATH)`; {shown_value(one)} is of type `{type(one).__name__}`"
            )
    return cast("list[Record]", several)


def record_of(given: object, where: str) -> Record:
    """`given` if it is a record.

    Raises:
        UsageError: if it is anything else, such as a path or a list of records.
    """
    if not _is_record(given):
        raise UsageError(
            f"{where}({shown_value(given)}): give one record, such as `open_record(PATH)` or `records[0]`; "
            f"this is of type `{type(given).__name__}`"
        )
    return cast("Record", given)


def _in_order(given: object) -> list[object]:
    """The parts of `given`, or itself if it has none, or none that is the first."""
    if _is_record(given) or isinstance(given, str | bytes | Mapping | AbstractSet):
        return [given]
    # An array of no dimension says that it has parts, and has none.
    with suppress(TypeError):
        return list(given) if isinstance(given, Iterable) else [given]
    return [given]


def _is_record(given: object) -> bool:
    # By its parts, so that the command line does not wait for data frames to say so.
    return hasattr(given, "manifest") and hasattr(given, "path")
