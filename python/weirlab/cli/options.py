"""How every command reads its options: each value once, nothing empty, numbers and errors in plain words."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from weirlab import _native
from weirlab.errors import UsageError

__all__ = [
    "Argument",
    "OneOf",
    "Option",
    "Share",
    "Whole",
    "argument",
    "elsewhere",
    "elsewhere_by_value",
    "option",
    "other_name",
    "renamed",
]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Option(click.Option):
    """An option that refuses a second value, where click keeps the last, and an empty one."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Tells the parser to keep all values."""
        single, self.multiple = not self.multiple, True
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.multiple = not single

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """The value that was given.

        Raises:
            UsageError: if there are several, or if it is empty.
        """
        given = opts.get(self.name or "")
        if isinstance(given, list):
            self._check(given)
            opts = opts if self.multiple else {**opts, self.name or "": given[0]}
        return super().handle_parse_result(ctx, opts, args)

    def _check(self, given: list[Any]) -> None:
        name = self.opts[-1]
        if "" in given:
            raise UsageError(f"{name}: its value is empty: write one, or leave the option out")
        if self.multiple or len(given) < 2:
            return
        if not self.is_flag:
            values = " and ".join(f"`{value}`" for value in given)
            raise UsageError(f"{name} is given {_times(len(given))}, as {values}: write it once")
        if len(set(given)) > 1:
            raise UsageError(f"{name} and {self.secondary_opts[-1]} exclude each other: write one of them")


class Argument(click.Argument):
    """An argument that refuses to be empty; the words of a program that is run may be."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The value that was given.

        Raises:
            UsageError: if it is empty, or one of several is.
        """
        given = value if isinstance(value, (list, tuple)) else (value,)
        if self.type is not click.UNPROCESSED and "" in given:
            raise UsageError(f"{self.make_metavar(ctx)} is empty: write what is meant")
        return super().process_value(ctx, value)


argument = partial(click.argument, cls=Argument)
"""Declares an argument; every argument of every command is declared with it."""

option = partial(click.option, cls=Option)
"""Declares an option; every option of every command is declared with it."""


def other_name(old: str, new: str, hint: str = "") -> UsageError:
    """The refusal of what has another name now; `hint` is what else there is to know."""
    return UsageError(f"{old} has another name now: write {new}{hint}")


def renamed(old: str, new: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option's former name: who writes it is told the present one."""
    return _refused(old, lambda _: other_name(old, new))


def elsewhere(name: str, says: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option that another command has: who writes it is told which, and why this one has not."""
    return _refused(name, lambda _: UsageError(f"{name}: {says}"))


def elsewhere_by_value(
    name: str, without: str, says: Callable[[str], str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option that another command has: what is said hangs on its value; `without` if it has none."""
    return _refused(
        name,
        lambda value: UsageError(
            f"{name}: {without}" if value == _NO_VALUE else f"{name} {value}: {says(value)}"
        ),
    )


def _refused(
    name: str, error: Callable[[str], UsageError]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option that no help shows and that raises the `error` for its value, or for none."""

    def refuse(_context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value is not None:
            raise error(str(value))

    return click.option(
        name,
        name.strip("-").replace("-", "_") + "_refused",
        cls=Option,
        hidden=True,
        is_flag=False,
        flag_value=_NO_VALUE,
        expose_value=False,
        is_eager=True,
        callback=refuse,
    )


_NO_VALUE = "\0"
"""The value of a refused option behind which none stands, which no word of a command line can be."""


class Whole(click.IntRange):
    """A whole number between bounds."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Name of the value in the help."""
        del param, ctx
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number.

        Raises:
            BadParameter: what was written instead, and what may be.
        """
        text = str(value)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > MAX_NUMBER_DIGITS:
            self.fail(f"`{text}` is not a whole number: write {self._allowed()}", param, ctx)
        found = int(text)
        if (self.min is not None and found < self.min) or (self.max is not None and found > self.max):
            self.fail(f"`{text}`: write {self._allowed()}", param, ctx)
        return found

    def _allowed(self) -> str:
        if self.max is None:
            return "a whole number" if self.min is None else f"{self.min} or more"
        return f"a whole number from {self.min} to {self.max}"


class OneOf(click.Choice[str]):
    """One of some words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word.

        Raises:
            BadParameter: the nearest one, or which there are.
        """
        if value not in self.choices:
            near = _native.nearest(value, [*self.choices])
            says = f"did you mean `{near}`?" if near else f"write one of {', '.join(self.choices)}"
            self.fail(f"`{value}`: {says}", param, ctx)
        return super().convert(value, param, ctx)


class Share(click.FloatRange):
    """A share, from 0 to 1."""

    def __init__(self) -> None:
        """Takes numbers from 0 to 1, both included."""
        super().__init__(0, 1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share.

        Raises:
            BadParameter: what was written instead, and what may be.
        """
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not 0 <= found <= 1:
            self.fail(f"`{value}` is not a share: write a number from 0 to 1, such as 0.1", param, ctx)
        return found


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


MAX_NUMBER_DIGITS = 30
"""Digits: more than any number here has, and few enough to convert at once."""
