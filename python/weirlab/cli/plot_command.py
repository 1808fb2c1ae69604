"""`weir plot`: charts of records."""

from __future__ import annotations

from pathlib import Path

import click

from weirlab.cli.options import option
from weirlab.cli.records import readable_runs
from weirlab.errors import UsageError
from weirlab.plots import FORMATS, KINDS, SPANNED, check, draw, format_of
from weirlab.report import charts_of
from weirlab.scenario.units import time_ns
from weirlab.ui import console


@click.command("plot")
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
    "--span", metavar="FROM..TO", help="For windows: the part of the time that is drawn, such as 35s..55s."
)
def command(
    paths: tuple[Path, ...], *, kind: str, out: Path | None, title: str | None, span: str | None
) -> None:
    """Draw charts of records.

    \b
    three-plot  download, upload and latency of one run over time
    phases      throughput, pings and grades over the phases of one `weir test`
    cdf         distribution of latency, of one or several runs
    box         boxes of download, upload and latency, of several runs
    ping        pings over time with their averages
    windows     congestion windows over time
    shaper      a shaper's rate, pings and use of the line over time
    overlay     pings of several set-ups over each other: before and after
    """  # noqa: D301 - \b keeps click from folding the list
    span_s = None if span is None else _span(span)
    if kind == "all":
        _check_folder(out)
        if span is not None:
            raise UsageError(f"--span {span}: it belongs to --kind {SPANNED}")
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


def _span(text: str) -> tuple[float, float]:
    """The seconds of `35s..55s`."""
    first, dots, last = text.partition("..")
    if not dots:
        raise UsageError(f"--span {text}: write where it begins and ends, such as 35s..55s")
    try:
        return time_ns(first) / 1e9, time_ns(last) / 1e9
    except ValueError as error:
        raise UsageError(f"--span {text}: {error}") from error
