"""Whole intervals of samples within a span of time."""

from __future__ import annotations


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
