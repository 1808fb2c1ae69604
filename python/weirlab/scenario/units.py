"""Quantities as people write them in scenarios: `20mbit`, `5ms`, `64kb`, `EF`.

The words are those of `tc`. One thing is stricter than in `tc` syntax: a time or a rate needs its unit, since
`30` is seconds to one reader, microseconds to another. The compiled part (`crates/scenario`) reads them.
"""

from __future__ import annotations

from weirlab import _native


def time_ns(written: object) -> int:
    """Nanoseconds of a time such as `5ms`.

    Raises:
        ValueError: if it is none, or a number without a unit.
    """
    return _native.read_time(written)


def rate_bps(written: object) -> int:
    """Bits per second of a rate such as `20mbit`.

    Raises:
        ValueError: if it is none, or a number without a unit.
    """
    return _native.read_rate(written)


def time_text(nanoseconds: int) -> str:
    """A time as people write it, without loss: `5ms`."""
    return _text(nanoseconds, {"s": 10**9, "ms": 10**6, "us": 10**3}, "ns")


def rate_text(bps: int) -> str:
    """A rate as people write it, without loss: `20mbit`."""
    return _text(bps, {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3}, "bit")


def _text(value: int, units: dict[str, int], least: str) -> str:
    for unit, factor in units.items():
        if value % factor == 0:
            return f"{value // factor}{unit}"
    return f"{value}{least}"
