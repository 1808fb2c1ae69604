"""Conditions of a plan: a small part of SQL, read here and made a Polars expression.

No engine reads the text, so that a condition compares columns and constants and can do nothing else: there
are no queries, no tables and no functions but those listed.

    or       := and { OR and }
    and      := not { AND not }
    not      := NOT not | compared
    compared := sum [ (= | == | <> | != | < | <= | > | >=) sum
                    | [NOT] IN ( sum {, sum} ) | [NOT] BETWEEN sum AND sum
                    | [NOT] LIKE text | IS [NOT] NULL ]
    sum      := product { (+ | -) product }
    product  := sign { (* | / | %) sign }
    sign     := - sign | value
    value    := number | 'text' | TRUE | FALSE | NULL | column | "column"
              | function ( sum {, sum} ) | ( or )
"""

from __future__ import annotations

import operator
import re
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


class NoCondition(ValueError):
    """A text is no condition: why, in words that a sentence begins with."""


def condition(text: str, columns: Collection[str]) -> pl.Expr:
    """The condition that is written in `text`, on those columns.

    Raises:
        NoCondition: if it is none.
    """
    if len(text) > MAX_CONDITION_CHARS:
        raise NoCondition(f"it has {len(text)} characters: write {MAX_CONDITION_CHARS} or fewer")
    reader = _Reader(_tokens(text), columns)
    found = reader.either()
    if reader.next:
        raise NoCondition(f"`{reader.next}` is not expected there")
    return found


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    while place < len(text):
        one = _TOKEN.match(text, place)
        if one is None:
            raise NoCondition(f"`{text[place]}` means nothing there")
        place = one.end()
        if not one[0].isspace():
            found.append(one[0])
    return found


class _Reader:
    """Reads tokens by descent: a method for each rule, the loosest first."""

    def __init__(self, tokens: list[str], columns: Collection[str]) -> None:
        self._tokens, self._columns, self._place, self._depth = tokens, columns, 0, 0

    @property
    def next(self) -> str:
        """The token that comes next; empty at the end."""
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def either(self) -> pl.Expr:
        """One condition, or several of which one holds."""
        found = self._all()
        while self._taken("OR"):
            found |= self._all()
        return found

    def _all(self) -> pl.Expr:
        found = self._denied()
        while self._taken("AND"):
            found &= self._denied()
        return found

    def _denied(self) -> pl.Expr:
        denied = False
        while self._taken("NOT"):
            denied = not denied
        found = self._compared()
        return ~found if denied else found

    def _compared(self) -> pl.Expr:
        left = self._sum()
        if self.next in _COMPARISONS:
            return _COMPARISONS[self._take()](left, self._sum())
        if self._taken("IS"):
            denied = self._taken("NOT")
            self._expect("NULL")
            return left.is_not_null() if denied else left.is_null()
        denied = self._taken("NOT")
        if self._taken("IN"):
            found = reduce(operator.or_, [left == one for one in self._listed()])
        elif self._taken("BETWEEN"):
            low = self._sum()
            self._expect("AND")
            found = (left >= low) & (left <= self._sum())
        elif self._taken("LIKE"):
            found = left.str.contains(self._pattern())
        elif denied:
            raise NoCondition("`NOT` stands before IN, BETWEEN, LIKE or a condition")
        else:
            return left
        return ~found if denied else found

    def _sum(self) -> pl.Expr:
        found = self._product()
        while self.next in _SUMS:
            found = _SUMS[self._take()](found, self._product())
        return found

    def _product(self) -> pl.Expr:
        found = self._signed()
        while self.next in _PRODUCTS:
            found = _PRODUCTS[self._take()](found, self._signed())
        return found

    def _signed(self) -> pl.Expr:
        negative = False
        while self._taken("-"):
            negative = not negative
        return -self._value() if negative else self._value()

    def _value(self) -> pl.Expr:
        first = self._take()
        if first == "(":
            self._deeper()
            found = self.either()
            self._expect(")")
            self._depth -= 1
            return found
        if first[0] == '"':
            return self._column(_unquoted(first))
        if first[0] == "'":
            return pl.lit(_unquoted(first))
        if first[0].isdecimal() or first[0] == ".":
            return pl.lit(int(first) if first.isdecimal() else float(first))
        return self._named(first)

    def _named(self, word: str) -> pl.Expr:
        """What a word stands for."""
        if word.upper() in _CONSTANTS:
            return pl.lit(_CONSTANTS[word.upper()])
        if not word[0].isalpha() and word[0] != "_":
            raise NoCondition(f"`{word}` is not expected there")
        if word.upper() in _WORDS:
            raise NoCondition(f"`{word}` is no part of a condition there")
        return self._function(word) if self.next == "(" else self._column(word)

    def _function(self, name: str) -> pl.Expr:
        if name.upper() not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise NoCondition(f"no function `{name}` (known: {known})")
        arguments = self._listed()
        if name.upper() == "ABS" and len(arguments) != 1:
            raise NoCondition(f"`{name}` takes one value, not {len(arguments)}")
        return _FUNCTIONS[name.upper()](arguments)

    def _column(self, name: str) -> pl.Expr:
        if name not in self._columns:
            raise NoCondition(f"no column `{name}`")
        return pl.col(name)

    def _listed(self) -> list[pl.Expr]:
        self._expect("(")
        self._deeper()
        found = [self._sum()]
        while self._taken(","):
            found.append(self._sum())
        self._expect(")")
        self._depth -= 1
        return found

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NoCondition(f"it is nested more than {MAX_DEPTH} deep")

    def _pattern(self) -> str:
        token = self._take()
        if token[0] != "'":
            raise NoCondition(f"LIKE takes a text in single quotes, not `{token}`")
        parts = {"%": ".*", "_": "."}
        return f"(?s)^{''.join(parts.get(one, re.escape(one)) for one in _unquoted(token))}$"

    def _taken(self, word: str) -> bool:
        """Whether that word comes next, which is then passed."""
        if self.next.upper() != word:
            return False
        self._place += 1
        return True

    def _take(self) -> str:
        if not self.next:
            raise NoCondition("it ends too early")
        self._place += 1
        return self._tokens[self._place - 1]

    def _expect(self, word: str) -> None:
        if not self._taken(word):
            raise NoCondition(f"`{word}` is expected, not {f'`{self.next}`' if self.next else 'the end'}")


def _unquoted(token: str) -> str:
    return token[1:-1].replace(token[0] * 2, token[0])


_TOKEN = re.compile(
    r"\s+|'(?:[^']|'')*'|\"(?:[^\"]|\"\")+\"|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\w+|<=|>=|<>|!=|==|[-=<>+*/%(),]",
    re.ASCII,
)

_COMPARISONS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": operator.eq,
    "==": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_SUMS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {"+": operator.add, "-": operator.sub}

_PRODUCTS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}

_FUNCTIONS: Mapping[str, Callable[[list[pl.Expr]], pl.Expr]] = {
    "ABS": lambda values: values[0].abs(),
    "LEAST": pl.min_horizontal,
    "GREATEST": pl.max_horizontal,
}

_CONSTANTS: Mapping[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None}

_WORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "SELECT", "FROM", "CASE", "EXISTS"}
"""Words that are no columns unless they stand in double quotes."""

MAX_CONDITION_CHARS = 1000
"""Characters of a condition."""

MAX_DEPTH = 50
"""Parentheses within each other."""
