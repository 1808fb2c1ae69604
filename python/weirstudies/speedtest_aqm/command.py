"""`weir study speedtest-aqm`: runs it, and writes its page and charts."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import click

from weirlab.cli.options import option
from weirlab.errors import UsageError
from weirlab.plots import save
from weirlab.ui import RunProgress, console, note
from weirstudies.command import (
    cluster_options,
    is_quiet,
    only_option,
    out_option,
    print_json,
    printing_options,
    repeat_option,
    world_option,
)
from weirstudies.judge import LOOKS
from weirstudies.running import manner
from weirstudies.speedtest_aqm import calibration, design, findings, lab, measure, page
from weirstudies.statements import verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from weirlab.scenario import ResolvedRun
    from weirstudies.running import Manner
    from weirstudies.speedtest_aqm.design import Cell
    from weirstudies.speedtest_aqm.measure import Found


@click.command(
    "speedtest-aqm",
    short_help="What speed tests report beneath queue management, and what is true (arXiv 2511.19213).",
)
@world_option
@option("--full", is_flag=True, help="The whole grid, 10 runs of each cell; a day.")
@repeat_option("3 to 20, until all statements are decided; in the lab 1")
@only_option("Only cells of this pattern, such as '100mbit 20ms * ndt7'.")
@out_option("Folder for figures, page and charts; it goes on with what is there.  [default: none]")
@cluster_options
@printing_options
def command(  # noqa: PLR0913 - one word each on the command line
    *,
    world: str,
    full: bool,
    repeat: int | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    cluster: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Hold what speed tests report beneath queue management against what is true (arXiv 2511.19213).

    \b
    weir study speedtest-aqm --out speedtest
    weir study speedtest-aqm --world lab --only '* ndt7' --out speedtest
    """  # noqa: D301 - \b keeps click from folding the examples
    quiet = is_quiet(as_json=as_json, as_markdown=as_markdown)
    if full and world == "lab":
        raise UsageError("--full --world lab: the lab runs in real time, the whole grid would take weeks")
    if world == "lab" and (scheduler or cluster):
        raise UsageError(
            "--world lab: the lab of this study runs on this machine alone: leave the cluster out"
        )
    of = design.study()
    known = {"lab": design.lab_cells, "sim": design.all_cells if full else design.usual_cells}[world](of)
    cells = design.chosen(known, only, repetitions=repeat)

    with manner(out, jobs=jobs, scheduler=scheduler, cluster=cluster, quiet=quiet) as how:
        start = time.monotonic()
        if world == "lab":
            lab.experiment(cells, how.folder, of=of, watching=partial(_watching, quiet=quiet))
        else:
            _simulate(cells, how, of=of, looks=LOOKS if repeat is None else ())
        found = measure.everything(how, of)
        took = f"It took {time.monotonic() - start:.0f} s, without what was there already."
        if out:
            _leave(found, of, out, took)
    if as_json:
        print_json(page.as_json(found, of))
    elif as_markdown:
        click.echo(page.page(found, of, took))
    else:
        _show(found, of, out)


def _watching(todo: Sequence[ResolvedRun], *, quiet: bool) -> RunProgress:
    return RunProgress(todo, title="Speed tests (lab)", quiet=quiet)


def _simulate(cells: Mapping[Cell, int], how: Manner, *, of: design.Study, looks: Sequence[int]) -> None:
    """Simulates all cells; at each look those again of which more runs could decide a statement."""
    measure.simulate(cells, how, of=of)
    for count in looks:
        open_cells = findings.wanting(findings.judged(measure.everything(how, of), of))
        more = {cell: max(count, runs) for cell, runs in cells.items() if cell in open_cells}
        measure.simulate(more, how, of=of)


def _show(found: Found, of: design.Study, out: Path | None) -> None:
    """Prints the calibration and the statements, and where the rest is."""
    judged = findings.judged(found, of)
    console.print(page.calibration_table(calibration.rows(found, of)))
    console.print(page.statements_table(judged))
    console.print(verdict([one.seen for one in judged]))
    if out:
        note(f"figures of every run, report.md and charts in {out}")


def _leave(found: Found, of: design.Study, out: Path, took: str) -> None:
    (out / "report.md").write_text(page.page(found, of, took), encoding="utf-8")
    from weirstudies.speedtest_aqm import charts  # noqa: PLC0415 - loads Matplotlib

    folder = out / "charts"
    folder.mkdir(exist_ok=True)
    for name, chart in charts.CHARTS.items():
        cells = chart.select(found, of)
        if cells:
            save(partial(chart.draw, cells, of), folder / f"{name}.png")
