"""Figures of numbers that are counted and not held: the same as of numbers in memory."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weirlab.stats import counted as counting
from weirlab.stats.counted import MERGED_AT, WIDTH, Chunk, Counted
from weirlab.stats.distribution import Distribution, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def chunked(groups: dict[int, list[int | None]], size: int) -> Callable[[], Iterator[Chunk]]:
    """Reads all numbers in chunks of that many rows."""
    rows = [(group, value) for group, values in groups.items() for value in values]
    frame = pl.DataFrame(rows, schema={"group": pl.Int64, "value": pl.Int64}, orient="row")

    def chunk(part: pl.DataFrame) -> Chunk:
        value = part["value"]
        return Chunk(part["group"].to_numpy(), value.fill_null(-1).to_numpy(), value.is_not_null().to_numpy())

    return lambda: map(chunk, frame.iter_slices(size))


def expected(
    groups: dict[int, list[int | None]], pool: dict[int, float], scale: float
) -> Distribution | None:
    numbers = [
        (value - off) / scale for group, off in pool.items() for value in groups[group] if value is not None
    ]
    return describe(pl.Series(numbers, dtype=pl.Float64))


def same(found: Distribution | None, wanted: Distribution | None) -> None:
    """Order statistics are equal, means and deviations but for rounding."""
    assert (found is None) == (wanted is None)
    if found is None or wanted is None:
        return
    size = max(abs(wanted.min), abs(wanted.max))
    for name, value in asdict(wanted).items():
        if value is None:
            assert getattr(found, name) is None, name
            continue
        near = {"mean": 1e-12 * size, "std": 1e-7 * size}.get(name, 0.0)
        assert getattr(found, name) == pytest.approx(value, rel=0, abs=near), name


@pytest.fixture(params=["held", "in buckets", "in buckets from the middle on", "in buckets and read again"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How many numbers are held before they are counted in buckets: all, none, or some."""
    held = {
        "held": 1 << 20,
        "in buckets": 0,
        "in buckets from the middle on": 20,
        "in buckets and read again": 0,
    }
    monkeypatch.setattr(counting, "MOST_HELD", held[request.param])
    if "again" in request.param:
        monkeypatch.setattr(counting, "MOST_KEPT", 1000)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_many_numbers_have_the_figures_that_they_have_in_memory() -> None:
    rng = np.random.default_rng(3)
    groups: dict[int, list[int | None]] = {
        0: [int(one) for one in rng.gamma(2.0, 40e6, 20_000) + 14e6],
        1: [int(one) for one in rng.normal(14e6, 300, 20_000)],
        2: [None, *(int(one) for one in rng.integers(0, 2 * WIDTH, 5_000)), None],
        3: [None],
    }
    counted = Counted(chunked(groups, 45_000 // (2 * MERGED_AT)))
    assert counted.groups() == [0, 1, 2, 3]
    assert [counted.count(group) for group in groups] == [20_000, 20_000, 5_000, 0]
    assert [counted.missing(group) for group in groups] == [0, 0, 2, 1]
    assert counted.mean(1) == pytest.approx(np.mean(np.array(groups[1], dtype=float)), rel=1e-14)
    pools = [{0: 0.0}, {1: 0.0}, {2: 0.0}, {3: 0.0}, {0: 0.0, 1: 0.0, 2: 0.0}, {0: 14e6 + 0.3, 1: 13e6 - 0.7}]
    for pool, found in zip(pools, counted.describe(pools, 1e6), strict=True):
        same(found, expected(groups, pool, 1e6))


@pytest.mark.usefixtures("way")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.integers(0, 3),
        st.lists(st.none() | st.integers(-(2**40), 2**40) | st.integers(-3 * WIDTH, 3 * WIDTH), max_size=30),
        min_size=1,
    ),
    st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4),
    st.integers(1, 40),
)
def test_any_numbers_have_the_figures_that_they_have_in_memory(
    groups: dict[int, list[int | None]], offsets: list[float], size: int
) -> None:
    pool = {group: offsets[group] for group in groups}
    counted = Counted(chunked(groups, size))
    zero = dict.fromkeys(groups, 0.0)
    for one, found in zip((pool, zero), counted.describe([pool, zero], 1.0), strict=True):
        same(found, expected(groups, one, 1.0))


@pytest.mark.usefixtures("way")
def test_groups_without_a_number_near_an_order_statistic_need_not_be_looked_at() -> None:
    groups: dict[int, list[int | None]] = {0: [1, 2, 3], 1: [10**9 + 1] * 1000, 2: [10**10] * 3}
    groups[3] = [500_000_000 + 100_000 * one for one in range(3)]
    counted = Counted(chunked(groups, 100))
    (found,) = counted.describe([dict.fromkeys(groups, 0.0)], 1.0)
    same(found, expected(groups, dict.fromkeys(groups, 0.0), 1.0))


def test_of_no_numbers_there_are_no_figures() -> None:
    counted = Counted(lambda: iter([]))
    assert counted.groups() == []
    assert counted.describe([{0: 0.0}, {}], 1.0) == [None, None]


def test_numbers_have_the_same_figures_to_the_bit_by_either_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    groups: dict[int, list[int | None]] = {
        number: [int(one) for one in rng.gamma(2.0, 40e6, 3_000)] for number in range(3)
    }
    pools = [{0: 0.0}, {0: 0.1, 1: 14e6 / 3, 2: -1e6}, {4: 0.0}]
    found = []
    for held, kept in ((1 << 20, 0), (5_000, 1 << 20), (0, 1 << 20), (0, 5_000)):
        monkeypatch.setattr(counting, "MOST_HELD", held)
        monkeypatch.setattr(counting, "MOST_KEPT", kept)
        found.append(Counted(chunked(groups, 700)).describe(pools, 1e6))
    assert found[0] == found[1] == found[2] == found[3]


def test_numbers_that_need_more_room_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_HELD", 0)
    groups: dict[int, list[int | None]] = {0: [*range(1000), 1 << 40]}
    (found,) = Counted(chunked(groups, 100)).describe([{0: 0.0}], 1.0)
    assert found is not None
    assert (found.max, found.median, found.count) == (float(1 << 40), 500.0, 1001)
