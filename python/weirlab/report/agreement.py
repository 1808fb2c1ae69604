"""Whether sides agree, as tables: a set-up a table, or a set-up a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.text import Text

from weirlab.report.findings import Column, cell, difference, line, mark, markdown_cell, style, verdict_word
from weirlab.stats.agreement import AGREEMENT
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.stats import Agreement, Finding, Goal


def agreement_table(one: Agreement) -> Table:
    """One set-up: a row a figure, the sides beside each other."""
    table = Table(title=f"{one.name}: {one.side} beside {one.reference}", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in _headings(one):
        table.add_column(heading, justify="left" if heading in {"figure", "goal", ""} else "right")
    for column in COLUMNS:
        found = one.findings.get(column.figure)
        if found is not None:
            cells = _cells(column, found)
            table.add_row(*(Text(text, style=style(found)) for text in cells))
    table.caption = (
        f"± standard deviation of runs ({one.side}: {one.runs}, {one.reference}: {one.reference_runs})"
    )
    return table


def agreement_markdown(one: Agreement) -> str:
    """The same in Markdown."""
    lines = [f"**{one.name}**: {verdict_word(one.findings)}", ""]
    lines += [f"Caution: {text}." for text in one.warnings]
    lines += [line(_headings(one)), line(["---", *["---:"] * 3, "---", "---"])]
    for column in COLUMNS:
        found = one.findings.get(column.figure)
        if found is not None:
            lines.append(line(_cells(column, found)))
    return "\n".join(lines)


def matrix_table(found: Sequence[Agreement]) -> Table:
    """Many set-ups: a row each, with the side's figure, beneath it the reference's and the difference."""
    first = found[0]
    table = Table(
        title=f"{first.side}, beneath it {first.reference}, beneath that the difference",
        caption=LEGEND,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("set-up", overflow="fold", min_width=16)
    columns = _matrix_columns(found)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for one in found:
        cells = [cell(column, one.findings.get(column.figure)) for column in columns]
        table.add_row(f"{one.name}\n{_word(one)}", *cells)
    return table


def matrix_markdown(found: Sequence[Agreement]) -> str:
    """The same in Markdown."""
    columns = _matrix_columns(found)
    lines = [
        line(["set-up", *(column.name for column in columns), "goals"]),
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


def agreement_verdict(found: Sequence[Agreement]) -> str:
    """What it comes to, in a sentence or two."""
    goals = [finding for one in found for finding in one.findings.values() if finding.met is not None]
    met = sum(1 for finding in goals if finding.met)
    scattered = sum(1 for finding in goals if finding.is_scatter)
    text = f"{met} of {len(goals)} goals met."
    if scattered:
        text += f" {scattered} missed goals are within the scatter of seeds."
    doubtful = sum(1 for one in found if one.warnings and not one.agrees)
    if doubtful:
        text += f" In {doubtful} set-ups that disagree runs were disturbed: repeat them on a quiet machine."
    return text


def _headings(one: Agreement) -> list[str]:
    return ["figure", one.side, one.reference, "difference", "goal", ""]


def _cells(column: Column, found: Finding) -> list[str]:
    words = {"": "" if found.met is None else "met", "~": "scatter", "*": "missed"}
    return [
        column.name,
        _value(found.ours, found.ours_std, column.digits),
        _value(found.reference, found.reference_std, column.digits),
        difference(found),
        _goal(AGREEMENT.get(column.figure)),
        words[mark(found)],
    ]


def _value(mean: float, std: float | None, digits: int) -> str:
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ± {std:.{digits}f}"


def _goal(goal: Goal | None) -> str:
    if goal is None:
        return ""
    parts = [f"{goal.share:.0%}"] if goal.share else []
    parts += [f"{goal.amount:g}"] if goal.amount else []
    return " or ".join(parts)


LEGEND = "*: farther apart than the goal; ~: that too, but no farther than other seeds may be"

MATRIX = (*AGREEMENT, "down_jain", "up_jain", "retransmits")
"""The figures of a table of many set-ups."""

COLUMNS = (
    Column("down\nMbit/s", "down_mbps", 2),
    Column("up\nMbit/s", "up_mbps", 2),
    Column("down\nused, %", "down_used_percent", 1),
    Column("up\nused, %", "up_used_percent", 1),
    Column("Jain\ndown", "down_jain", 3),
    Column("Jain\nup", "up_jain", 3),
    Column("least\nms", "min_ms", 1),
    Column("p50\nms", "p50_ms", 1),
    Column("p95\nms", "p95_ms", 1),
    Column("p99\nms", "p99_ms", 1),
    Column("lost\ndown, %", "down_loss_percent", 2),
    Column("lost\nup, %", "up_loss_percent", 2),
    Column("marked\ndown, %", "down_marked_percent", 2),
    Column("marked\nup, %", "up_marked_percent", 2),
    Column("resent\n", "retransmits", 0),
    Column("RTOs\n", "timeouts", 1),
)
"""The figures: pings during the load, data packets lost and marked of those sent over the whole run."""
