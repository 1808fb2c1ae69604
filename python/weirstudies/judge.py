"""The one judge of all studies: a statement is seen, not seen or undecided by intervals.

A rule says where a quantity must lie: above or below a bound, or a multiple of another quantity. It is
judged by the interval of that quantity over the repetitions, never by comparing two means: seen if the whole
interval lies where the rule wants it, not seen if all of it lies outside, undecided otherwise. Repetitions of
two configurations that share a seed are drawn together (paired).

All intervals of a statement hold together at 95 %: the chance that one of them misses its quantity, in any of
the looks, is at most 5 % (Bonferroni). That bounds both errors, a false statement seen and a true one not
seen, as far as the noise is normal; see `ERROR_IF_SKEWED`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
    Values = Mapping[int, float]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Where a rule says that a quantity lies, and the quantity as it was found.

    Attributes:
        what: the quantity, in words.
        ours: its value in each repetition, by seed.
        above, below: between what it lies; at least one of them.
        other: values of the quantity of which the bounds are multiples, by seed; None for plain bounds.
        least, most: between what the quantity can lie at all; None where there is no end.
        share: whether it is the share of repetitions in which something is so, whose values are 0 and 1.
    """

    what: str
    ours: Values
    above: float | None = None
    below: float | None = None
    other: Values | None = None
    least: float | None = None
    most: float | None = None
    share: bool = False

    def __post_init__(self) -> None:
        """Refuses a rule without a bound, and one whose bounds leave no room.

        Raises:
            ValueError: if it is one of them.
        """
        if self.above is None and self.below is None:
            raise ValueError(f"rule on {self.what}: give `above`, `below` or both")
        if self.above is not None and self.below is not None and self.above >= self.below:
            raise ValueError(f"rule on {self.what}: above {self.above:g} and below {self.below:g}: no room")

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        named = (("above", self.above), ("below", self.below))
        return " and ".join(f"{word} {bound:g}" for word, bound in named if bound is not None)

    def first(self, count: int) -> Claim:
        """This claim with the first `count` repetitions alone, in the order of seeds."""
        seeds = sorted({*self.ours, *(self.other or {})})[:count]
        ours = {seed: self.ours[seed] for seed in seeds if seed in self.ours}
        other = self.other and {seed: self.other[seed] for seed in seeds if seed in self.other}
        return replace(self, ours=ours, other=other)


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """A claim and what the judge makes of it.

    Attributes:
        claim: the claim.
        value: the quantity, or its ratio to the other one: of the means over repetitions.
        low, high: its interval; None if there is none.
        repetitions: over how many repetitions.
        paired: whether those of both quantities share their seeds.
        seen: whether it lies where the rule wants it; None if that is undecided.
        why: why it is undecided where no interval says so.
    """

    claim: Claim
    value: float | None
    low: float | None
    high: float | None
    repetitions: int
    paired: bool
    seen: bool | None
    why: str | None = None

    @property
    def text(self) -> str:
        """The rule, the interval and the repetitions, in a line."""
        claim = self.claim
        rule = f"{claim.what}: should be {claim.bounds}"
        if self.value is None or self.low is None or self.high is None:
            return f"{rule}; {self.why}"
        runs = f"{self.repetitions} {'paired repetitions' if self.paired else 'repetitions'}"
        more = f"; {self.why}" if self.why else ""
        return f"{rule}; it is {self.shown}, {runs}{more}"

    @property
    def shown(self) -> str:
        """The quantity and its interval, with as many digits as tell its ends from the bounds."""
        numbers = [one for one in (self.value, self.low, self.high) if one is not None]
        ends = [*numbers[1:], *(one for one in (self.claim.above, self.claim.below) if one is not None)]
        digits = next(
            (
                count
                for count in (3, 4, 5, 6, 7)
                if len({f"{one:.{count}g}" for one in ends}) == len(set(ends))
            ),
            8,
        )
        value, *interval = (f"{one:.{digits}g}" for one in numbers)
        return f"{value} [{', '.join(interval)}]" if interval else value

    def as_dict(self) -> dict[str, Any]:
        """It as plain values, for JSON."""
        claim = self.claim
        return {
            "what": claim.what,
            "above": claim.above,
            "below": claim.below,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "repetitions": self.repetitions,
            "paired": self.paired,
            "seen": self.seen,
            "why": self.why,
            "values": dict(claim.ours),
            "beside": claim.other and dict(claim.other),
        }


