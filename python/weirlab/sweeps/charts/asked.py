"""What is asked of a chart of a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from weirlab.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of a chart of a sweep.

    Attributes:
        figure: column of the figure that is shown.
        against: column that a Pareto front shows on its other axis.
        x: axis from left to right; None for the first one that fits.
        by: axis whose values have a line, colour or row each; None for the first one that fits.
        panels: axis with a panel for each of its values (small multiples); None for one panel.
        title: heading in place of the chart's own.
    """

    figure: str = "increase_p95_ms"
    against: str = "down_goodput_mbps"
    x: str | None = None
    by: str | None = None
    panels: str | None = None
    title: str | None = None

    def check(self) -> None:
        """Refuses a column that would stand for two things.

        Raises:
            UsageError: if one does.
        """
        self.tell_apart(x=self.x, by=self.by)

    def tell_apart(self, *, x: str | None, by: str | None, figure: str | None = None) -> None:
        """The same for a column that a chart has chosen itself, and for the figure that it shows.

        Raises:
            UsageError: if one would stand for two things.
        """
        of_columns: dict[str, str] = {}
        chosen = (("--x", x), ("--by", by), ("--panels", self.panels), ("--figure", figure))
        for option, column in chosen:
            if column is not None and (first := of_columns.setdefault(column, option)) != option:
                raise UsageError(f"{first} {column} and {option} {column}: name two axes, or leave one out")


MOST_CELLS = 60
"""Values of an axis that a heat map has room for."""

MOST_COLOURS = 12
"""Values of an axis that have a line or a colour each."""
