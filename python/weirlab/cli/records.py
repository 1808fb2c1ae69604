"""The records that a command is given: read, each run once, and what a reader must know of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from weirlab.errors import RecordError
from weirlab.record import Record, record_paths
from weirlab.record.configurations import distinct, same_runs
from weirlab.record.places import are_charts_beside_records
from weirlab.report import cut_short
from weirlab.ui import warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@contextmanager
def readable(paths: Sequence[Path], done: str = "shown", *, baseline: bool = False) -> Iterator[list[Record]]:
    """All records at or below `paths` that can be read.

    One that cannot be is told on stderr and does not hide the others, which are `done` (a word).

    Args:
        paths: the paths.
        done: what is done with the others.
        baseline: whether others are held against the first record.

    Raises:
        RecordError: at the end, if one could not be read; at once if none can, or the first cannot and is the
            baseline.
    """
    found = _read(paths)
    records = [one for one in found if isinstance(one, Record)]
    errors = [one for one in found if isinstance(one, RecordError)]
    if len(errors) == 1 and not records:
        raise errors[0]
    if baseline and found[0] not in records:
        raise RecordError(
            f"{errors[0]}; it is the first that is given, the baseline, and no other replaces it"
        )
    for one in errors:
        click.echo(f"weir: {one}", err=True)
    if not records:
        raise RecordError(f"none of {len(found)} records can be read")
    if len(found) > 1:
        _let_go(records)
    yield records
    if errors:
        raise RecordError(f"{len(errors)} of {len(found)} records cannot be read; the others are {done}")


def _read(paths: Sequence[Path]) -> list[Record | RecordError]:
    """What lies at or below `paths`, in order: records, and why others cannot be read; never nothing."""
    found: list[Record | RecordError] = []
    charts: list[Record | RecordError] = []
    for path in paths:
        try:
            places = record_paths(path)
        except RecordError as error:
            # A shell's `FOLDER/*` has the charts beside records, too.
            (charts if are_charts_beside_records(path) else found).append(error)
            continue
        for place in places:
            try:
                found.append(_checked(place, found[-1:]))
            except RecordError as error:
                found.append(error)
    return found or charts


def _checked(place: Path, before: Sequence[Record | RecordError]) -> Record:
    """The record there, which is whole.

    The tables of the one that was read `before` are not held beside its own if they are long; all earlier
    ones were let go before that.

    Raises:
        RecordError: if it cannot be read.
    """
    record = Record(place)
    _let_go([one for one in before if isinstance(one, Record)])
    record.check()
    return record


def _let_go(records: Sequence[Record]) -> None:
    """Lets go of the tables of long records, which were read to see whether they are whole."""
    for record in records:
        if record.is_long("latency"):
            record.release()


@contextmanager
def readable_runs(paths: Sequence[Path], *, baseline: bool = False) -> Iterator[list[Record]]:
    """The runs in the records at or below `paths`, each once; says on stderr which are none or not whole.

    `baseline` is as of `readable`.

    Raises:
        RecordError: as `readable`.
    """
    with readable(paths, baseline=baseline) as records:
        for record, counts in same_runs(records):
            if record.path.resolve() == counts.path.resolve():
                warn(f"`{record.path}` is given several times: it counts once")
            else:
                warn(f"`{record.path}` and `{counts.path}` are one run: `{counts.path}` counts")
        runs = distinct(records)
        _let_go(runs)
        for record in runs:
            cut = cut_short(record)
            if cut is not None:
                warn(f"`{record.path}`: {cut}")
        yield runs


def told(record: Record) -> str:
    """Note and tags that the user gave to the run; empty if there are none."""
    tags = record.manifest.tags
    return " ".join(filter(None, (record.manifest.note, f"[{', '.join(tags)}]" if tags else "")))
