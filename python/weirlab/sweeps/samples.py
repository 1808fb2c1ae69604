"""Raw samples of a sweep's runs: the whole record, or one with the samples of some phases alone."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import RecordError, UsageError
from weirlab.record.tables import MAX_PART_ROWS, OF_EACH, spans_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ALL"]


def keep_samples(folder: Path, phases: Sequence[str]) -> None:
    """Takes all samples out of a record's folder but those of some phases.

    Totals of flows and results of speed tests stay; a warning in the record says what it has.

    Args:
        folder: the folder of a whole record.
        phases: names of the phases.

    Raises:
        UsageError: if the run has no such phase.
        RecordError: if it cannot be read.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    scenario = manifest["scenario"]
    there = {one["name"]: one for one in scenario["phases"]}
    for name in phases:
        if name not in there:
            raise UsageError(f"samples of the phase `{name}`: the run has {', '.join(there) or 'none'}")
    spans = [(there[name]["start_ns"], there[name]["end_ns"]) for name in phases]
    for table in list(manifest["tables"]):
        if OF_EACH[table] != "run":
            within = spans_of_rows(table, spans, scenario["sampling"])
            _thin(folder / table, manifest["tables"], within)
    named = f"phase{'s' if len(phases) > 1 else ''} {', '.join(phases)}"
    manifest["warnings"].append(f"samples of the {named} alone are kept")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _thin(folder: Path, counted: dict[str, Any], spans: Sequence[tuple[int, int]]) -> None:
    """Writes a table's part files anew with the rows whose times lie within spans, and counts them.

    Raises:
        RecordError: if a part file is not as this version of Weir writes it.
    """
    parts = sorted(folder.glob("part-*.parquet"))
    left = _native.thinned(folder.name, [part.read_bytes() for part in parts], MAX_PART_ROWS, spans)
    if left is None:
        raise RecordError(f"`{folder}` is damaged: it is no table of a record that was just written")
    for part in parts:
        part.unlink()
    digest = hashlib.sha256()
    for number, (content, _) in enumerate(left):
        (folder / f"part-{number:06d}.parquet").write_bytes(content)
        digest.update(content)
    if left:
        rows = sum(count for _, count in left)
        counted[folder.name] = {"parts": len(left), "rows": rows, "sha256": digest.hexdigest()}
    else:
        del counted[folder.name]


ALL = ("all",)
"""What stands for the whole record in place of phases."""
