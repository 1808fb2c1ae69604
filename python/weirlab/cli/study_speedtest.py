"""`weir study speedtest-aqm`: runs it, and writes its page and charts."""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.errors import UsageError
from weirlab.plots import save
from weirlab.report import speedtest_study as report
from weirlab.studies import speedtest_aqm
from weirlab.studies.speedtest_aqm import calibration, findings, lab, measure
from weirlab.ui import RunProgress, console, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.scenario import ResolvedRun
    from weirlab.studies.speedtest_aqm.measure import Found

NAME = "speedtest-aqm"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What was said on the line.

    Attributes:
        only: patterns of cells.
        world: where they run.
        full: the whole grid in place of the usual cells.
        repetitions: runs of each cell in place of the study's.
        jobs: runs at once.
        out: folder for figures, page and charts.
        as_json, as_markdown: print that and nothing else.
    """

    only: Sequence[str]
    world: str
    full: bool
    repetitions: int | None
    jobs: int | None
    out: Path | None
    as_json: bool
    as_markdown: bool

    @property
    def quiet(self) -> bool:
        """Whether nothing but the outcome is printed."""
        return self.as_json or self.as_markdown


def run(wanted: Wanted) -> None:
    """Runs the study and leaves its page, charts and figures in the folder that was named, if one was."""
    of = speedtest_aqm.study()
    if wanted.full and wanted.world == "lab":
        raise UsageError("--full --world lab: the lab runs in real time, the whole grid would take weeks")
    with ExitStack() as stack:
        out = wanted.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-study-")))
        start = time.monotonic()
        found = _measure(wanted, of, out)
        took = f"It took {time.monotonic() - start:.0f} s, without what was there already."
        if wanted.out:
            _leave(found, of, out, took)
        if wanted.as_json:
            click.echo(json.dumps(report.as_json(found, of), indent=2))
        elif wanted.as_markdown:
            click.echo(report.page(found, of, took))
        else:
            judged = findings.judged(found, of)
            console.print(report.calibration_table(calibration.rows(found, of)))
            console.print(report.statements_table(judged))
            console.print(report.verdict(judged))
            if wanted.out:
                note(f"figures of every run, report.md and charts in {out}")


def _measure(wanted: Wanted, of: speedtest_aqm.Study, out: Path) -> Found:
    """The figures of what is wanted, run now if need be, and all others that stand in `out`."""

    def watching(todo: Sequence[ResolvedRun]) -> RunProgress:
        return RunProgress(todo, title=f"Speed tests ({wanted.world})", quiet=wanted.quiet)

    if wanted.world == "lab":
        cells = speedtest_aqm.chosen(speedtest_aqm.lab_cells(of), wanted.only, repetitions=wanted.repetitions)
        lab.experiment(cells, out, of=of, watching=watching)
        return measure.everything(out, of)
    known = speedtest_aqm.all_cells(of) if wanted.full else speedtest_aqm.usual_cells(of)
    cells = speedtest_aqm.chosen(known, wanted.only, repetitions=wanted.repetitions)
    measure.simulate(cells, out, of=of, jobs=wanted.jobs, watching=watching)
    return measure.everything(out, of)


def _leave(found: Found, of: speedtest_aqm.Study, out: Path, took: str) -> None:
    (out / "report.md").write_text(report.page(found, of, took), encoding="utf-8")
    from weirlab.plots import speedtest  # noqa: PLC0415 - loads Matplotlib

    folder = out / "charts"
    folder.mkdir(exist_ok=True)
    for name, chart in speedtest.CHARTS.items():
        cells = chart.select(found, of)
        if cells:
            save(partial(chart.draw, cells, of), folder / f"{name}.png")
