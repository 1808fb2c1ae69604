"""Output of `weir shape`: a running shaper, what would be done, and whether it helps."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from rich.live import Live

from weirlab.shape import line_of, table_of
from weirlab.ui import console, warn
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from weirlab._native import Proof, ShaperChoice
    from weirlab.shape import ShaperView


class Display:
    """Shows views as they come: a table that changes on a terminal, a line a second elsewhere.

    A terminal that is gone, or whoever read these lines, does not end a shaper.
    """

    def __init__(self, *, quiet: bool) -> None:
        """Has shown nothing yet; with `quiet` it never does."""
        self._live = None if quiet or not messages.is_terminal else Live(console=messages, transient=True)
        self._quiet = quiet
        self._next_ns = 0
        self._delays: list[tuple[int, int, int]] = []

    def show(self, view: ShaperView) -> None:
        """Shows a view."""
        with suppress(OSError):
            self._show(view)

    def _show(self, view: ShaperView) -> None:
        if self._live is not None:
            self._live.start()
            self._live.update(table_of(view))
        elif not self._quiet:
            self._delays += view["delays"]
            if view["t_ns"] >= self._next_ns:
                self._next_ns = view["t_ns"] + 1_000_000_000
                click.echo(line_of({**view, "delays": self._delays}), err=True)
                self._delays = []

    def close(self) -> None:
        """Takes the table away."""
        with suppress(OSError):
            if self._live is not None:
                self._live.stop()


def show_dry_run(settings: dict[str, Any], choice: ShaperChoice, *, as_json: bool) -> None:
    """Prints what would be done."""
    if as_json:
        told = {name: choice[name] for name in ("backend", "why", "queues")} | {
            "warnings": choice["cautions"]
        }
        click.echo(json.dumps({"settings": settings, **told}, indent=2))
        return
    for line in choice["plan"]:
        console.print(line)
    for caution in choice["cautions"]:
        warn(caution)


def show_proof(result: Proof | str, *, as_json: bool) -> None:
    """Prints a proof; a text says why there is none, which only JSON tells."""
    if as_json:
        told = {"verdict": result} if isinstance(result, str) else json.loads(result["figures"])
        click.echo(json.dumps(told, indent=2))
    elif not isinstance(result, str):
        for line in result["lines"]:
            console.print(line)
        if result["remark"] is not None:
            warn(result["remark"])
