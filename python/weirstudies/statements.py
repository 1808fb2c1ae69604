"""Statements that others have published, and whether they were seen: the words for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def seen_word(seen: bool | None) -> str:
    """Whether a statement was seen, in a word or two; `seen` is None if that cannot be decided."""
    return {True: SEEN, False: NOT_SEEN, None: UNDECIDED}[seen]


def verdict(found: Sequence[bool | None]) -> str:
    """How many statements were seen."""
    words = [seen_word(one) for one in found]
    return (
        f"{len(words)} statements: {words.count(SEEN)} seen, {words.count(NOT_SEEN)} not seen, "
        f"{words.count(UNDECIDED)} cannot be decided."
    )


SEEN = "seen"
NOT_SEEN = "not seen"
UNDECIDED = "undecided"
