"""What was made last, so that it need not be made again at once."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

__all__ = ["Latest"]

if TYPE_CHECKING:
    from collections.abc import Callable

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class Latest(Generic[Key, Made]):
    """The things that were asked for last, by their keys; for several threads."""

    def __init__(self, most: int) -> None:
        """Keeps `most` at most, and nothing yet."""
        self._most = most
        self._kept: dict[Key, Made] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        """Whether it is there."""
        with self._lock:
            return key in self._kept

    def get(self, key: Key, make: Callable[[], Made]) -> Made:
        """What is kept for `key`, or what `make` makes for it now, which is never None."""
        with self._lock:
            found = self._kept.pop(key, None)
        if found is None:
            found = make()
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return found
