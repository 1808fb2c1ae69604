"""`weir study thesis`: runs it, and writes its page and charts."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.api import run_all
from weirlab.errors import Interrupted, UsageError, cannot_write
from weirlab.plots import save
from weirlab.report import thesis_study as report
from weirlab.scenario.models import TcpSpec
from weirlab.studies import thesis
from weirlab.ui import RunProgress, console, note
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun


def run(  # noqa: PLR0913 - what was said on the line
    only: Sequence[str],
    *,
    seeds: int,
    lab: bool,
    repeat: int,
    jobs: int | None,
    out: Path,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Runs the study and leaves its page, charts and figures in `out`."""
    of = thesis.study()
    wanted = thesis.chosen(only, of=of)
    # The other readings belong to the whole.
    readings = [] if only else thesis.variants(of)
    _make(out)
    quiet = as_json or as_markdown
    start = time.monotonic(), time.process_time()
    fewer = min(seeds, SEEDS_OF_READINGS)
    runs = [run for cell in wanted for run in thesis.runs_of(cell, of=of, seeds=seeds)]
    runs += [run for cell in readings for run in thesis.runs_of(cell, of=of, seeds=fewer)]
    found = _measure(runs, "sim", "Thesis", jobs=jobs, quiet=quiet, of=of, cells=[*wanted, *readings])
    rows, other = found[: len(wanted)], found[len(wanted) :]
    took = f"{time.monotonic() - start[0]:.0f} s ({time.process_time() - start[1]:.0f} s of processor time)"
    beside = _beside_lab(of, wanted, seeds=seeds, repeat=repeat, jobs=jobs, quiet=quiet) if lab else []
    page = report.page(rows, other, beside, of, took)
    (out / "report.md").write_text(page, encoding="utf-8")
    (out / "figures.csv").write_text(report.figures_csv(found), encoding="utf-8")
    charts = _draw(rows, out)
    if as_json:
        click.echo(json.dumps([row.as_dict() for row in found], indent=2))
    elif as_markdown:
        click.echo(page)
    else:
        if any(row.published for row in rows):
            console.print(report.terminal_table(rows))
        console.print(report.verdict(rows, other, of))
        note(f"{len(runs)} runs in {took}; report.md, figures.csv and {charts} charts in {out}")


def _measure(  # noqa: PLR0913 - what is run, where and how
    runs: Sequence[ResolvedRun],
    world: str,
    title: str,
    *,
    jobs: int | None,
    quiet: bool,
    of: thesis.Study,
    cells: Sequence[thesis.Cell],
) -> list[thesis.Row]:
    """The rows of `cells`. Records are too many to be kept: their figures are."""
    folder = Path(tempfile.mkdtemp(prefix="weir-study-"))
    try:
        with RunProgress(runs, title=title, quiet=quiet) as progress:
            records: list[Record] = run_all(
                runs, world_named(world), folder / "records", jobs=jobs, watcher=progress
            )
            if len(records) < len(runs) or not all(record.manifest.complete for record in records):
                raise Interrupted("interrupted: a study is only worth something as a whole")
            return thesis.rows(cells, records, of=of)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _beside_lab(  # noqa: PLR0913 - as above
    of: thesis.Study,
    wanted: Sequence[thesis.Cell],
    *,
    seeds: int,
    repeat: int,
    jobs: int | None,
    quiet: bool,
) -> list[tuple[thesis.Row, thesis.Row]]:
    """The selected rows in simulator and lab, both with today's Linux."""
    cells = [cell for cell in thesis.lab_cells(of) if cell in wanted]
    if not cells:
        return []
    linux = TcpSpec(profile="linux")
    sides = []
    for world, count in (("sim", seeds), ("lab", repeat)):
        runs = [run for cell in cells for run in thesis.runs_of(cell, of=of, seeds=count, tcp=linux)]
        title = f"Thesis ({world})"
        sides.append(_measure(runs, world, title, jobs=jobs, quiet=quiet, of=of, cells=cells))
    return list(zip(*sides, strict=True))


def _draw(rows: Sequence[thesis.Row], out: Path) -> int:
    """The thesis' sixteen bar charts, four to a picture; says how many charts."""
    count = 0
    configurations = list(dict.fromkeys(row.cell.configuration.name for row in rows))
    for name in configurations:
        mine = [row for row in rows if row.cell.configuration.name == name and row.published]
        if mine:
            number = "ABCD".index(name) + 1
            save(partial(_figure, mine, number), out / f"figure-4-{number}.png")
            count += len(thesis.METRICS)
    return count


def _figure(rows: Sequence[thesis.Row], number: int) -> Figure:
    from weirlab.plots import thesis_bars  # noqa: PLC0415 - loads Matplotlib

    return thesis_bars.figure(rows, number)


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        strangers = [file.name for file in out.iterdir() if file.name not in OWN]
    except OSError as error:
        raise cannot_write(f"`{out}` cannot take a report", error) from error
    if strangers:
        raise UsageError(f"`{out}` holds other things, such as `{strangers[0]}`: choose another folder")


SEEDS_OF_READINGS = 5
OWN = {"report.md", "figures.csv", *(f"figure-4-{number}.png" for number in range(1, 5))}
"""What the study writes; it may be written again."""
