"""What figures measure: times, rates, and what is made of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from weirlab.scenario.units import rate_bps, time_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Dimension: TypeAlias = tuple[int, int]
"""Exponents of time and of rate."""

NONE: Dimension = (0, 0)
TIME: Dimension = (1, 0)
RATE: Dimension = (0, 1)
DATA: Dimension = (1, 1)

DIMENSIONS_OF: Mapping[str, Callable[[Dimension, Dimension], Dimension]] = {
    "*": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "/": lambda left, right: (left[0] - right[0], left[1] - right[1]),
}
"""Dimension of a product and of a quotient."""

UNITS: Mapping[str, tuple[float, Dimension]] = {
    "": (1.0, NONE),
    "%": (0.01, NONE),
    "us": (1e-3, TIME),
    "ms": (1.0, TIME),
    "s": (1e3, TIME),
    "kbit": (1e-3, RATE),
    "mbit": (1.0, RATE),
    "gbit": (1e3, RATE),
}
"""Factors to milliseconds, Mbit/s and shares, and what they measure."""

READERS: Mapping[Dimension, Callable[[object], int]] = {TIME: time_ns, RATE: rate_bps}
"""Reader that refuses a bare number, by dimension, with the units to write."""


def kind_of(dimension: Dimension) -> str:
    """What it is called, for messages."""
    named = zip(("time", "rate"), dimension, strict=True)
    return _KINDS.get(dimension) or " ".join(f"{name}^{power}" for name, power in named if power)


def unit_of(dimension: Dimension) -> str:
    """What values of it are in; empty of a number."""
    if dimension == DATA:
        # A millisecond of a megabit a second.
        return "kbit"
    named = [(unit, power) for unit, power in zip(("ms", "Mbit/s"), dimension, strict=True) if power]
    return " ".join(unit if power == 1 else f"({unit})^{power}" for unit, power in named)


_KINDS: Mapping[Dimension, str] = {
    NONE: "a number",
    TIME: "a time",
    RATE: "a rate",
    DATA: "an amount of data",
}
