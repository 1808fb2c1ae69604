"""Experiments of the gallery as tables and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.text import Text

from weirlab.report.findings import line
from weirlab.ui import Table
from weirstudies.statements import seen_word

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirlab.stats import Interval
    from weirstudies.gallery.study import Column, Found, Judged, Outcome, Quantity, Side


def figures_table(one: Outcome) -> Table:
    """A row for each set-up."""
    table = Table(
        title=f"{one.experiment.title} ({one.world})",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("set-up", overflow="fold", min_width=12)
    for heading in one.experiment.columns:
        table.add_column(heading, justify="right")
    for label, row in one.rows.items():
        table.add_row(label, *_cells(one, row))
    return table


def statements_table(one: Outcome) -> Table:
    """A row for each statement."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("statement and what was found", overflow="fold")
    for judged in one.judged:
        table.add_row(seen_word(judged.seen), Text("\n".join([judged.statement.says, *_grounds(judged)])))
    return table


def markdown(one: Outcome, charts: Sequence[Path] = ()) -> str:
    """One experiment as a section of a page."""
    experiment = one.experiment
    headings = ["set-up", *experiment.columns]
    lines = [
        f"## {experiment.name}: {experiment.title}",
        "",
        " ".join(experiment.source.split()),
        "",
        f"Chosen: {' '.join(experiment.chosen.split())}",
        "",
        line(headings),
        line(["---", *("---:" for _ in experiment.columns)]),
        *(line([label, *_cells(one, row)]) for label, row in one.rows.items()),
        "",
        line(["statement", "", "what was found"]),
        line(["---", "---", "---"]),
        *(
            line([judged.statement.says, seen_word(judged.seen), "<br>".join(_grounds(judged))])
            for judged in one.judged
        ),
    ]
    for chart in charts:
        lines += ["", f"![{experiment.title}: {chart.stem}]({chart.as_posix()})"]
    return "\n".join(lines)


def _cells(one: Outcome, row: dict[str, Interval | None]) -> list[str]:
    return [_cell(one.experiment.columns[heading], found) for heading, found in row.items()]


def _cell(column: Column, found: Interval | None) -> str:
    if found is None:
        return ""
    text = f"{found.mean:.{column.digits}f}"
    if found.low is not None and found.high is not None:
        text += f" ± {(found.high - found.low) / 2:.{column.digits}f}"
    return text


def _grounds(judged: Judged) -> list[str]:
    if judged.statement.undecided:
        return [judged.statement.undecided]
    return [_ground(found) for found in judged.found]


def _ground(found: Found) -> str:
    condition = found.condition
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("above", condition.above), ("below", condition.below))
        if bound is not None
    ]
    beside = f" times {_words(condition.times)}" if condition.times else ""
    if found.holds is None:
        return f"{_words(condition)} should be {' and '.join(bounds)}{beside}: a figure is missing"
    there = f", which is {_value(found.other)}" if found.other else ""
    return (
        f"{_words(condition)} is {_value(found.ours)}, should be {' and '.join(bounds)}{beside}{there}: "
        f"holds in {found.runs} of {len(found.ours.values)} runs"
    )


def _words(what: Quantity | None) -> str:
    if what is None:
        return ""
    flows = f" {what.flows}" if what.flows else ""
    direction = f" {what.direction}" if what.figure not in WITHOUT_DIRECTION else ""
    return f"`{what.figure}`{direction}{flows} of *{what.of}*"


def _value(side: Side) -> str:
    return f"{side.found.mean:.3g}" if side.found else "missing"


WITHOUT_DIRECTION = frozenset({"increase_ms", "loaded_ms", "p99_ms"})
