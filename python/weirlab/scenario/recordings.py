"""Recordings that scenarios name: their digests, and what they are called without their folders."""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def digest_of(text: str) -> str:
    """The digest by which a text is known: the first 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def named(said: Any) -> Iterator[str]:
    """The recordings that a resolved scenario names, or a part of one, as they stand there."""
    if isinstance(said, dict):
        for key, one in said.items():
            if key == KEY and isinstance(one, str):
                yield one
            else:
                yield from named(one)
    elif isinstance(said, list):
        for one in said:
            yield from named(one)


def calling(said: Any, called: Mapping[str, str]) -> Any:
    """A part of what is said of a run in which recordings are called so; those of other names stay."""
    if not called:
        return said
    if isinstance(said, dict):
        return {
            key: called.get(one, one) if key == KEY and isinstance(one, str) else calling(one, called)
            for key, one in said.items()
        }
    return [calling(one, called) for one in said] if isinstance(said, list) else said


def without_folders(
    said: dict[str, Any], digests: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """What is said of a run, and digests of its recordings, without the folders in which these lie.

    Args:
        said: a resolved scenario, or what has one in it.
        digests: digests of the recordings that it names, by their names.
    """
    several = _of_several_contents(digests.items())
    called = {path: digest if _name(path) in several else _name(path) for path, digest in digests.items()}
    is_as_said = all(path == name for path, name in called.items())
    found = said if is_as_said else calling(said, called)
    return found, {called[path]: digest for path, digest in digests.items()}


def names_of(digests: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What people call recordings, by their digests: their files' names, and digits if others have these.

    Args:
        digests: of each run the digests of its recordings, by their paths.
    """
    pairs = [pair for one in digests for pair in one.items()]
    several = _of_several_contents(pairs)
    return {
        digest: f"{_name(path)} ({digest[:SHOWN_DIGITS]})" if _name(path) in several else _name(path)
        for path, digest in reversed(pairs)
    }


def _of_several_contents(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """The names that files of other contents have, too."""
    contents: dict[str, set[str]] = {}
    for path, digest in pairs:
        contents.setdefault(_name(path), set()).add(digest)
    return {name for name, of in contents.items() if len(of) > 1}


def _name(path: str) -> str:
    return PurePath(path).name


KEY = "trace"
"""The key that names a recording; no other is called so."""

SHOWN_DIGITS = 8
"""Of a digest, for people."""
