"""Tables as arrays, one a column: what figures of a whole run are made of, without a data frame for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.record.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl
    from numpy.typing import NDArray

    Values = tuple[bytes | tuple[bytes, list[str]], bytes | None]

__all__ = ["Columns"]


@dataclass(frozen=True)
class _Column:
    """A column.

    Attributes:
        values: one a row: its number, or the place of its text in `texts`; anything where it has none.
        known: whether a row has one; None if all have.
        texts: the different texts; None of a column of numbers.
    """

    values: NDArray[np.number[Any]]
    known: NDArray[np.bool_] | None
    texts: Sequence[str] | None

    def in_order(self, order: NDArray[np.intp]) -> _Column:
        known = None if self.known is None else self.known[order]
        return _Column(self.values[order], known, self.texts)


class Columns:
    """The columns of a table.

    Attributes:
        table: its name.
    """

    def __init__(self, table: str, columns: Mapping[str, _Column]) -> None:
        """The table `table` has these columns, all of one length."""
        self.table = table
        self._columns = columns

    @staticmethod
    def of_values(table: str, columns: Mapping[str, Values]) -> Columns:
        """The columns of a table as `weirlab._native` gives them.

        Args:
            table: name of the table.
            columns: of each column its values, one a row, and of each row whether it has one; None: all have.
                Values are the bytes of numbers of 64 bits, or of the places of texts with these texts.
        """
        kinds = TABLES[table]
        return Columns(
            table, {name: _column(kinds[name]["kind"], *values) for name, values in columns.items()}
        )

    @staticmethod
    def of_frame(table: str, frame: pl.DataFrame) -> Columns:
        """The columns of a data frame with those of a table."""
        return Columns(table, {name: _of_series(frame[name]) for name in frame.columns})

    @property
    def height(self) -> int:
        """Number of rows."""
        return next((int(one.values.size) for one in self._columns.values()), 0)

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""
        return tuple(self._columns)

    def __contains__(self, name: str) -> bool:
        """Whether there is a column of that name."""
        return name in self._columns

    def numbers(self, name: str) -> NDArray[np.number[Any]]:
        """The numbers of a column; anything where there is none."""
        return self._columns[name].values

    def known(self, name: str) -> NDArray[np.bool_] | None:
        """Which rows have a value in a column; None if all have."""
        return self._columns[name].known

    def with_nan(self, name: str) -> NDArray[np.number[Any]]:
        """The numbers of a column, NaN where there is none."""
        one = self._columns[name]
        return one.values if one.known is None else np.where(one.known, one.values, np.nan)

    def values(self, name: str) -> list[Any]:
        """The values of a column, None where there is none."""
        one = self._columns[name]
        values = one.values.tolist()
        if one.known is None:
            return values if one.texts is None else [one.texts[place] for place in values]
        return [
            (value if one.texts is None else one.texts[value]) if known else None
            for value, known in zip(values, one.known.tolist(), strict=True)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dicts: the value of each column, None where there is none."""
        names = list(self._columns)
        each = zip(*(self.values(name) for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in each]

    def values_in(self, name: str, rows: NDArray[np.bool_]) -> list[Any]:
        """The values of a column in some rows, None where there is none."""
        return Columns(self.table, {name: self._columns[name].in_order(np.flatnonzero(rows))}).values(name)

    def texts(self, name: str) -> Sequence[str]:
        """The different texts of a column, whose places `numbers` has."""
        return self._columns[name].texts or ()

    def is_text(self, name: str, text: str) -> NDArray[np.bool_]:
        """Which rows have that text in a column."""
        one = self._columns[name]
        texts = one.texts or ()
        place = texts.index(text) if text in texts else -1
        there = np.asarray(one.values == place, dtype=np.bool_)
        return there if one.known is None else there & one.known

    def in_order(self, order: NDArray[np.intp]) -> Columns:
        """The columns with their rows in another order, or some of them: `order` has their places."""
        return Columns(self.table, {name: one.in_order(order) for name, one in self._columns.items()})

    def frame(self, names: Iterable[str] | None = None) -> pl.DataFrame:
        """A data frame of the columns `names`, or of all."""
        import polars as pl  # noqa: PLC0415 - figures need none

        chosen = self._columns if names is None else names
        return pl.DataFrame([_series(name, self._columns[name]) for name in chosen])


def _column(kind: str, content: bytes | tuple[bytes, list[str]], known: bytes | None) -> _Column:
    there = None if known is None else np.frombuffer(known, np.bool_)
    if isinstance(content, tuple):
        return _Column(np.frombuffer(content[0], np.int64), there, content[1])
    return _Column(np.frombuffer(content, np.float64 if kind == "float" else np.int64), there, None)


def _of_series(values: pl.Series) -> _Column:
    known = values.is_not_null().to_numpy() if values.null_count() else None
    if not values.dtype.is_numeric():
        texts = values.unique(maintain_order=True).drop_nulls().to_list()
        place = {text: number for number, text in enumerate(texts)}
        places = np.array([place.get(text, 0) for text in values], dtype=np.int64)
        return _Column(places, known, texts)
    return _Column((values if known is None else values.fill_null(0)).to_numpy(), known, None)


def _series(name: str, column: _Column) -> pl.Series:
    import polars as pl  # noqa: PLC0415 - figures need none

    values = pl.Series(name, column.values)
    if column.known is not None:
        values = values.set(pl.Series(~column.known), None)
    if column.texts is not None:
        return pl.Series(name, column.texts, pl.String).gather(values)
    return values
