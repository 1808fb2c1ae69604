"""Numbers at places of an order that is not held: those that sorting gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weirlab.stats import ranked
from weirlab.stats.counted import Chunk
from weirlab.stats.ranked import ALL_BITS, FIRST_BITS, MORE_BITS, Ranked, buckets_of, wider, widths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class Numbers:
    """Numbers of groups in chunks, and how often they were read."""

    def __init__(self, groups: dict[int, list[int | None]], size: int) -> None:
        rows = [(group, value) for group, values in groups.items() for value in values]
        self._group = np.array([group for group, _ in rows], np.int64)
        self._value = np.array([0 if value is None else value for _, value in rows], np.int64)
        self._known = np.array([value is not None for _, value in rows], np.bool_)
        self._size, self.readings = size, 0

    def __call__(self) -> Iterator[Chunk]:
        self.readings += 1
        for start in range(0, self._group.size, self._size):
            part = slice(start, start + self._size)
            yield Chunk(self._group[part], self._value[part], self._known[part])


def in_order(values: list[int | None]) -> NDArray[np.int64]:
    return np.sort(np.array([value for value in values if value is not None], np.int64))


@pytest.fixture(params=["at once", "read again", "in finer and finer buckets"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How many different numbers are counted at once, and how many wait for that."""
    if request.param != "at once":
        monkeypatch.setattr(ranked, "MOST_KEPT", 0)
    if request.param == "in finer and finer buckets":
        monkeypatch.setattr(ranked, "MOST_DIFFERENT", 3)
        monkeypatch.setattr(ranked, "MOST_WAITING", 7)
    return str(request.param)


@pytest.mark.parametrize(("kept", "readings"), [(1000, 2), (1 << 20, 1)])
def test_places_of_many_numbers_are_found_in_two_readings(
    kept: int, readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranked, "MOST_KEPT", kept)
    rng = np.random.default_rng(3)
    groups: dict[int, list[int | None]] = {
        0: (rng.gamma(2.0, 40e6, 20_000) + 14e6).astype(int).tolist(),
        1: rng.normal(14e6, 300, 20_000).astype(int).tolist(),
        2: [None, *rng.integers(0, 30_000, 5_000).tolist(), None],
        3: [None],
    }
    numbers = Numbers(groups, 777)
    found = Ranked(numbers, 4)
    assert [found.count(group) for group in groups] == [20_000, 20_000, 5_000, 0]
    assert [found.missing(group) for group in groups] == [0, 0, 2, 1]
    places = {group: np.linspace(0, found.count(group) - 1, 400).astype(int) for group in range(3)}
    at = found.at({**places, 3: np.zeros(0, np.int64)})
    assert numbers.readings == readings
    assert at[3].size == 0
    for group, wanted in places.items():
        assert at[group].tolist() == in_order(groups[group])[wanted].tolist()


def test_where_many_numbers_lie_close_together_finer_buckets_are_counted_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(3).integers(2**39, 2**39 + 2**28, 50_000)
    places = np.arange(0, values.size, 500)
    most: list[int] = []

    class Counting(ranked._Tally):
        def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            found = super().counts()
            most.append(found[0].size)
            return found

    monkeypatch.setattr(ranked, "_Tally", Counting)
    monkeypatch.setattr(ranked, "MOST_KEPT", 1000)
    monkeypatch.setattr(ranked, "MOST_DIFFERENT", 1000)
    numbers = Numbers({0: values.tolist()}, 500)
    assert Ranked(numbers, 1).at({0: places})[0].tolist() == np.sort(values)[places].tolist()
    assert numbers.readings == 3
    # Of all numbers there are few buckets, each of which has many finer ones, and these have few numbers.
    first, finer, last = most
    assert first < places.size
    assert finer <= first << MORE_BITS
    assert last < 1000


@pytest.mark.usefixtures("way")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.integers(0, 3),
        st.lists(st.none() | st.integers(-(2**62), 2**62) | st.integers(-300_000, 300_000), max_size=30),
        min_size=1,
    ),
    st.integers(1, 40),
)
def test_any_place_has_the_number_that_it_has_in_memory(
    groups: dict[int, list[int | None]], size: int
) -> None:
    found = Ranked(Numbers(groups, size), 4)
    wanted = {group: in_order(values) for group, values in groups.items()}
    at = found.at({group: np.arange(values.size)[::-1] for group, values in wanted.items()})
    for group, values in wanted.items():
        assert found.count(group) == values.size
        assert at[group].tolist() == values[::-1].tolist()


def test_buckets_are_in_the_order_of_their_numbers_and_lie_within_each_other() -> None:
    values = np.unique((2.0 ** np.linspace(0, 61, 50_000)).astype(np.int64))
    values = np.concatenate([[-(2**60), -1, 0], values])
    for bits in range(FIRST_BITS, ALL_BITS + 1, MORE_BITS):
        buckets = buckets_of(values, bits)
        assert buckets[:3].tolist() == [0, 0, 0]
        assert (np.diff(buckets) >= 0).all()
        assert wider(buckets, bits - FIRST_BITS).tolist() == buckets_of(values, FIRST_BITS).tolist()
    few = np.arange(1, 1 << 20)
    buckets, counts = np.unique(buckets_of(few, FIRST_BITS), return_counts=True)
    assert widths(buckets, FIRST_BITS).tolist() == counts.tolist()
