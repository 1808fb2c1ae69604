"""Whether configurations differ over repetitions: intervals, pairs, corrections, and what can be shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats as reference

import weirlab
from weirlab.cli import weir as group
from weirlab.record.differences import queue_name
from weirlab.report.applications import comparison_of_applications
from weirlab.report.differences import difference_tables
from weirlab.stats.comparison import Comparison, Factor, compare
from weirlab.stats.difference import Difference, corrected, differences
from weirlab.stats.distribution import describe
from weirlab.stats.summary import LatencySummary, Summary, summarise
from weirlab.stats.transfers import TransferSummary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def run(increase: float | None, seed: int | None) -> Summary:
    """A run of which only the increase is known."""
    latency = LatencySummary(
        idle=None,
        loaded=None if increase is None else describe(pl.Series([increase])),
        compared=None,
        increase_mean_ms=increase,
        increase_median_ms=None,
        increase_p95_ms=None,
        increase_p99_ms=None,
        sent=1,
        lost=0,
        loss_rate=0.0,
        idle_sent=1,
        idle_lost=0,
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
        during="during the load",
        latency=latency,
        idle_remark=None,
        compared_remark=None,
        idle_use=None,
        probes={},
        up=None,
        down=None,
        udp={},
        applications={},
        completion_ms={},
        speed_tests=0,
        warnings=[],
    )


def side(values: Sequence[float | None], first: int | None = 1) -> list[Summary]:
    return [run(value, None if first is None else first + place) for place, value in enumerate(values)]


def increase(before: list[Summary], after: list[Summary]) -> Difference:
    """The difference in the increase, corrected for itself alone."""
    found = next(one for one in differences(before, after) if one.figure == "increase_ms")
    return corrected([[found]])[0][0]


CASES = 200

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


def test_one_run_is_no_riddle() -> None:
    one = increase(side([5.0]), side([3.0]))
    assert (one.size, one.low, one.p, one.p_holm, one.better, one.detectable) == (-2.0, *[None] * 5)
    assert not one.alike


def test_repetitions_that_are_alike_in_all_figures_are_one_run() -> None:
    """As of a simulation in which nothing depends on the seed: five times the same shows no scatter."""
    for after, size in (([3.0] * 5, -2.0), ([5.0] * 5, 0.0)):
        for first in (1, 101):
            found = increase(side([5.0] * 5), side(after, first))
            assert (found.size, found.repeats, found.alike) == (size, 1, True)
            assert (found.low, found.p, found.p_holm, found.better, found.detectable) == (None,) * 5
    scattered = increase(side([5.0] * 5), side([3.0, 3.1, 2.9, 3.0, 3.2], 101))
    assert (scattered.repeats, scattered.alike, scattered.better) == (5, False, True)


def test_differences_that_happen_to_be_equal_prove_nothing() -> None:
    """Goodput is counted in segments, and two pairs often differ by the very same number of them.

    The exact test of n pairs with one sign has p = 2^(1 - n), whatever Student's makes of rounding.
    """
    before = [14.9, 15.3, 14.2, 15.8, 14.5, 15.1, 14.7, 15.5, 14.4, 15.0]
    for rounding in (0.0, 1e-15, 4e-6):
        after = [value - 0.003 + rounding * (place % 2) for place, value in enumerate(before)]
        for pairs in (2, 3, 5, 10):
            found = increase(side(before[:pairs]), side(after[:pairs]))
            assert found.p == 2.0 ** (1 - pairs)
            assert (found.low, found.high, found.detectable) == (None, None, None)
            assert (found.repeats, found.alike) == (pairs, False)
            assert found.better is (True if pairs == 10 else None)
    same = increase(side(before), side(before))
    assert (same.p, same.low, same.better) == (1.0, None, None)


def test_sides_that_do_not_scatter_are_tested_exactly() -> None:
    """Five and five runs are dealt to two sides in 252 ways; two of them part two values."""
    apart = [differences(others([7.0] * 5, 1), others([8.0] * 5, 101))[0]]
    assert apart[0].figure == "increase_ms"
    assert apart[0].p == pytest.approx(2 / 252)
    assert increase(others([7.0] * 5, 1), others([8.0] * 4, 101)).p == pytest.approx(1 / 126)


def others(increases: Sequence[float], first: int) -> list[Summary]:
    """Runs with these increases, of which round trips scatter."""
    runs = side([20.0 + 0.1 * place for place, _ in enumerate(increases)], first)
    return [
        replace(one, latency=replace(one.latency, increase_mean_ms=value))
        for one, value in zip(runs, increases, strict=True)
    ]


@pytest.mark.parametrize(("pairs", "steps"), [(2, 1), (2, 2), (3, 2), (5, 1), (5, 2), (5, 5)])
def test_of_coarse_figures_that_do_not_differ_little_is_shown(pairs: int, steps: int) -> None:
    """Both sides are drawn from the same few values: one in twenty times at most a difference is shown."""
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(CASES):
        before, after = (others(list(rng.integers(0, steps + 1, pairs).astype(float)), 1) for _ in range(2))
        wrong += increase(before, after).better is not None
    assert wrong <= 0.05 * CASES + 3 * np.sqrt(CASES * 0.05 * 0.95)


def test_a_figure_that_a_run_lacks_is_not_compared() -> None:
    assert differences(side([5.0, None]), side([3.0, 4.0])) == []


def test_calls_pages_and_lookups_are_compared(tmp_path: Path) -> None:
    queues = ["pfifo limit 1000", "htb rate 95% fq_codel"]
    phases = {"idle": "2s", "load": "4s", "cooldown": "1s"}
    of = {}
    for test in ("voip-rrul", "http-1down"):
        records = weirlab.run(test, link="cable-20-8", queue=queues, phases=phases, out=tmp_path / test)
        _, shaped = weirlab.compare(records)
        of[test] = {one.figure: one.size for one in shaped.differences}
        base, under = (weirlab.summarise(one) for one in records)
        if test == "voip-rrul":
            scores = [[one.voice.mos for one in each.udp.values() if one.voice] for each in (base, under)]
            assert of[test]["mos"] == pytest.approx(np.mean(scores[1]) - np.mean(scores[0]))
            assert of[test]["mos"] > 0.5
    assert "page_ms" in of["http-1down"]


def test_pages_of_which_some_were_given_up_are_not_compared() -> None:
    page = TransferSummary(
        kind="web",
        done=2,
        given_up=0,
        cut=0,
        failed_rate=0.0,
        mean_ms=100.0,
        median_ms=100.0,
        p95_ms=100.0,
        max_ms=100.0,
        first_byte_ms=50.0,
        idle_ms=None,
        response=None,
        video=None,
    )

    def size(before: list[TransferSummary], after: list[TransferSummary]) -> float | None:
        sides = [
            [replace(run(1.0, 1), applications={str(place): one for place, one in enumerate(pages)})]
            for pages in (before, after)
        ]
        return next((one.size for one in differences(*sides) if one.figure == "page_ms"), None)

    slow, lookup = replace(page, mean_ms=300.0), replace(page, kind="dns", mean_ms=9e9)
    assert size([page, slow], [page, page, lookup]) == -100.0
    assert size([page, replace(page, given_up=1)], [page, page]) is None


def test_holm_corrects_all_comparisons_at_once() -> None:
    """The example of Holm's rule: 0.01, 0.04, 0.03 become 0.03, 0.06, 0.06."""
    bare = increase(side(BEFORE), side(AFTER))
    found = [[Difference(**{**vars(bare), "p": p})] for p in (0.01, 0.04, 0.03)]
    after = [one.p_holm for (one,) in corrected(found)]
    assert after == pytest.approx([0.03, 0.06, 0.06])
    assert [one.better for (one,) in corrected(found)] == [True, None, None]


