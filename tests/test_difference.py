"""Whether configurations differ over repetitions: intervals, pairs, corrections, and what can be shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats as reference

import weirlab
from weirlab.cli import weir as group
from weirlab.stats.difference import Difference, corrected, differences
from weirlab.stats.distribution import describe
from weirlab.stats.summary import LatencySummary, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def run(increase: float | None, seed: int | None) -> Summary:
    """A run of which only the increase is known."""
    latency = LatencySummary(
        idle=None,
        loaded=None if increase is None else describe(pl.Series([increase])),
        increase_mean_ms=increase,
        increase_median_ms=None,
        increase_p95_ms=None,
        increase_p99_ms=None,
        sent=1,
        lost=0,
        loss_rate=0.0,
    )
    return Summary(
        path="",
        test="",
        link="",
        world="sim",
        started_at="",
        note="",
        tags=[],
        queue="",
        seed=seed,
        complete=True,
        latency=latency,
        probes={},
        up=None,
        down=None,
        udp={},
        applications={},
        completion_ms={},
        warnings=[],
    )


def side(values: Sequence[float | None], first: int | None = 1) -> list[Summary]:
    return [run(value, None if first is None else first + place) for place, value in enumerate(values)]


def increase(before: list[Summary], after: list[Summary]) -> Difference:
    """The difference in the increase, corrected for itself alone."""
    found = next(one for one in differences(before, after) if one.figure == "increase_ms")
    return corrected([[found]])[0][0]


BEFORE, AFTER = [50.0, 61.0, 39.0, 70.0, 45.0, 58.0], [48.1, 59.0, 37.2, 67.8, 43.1, 55.9]


def test_runs_with_the_same_seeds_are_pairs() -> None:
    """What seeds do to both sides is five times larger than the difference, and cancels out."""
    paired = increase(side(BEFORE), side(AFTER))
    assert (paired.paired, paired.repeats, paired.better) == (True, 6, True)
    assert paired.p == pytest.approx(reference.ttest_rel(AFTER, BEFORE).pvalue)
    apart = increase(side(BEFORE), side(AFTER, first=101))
    assert (apart.paired, apart.repeats, apart.better) == (False, 6, None)
    assert apart.p == pytest.approx(reference.ttest_ind(AFTER, BEFORE, equal_var=False).pvalue)
    assert apart.size == paired.size == pytest.approx(np.mean(AFTER) - np.mean(BEFORE))
    assert increase(side(BEFORE, None), side(AFTER, None)).paired is False


def test_pairs_are_found_by_seed_and_not_by_order() -> None:
    shuffled = side(AFTER)[::-1]
    assert increase(side(BEFORE), shuffled) == increase(side(BEFORE), side(AFTER))


def test_the_interval_is_the_bca_bootstrap() -> None:
    found = increase(side(BEFORE), side(AFTER, first=101))
    known = reference.bootstrap(
        (np.array(BEFORE), np.array(AFTER)),
        lambda before, after, axis: after.mean(axis=axis) - before.mean(axis=axis),
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((known.low, known.high), rel=0.1)
    assert increase(side(BEFORE), side(AFTER, first=101)) == found, "the same records give the same interval"


def test_a_side_without_scatter_and_one_run_are_no_riddles() -> None:
    same = increase(side([5.0] * 3), side([5.0] * 3))
    assert (same.low, same.high, same.p, same.better) == (0.0, 0.0, 1.0, None)
    less = increase(side([5.0] * 3), side([3.0] * 3))
    assert (less.low, less.high, less.p, less.better) == (-2.0, -2.0, 0.0, True)
    one = increase(side([5.0]), side([3.0]))
    assert (one.size, one.low, one.p, one.p_holm, one.better, one.detectable) == (-2.0, *[None] * 5)
    assert one.too_few


def test_a_figure_that_a_run_lacks_is_not_compared() -> None:
    assert differences(side([5.0, None]), side([3.0, 4.0])) == []


def test_holm_corrects_all_comparisons_at_once() -> None:
    """The example of Holm's rule: 0.01, 0.04, 0.03 become 0.03, 0.06, 0.06."""
    bare = increase(side(BEFORE), side(AFTER))
    found = [[Difference(**{**vars(bare), "p": p})] for p in (0.01, 0.04, 0.03)]
    after = [one.p_holm for (one,) in corrected(found)]
    assert after == pytest.approx([0.03, 0.06, 0.06])
    assert [one.better for (one,) in corrected(found)] == [True, None, None]


def test_what_is_detectable_is_shown_in_four_of_five_cases() -> None:
    rng = np.random.default_rng(3)
    scatter, repeats, cases = 4.0, 12, 2000
    detectable = np.mean(
        [
            increase(
                side(list(rng.normal(50, scatter, repeats))),
                side(list(rng.normal(50, scatter, repeats)), 101),
            ).detectable
            or 0
            for _ in range(40)
        ]
    )
    before = rng.normal(50, scatter, (cases, repeats))
    after = rng.normal(50 + detectable, scatter, (cases, repeats))
    shown = reference.ttest_ind(after, before, axis=1, equal_var=False).pvalue < 0.05
    assert 0.75 < shown.mean() < 0.85


def test_of_nothing_hardly_anything_is_shown() -> None:
    """Six comparisons of equal configurations at a time: one in twenty times at most, with Holm."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(60):
        sides = [side(list(rng.normal(50, 4, 8)), 100 * place) for place in range(7)]
        found = [
            [one for one in differences(sides[0], other) if one.figure == "increase_ms"]
            for other in sides[1:]
        ]
        wrong += any(one.better is not None for many in corrected(found) for one in many)
    assert wrong <= 6


def test_the_command_names_the_winner_or_that_there_is_none(tmp_path: Path) -> None:
    weirlab.run(
        "rrul_be",
        link="cable-20-8",
        queue=["pfifo_fast", "fq_codel", "htb rate 95% fq_codel"],
        repeat=3,
        phases={"idle": "500ms", "load": "1s", "cooldown": "0s"},
        out=tmp_path / "out",
    )
    done = CliRunner().invoke(group, ["compare", str(tmp_path / "out")])
    said = " ".join(done.output.split())
    assert "`htb rate 95% fq_codel` less `pfifo_fast`" in said
    assert "better" in said
    assert "not shown" in said
    assert "3 pairs of runs with the same seed" in said
    assert "corrected for 12 comparisons (Holm)" in said
    assert "3 repetitions are few" in said
    shown = json.loads(CliRunner().invoke(group, ["compare", "--json", str(tmp_path / "out")]).output)
    assert [len(one["differences"]) for one in shown] == [0, 6, 6]
    first = shown[2]["differences"][0]
    assert first["figure"] == "increase_ms"
    assert first["low"] < first["size"] < first["high"] < 0
    assert first["paired"]
