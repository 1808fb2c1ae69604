"""What readers of records need of scenarios, without the models of them."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from weirlab import _native, reading
from weirlab.errors import RecordError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

Direction = Literal["up", "down"]
"""Direction, as the client sees it."""

DEFAULT_QUEUE = "default"
"""The queue spec that stands for the link's own queue."""


def queue_words(spec: str) -> str:
    """A queue spec, for people."""
    return "the link's own queue" if spec == DEFAULT_QUEUE else spec


def of_direction(spec: str, direction: str) -> str:
    """What a record's queue spec says of one direction: with one each it is `up fq_codel, down default`."""
    own = re.fullmatch(r"up (?P<up>.+), down (?P<down>.+)", spec)
    return own[direction] if own else spec


def path_shares(hop: dict[str, Any], direction: str, seed: int, end_ns: int) -> list[tuple[int, float]]:
    """When each path of a hop with a `reconfiguration` begins, in ns, and its share of the line's rate.

    Args:
        hop: the hop, resolved.
        direction: `up` or `down`.
        seed: the run's.
        end_ns: paths that begin later are left out.

    Raises:
        RecordError: if there can be no such reconfiguration.
    """
    paths, name = json.dumps(hop["reconfiguration"]), f"{direction}/{hop['name']}"
    try:
        return _native.path_shares(paths, name, seed, end_ns)
    except (_native.NativeError, OverflowError) as error:
        raise RecordError(f"hop `{name}` of its scenario: {error}") from error


@cache
def shipped_traces() -> Mapping[str, Traversable]:
    """The shipped recordings by name."""
    folder = resources.files("weirlab") / "data" / "traces"
    return MappingProxyType({file.name: file for file in folder.iterdir()})


def load_trace(name: str) -> str:
    """The text of the shipped recording of that name, or of the recording in that file."""
    shipped = shipped_traces().get(name)
    try:
        if shipped is not None:
            return reading.read_text(shipped, reading.MAX_TRACE_BYTES)
        return reading.read_named(name, reading.MAX_TRACE_BYTES)
    except reading.Unreadable as error:
        raise UsageError(f"trace `{name}` is neither shipped nor a file that can be read: {error}") from error
