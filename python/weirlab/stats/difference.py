"""Whether one configuration differs from another over repetitions, by how much, and how sure that is.

Runs with the same seeds are pairs: what a seed does to both cancels out. Intervals are BCa bootstraps over
repetitions (Efron 1987), probabilities those of Student's test for pairs or Welch's for two samples,
corrected by Holm (1979) for all comparisons that are made at once.

Figures are counted in segments and nanoseconds, so that a few repetitions may differ by chance by the very
same amount. A scatter of 0 then is no scatter that is known: there is no interval, and the probability is
that of the exact permutation test (Fisher 1935). Repetitions that are alike in all figures are one run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from weirlab.stats.experience import EXPERIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from weirlab.stats.summary import Summary

    Numbers = NDArray[np.floating[Any]]

Run = TypeVar("Run")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A figure of a configuration less that of the baseline, over repetitions.

    Attributes:
        figure: its name, such as `p95_ms`.
        size: mean of the configuration less mean of the baseline, in the figure's unit.
        low, high: 95 % BCa bootstrap interval of `size`; None with fewer than two repetitions of one, and
            where repetitions do not scatter.
        p: probability of such a difference, or a larger one, if there is none (two-sided); None with fewer
            than two repetitions of one.
        p_holm: the same, corrected by Holm for all differences of one comparison.
        paired: whether repetitions with the same seed were compared with each other.
        repeats: number of pairs, or of repetitions on the side that has fewer.
        standard_error: that of `size`, in the figure's unit; None where there is no interval.
        freedom: its degrees of freedom (Welch and Satterthwaite, if there are no pairs).
        detectable: the smallest difference that so many repetitions with that scatter show in four of five
            cases, also if no other of the comparison is shown: at 0.05 / number of tests, Holm's first step.
        better: whether the configuration is better than the baseline (True) or worse (False); None if that is
            not shown: `p_holm` is not below 0.05, or 0 lies within the interval.
        alike: whether the repetitions of each side are alike in all figures: nothing in them depends on the
            seed, so that they count as one run.
        counts: repetitions of the baseline and of the configuration; None if not known.
    """

    figure: str
    size: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    paired: bool
    repeats: int
    standard_error: float | None
    freedom: float | None
    detectable: float | None
    better: bool | None
    alike: bool = False
    counts: tuple[int, int] | None = None


def matched(
    baseline: Sequence[Run], runs: Sequence[Run], seed_of: Callable[[Run], int | None]
) -> tuple[Sequence[Run], Sequence[Run], bool]:
    """Both sides in the order of their seeds if these are the same, each once; and whether they are."""
    seeds = [[seed_of(run) for run in side] for side in (baseline, runs)]
    known = [{seed for seed in side if seed is not None} for side in seeds]
    paired = known[0] == known[1] and all(
        len(one) == len(side) for one, side in zip(known, seeds, strict=True)
    )
    if not paired:
        return baseline, runs, False
    before, after = (sorted(side, key=lambda run: seed_of(run) or 0) for side in (baseline, runs))
    return before, after, True


def differences(baseline: Sequence[Summary], runs: Sequence[Summary]) -> list[Difference]:
    """The differences of `runs` from `baseline` in all of `FIGURES` that both have, not yet corrected."""
    baseline, runs, paired = matched(baseline, runs, lambda run: run.seed)
    sides: dict[str, tuple[Numbers, Numbers]] = {}
    for figure, (value_of, _) in FIGURES.items():
        before, after = [value_of(run) for run in baseline], [value_of(run) for run in runs]
        if before and after and None not in before and None not in after:
            # What some runs lack cannot be compared without leaving runs out.
            sides[figure] = (np.array(before, dtype=float), np.array(after, dtype=float))
    if min(len(baseline), len(runs)) > 1 and not any(scatters(*both) for both in sides.values()):
        ones = {figure: (before[:1], after[:1]) for figure, (before, after) in sides.items()}
        return [replace(_difference(name, *one, paired=paired), alike=True) for name, one in ones.items()]
    return [_difference(figure, *both, paired=paired) for figure, both in sides.items()]


def corrected(found: Sequence[Sequence[Difference]]) -> list[list[Difference]]:
    """The differences of several configurations, corrected together by Holm's rule, and what they show."""
    tested = sorted(
        (one.p, group, place)
        for group, many in enumerate(found)
        for place, one in enumerate(many)
        if one.p is not None
    )
    results = [list(many) for many in found]
    highest = 0.0
    for rank, (p, group, place) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        one = replace(results[group][place], p_holm=highest)
        seen = _detectable(one, SIGNIFICANCE / len(tested))
        results[group][place] = replace(one, better=_better(one), detectable=seen)
    return results


def resampled(
    statistic: Callable[..., Any], before: Numbers, after: Numbers, *, paired: bool
) -> tuple[float, float]:
    """The 95 % BCa bootstrap interval of a statistic of two samples; of percentiles where BCa has none."""
    from scipy.stats import bootstrap  # noqa: PLC0415 - loads slowly, and only repetitions need it

    def interval(method: Literal["BCa", "percentile"]) -> tuple[float, float]:
        # A generator of its own with a fixed seed: the same records give the same interval.
        found = bootstrap(
            (before, after),
            statistic,
            paired=paired,
            n_resamples=BOOTSTRAP_DRAWS,
            method=method,
            rng=np.random.default_rng(0),
        ).confidence_interval
        return float(found.low), float(found.high)

    with np.errstate(all="ignore"):
        low, high = _without_warnings(lambda: interval("BCa"))
        return (low, high) if np.isfinite([low, high]).all() else interval("percentile")


