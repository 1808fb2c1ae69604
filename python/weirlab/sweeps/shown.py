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
            raise UsageError(f"no column `{name}` in `{store.name}` (known: {', '.join(schema.names())})")
    for name in figures:
        if not schema[name].is_numeric():
            raise UsageError(f"column `{name}` has no numbers: no mean can be shown")
    axes = list(dict.fromkeys(by)) or store.axes() or ["test", "link", "queue"]
    return axes, [name for name in dict.fromkeys(figures) if name not in axes]


def of_newest(rows: pl.LazyFrame) -> tuple[pl.LazyFrame, str, int]:
    """The rows of the version of Weir that ended a run last, that version, and how many rows are of others.

    Another version may come to other figures, so that its runs are no repetitions of these.
    """
    versions = rows.group_by("weir").agg(pl.len(), pl.col("finished_at").max()).sort("finished_at").collect()
    if versions.is_empty():
        return rows, "", 0
    newest = versions["weir"][-1]
    others = int(versions["len"].sum() - versions["len"][-1])
    return rows.filter(pl.col("weir").eq_missing(newest)), newest, others


def alike(rows: pl.LazyFrame, axes: Sequence[str]) -> int:
    """How many runs have another at the same point with the same seed: these differ in what is no axis."""
    groups = rows.filter(pl.col("error").is_null()).group_by(*axes, "seed").len()
    return int(groups.filter(pl.col("len") > 1).select(pl.col("len").sum()).collect().item())


def grouped(
    rows: pl.LazyFrame, axes: Sequence[str], figures: Sequence[str], *, points: Sequence[str]
) -> pl.DataFrame:
    """The mean of each figure over the points with equal values of some axes, and how many runs these have.

    The figure of a point is the mean of its runs, however many it has: one that was run more often for the
    sake of its accuracy counts no more than another. A figure that some of the runs do not have, such as an
    increase where there was no idle phase, is followed by a column with `_runs` behind its name: how many
    have it.

    Args:
        rows: the runs.
        axes: the columns by which points are joined.
        figures: the columns that are shown.
        points: the columns of which equal values make a point.
    """
    found = of_points(rows, [*points, *axes], figures).group_by(*axes, maintain_order=True)
    known = [pl.col(f"{name}_runs").sum() for name in figures]
    means = found.agg(pl.col("runs").sum(), *(pl.col(name).mean() for name in figures), *known)
    order = [*axes, "runs", *(column for name in figures for column in (name, f"{name}_runs"))]
    shown = means.select(order).sort(*axes, nulls_last=True).collect()
    return shown.drop(f"{name}_runs" for name in figures if (shown[f"{name}_runs"] == shown["runs"]).all())


def of_points(rows: pl.LazyFrame, points: Sequence[str], figures: Sequence[str]) -> pl.LazyFrame:
    """The mean of each figure over the runs of each point, its number of runs, and how many have the figure.

    Args:
        rows: the runs; those that failed do not count.
        points: the columns of which equal values make a point.
        figures: columns.
    """
    whole = rows.filter(pl.col("error").is_null())
    parts = [(pl.col(name).mean(), pl.col(name).count().alias(f"{name}_runs")) for name in figures]
    groups = whole.group_by(*dict.fromkeys(points), maintain_order=True)
    return groups.agg(pl.len().alias("runs"), *(one for part in parts for one in part))


FIGURES = ("idle_mean_ms", "increase_median_ms", "increase_p95_ms", "down_goodput_mbps", "up_goodput_mbps")
"""Columns of which means are shown if nothing is said."""
