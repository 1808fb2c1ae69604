"""Configurations: their repetitions among records, and names that tell them apart."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from weirlab.record.differences import (
    ASPECTS,
    as_asked,
    differences,
    finds_its_loads,
    is_of_a_real_line,
    queue_name,
    wholeness,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from weirlab.record.reader import Record


@dataclass(frozen=True)
class Configuration:
    """One configuration with all its repetitions.

    Attributes:
        name: what tells it apart from the others.
        records: its repetitions, each run once.
    """

    name: str
    records: list[Record]


def configurations(records: Sequence[Record]) -> list[Configuration]:
    """The configurations of `records`, in order; records that differ in nothing but the seed are one.

    A run that is given several times counts once (`distinct`). A run that was cut short is no repetition of
    whole ones: it is a configuration of its own, which says so in its name. So is each test of a line
    (`weir test`), unless it has the note of another.
    """
    groups: dict[str, list[Record]] = {}
    for record in distinct(records):
        groups.setdefault(_identity(record), []).append(record)
    names = run_names([group[0] for group in groups.values()])
    return [Configuration(*both) for both in zip(names, groups.values(), strict=True)]


def distinct(records: Sequence[Record]) -> list[Record]:
    """`records` with each run once, in order."""
    counted = _counted(records)
    return [record for record in dict.fromkeys(records) if counted[_run_key(record)] is record]


def same_runs(records: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Records of a run that another record tells already: each with the record that counts.

    A record and its copy are one run. So are two simulations of one configuration with one seed, which are
    the same to the bit and no repetitions. Of several a whole one counts rather than one that was cut short,
    and the longer of two that were. In live worlds a seed does not make a run: each started run is one of
    its own.
    """
    counted = _counted(records)
    met: set[str] = set()
    found = []
    for record in records:
        key = _run_key(record)
        if record is not counted[key] or key in met:
            found.append((record, counted[key]))
        else:
            met.add(key)
    return found


def run_names(records: Sequence[Record]) -> list[str]:
    """A name for each record: in what it differs from the others, or the queue spec if in nothing.

    Where that does not tell them apart they also have their seeds, the part of their paths in which they
    differ, or a number.
    """
    # A test of a line has no queue of its own to be called by.
    whole = [queue_name(record) if not finds_its_loads(record) else "" for record in records]
    names = [words or other for words, other in zip(differences(records), whole, strict=True)]
    places = _places([record.path for record in records])
    seeds = [record.manifest.seed for record in records]
    for more in ([f"seed {seed}" for seed in seeds if seed is not None], places):
        if len(set(names)) == len(names):
            break
        if len(set(more)) > 1 and len(more) == len(names):
            names = [" · ".join(filter(None, both)) for both in zip(names, more, strict=True)]
    return numbered([name or queue_name(record) for name, record in zip(names, records, strict=True)])


def numbered(names: Sequence[str], form: str = "{} ({})") -> list[str]:
    """`names`, of which those that occur several times are numbered: no two are the same.

    Args:
        names: the names.
        form: how a name and its number are written.
    """
    times, taken = Counter(names), set(names)
    free = {name: map(partial(form.format, name), count(1)) for name in times}
    found = []
    for name in names:
        given = name if times[name] == 1 else next(one for one in free[name] if one not in taken)
        taken.add(given)
        found.append(given)
    return found


def shortened(name: str, most: int) -> str:
    """`name`, of which the middle is left out if it is longer than `most` characters."""
    half = (most - 3) // 2
    return name if len(name) <= most else f"{name[:half]} \N{HORIZONTAL ELLIPSIS} {name[-half:]}"


def joined(names: Iterable[str], kind: str) -> str:
    """Different names in one phrase: `A`, `A / B`, or how many of that `kind` there are."""
    different = list(dict.fromkeys(names))
    return " / ".join(different) if len(different) <= 2 else f"{len(different)} {kind}"


def shared_parts(paths: Sequence[Sequence[str]]) -> int:
    """How many parts all of `paths` (the parts of each) have in common at their beginning."""
    shortest = min((len(one) for one in paths), default=0)
    return next((at for at in range(shortest) if len({one[at] for one in paths}) > 1), shortest)


def slug(text: str) -> str:
    """`text` as a short file name: letters, of every script with their marks, and digits."""
    kept = " "
    for sign in unicodedata.normalize("NFC", text.lower()):
        kind = unicodedata.category(sign)[0]
        # A mark that stands on no letter, such as the one behind an emoji, would be a name that nobody sees.
        kept += sign if kind in "LN" or (kind == "M" and kept[-1] != " ") else " "
    return "-".join(kept.split())[:40].rstrip("-") or "queue"


IN_WORDS = 400
"""Characters of a queue spec in text for people: one of a thousand classes has as many lines. Charts have as
many in their headings, JSON has all."""


def _counted(records: Sequence[Record]) -> dict[str, Record]:
    """Of each run the record that counts."""
    counted: dict[str, Record] = {}
    for record in dict.fromkeys(records):
        key = _run_key(record)
        counted[key] = max(counted.get(key, record), record, key=_reach)
    return counted


def _identity(record: Record) -> str:
    """A key that all repetitions of a configuration have in common."""
    return f"{wholeness(record)} {_configuration_key(record)}"


def _configuration_key(record: Record) -> str:
    aspects = [aspect(record) for aspect in ASPECTS.values() if aspect is not wholeness]
    # What was changed between two tests of a line nobody told: only the same note makes them repetitions.
    alone = str(record.path.resolve()) if is_of_a_real_line(record) and not record.manifest.note else ""
    return json.dumps([record.label, aspects, as_asked(record), alone], sort_keys=True)


def _run_key(record: Record) -> str:
    """A key that all records of one run have in common."""
    manifest = record.manifest
    if manifest.world == "sim":
        return f"{manifest.seed} {_configuration_key(record)}"
    # What was noted later of a copy makes no other run of it.
    return json.dumps(vars(manifest) | {"note": "", "tags": []}, default=vars)


def _reach(record: Record) -> tuple[bool, int]:
    return record.manifest.complete, record.reached_ns


def _places(paths: Sequence[Path]) -> list[str]:
    """The parts of paths in which they differ: `b/01-fq` and `c/01-fq` are `b` and `c`."""
    parts = [path.resolve().parts for path in paths]
    first = shared_parts(parts)
    last = shared_parts([one[first:][::-1] for one in parts])
    return ["/".join(one[first : len(one) - last]) for one in parts]
