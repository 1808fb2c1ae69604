"""Whether sides agree, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.text import Text

from weirlab.report.findings import Column, difference, line, mark, style, verdict_word
from weirlab.stats.agreeing import AGREEMENT
from weirlab.ui.table import Table

__all__ = ["COLUMNS", "agreement_markdown", "agreement_table", "agreement_verdict"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.stats import Agreement, Finding, Goal


def agreement_table(one: Agreement) -> Table:
    """One configuration: a row a figure, the sides beside each other."""
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
    """One configuration in Markdown: a row a figure, the sides beside each other."""
    lines = [f"**{one.name}**: {verdict_word(one.findings)}", ""]
    lines += [f"Caution: {text}." for text in one.warnings]
    lines += [line(_headings(one)), line(["---", *["---:"] * 3, "---", "---"])]
    for column in COLUMNS:
        found = one.findings.get(column.figure)
        if found is not None:
            lines.append(line(_cells(column, found)))
    return "\n".join(lines)


def agreement_verdict(found: Sequence[Agreement]) -> str:
    """The outcome of a comparison in a sentence or two: how many goals are met."""
    goals = [finding for one in found for finding in one.findings.values() if finding.met is not None]
    met = sum(1 for finding in goals if finding.met)
    scattered = sum(1 for finding in goals if finding.is_scatter)
    text = f"{met} of {len(goals)} goals met."
    if scattered:
        text += f" {scattered} missed goals are within the scatter of seeds."
    doubtful = sum(1 for one in found if one.warnings and not one.agrees)
    if doubtful:
        text += f" In {doubtful} configurations that disagree runs were disturbed:"
        text += " repeat them on a quiet machine."
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
    Column("MOS\n", "mos", 2),
    Column("UDP\nlost, %", "udp_loss_percent", 2),
    Column("page\nms", "page_ms", 1),
    Column("pages given\nup, %", "pages_given_up_percent", 1),
    Column("name\nms", "lookup_ms", 1),
    Column("names given\nup, %", "lookups_given_up_percent", 1),
    Column("video\nMbit/s", "video_mbps", 2),
    Column("stalled\n%", "stalled_percent", 1),
    Column("startup\nms", "startup_ms", 0),
)
"""The figures: pings and applications during the load, data packets lost and marked over the whole run."""
