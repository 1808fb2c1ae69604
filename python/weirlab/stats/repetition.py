"""Figures over repetitions: no worse than a baseline, and known well enough.

A configuration is no worse than a baseline by more than a margin if the one-sided 95 % confidence bound of
the difference lies within the margin (a test of non-inferiority). A figure is known well enough if its
interval is as narrow as asked; since each further repetition is another look, the confidence of the looks
grows so that all of them together have 95 % (Bonferroni, with shares of 6 / (pi k)^2 for look k).

Figures of a few runs may all be the same by chance. Their scatter of 0 is known only from so many runs on
that the distribution-free interval from the least to the largest of them has 95 %.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.errors import UsageError
from weirlab.stats.assertions import Figure
from weirlab.stats.difference import matched, standard_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class NotWorseOutcome:
    """Outcome of a comparison with a baseline.

    Attributes:
        text: the rule.
        worse_by: by how much the mean is worse than that of the baseline; negative if it is better.
        bound: upper end of its one-sided 95 % interval.
        margin: what it may be.
        baseline: mean of the baseline.
        share: the margin as a share of that, if the rule has it so; None if not.
        unit: what all but the share are in: `ms`, `Mbit/s`, or nothing of shares and counts.
        holds: whether `bound` is no more than `margin`. Without a sample it does not.
    """

    text: str
    worse_by: float
    bound: float
    margin: float
    baseline: float
    share: float | None
    unit: str
    holds: bool


class NotWorse:
    """A rule such as `latency.p95 not worse than baseline by 2ms`, or by a share such as 5%."""

    def __init__(self, text: str) -> None:
        """Reads `text`.

        Raises:
            UsageError: if it is no such rule, or does not say which is worse.
        """
        self.text = text
        found = _NOT_WORSE.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"`{text}`: write a rule such as `latency.p95 not worse than baseline by 2ms`")
        self._figure = Figure(found["figure"])
        self._sign = -1.0 if self._figure.higher_is_better() else 1.0
        self._share, self._margin = _tolerance(self._figure, found["margin"])

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Refuses a rule about what a run of that resolved scenario does not have.

        Raises:
            UsageError: if it names a phase that there is not, or a pattern matches no name.
        """
        self._figure.check(scenario)

    def of(self, runs: Sequence[Record], baseline: Sequence[Record]) -> NotWorseOutcome:
        """Whether the repetitions of a configuration are no worse than those of the baseline.

        Raises:
            UsageError: if one of both has fewer than two repetitions.
        """
        for name, side in (("the run", runs), ("the baseline", baseline)):
            if len(side) < 2:
                raise UsageError(
                    f"`{self.text}`: {name} has 1 repetition; 95 % need two or more (--repeat 5)"
                )
        baseline, runs, paired = matched(baseline, runs, lambda one: one.manifest.seed)
        ours, theirs = (np.array([self._figure.of(one) for one in side]) for side in (runs, baseline))
        sign = self._sign
        worse_by = float(sign * (ours.mean() - theirs.mean()))
        mean = float(theirs.mean())
        margin = self._margin if self._share is None else self._share * abs(mean)
        bound = worse_by + _half_width(sign * ours, sign * theirs, paired=paired)
        holds = bool(bound <= margin)
        return NotWorseOutcome(
            text=self.text,
            worse_by=worse_by,
            bound=bound,
            margin=margin,
            baseline=mean,
            share=self._share,
            unit=self._figure.unit,
            holds=holds,
        )


class Until:
    """A wish such as `latency.p95 +-5%` or `+-2ms`: half the width of the interval of the mean."""

    def __init__(self, text: str) -> None:
        """Reads `text`.

        Raises:
            UsageError: if it is no such wish.
        """
        self.text = text
        found = _UNTIL.fullmatch(text.strip())
        if found is None:
            raise UsageError(
                f"--until `{text}`: write a figure and half its interval, such as `latency.p95 +-5%`"
            )
        self._figure = Figure(found["figure"])
        self._share, self._width = _tolerance(self._figure, found["width"])
        self.unit = self._figure.unit
        if not (self._share or self._width) > 0:
            raise UsageError(f"--until `{text}`: the interval must be wider than 0")

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Refuses a wish about what a run of that resolved scenario does not have.

        Raises:
            UsageError: if it names a phase that there is not, or a pattern matches no name.
        """
        self._figure.check(scenario)

    def half_width(self, runs: Sequence[Record], look: int) -> tuple[float, float]:
        """Mean over a configuration's repetitions, and half of its interval at the `look`-th look, from 1."""
        from scipy.stats import t  # noqa: PLC0415 - loads slowly, and only repetitions need it

        values = np.array([self._figure.of(one) for one in runs])
        if values.size < 2:
            return float(values.mean()), math.inf
        level = 1 - (1 - CONFIDENCE) * 6 / (math.pi * look) ** 2
        if np.ptp(values) == 0 and values.size < MIN_ALIKE:
            return float(values.mean()), math.inf
        error = values.std(ddof=1) / math.sqrt(values.size)
        return float(values.mean()), float(t.ppf((1 + level) / 2, values.size - 1) * error)

    def is_unknown(self, runs: Sequence[Record]) -> bool:
        """Whether none of these runs has the figure, so that no further one is likely to."""
        return all(math.isnan(self._figure.of(one)) for one in runs)

    def met(self, runs: Sequence[Record], look: int) -> bool:
        """Whether the interval of a configuration is as narrow as asked."""
        mean, half = self.half_width(runs, look)
        return half <= (self._width if self._share is None else self._share * abs(mean))


def _tolerance(figure: Figure, text: str) -> tuple[float | None, float]:
    """Margin that a text such as `5%` or `2ms` allows: a share of the figure, or so much in its unit."""
    if _PERCENT.fullmatch(text):
        return float(text.removesuffix("%")) / 100, 0.0
    return None, figure.quantity(text)


def _half_width(ours: Any, theirs: Any, *, paired: bool) -> float:
    """By how much the one-sided bound of the difference of means lies beyond the difference."""
    from scipy.stats import t  # noqa: PLC0415 - loads slowly, and only repetitions need it

    error, freedom = standard_error(theirs, ours, paired=paired)
    return float(t.ppf(CONFIDENCE, freedom) * error) if error > 0 else 0.0


_QUANTITY = r"\d[\d.]*(?:%|[A-Za-z]+)?"

_NOT_WORSE = re.compile(rf"(?P<figure>.+?)\s+not worse than baseline by\s+(?P<margin>{_QUANTITY})")

_UNTIL = re.compile(rf"(?P<figure>.+?)\s*(?:\+-|±)\s*(?P<width>{_QUANTITY})")

_PERCENT = re.compile(r"\d+(\.\d+)?%")

CONFIDENCE = 0.95

MIN_ALIKE = 6
"""Runs that are all the same before that says anything: the least and the largest of n runs have the median
between them with 1 - 2^(1 - n), which is 0.97 of six and 0.94 of five."""
