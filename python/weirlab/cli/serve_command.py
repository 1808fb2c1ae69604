"""`weir serve`: the server. Its options are read where it is written, in Rust: `weir-agent` has the same."""

from __future__ import annotations

import sys

import click

from weirlab import _native


@click.command(
    "serve",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Answer measurements: Weir's own, and those of other speed tests."""
    code, message = _native.serve(["weir serve", *words])
    if code == 0:
        click.echo(message, nl=False)
    else:
        click.echo(f"weir: {message}", err=True)
    sys.exit(code)
