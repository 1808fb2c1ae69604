"""The columns of a store: a row a run. The columns of the axes stand behind the first ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.tidy import OF_DIRECTION

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["REDUCED"]

IDENTITY: Mapping[str, Any] = {
    "run": pl.String,
    "world": pl.String,
    "kernel": pl.String,
    "test": pl.String,
    "link": pl.String,
    "queue": pl.String,
    "cc": pl.String,
    "seed": pl.Int64,
}
"""Which run a row is of. An axis of the same name stands in its place."""

_WHOLE = {"flows", "retransmitted_segments", "timeouts"}

FIGURES: Mapping[str, Any] = {
    "complete": pl.Boolean,
    "error": pl.String,
    "warnings": pl.String,
    "idle_mean_ms": pl.Float64,
    **{f"loaded_{name}_ms": pl.Float64 for name in ("mean", "std", "min", "median", "p95", "p99", "max")},
    **{f"increase_{name}_ms": pl.Float64 for name in ("mean", "median", "p95", "p99")},
    "pings_sent": pl.Int64,
    "pings_lost": pl.Int64,
    **{
        f"{way}_{name}": pl.Int64 if name in _WHOLE else pl.Float64
        for way in ("down", "up")
        for name in OF_DIRECTION
    },
    "simulated_s": pl.Float64,
    "events": pl.Int64,
    "packets": pl.Int64,
}
"""What the run came to: the same to the bit wherever it ran."""

ORIGIN: Mapping[str, Any] = {
    "weir": pl.String,
    "build": pl.String,
    "host": pl.String,
    "finished_at": pl.String,
    "processor_s": pl.Float64,
    "simulator_s": pl.Float64,
}
"""Where the row comes from: different from machine to machine, `weir` apart."""

REDUCED = "reduced"
"""What a study made of the run's record, as JSON; a column of the stores of studies alone."""

OWN = {*IDENTITY, *FIGURES, REDUCED, *ORIGIN}
"""Names that an axis' column cannot have, those of `IDENTITY` that a scenario says apart."""

VARIABLE = {"test", "link", "queue", "cc"}
"""Columns of `IDENTITY` that an axis of that name writes."""

VARYING = {*VARIABLE, "world", "kernel"}
"""Columns of `IDENTITY` that count as axes where they vary."""


def table(rows: list[dict[str, Any]], axes: Mapping[str, Any]) -> pl.DataFrame:
    """Rows as a table with all columns; what a row does not say is null.

    Args:
        rows: the rows, with the columns of their axes.
        axes: types of the columns of the axes.
    """
    reduced = {REDUCED: pl.String} if any(REDUCED in row for row in rows) else {}
    schema = {**IDENTITY, **axes, **FIGURES, **reduced, **ORIGIN}
    unknown = {name for row in rows for name in row} - set(schema)
    if unknown:
        raise ValueError(f"a row has columns that no store has: {', '.join(sorted(unknown))}")
    return pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in schema}, schema=schema, strict=False
    )
