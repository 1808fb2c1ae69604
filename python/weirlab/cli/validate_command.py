"""`weir validate`: one scenario in several worlds, and whether they agree."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.api import run_all
from weirlab.cli import completion
from weirlab.cli.options import Whole, argument, option
from weirlab.cli.scenario_words import naming_options, scenario_options, spec_of
from weirlab.cli.verdicts import Verdicts, check_held, rules_without_baseline
from weirlab.errors import Interrupted
from weirlab.record.configurations import configurations, slug
from weirlab.record.places import CHARTS
from weirlab.report import assertion_table
from weirlab.report.agreement import agreement_markdown, agreement_table, agreement_verdict
from weirlab.report.findings import line
from weirlab.scenario import resolve
from weirlab.scenario.resolving import remarks
from weirlab.stats import Agreement, agreement
from weirlab.ui import RunProgress, console, note, warn
from weirlab.worlds import check_all
from weirlab.worlds.sides import SIDES, Side, names_of, sides_named, usual_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.cli.verdicts import Rules
    from weirlab.record import Record
    from weirlab.scenario import ScenarioSpec
    from weirlab.worlds import World


@click.command("validate")
@argument("what", metavar="SCENARIO|TEST", shell_complete=completion.tests)
@scenario_options
@option(
    "--worlds",
    metavar="A,B",
    help=f"Worlds to compare, of {', '.join(SIDES)}; the last one is what the others are held against.  "
    "[default: sim, lab, and kernel-path if it can run it]",
)
@option("--repeat", type=Whole(min=1), help="Runs of each configuration in a live world.  [default: 1]")
@option("--out", type=click.Path(path_type=Path), help="Folder for records and charts.")
@option("--jobs", type=Whole(min=1), help="Runs at once.  [default: all processors]")
@option("--charts/--no-charts", default=True, show_default=True, help="Draw charts.")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
@option("--markdown", "as_markdown", is_flag=True, help="Print Markdown tables, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    what: str,
    *,
    worlds: str | None,
    out: Path | None,
    jobs: int | None,
    charts: bool,
    as_json: bool,
    as_markdown: bool,
    **words: Any,
) -> None:
    """Run one scenario in several worlds and say where they agree.

    \b
    weir validate tcp_download --link vdsl-100-40 --load 10s
    weir validate rrul_be --queue pfifo --queue 'htb rate 95% fq_codel' --load 10s --repeat 3
    weir validate rrul_be --worlds sim,kernel --queue 'cake bandwidth 95%' --load 10s --repeat 3

    The simulator runs with at least five seeds. Exit code 1 if a goal is missed by more than seeds scatter,
    or something that the scenario asserts does not hold for a run.
    """  # noqa: D301 - \b keeps click from folding the examples
    spec = spec_of(what, words)
    for text in remarks(spec):
        note(text)
    quiet = as_json or as_markdown
    world_of = _worlds()
    with naming_options(words):
        sides = _sides(worlds, spec, world_of, quiet=quiet)
        _check(sides, spec, world_of)
    rules = rules_without_baseline(spec.assertions, resolve(spec), "validate")
    folder = out or Path(f"weir-validate-{time.strftime('%Y%m%d-%H%M%S')}")
    records = {
        side.name: _run(side, spec, world_of(side), folder / side.name, jobs, quiet=quiet) for side in sides
    }
    found, verdicts = _agreements(sides, records), _verdicts(rules, records)
    drawn = _charts(records, folder / CHARTS) if charts else []
    if as_json:
        figures = [one.as_dict() for one in found]
        shown: dict[str, Any] = {"out": str(folder), "configurations": figures}
        if verdicts.each:
            shown["assertions"] = verdicts.by_record([one for of_side in records.values() for one in of_side])
        click.echo(json.dumps(shown, indent=2))
    elif as_markdown:
        tables = [agreement_markdown(one) for one in found]
        if verdicts.each:
            tables.append(_markdown(verdicts))
        click.echo("\n\n".join(tables))
    else:
        for text in dict.fromkeys(text for one in found for text in one.warnings):
            warn(text)
        for one in found:
            console.print(agreement_table(one))
        console.print(agreement_verdict(found))
        if verdicts.each:
            console.print(assertion_table(verdicts.runs, verdicts.outcomes))
        note(f"records of {names_of(sides)} in {folder}, {len(drawn)} charts")
    check_held(verdicts.each)
    if not all(one.agrees for one in found):
        raise SystemExit(1)


def _worlds() -> Callable[[Side], World]:
    """The world of each side, made once: what it was asked it is not asked again."""
    made: dict[str, World] = {}

    def world_of(side: Side) -> World:
        if side.name not in made:
            made[side.name] = side.world()
        return made[side.name]

    return world_of


def _sides(
    worlds: str | None, spec: ScenarioSpec, world_of: Callable[[Side], World], *, quiet: bool
) -> list[Side]:
    if worlds is not None:
        return sides_named(worlds)
    sides, without_kernel = usual_sides(resolve(spec), world_of)
    if without_kernel and not quiet:
        note(f"without the kernel's own queues: {without_kernel}")
    return sides


def _check(sides: Sequence[Side], spec: ScenarioSpec, world_of: Callable[[Side], World]) -> None:
    """Refuses what one of the sides cannot run, before another one has run it for long.

    Raises:
        UsageError: one sentence about the first thing that cannot be run.
    """
    runs = resolve(spec.model_copy(update={"repeat": 1}))
    for side in sides:
        check_all(world_of(side), runs)


def _run(  # noqa: PLR0913 - what is run, where, and what is said of it
    side: Side, spec: ScenarioSpec, world: World, folder: Path, jobs: int | None, *, quiet: bool
) -> list[Record]:
    runs = resolve(spec.model_copy(update={"repeat": side.runs(spec.repeat)}))
    with RunProgress(runs, title=f"{runs[0].test.title} ({side.name})", quiet=quiet) as progress:
        records = run_all(runs, world, folder, jobs=jobs, watcher=progress)
    if len(records) < len(runs) or not all(record.manifest.complete for record in records):
        raise Interrupted("interrupted: worlds can only be compared over whole runs")
    return records


def _verdicts(rules: Rules, records: Mapping[str, Sequence[Record]]) -> Verdicts:
    """Whether what the scenario asserts holds for the runs of all sides, each named by its side too."""
    of_sides = {side: rules.verdicts(of_side, whole=True) for side, of_side in records.items()}
    return Verdicts(
        runs=[f"{side} · {run}" for side, one in of_sides.items() for run in one.runs],
        outcomes=[outcomes for one in of_sides.values() for outcomes in one.outcomes],
        compared=[],
    )


def _markdown(verdicts: Verdicts) -> str:
    """What became of assertions, in Markdown: a row for each and each run."""
    rows = [(one.of, f"`{one.rule}`", one.found, "holds" if one.holds else "broken") for one in verdicts.each]
    return "\n".join(map(line, [("run", "assertion", "figures", ""), ["---"] * 4, *rows]))


def _agreements(sides: Sequence[Side], records: Mapping[str, Sequence[Record]]) -> list[Agreement]:
    reference = sides[-1].name
    found = []
    for name, theirs in _by_configuration(records[reference]).items():
        for side in sides[:-1]:
            ours = _by_configuration(records[side.name])[name]
            found.append(agreement(name, (side.name, ours), (reference, theirs)))
    return found


def _charts(records: Mapping[str, Sequence[Record]], folder: Path) -> list[Path]:
    """The distribution of the loaded pings of all sides, one chart a configuration."""
    from weirlab.plots import draw  # noqa: PLC0415 - loads Matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    of_all: dict[str, list[Record]] = {}
    for of_side in records.values():
        for name, of_configuration in _by_configuration(of_side).items():
            of_all.setdefault(name, []).extend(of_configuration)
    for number, (name, several) in enumerate(of_all.items(), start=1):
        if all(record.latency["rtt_ns"].count() for record in several):
            target = folder / f"cdf-{number:02d}-{slug(name)}.png"
            drawn.append(draw("cdf", several, target))
    return drawn


def _by_configuration(records: Sequence[Record]) -> dict[str, list[Record]]:
    return {one.name: one.records for one in configurations(records)}
