"""Axes of a sweep: what is varied, over which values, and the column in which a value stands."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from weirlab.scenario.units import rate_bps, rate_text, time_ns, time_text

Kind = Literal["time", "rate", "number", "integer", "boolean", "text"]


class Unusable(ValueError):
    """An axis cannot be used: why, in words that end a sentence."""


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        name: what it is called in the plan, and the start of its column's name.
        keys: dotted keys of the scenario that a value is written to.
        values: the listed values, or those at the steps of a range; empty for a range without steps.
        labels: the text of each listed value in the column; None if the value itself stands there.
        span: the range from which a design without a grid draws; None of listed values.
    """

    name: str
    keys: tuple[str, ...]
    values: tuple[Any, ...]
    labels: tuple[str, ...] | None = None
    span: Span | None = None

    @cached_property
    def kind(self) -> Kind:
        """What the values are."""
        if self.labels is not None:
            return "text"
        if self.values:
            return kind_of(self.values)
        # With a unit that has no base unit here, such as `%`, they stand as they are written.
        return self.span.kind if self.span and not self.span.unit else "text"

    @cached_property
    def column(self) -> str:
        """Name of the column, which ends in the unit."""
        return re.sub(r"[^A-Za-z0-9]+", "_", self.name).strip("_") + _UNITS.get(self.kind, "")

    def at(self, share: float) -> Any:
        """The value at a share of the axis, from 0 up to but without 1."""
        if self.values:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        if self.span is None:
            raise Unusable("it has no values")
        return self.span.at(share)

    def shown(self, value: Any) -> Any:
        """What stands in the column for that value."""
        if self.labels is not None:
            return self.labels[next(n for n, one in enumerate(self.values) if one is value or one == value)]
        return _SHOWN[self.kind](value)


@dataclass(frozen=True)
class Span:
    """A range of quantities of one kind.

    Attributes:
        low, high: its ends: nanoseconds, bit/s, or numbers.
        kind: what they are.
        unit: what stands behind a number, such as `%`.
        log: whether equal ratios are equal steps.
    """

    low: float
    high: float
    kind: Kind
    unit: str
    log: bool

    @classmethod
    def of(cls, low: object, high: object, *, log: bool) -> Span:
        """The range between two quantities as they are written.

        Raises:
            Unusable: if they are no quantities of one kind, or in the wrong order.
        """
        ends = [_quantity(low), _quantity(high)]
        (first, kind, unit), (last, other_kind, other_unit) = ends
        if {kind, other_kind} == {"number", "integer"} and not unit and not other_unit:
            kind = other_kind = "number"
        if (kind, unit) != (other_kind, other_unit):
            raise Unusable(f"from `{low}` to `{high}`: write two quantities of one kind with the same unit")
        if not first < last:
            raise Unusable(f"from `{low}` to `{high}`: write the smaller one first")
        if log and first <= 0:
            raise Unusable(f"from `{low}`: a logarithmic scale begins above 0")
        return cls(first, last, kind, unit, log)

    def steps(self, count: int) -> list[Any]:
        """So many values from end to end; what is the same after rounding stands once."""
        found = [self._between(place / (count - 1), rounded=self.log) for place in range(count)]
        found[0], found[-1] = self._written(self.low), self._written(self.high)
        return list(dict.fromkeys(found))

    def every(self, step: object) -> list[Any]:
        """Values from `low` by `step` up to `high`.

        Raises:
            Unusable: if it is no step, or there are too many.
        """
        if self.log:
            raise Unusable(f"step `{step}`: a logarithmic scale has `steps`, which is a number of values")
        width, kind, unit = _quantity(step)
        alike = (kind, unit) == (self.kind, self.unit) or {kind, self.kind} == {"number", "integer"}
        if not alike or unit != self.unit or width <= 0:
            raise Unusable(f"step `{step}`: write a quantity above 0 of the kind and unit of `from`")
        count = math.floor((self.high - self.low) / width + 1e-9) + 1
        if count > MAX_VALUES:
            raise Unusable(f"step `{step}`: it makes {count} values; an axis has {MAX_VALUES} at most")
        whole = self.kind == "integer" and kind == "integer"
        found = [self.low + place * width for place in range(count)]
        return [self._written(value if whole or self.kind != "integer" else float(value)) for value in found]

    def at(self, share: float) -> Any:
        """The value at a share of the range, with four significant digits, as it is written.

        Whole numbers are equally likely on a linear scale, the ends included.
        """
        if self.kind == "integer" and not self.log:
            return int(min(self.low + math.floor(share * (self.high - self.low + 1)), self.high))
        return self._between(share, rounded=True)

    def _between(self, share: float, *, rounded: bool) -> Any:
        value = (
            self.low * (self.high / self.low) ** share
            if self.log
            else self.low + share * (self.high - self.low)
        )
        return self._written(min(max(_four_digits(value), self.low), self.high) if rounded else value)

    def _written(self, value: float) -> Any:
        if self.kind == "time":
            return time_text(round(value))
        if self.kind == "rate":
            return rate_text(round(value))
        number = round(value) if self.kind == "integer" else float(f"{value:.12g}")
        return f"{number:g}{self.unit}" if self.unit else number


def kind_of(values: tuple[Any, ...]) -> Kind:
    """What all of these values are; `text` if they are of several kinds."""
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    found = {_kind_of(value) for value in values}
    if found == {"integer", "number"}:
        return "number"
    return found.pop() if len(found) == 1 else "text"


def _kind_of(value: object) -> Kind:
    if isinstance(value, bool | dict | list) or value is None:
        return "text"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    try:
        kind = _quantity(value)[1]
    except Unusable:
        return "text"
    return kind if kind in {"time", "rate"} else "text"


def _quantity(written: object) -> tuple[float, Kind, str]:
    """A quantity in base units, its kind, and the unit of a kind that has no base unit here."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        if not math.isfinite(written) or abs(written) > MAX_NUMBER:
            raise Unusable(f"`{written}`: write a finite number of no more than {MAX_NUMBER:g}")
        return written, "integer" if isinstance(written, int) else "number", ""
    found = _NUMBER.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        raise Unusable(f"`{written}`: write a number, or a quantity such as `20mbit`, `5ms` or `95%`")
    for kind, read in _READ.items():
        try:
            return read(written), kind, ""
        except ValueError:
            continue
    return float(found["number"]), "number", found["unit"]


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def _label(value: Any) -> str:
    """A value in a column of texts: tables by their name or as JSON."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return str(value["name"])
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


_NUMBER = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,15})?)\s*(?P<unit>[A-Za-z%]{1,10})", re.ASCII)

_READ: Mapping[Kind, Callable[[object], int]] = {"time": time_ns, "rate": rate_bps}

_UNITS: Mapping[str, str] = {"time": "_ms", "rate": "_mbps"}

_SHOWN: Mapping[str, Callable[[Any], Any]] = {
    "time": lambda value: time_ns(value) / 1e6,
    "rate": lambda value: rate_bps(value) / 1e6,
    "number": float,
    "integer": int,
    "boolean": bool,
    "text": _label,
}

MAX_VALUES = 10_000
"""Values of an axis."""

MAX_NUMBER = 2.0**53
"""Numbers above it are not exact."""
