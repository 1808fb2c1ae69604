"""Raw samples of a sweep's runs: the whole record, or one with the samples of some phases alone."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import UsageError
from weirlab.record.parts import packed
from weirlab.record.tables import TABLES

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
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    there = {one["name"]: one for one in manifest["scenario"]["phases"]}
    for name in phases:
        if name not in there:
            raise UsageError(f"samples of the phase `{name}`: the run has {', '.join(there) or 'none'}")
    at = pl.col("t_ns")
    within = pl.any_horizontal(
        (at >= there[name]["start_ns"]) & (at < there[name]["end_ns"]) for name in phases
    )
    for table in list(manifest["tables"]):
        if "t_ns" in TABLES[table]:
            _thin(folder / table, manifest["tables"], within)
    named = f"phase{'s' if len(phases) > 1 else ''} {', '.join(phases)}"
    manifest["warnings"].append(f"samples of the {named} alone are kept")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _thin(folder: Path, counted: dict[str, Any], within: pl.Expr) -> None:
    """Takes the rows out of a table's part files that are not `within`, and counts anew."""
    digest, rows, parts = hashlib.sha256(), 0, 0
    for part in sorted(folder.glob("part-*.parquet")):
        left = pl.read_parquet(part).filter(within)
        part.unlink()
        if left.height:
            target = folder / f"part-{parts:06d}.parquet"
            content = packed(left, statistics=False)
            target.write_bytes(content)
            digest.update(content)
            rows, parts = rows + left.height, parts + 1
    if parts:
        counted[folder.name] = {"parts": parts, "rows": rows, "sha256": digest.hexdigest()}
    else:
        del counted[folder.name]


ALL = ("all",)
"""What stands for the whole record in place of phases."""
