"""`weir sweep`: varies a scenario over axes, keeps what came of it in a store, and shows that."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from weirlab.cli.commands import Commands
from weirlab.cli.options import OneOf, Whole, argument, option
from weirlab.errors import Interrupted, UsageError, WeirError, counted
from weirlab.sweeps.charts import KINDS, draw, usual_kind
from weirlab.sweeps.charts.asked import Asked
from weirlab.sweeps.cluster import cluster_of
from weirlab.sweeps.estimate import Estimate, estimate
from weirlab.sweeps.plan import load_plan
from weirlab.sweeps.runs import sweep_of
from weirlab.sweeps.shown import FIGURES, alike, grouped, of_newest, shown_columns
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import Outcome, carry_out
from weirlab.ui import CountProgress, Table, console, note, waiting, warn
from weirlab.ui.numbers import four_digits

if TYPE_CHECKING:
    import polars as pl


class _Sweeps(Commands):
    """A group in which the name of a plan stands for the command `run`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; `run` if it is none."""
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return super().resolve_command(ctx, ["run", *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the line; options in front of a plan are those of `run`."""
        if args and args[0].startswith("-") and not set(args) & {*ctx.help_option_names, *self.commands}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("sweep", cls=_Sweeps)
def command() -> None:
    """Run a scenario at many points of a plan, and keep a row for each run in a store.

    \b
    weir sweep plan.toml --dry-run
    weir sweep plan.toml --out rates.sweep
    weir sweep show rates.sweep
    weir sweep plot rates.sweep --kind lines
    weir sweep compact rates.sweep

    What the store has already is not run again: an interrupted or extended sweep does what is missing.
    `weir sweep run --help` lists the options of a sweep.
    """  # noqa: D301 - \b keeps click from folding the examples


@command.command("run")
@argument("plan", type=click.Path(path_type=Path), metavar="PLAN")
@option("--out", metavar="PATH", help="Store: a folder or a URL.  [default: PLAN with .sweep for .toml]")
@option("--dry-run", is_flag=True, help="Say what it will take and do nothing.")
@option("--jobs", type=Whole(min=1), help="Runs at once.  [default: all processors]")
@option("--scheduler", metavar="ADDRESS", help="Dask cluster that does it, such as tcp://HOST:8786.")
@option("--cluster", type=Whole(min=1), help="Start a Dask cluster here, of so many worker processes.")
@option("--retry", is_flag=True, help="Do runs again that failed.")
@option("--json", "as_json", is_flag=True, help="Print what came of it as JSON, nothing else.")
def run(  # noqa: PLR0913 - one word each on the command line
    plan: Path,
    *,
    out: str | None,
    dry_run: bool,
    jobs: int | None,
    scheduler: str | None,
    cluster: int | None,
    retry: bool,
    as_json: bool,
) -> None:
    """Run what the store does not have of a plan.

    \b
    weir sweep run plan.toml
    weir sweep run plan.toml --dry-run

    PLAN is the file of a scenario with a table `sweep`: docs/sweep.md. A store is a folder, or lies in
    an object store: s3://BUCKET/NAME or gs://BUCKET/NAME.
    """  # noqa: D301 - \b keeps click from folding the examples
    many = cluster_of(scheduler, cluster, jobs)
    said = load_plan(plan)
    place = out or str(plan.with_suffix(".sweep"))
    with waiting("resolving points", quiet=as_json):
        sweep = sweep_of(said)
    for text in sweep.remarks:
        note(text)
    if dry_run:
        with waiting("estimating", quiet=as_json):
            found = estimate(sweep, Store.found(place), retry=retry)
        _tell_estimate(found, as_json=as_json)
        return
    store = Store.made(place)
    with CountProgress(said.scenario.get("name") or plan.stem, quiet=as_json) as progress:
        outcome = carry_out(sweep, store, jobs=jobs, cluster=many, retry=retry, watcher=progress)
    if as_json:
        click.echo(json.dumps({"store": place, **asdict(outcome)}, indent=2))
    else:
        _tell_outcome(outcome, place)
    if outcome.interrupted:
        raise Interrupted(f"interrupted: {counted(outcome.left, 'run')} left; the same command goes on")
    if outcome.failure is not None:
        again = ", `--retry` does these again" if outcome.failed_before else ""
        raise WeirError(f"{outcome.failure}: `weir sweep show {place}`{again}")


