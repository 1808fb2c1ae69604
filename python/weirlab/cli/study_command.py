"""`weir study`: holds the simulator against something."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from weirlab.api import run_all
from weirlab.errors import Interrupted, UsageError
from weirlab.report.linux_study import markdown, study_table, verdict
from weirlab.studies import STUDIES, linux
from weirlab.ui import RunProgress, console, note
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("study")
@click.argument("name", required=False)
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Runs of each.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this experiment; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to keep the records in.")
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at once.  [default: all processors]")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a Markdown table, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    name: str | None,
    *,
    seeds: int,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Hold the simulator against something; without a NAME, list the studies.

    \b
    weir study linux
    weir study linux --only A_codel --seeds 1
    """  # noqa: D301 - \b keeps click from folding the examples
    if name is None:
        _list(as_json=as_json)
        return
    if name not in STUDIES:
        raise UsageError(f"unknown study `{name}` (known: {', '.join(STUDIES)})")
    reference = linux.reference()
    experiments = linux.chosen(only, of=reference)
    if out is not None:
        results = _run(reference, experiments, seeds, jobs, out, quiet=as_json or as_markdown)
    else:
        with tempfile.TemporaryDirectory(prefix="weir-study-") as folder:
            results = _run(reference, experiments, seeds, jobs, Path(folder), quiet=as_json or as_markdown)
    if as_json:
        click.echo(json.dumps([one.as_dict() for one in results], indent=2))
    elif as_markdown:
        click.echo(markdown(results))
    else:
        console.print(study_table(results, kernel=reference.kernel))
        console.print(verdict(results))
        if out is not None:
            note(f"records in {out}")


def _run(  # noqa: PLR0913 - what was said on the line
    reference: linux.Reference,
    experiments: Sequence[linux.Experiment],
    seeds: int,
    jobs: int | None,
    out: Path,
    *,
    quiet: bool,
) -> list[linux.Result]:
    runs = [
        run
        for experiment in experiments
        if not linux.missing(experiment)
        for run in linux.runs_of(experiment, reference.families[experiment.family], seeds=seeds)
    ]
    records = []
    if runs:
        with RunProgress(runs, quiet=quiet) as progress:
            records = run_all(runs, world_named("sim"), out, jobs=jobs, watcher=progress)
        if len(records) < len(runs) or not all(record.manifest.complete for record in records):
            raise Interrupted("interrupted: a study is only worth something as a whole")
    return [
        linux.result(experiment, [record for record in records if record.label == experiment.name])
        for experiment in experiments
    ]


def _list(*, as_json: bool) -> None:
    if as_json:
        studies = [{"name": name, "summary": summary} for name, summary in STUDIES.items()]
        click.echo(json.dumps(studies, indent=2))
        return
    table = Table(title="Studies (`weir study NAME` runs one)")
    table.add_column("name", no_wrap=True)
    table.add_column("what it asks")
    for name, summary in STUDIES.items():
        table.add_row(name, summary)
    console.print(table)
