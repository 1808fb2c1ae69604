"""Lines of any length: their points are kept as long as there is room, and then those that are seen."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from weirlab.plots import gathered
from weirlab.plots.gathered import Gathered, worth_drawing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.floating[Any]]

SPELLS, END_S = 100, 1000.0
SPAN_S = (0.0, END_S)


def walk(count: int = 200_000, gaps: float = 0.0) -> tuple[Numbers, Numbers]:
    """A line that goes up and down, with gaps in it."""
    rng = np.random.default_rng(5)
    values = np.abs(np.cumsum(rng.normal(0, 1, count)))
    values[rng.random(count) < gaps] = np.nan
    return (np.arange(count) + 0.5) * END_S / count, values


def by_spell(t_s: Numbers, values: Numbers) -> list[tuple[float, float, float, float]]:
    """The first, the last, the least and the greatest value of each spell."""
    spell = (t_s * (SPELLS / END_S)).astype(int)
    parts = [values[(spell == one) & np.isfinite(values)] for one in range(SPELLS)]
    return [(float(one[0]), float(one[-1]), float(one.min()), float(one.max())) for one in parts if one.size]


def stretches(values: Numbers) -> list[Numbers]:
    """The values between two gaps."""
    gaps = np.flatnonzero(np.isnan(np.concatenate([[np.nan], values, [np.nan]])))
    return [values[low : high - 1] for low, high in pairwise(gaps) if high > low + 1]


def test_of_a_line_without_gaps_each_spell_keeps_four_points() -> None:
    t_s, values = walk()
    kept = worth_drawing(t_s, values, SPAN_S, SPELLS)
    assert kept.size <= 4 * SPELLS
    assert (np.diff(kept) > 0).all()
    assert by_spell(t_s[kept], values[kept]) == by_spell(t_s, values)
    again = worth_drawing(t_s[kept], values[kept], SPAN_S, SPELLS)
    assert again.size == kept.size


@pytest.mark.parametrize("gaps", [0.001, 0.3, 0.9])
def test_gaps_stay_and_single_points_stay_single(gaps: float) -> None:
    t_s, values = walk(gaps=gaps)
    kept = worth_drawing(t_s, values, SPAN_S, SPELLS)
    assert kept.size < t_s.size / 3
    before, after = stretches(values), stretches(values[kept])
    every = {tuple(one) for one in before if one.size == 1}
    assert {tuple(one) for one in after if one.size == 1} <= every
    assert not (np.isnan(values[kept][1:]) & np.isnan(values[kept][:-1])).any()
    least, greatest = (np.array(by_spell(t_s, values))[:, place] for place in (2, 3))
    found = np.array(by_spell(t_s[kept], values[kept]))
    assert found[:, 2].tolist() == least.tolist()
    assert found[:, 3].tolist() == greatest.tolist()
    # Whatever single point is left out lies within a cell that has one.
    cells = {
        (int(t * SPELLS / END_S), int(value * gathered.HEIGHTS / np.nanmax(values) / 2))
        for t, value in zip(t_s[kept], values[kept], strict=True)
        if np.isfinite(value)
    }
    alone = np.flatnonzero(np.isnan(values[:-2]) & np.isfinite(values[1:-1]) & np.isnan(values[2:])) + 1
    for t, value in zip(t_s[alone], values[alone], strict=True):
        cell = (int(t * SPELLS / END_S), int(value * gathered.HEIGHTS / np.nanmax(values) / 2))
        assert any((cell[0], cell[1] + near) in cells for near in (-1, 0, 1))


def test_of_a_part_of_the_time_there_are_as_many_spells_and_the_extremes_of_the_others() -> None:
    t_s, values = walk()
    kept = worth_drawing(t_s, values, (400.0, 410.0), SPELLS)
    inside = (t_s[kept] >= 400) & (t_s[kept] < 410)
    assert 2 * SPELLS < inside.sum() <= 4 * SPELLS
    assert (~inside).sum() <= 2 * 4
    assert (values[kept].min(), values[kept].max()) == (values.min(), values.max())


@pytest.mark.parametrize("values", [[np.nan], [1.0], [np.nan, 1.0, np.nan], [0.0, np.nan, 0.0, np.nan]])
def test_few_points_are_kept(values: list[float]) -> None:
    kept = worth_drawing(np.arange(len(values)) * 1.0, np.array(values), (0.0, 10.0), 20)
    assert kept.tolist() == list(range(len(values)))


def test_all_points_are_kept_in_order_while_there_is_room() -> None:
    t_s, values = walk(1000, gaps=0.1)
    found = Gathered(END_S)
    for part in (slice(500, 1000), slice(0, 500)):
        found.add("window", 7, t_s[part], values[part])
    np.testing.assert_array_equal(found.points("window", 7), (t_s, values))
    assert found.lines("window") == [7]
    assert found.average("window") is None


def test_no_more_points_are_held_than_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "MOST_POINTS", 10_000)
    monkeypatch.setattr(gathered, "MOST_SPELLS", SPELLS)
    t_s, values = walk()
    found = Gathered(END_S, averaged=("window",))
    most = 0
    for start in range(0, t_s.size, 1000):
        part = slice(start, start + 1000)
        for line in range(3):
            found.add("window", line, t_s[part], values[part] + line)
            found.add("rate", line, t_s[part], values[part] * line)
        most = max(most, sum(t.size for parts in found._parts.values() for t, _ in parts))
    assert most <= 10_000
    for line in range(3):
        assert by_spell(*found.points("window", line)) == by_spell(t_s, values + line)
        assert by_spell(*found.points("rate", line)) == by_spell(t_s, values * line)
    # The average is of all points, not of those that were kept.
    average = found.average("window")
    assert average is not None
    np.testing.assert_allclose(np.array(by_spell(*average)), np.array(by_spell(t_s, values + 1)))


def test_a_line_without_a_point_is_one_beside_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "MOST_POINTS", 1000)
    found = Gathered(END_S)
    found.add("window", 1, np.zeros(0), np.zeros(0))
    found.add("window", 2, *walk(10_000))
    t_s, values = found.points("window", 1)
    assert (t_s.size, values.size) == (0, 0)
    assert found.points("window", 2)[0].size > 0
