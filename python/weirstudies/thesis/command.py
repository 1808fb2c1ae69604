"""`weir study thesis`: runs it, and writes its page and charts."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.cli.options import option
from weirlab.errors import UsageError, cannot_write
from weirlab.plots import save
from weirlab.scenario import TcpSpec
from weirlab.ui import console, note
from weirstudies.command import (
    cluster_options,
    is_quiet,
    lab_repeat_option,
    only_option,
    out_option,
    print_json,
    printing_options,
    repeat_option,
)
from weirstudies.running import STORE, manner, reduced
from weirstudies.thesis import page, study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from weirlab.scenario import ResolvedRun
    from weirstudies.running import Manner


@click.command(
    "thesis",
    short_help="A published comparison of markers and queues (Lo Monaco 2000), repeated in full.",
)
@repeat_option("20")
@option("--lab", is_flag=True, help="Selected rows also in the lab, in real time.")
@lab_repeat_option
@only_option("Only rows of this pattern, such as 'A/100 *'.")
@out_option("Folder for report and charts; it goes on with what is there.  [default: weir-thesis]")
@cluster_options
@printing_options
def command(  # noqa: PLR0913 - one word each on the command line
    *,
    repeat: int | None,
    lab: bool,
    lab_repeat: int | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    cluster: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Repeat a published comparison of markers and queues (Lo Monaco 2000) in full.

    \b
    weir study thesis --repeat 20 --out thesis

    Report, charts and the figures of every run stay in the folder given by --out.
    """  # noqa: D301 - \b keeps click from folding the examples
    quiet = is_quiet(as_json=as_json, as_markdown=as_markdown)
    if lab_repeat is not None and not lab:
        raise UsageError(f"--lab-repeat {lab_repeat}: it goes with --lab; for the simulator write --repeat")
    seeds, out = repeat or 20, out or Path("weir-thesis")
    of = study.study()
    wanted = study.chosen(only, of=of)
    # The other readings belong to the whole.
    readings = [] if only else study.variants(of)
    _make(out)
    start = time.monotonic()
    fewer = min(seeds, SEEDS_OF_READINGS)
    runs = [run for cell in wanted for run in study.runs_of(cell, of=of, seeds=seeds)]
    runs += [run for cell in readings for run in study.runs_of(cell, of=of, seeds=fewer)]
    with manner(out, jobs=jobs, scheduler=scheduler, cluster=cluster, quiet=quiet) as how:
        found = _measure(runs, "sim", "Thesis", how, [*wanted, *readings])
        rows, other = found[: len(wanted)], found[len(wanted) :]
        took = f"{time.monotonic() - start:.0f} s, without what was there already"
        beside = _beside_lab(of, wanted, how, seeds=seeds, repeat=lab_repeat or 1) if lab else []
    text = page.page(rows, other, beside, of, took)
    (out / "report.md").write_text(text, encoding="utf-8")
    (out / "figures.csv").write_text(page.figures_csv(found), encoding="utf-8")
    charts = _draw(rows, out)
    if as_json:
        print_json([row.as_dict() for row in found])
    elif as_markdown:
        click.echo(text)
    else:
        if any(row.published for row in rows):
            console.print(page.terminal_table(rows))
        console.print(page.verdict(rows, other, of))
        note(f"{len(runs)} runs in {took}; report.md, figures.csv and {charts} charts in {out}")


def _measure(
    runs: Sequence[ResolvedRun],
    world: str,
    title: str,
    how: Manner,
    cells: Sequence[study.Cell],
) -> list[study.Row]:
    """The rows of `cells`. Records are too many to be kept: their figures are."""
    return study.rows(cells, runs, reduced(runs, world, study.REDUCTION, how, title=title))


def _beside_lab(
    of: study.Study, wanted: Sequence[study.Cell], how: Manner, *, seeds: int, repeat: int
) -> list[tuple[study.Row, study.Row]]:
    """The selected rows in simulator and lab, both with today's Linux."""
    cells = [cell for cell in study.lab_cells(of) if cell in wanted]
    if not cells:
        return []
    linux = TcpSpec(profile="linux")
    sides = []
    for world, count in (("sim", seeds), ("lab", repeat)):
        runs = [run for cell in cells for run in study.runs_of(cell, of=of, seeds=count, tcp=linux)]
        sides.append(_measure(runs, world, f"Thesis ({world})", how, cells))
    return list(zip(*sides, strict=True))


def _draw(rows: Sequence[study.Row], out: Path) -> int:
    """The thesis' sixteen bar charts, four to a picture; says how many charts."""
    count = 0
    configurations = list(dict.fromkeys(row.cell.configuration.name for row in rows))
    for name in configurations:
        mine = [row for row in rows if row.cell.configuration.name == name and row.published]
        if mine:
            number = "ABCD".index(name) + 1
            save(partial(_figure, mine, number), out / f"figure-4-{number}.png")
            count += len(study.METRICS)
    return count


def _figure(rows: Sequence[study.Row], number: int) -> Figure:
    from weirstudies.thesis import charts  # noqa: PLC0415 - loads Matplotlib

    return charts.figure(rows, number)


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        strangers = [file.name for file in out.iterdir() if file.name not in OWN]
    except OSError as error:
        raise cannot_write(f"`{out}` cannot take a report", error) from error
    if strangers:
        raise UsageError(f"`{out}` holds other things, such as `{strangers[0]}`: choose another folder")


SEEDS_OF_READINGS = 5
OWN = {STORE, "report.md", "figures.csv", *(f"figure-4-{number}.png" for number in range(1, 5))}
"""Files that the study writes; they may be written again."""
