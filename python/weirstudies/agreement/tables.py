"""Many configurations in two worlds as a table: a configuration a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box

from weirlab.report.agreement import COLUMNS
from weirlab.report.findings import Column, cell, line, markdown_cell, verdict_word
from weirlab.stats import AGREEMENT
from weirlab.ui import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.stats import Agreement


def matrix_table(found: Sequence[Agreement]) -> Table:
    """A row for each configuration: the side's figure, beneath it the reference's and the difference."""
    first = found[0]
    table = Table(
        title=f"{first.side}, beneath it {first.reference}, beneath that the difference",
        caption=LEGEND,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("configuration", overflow="fold", min_width=16)
    columns = _matrix_columns(found)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for one in found:
        cells = [cell(column, one.findings.get(column.figure)) for column in columns]
        table.add_row(f"{one.name}\n{_word(one)}", *cells)
    return table


def matrix_markdown(found: Sequence[Agreement]) -> str:
    """The table of many configurations in Markdown."""
    columns = _matrix_columns(found)
    lines = [
        line(["configuration", *(column.name for column in columns), "goals"]),
        line(["---", *("---:" for _ in columns), "---"]),
    ]
    for one in found:
        cells = [markdown_cell(column, one.findings.get(column.figure)) for column in columns]
        lines.append(line([one.name, *cells, _word(one)]))
    return "\n".join(lines)


def _matrix_columns(found: Sequence[Agreement]) -> list[Column]:
    """The columns of figures that have goals, or that tell why one is missed."""
    return [
        column
        for column in COLUMNS
        if column.figure in MATRIX and any(column.figure in one.findings for one in found)
    ]


def _word(one: Agreement) -> str:
    """Whether the goals are met, and whether a run was disturbed."""
    return verdict_word(one.findings) + (", disturbed" if one.warnings else "")


LEGEND = "*: farther apart than the goal; ~: that too, but no farther than other seeds may be"

MATRIX = (*AGREEMENT, "down_jain", "up_jain", "retransmits")
"""The figures of a table of many configurations."""
