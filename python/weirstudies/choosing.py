"""What `--only` chooses of a study: all whose names match a pattern, in every study alike."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

One = TypeVar("One")


def chosen(
    known: Mapping[str, One], only: Sequence[str], *, study: str, what: str, more: str = ""
) -> list[One]:
    """The ones whose names match one of the patterns, in their order; all of them if there is no pattern.

    Args:
        known: all of them by name.
        only: whole names, or patterns in which `*` stands for anything.
        study: name of the study.
        what: what a message calls one of them, such as `experiment`.
        more: what else a message says, such as where there are more of them.

    Raises:
        UsageError: if nothing matches a pattern.
    """
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for name in known):
            named = f"known: {', '.join(known)}"
            if len(known) > MOST_NAMED:
                named = f"they are called as `{next(iter(known))}`"
            if more:
                named += f"; {more}"
            raise UsageError(
                f"study `{study}` has no {what} `{pattern}` (write a whole name, or `*` for any part of "
                f"it; {named})"
            )
    return [one for name, one in known.items() if not only or any(fnmatchcase(name, text) for text in only)]


MOST_NAMED = 60
"""A message names no more; of more it says what they look like."""
