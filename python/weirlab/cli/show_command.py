"""`weir show`: what stands in records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.cli.options import argument, option
from weirlab.cli.records import readable, told
from weirlab.record.configurations import IN_WORDS, shortened
from weirlab.record.differences import configuration_name
from weirlab.report import cautions, cut_short
from weirlab.report.figures import figures_of
from weirlab.report.methods import method_results
from weirlab.stats import summarise
from weirlab.ui import console, section, warn

if TYPE_CHECKING:
    from weirlab.record import Record


@click.command("show")
@argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(paths: tuple[Path, ...], *, as_json: bool) -> None:
    """Show what stands in records: the configuration, the flows, the round trips.

    \b
    weir show out/01-default
    weir show out --json

    RECORD is the folder of a record, a .weir file, or a folder with records below it.
    """  # noqa: D301 - \b keeps click from folding the examples
    with readable(paths) as records:
        if as_json:
            shown = [summarise(record).as_dict() | {"methods": method_results(record)} for record in records]
            click.echo(json.dumps(shown, indent=2))
            return
        for record in records:
            _show(record)


def _show(record: Record) -> None:
    manifest = record.manifest
    section(f"{record.path}")
    console.print(f"{manifest.title}, {shortened(configuration_name(record), IN_WORDS)}")
    console.print(_origin(record), style="dim")
    said = told(record)
    if said:
        console.print(said)
    for text in filter(None, [*cautions([record]), cut_short(record)]):
        warn(text)
    for shown in figures_of(record):
        console.print(shown)


def _origin(record: Record) -> str:
    """Origin of a record in a line: its world and seed, or the file of another tool that it was made of."""
    manifest = record.manifest
    of = manifest.imported
    if of is not None:
        version = f" {of.tool_version}" if of.tool_version else ""
        made = f"imported from {of.tool}{version}, test {of.test}, format {of.format}, `{of.file}`"
    else:
        made = f"world {manifest.world}, seed {manifest.seed}"
    parts = [made, f"started {manifest.started_at}", f"Weir {manifest.versions.get('weir', '?')}"]
    return ", ".join([*parts, *filter(None, [manifest.host.get("kernel", "")])])
