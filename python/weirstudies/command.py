"""Code that the commands of studies share: options, and what is printed. `running` carries out their runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.cli.options import Whole, option, renamed
from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.record import Record

    Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def repeat_option(default: str) -> Decorator:
    """`--repeat`, of which the help says what it is where nothing is said."""

    def options(command: Callable[..., None]) -> Callable[..., None]:
        words = f"Runs of each, each its own seed.  [default: {default}]"
        return option("--repeat", type=Whole(min=1), help=words)(renamed("--seeds", "--repeat")(command))

    return options


def world_option(command: Callable[..., None]) -> Callable[..., None]:
    """`--world`."""
    return option(
        "--world", type=click.Choice(["sim", "lab"]), default="sim", show_default=True, help="Where it runs."
    )(command)


def lab_repeat_option(command: Callable[..., None]) -> Callable[..., None]:
    """`--lab-repeat`."""
    return option("--lab-repeat", type=Whole(min=1), help="Runs of each in the lab.  [default: 1]")(command)


def only_option(help_text: str) -> Decorator:
    """`--only`, which may be repeated."""
    return option("--only", multiple=True, metavar="NAME", help=f"{help_text} May be repeated.")


def out_option(help_text: str) -> Decorator:
    """`--out`, a folder."""
    return option("--out", type=click.Path(path_type=Path), help=help_text)


def printing_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--jobs`, `--json` and `--markdown`, which every study has."""
    for one in (
        option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown, nothing else."),
        option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else."),
        option("--jobs", type=Whole(min=1), help="Runs at once.  [default: all processors]"),
    ):
        command = one(command)
    return command


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--scheduler` and `--cluster`, of studies whose runs a cluster can do."""
    for one in (
        option(
            "--cluster", type=Whole(min=1), help="Start a Dask cluster here, of so many worker processes."
        ),
        option("--scheduler", metavar="ADDRESS", help="Dask cluster that does it, such as tcp://HOST:8786."),
    ):
        command = one(command)
    return command


def is_quiet(*, as_json: bool, as_markdown: bool) -> bool:
    """Whether nothing but the outcome is printed.

    Raises:
        UsageError: if it is to be printed in two ways.
    """
    if as_json and as_markdown:
        raise UsageError("--json and --markdown: only one of them can be printed; leave one out")
    return as_json or as_markdown


def print_json(figures: Any) -> None:
    """Prints plain values as JSON."""
    click.echo(json.dumps(figures, indent=2))


def by_label(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records by their labels, in order."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.label, []).append(record)
    return found
