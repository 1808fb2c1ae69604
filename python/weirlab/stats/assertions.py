"""Assertions about records: `latency.p99 < latency.median[idle] + 10ms`.

An assertion compares two sums and products of figures and quantities. A figure is taken over the phase
`load` if it names no other phase or span of time in brackets, such as `up.goodput[10s..20s]`; of all probes
or flows together if it names none, such as `latency.p99[probe=Call*]`. docs/scenarios.md lists all figures.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from weirlab.errors import UsageError
from weirlab.scenario.units import time_ns
from weirlab.stats.distribution import describe
from weirlab.stats.summary import busy_share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.record import Record

    _Value: TypeAlias = Callable[[Record], float]
    _Operation: TypeAlias = Callable[[float, float], float]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of an assertion.

    Attributes:
        text: the assertion.
        left, right: its two sides, in ms, Mbit/s, shares or counts; NaN if a figure has no sample.
        holds: whether it holds. One without a sample does not.
    """

    text: str
    left: float
    right: float
    holds: bool


class Assertion:
    """An assertion that was read and can be asked of records."""

    def __init__(self, text: str) -> None:
        """Reads `text`.

        Raises:
            UsageError: if it is no assertion: what is wrong, and what may stand there.
        """
        self.text = text
        if len(text) > MOST_CHARACTERS:
            raise self._error(f"it has {len(text)} characters: write {MOST_CHARACTERS} or fewer")
        self._tokens = _tokens(text)
        self._at = 0
        self._selections: list[_Selection] = []
        self._depth = 0
        self._left = self._sum()
        name = self._take("a comparison (<, <=, >, >=)", _COMPARISONS)
        self._compare = _COMPARISONS[name]
        self._right = self._sum()
        if self._at < len(self._tokens):
            raise self._error(f"`{self._tokens[self._at]}` stands behind its end")

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Refuses an assertion about what a run of that resolved scenario does not have.

        Raises:
            UsageError: if it names a phase that there is not, or a pattern matches no name.
        """
        for selection in self._selections:
            selection.check(scenario)

    def of(self, record: Record) -> Outcome:
        """Whether it holds for a record.

        Raises:
            UsageError: as `check` does for its scenario.
        """
        self.check(record.manifest.scenario)
        left, right = self._left(record), self._right(record)
        return Outcome(text=self.text, left=left, right=right, holds=bool(self._compare(left, right)))

    def _sum(self) -> _Value:
        return self._chain(self._product, _SUMS)

    def _product(self) -> _Value:
        return self._chain(self._atom, _PRODUCTS)

    def _chain(self, part: Callable[[], _Value], signs: Mapping[str, _Operation]) -> _Value:
        value = part()
        while self._at < len(self._tokens) and self._tokens[self._at] in signs:
            sign = signs[self._tokens[self._at]]
            self._at += 1
            value = _both(sign, value, part())
        return value

    def _atom(self) -> _Value:
        word = self._take("a figure or a quantity")
        if word == "(":
            self._depth += 1
            if self._depth > MOST_DEPTH:
                raise self._error(f"more than {MOST_DEPTH} brackets stand within one another")
            value = self._sum()
            self._take("`)`", (")",))
            self._depth -= 1
            return value
        if word[0].isdigit():
            number = self._quantity(word)
            return lambda _: number
        return self._figure(word)

    def _quantity(self, word: str) -> float:
        unit = word.lstrip("0123456789.")
        if unit not in _UNITS:
            known = ", ".join(one for one in _UNITS if one)
            raise self._error(f"`{word}`: unknown unit `{unit}` (known: {known})")
        return float(word.removesuffix(unit)) * _UNITS[unit]

    def _figure(self, word: str) -> _Value:
        name, _, rest = word.partition("[")
        if name not in FIGURES:
            raise self._error(f"unknown figure `{name}` (known: {', '.join(FIGURES)})")
        figure, selection = FIGURES[name], self._selection(name, rest.removesuffix("]"))
        self._selections.append(selection)
        return lambda record: figure(record, selection)

    def _selection(self, figure: str, text: str) -> _Selection:
        phase, span, pattern = "load", None, "*"
        known_by = _named_by(figure)
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
            elif re.fullmatch(r"\w+", word):
                phase = word
            else:
                raise self._error(
                    f"`[{text}]`: write a phase, a span such as 10s..20s, probe=NAME or flow=NAME"
                )
        return _Selection(figure=figure, phase=phase, span=span, pattern=pattern, text=self.text)

    def _take(self, wanted: str, allowed: Sequence[str] | Mapping[str, object] | None = None) -> str:
        found = self._tokens[self._at] if self._at < len(self._tokens) else None
        if found is None or (allowed is not None and found not in allowed):
            raise self._error(f"{wanted} is missing" + (f" before `{found}`" if found else " at its end"))
        self._at += 1
        return found

    def _error(self, what: str) -> UsageError:
        return UsageError(f"assertion `{self.text}`: {what}")


@dataclass(frozen=True, kw_only=True)
class _Selection:
    """Of what a figure is taken."""

    figure: str
    phase: str
    span: tuple[int, int] | None
    pattern: str
    text: str

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Whether a run of that scenario has the phase and something of that name."""
        phases = [phase["name"] for phase in scenario["phases"]]
        if self.span is None and self.phase not in phases:
            raise UsageError(
                f"assertion `{self.text}`: the run has no phase `{self.phase}` (it has: {', '.join(phases)})"
            )
        names = _names(self.figure, scenario)
        if self.pattern != "*" and not any(fnmatchcase(name, self.pattern) for name in names):
            kind = _named_by(self.figure)
            there = ", ".join(dict.fromkeys(names)) or "none"
            raise UsageError(
                f"assertion `{self.text}`: `{kind}={self.pattern}` matches no {kind} of `{self.figure}` "
                f"(there are: {there}; `*` stands for anything)"
            )

    def window(self, record: Record) -> tuple[int, int]:
        """Start and end in nanoseconds."""
        found = self.span or record.phase(self.phase)
        if found is None:
            raise UsageError(f"assertion `{self.text}`: the run ended before its phase `{self.phase}`")
        return found


