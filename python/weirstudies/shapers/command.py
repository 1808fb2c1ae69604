"""`weir study autorate` and `weir study cfosspeed`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from weirlab.cli.options import option, renamed
from weirlab.errors import UsageError
from weirlab.plots import Look, draw
from weirlab.scenario import time_ns
from weirlab.ui import console, note, warn
from weirstudies.command import (
    by_label,
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
from weirstudies.running import manner, records_of
from weirstudies.shapers import autorate as compared
from weirstudies.shapers import cfosspeed as vdsl
from weirstudies.shapers import controls, lines, tables
from weirstudies.statements import seen_word

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirlab.record import Record


@click.command(
    "autorate",
    short_help="Shapers that find a line's rate, on lines that change: Weir's beside others.",
)
@repeat_option("5")
@only_option("Only lines of this pattern, such as 'steps *'.")
@out_option("Folder for records, charts and the table; it goes on with what is there.  [default: none]")
@cluster_options
@printing_options
def autorate(  # noqa: PLR0913 - one word each on the command line
    *,
    repeat: int | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    cluster: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Set shapers that find a line's rate beside each other, on lines that change.

    \b
    weir study autorate --only 'steps *' --out autorate
    """  # noqa: D301 - \b keeps click from folding the examples
    quiet = is_quiet(as_json=as_json, as_markdown=as_markdown)
    rows = []
    with manner(out, jobs=jobs, scheduler=scheduler, cluster=cluster, quiet=quiet) as how:
        for line in lines.chosen(only):
            runs = compared.runs_of(line, seeds=repeat or 5)
            records = records_of(runs, "sim", how, title=line.name)
            by_control = by_label(records)
            rows += [compared.row(line, control, by_control[control]) for control in by_control]
            if out:
                firsts = [by_control[control][0] for control in AUTORATE_DRAWN]
                draw(
                    "shaper",
                    firsts,
                    how.folder / f"{_slug(line.name)}.png",
                    title=f"{line.name}: {line.what}",
                    whole=records,
                )
    cells = [tables.autorate_cells(row, intervals=True) for row in rows]
    first = compared.against_the_law(rows)
    full = f"{first}\n\n{tables.markdown(tables.AUTORATE, cells)}"
    _leave(full, out)
    if as_json:
        print_json([row.as_dict() for row in rows])
    elif as_markdown:
        click.echo(full)
    else:
        brief = [tables.autorate_cells(row, intervals=False) for row in rows]
        console.print(first, highlight=False)
        console.print(tables.table("Shapers on lines that change", tables.AUTORATE, brief))
        _tell(out)


