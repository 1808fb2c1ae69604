"""The usual figures of a set of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Summary of a set of numbers, in their own unit.

    Attributes:
        count: how many there are.
        mean, median, min, max: as the words say.
        std: sample standard deviation (n - 1); 0 for a single number.
        p5, p25, p75, p95, p99: quantiles, by linear interpolation between order statistics
            (Hyndman and Fan 1996, definition 7, as in NumPy, R and Polars).
    """

    count: int
    mean: float
    std: float
    min: float
    p5: float
    p25: float
    median: float
    p75: float
    p95: float
    p99: float
    max: float


def describe(values: pl.Series) -> Distribution | None:
    """The figures of `values` without its nulls; None if nothing is left."""
    numbers = values.drop_nulls().to_numpy().astype(float)
    if numbers.size == 0:
        return None
    p5, p25, median, p75, p95, p99 = np.quantile(numbers, [0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
    return Distribution(
        count=int(numbers.size),
        mean=float(numbers.mean()),
        std=float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0,
        min=float(numbers.min()),
        p5=float(p5),
        p25=float(p25),
        median=float(median),
        p75=float(p75),
        p95=float(p95),
        p99=float(p99),
        max=float(numbers.max()),
    )


def quantile(values: pl.Series, q: float) -> float | None:
    """The quantile `q`, 0 to 1, of `values` without its nulls; None if nothing is left."""
    numbers = values.drop_nulls().to_numpy()
    return float(np.quantile(numbers, q)) if numbers.size else None
