"""The records that a command is given: read, each run once, and what a reader must know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.record import find_records
from weirlab.record.set_ups import distinct, same_runs
from weirlab.ui import warn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirlab.record import Record


def read_runs(paths: Sequence[Path]) -> list[Record]:
    """The runs in the records at or below `paths`, each once; says on stderr which are none or not whole."""
    records = [record for path in paths for record in find_records(path)]
    for record, counts in same_runs(records):
        if record.path.resolve() == counts.path.resolve():
            warn(f"`{record.path}` is given several times: it counts once")
        else:
            warn(f"`{record.path}` and `{counts.path}` are one run: `{counts.path}` counts")
    runs = distinct(records)
    for record in runs:
        if not record.manifest.complete:
            warn(f"`{record.path}`: the run was cut short at {record.reached_ns / 1e9:.1f} s")
    return runs