def _named_by(figure: str) -> str | None:
    """By what a figure is told apart: `probe`, `flow`, or nothing."""
    if figure.startswith("latency."):
        return "probe"
    return "flow" if figure.endswith(".goodput") else None


def _names(figure: str, scenario: Mapping[str, Any]) -> list[str]:
    """Names of the probes or flows of which a figure may be taken."""
    methods = [method["name"] for method in scenario.get("methods", [])]
    if _named_by(figure) == "probe":
        return [probe["name"] for probe in scenario["probes"]] + [f"{name} in flow" for name in methods]
    direction = figure.partition(".")[0]
    flows = [flow["name"] for flow in scenario["flows"] if flow["direction"] == direction]
    return flows + [f"{name} {direction}" for name in methods]


def _both(sign: _Operation, left: _Value, right: _Value) -> _Value:
    return lambda record: sign(left(record), right(record))


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


def _latency(figure: str) -> Callable[[Record, _Selection], float]:
    def of(record: Record, selection: _Selection) -> float:
        during = _pings(record, selection)
        found = describe(during["rtt_ns"] / 1e6)
        return float(getattr(found, figure)) if found else math.nan

    return of


def _loss(record: Record, selection: _Selection) -> float:
    during = _pings(record, selection)
    return during["rtt_ns"].null_count() / during.height if during.height else math.nan


def _pings(record: Record, selection: _Selection) -> pl.DataFrame:
    start, end = selection.window(record)
    wanted = [n for n, name in enumerate(record.probe_names) if fnmatchcase(name, selection.pattern)]
    at = pl.col("t_ns")
    # What a speed test saw within its own flow counts only where it is named.
    rows = record.pings if selection.pattern == "*" else record.latency
    return rows.filter((at >= start) & (at < end) & pl.col("probe").is_in(wanted))


def _goodput(direction: str) -> Callable[[Record, _Selection], float]:
    def of(record: Record, selection: _Selection) -> float:
        start, end = selection.window(record)
        names = record.flow_names.filter(pl.col("direction") == direction)
        wanted = [
            flow for flow, name in names.select("flow", "name").rows() if fnmatchcase(name, selection.pattern)
        ]
        at = pl.col("t_ns")
        arrived = record.throughput.filter((at > start) & (at <= end) & pl.col("flow").is_in(wanted))
        return float(arrived["bytes"].sum()) * 8e3 / (end - start) if wanted else math.nan

    return of


def _utilisation(direction: str) -> Callable[[Record, _Selection], float]:
    def of(record: Record, selection: _Selection) -> float:
        share = busy_share(record, "up" if direction == "up" else "down", *selection.window(record))
        return math.nan if share is None else share

    return of


def _shaper(direction: str, aggregate: str) -> Callable[[Record, _Selection], float]:
    """Least, mean (over time) or greatest rate of the shaper; infinite while it has none."""

    def of(record: Record, selection: _Selection) -> float:
        start, end = selection.window(record)
        rows = record.shaper.filter(pl.col("queue").str.starts_with(f"{direction}/"))
        before = rows.filter(pl.col("t_ns") <= start).tail(1)
        during = pl.concat([before, rows.filter((pl.col("t_ns") > start) & (pl.col("t_ns") < end))])
        if during.height == 0:
            return math.nan
        rates = [math.inf if rate is None else rate / 1e6 for rate in during["rate_bps"]]
        times = [max(t, start) for t in during["t_ns"]] + [end]
        if aggregate == "min":
            return min(rates)
        if aggregate == "max":
            return max(rates)
        lengths = [after - before for before, after in pairwise(times)]
        total = sum(rate * length for rate, length in zip(rates, lengths, strict=True))
        return float(total / sum(lengths))

    return of


FIGURES: Mapping[str, Callable[[Record, _Selection], float]] = {
    **{f"latency.{name}": _latency(name) for name in ("mean", "median", "p95", "p99", "max", "min")},
    "latency.loss": _loss,
    **{f"{way}.goodput": _goodput(way) for way in ("up", "down")},
    **{f"{way}.utilisation": _utilisation(way) for way in ("up", "down")},
    **{f"{way}.rate.{name}": _shaper(way, name) for way in ("up", "down") for name in ("min", "mean", "max")},
}
"""Every figure by name: latency in ms, goodput and rates in Mbit/s, loss and utilisation as shares."""

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SUMS = {"+": operator.add, "-": operator.sub}
_PRODUCTS = {"*": operator.mul, "/": operator.truediv}

MOST_CHARACTERS = 1000
MOST_DEPTH = 20
"""What is longer or deeper would take more calls within one another than Python allows."""

_UNITS = {
    "": 1.0,
    "%": 0.01,
    "us": 1e-3,
    "ms": 1.0,
    "s": 1e3,
    "kbit": 1e-3,
    "mbit": 1.0,
    "gbit": 1e3,
}
"""Factors to milliseconds and Mbit/s."""