def _warn_alike(rows: pl.LazyFrame, store: Store) -> None:
    """Warns of runs that are no repetitions of each other, though they stand at one point."""
    if same := alike(rows, store.axes()):
        warn(
            f"{counted(same, 'run')} stand at a point where another has the same seed: they are of plans "
            "that differ in more than the axes, and no repetitions of each other"
        )


@command.command("show")
@argument("place", metavar="STORE")
@option("--by", multiple=True, metavar="COLUMN", help="Axis by which runs are joined; repeat for several.")
@option(
    "--figure", "figures", multiple=True, metavar="COLUMN", help="Column that is shown; repeat for several."
)
@option("--json", "as_json", is_flag=True, help="Print the rows as JSON, nothing else.")
def show(place: str, *, by: tuple[str, ...], figures: tuple[str, ...], as_json: bool) -> None:
    """Show what stands in a store: means over the runs of each point, or of each value of the axes --by.

    \b
    weir sweep show plan.sweep
    weir sweep show plan.sweep --by queue

    Runs of another version of Weir than that which ran last are left out, and counted.
    """  # noqa: D301 - \b keeps click from folding the examples
    store = Store.opened(place)
    rows, newest, others = of_newest(store.collected().lazy())
    if others:
        warn(f"{counted(others, 'run')} of other versions of Weir than {newest} left out: column `weir`")
    _warn_alike(rows, store)
    axes, shown = shown_columns(store, by, figures or FIGURES)
    points = store.axes()
    groups = grouped(rows, axes, shown, points=points)
    if as_json:
        click.echo(json.dumps({"axes": store.axes(), "rows": groups.to_dicts()}, indent=2))
        return
    if groups.height > MAX_SHOWN and not by:
        for axis in axes:
            console.print(
                _table(grouped(rows, [axis], shown, points=points), [axis], f"by {axis}, over all else")
            )
        note(f"{groups.height} points: `--by COLUMN` joins others, `--json` has all")
    else:
        what = "group" if by else "point"
        console.print(_table(groups, axes, f"{counted(groups.height, what)} in {place}"))
    _tell_failures(rows)


@command.command("plot")
@argument("place", metavar="STORE")
@option(
    "--kind",
    type=OneOf([*KINDS]),
    help="Which chart.  [default: heat of two axes that vary, lines of one of numbers, else pareto]",
)
@option("--figure", default=Asked.figure, show_default=True, metavar="COLUMN", help="Figure that is shown.")
@option(
    "--against",
    default=Asked.against,
    show_default=True,
    metavar="COLUMN",
    help="For pareto: figure that should be high where the other is low.",
)
@option("--x", metavar="COLUMN", help="Axis from left to right.  [default: the first that fits]")
@option("--by", metavar="COLUMN", help="Axis with a row, line or colour for each value.  [default: the next]")
@option("--panels", metavar="COLUMN", help="Axis with a panel for each value.")
@option("--title", help="Title in place of the chart's own.")
@option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to draw into, by its suffix .png, .svg or .pdf.  [default: KIND.png]",
)
def plot(place: str, *, kind: str | None, out: Path | None, **asked: Any) -> None:
    """Draw a chart of a store.

    \b
    weir sweep plot plan.sweep
    weir sweep plot plan.sweep --kind pareto --out chart.svg

    Runs that failed, or are of another version of Weir than that which ran last, are left out, and counted in
    the small print.
    """  # noqa: D301 - \b keeps click from folding the examples
    given = click.get_current_context().get_parameter_source("against")
    store = Store.opened(place)
    kind = kind or usual_kind(store)
    if kind != "pareto" and given is ParameterSource.COMMANDLINE:
        raise UsageError(f"--against {asked['against']}: only the chart `pareto` has it, `{kind}` has not")
    rows, _, _ = of_newest(store.collected().lazy())
    _warn_alike(rows, store)
    target = draw(store, kind, Asked(**asked), out or Path(f"{kind}.png"))
    console.print(str(target), soft_wrap=True)


