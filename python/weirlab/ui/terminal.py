"""The terminal: tables to standard output, everything else to standard error."""

from __future__ import annotations

from rich.console import Console

console = Console(highlight=False, markup=False)
"""Standard output, for what was asked for. Brackets are brackets: names and addresses have them."""

messages = Console(stderr=True, highlight=False, markup=False)
"""Standard error, for everything else."""


def note(text: str) -> None:
    """Says something by the way."""
    _say(text, "dim")


def warn(text: str) -> None:
    """Says why something should not be trusted."""
    _say(f"warning: {text}", "bold yellow")


def _say(text: str, style: str) -> None:
    # Where there is no terminal, a sentence is a line of a log.
    messages.print(text, style=style, soft_wrap=not messages.is_terminal)
