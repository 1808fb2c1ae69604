"""`weir plot`: charts of records."""

from __future__ import annotations

from pathlib import Path

import click

from weirlab.cli.options import option
from weirlab.plots import KINDS, draw
from weirlab.record import find_records
from weirlab.report import charts_of
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
    help="File to draw into, by its suffix .png, .svg or .pdf; for `all` a folder.",
)
@option("--title", help="Title in place of the test's.")
def command(paths: tuple[Path, ...], *, kind: str, out: Path | None, title: str | None) -> None:
    """Draw charts of records.

    \b
    three-plot  download, upload and latency of one run over time
    phases      throughput, pings and grades over the phases of one `weir test`
    cdf         distribution of latency, of one or several runs
    box         boxes of download, upload and latency, of several runs
    ping        pings over time with their averages
    windows     congestion windows over time
    shaper      a shaper's rate, pings and use of the line over time
    overlay     pings of two runs over each other: before and after
    """  # noqa: D301 - \b keeps click from folding the list
    records = [record for path in paths for record in find_records(path)]
    if kind == "all":
        drawn = charts_of(records, out or Path("charts"))
    else:
        drawn = [draw(kind, records, out or Path(f"{kind}.png"), title=title)]
    for path in drawn:
        console.print(str(path), soft_wrap=True)
