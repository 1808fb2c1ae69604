"""Pages of records that were made before, as long as no file of these records has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.webapp.latest import Latest
from weirlab.webapp.library import state_of

__all__ = ["Made"]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Key = tuple[tuple[tuple[str, int, int], ...], ...]


class Made:
    """The pages that were looked at last: to open one again reads nothing and computes nothing."""

    def __init__(self) -> None:
        """None is kept yet."""
        self._pages: Latest[Key, str] = Latest(MAX_PAGES)

    def has(self, paths: Sequence[Path]) -> bool:
        """Whether the page of the records at `paths` is there."""
        return _key(paths) in self._pages

    def page(self, paths: Sequence[Path], make: Callable[[], str]) -> str:
        """The page of the records at `paths`, which `make` makes if it is not there.

        What changes while it is made is seen the next time: the state of the files is that of before.
        """
        return self._pages.get(_key(paths), make)


def _key(paths: Sequence[Path]) -> Key:
    return tuple(map(state_of, paths))


MAX_PAGES = 16
"""Each has up to some MB."""
