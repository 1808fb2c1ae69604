"""What `weir run` shows when its runs have ended: figures, charts, and whether assertions hold.

It is loaded while they go on: see `run_command`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from weirlab.cli.comparison import tell
from weirlab.cli.verdicts import check_held, write_junit
from weirlab.errors import counted
from weirlab.record.configurations import run_names
from weirlab.record.places import CHARTS
from weirlab.report import advice, assertion_table
from weirlab.report.differences import narrow
from weirlab.report.methods import method_results, method_tables
from weirlab.stats import beside
from weirlab.ui import console, note, section

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.cli.verdicts import Verdicts
    from weirlab.errors import Interrupted
    from weirlab.record import Record

__all__ = ["judge", "open_page", "show"]


def show(records: list[Record], verdicts: Verdicts, folder: Path, *, charts: bool, as_json: bool) -> None:
    """Prints the figures, draws charts of them, and says where all that is."""
    if as_json:
        click.echo(json.dumps(_as_json(records, verdicts, folder), indent=2))
    else:
        _tell(records, verdicts)
    there = f"{counted(len(records), 'record')} in {folder}"
    if charts:
        from weirlab.report import charts_of  # noqa: PLC0415 - only where they are drawn

        drawn = charts_of(records, folder / CHARTS, quiet=as_json)
        there += f", {counted(len(drawn), 'chart')} in {folder / 'charts'}"
    if not as_json:
        note(there)
        if any(one.columns("udp").height or one.columns("transfers").height for one in records):
            note(f"each call, UDP stream and application: weir show {folder}")


def judge(verdicts: Verdicts, junit: Path | None, interrupted: Interrupted | None) -> None:
    """Writes what became of the assertions, if that is wanted, and fails if one does not hold.

    Raises:
        Interrupted: if the runs were, whatever holds.
        AssertionBroken: if one does not hold.
    """
    found = verdicts.each
    if junit is not None:
        write_junit(found, junit, None if interrupted is None else str(interrupted))
    if interrupted is not None:
        raise interrupted
    check_held(found)


def open_page(records: list[Record], folder: Path) -> None:
    """Opens the page of the runs; of more than one page holds says how they are looked at instead."""
    from weirlab.cli.pages_in_browser import write_page  # noqa: PLC0415 - only --open needs it
    from weirlab.viewer import MAX_RECORDS  # noqa: PLC0415

    if len(records) > MAX_RECORDS:
        note(f"--open: {len(records)} records are too many for one page: weir ui {folder}")
    else:
        write_page(records, folder / "report.html", show=True)


def _as_json(records: list[Record], verdicts: Verdicts, folder: Path) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "out": str(folder),
        "configurations": [one.as_dict() for one in beside(records)],
    }
    if any(verdicts.outcomes):
        shown["assertions"] = verdicts.by_record(records)
    if verdicts.compared:
        shown["baseline"] = [asdict(one) for one in verdicts.compared]
    return shown | {
        "methods": {str(one.path): method_results(one) for one in records if one.columns("method").height}
    }


def _tell(records: list[Record], verdicts: Verdicts) -> None:
    comparisons = beside(records)
    tell(records, comparisons, narrow(comparisons))
    for text in advice(records):
        console.print(text)
    _tell_methods(records)
    if any(verdicts.outcomes):
        console.print(assertion_table(verdicts.runs, verdicts.outcomes))
    for one in verdicts.compared:
        state = "holds" if one.holds else "broken"
        console.print(f"{one.of}: {one.rule}: {state} ({one.found})", markup=False)


def _tell_methods(records: list[Record]) -> None:
    for record, name in zip(records, run_names(records), strict=True):
        if record.columns("method").height and len(records) > 1:
            section(name)
        for table in method_tables(record):
            console.print(table)
