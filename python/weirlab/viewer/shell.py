"""The frame of every page: what stands around its content."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from weirlab.errors import written_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["as_command", "parts", "prose", "shell", "shown"]


def prose(text: str) -> str:
    """A sentence as HTML, with what stands in backticks as code."""
    return CODE.sub(r"<code>\1</code>", shown(text))


def shown(text: str) -> str:
    """Text as HTML: no markup, and signs that steer are written out, as on the terminal.

    Without that a name in a record of a stranger could turn the direction of what is written around it. What
    is read back (values of fields, addresses) is escaped and nothing else.
    """
    return escape(written_out(text))


def as_command(text: str) -> str:
    """A command as HTML, of which no option is broken behind its dashes."""
    return OPTION.sub(r'<span class="option">\1</span>', shown(text))


def shell(title: str, body: str, *, head: str = "") -> str:
    """A whole page.

    Args:
        title: its title, as text.
        body: what stands in its body, as HTML.
        head: what stands in its head beside the title, as HTML; a policy there holds for all that follows it.
    """
    return "".join(parts(title, [body], head=head))


def parts(title: str, body: Iterable[str], *, head: str = "") -> Iterator[str]:
    """A whole page as `shell` makes it, part by part: its body may be large."""
    yield _sayable(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{head}"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{shown(title)}</title>\n</head>\n<body>\n"
    )
    yield from map(_sayable, body)
    yield "</body>\n</html>\n"


def _sayable(text: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot say, and which a manifest may hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


CODE = re.compile(r"`([^`]+)`")
"""Names and values in sentences, as the terminal has them."""

OPTION = re.compile(r"(?<!\S)(--?[A-Za-z][\w-]*)")
"""Options of commands, at the beginnings of words."""
