"""How evenly flows share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def jain_index(shares: Sequence[float]) -> float | None:
    """Jain's index (Jain, Chiu, Hawe 1984): (sum x)^2 / (n sum x^2), from 1/n to 1.

    None for fewer than two flows, or if none got anything.
    """
    x = np.asarray(shares, dtype=float)
    squares = float((x**2).sum())
    if x.size < 2 or squares == 0.0:
        return None
    return float(x.sum() ** 2 / (x.size * squares))


def coefficient_of_variation(shares: Sequence[float]) -> float | None:
    """Population standard deviation divided by the mean.

    With it Jain's index is 1 / (1 + CoV^2). None for fewer than two flows, or if none got anything.
    """
    x = np.asarray(shares, dtype=float)
    if x.size < 2 or x.sum() == 0.0:
        return None
    return float(x.std() / x.mean())
