"""The terminal: tables to standard output, everything else to standard error."""

from __future__ import annotations

from rich.console import Console

console = Console(highlight=False)
"""Standard output, for what was asked for."""

messages = Console(stderr=True, highlight=False)
"""Standard error, for everything else."""


def note(text: str) -> None:
    """Says something by the way."""
    messages.print(text, style="dim", markup=False)


def warn(text: str) -> None:
    """Says why something should not be trusted."""
    messages.print(f"warning: {text}", style="bold yellow", markup=False)
