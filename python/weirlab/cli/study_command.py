"""`weir study`: holds the simulator against something."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.api import run_all
from weirlab.cli import completion, study_gallery, study_shapers, study_speedtest, study_thesis
from weirlab.cli.options import Whole, option, renamed
from weirlab.errors import Interrupted, UsageError
from weirlab.report.agreement import agreement_verdict, matrix_markdown, matrix_table
from weirlab.report.linux_study import markdown, study_table, verdict
from weirlab.scenario.units import time_ns
from weirlab.studies import STUDIES, agreement, gallery, linux
from weirlab.ui import RunProgress, console, note, warn
from weirlab.ui.table import Table
from weirlab.worlds import world_named
from weirlab.worlds.sides import SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.sides import Side


@click.command("study")
@click.argument("name", required=False, shell_complete=completion.studies)
@option("--list", "as_list", is_flag=True, help="List the studies, as without a NAME.")
@option(
    "--world",
    type=click.Choice(["sim", "lab"]),
    default="sim",
    show_default=True,
    help="Where an experiment of the gallery, `cfosspeed` or `speedtest-aqm` runs.",
)
@option(
    "--repeat",
    type=Whole(min=1),
    help="Runs of each, each its own seed.  [default: in the simulator linux 10, thesis 20, speedtest-aqm "
    "3 to 10, others 5; in the lab 1]",
)
@option(
    "--lab-repeat",
    type=Whole(min=1),
    help="Runs of each in the lab, for studies that run in both worlds: agreement, thesis --lab.  "
    "[default: 1]",
)
@renamed("--seeds", "--repeat")
@option("--full", is_flag=True, help="For speedtest-aqm: the whole grid, 10 runs of each cell; a day.")
@option("--lab", is_flag=True, help="For thesis: selected rows also in the lab, in real time.")
@option("--idle", metavar="TIME", help="For cfosspeed: length of the phase without load.  [default: 60s]")
@option("--load", metavar="TIME", help="For cfosspeed: length of the phase with load.  [default: 60s]")
@renamed("--span", "--idle and --load")
@option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Only this experiment; may be repeated. For agreement and speedtest-aqm a pattern, such as "
    "'20/8 20ms *' or '100mbit 20ms * ndt7'; for thesis the beginning of a name, such as 'A/100'.",
)
@option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to keep the records in; agreement and speedtest-aqm go on with what is there; "
    "thesis and speedtest-aqm write report and charts there.  [default: none, for agreement "
    "weir-agreement, for thesis weir-thesis]",
)
@option("--jobs", type=Whole(min=1), help="Runs at once.  [default: all processors]")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
@option("--markdown", "as_markdown", is_flag=True, help="Print a Markdown table, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    name: str | None,
    *,
    as_list: bool,
    world: str,
    repeat: int | None,
    lab_repeat: int | None,
    full: bool,
    lab: bool,
    idle: str | None,
    load: str | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Run a study; without a NAME, list them. `all` runs the whole gallery of published experiments.

    \b
    weir study linux
    weir study linux --only A_codel --repeat 1
    weir study thesis --repeat 20 --out thesis
    weir study agreement --only '20/8 20ms * cubic *'
    weir study yurtlab --out yurtlab
    weir study speedtest-aqm --out speedtest
    weir study all --out gallery
    """  # noqa: D301 - \b keeps click from folding the examples
    if name is None or as_list:
        _list(as_json=as_json)
        return
    if as_json and as_markdown:
        raise UsageError("--json and --markdown: only one of them can be printed; leave one out")
    _check(name, lab=lab, world=world, lab_repeat=lab_repeat, full=full)
    spans = {"idle": idle, "load": load}
    for option_name, span in spans.items():
        if span is not None and name != "cfosspeed":
            raise UsageError(f"--{option_name} {span}: only study `cfosspeed` has it; `{name}` has not")
    if name == study_speedtest.NAME:
        study_speedtest.run(
            study_speedtest.Wanted(
                only=only,
                world=world,
                full=full,
                repetitions=repeat,
                jobs=jobs,
                out=out,
                as_json=as_json,
                as_markdown=as_markdown,
            )
        )
        return
    if name == "all" or name in gallery.NAMES:
        study_gallery.run(
            gallery.NAMES if name == "all" else [name],
            world=world,
            repeat=repeat,
            jobs=jobs,
            out=out,
            as_json=as_json,
            as_markdown=as_markdown,
        )
        return
    shape = _Shape(as_json=as_json, as_markdown=as_markdown)
    if name == "agreement":
        _agreement(
            only, repeat or SIDES["sim"].runs(1), lab_repeat or 1, jobs, out or Path("weir-agreement"), shape
        )
        return
    if name == "thesis":
        study_thesis.run(
            only,
            seeds=repeat or 20,
            lab=lab,
            repeat=lab_repeat or 1,
            jobs=jobs,
            out=out or Path("weir-thesis"),
            as_json=as_json,
            as_markdown=as_markdown,
        )
        return
    if name in study_shapers.NAMES:
        study_shapers.run(
            name,
            study_shapers.Wanted(
                only=only,
                world=world,
                spans_ns={key: _span(key, one) for key, one in spans.items() if one is not None},
                seeds=repeat or (5 if world == "sim" else 1),
                jobs=jobs,
                out=out,
                as_json=as_json,
                as_markdown=as_markdown,
            ),
        )
        return
    _linux(only, repeat or 10, jobs, out, shape)


