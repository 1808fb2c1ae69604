"""`weir plot`: charts of records."""

from __future__ import annotations

from pathlib import Path

import click

from weirlab.cli.options import option
from weirlab.cli.records import readable_runs
from weirlab.errors import UsageError
from weirlab.plots import FORMATS, KINDS, check, draw, format_of, spanned
from weirlab.report import charts_of
from weirlab.scenario.units import time_ns
from weirlab.ui import console


def _help() -> str:
    """The help of the command: every chart with what it shows."""
    width = max(map(len, KINDS))
    charts = "\n".join(f"{name:<{width}}  {known.summary}" for name, known in KINDS.items())
    # \b keeps click from folding the list.
    return f"Draw charts of records.\n\n\b\n{charts}"


@click.command("plot", help=_help())
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option(
    "--kind",
    type=click.Choice([*KINDS, "all"]),
    default="all",
    show_default=True,
    help="Which chart; `all` draws what `weir run` draws.",
)
@option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to draw into, by its suffix .png, .svg or .pdf; for `all` a folder. Folders are made.",
)
@option("--title", help="Title in place of the test's.")
@option(
    "--span",
    metavar="FROM..TO",
    help=f"The part of the time that is drawn, such as 35s..55s; for {spanned()}.",
)
def command(
    paths: tuple[Path, ...], *, kind: str, out: Path | None, title: str | None, span: str | None
) -> None:
    """Draws the charts that are asked for."""
    span_s = None if span is None else span_in(span)
    if kind == "all":
        _check_folder(out)
        if span is not None:
            raise UsageError(f"--span {span}: it belongs to {spanned()}: name it with --kind")
        check("box", 1, title=title)
    else:
        out = out or Path(f"{kind}.png")
        format_of(out)
        check(kind, KINDS[kind].least, title=title, span_s=span_s)
    with readable_runs(paths) as records:
        if kind == "all" or out is None:
            drawn = charts_of(records, out or Path("charts"), title=title)
        else:
            check(kind, len(records))
            drawn = [draw(kind, records, out, title=title, span_s=span_s)]
        for path in drawn:
            console.print(str(path), soft_wrap=True)


def _check_folder(out: Path | None) -> None:
    """Refuses the name of a file where several charts are drawn."""
    if out is not None and out.suffix.lower().removeprefix(".") in FORMATS:
        raise UsageError(
            f"--out {out}: without --kind several charts are drawn into a folder; for one chart say which, "
            f"such as --kind box --out {out}"
        )


def span_in(text: str) -> tuple[float, float]:
    """The seconds of `35s..55s`.

    Raises:
        UsageError: if it is no span.
    """
    first, dots, last = text.partition("..")
    if not dots:
        raise UsageError(f"--span {text}: write where it begins and ends, such as 35s..55s")
    try:
        return time_ns(first) / 1e9, time_ns(last) / 1e9
    except ValueError as error:
        raise UsageError(f"--span {text}: {error}") from error
