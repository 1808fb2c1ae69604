"""Which records are repetitions of one set-up, and how set-ups are told apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.scenario.resolve import DEFAULT_QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.record.reader import Record


@dataclass(frozen=True)
class SetUp:
    """One set-up with all its repetitions.

    Attributes:
        name: what tells it apart from the others.
        records: its repetitions.
    """

    name: str
    records: list[Record]


def set_ups(records: Sequence[Record]) -> list[SetUp]:
    """The set-ups of `records`, in order; records that differ in nothing but the seed are one."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        manifest = record.manifest
        what = [record.label, manifest.link["title"], _world_name(record), manifest.scenario]
        groups.setdefault(json.dumps(what, sort_keys=True), []).append(record)
    names = run_names([group[0] for group in groups.values()])
    return [SetUp(*both) for both in zip(names, groups.values(), strict=True)]


def run_names(records: Sequence[Record]) -> list[str]:
    """A name for each record: its queue set-up, or in what else they differ."""
    chosen = [aspect for aspect in _ASPECTS if _several(records, aspect)] or [queue_name]
    names = [" · ".join(aspect(record) for aspect in chosen) for record in records]
    for more in (lambda record: f"seed {record.manifest.seed}", lambda record: record.path.name):
        if len(set(names)) == len(names):
            break
        if _several(records, more):
            names = [f"{name} · {more(record)}" for name, record in zip(names, records, strict=True)]
    return numbered(names)


def numbered(names: Sequence[str]) -> list[str]:
    """`names`, of which those that occur several times are numbered."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def queue_name(record: Record) -> str:
    """The queue set-up, for people."""
    return "the link's own queue" if record.label == DEFAULT_QUEUE else record.label


def _world_name(record: Record) -> str:
    """The world, and in it who has the queues where that is not Weir."""
    datapath = record.manifest.datapath
    name = f"world {record.manifest.world}"
    return name if datapath in (None, "userspace") else f"{name}, {datapath}'s queues"


def _several(records: Sequence[Record], aspect: Callable[[Record], str]) -> bool:
    return len({aspect(record) for record in records}) > 1


_ASPECTS: tuple[Callable[[Record], str], ...] = (
    queue_name,
    lambda record: record.manifest.link["title"],
    lambda record: record.manifest.title,
    _world_name,
)
"""In what runs that are set beside each other may differ, the seed aside."""