@command.command("compact")
@argument("place", metavar="STORE")
def compact(place: str) -> None:
    """Join the part files of a store into one, and write its manifest anew.

    \b
    weir sweep compact plan.sweep
    """  # noqa: D301 - \b keeps click from folding the examples
    parts, rows = Store.opened(place).compact()
    note(f"{counted(rows, 'row')} of {counted(parts, 'part')} in one")


def _table(groups: pl.DataFrame, axes: list[str], title: str) -> Table:
    table = Table(title=title)
    for name in groups.columns:
        number = name not in axes or groups[name].dtype.is_numeric()
        table.add_column(name.replace("_", " "), justify="right" if number else "left")
    for row in groups.iter_rows():
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return four_digits(value)
    return "" if value is None else str(value)


def _tell_failures(rows: pl.LazyFrame) -> None:
    import polars as pl  # noqa: PLC0415 - the table is shown first

    failed = (
        rows.filter(pl.col("error").is_not_null())
        .group_by("error")
        .len()
        .sort("len", descending=True)
        .collect()
    )
    for reason, count in failed.iter_rows():
        warn(f"{counted(count, 'run')} failed: {reason}")
    unsure = rows.filter(pl.col("warnings").fill_null("") != "").select(pl.len()).collect().item()
    if unsure:
        warn(f"{counted(unsure, 'run')} with warnings of their quality: column `warnings`")


def _tell_estimate(found: Estimate, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2))
        return
    most = "at most " if found.at_most else ""
    console.print(
        f"{counted(found.points, 'point')}, {most}{counted(found.runs, 'run')}, {found.missing} of them to do"
    )
    if found.failed:
        warn(f"{counted(found.failed, 'run')} that are there failed: `--retry` does them again")
    if not found.missing:
        pass
    elif found.failure is not None:
        warn(f"how long it takes is not known, since a pilot run fails: {found.failure}")
    elif found.clock_s is not None:
        console.print(f"about {_duration(found.clock_s)} by the clock, one run of the lab after the other")
    elif found.processor_s is not None:
        simulated = f"{_duration(found.simulated_s)} simulated"
        console.print(f"about {_duration(found.processor_s)} of processor time for {simulated}")
    console.print(f"about {found.bytes / 1e6:.3g} MB in the store")
    if found.budget_s is not None and found.processor_s is not None and found.processor_s > found.budget_s:
        warn(f"the budget of {_duration(found.budget_s)} ends before the sweep does")


def _tell_outcome(outcome: Outcome, place: str) -> None:
    again = f", {outcome.kept} were there" if outcome.kept else ""
    console.print(f"{counted(outcome.done, 'run')} done{again}, of {outcome.runs}, in {place}")
    if outcome.processor_s:
        share = outcome.simulator_s / outcome.processor_s
        where = f", {share:.0%} of it in the simulator" if share else ""
        note(f"{_duration(outcome.processor_s)} of processor time{where}")
    for text in outcome.remarks:
        warn(text)


def _duration(seconds: float) -> str:
    if seconds < SHOWN_SECONDS:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 2 * 3600 else f"{seconds / 3600:.3g} h"


MAX_SHOWN = 40
"""Points that a table has before means over each axis are shown in their place."""

SHOWN_SECONDS = 120
"""Times from here on are shown in minutes."""
