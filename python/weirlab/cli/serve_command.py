"""`weir serve`: the server. Its options are read where it is written, in Rust: `weir-agent` has the same."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from weirlab import _native
from weirlab.cli.options import argument
from weirlab.errors import UsageError


@click.command(
    "serve",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Answer measurements: Weir's own, and those of other speed tests."""
    for word in words:
        _check_text(word)
    code, message = _native.serve(["weir serve", *words])
    if code == 0:
        click.echo(message, nl=False)
    else:
        # The code says it too, where standard error cannot be written to.
        with suppress(OSError):
            click.echo(f"weir: {message}", err=True)
    sys.exit(code)


def _check_text(word: str) -> None:
    """Refuses bytes that are no text.

    Raises:
        UsageError: if there are any.
    """
    try:
        word.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(word).decode("ascii", "backslashreplace")
        raise UsageError(f"`{shown}` is not UTF-8: write the options of `weir serve` in it") from error
