"""Quantities as people write them in scenarios: `20mbit`, `5ms`, `64kb`, `EF`.

The words are those of `tc`, and its own parser in the compiled part reads them. One thing is stricter than
in `tc` syntax: a time or a rate needs its unit, since `30` is seconds to one reader, microseconds to another.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Callable


def time_ns(written: object) -> int:
    """Nanoseconds of a time such as `5ms`.

    Raises:
        ValueError: if it is none, or a number without a unit.
    """
    found = _with_unit(written, _native.parse_time, "time", "5ms")
    if found is not None:
        return found
    if float(str(written)) == 0:
        raise ValueError(f"`{written}` is a time without its unit: write `0s`")
    raise ValueError(
        f"`{written}` is a time without its unit: write `{written}s`, `{written}ms` or `{written}us`"
    )


def rate_bps(written: object) -> int:
    """Bits per second of a rate such as `20mbit`.

    Raises:
        ValueError: if it is none, or a number without a unit.
    """
    found = _with_unit(written, _native.parse_rate, "rate", "20mbit")
    if found is not None:
        return found
    raise ValueError(
        f"`{written}` is a rate without its unit: write `{written}mbit`, `{written}kbit` or `{written}bit`"
    )


def size_bytes(written: object) -> int:
    """Bytes of a size such as `64kb`; a whole number is bytes, as in `tc` and Flent.

    Raises:
        ValueError: if it is none.
    """
    if isinstance(written, str):
        return _native.parse_size(written)
    if isinstance(written, int) and not isinstance(written, bool) and written >= 0:
        return written
    raise ValueError(f"{written!r} is not a size: write a whole number of bytes, or such as `64kb`")


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


def _with_unit(written: object, read: Callable[[str], int], quantity: str, example: str) -> int | None:
    """Result of `read` for text that ends in a unit; None for a number without one.

    Raises:
        ValueError: if it is neither.
    """
    if isinstance(written, str):
        found = read(written)
        return found if written[-1].isalpha() else None
    if _is_amount(written):
        return None
    raise ValueError(f"{written!r} is not a {quantity}: write it with its unit, such as `{example}`")


def _is_amount(value: object) -> bool:
    """Whether it is a number of something, and lacks but its unit."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def _shaper_rate(value: object) -> int | str:
    if isinstance(value, str) and value.endswith("%"):
        share = value.removesuffix("%")
        if not share.replace(".", "", 1).isdigit() or not 0 < float(share) <= 1000:
            raise ValueError(f"`{value}`: write a share above 0%, such as 95%")
        return value
    return _line_rate(value)


def _shaper_rate_text(rate: int | str) -> str:
    return rate if isinstance(rate, str) else rate_text(rate)


def _positive_time(value: object) -> int:
    found = time_ns(value)
    if found == 0:
        raise ValueError(f"`{value}`: write a time above 0, such as `5ms`")
    return found


def _time_words(value: object) -> str:
    time_ns(value)
    return str(value)


def _rate_words(value: object) -> str:
    rate_bps(value)
    return str(value)


def _side_rate(value: object) -> str:
    if isinstance(value, str) and value in {"auto", "none"}:
        return value
    return _rate_words(value)


def _something(size: int) -> int:
    if size == 0:
        raise ValueError("`0`: write 1 or more, or leave the key out for a flow without end")
    return size


def _payload(size: int) -> int:
    if size > MAX_PAYLOAD_BYTES:
        raise ValueError(f"`{size}`: write {MAX_PAYLOAD_BYTES} bytes or less, since no IP packet is longer")
    return size


def _count(value: object) -> int | str:
    if isinstance(value, str) and value.isidentifier():
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_FLOWS:
        raise ValueError(
            f"{value!r}: write a whole number from 1 to {MAX_FLOWS}, or the name of a parameter of the test"
        )
    return value


def _dscp(value: object) -> int:
    return _native.parse_dscp(str(value))


def _line_rate(value: object) -> int:
    rate = rate_bps(value)
    if not 1_000 <= rate <= 1_000_000_000_000:
        raise ValueError(f"`{value}`: write a rate from 1kbit to 1tbit")
    return rate


Nanoseconds = Annotated[int, BeforeValidator(time_ns), PlainSerializer(time_text, when_used="json")]
"""A time: text with a unit. Read as nanoseconds; written into JSON as text again."""

PositiveNanoseconds = Annotated[
    int, BeforeValidator(_positive_time), PlainSerializer(time_text, when_used="json")
]
"""A time above 0."""

LineRate = Annotated[int, BeforeValidator(_line_rate), PlainSerializer(rate_text, when_used="json")]
"""The rate of a line: text with a unit, from 1 kbit/s to 1 Tbit/s. Read as bit/s."""

ShaperRate = Annotated[
    int | str, BeforeValidator(_shaper_rate), PlainSerializer(_shaper_rate_text, when_used="json")
]
"""The rate of a shaper: that of a line, or a share of the line's such as `95%`."""

TimeWords = Annotated[str, BeforeValidator(_time_words)]
"""A time as `Nanoseconds`, kept as it was written."""

RateWords = Annotated[str, BeforeValidator(_rate_words)]
"""A rate, kept as it was written."""

SideRate = Annotated[str, BeforeValidator(_side_rate)]
"""The rate of one side of a shaper, kept as it was written: `auto`, `none`, or a rate."""

SizeInBytes = Annotated[int, BeforeValidator(size_bytes)]
"""An amount of data: text with a unit, or a whole number of bytes."""

FlowBytes = Annotated[SizeInBytes, AfterValidator(_something)]
"""How much a flow sends: not nothing."""

Payload = Annotated[SizeInBytes, AfterValidator(_payload)]
"""Payload of a ping: what an IP packet can carry."""

FlowCount = Annotated[int | str, BeforeValidator(_count)]
"""How many flows there are: a number, or the name of a parameter."""

DscpValue = Annotated[int, BeforeValidator(_dscp)]
"""A differentiated services code point: its name or number."""

MAX_PAYLOAD_BYTES = 65_507
"""An IPv4 packet of 65535 bytes less its header and that of UDP or ICMP (RFC 791, RFC 768)."""

MAX_FLOWS = 10_000
"""As many as the shipped tests with a parameter allow."""
