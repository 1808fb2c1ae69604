"""Quantities within scenarios, as types of Python: read by the compiled part, kept in base units."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo

from weirlab import _native
from weirlab.scenario.units import rate_text, time_text

READ = object()
"""As the context of a validation: the compiled part has read what is validated."""


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

PacketTime = Annotated[int, _of("PacketTime"), PlainSerializer(time_text, when_used="json")]
"""How much speech is in a packet: text with a unit. Kept as nanoseconds."""

LineRate = Annotated[int, _of("LineRate"), PlainSerializer(rate_text, when_used="json")]
"""The rate of a line: text with a unit. Kept as bit/s."""

ShaperRate = Annotated[int | str, _of("ShaperRate"), PlainSerializer(_shaper_rate_text, when_used="json")]
"""The rate of a shaper: that of a line, or a share of the line's such as `95%`."""

FlowBytes = Annotated[int, _of("FlowBytes")]
"""How much a flow sends: text with a unit, or a whole number of bytes. Kept as bytes."""

AnswerBytes = Annotated[int, _of("AnswerBytes")]
"""How much a server answers with: text with a unit, or a whole number of bytes. Kept as bytes."""

WindowBytes = Annotated[int, _of("WindowBytes")]
"""A receive window: text with a unit, or a whole number of bytes. Kept as bytes."""

Payload = Annotated[int, _of("Payload")]
"""Payload of a ping: text with a unit, or a whole number of bytes. Kept as bytes."""

FlowCount = Annotated[int | str, _of("FlowCount")]
"""How many flows there are: a number, or the name of a parameter."""

DscpValue = Annotated[int, _of("DscpValue")]
"""A differentiated services code point: its name or number. Kept as number."""