@click.command(
    "cfosspeed",
    short_help="The cFosSpeed report on a VDSL-100 line, repeated with Weir's shaper.",
)
@world_option
@repeat_option("5 to 20, until all statements are decided; in the lab 1")
@option("--idle", metavar="TIME", help="Length of the phase without load.  [default: 60s]")
@option("--load", metavar="TIME", help="Length of the phase with load.  [default: 60s]")
@renamed("--span", "--idle and --load")
@only_option("Only loads of this pattern: `down`, `up` (its rate varies), `up-path` (its path).")
@out_option("Folder for records, charts and the table; it goes on with what is there.  [default: none]")
@cluster_options
@printing_options
def cfosspeed(  # noqa: PLR0913 - one word each on the command line
    *,
    world: str,
    repeat: int | None,
    idle: str | None,
    load: str | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    cluster: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Repeat the cFosSpeed report on a VDSL-100 line with Weir's shaper.

    \b
    weir study cfosspeed --only down --idle 10s --load 20s --out cfosspeed
    """  # noqa: D301 - \b keeps click from folding the examples
    quiet = is_quiet(as_json=as_json, as_markdown=as_markdown)
    idle_ns, load_ns = _span("idle", idle), _span("load", load)
    loads = vdsl.chosen(only)
    looks = (repeat,) if repeat else LOOKS if world == "sim" else (1,)
    found = _Repeated()
    with manner(out, jobs=jobs, scheduler=scheduler, cluster=cluster, quiet=quiet) as how:
        for one in loads:
            carry = partial(records_of, world=world, how=how, title=f"cfosspeed {one.name}")
            runs = vdsl.runs_of(one, seeds=looks[-1], idle_ns=idle_ns, load_ns=load_ns)
            records: list[Record] = []
            for done, count in pairwise((0, *looks)):
                left = [run for run in runs if done < run.seed <= count]
                records += carry(left)
                if vdsl.are_decided(vdsl.statements(one, by_label(records), world=world, looks=looks)):
                    break
            found.take(one, records, world, looks)
            if out:
                _draw(one, records, how.folder)
    text = found.markdown()
    _leave(text, out)
    if as_json:
        print_json([row.as_dict() for row in found.rows])
    elif as_markdown:
        click.echo(text)
    else:
        found.show()
        _tell(out)


@dataclass
class _Repeated:
    """The repeated report: its rows, its pings, and its statements judged."""

    rows: list[vdsl.Row] = field(default_factory=list)
    series: list[vdsl.Series] = field(default_factory=list)
    statements: list[vdsl.Statement] = field(default_factory=list)

    def take(self, load: vdsl.Load, records: Sequence[Record], world: str, looks: Sequence[int]) -> None:
        """Takes in the records of a load, and says what disturbed them."""
        for text in vdsl.disturbances(records):
            warn(text)
        by_control = by_label(records)
        self.rows += vdsl.rows(load, by_control)
        self.series += vdsl.series(load, by_control)
        self.statements += vdsl.statements(load, by_control, world=world, looks=looks)

    def markdown(self) -> str:
        """All tables, with intervals."""
        statements = [tables.statement_cells(one) for one in self.statements]
        parts = (
            tables.markdown(tables.CFOSSPEED, self._cells(intervals=True)),
            tables.markdown(tables.SERIES, self._pings()),
            tables.markdown(tables.STATEMENTS, statements),
        )
        return "\n\n".join(parts)

    def show(self) -> None:
        """Prints the tables, and the statements in words."""
        rows = self._cells(intervals=False)
        console.print(tables.table("VDSL-100, as in the cFosSpeed report", tables.CFOSSPEED, rows))
        console.print(tables.table("The report's pings, ms", tables.SERIES, self._pings()))
        for one in self.statements:
            console.print(f"{seen_word(one.seen)}: {one.load}, {one.control}: {one.says}", highlight=False)

    def _cells(self, *, intervals: bool) -> list[list[str]]:
        """Our rows, and beneath them what was reported."""
        ours = [tables.cfosspeed_cells(row, intervals=intervals) for row in self.rows]
        return ours + tables.reported_cells()

    def _pings(self) -> list[list[str]]:
        return [cells for one in self.series for cells in tables.series_cells(one)]


def _draw(load: vdsl.Load, records: Sequence[Record], folder: Path) -> None:
    by_control = by_label(records)
    firsts = [by_control[control][0] for control in CFOSSPEED_DRAWN]
    drawn = [record for control in CFOSSPEED_DRAWN for record in by_control[control]]
    heading = f"{'Download' if load.direction == 'down' else 'Upload'} on VDSL-100"
    for kind in ("ping", "shaper"):
        look = _named(firsts)
        draw(kind, firsts, folder / f"{load.name}-{kind}.png", title=heading, whole=drawn, look=look)
    two = (controls.NONE, controls.PING)
    both = [record for control in two for record in by_control[control]]
    look = _named([by_control[control][0] for control in two])
    draw("overlay", both, folder / f"{load.name}-overlay.png", title=heading, whole=drawn, look=look)


def _named(records: Sequence[Record]) -> Look:
    """Names by the shaper alone: its pings go to the same router with another TTL, as it is one hop more."""
    return Look(names=[record.label for record in records])


def _span(name: str, written: str | None) -> int | None:
    """The length of a phase; None where nothing is said."""
    if written is None:
        return None
    try:
        span_ns = time_ns(written)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from error
    if span_ns < MIN_SPAN_NS:
        raise UsageError(f"--{name} {written}: write 2s or more")
    return span_ns


def _leave(table: str, out: Path | None) -> None:
    if out is not None:
        (out / "table.md").write_text(table + "\n", encoding="utf-8")


def _tell(out: Path | None) -> None:
    if out is not None:
        note(f"records, charts and table.md in {out}")


def _slug(name: str) -> str:
    return name.replace(" ", "-")


AUTORATE_DRAWN = (controls.NONE, controls.FIXED, controls.PING, controls.LAW)
"""Controls that a chart shows: more than four lines hide one another. A control's place is its colour, which
is the same in the charts of both studies."""

CFOSSPEED_DRAWN = (controls.NONE, controls.FIXED, controls.PING, controls.BANDWIDTH)

MIN_SPAN_NS = 2_000_000_000
"""Ten of the pings that the report sent, every 200 ms."""
