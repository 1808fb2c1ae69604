"""The usual figures of a set of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Summary of a set of numbers, in their own unit.

    Attributes:
        count: how many there are.
        mean, median, min, max: as the words say.
        std: sample standard deviation (n - 1); None of a single number, whose scatter nothing tells.
        p5, p25, p75, p95, p99: quantiles, by linear interpolation between order statistics
            (Hyndman and Fan 1996, definition 7, as in NumPy, R and Polars).
    """

    count: int
    mean: float
    std: float | None
    min: float
    p5: float
    p25: float
    median: float
    p75: float
    p95: float
    p99: float
    max: float


def describe(values: pl.Series | NDArray[np.floating[Any]]) -> Distribution | None:
    """The figures of `values` without its nulls, which an array has none of; None if nothing is left."""
    numbers = _known(values)
    if numbers.size == 0:
        return None
    ordered = np.sort(numbers)
    return Distribution(
        count=int(numbers.size),
        mean=float(numbers.mean()),
        std=float(numbers.std(ddof=1)) if numbers.size > 1 else None,
        min=float(ordered[0]),
        max=float(ordered[-1]),
        **{name: quantile_in(ordered, q) for q, name in QUANTILES.items()},
    )


def quantile(values: pl.Series | NDArray[np.number[Any]], q: float) -> float | None:
    """The quantile `q`, 0 to 1, of `values` without its nulls; None if nothing is left."""
    ordered = np.sort(_known(values))
    return quantile_in(ordered, q) if ordered.size else None


def _known(values: pl.Series | NDArray[np.number[Any]]) -> NDArray[np.float64]:
    """The values that are none of its nulls."""
    if isinstance(values, np.ndarray):
        return values.astype(float)
    return (values.drop_nulls() if values.null_count() else values).to_numpy().astype(float)


def quantile_in(ordered: NDArray[np.floating[Any]], q: float) -> float:
    """The quantile `q` of numbers in order: what `numpy.quantile` gives, which is slow for few numbers."""
    place = q * (ordered.size - 1)
    below = int(place)
    return between(float(ordered[below]), float(ordered[min(below + 1, ordered.size - 1)]), place - below)


def between(low: float, high: float, share: float) -> float:
    """The number at a share, 0 to 1, of the way from `low` to `high`, as NumPy has it: ends are exact."""
    step = high - low
    return low + step * share if share < HALF else high - step * (1 - share)


HALF = 0.5
"""From here on NumPy goes down from the number above, so that both ends are exact."""

QUANTILES = {0.05: "p5", 0.25: "p25", 0.5: "median", 0.75: "p75", 0.95: "p95", 0.99: "p99"}
"""The quantiles of a `Distribution`, and what they are called there."""
