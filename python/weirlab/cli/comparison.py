"""What commands print of runs beside each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weirlab.record.configurations import IN_WORDS, numbered, shortened
from weirlab.record.differences import finds_its_loads
from weirlab.report import cautions, comparison_table, story
from weirlab.report.differences import difference_tables
from weirlab.ui import console, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.stats import Comparison

__all__ = ["tell", "tell_differences"]


def tell(records: Sequence[Record], comparisons: Sequence[Comparison], doubts: Sequence[str]) -> None:
    """What to be careful of in `records` and in comparing them, their figures, and what these say."""
    comparisons = _in_words(comparisons)
    for text in [*cautions(records), *doubts]:
        warn(text)
    console.print(comparison_table(records, comparisons))
    if any(map(finds_its_loads, records)):
        from weirlab.report.scores import parts_table  # noqa: PLC0415 - few records are of such a test

        # Of a test that was cut short before a line was full there is no part to show.
        if (parts := parts_table(records)) is not None:
            console.print(parts)
    if any(run.udp or run.applications for one in comparisons for run in one.runs):
        from weirlab.report.applications import comparison_of_applications  # noqa: PLC0415 - few tests have any

        if (table := comparison_of_applications(comparisons)) is not None:
            console.print(table)
    console.print(story(comparisons))


def tell_differences(comparisons: Sequence[Comparison]) -> None:
    """By how much each configuration differs from the first, where both have repetitions."""
    for table in difference_tables(_in_words(comparisons)):
        console.print(table)


def _in_words(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same, with names that a person reads, and no two the same."""
    names = numbered([shortened(one.name, IN_WORDS) for one in comparisons])
    return [replace(one, name=name) for one, name in zip(comparisons, names, strict=True)]