def compared(*found: Difference) -> list[Comparison]:
    """A baseline, and a configuration for each of these differences from it."""
    named = {"before": [], **{f"after {number}": [one] for number, one in enumerate(found)}}
    return [
        Comparison(
            name=name,
            runs=[],
            idle_ms=None,
            loaded_ms=None,
            median_ms=None,
            p95_ms=None,
            p99_ms=None,
            increase_ms=None,
            down_mbps=None,
            up_mbps=None,
            down_jain=None,
            up_jain=None,
            factor=Factor(factor=None, low=None, high=None),
            differences=differences,
        )
        for name, differences in named.items()
    ]


def test_a_difference_that_is_shown_is_not_told_as_nothing() -> None:
    runs = side([50.0, 61.0, 39.0, 70.0]), side([50.0038, 61.0039, 39.0037, 70.0038])
    (table,) = difference_tables(compared(increase(*runs)))
    size, interval, verdict = (str(next(iter(table.columns[place].cells))) for place in (1, 2, 5))
    assert (size, verdict) == ("+0.0038", "worse")
    assert interval.startswith("+0.003")


def test_a_caption_names_the_test_and_the_runs_of_both_sides() -> None:
    """Pairs of the same seeds are tested by Student's, two samples by Welch's."""
    pairs = increase(side([50.0, 61.0, 39.0]), side([40.0, 47.0, 32.0]))
    samples = increase(side([50.0, 61.0, 39.0, 70.0, 55.0, 52.0]), side([40.0, 47.0, 32.0, 45.0], first=31))
    assert (pairs.counts, samples.counts) == ((3, 3), (6, 4))

    def caption(*found: Difference) -> str:
        return str(difference_tables(compared(*found))[-1].caption).partition("; detectable")[0]

    assert caption(pairs) == "BCa bootstrap over 3 pairs of runs with the same seed; p by Student's test"
    assert caption(samples) == "BCa bootstrap over 6 and 4 runs; p by Welch's test"
    assert caption(pairs, samples) == (
        "BCa bootstrap over 3 to 6 runs, in pairs where both have the same seeds; p by Student's test where "
        "there are pairs, otherwise by Welch's test, corrected for 2 comparisons (Holm)"
    )


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


