"""Whole intervals of samples within a span of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.number[Any]]
    Whole = NDArray[np.int64]


def whole_intervals(span_ns: tuple[int, int], interval_ns: int) -> tuple[int, int]:
    """The part of a span that whole intervals of samples make up.

    A sample counts what came in the interval that it ends. One that straddles an edge of the span has counted
    what lies outside too, so that a rate is of the whole intervals, and of their time.

    Args:
        span_ns: start and end in ns since the run began.
        interval_ns: length of an interval in ns, above 0; intervals end at multiples of it.

    Returns:
        Start and end in ns; the end is not after the start if no whole interval lies within.
    """
    start, end = span_ns
    return -(-start // interval_ns) * interval_ns, end // interval_ns * interval_ns


def middles_ns(told_ns: Numbers, interval_ns: int) -> Whole:
    """The middles of the intervals of samples.

    A live world takes a sample some milliseconds after its interval has ended: which interval that was,
    and in which span of time it lies, is told by its middle.

    Args:
        told_ns: when the samples were taken, in ns since the run began.
        interval_ns: length of an interval in ns, above 0.
    """
    return np.asarray(told_ns, np.int64) - interval_ns // 2


def ends_ns(told_ns: Numbers, interval_ns: int) -> Whole:
    """The ends of the intervals of samples, which are multiples of `interval_ns`: see `middles_ns`."""
    return (middles_ns(told_ns, interval_ns) // interval_ns + 1) * interval_ns
