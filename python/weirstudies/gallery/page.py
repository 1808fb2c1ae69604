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
    from weirstudies.gallery.outcome import Judged, Outcome
    from weirstudies.gallery.study import Column


def figures_table(one: Outcome) -> Table:
    """A row for each configuration."""
    table = Table(
        title=f"{one.experiment.title} ({one.world})",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("configuration", overflow="fold", min_width=12)
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
    headings = ["configuration", *experiment.columns]
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
        line(["statement", "", "rule, and what was found"]),
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
    statement = judged.statement
    if statement.undecided:
        return [statement.undecided]
    lines = [ruling.text for ruling in judged.rule.rulings]
    if statement.changed:
        lines.append(f"The rule was changed after its result was known: {statement.changed}.")
    for one in judged.others:
        why = one.other.why if one.other else ""
        found = "; ".join(ruling.text for ruling in one.rulings)
        lines.append(f"By another rule ({why}) **{seen_word(one.seen)}**: {found}")
    if statement.note:
        lines.append(statement.note)
    return lines