def test_what_is_detectable_is_so_after_the_correction() -> None:
    """Twelve comparisons, of which one differs by `detectable`: that is shown in four of five cases.

    Scatter is drawn around what is known, so that chance is that of the test and not of its estimate.
    """
    rng = np.random.default_rng(5)
    repeats, tests, cases = 5, 12, 400
    bare = replace(
        increase(side(BEFORE), side(AFTER)), standard_error=1 / np.sqrt(repeats), freedom=repeats - 1.0
    )
    found = corrected([[replace(bare, p=0.5)] * tests])[0][0]
    assert found.detectable is not None
    drawn = rng.normal(0, 1, (cases, tests, repeats))
    drawn[:, 0] += found.detectable
    p = reference.ttest_1samp(drawn, 0, axis=2).pvalue
    shown = 0
    for row in p:
        many = [replace(bare, p=one, size=-1.0, low=-2.0, high=-0.5) for one in row]
        shown += sum(one.better is not None for one in corrected([many])[0][:1])
    assert 0.75 < shown / cases < 0.85
    alone = corrected([[replace(bare, p=0.5)]])[0][0].detectable
    assert alone is not None
    assert found.detectable > 1.9 * alone


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


def test_intervals_of_few_repetitions_are_told_wherever_they_are_shown(tmp_path: Path) -> None:
    words = ["run", "rrul", "--queue", "default", "--queue", "htb rate 95% fq_codel", "--repeat", "2"]
    short = ["--idle", "500ms", "--load", "1s", "--cooldown", "0s", "--no-charts"]
    done = CliRunner().invoke(group, [*words, *short, "--out", str(tmp_path / "out")])
    assert "2 repetitions are few: intervals of fewer than 5" in " ".join(done.output.split())
    page = CliRunner().invoke(group, ["report", str(tmp_path / "out"), "--out", str(tmp_path / "page.html")])
    assert page.exit_code == 0, page.output
    assert "Caution: 2 repetitions are few" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_came_of_calls_and_pages_is_told_beside_each_other(weir_here: Any) -> None:
    """A test without pings has no round trips to tell: its result is the score of its calls."""
    words = ("--load", "5s", "--queue", "default", "--queue", "fq_codel", "--no-charts")
    said = weir_here("run", "voip", *words, "--out", "calls")
    assert "MOS" in said.stdout
    assert "4.37" in said.stdout
    assert "weir show calls" in said.stderr
    records = weirlab.run("http-1down", queue=["default", "fq_codel"], phases={"load": "10s"}, repeat=2)
    table = comparison_of_applications(compare(records))
    assert table is not None
    assert [column.header for column in table.columns] == ["queue", "page\nms"]
    (first, second) = [str(cell) for cell in table.columns[1].cells]
    times = [[one.mean_ms for one in summarise(record).applications.values()] for record in records[:2]]
    means = [found[0] for found in times if found[0] is not None]
    assert first.startswith(f"{sum(means) / 2:.1f}\n±")
    assert second != first
    assert comparison_of_applications(compare(weirlab.run("ping", phases={"load": "1s"}))) is None


def test_a_real_path_has_no_link_whose_queue_could_be_meant() -> None:
    (record,) = weirlab.run("ping", phases={"load": "1s"})
    assert queue_name(record) == "the link's own queue"
    for world in ("net", "imported"):
        record.manifest = replace(record.manifest, world=world)
        assert queue_name(record) == "the path's own queues"
