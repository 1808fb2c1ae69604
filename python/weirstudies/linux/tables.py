"""The study `linux` as tables: the simulator beside Linux."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box

from weirlab.report.findings import Column, cell, line, markdown_cell, verdict_word
from weirlab.ui import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirstudies.linux.study import Result


def study_table(results: Sequence[Result], *, kernel: str) -> Table:
    """A row an experiment: the simulator's figure, beneath it Linux', beneath that the difference."""
    table = Table(
        title=f"The simulator, beneath it {kernel}, beneath that the difference",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("experiment", overflow="fold", min_width=10)
    columns = [column for column in COLUMNS if _anybody_has(column, results)]
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    absent = []
    for one in results:
        if one.missing:
            absent.append(f"{one.name}: {one.missing}")
            continue
        cells = [cell(column, one.findings.get(column.figure)) for column in columns]
        table.add_row(f"{one.name}\n{verdict_word(one.findings)}", *cells)
    table.caption = "\n".join([LEGEND, *absent])
    return table


def by_shape(results: Sequence[Result]) -> list[list[Result]]:
    """The outcomes by table: those of one bottleneck, and those of the parking lot, with more figures."""
    lots = [one for one in results if "long_mbps" in one.findings]
    return [part for part in ([one for one in results if one not in lots], lots) if part]


def markdown(results: Sequence[Result]) -> str:
    """The outcomes as a Markdown table: `simulator / Linux (difference)`."""
    columns = [column for column in COLUMNS if _anybody_has(column, results)]
    headings = ["experiment", *(" ".join(column.heading.split()) for column in columns), "goals"]
    lines = [line(headings), line(["---", *("---:" for _ in columns), "---"])]
    for one in results:
        if one.missing:
            lines.append(line([one.name, *("" for _ in columns), one.missing]))
            continue
        cells = [markdown_cell(column, one.findings.get(column.figure)) for column in columns]
        lines.append(line([one.name, *cells, verdict_word(one.findings)]))
    return "\n".join(lines)


def verdict(results: Sequence[Result]) -> str:
    """Numbers of goals that are met, in two sentences."""
    ran = [one for one in results if not one.missing]
    goals = [finding for one in ran for finding in one.findings.values() if finding.met is not None]
    met = sum(1 for finding in goals if finding.met)
    whole = sum(1 for one in ran if one.met)
    scattered = sum(1 for finding in goals if finding.is_scatter)
    text = f"{met} of {len(goals)} goals met, {whole} of {len(ran)} experiments wholly."
    if scattered:
        text += f" {scattered} missed goals are within the scatter of seeds."
    absent = len(results) - len(ran)
    return f"{text} {absent} could not be run." if absent else text


def _anybody_has(column: Column, results: Sequence[Result]) -> bool:
    return any(column.figure in one.findings for one in results)


LEGEND = "*: farther from Linux than the goal; ~: that too, but no farther than other seeds may be"

COLUMNS = (
    Column("down\nMbit/s", "down_mbps", 2),
    Column("Jain\ndown", "down_jain", 3),
    Column("up\nMbit/s", "up_mbps", 2),
    Column("Jain\nup", "up_jain", 3),
    Column("long\nMbit/s", "long_mbps", 2),
    Column("cross a\nMbit/s", "cross_a_mbps", 2),
    Column("cross b\nMbit/s", "cross_b_mbps", 2),
    Column("cross c\nMbit/s", "cross_c_mbps", 2),
    Column("delay\np50 ms", "delay_p50_ms", 2),
    Column("delay\np95 ms", "delay_p95_ms", 2),
    Column("b alone\np50 ms", "delay_exit_b_p50_ms", 2),
    Column("b alone\np95 ms", "delay_exit_b_p95_ms", 2),
    Column("re-\nsent", "retransmits", 0),
    Column("RTOs\n", "timeouts", 1),
    Column("marks\n", "marks", 0),
)
"""The figures that have goals; `--json` has all."""
