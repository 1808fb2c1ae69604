"""Which axis of a sweep matters: Sobol' indices of a figure, exactly, over the grid of the sweep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Index:
    """How much of a figure's variance an axis explains.

    Attributes:
        axis: the axis; `seed` for the repetitions.
        first: first-order index, 0 to 1: the share that goes, on the average, if the axis is held at a value.
        total: total index, `first` to 1: the share that is left, on the average, if all others are held. What
            it has beyond `first` are interactions with other axes.
    """

    axis: str
    first: float
    total: float


def indices(rows: pl.DataFrame, axes: Sequence[str], figure: str) -> list[Index]:
    """The Sobol' indices of each axis, the largest total index first.

    The rows must be a full grid, each value with each and each with the same seeds. Then the values of the
    plan, each as likely as the next, are the whole population, and conditional means and variances over it
    are exact: nothing is estimated by sampling.

    Args:
        rows: a row a run.
        axes: the columns of the axes.
        figure: the column of the figure.

    Raises:
        UsageError: if the rows are no full grid, a run lacks the figure, or it is the same in all.
    """
    varied = [name for name in (*axes, "seed") if rows[name].n_unique() > 1]
    if not varied:
        raise UsageError("all runs are of one point: there is no axis that could matter")
    grid = _grid(rows, varied, figure)
    variance = float(grid.var())
    # The figures of a constant differ in their last digits at most.
    if variance <= (SAME * float(np.abs(grid).max())) ** 2:
        raise UsageError(f"`{figure}` is the same in all runs: no axis matters to it")
    found = []
    for number, name in enumerate(varied):
        others = tuple(other for other in range(len(varied)) if other != number)
        first = float(grid.mean(axis=others).var()) / variance
        rest = float(grid.mean(axis=number).var()) / variance
        found.append(Index(axis=name, first=first, total=max(first, 1 - rest)))
    return sorted(found, key=lambda one: -one.total)


def _grid(rows: pl.DataFrame, varied: Sequence[str], figure: str) -> NDArray[np.float64]:
    """The figure of each run, in an array with a dimension for each axis."""
    missing = rows[figure].null_count()
    if missing:
        raise UsageError(
            f"{missing} of {rows.height} runs have no `{figure}`: which axis matters is not known"
        )
    shape = [rows[name].n_unique() for name in varied]
    whole = math.prod(shape)
    says = f"{' x '.join(f'{count} {name}' for count, name in zip(shape, varied, strict=True))} = {whole}"
    if rows.height != whole or rows.select(varied).n_unique() != whole:
        raise UsageError(
            f"{rows.height} runs are no full grid of {says}: for sensitivity each value must meet each, with "
            "the same seeds"
        )
    ordered = rows.sort(varied)
    return ordered[figure].to_numpy().astype(float).reshape(shape)


SAME = 1e-12
"""Share of a figure below which its differences are those of rounding."""
