"""Copies of records that tests alter: with other tables, or as files that are not as they were written."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.record import open_record
from weirlab.record.tables import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


def changed(record: Record, **tables: pl.DataFrame) -> Record:
    """A copy of the record with other tables."""
    copy = open_record(record.path)
    vars(copy).update(tables)
    return copy


def copied(record: Record, to: Path, *, checked: bool = True) -> Path:
    """A copy of the record in the folder `to`; in the format without counts and digests if not `checked`."""
    shutil.copytree(record.path, to)
    manifest = json.loads((to / "manifest.json").read_text())
    if checked:
        manifest["tables"] = {table: counted(to / table) for table in TABLES if (to / table).is_dir()}
    else:
        manifest = {key: value for key, value in manifest.items() if key != "tables"} | {"schema_version": 1}
    (to / "manifest.json").write_text(json.dumps(manifest))
    return to


def counted(table: Path) -> dict[str, Any]:
    """What the manifest says of a table, worked out as docs/record.md has it."""
    parts = sorted(table.glob("*.parquet"))
    return {
        "parts": len(parts),
        "rows": sum(pl.read_parquet(part).height for part in parts),
        "sha256": hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest(),
    }


def change_a_byte(folder: Path) -> str:
    """Damages a table of the record in that folder; what is said of it then."""
    part = folder / "latency/part-000000.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    return "`latency` is damaged: its bytes are not those that were written"


def pings(*rtt_ms: float | None, probe: int = 0, start_ns: int = 1_000_000_000) -> pl.DataFrame:
    """A ping every 100 ms."""
    return pl.DataFrame(
        {
            "t_ns": [start_ns + number * 100_000_000 for number in range(len(rtt_ms))],
            "probe": probe,
            "rtt_ns": [None if ms is None else round(ms * 1e6) for ms in rtt_ms],
        },
        schema={"t_ns": pl.Int64, "probe": pl.Int64, "rtt_ns": pl.Int64},
    )
