"""`weir report`: records as one page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from weirlab.cli.options import option
from weirlab.cli.records import readable_runs
from weirlab.errors import UsageError
from weirlab.ui import note
from weirlab.viewer import report_page
from weirlab.writing import replaced


@click.command("report")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("weir-report.html"),
    show_default=True,
    help="File to write; one that is there is replaced.",
)
@option("--title", help="Title in place of the test's.")
def command(paths: tuple[Path, ...], *, out: Path, title: str | None) -> None:
    """Write records as one page for a browser: grade, charts, figures, set-up, and the raw data.

    \b
    weir report out/demo/cable-20-8
    weir report out/01-pfifo-fast out/02-fq-codel -o before-and-after.html

    The page is one file. It opens without a network, loads nothing from elsewhere, and has every sample
    within: its reader can zoom, compare, and save the record itself. Several records are also set beside each
    other.
    """  # noqa: D301 - \b keeps click from folding the examples
    if out.suffix.lower() not in {".html", ".htm"}:
        raise UsageError(f"--out {out}: a report is a page: name a file that ends in .html")
    with readable_runs(paths) as records:
        if len(records) > MAX_RECORDS:
            raise UsageError(f"{len(records)} records are too many for one page: give {MAX_RECORDS} or fewer")
        content = report_page(records, title=title)
        replaced(out, lambda part: part.write_text(content, encoding="utf-8"))
        note(f"{len(records)} record{'s' * (len(records) > 1)} in {out}, {len(content) / 1e6:.1f} MB")


MAX_RECORDS = 48
"""More lines than this nobody tells apart in one chart."""
