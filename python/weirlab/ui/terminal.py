"""The terminal: tables to standard output, everything else to standard error."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from weirlab.errors import written_out


def harmless(text: Text) -> Text:
    """A text that steers no terminal; one that would have loses the styles of its parts."""
    plain = written_out(text.plain)
    return text if plain == text.plain else Text(plain, style=text.style)


class _Environment(Mapping[str, str]):
    """The variables of the environment; those that tell no size of a terminal are as if they were not set.

    A terminal without a size tells 0: a serial console, or one of a CI system.
    """

    def __getitem__(self, name: str) -> str:
        value = os.environ[name]
        if name in _SIZES:
            is_number = value.isascii() and value.isdecimal() and len(value) <= MAX_SIZE_DIGITS
            if not is_number or int(value) == 0:
                raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in os.environ if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Stream(Console):
    """A stream that fails as others do, where Rich would end the process; and no text steers the terminal.

    Texts come from records and files of strangers.
    """

    def render_str(self, text: str, **how: Any) -> Text:
        """A text as it is printed, in tables and headings too."""
        return super().render_str(written_out(text), **how)

    def print(self, *objects: Any, **how: Any) -> None:
        """Prints, texts with styles of their own too."""
        super().print(*(harmless(one) if isinstance(one, Text) else one for one in objects), **how)

    def on_broken_pipe(self) -> None:
        """Whoever read has gone: told to who writes."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


_SIZES = ("COLUMNS", "LINES")
"""Variables with the size of the terminal."""

MAX_SIZE_DIGITS = 5
"""Digits of a width or height: terminals tell 65535 at most (`struct winsize` of asm-generic/termios.h)."""

console = _Stream(highlight=False, markup=False, _environ=_Environment())
"""Standard output, for what was asked for. Brackets are brackets: names and addresses have them."""

messages = _Stream(stderr=True, highlight=False, markup=False, _environ=_Environment())
"""Standard error, for everything else."""


def section(title: str) -> None:
    """Heads what follows: within a rule where the title has room in it, else as a line of its own."""
    if cell_len(title) + 4 <= console.width:
        console.rule(title)
    else:
        console.print(title, soft_wrap=True)


def note(text: str) -> None:
    """Says something by the way."""
    _say(text, "dim")


def warn(text: str) -> None:
    """Says why something should not be trusted."""
    _say(f"warning: {text}", "bold yellow")


def _say(text: str, style: str) -> None:
    # Where there is no terminal, a sentence is a line of a log. One that nobody can read ends no work.
    with suppress(OSError):
        messages.print(text, style=style, soft_wrap=not messages.is_terminal)
