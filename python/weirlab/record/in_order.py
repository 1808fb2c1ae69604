"""Rows of tables of any length in an order other than that in which they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl
    from numpy.typing import NDArray

__all__ = ["in_order", "least_after", "least_of", "order_of"]


def in_order(
    leasts: Iterable[int | None], chunks: Iterable[pl.DataFrame], by: tuple[str, str]
) -> Iterator[pl.DataFrame]:
    """The rows of `chunks` by two columns; those that are equal in both stay as they came.

    Of rows that are nearly in order, as pings are that were written when they were answered, no more are held
    than a chunk and what is out of it.

    Args:
        leasts: of each chunk the `least_of` its column `by[0]`; all are read before the first of `chunks`.
        chunks: the rows.
        by: names of two columns of whole numbers of which none is null.

    Yields:
        Frames with the columns of `chunks`; none without rows.
    """
    least = least_after(leasts)
    held: list[pl.DataFrame] = []
    for later, chunk in zip(least, chunks, strict=True):
        rows = _together([*held, chunk])
        order = order_of(rows[by[0]].to_numpy(), rows[by[1]].to_numpy())
        rows = rows if order is None else rows[order]
        # What comes later may belong in front of the rest.
        ready = rows.height if later is None else int(rows[by[0]].search_sorted(later, side="left"))
        held = [rows[ready:]] if ready < rows.height else []
        if ready:
            yield rows[:ready]


def least_of(values: pl.Series) -> int | None:
    """The least of a column of whole numbers; None without any."""
    return cast("int | None", values.min())


def order_of(first: NDArray[np.number[Any]], second: NDArray[np.number[Any]]) -> NDArray[np.intp] | None:
    """The stable order of rows by `first`, then by `second`; None if they are in it."""
    later = first[1:] > first[:-1]
    # The simulator writes them in order: to sort ten million again takes longer than to read them.
    if np.all(later | ((first[1:] == first[:-1]) & (second[1:] >= second[:-1]))):
        return None
    # A stable order by two keys; of a few thousand rows NumPy has it sooner than Polars.
    return np.lexsort((second, first))


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - who asks for the order alone needs none

    return pl.concat(frames)


def least_after(leasts: Iterable[int | None]) -> list[int | None]:
    """The least value of all chunks behind each chunk; None where there is none."""
    found: list[int | None] = []
    least: int | None = None
    for value in reversed(list(leasts)):
        found.append(least)
        least = min((one for one in (least, value) if one is not None), default=None)
    return found[::-1]
