"""`weir report`: records as one page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from weirlab.cli.options import argument, option
from weirlab.cli.pages_in_browser import write_page
from weirlab.cli.plot_command import span_in
from weirlab.cli.records import readable_runs
from weirlab.errors import UsageError


@click.command("report")
@argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("weir-report.html"),
    show_default=True,
    help="File to write; one that is there is replaced.",
)
@option("--title", help="Title in place of the test's.")
@option("--span", help="The part of the time that is marked, with its figures, such as 35s..55s.")
@option("--open", "show", is_flag=True, help="Open the page in a browser.")
def command(paths: tuple[Path, ...], *, out: Path, title: str | None, span: str | None, show: bool) -> None:
    """Write records as one page for a browser: grade, charts, figures, configuration, and the raw data.

    \b
    weir report out/demo/cable-20-8
    weir report out/01-pfifo-fast out/02-fq-codel -o before-and-after.html

    The page is one file. It opens without a network, loads nothing from elsewhere, and has every sample
    within: its reader can zoom, compare, and save the record itself. Several records are also set beside each
    other.
    """  # noqa: D301 - \b keeps click from folding the examples
    if out.suffix.lower() not in {".html", ".htm"}:
        raise UsageError(f"--out {out}: a report is a page: name a file that ends in .html")
    span_s = None if span is None else span_in(span)
    with readable_runs(paths, baseline=True) as records:
        write_page(records, out, title=title, span_s=span_s, show=show)
