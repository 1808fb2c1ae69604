"""Rows of a long table in an order other than that in which they were written."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from weirlab.record.in_order import in_order, least_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def chunks_of(rows: list[tuple[int, int, int]], cuts: list[int]) -> list[pl.DataFrame]:
    kinds = {"a": pl.Int64, "b": pl.Int64, "c": pl.Int64}
    edges = [0, *cuts, len(rows)]
    return [
        pl.DataFrame(rows[start:end], schema=kinds, orient="row") for start, end in itertools.pairwise(edges)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_rows_come_in_order_and_equal_ones_as_they_were(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = [
        (number + int(chance.integers(-9, 10)), int(chance.integers(0, 4)), number)
        for number in range(chance.integers(0, 90))
    ]
    given = chunks_of(
        rows, sorted(int(chance.integers(0, len(rows) + 1)) for _ in range(chance.integers(0, 6)))
    )
    found = list(in_order((least_of(one["a"]) for one in given), given, ("a", "b")))
    assert [row for frame in found for row in frame.rows()] == sorted(rows, key=lambda row: row[:2])
    assert all(frame.height for frame in found)


def test_of_rows_nearly_in_order_few_are_held() -> None:
    given = chunks_of([(number ^ 1, 0, number) for number in range(10_000)], list(range(99, 10_000, 99)))
    taken = told = most = 0

    def counted() -> Iterator[pl.DataFrame]:
        nonlocal taken
        for one in given:
            taken += one.height
            yield one

    for frame in in_order((least_of(one["a"]) for one in given), counted(), ("a", "b")):
        told += frame.height
        most = max(most, taken - told)
    assert told == 10_000
    assert most == 1