def judge(claims: Sequence[Claim], looks: Sequence[int]) -> list[Ruling]:
    """Judges a statement all of whose `claims` must hold: one ruling a claim.

    The judge looks after as many repetitions as `looks` says, as far as there are so many, and stops at the
    first look that decides the statement: what is repeated further does not count any more.

    Args:
        claims: the claims; none at all is no statement.
        looks: numbers of repetitions, rising, as they were planned before the run.
    """
    level = ERROR / (len(looks) * max(1, len(claims)))
    there = max((len({*claim.ours, *(claim.other or {})}) for claim in claims), default=0)
    rulings: list[Ruling] = []
    for count in looks:
        if rulings and count > there:
            break
        rulings = [_rule(claim.first(count), level) for claim in claims]
        if seen(rulings) is not None:
            break
    return rulings


def seen(rulings: Sequence[Ruling]) -> bool | None:
    """Whether a statement was seen: not if one claim is not, undecided if another one is."""
    if any(one.seen is False for one in rulings):
        return False
    if not rulings or any(one.seen is None for one in rulings):
        return None
    return True


def _rule(claim: Claim, level: float) -> Ruling:
    shared = sorted(set(claim.ours) & set(claim.other)) if claim.other is not None else sorted(claim.ours)
    paired = claim.other is not None and len(shared) >= min(len(claim.ours), len(claim.other))
    ours, other = _sides(claim, shared, paired=paired)
    count = int(ours.size if other is None else min(ours.size, other.size))

    def none(why: str, value: float | None = None) -> Ruling:
        return Ruling(
            claim=claim,
            value=value,
            low=None,
            high=None,
            repetitions=count,
            paired=paired,
            seen=None,
            why=why,
        )

    if count == 0:
        return none("no run has this figure")
    if count == 1:
        return none("one repetition has no interval; --repeat asks for more")
    if other is not None and other.mean() <= 0:
        return none("what it is a multiple of is not above 0")
    value = float(ours.mean() / (1.0 if other is None else other.mean()))
    low, high = _share(ours, level) if claim.share else _interval(ours, other, level, paired=paired)
    if not (np.isfinite(low) and np.isfinite(high)):
        return none("what it is a multiple of may be 0", value)
    if claim.other is None:
        low = low if claim.least is None else max(low, claim.least)
        high = high if claim.most is None else min(high, claim.most)
    idle = _cannot_fail(claim, other)
    return Ruling(
        claim=claim,
        value=value,
        low=low,
        high=high,
        repetitions=count,
        paired=paired,
        seen=None if idle else _lies(claim, low, high),
        why=idle,
    )


def _sides(claim: Claim, shared: list[int], *, paired: bool) -> tuple[Numbers, Numbers | None]:
    def numbers(values: Values, seeds: Sequence[int]) -> Numbers:
        return np.array([values[seed] for seed in seeds], dtype=float)

    if claim.other is None:
        return numbers(claim.ours, shared), None
    mine, theirs = (shared, shared) if paired else (sorted(claim.ours), sorted(claim.other))
    return numbers(claim.ours, mine), numbers(claim.other, theirs)


def _lies(claim: Claim, low: float, high: float) -> bool | None:
    above, below = claim.above, claim.below
    if (above is not None and high <= above) or (below is not None and low >= below):
        return False
    if (above is None or low > above) and (below is None or high < below):
        return True
    return None


def _cannot_fail(claim: Claim, other: Numbers | None) -> str | None:
    """Why a rule that no value can break decides nothing; None for a sound one."""
    scale = 1.0 if other is None else float(other.mean())
    for bound, end, sign, word in (
        (claim.below, claim.most, 1, "above"),
        (claim.above, claim.least, -1, "below"),
    ):
        if bound is not None and end is not None and sign * bound * scale > sign * end:
            return f"a rule that cannot fail: no value can be {word} {end:g}"
    return None


