"""Assertions about records: `latency.p99 < latency.median[idle] + 10ms`.

An assertion compares two sums and products of figures and quantities: a time with a time, a rate with a
rate, a number (a share, a ratio) with a number. A figure is taken over the phase `load` if it names no other
phase or span of time in brackets, such as `up.goodput[10s..20s]`; of all probes or flows together if it names
none, such as `latency.p99[probe=Call*]`. docs/scenarios.md lists all figures.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from weirlab.errors import UsageError
from weirlab.scenario.units import time_ns
from weirlab.stats.asserted_figures import (
    FIGURES,
    LESS,
    MORE,
    Selection,
    better_of,
    dimension_of,
    named_by,
)
from weirlab.stats.dimensions import DIMENSIONS_OF, READERS, UNITS, kind_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.record import Record
    from weirlab.stats.dimensions import Dimension

    _Value: TypeAlias = Callable[[Record], float]
    _Operation: TypeAlias = Callable[[float, float], float]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of an assertion.

    Attributes:
        text: the assertion.
        left, right: its two sides, in `unit`; NaN if a figure has no sample or something is divided by 0.
        unit: `ms`, `Mbit/s`, what is made of these, or nothing of shares and counts.
        holds: whether it holds. One without a sample does not.
        remark: why a share of the line is NaN, in sentences; None if there is nothing to say.
    """

    text: str
    left: float
    right: float
    unit: str
    holds: bool
    remark: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: None for NaN."""
        sides = {
            name: None if math.isnan(side := getattr(self, name)) else side for name in ("left", "right")
        }
        return asdict(self) | sides


class _Reader:
    """Reads a text of figures, quantities and signs."""

    of_compared = False
    """Whether round trips of all probes before or under load are of those alone that have pings of both."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_CHARS:
            raise self._error(f"it has {len(text)} characters: write {MAX_CHARS} or fewer")
        self._tokens = _tokens(text)
        self._at = 0
        self._selections: list[Selection] = []
        self._depth = 0

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Refuses a text about what a run of that resolved scenario does not have.

        Raises:
            UsageError: if it names a phase that there is not or a span that begins behind the run's end, or a
                pattern matches no name.
        """
        for selection in self._selections:
            selection.check(scenario)
            selection.check_span(scenario)

    def _check_names(self, record: Record) -> None:
        """As `check`, but for spans: what a record has of one that it did not reach is nothing."""
        for selection in self._selections:
            selection.check(record.manifest.scenario)

    def _end(self) -> None:
        """Refuses what stands behind the end."""
        if self._at < len(self._tokens):
            raise self._error(f"`{self._tokens[self._at]}` stands behind its end")

    def _sum(self) -> _Part:
        part = self._product()
        while (sign := self._sign(_SUMS)) is not None:
            other = self._product()
            self._check_alike(part, other)
            part = part.with_other(sign, other, part.dimension)
        return part

    def _product(self) -> _Part:
        part = self._atom()
        while (sign := self._sign(_PRODUCTS)) is not None:
            other = self._atom()
            part = part.with_other(sign, other, DIMENSIONS_OF[sign](part.dimension, other.dimension))
        return part

    def _sign(self, signs: Mapping[str, _Operation]) -> str | None:
        """Takes the next token if it is one of `signs`."""
        if self._at == len(self._tokens) or self._tokens[self._at] not in signs:
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _check_alike(self, left: _Part, right: _Part) -> None:
        """Refuses to compare, add or subtract what is not of one kind."""
        if left.dimension == right.dimension:
            return
        for part, other in ((left, right), (right, left)):
            reader = READERS.get(other.dimension)
            if reader is not None and _NUMBER.fullmatch(part.text):
                try:
                    reader(part.text)
                except ValueError as error:
                    raise self._error(f"{error}, since `{other.text}` is {other.kind}") from error
        raise self._error(
            f"`{left.text}` is {left.kind}, `{right.text}` is {right.kind}: compare, add and subtract what "
            "is of one kind"
        )

    def _atom(self) -> _Part:
        word = self._take("a figure or a quantity")
        if word == "(":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._error(f"more than {MAX_DEPTH} brackets stand within one another")
            inner = self._sum()
            self._take("`)`", (")",))
            self._depth -= 1
            return replace(inner, text=f"({inner.text})")
        return self._quantity(word) if word[0].isdigit() else self._figure(word)

    def _quantity(self, word: str) -> _Part:
        unit = word.lstrip("0123456789.")
        if unit not in UNITS:
            known = ", ".join(one for one in UNITS if one)
            raise self._error(f"`{word}`: unknown unit `{unit}` (known: {known})")
        digits = word.removesuffix(unit)
        if not _NUMBER.fullmatch(digits):
            raise self._error(f"`{word}`: `{digits}` is not a number")
        factor, dimension = UNITS[unit]
        number = float(digits) * factor
        return _Part(text=word, dimension=dimension, value=lambda _: number, is_constant=True)

    def _figure(self, word: str) -> _Part:
        name, _, rest = word.partition("[")
        if name not in FIGURES:
            raise self._error(f"unknown figure `{name}` (known: {', '.join(FIGURES)})")
        figure, selection = FIGURES[name], self._selection(name, rest.removesuffix("]"))
        self._selections.append(selection)

        def value(record: Record) -> float:
            start, end = selection.window(record)
            return figure(record, selection) if start < end else math.nan

        return _Part(
            text=word,
            dimension=dimension_of(name),
            value=value,
            better=better_of(name),
            is_idle=selection.span is None and selection.phase == "idle",
        )

    def _selection(self, figure: str, text: str) -> Selection:
        phase, span, pattern = "load", None, "*"
        known_by = named_by(figure)
        for word in filter(None, (word.strip() for word in text.split(","))):
            key, equals, value = word.partition("=")
            if equals and key in {"probe", "flow"}:
                if key != known_by:
                    takes = f"takes {known_by}=NAME" if known_by else "is of the line, not of a probe or flow"
                    raise self._error(f"`{word}`: `{figure}` {takes}")
                pattern = value
            elif ".." in word:
                start, _, stop = word.partition("..")
                try:
                    span = (time_ns(start), time_ns(stop))
                except ValueError as error:
                    raise self._error(str(error)) from error
                if span[0] >= span[1]:
                    raise self._error(f"span `{word}`: it must end after its start")
            elif re.fullmatch(r"\w+", word):
                phase = word
            else:
                raise self._error(
                    f"`[{text}]`: write a phase, a span such as 10s..20s, probe=NAME or flow=NAME"
                )
        of_compared = self.of_compared and span is None and phase in {"idle", "load"}
        return Selection(
            figure=figure, phase=phase, span=span, pattern=pattern, text=self.text, of_compared=of_compared
        )

    def _take(self, wanted: str, allowed: Sequence[str] | Mapping[str, object] | None = None) -> str:
        found = self._tokens[self._at] if self._at < len(self._tokens) else None
        if found is None or (allowed is not None and found not in allowed):
            raise self._error(f"{wanted} is missing" + (f" before `{found}`" if found else " at its end"))
        self._at += 1
        return found

    def _error(self, what: str) -> UsageError:
        return UsageError(f"assertion `{self.text}`: {what}")


class Assertion(_Reader):
    """An assertion that was read and can be asked of records."""

    def __init__(self, text: str) -> None:
        """Reads `text`.

        Raises:
            UsageError: if it is no assertion: what is wrong, and what may stand there.
        """
        super().__init__(text)
        left = self._sum()
        name = self._take("a comparison (<, <=, >, >=)", _COMPARISONS)
        right = self._sum()
        self._end()
        self._check_alike(left, right)
        self._left, self._compare, self._right = left.value, _COMPARISONS[name], right.value
        self._unit = left.unit

    def of(self, record: Record) -> Outcome:
        """Whether it holds for a record.

        Raises:
            UsageError: as `check` does for names of its scenario.
        """
        self._check_names(record)
        left, right = self._left(record), self._right(record)
        holds = bool(self._compare(left, right))
        remarks = dict.fromkeys(one.why_no_share(record) for one in self._selections)
        told = " ".join(text for text in remarks if text is not None) or None
        return Outcome(text=self.text, left=left, right=right, unit=self._unit, holds=holds, remark=told)


class Figure(_Reader):
    """A figure of a record, or a sum or product of figures, such as `latency.p95[probe=Call*]`.

    Records are compared by it. So round trips before and under load, of which no probe is named, are of the
    probes that have pings of both, as in tables: each of those of which the increase is.
    """

    of_compared = True

    def __init__(self, text: str) -> None:
        """Reads `text`.

        Raises:
            UsageError: if it is no figure: what is wrong, and what may stand there.
        """
        super().__init__(text)
        self._part = self._sum()
        self._end()

    def higher_is_better(self) -> bool:
        """Whether more of it is better.

        Of rates, shares of the line, scores of voice streams and quick answers it is, and of what is in
        proportion to them; of times, losses and failures less is, and of what a rate leaves of something.

        Raises:
            UsageError: if neither is better, as of the quotient of two rates.
        """
        if self._part.better in (MORE, LESS):
            return self._part.better == MORE
        raise self._error(
            "nothing says whether more or less of it is better: write a figure, or what follows one, such as "
            "latency.p95 - latency.median[idle]"
        )

    @property
    def unit(self) -> str:
        """What its values are in: `ms`, `Mbit/s`, what is made of these, or nothing of shares and counts."""
        return self._part.unit

    def quantity(self, text: str) -> float:
        """A quantity of the figure's kind in its unit, such as `2ms`, in ms or Mbit/s.

        Raises:
            UsageError: if it is no quantity, or one of another kind.
        """
        other = Figure(text)
        if other._selections:
            raise self._error(f"`{text}` is no quantity such as 2ms")
        self._check_alike(self._part, other._part)
        return other._part.value(cast("Record", None))

    def of(self, record: Record) -> float:
        """Its value for a record, in ms or Mbit/s; NaN if there is no sample of it.

        Raises:
            UsageError: as `check` does for names of its scenario.
        """
        self._check_names(record)
        return self._part.value(record)


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A figure, a quantity, or a sum or product of them.

    Attributes:
        text: how it is written.
        dimension: its exponents of time and of rate, (0, 0) of a number.
        value: its value for a record, in ms and Mbit/s.
        better: whether more of it is better, or less; None if that is not known, or it never changes.
        is_constant: whether it is the same for every record.
        is_idle: whether all of its figures are of the phase `idle`.
    """

    text: str
    dimension: Dimension
    value: _Value
    better: int | None = None
    is_constant: bool = False
    is_idle: bool = True

    @property
    def kind(self) -> str:
        """Kind of the value, for messages."""
        return kind_of(self.dimension)

    @property
    def unit(self) -> str:
        """What the value is in; empty of a number."""
        return unit_of(self.dimension)

    def with_other(self, sign: str, other: _Part, dimension: Dimension) -> _Part:
        """The sum, difference, product or quotient of both."""
        left, right, operation = self.value, other.value, (_OPERATIONS)[sign]
        return _Part(
            text=f"{self.text} {sign} {other.text}",
            dimension=dimension,
            value=lambda record: operation(left(record), right(record)),
            better=self._better_with(sign, other),
            is_constant=self.is_constant and other.is_constant,
            is_idle=self.is_idle and other.is_idle,
        )

    def _better_with(self, sign: str, other: _Part) -> int | None:
        """Which is better of the sum, difference, product or quotient of both: more or less."""
        if self.better is None or other.better is None:
            turned = -1 if sign in "-/" else 1
            if self.is_constant and other.better is not None:
                return turned * other.better
            return self.better if other.is_constant else None
        if sign in "+*":
            return self.better if self.better == other.better else None
        if self.better != other.better:
            return self.better
        # By how much or how many times a time or a loss exceeds that of the idle line.
        if self.better == LESS and self.is_idle != other.is_idle:
            return LESS if other.is_idle else MORE
        return None


def _quotient(left: float, right: float) -> float:
    return left / right if right else math.nan


def _tokens(text: str) -> list[str]:
    pattern = r"\s*([A-Za-z_][\w.]*(?:\[[^\]]*\])?|\d[\d.]*(?:%|[A-Za-z]+)?|<=|>=|[<>+\-*/()])"
    found, at = [], 0
    while text[at:].strip():
        match = re.compile(pattern).match(text, at)
        if match is None:
            raise UsageError(f"assertion `{text}`: cannot read `{text[at:].strip()}`")
        found.append(match.group(1))
        at = match.end()
    return found


_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SUMS: Mapping[str, _Operation] = {"+": operator.add, "-": operator.sub}
_PRODUCTS: Mapping[str, _Operation] = {"*": operator.mul, "/": _quotient}

_OPERATIONS: Mapping[str, _Operation] = {**_SUMS, **_PRODUCTS}

_NUMBER = re.compile(r"\d+(?:\.\d*)?")

MAX_CHARS = 1000
MAX_DEPTH = 20
"""Bounds on length and depth: more would nest more calls than Python allows."""
