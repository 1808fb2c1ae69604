"""Weir's own block in a file for Flent: what Flent has no word for. Flent ignores it.

Times are those of Flent, in seconds since `T0`: a record that was imported may begin before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab.errors import RecordError
from weirlab.flent.document import MAX_LENGTH_S, MAX_NAME_CHARS, MAX_SERIES, is_text, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Span:
    """A span of time by its name, in seconds since `T0`."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class Own:
    """What a file from here tells besides Flent's own.

    Attributes:
        phases: of the test, as they were planned.
        flows: when each flow was to run, by its name.
        means: names of the series of pings of which each value is a mean over an interval.
        reached_s: how far the run got, in seconds since `T0`.
        complete: whether it came to its end.
        warnings: why the run should not be trusted, if anything.
        is_measured: whether Weir measured it, not the tool of whose file the record was made.
    """

    phases: list[Span]
    flows: dict[str, Span]
    means: frozenset[str]
    reached_s: float
    complete: bool
    warnings: list[str]
    is_measured: bool


def own_block(record: Record, t0_ns: int) -> dict[str, Any]:
    """The block of `record`, in which Flent's time 0 is `t0_ns`."""
    manifest = record.manifest

    def told(name: str, start_ns: int, end_ns: int) -> dict[str, Any]:
        return {"name": name, "start_s": (start_ns - t0_ns) / 1e9, "end_s": (end_ns - t0_ns) / 1e9}

    imported = manifest.imported
    means = imported.means if imported else frozenset()
    return {
        "versions": manifest.versions,
        "world": manifest.world,
        "is_measured": imported is None or imported.is_measured,
        "seed": manifest.seed,
        "queue": manifest.queue,
        "link": manifest.link.get("title"),
        "complete": manifest.complete,
        "warnings": manifest.warnings,
        "mean_value": "as in the file that was imported" if imported else "of the phase `load`",
        "reached_s": (record.reached_ns - t0_ns) / 1e9,
        "phases": [told(one["name"], one["start_ns"], one["end_ns"]) for one in manifest.scenario["phases"]],
        "flows": [
            told(one["name"], one["start_ns"], one["stop_ns"])
            for one in record.flow_names.iter_rows(named=True)
        ],
        "means": [record.probe_names[one] for one in sorted(means)],
    }


def read_own(block: object) -> Own | None:
    """The block as a file has it, which may be a stranger's; None of a file of Flent's, or of an older Weir.

    Raises:
        RecordError: if it is damaged.
    """
    if not isinstance(block, dict) or "phases" not in block:
        return None
    phases = _spans(block, "phases", MAX_PHASES)
    if not phases or len({one.name for one in phases}) < len(phases):
        raise RecordError("the `phases` of its block `weir` are none, or two have one name")
    return Own(
        phases=phases,
        flows={one.name: one for one in _spans(block, "flows", MAX_SERIES)},
        means=_names(block, "means"),
        reached_s=_time(block, "reached_s"),
        complete=block.get("complete") is True,
        warnings=_texts(block, "warnings"),
        is_measured=block.get("is_measured", block.get("world") != "imported") is True,
    )


def _spans(block: Mapping[str, Any], key: str, most: int) -> list[Span]:
    found = block.get(key)
    if not isinstance(found, list) or len(found) > most:
        raise RecordError(f"the `{key}` of its block `weir` are no list of {most} at most")
    return [_span(one, key) for one in found]


def _span(one: object, key: str) -> Span:
    name = one.get("name") if isinstance(one, dict) else None
    if not isinstance(one, dict) or not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS:
        raise RecordError(f"one of the `{key}` of its block `weir` has no name")
    if not is_text(name):
        raise RecordError(f"one of the `{key}` of its block `weir` has a name that is no text")
    start_s, end_s = _time(one, "start_s"), _time(one, "end_s")
    if start_s > end_s:
        raise RecordError(f"`{name}` of its block `weir` ends before it begins")
    return Span(name=name, start_s=start_s, end_s=end_s)


def _names(block: Mapping[str, Any], key: str) -> frozenset[str]:
    found = block.get(key, [])
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise RecordError(f"the `{key}` of its block `weir` are no list of names")
    return frozenset(found)


def _texts(block: Mapping[str, Any], key: str) -> list[str]:
    found = block.get(key, [])
    if not isinstance(found, list) or len(found) > MAX_TEXTS:
        raise RecordError(f"the `{key}` of its block `weir` are no list of {MAX_TEXTS} at most")
    if not all(isinstance(text, str) and is_text(text) for text in found):
        raise RecordError(f"one of the `{key}` of its block `weir` is no text")
    return found


def _time(block: Mapping[str, Any], key: str) -> float:
    found = number(block.get(key))
    if found is None or not -MAX_LENGTH_S <= found <= MAX_LENGTH_S:
        raise RecordError(f"`{key}` of its block `weir` is no time of {MAX_LENGTH_S} s at most")
    return found


MAX_TEXTS = 1000
"""Sentences of a kind that are read. A run has a few."""

MAX_PHASES = 100
"""A test has three, and one that loads each direction by itself five."""
