"""Scope of a chart: all records of the command, of which it may draw a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.plots import theme
from weirlab.record import configurations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.plots.theme import Style
    from weirlab.record import Record


@dataclass(frozen=True)
class Scope:
    """All records of a command, and which part of their time is drawn.

    Attributes:
        whole: all records of the command, in order. They give each configuration its colour in every chart,
            and tell how many runs there are of what is drawn.
        span_s: first and last second that is drawn; None for the whole time.
    """

    whole: Sequence[Record]
    span_s: tuple[float, float] | None = None

    def styles(self, records: Sequence[Record]) -> list[Style]:
        """The style of each record: its configuration's, or its own where all are of one configuration."""
        groups = configurations(self.whole)
        places = [_place(record, [one.records for one in groups]) for record in records]
        if len(set(places)) == 1 < len(records):
            return theme.styles(len(records))
        every = theme.styles(len(groups))
        return [every[place] for place in places]

    def of_styles(self, groups: Sequence[Sequence[Record]]) -> list[Style]:
        """The style of each configuration, given by its records."""
        return self.styles([group[0] for group in groups])

    def runs(self, record: Record) -> int:
        """How many runs there are of the record's configuration."""
        groups = [one.records for one in configurations(self.whole)]
        return len(groups[_place(record, groups)])


def _place(record: Record, groups: Sequence[Sequence[Record]]) -> int:
    """The number of the configuration that a record is of."""
    for place, group in enumerate(groups):
        if any(one is record for one in group):
            return place
    # A copy of a record counts once, and belongs where the other copy does.
    same = (place for place, group in enumerate(groups) if len(configurations([group[0], record])) == 1)
    return next(same)
