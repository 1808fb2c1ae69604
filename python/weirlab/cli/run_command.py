"""`weir run`: runs a test or scenario and shows what came of it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.api import run_all
from weirlab.cli import completion
from weirlab.cli.notes import note_options, noted
from weirlab.cli.options import Whole, option
from weirlab.cli.scenario_words import scenario_options, secret_of, spec_of
from weirlab.errors import AssertionBroken, Interrupted, UsageError
from weirlab.record.set_ups import run_names
from weirlab.report import advice, assertion_table, cautions, charts_of, comparison_table, story
from weirlab.report.methods import method_results, method_tables
from weirlab.scenario import resolve
from weirlab.scenario.resolve import given_again
from weirlab.stats import Assertion, compare
from weirlab.ui import RunProgress, console, note, section, warn
from weirlab.worlds import datapaths, world_named, world_names
from weirlab.worlds.net import without_path

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun, ScenarioSpec
    from weirlab.worlds import Datapath


@click.command("run")
@click.argument("what", metavar="SCENARIO|TEST", shell_complete=completion.tests)
@scenario_options
@note_options
@option("--world", type=click.Choice(world_names()), default="sim", show_default=True)
@option(
    "--datapath",
    type=click.Choice(datapaths()),
    default="userspace",
    show_default=True,
    help="Who has the queues and lines of the world lab: Weir or the kernel's own disciplines.",
)
@option("--host", help="Server of the world net, on which `weir serve` runs.")
@option(
    "--auth",
    type=click.Path(path_type=Path),
    help="File with that server's secret.",
)
@option("--repeat", type=Whole(min=1), help="Runs of each set-up, each its own seed.")
@option("--out", type=click.Path(path_type=Path), help="Folder for records and charts.")
@option("--jobs", type=Whole(min=1), help="Runs at once.  [default: all processors]")
@option(
    "--assert",
    "assertions",
    multiple=True,
    metavar="ASSERTION",
    help="What must hold for every run, beside what the scenario asserts; exit code 1 if not. Such as "
    "'latency.p99 < latency.median[idle] + 10ms'.",
)
@option("--charts/--no-charts", default=True, show_default=True, help="Draw charts.")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    what: str,
    *,
    out: Path | None,
    jobs: int | None,
    charts: bool,
    as_json: bool,
    world: str,
    datapath: Datapath,
    assertions: tuple[str, ...],
    host: str | None,
    auth: Path | None,
    **words: Any,
) -> None:
    """Run a test (`weir list tests`) or a scenario file, once for each set-up that is compared.

    \b
    weir run rrul --link cable-20-8 --queue pfifo_fast --queue 'htb rate 95% fq_codel'
    weir run tcp_upload --link vdsl-100-40 --queue default --queue 'htb rate 95% fq_codel' --repeat 10
    weir run my-scenario.toml --out results

    The records stay in the folder given by --out; `weir show`, `compare` and `plot` read them.
    """  # noqa: D301 - \b keeps click from folding the examples
    place = world_named(world, datapath, host=host, secret=secret_of(auth))
    spec = spec_of(what, words)
    asserted = [Assertion(text) for text in (*spec.assertions, *assertions)]
    runs = [noted(one, words) for one in _runs(spec, host, words["links"], asserted)]
    folder = out or Path(f"weir-{runs[0].test.name}-{time.strftime('%Y%m%d-%H%M%S')}")
    with RunProgress(runs, quiet=as_json) as progress:
        records = run_all(runs, place, folder, jobs=jobs, watcher=progress)
    if not records:
        raise Interrupted("interrupted before anything was measured")
    comparisons = compare(records)
    if as_json:
        figures = [comparison.as_dict() for comparison in comparisons]
        outcomes = {str(record.path): [asdict(one.of(record)) for one in asserted] for record in records}
        shown = {"out": str(folder), "set_ups": figures} | ({"assertions": outcomes} if asserted else {})
        shown |= {"methods": {str(one.path): method_results(one) for one in records if one.methods.height}}
        click.echo(json.dumps(shown, indent=2))
    else:
        for text in cautions(records):
            warn(text)
        console.print(comparison_table(records, comparisons))
        console.print(story(comparisons))
        for text in advice(records):
            console.print(text)
        _tell_methods(records)
        if asserted:
            console.print(assertion_table(records, asserted))
    if charts:
        drawn = charts_of(records, folder / "charts", quiet=as_json)
        if not as_json:
            note(f"{_count(records, 'record')} in {folder}, {_count(drawn, 'chart')} in {folder / 'charts'}")
    elif not as_json:
        note(f"{_count(records, 'record')} in {folder}")
    _say_if_cut_short(records, expected=len(runs))
    broken = sum(not one.of(record).holds for one in asserted for record in records)
    if broken:
        raise AssertionBroken(f"{broken} of {len(asserted) * len(records)} assertions do not hold")


def _tell_methods(records: list[Record]) -> None:
    for record, name in zip(records, run_names(records), strict=True):
        if record.methods.height and len(records) > 1:
            section(name)
        for table in method_tables(record):
            console.print(table)


def _runs(
    spec: ScenarioSpec, host: str | None, links: Sequence[str], asserted: Sequence[Assertion]
) -> list[ResolvedRun]:
    """The runs; those over a real path have none of their own."""
    for text in given_again(spec):
        note(text)
    runs = resolve(spec)
    for one in runs:
        for assertion in asserted:
            assertion.check(one.scenario)
    if host is None:
        return runs
    if links:
        raise UsageError(f"link `{links[0]}`: the world net measures the path to `{host}` as it is")
    return [without_path(one, host) for one in runs]


def _count(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" if len(things) == 1 else f"{len(things)} {name}s"


def _say_if_cut_short(records: list[Record], *, expected: int) -> None:
    if len(records) < expected or not all(record.manifest.complete for record in records):
        raise Interrupted("interrupted: the figures are those of what was measured until then")
