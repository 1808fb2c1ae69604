"""Values of axes in a scenario: which place of it a dotted key means, and the scenario with a value there."""

from __future__ import annotations

from typing import Any

from weirlab.errors import UsageError
from weirlab.scenario import load_link, load_test
from weirlab.scenario.files import name_files

Table = dict[str, Any]

Shipped = dict[tuple[str, str], Table]
"""Tests and links as they would be written, by `test` or `link` and the name."""


class NoPlace(ValueError):
    """A dotted key leads nowhere: why, in words that end a sentence."""


def opened(scenario: Table, keys: list[str], shipped: Shipped) -> Table:
    """The scenario with shipped tests and links written out where a key leads into them.

    What is looked up is kept in `shipped`, and taken from there the next time: it is read once for a sweep.

    Raises:
        NoPlace: if there is no such test or link.
    """
    found = dict(scenario)
    for name, load in (("link", load_link), ("test", load_test)):
        if isinstance(found.get(name), str) and any(key.startswith(f"{name}.") for key in keys):
            place = name, found[name]
            if place not in shipped:
                try:
                    shipped[place] = load(found[name]).written()
                except UsageError as error:
                    raise NoPlace(str(error)) from error
            found[name] = shipped[place]
    return found


def placed(scenario: Table, key: str, value: Any) -> Table:
    """A scenario with `value` at the dotted `key`; what is not on the way to it is shared with `scenario`.

    A part of a key is the key of a table, the number of an element of a list from 0, the name of an element
    that has one, or `*` for all elements.

    Raises:
        NoPlace: if the key leads nowhere.
    """
    found = _placed(scenario, key.split("."), value, key)
    if not isinstance(found, dict):
        raise NoPlace(f"`{key}` is no key of a scenario")
    return found


def with_paths(key: str, value: Any, place: str) -> Any:
    """The value of an axis in the plan `place`, with the path of a file that it names.

    Raises:
        UsageError: if that lies nowhere.
    """
    if not isinstance(value, str | list | dict):
        return value
    last = key.rpartition(".")[2]
    return name_files({last: value}, place)[last]


def _placed(holder: Any, parts: list[str], value: Any, key: str) -> Any:
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    if isinstance(holder, list):
        chosen = _elements(holder, part, key)
        return [_placed(one, rest, value, key) if n in chosen else one for n, one in enumerate(holder)]
    if holder is None:
        holder = {}
    if not isinstance(holder, dict):
        raise NoPlace(f"`{key}`: there is no table before `{part}`, but `{holder}`")
    return holder | {part: _placed(holder.get(part), rest, value, key)}


def _elements(holder: list[Any], part: str, key: str) -> set[int]:
    """Numbers of the elements of a list that a part of a key means."""
    if part == "*":
        return set(range(len(holder)))
    if part.isascii() and part.isdecimal() and len(part) < MAX_DIGITS and int(part) < len(holder):
        return {int(part)}
    names = [one.get("name") if isinstance(one, dict) else None for one in holder]
    if part in names:
        return {number for number, name in enumerate(names) if name == part}
    known = [str(name) for name in names if name] or [f"0 to {len(holder) - 1}"]
    raise NoPlace(f"`{key}`: no element `{part}` (known: {', '.join(known)}, or `*` for all)")


MAX_DIGITS = 6
"""Digits of the number of an element."""
