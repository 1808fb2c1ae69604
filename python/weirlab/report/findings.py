"""A figure beside its reference, in a cell of a table: on the terminal and in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

__all__ = ["Column", "cell", "difference", "line", "mark", "markdown_cell", "style", "verdict_word"]

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weirlab.stats import Finding


@dataclass(frozen=True)
class Column:
    """A figure of a table.

    Attributes:
        heading: what stands above it, on two lines.
        figure: the figure's name.
        digits: how many stand after the point.
    """

    heading: str
    figure: str
    digits: int

    @property
    def name(self) -> str:
        """The heading on one line."""
        return " ".join(self.heading.split())


def cell(column: Column, finding: Finding | None) -> Text:
    """Our figure, beneath it the reference's, beneath that the difference."""
    if finding is None:
        return Text("")
    text = Text(f"{mark(finding)}{finding.ours:.{column.digits}f}", style=style(finding))
    text.append(f"\n{finding.reference:.{column.digits}f}")
    return text.append(f"\n{difference(finding)}", style="dim")


def markdown_cell(column: Column, finding: Finding | None) -> str:
    """A figure in Markdown: `ours / reference (difference)`, bold if the goal is missed."""
    if finding is None:
        return ""
    both = f"{finding.ours:.{column.digits}f} / {finding.reference:.{column.digits}f}"
    change = difference(finding)
    text = f"{both} ({change})" if change else both
    return {"*": f"**{text}**", "~": f"~ {text}"}.get(mark(finding), text)


def mark(finding: Finding) -> str:
    """`*` for a missed goal, `~` for one that other seeds might meet."""
    if finding.met is not False:
        return ""
    return "~" if finding.is_scatter else "*"


def style(finding: Finding) -> str:
    """How a terminal shows it."""
    return {"*": "bold red", "~": "yellow"}.get(mark(finding), "")


def difference(finding: Finding) -> str:
    """The relative difference; empty if the reference has 0."""
    if finding.difference is None:
        return ""
    return f"{finding.difference:+.{1 if abs(finding.difference) < 0.0995 else 0}%}"


def verdict_word(findings: Mapping[str, Finding]) -> str:
    """Whether all goals are `met`, some `missed`, or only by the `scatter` of seeds."""
    missed = [finding for finding in findings.values() if finding.met is False]
    if not missed:
        return "met"
    return "scatter" if all(finding.is_scatter for finding in missed) else "missed"


def line(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"