def _interval(ours: Numbers, other: Numbers | None, level: float, *, paired: bool) -> tuple[float, float]:
    """The wider of two intervals: bootstrap percentiles, and Student's.

    Percentiles are expanded as Hesterberg has it (2015, section 5.3), for they are too narrow for few
    repetitions; for very few even their ends are no further apart than the sample's, which Student's are.
    """
    if np.ptp(ours) == 0 and (other is None or np.ptp(other) == 0):
        value = float(ours[0] / (1.0 if other is None else other[0]))
        return value, value
    from scipy.stats import norm, t  # noqa: PLC0415 - loads slowly

    count = ours.size if other is None else min(ours.size, other.size)
    student = float(t.ppf(1 - level / 2, count - 1))
    tail = float(norm.sf(student * np.sqrt(count / (count - 1))))
    drawn = _drawn(ours, other, paired=paired)
    if not np.isfinite(drawn).all():
        return np.nan, np.nan
    low, high = np.quantile(drawn, (tail, 1 - tail))
    middle, error = _standard_error(ours, other, paired=paired)
    return min(float(low), middle - student * error), max(float(high), middle + student * error)


def _drawn(ours: Numbers, other: Numbers | None, *, paired: bool) -> Numbers:
    """The quantity in each bootstrap sample; not finite where its divisor is not above 0."""
    means: Numbers = ours[_places(ours.size, 0)].mean(axis=1)
    if other is None:
        return means
    below: Numbers = other[_places(other.size, 0 if paired else 1)].mean(axis=1)
    ratios: Numbers = np.divide(means, below, out=np.full_like(means, np.nan), where=below > 0)
    return ratios


def _standard_error(ours: Numbers, other: Numbers | None, *, paired: bool) -> tuple[float, float]:
    """The mean, or the ratio of means, and its standard error (of the ratio by the delta method)."""
    if other is None:
        return float(ours.mean()), float(ours.std(ddof=1) / np.sqrt(ours.size))
    ratio = float(ours.mean() / other.mean())
    if paired:
        rest = ours - ratio * other
        return ratio, float(rest.std(ddof=1) / np.sqrt(rest.size) / other.mean())
    variance = ours.var(ddof=1) / ours.size + ratio**2 * other.var(ddof=1) / other.size
    return ratio, float(np.sqrt(variance) / other.mean())


def _share(ours: Numbers, level: float) -> tuple[float, float]:
    """Clopper and Pearson's exact interval of a share."""
    from scipy.stats import binomtest  # noqa: PLC0415 - loads slowly

    found = binomtest(int(ours.sum()), ours.size).proportion_ci(1 - level)
    return float(found.low), float(found.high)


@cache
def _places(count: int, stream: int) -> npt.NDArray[np.int64]:
    """Repetitions in each bootstrap sample: the same for the same count, so that verdicts repeat."""
    return np.random.default_rng([count, stream]).integers(0, count, size=(DRAWS, count))


def by_seed(
    parts: Sequence[Values], together: Callable[[Sequence[float]], float], *, least: int | None = None
) -> dict[int, float]:
    """A quantity made of several: `together` over the parts of each seed.

    Args:
        parts: the parts, by seed.
        together: what makes one number of those of a seed.
        least: how many parts a seed must have; all if None.
    """
    wanted = len(parts) if least is None else least
    seeds = sorted({seed for part in parts for seed in part})
    found = {seed: [part[seed] for part in parts if seed in part] for seed in seeds}
    return {seed: float(together(values)) for seed, values in found.items() if len(values) >= max(1, wanted)}


ERROR: Final = 0.05
"""The chance that a statement is judged wrongly, at most."""

ERROR_IF_SKEWED: Final = 0.08
"""The chance that a statement is judged wrongly where the noise is as skewed as a gamma distribution of
shape 4: it was measured, not aimed at. Few repetitions do not show their skew."""

LOOKS: Final = (5, 10, 20)
"""After how many repetitions the judge looks where nothing else is said; the last one is the bound."""

DRAWS: Final = 8_000
"""Bootstrap samples: of the percentiles that four claims ask for after 40 repetitions, 1 in 800, ten."""
