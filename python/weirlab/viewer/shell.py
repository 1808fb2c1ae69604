"""The frame of every page: what stands around its content."""

from __future__ import annotations

import re
from html import escape

__all__ = ["prose", "shell"]


def prose(text: str) -> str:
    """A sentence as HTML, with what stands in backticks as code."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def shell(title: str, body: str, *, head: str = "") -> str:
    """A whole page.

    Args:
        title: its title, as text.
        body: what stands in its body, as HTML.
        head: what stands in its head beside the title, as HTML; a policy there holds for all that follows it.
    """
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{head}"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
    # What a manifest says may hold lone surrogates, which UTF-8 cannot.
    return page.encode("utf-8", "replace").decode("utf-8")


CODE = re.compile(r"`([^`]+)`")
"""Names and values in sentences, as the terminal has them."""
