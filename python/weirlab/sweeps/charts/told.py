"""The figures that a chart of a sweep draws, for who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.sweeps.charts.data import number, text, words

if TYPE_CHECKING:
    from typing import Any

    import polars as pl


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a chart shows.

    Attributes:
        heading: what it is of, such as `increase p95 by rate and queue`.
        figures: what its figures are, in a sentence.
        keys: columns of `table` that say of what a row is.
        value: the column that is summed up.
        table: a row for each point, cell or bar that is drawn, by columns of the store and of words.
    """

    heading: str
    figures: str
    keys: list[str]
    value: str
    table: pl.DataFrame

    @property
    def summary(self) -> str:
        """The least and the greatest of its figures, or all if they are few, in a sentence."""
        rows = self.table.drop_nulls(self.value).sort(self.value, maintain_order=True)
        few = rows.height <= FEW
        said = [self._said(row) for row in (rows if few else rows[[0, -1]]).iter_rows(named=True)]
        what = words(self.value).replace(":", ",")
        values = "; ".join(said) if few else f"from {' to '.join(said)}"
        return f"{what[:1].upper()}{what[1:]}: {values}."

    def _said(self, row: dict[str, Any]) -> str:
        of = ", ".join(self._key(name, row[name]) for name in self.keys if row[name] is not None)
        return f"{number(row[self.value])} ({of})" if of else number(row[self.value])

    def _key(self, name: str, value: Any) -> str:
        what, _, unit = words(name).partition(", ")
        return f"{what} {text(value)}{f' {unit}' if unit else ''}"


FEW = 4
"""So many figures are all read out; of more the least and the greatest."""
