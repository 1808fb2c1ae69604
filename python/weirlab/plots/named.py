"""Names of configurations and runs on charts: those that the user set, or Weir's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.errors import UsageError, counted
from weirlab.plots.look import current
from weirlab.record import configurations as record_configurations
from weirlab.record.configurations import Configuration, numbered
from weirlab.record.configurations import run_names as record_run_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record


def configurations(records: Sequence[Record]) -> list[Configuration]:
    """The configurations of `records`, in order, with the names of the chart's look if it has any.

    Raises:
        UsageError: if it has another number of names than there are configurations.
    """
    groups = record_configurations(records)
    names = current().names
    if not names:
        return groups
    if len(names) != len(groups):
        given, there = counted(len(names), "name"), counted(len(groups), "configuration")
        raise UsageError(f"{given} for {there}: name each, in the order of their records")
    return [Configuration(name, one.records) for name, one in zip(names, groups, strict=True)]


def run_names(records: Sequence[Record]) -> list[str]:
    """A name for each run: that of its configuration, with a number if there are several of it.

    Of a single configuration the names may be those of its runs.
    """
    names = current().names
    if not names:
        return record_run_names(records)
    if len(names) == len(records):
        return list(names)
    groups = configurations(records)
    of_run = {id(record): one.name for one in groups for record in one.records}
    return numbered([of_run[id(record)] for record in records])