def _check(name: str, *, lab: bool, world: str, lab_repeat: int | None, full: bool) -> None:
    """Refuses words that the study of that name does not have."""
    if name not in STUDIES and name != "all":
        raise UsageError(f"unknown study `{name}` (known: {', '.join(STUDIES)}, all)")
    if lab and name != "thesis":
        raise UsageError(f"--lab: only study `thesis` has it; `{name}` has not")
    if full and name != study_speedtest.NAME:
        raise UsageError(f"--full: only study `{study_speedtest.NAME}` has it; `{name}` has not")
    if lab_repeat is not None and name != "agreement" and not (name == "thesis" and lab):
        raise UsageError(
            f"--lab-repeat {lab_repeat}: it is for studies that run in both worlds, `agreement` and `thesis` "
            "with --lab; write --repeat"
        )
    if name in {study_speedtest.NAME, "all", "cfosspeed"} or name in gallery.NAMES:
        return
    if world != "sim":
        raise UsageError(
            f"--world {world} is for experiments of the gallery ({', '.join(gallery.NAMES)}), `cfosspeed` "
            "and `speedtest-aqm`"
        )


def _span(name: str, written: str) -> int:
    try:
        span_ns = time_ns(written)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from error
    if span_ns < MIN_SPAN_NS:
        raise UsageError(f"--{name} {written}: write 2s or more")
    return span_ns


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """As what the outcome is printed."""

    as_json: bool
    as_markdown: bool

    @property
    def quiet(self) -> bool:
        return self.as_json or self.as_markdown


def _agreement(  # noqa: PLR0913, PLR0917 - what was said on the line
    only: Sequence[str], seeds: int, repeat: int, jobs: int | None, out: Path, shape: _Shape
) -> None:
    wanted = agreement.chosen(only)
    found = {}
    for side, runs in ((SIDES["sim"], seeds), (SIDES["lab"], repeat)):

        def watching(todo: Sequence[ResolvedRun], side: Side = side) -> RunProgress:
            return RunProgress(todo, title=f"Agreement ({side.name})", quiet=shape.quiet)

        found[side.name] = agreement.measure(wanted, side, out, repeat=runs, jobs=jobs, watching=watching)
    results = agreement.agreements(wanted, (SIDES["sim"], found["sim"]), (SIDES["lab"], found["lab"]))
    if shape.as_json:
        click.echo(json.dumps([one.as_dict() for one in results], indent=2))
    elif shape.as_markdown:
        click.echo(matrix_markdown(results))
    else:
        for text in dict.fromkeys(f"{one.name}: {text}" for one in results for text in one.warnings):
            warn(text)
        console.print(matrix_table(results))
        console.print(agreement_verdict(results))
        note(f"records in {out}")


def _linux(only: Sequence[str], seeds: int, jobs: int | None, out: Path | None, shape: _Shape) -> None:
    reference = linux.reference()
    experiments = linux.chosen(only, of=reference)
    if out is not None:
        results = _run(reference, experiments, seeds, jobs, out, quiet=shape.quiet)
    else:
        with tempfile.TemporaryDirectory(prefix="weir-study-") as folder:
            results = _run(reference, experiments, seeds, jobs, Path(folder), quiet=shape.quiet)
    if shape.as_json:
        click.echo(json.dumps([one.as_dict() for one in results], indent=2))
    elif shape.as_markdown:
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
        linux.result(
            experiment,
            reference.families[experiment.family],
            [record for record in records if record.label == experiment.name],
        )
        for experiment in experiments
    ]


MIN_SPAN_NS = 2_000_000_000
"""Ten of the pings that the report sent, every 200 ms."""


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
