"""What a store says in a table: means over the runs of each point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.sweeps.store import Store


def shown_columns(store: Store, by: Sequence[str], figures: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns by which rows are joined, and those of which means are shown.

    Raises:
        UsageError: if the store has no such column, or a mean of it means nothing.
    """
    schema = store.scan().collect_schema()
    for name in (*by, *figures):
        if name not in schema:
            raise UsageError(f"no column `{name}` in `{store.path}` (known: {', '.join(schema.names())})")
    for name in figures:
        if not schema[name].is_numeric():
            raise UsageError(f"column `{name}` has no numbers: no mean can be shown")
    axes = list(by) or store.axes() or ["test", "link", "queue"]
    return axes, [name for name in figures if name not in axes]


def grouped(rows: pl.LazyFrame, axes: Sequence[str], figures: Sequence[str]) -> pl.DataFrame:
    """The mean of each figure over the runs with equal values of the axes, and how many runs these are."""
    whole = rows.filter(pl.col("error").is_null())
    groups = whole.group_by(*axes, maintain_order=True)
    means = groups.agg(pl.len().alias("runs"), *(pl.col(name).mean() for name in figures))
    return means.sort(*axes, nulls_last=True).collect()


FIGURES = ("idle_mean_ms", "increase_median_ms", "increase_p95_ms", "down_goodput_mbps", "up_goodput_mbps")
"""Columns of which means are shown if nothing is said."""
