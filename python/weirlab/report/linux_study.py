"""The study `linux` as tables: the simulator beside Linux."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.studies.linux import Finding, Result


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
        cells = [_cell(column, one.findings.get(column.figure)) for column in columns]
        table.add_row(f"{one.name}\n{_met(one)}", *cells)
    table.caption = "\n".join([LEGEND, *absent])
    return table


def markdown(results: Sequence[Result]) -> str:
    """The same as a Markdown table: `simulator / Linux (difference)`."""
    columns = [column for column in COLUMNS if _anybody_has(column, results)]
    headings = ["experiment", *(" ".join(column.heading.split()) for column in columns), "goals"]
    lines = [_line(headings), _line(["---", *("---:" for _ in columns), "---"])]
    for one in results:
        if one.missing:
            lines.append(_line([one.name, *("" for _ in columns), one.missing]))
            continue
        cells = [_markdown_cell(column, one.findings.get(column.figure)) for column in columns]
        lines.append(_line([one.name, *cells, _met(one)]))
    return "\n".join(lines)


def verdict(results: Sequence[Result]) -> str:
    """What it comes to, in two sentences."""
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


@dataclass(frozen=True)
class _Column:
    """A column of the table."""

    heading: str
    figure: str
    digits: int


def _anybody_has(column: _Column, results: Sequence[Result]) -> bool:
    return any(column.figure in one.findings for one in results)


def _met(result: Result) -> str:
    if result.met:
        return "met"
    missed = [finding for finding in result.findings.values() if finding.met is False]
    return "scatter" if all(finding.is_scatter for finding in missed) else "missed"


def _cell(column: _Column, finding: Finding | None) -> Text:
    if finding is None:
        return Text("")
    mark = _mark(finding)
    style = {"*": "bold red", "~": "yellow"}.get(mark, "")
    cell = Text(f"{mark}{finding.ours:.{column.digits}f}", style=style)
    cell.append(f"\n{finding.linux:.{column.digits}f}")
    return cell.append(f"\n{_difference(finding)}", style="dim")


def _markdown_cell(column: _Column, finding: Finding | None) -> str:
    if finding is None:
        return ""
    both = f"{finding.ours:.{column.digits}f} / {finding.linux:.{column.digits}f}"
    difference = _difference(finding)
    text = f"{both} ({difference})" if difference else both
    return {"*": f"**{text}**", "~": f"~ {text}"}.get(_mark(finding), text)


def _mark(finding: Finding) -> str:
    """`*` for a missed goal, `~` for one that other seeds might meet."""
    if finding.met is not False:
        return ""
    return "~" if finding.is_scatter else "*"


def _difference(finding: Finding) -> str:
    if finding.difference is None:
        return ""
    return f"{finding.difference:+.{1 if abs(finding.difference) < 0.0995 else 0}%}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


LEGEND = "*: farther from Linux than the goal; ~: that too, but no farther than other seeds may be"

COLUMNS = (
    _Column("down\nMbit/s", "down_mbps", 2),
    _Column("Jain\ndown", "down_jain", 3),
    _Column("up\nMbit/s", "up_mbps", 2),
    _Column("Jain\nup", "up_jain", 3),
    _Column("p50\nms", "p50_ms", 1),
    _Column("p95\nms", "p95_ms", 1),
    _Column("re-\nsent", "retransmits", 0),
    _Column("RTOs\n", "timeouts", 1),
    _Column("marks\n", "marks", 0),
)
"""The figures that have goals; `--json` has all."""
