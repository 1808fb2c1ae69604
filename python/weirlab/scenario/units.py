"""Quantities as people write them in scenarios: `20mbit`, `5ms`, `64kb`, `EF`.

The words are those of `tc`; reading them is left to the compiled part, so that there is one parser.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from weirlab import _native


def _nanoseconds(value: object) -> int:
    if isinstance(value, str):
        return _native.parse_time(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"{value!r} is not a time: write it with its unit, such as `5ms`")


def _bits_per_second(value: object) -> int:
    if isinstance(value, str):
        return _native.parse_rate(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is not a rate: write it with its unit, such as `20mbit`")


def _size(value: object) -> int:
    if isinstance(value, str):
        return _native.parse_size(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"{value!r} is not a size: write a number of bytes, or such as `64kb`")


def _shaper_rate(value: object) -> int | str:
    if isinstance(value, str) and value.endswith("%"):
        share = value.removesuffix("%")
        if not share.replace(".", "", 1).isdigit() or not 0 < float(share) <= 1000:
            raise ValueError(f"`{value}`: write a share above 0%, such as 95%")
        return value
    return _line_rate(value)


def _dscp(value: object) -> int:
    return _native.parse_dscp(str(value))


def _line_rate(value: object) -> int:
    rate = _bits_per_second(value)
    if not 1_000 <= rate <= 1_000_000_000_000:
        raise ValueError(f"`{value}`: write a rate from 1kbit to 1tbit")
    return rate


Nanoseconds = Annotated[int, BeforeValidator(_nanoseconds)]
"""A time: text with a unit, or a whole number of nanoseconds."""

LineRate = Annotated[int, BeforeValidator(_line_rate)]
"""The rate of a line: from 1 kbit/s to 1 Tbit/s."""

ShaperRate = Annotated[int | str, BeforeValidator(_shaper_rate)]
"""The rate of a shaper: that of a line, or a share of the line's such as `95%`."""

SizeInBytes = Annotated[int, BeforeValidator(_size)]
"""An amount of data: text with a unit, or a whole number of bytes."""

DscpValue = Annotated[int, BeforeValidator(_dscp)]
"""A differentiated services code point: its name or number."""
