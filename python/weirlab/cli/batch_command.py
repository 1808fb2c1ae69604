"""`weir batch`: runs of several scenarios, in turn, resumed after a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.batches import carry_out, load_batch
from weirlab.batches.running import alone, missing
from weirlab.cli.comparison import tell, tell_differences
from weirlab.cli.options import Whole, argument, option
from weirlab.cli.verdicts import check_held, rules_without_baseline
from weirlab.errors import Interrupted, UsageError, counted
from weirlab.report import assertion_table
from weirlab.report.differences import narrow, unrepeated
from weirlab.stats import beside
from weirlab.ui import RunProgress, Table, console, note, section
from weirlab.worlds import check_all, world_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirlab.batches import Batch, Outcome
    from weirlab.cli.verdicts import Rules, Verdicts


@click.command("batch")
@argument("file", type=click.Path(path_type=Path), metavar="FILE")
@option("--out", type=click.Path(path_type=Path), help="Folder.  [default: FILE with .batch for .toml]")
@option("--dry-run", is_flag=True, help="Say what is run in which order, and do nothing.")
@option("--jobs", type=Whole(min=1), help="Runs of the simulator at once.  [default: all processors]")
@option("--json", "as_json", is_flag=True, help="Print what came of it as JSON, nothing else.")
def command(file: Path, *, out: Path | None, dry_run: bool, jobs: int | None, as_json: bool) -> None:
    """Run the scenarios of a file, configurations in turn, and keep the record of each run.

    \b
    weir batch routers.toml --dry-run
    weir batch routers.toml --out routers
    weir compare routers/01-rrul

    What the folder has already is not run again: Ctrl-C keeps what is done, and the same command goes on. A
    run that was cut short is made anew. Exit code 1 if something that a scenario asserts does not hold.
    docs/batch.md has the keys of the file.
    """  # noqa: D301 - \b keeps click from folding the examples
    batch = load_batch(file)
    for text in batch.remarks:
        note(text)
    rules = _rules(batch, file)
    folder = out or file.with_suffix(".batch")
    if dry_run:
        _tell_plan(batch, folder, as_json=as_json)
        return
    world = world_named(batch.spec.world, batch.spec.datapath)
    check_all(world, [step.run for step in batch.steps])
    with alone(folder):
        steps = missing(batch, folder)
        if not as_json and len(steps) < len(batch.steps):
            note(f"{len(batch.steps) - len(steps)} of {counted(len(batch.steps), 'run')} are there")
        if steps:
            runs = [step.run for step in steps]
            with RunProgress(runs, title=batch.name, quiet=as_json) as progress:
                outcome = carry_out(batch, folder, steps, jobs=jobs, watcher=progress, world=world)
        else:
            outcome = carry_out(batch, folder, steps, jobs=jobs, watcher=None, world=world)
    verdicts = {
        name: rules[name].verdicts(records, whole=not outcome.left)
        for name, records in outcome.records.items()
        if records
    }
    if as_json:
        click.echo(json.dumps(_as_json(outcome, verdicts, folder), indent=2))
    else:
        _tell(outcome, verdicts, folder)
    if outcome.left:
        raise Interrupted(f"interrupted: {counted(outcome.left, 'run')} left; the same command goes on")
    check_held([verdict for of_scenario in verdicts.values() for verdict in of_scenario.each])


def _rules(batch: Batch, file: Path) -> dict[str, Rules]:
    """What must hold for every run of each scenario, by its name."""
    rules = {}
    for number, (name, texts) in enumerate(batch.assertions.items(), 1):
        runs = [step.run for step in batch.steps if step.scenario == name] if texts else []
        try:
            rules[name] = rules_without_baseline(texts, runs, "batch")
        except UsageError as error:
            raise UsageError(f"`{file}`, scenario {number}: {error}") from error
    return rules


def _tell_plan(batch: Batch, folder: Path, *, as_json: bool) -> None:
    """The runs in their order, and how long they take."""
    rows = [
        {
            "record": str(step.folder),
            "queue": step.run.queue,
            "seed": step.run.seed,
            "duration_s": step.run.scenario["duration_ns"] / 1e9,
        }
        for step in batch.steps
    ]
    if as_json:
        click.echo(json.dumps({"out": str(folder), "world": batch.spec.world, "runs": rows}, indent=2))
        return
    table = Table(title=f"{batch.name}: {counted(len(rows), 'run')}, {batch.spec.order}")
    for heading in ("", "record", "queue", "seed"):
        table.add_column(heading, justify="right" if heading in ("", "seed") else "left")
    for number, row in enumerate(rows[:MAX_SHOWN], 1):
        table.add_row(str(number), str(row["record"]), str(row["queue"]), str(row["seed"]))
    console.print(table)
    if len(rows) > MAX_SHOWN:
        console.print(f"... and {len(rows) - MAX_SHOWN} more (--json has all)")
    console.print(f"{batch.duration_s:.0f} s {TIME_OF[batch.spec.world]}")


def _tell(outcome: Outcome, verdicts: Mapping[str, Verdicts], folder: Path) -> None:
    for name, records in outcome.records.items():
        if records:
            section(name)
            comparisons = beside(records)
            tell(records, comparisons, [*narrow(comparisons), *unrepeated(records, comparisons)])
            tell_differences(comparisons)
            if any(verdicts[name].outcomes):
                console.print(assertion_table(verdicts[name].runs, verdicts[name].outcomes))
    done = f"{counted(outcome.done, 'run')} made, {outcome.there} were there"
    note(f"{done}: records in {folder}")


def _as_json(outcome: Outcome, verdicts: Mapping[str, Verdicts], folder: Path) -> dict[str, Any]:
    scenarios = {
        name: [one.as_dict() for one in beside(records)]
        for name, records in outcome.records.items()
        if records
    }
    shown: dict[str, Any] = {
        "out": str(folder),
        "there": outcome.there,
        "done": outcome.done,
        "left": outcome.left,
        "scenarios": scenarios,
    }
    assertions = {
        path: found
        for name, of_scenario in verdicts.items()
        for path, found in of_scenario.by_record(outcome.records[name]).items()
        if found
    }
    return shown | ({"assertions": assertions} if assertions else {})


MAX_SHOWN = 200
"""Rows of the table of a plan."""
TIME_OF = {
    "sim": "simulated",
    "lab": "by the clock, and what starting and commands take",
    "kernel": "of virtual time, of which each takes about as long by the clock",
}
"""What the length of the runs of a world means."""
