"""`weir export`: records for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from weirlab.cli.options import option
from weirlab.cli.records import readable
from weirlab.errors import UsageError
from weirlab.export import FORMATS, NAMES, export, planned
from weirlab.ui import console


@click.command("export")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write, by its suffix .weir, .flent.gz, .csv, .jsonl or .parquet; or a folder, with "
    "--format.",
)
@option("--format", "form", type=click.Choice(FORMATS), help="Format of the files in a folder.")
@option("--flent", is_flag=True, help="The same as --format flent.")
@option(
    "--table",
    type=click.Choice(NAMES),
    help="Which table as CSV, JSON lines or Parquet.  [default: runs; into a folder all that have a row]",
)
def command(paths: tuple[Path, ...], *, out: Path, form: str | None, flent: bool, table: str | None) -> None:
    """Write records for other programs: as .weir files, for Flent, or as tidy tables.

    \b
    weir export out/01-fq-codel --out run.weir
    weir export out --out figures.csv
    weir export out --out pings.parquet --table latency
    weir export out --out tables --format csv
    weir export out --out for-flent --flent

    A .weir file is the whole record in one file; `weir show`, `compare` and `plot` read it. A
    .flent.gz file is of Flent's format, version 4, for Flent itself: records of its tests can be written. The
    tables
    `runs`, `probes` and `flows` have the figures of `weir show`, a row a run, probe or flow; all others have
    the samples, with the names of probes and flows. What is there already is never replaced.
    """  # noqa: D301 - \b keeps click from folding the examples
    if flent and form not in (None, "flent"):
        raise UsageError(f"--flent and --format {form}: leave one of them out")
    form = "flent" if flent else form
    planned(out, form, table)
    with readable(paths, "exported") as records:
        for path in export(records, out, form, table):
            console.print(str(path), soft_wrap=True)
