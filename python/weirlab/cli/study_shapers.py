"""`weir study autorate` and `weir study cfosspeed`."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.api import run_all
from weirlab.errors import Interrupted, UsageError
from weirlab.plots import draw
from weirlab.report import shapers as report
from weirlab.studies import autorate, cfosspeed, shapers
from weirlab.ui import RunProgress, console, note, warn
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun

NAMES = ("autorate", "cfosspeed")
"""The studies that this command has."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What was said on the line.

    Attributes:
        only: names of parts of the study; all of them if none is named.
        world: where the lines are; the lab is for `cfosspeed`.
        spans_ns: lengths of the phases `idle` and `load` of `cfosspeed`; the report's 60 s if not there.
        seeds: runs of each.
        jobs: runs at once.
        out: folder for records, charts and the table.
        as_json, as_markdown: print that and nothing else.
    """

    only: Sequence[str]
    world: str
    spans_ns: Mapping[str, int]
    seeds: int
    jobs: int | None
    out: Path | None
    as_json: bool
    as_markdown: bool

    @property
    def quiet(self) -> bool:
        """Whether nothing but the outcome is printed."""
        return self.as_json or self.as_markdown


def run(name: str, wanted: Wanted) -> None:
    """Runs the study of that name."""
    with ExitStack() as stack:
        folder = wanted.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-study-")))
        if name == "autorate":
            _autorate(wanted, folder)
        else:
            _cfosspeed(wanted, folder)


def _autorate(wanted: Wanted, folder: Path) -> None:
    rows = []
    for line in autorate.chosen(wanted.only):
        records = _records(autorate.runs_of(line, seeds=wanted.seeds), line.name, wanted, folder)
        by_control = _by_label(records)
        rows += [autorate.row(line, control, by_control[control]) for control in by_control]
        if wanted.out:
            firsts = [by_control[control][0] for control in AUTORATE_DRAWN]
            draw(
                "shaper",
                firsts,
                folder / f"{_slug(line.name)}.png",
                title=f"{line.name}: {line.what}",
                whole=records,
            )
    _show(
        "Shapers on lines that change",
        report.AUTORATE,
        [report.autorate_cells(row, intervals=False) for row in rows],
        [report.autorate_cells(row, intervals=True) for row in rows],
        [row.as_dict() for row in rows],
        wanted,
    )


def _cfosspeed(wanted: Wanted, folder: Path) -> None:
    for direction in wanted.only:
        if direction not in cfosspeed.DIRECTIONS:
            known = ", ".join(cfosspeed.DIRECTIONS)
            raise UsageError(f"study `cfosspeed` has no direction `{direction}` (known: {known})")
    rows = []
    for direction in cfosspeed.DIRECTIONS:
        if wanted.only and direction not in wanted.only:
            continue
        title = "Download" if direction == "down" else "Upload"
        runs = cfosspeed.runs_of(
            direction,
            seeds=wanted.seeds,
            idle_ns=wanted.spans_ns.get("idle"),
            load_ns=wanted.spans_ns.get("load"),
        )
        records = _records(runs, f"cfosspeed {direction}", wanted, folder)
        for text in cfosspeed.disturbances(records):
            warn(text)
        by_control = _by_label(records)
        rows += cfosspeed.rows(direction, by_control)
        if wanted.out:
            firsts = [by_control[control][0] for control in CFOSSPEED_DRAWN]
            drawn = [record for control in CFOSSPEED_DRAWN for record in by_control[control]]
            heading = f"{title} on VDSL-100"
            for kind in ("ping", "shaper"):
                draw(kind, firsts, folder / f"{direction}-{kind}.png", title=heading, whole=drawn)
            both = [record for control in (shapers.NONE, shapers.PING) for record in by_control[control]]
            draw("overlay", both, folder / f"{direction}-overlay.png", title=heading, whole=drawn)
    brief, full = (
        [report.cfosspeed_cells(row, intervals=intervals) for row in rows] + report.reported_cells()
        for intervals in (False, True)
    )
    _show(
        "VDSL-100, as in the cFosSpeed report",
        report.CFOSSPEED,
        brief,
        full,
        [row.as_dict() for row in rows],
        wanted,
    )


def _records(runs: Sequence[ResolvedRun], name: str, wanted: Wanted, folder: Path) -> list[Record]:
    with RunProgress(runs, title=name, quiet=wanted.quiet) as progress:
        records = run_all(
            runs,
            world_named(wanted.world),
            folder / "records" / _slug(name),
            jobs=wanted.jobs,
            watcher=progress,
        )
    if len(records) < len(runs) or not all(record.manifest.complete for record in records):
        raise Interrupted("interrupted: a study is only worth something as a whole")
    return records


def _by_label(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.label, []).append(record)
    return found


def _show(  # noqa: PLR0913, PLR0917 - the same in three shapes
    title: str,
    headings: Mapping[str, str],
    brief: Sequence[Sequence[str]],
    full: Sequence[Sequence[str]],
    plain: Sequence[object],
    wanted: Wanted,
) -> None:
    text = report.markdown(headings, full)
    if wanted.as_json:
        click.echo(json.dumps(plain, indent=2))
    elif wanted.as_markdown:
        click.echo(text)
    else:
        console.print(report.table(title, headings, brief))
    if wanted.out:
        (wanted.out / "table.md").write_text(text + "\n", encoding="utf-8")
        if not wanted.quiet:
            note(f"records, charts and table.md in {wanted.out}")


def _slug(name: str) -> str:
    return name.replace(" ", "-")


AUTORATE_DRAWN = (shapers.NONE, shapers.FIXED, shapers.PING, shapers.LAW)
"""Those that a chart shows: more than four lines hide one another. A control's place is its colour, which is
the same in the charts of both studies."""

CFOSSPEED_DRAWN = (shapers.NONE, shapers.FIXED, shapers.PING, shapers.BANDWIDTH)
