"""Numbers in tables of figures whose size is not known before."""

from __future__ import annotations

import math


def four_digits(value: float) -> str:
    """`value` with four digits, or all before the point: 10000 and not 1e+04; `-` if not known."""
    if math.isnan(value):
        return "-"
    return f"{value:.4g}" if abs(value) < WHOLE_FROM else f"{value:.0f}"


def unsigned_zero(value: float, digits: int, sign: str = "") -> str:
    """`value` with so many digits behind the point; where these are all 0, without a minus.

    Args:
        value: the number.
        digits: how many.
        sign: `+` to have a sign before what is above 0, and before 0.
    """
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}"


def milliseconds(value: float) -> str:
    """A round trip in ms, with a digit more where one would leave nothing."""
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


WHOLE_FROM = 9_999.5
"""Numbers from here on, which four digits would write as a power of ten, are written whole."""