def _without_warnings(call: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    import warnings  # noqa: PLC0415 - as SciPy, only here

    with warnings.catch_warnings():
        # SciPy warns where BCa is not defined; its NaN says so too.
        warnings.simplefilter("ignore")
        return call()


def _difference(figure: str, before: Numbers, after: Numbers, *, paired: bool) -> Difference:
    size = float(after.mean() - before.mean())
    repeats = int(min(before.size, after.size))
    bare = Difference(
        figure=figure,
        size=size,
        low=None,
        high=None,
        p=None,
        p_holm=None,
        paired=paired and repeats > 1,
        repeats=repeats,
        standard_error=None,
        freedom=None,
        detectable=None,
        better=None,
        counts=(before.size, after.size),
    )
    if repeats < 2:
        return bare
    if not (scatters(after - before) if paired else scatters(before, after)):
        return replace(bare, p=_by_order(size, before.size, after.size, paired=paired))
    from scipy.stats import t  # noqa: PLC0415 - loads slowly, and only repetitions need it

    error, freedom = standard_error(before, after, paired=paired)
    low, high = resampled(_mean_difference, before, after, paired=paired)
    p = float(2 * t.sf(abs(size) / error, freedom))
    return replace(bare, low=low, high=high, p=p, standard_error=error, freedom=freedom)


def standard_error(before: Numbers, after: Numbers, *, paired: bool) -> tuple[float, float]:
    """Standard error of the difference of means, and its degrees of freedom (Welch and Satterthwaite)."""
    if paired:
        return float((after - before).std(ddof=1) / np.sqrt(before.size)), float(before.size - 1)
    parts = [float(side.var(ddof=1) / side.size) for side in (before, after)]
    weights = sum(part**2 / (side.size - 1) for part, side in zip(parts, (before, after), strict=True))
    freedom = sum(parts) ** 2 / weights if weights > 0 else float(before.size + after.size - 2)
    return float(np.sqrt(sum(parts))), freedom


def scatters(*samples: Numbers) -> bool:
    """Whether the values of a sample lie further apart than figures are known."""
    return any(np.ptp(one) > RESOLUTION for one in samples)


def _by_order(size: float, before: int, after: int, *, paired: bool) -> float:
    """The two-sided probability of samples that do not scatter: by the exact permutation test.

    Of the 2^n ways in which the differences of n pairs may have their signs, two have all alike. Of the ways
    to deal repetitions to two sides, one parts the values, and if both sides are as large its mirror too.
    """
    if abs(size) <= RESOLUTION:
        return 1.0
    if paired:
        return 2.0 ** (1 - before)
    return (2 if before == after else 1) / math.comb(before + after, before)


def _mean_difference(before: Numbers, after: Numbers, axis: int = -1) -> Numbers:
    return np.asarray(after.mean(axis=axis) - before.mean(axis=axis))


def _better(one: Difference) -> bool | None:
    if one.p_holm is None or one.p_holm >= SIGNIFICANCE:
        return None
    if one.low is not None and one.high is not None and one.low <= 0 <= one.high:
        return None
    return (one.size > 0) is (FIGURES[one.figure][1] == "higher")


def _detectable(one: Difference, level: float) -> float | None:
    """The difference of which Student's test at that level has the power `POWER`, in the figure's unit.

    If there is a difference, Student's t is noncentral: by it in standard errors (Cohen 1988, section 2).
    """
    if one.standard_error is None or one.freedom is None:
        return None
    from scipy.optimize import brentq  # noqa: PLC0415 - loads slowly, and only repetitions need it
    from scipy.stats import nct, t  # noqa: PLC0415

    freedom, limit = one.freedom, float(t.isf(level / 2, one.freedom))
    errors = brentq(lambda size: float(nct.sf(limit, freedom, size)) - POWER, 0.0, 4 * limit + 10)
    return float(errors) * one.standard_error


def _loaded(figure: str) -> Callable[[Summary], float | None]:
    def value(run: Summary) -> float | None:
        _, loaded = run.latency.told
        return None if loaded is None else float(getattr(loaded, figure))

    return value


FIGURES: dict[str, tuple[Callable[[Summary], float | None], Literal["lower", "higher"]]] = {
    "increase_ms": (lambda run: run.latency.increase_mean_ms, "lower"),
    "loaded_ms": (_loaded("mean"), "lower"),
    "p95_ms": (_loaded("p95"), "lower"),
    "p99_ms": (_loaded("p99"), "lower"),
    "down_mbps": (lambda run: run.down.goodput_mbps if run.down else None, "higher"),
    "up_mbps": (lambda run: run.up.goodput_mbps if run.up else None, "higher"),
    "mos": (EXPERIENCE["mos"], "higher"),
    "page_ms": (EXPERIENCE["page_ms"], "lower"),
    "lookup_ms": (EXPERIENCE["lookup_ms"], "lower"),
}
"""The figures that are compared, and which is better."""

SIGNIFICANCE = 0.05
"""Over all comparisons at once."""

POWER = 0.8
"""Share of cases in which a difference of the size `detectable` is shown (Cohen 1988)."""

RESOLUTION = 1e-5
"""How well figures are known, in ms, in Mbit/s and in points of a score: 10 ns and 10 bit/s.

Times are whole nanoseconds, which every hop rounds, and goodput is of whole bytes over some seconds.
"""

MIN_REPEATS = 5
"""Bootstrap intervals of fewer are too narrow: of three repetitions there are ten different draws."""

BOOTSTRAP_DRAWS = 2000
"""Enough that the interval's ends are steady to about 1 % (Efron and Tibshirani 1993, section 14)."""
