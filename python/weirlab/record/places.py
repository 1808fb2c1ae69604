"""Where records lie below a folder, and stores of sweeps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.errors import RecordError
from weirlab.record.store import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CHARTS", "are_charts_beside_records", "record_paths", "store_paths"]


def record_paths(path: Path) -> list[Path]:
    """The folders and `.weir` files of all records at or below `path`, sorted by name.

    Raises:
        RecordError: if there is none.
    """
    if not path.exists():
        raise RecordError(f"`{path}` does not exist")
    if not path.is_dir():
        return [path]
    found, stores = _below(path)
    if not found:
        there = f", but a store of a sweep: `weir sweep show {stores[0]}`" if stores else ""
        raise RecordError(f"there is no record in `{path}`{there}")
    return found


def are_charts_beside_records(path: Path) -> bool:
    """Whether this is the folder of charts that a run left beside its records, and nothing else is in it."""
    if path.name != CHARTS or not path.is_dir():
        return False
    beside = [path.parent, *path.parent.iterdir()]
    return all(one.is_file() and one.suffix in SUFFIXES for one in path.iterdir()) and any(
        one.suffix == ".weir" or (one / MANIFEST).is_file() for one in beside
    )


def store_paths(path: Path) -> list[Path]:
    """The folders of all stores of sweeps at or below `path`, sorted by name."""
    return _below(path)[1]


def _below(path: Path) -> tuple[list[Path], list[Path]]:
    """The folders and `.weir` files of records at or below `path`, and the folders of stores of sweeps."""
    records, stores = [], []
    for place, folders, files in os.walk(path):
        here = Path(place)
        if _is_store(here, folders):
            stores.append(here)
        elif MANIFEST in files:
            records.append(here)
        records += [here / name for name in files if name.endswith(".weir")]
    return sorted(records), sorted(stores)


CHARTS = "charts"
"""The folder beside its records into which a run draws."""

SUFFIXES = (".png", ".svg", ".pdf")
"""Of charts."""


def _is_store(folder: Path, folders: Sequence[str]) -> bool:
    """Whether a folder with these folders in it is a store of a sweep: a record has no runs or plans."""
    marks = {"runs": "part-*.parquet", "plans": "*.json"}
    return any(any((folder / name).glob(files)) for name, files in marks.items() if name in folders)
