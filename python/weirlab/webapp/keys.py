"""The keys of a scenario file and what each means, from the schema of such files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from weirlab.scenario.catalogue import schemas

__all__ = ["Key", "scenario_keys"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Key:
    """A key of a scenario file.

    Attributes:
        place: the key with the tables that it stands in, such as `phases.idle`.
        kind: what its value may be, in a few words.
        meaning: what it means.
    """

    place: str
    kind: str
    meaning: str


@cache
def scenario_keys() -> tuple[Key, ...]:
    """All keys of a scenario file, those of a table behind the table itself."""
    whole = schemas()["scenario"]
    parts = whole["$defs"]
    found: dict[str, Key] = {}
    for key in _keys(parts[_name(whole)], parts, "", 0):
        # A link may be one or a list of several: its keys are the same.
        found.setdefault(key.place, key)
    return tuple(found.values())


def _keys(of: Mapping[str, Any], parts: Mapping[str, Any], before: str, depth: int) -> Iterator[Key]:
    for name, one in of.get("properties", {}).items():
        place = f"{before}{name}"
        needed = "; required" if name in of.get("required", []) else ""
        yield Key(place, _kind(one, parts) + needed, str(one.get("description", "")))
        for inner in _tables(one, parts) if depth < MAX_DEPTH else ():
            yield from _keys(inner, parts, f"{place}.", depth + 1)


def _tables(one: Mapping[str, Any], parts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The tables that a value may be, or be a list of."""
    match one:
        case {"$ref": str()}:
            yield from _tables(parts[_name(one)], parts)
        case {"anyOf": several} | {"oneOf": several}:
            for each in several:
                yield from _tables(each, parts)
        case {"type": "array", "items": each}:
            yield from _tables(each, parts)
        case {"properties": _}:
            yield one
        case _:
            pass


def _kind(one: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """What a value may be, in a few words."""
    match one:
        case {"$ref": str()}:
            words = _kind(parts[_name(one)], parts)
        case {"enum": [*values]} | {"const": values}:
            choices = values if isinstance(values, list) else [values]
            words = " or ".join(f'"{choice}"' for choice in choices)
        case {"anyOf": several} | {"oneOf": several}:
            words = " or ".join(dict.fromkeys(_kind(each, parts) for each in several))
        case {"type": "array", "items": item}:
            words = f"list of {_kind(item, parts)}"
        case {"type": "object"}:
            words = "table"
        case _:
            kinds = one.get("type", "anything")
            names = kinds if isinstance(kinds, list) else [kinds]
            words = " or ".join(KINDS.get(str(name), str(name)) for name in names)
    return words


def _name(one: Mapping[str, Any]) -> str:
    return str(one["$ref"]).rpartition("/")[2]


KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
"""Words for the types of JSON."""

MAX_DEPTH = 3
"""Tables within tables, which a test written within a scenario has."""
