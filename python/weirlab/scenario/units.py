"""Quantities as people write them in scenarios: `20mbit`, `5ms`, `64kb`, `EF`.

The words are those of `tc`. One thing is stricter than in `tc` syntax: a time or a rate needs its unit, since
`30` is seconds to one reader, microseconds to another. The compiled part (`crates/scenario`) reads them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo

from weirlab import _native

READ = object()
"""As the context of a validation: the compiled part has read what is validated."""


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


def _of(kind: str) -> BeforeValidator:
    """Reads what was written as a quantity of that kind, if the compiled part has not read it already."""

    def read(written: object, info: ValidationInfo) -> object:
        return written if info.context is READ else _native.read_quantity(kind, written)

    return BeforeValidator(read)


def _shaper_rate_text(rate: int | str) -> str:
    return rate if isinstance(rate, str) else rate_text(rate)


Nanoseconds = Annotated[int, _of("Nanoseconds"), PlainSerializer(time_text, when_used="json")]
"""A time: text with a unit. Kept as nanoseconds; written into JSON as text again."""

PositiveNanoseconds = Annotated[int, _of("PositiveNanoseconds"), PlainSerializer(time_text, when_used="json")]
"""A time above 0: text with a unit. Kept as nanoseconds."""

LineRate = Annotated[int, _of("LineRate"), PlainSerializer(rate_text, when_used="json")]
"""The rate of a line: text with a unit. Kept as bit/s."""

ShaperRate = Annotated[int | str, _of("ShaperRate"), PlainSerializer(_shaper_rate_text, when_used="json")]
"""The rate of a shaper: that of a line, or a share of the line's such as `95%`."""

FlowBytes = Annotated[int, _of("FlowBytes")]
"""How much a flow sends: text with a unit, or a whole number of bytes. Kept as bytes."""

WindowBytes = Annotated[int, _of("WindowBytes")]
"""A receive window: text with a unit, or a whole number of bytes. Kept as bytes."""

Payload = Annotated[int, _of("Payload")]
"""Payload of a ping: text with a unit, or a whole number of bytes. Kept as bytes."""

FlowCount = Annotated[int | str, _of("FlowCount")]
"""How many flows there are: a number, or the name of a parameter."""

DscpValue = Annotated[int, _of("DscpValue")]
"""A differentiated services code point: its name or number. Kept as number."""
