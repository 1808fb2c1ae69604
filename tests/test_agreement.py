"""Whether two sides agree: goals, scatter, and what is said of them."""

from __future__ import annotations

import pytest

from weirlab.stats import Goal, finding


@pytest.mark.parametrize(
    ("goal", "ours", "met"),
    [
        (Goal(share=0.2, amount=5), 12.0, True),
        (Goal(share=0.2, amount=5), 15.1, False),
        (Goal(share=0.2), 11.9, True),
        (Goal(amount=0.02), 10.03, False),
    ],
)
def test_a_goal_is_the_wider_of_share_and_amount(goal: Goal, ours: float, met: bool) -> None:
    assert goal.allows(ours, 10.0) is met


def test_a_difference_is_set_against_the_scatter_of_seeds() -> None:
    goal = Goal(share=0.015)
    found = finding("down_mbps", [10.0, 11.0, 12.0], [11.5, 12.5, 13.5], goal)
    assert (found.met, found.is_scatter) == (False, True)
    # Student's t of four degrees of freedom, 2.776, times the root of 2 / 3.
    assert found.scatter == pytest.approx(2.267, abs=0.001)
    assert not finding("down_mbps", [10.0, 11.0, 12.0], [21.5, 22.5, 23.5], goal).is_scatter
    assert finding("down_mbps", [10.0], [11.5], goal).scatter is None


def test_a_single_run_may_lie_where_one_more_run_of_the_other_side_would() -> None:
    goal = Goal(share=0.015)
    # Student's t of two degrees of freedom, 4.303, times the root of 1 + 1 / 3.
    found = finding("down_mbps", [10.0, 11.0, 12.0], [15.9], goal)
    assert found.scatter == pytest.approx(4.968, abs=0.001)
    assert found.is_scatter
    assert not finding("down_mbps", [10.0, 11.0, 12.0], [16.0], goal).is_scatter
    assert finding("down_mbps", [15.9], [10.0, 11.0, 12.0], goal).scatter == found.scatter
