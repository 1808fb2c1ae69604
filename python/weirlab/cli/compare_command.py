"""`weir compare`: records beside each other."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.cli.comparison import tell, tell_differences
from weirlab.cli.options import argument, option
from weirlab.cli.records import readable_runs, told
from weirlab.record.configurations import run_names
from weirlab.report import advice
from weirlab.report.differences import doubts
from weirlab.report.methods import comparison_of_methods, figures_of_methods
from weirlab.stats import beside
from weirlab.ui import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record


@click.command("compare")
@argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="A B...")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(paths: tuple[Path, ...], *, as_json: bool) -> None:
    """Set records beside each other; the first is the baseline of the factor.

    \b
    weir compare out
    weir compare before.weir after.weir

    A and B are folders of records, .weir files, or folders with records below them. Records that
    differ in nothing but the seed are repetitions of one configuration. The same run given twice counts once,
    and a run that was cut short stands beside the whole ones, not among them. A record that cannot be read is
    told and left out, unless it is the first: nothing else becomes the baseline.

    Of configurations with two or more repetitions it is said by how much they differ from the baseline, with
    95 % intervals: pairs of runs where both have the same seeds, and corrected for all comparisons at once
    (Holm).
    """  # noqa: D301 - \b keeps click from folding the examples
    with readable_runs(paths, baseline=True) as records:
        _compare(records, as_json=as_json)


def _compare(records: Sequence[Record], *, as_json: bool) -> None:
    comparisons = beside(records)
    if as_json:
        methods = figures_of_methods(records)
        shown = {
            name: {test: {figure: asdict(one) for figure, one in of.items()} for test, of in tests.items()}
            for name, tests in methods.items()
        }
        click.echo(
            json.dumps(
                [one.as_dict() | {"methods": shown.get(one.name, {})} for one in comparisons], indent=2
            )
        )
        return
    tell(records, comparisons, doubts(records, comparisons))
    if (table := comparison_of_methods(records)) is not None:
        console.print(table)
    tell_differences(comparisons)
    for text in advice(records):
        console.print(text)
    for record, name in zip(records, run_names(records), strict=True):
        said = told(record)
        if said:
            console.print(f"{name}: {said}" if len(records) > 1 else said)
