"""`weir show`: what stands in records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.cli.options import argument, option
from weirlab.cli.records import readable, told
from weirlab.record.differences import configuration_name, finds_its_loads
from weirlab.report import (
    cautions,
    cut_short,
    flow_table,
    increase_line,
    latency_table,
    load_of,
    quality_table,
)
from weirlab.report.applications import application_tables, rrul_table
from weirlab.report.methods import method_results, method_tables, method_verdicts
from weirlab.report.tables import udp_table
from weirlab.stats import summarise
from weirlab.stats.capacity import share_remarks
from weirlab.ui import console, section, warn

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.ui.table import Table


@click.command("show")
@argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(paths: tuple[Path, ...], *, as_json: bool) -> None:
    """Show what stands in records: the configuration, the flows, the round trips.

    RECORD is the folder of a record, a .weir file, or a folder with records below it.
    """
    with readable(paths) as records:
        if as_json:
            shown = [summarise(record).as_dict() | {"methods": method_results(record)} for record in records]
            click.echo(json.dumps(shown, indent=2))
            return
        for record in records:
            _show(record)


def _show(record: Record) -> None:
    manifest = record.manifest
    summary = summarise(record)
    section(f"{record.path}")
    console.print(f"{manifest.title}, {configuration_name(record)}")
    console.print(_origin(record), style="dim")
    said = told(record)
    if said:
        console.print(said)
    for text in filter(None, [*cautions([record]), cut_short(record)]):
        warn(text)
    during = load_of(record)
    _print_tables(quality_table(record), _line_table(record))
    if ungraded := _why_ungraded(record):
        console.print(ungraded, markup=False, style="bold")
    _print_tables(
        flow_table(summary, during) if summary.down or summary.up else None,
        udp_table(summary),
        *application_tables(summary),
        rrul_table(record),
    )
    if summary.latency.sent or summary.latency.idle is not None:
        console.print(latency_table(summary, during))
    increase = increase_line(summary.latency)
    for text in filter(None, [increase, *summary.remarks, *share_remarks(record)]):
        console.print(text, markup=False)
    for table in method_tables(record):
        console.print(table)
    for line in method_verdicts(record):
        console.print(line)


def _line_table(record: Record) -> Table | None:
    """What `weir test` showed of a record of its own; None of any other."""
    if not finds_its_loads(record):
        return None
    from weirlab.report.scores import line_table  # noqa: PLC0415 - few records are of it

    return line_table(record)


def _why_ungraded(record: Record) -> str | None:
    """Why a record of `weir test` has no grade; None if it has one, and of any other."""
    if not finds_its_loads(record):
        return None
    from weirlab.report.scores import why_ungraded  # noqa: PLC0415 - few records are of it

    return why_ungraded(record)


def _print_tables(*tables: Table | None) -> None:
    for table in tables:
        if table is not None:
            console.print(table)


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
