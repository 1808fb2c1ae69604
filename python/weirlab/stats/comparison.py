"""Several runs beside each other: before and after, with intervals over repetitions."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.arguments import records_of
from weirlab.errors import UsageError, WeirWarning, counted
from weirlab.record.configurations import configurations
from weirlab.shown import Shown
from weirlab.stats.difference import Difference, corrected, differences, matched, resampled, scatters
from weirlab.stats.summary import Summary, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean over repetitions with its 95 % confidence interval.

    Attributes:
        mean: the mean.
        low, high: Student's interval; both None for a single repetition, which says nothing of spread.
        count: number of repetitions.
    """

    mean: float
    low: float | None
    high: float | None
    count: int


@dataclass(frozen=True, kw_only=True)
class Factor:
    """How much better the latency under load became.

    Attributes:
        factor: mean increase of the baseline / mean increase of this configuration, as in the cFosSpeed
            report; None if one of them is missing, if the first is below `MEASURED_MS` or the second not
            above 0: what was no increase cannot have become less, and if nothing is left of one, no number
            says how many times less that is.
        low, high: 95 % BCa bootstrap interval over repetitions; None for single runs, for the baseline, and
            where neither side scatters. `high` alone is None if it has no upper end: what is left of the
            increase may be nothing.
    """

    factor: float | None
    low: float | None
    high: float | None

    @property
    def ends(self) -> str | None:
        """The interval in words; None if there is none."""
        if self.low is None:
            return None
        return f"{factor_text(self.low)} {'upwards' if self.high is None else f'to {factor_text(self.high)}'}"


def factor_text(factor: float) -> str:
    """A factor with one decimal; or with two digits where it is below 1, so that it is never 0.0."""
    if 0 < factor < 1e-4:
        # Of smaller ones `g` would make powers of ten, which tables for people do not have.
        return f"{factor:.{1 - math.floor(math.log10(factor))}f}"
    return f"{factor:.1f}" if factor >= 0.95 else f"{factor:.2g}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Shown):
    """One configuration, over all its repetitions, beside the baseline.

    Attributes:
        name: what tells it apart: the queue spec, and in what else the configurations differ.
        runs: one summary a repetition.
        idle_ms, loaded_ms, median_ms, p95_ms, p99_ms, increase_ms: latency, over the repetitions; all of the
            probes of which the increase is, if there is one.
        down_mbps, up_mbps: goodput, over the repetitions.
        down_jain, up_jain: fairness, over the repetitions.
        factor: increase of the baseline / increase of this configuration, where there is one of each.
        differences: this configuration less the baseline, in each figure that both have; none for the
            baseline.
    """

    shown_as = "comparison"

    name: str
    runs: list[Summary]
    idle_ms: Interval | None
    loaded_ms: Interval | None
    median_ms: Interval | None
    p95_ms: Interval | None
    p99_ms: Interval | None
    increase_ms: Interval | None
    down_mbps: Interval | None
    up_mbps: Interval | None
    down_jain: Interval | None
    up_jain: Interval | None
    factor: Factor
    differences: list[Difference]

    @property
    def nothing_left(self) -> bool:
        """Whether load makes pings no slower at all (the mean increase is not above 0)."""
        return self.increase_ms is not None and self.increase_ms.mean <= 0

    @property
    def lost_share(self) -> float | None:
        """Share of the pings under load that was lost, of all runs together; None if that is not known."""
        lost = [run.latency.lost for run in self.runs if run.latency.lost is not None]
        sent = sum(run.latency.sent for run in self.runs)
        return sum(lost) / sent if sent and len(lost) == len(self.runs) else None

    @property
    def idle_lost_share(self) -> float | None:
        """The same of the pings in the phase `idle`."""
        lost = [run.latency.idle_lost for run in self.runs if run.latency.idle_lost is not None]
        sent = sum(run.latency.idle_sent for run in self.runs)
        return sum(lost) / sent if sent and len(lost) == len(self.runs) else None

    def __repr__(self) -> str:
        """The name of the comparison and the figures that one looks for."""
        loaded = "" if self.loaded_ms is None else f", {self.loaded_ms.mean:.1f} ms under load"
        less = "" if self.factor.factor is None else f", factor {factor_text(self.factor.factor)}"
        return f"Comparison({self.name!r}, {counted(len(self.runs), 'run')}{loaded}{less})"

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values, for JSON."""
        return asdict(self)


class Comparisons(Shown, list[Comparison]):
    """Configurations beside each other in a list that a notebook shows as a table."""

    shown_as = "comparisons"


def compare(records: Record | Iterable[Record]) -> list[Comparison]:
    """The configurations of `records` beside each other, in order; the first is the baseline.

    Records that differ in nothing but the seed are repetitions of one configuration. Of runs that were cut
    short, which stand beside the whole ones, Python's warnings say so.

    Raises:
        UsageError: if these are no records, such as a path.
    """
    records = records_of(records, "compare")
    if not records:
        raise UsageError("compare([]): give at least one record, the baseline")
    for record in records:
        if not record.manifest.complete:
            reached_s = record.reached_ns / 1e9
            warnings.warn(
                f"`{record.path}`: the run was cut short at {reached_s:.1f} s", WeirWarning, stacklevel=2
            )
    return beside(records)


def beside(records: Sequence[Record]) -> list[Comparison]:
    """As `compare`, for what itself tells of runs that were cut short; there is at least one record."""
    groups = [(one.name, [summarise(record) for record in one.records]) for one in configurations(records)]
    (_, baseline), *others = groups
    found = [[], *corrected([differences(baseline, runs) for _, runs in others])]
    return Comparisons(
        _comparison(name, runs, baseline=baseline, found=of)
        for (name, runs), of in zip(groups, found, strict=True)
    )


def interval(values: Sequence[float | None]) -> Interval | None:
    """The mean of the values that are there, with its 95 % interval; None if none is."""
    numbers = np.array([value for value in values if value is not None], dtype=float)
    if numbers.size == 0:
        return None
    mean = float(numbers.mean())
    if numbers.size == 1:
        return Interval(mean=mean, low=None, high=None, count=1)
    from scipy.stats import t  # noqa: PLC0415 - loads slowly, and only repetitions need it

    half = float(t.ppf(0.975, numbers.size - 1) * numbers.std(ddof=1) / np.sqrt(numbers.size))
    return Interval(mean=mean, low=mean - half, high=mean + half, count=int(numbers.size))


def _comparison(
    name: str, runs: list[Summary], *, baseline: list[Summary], found: list[Difference]
) -> Comparison:
    pings = [run.latency.told for run in runs]

    def latency(figure: str) -> Interval | None:
        return interval([getattr(loaded, figure) if loaded else None for _, loaded in pings])

    return Comparison(
        name=name,
        runs=runs,
        idle_ms=interval([idle.mean if idle else None for idle, _ in pings]),
        loaded_ms=latency("mean"),
        median_ms=latency("median"),
        p95_ms=latency("p95"),
        p99_ms=latency("p99"),
        increase_ms=interval([run.latency.increase_mean_ms for run in runs]),
        down_mbps=interval([run.down.goodput_mbps if run.down else None for run in runs]),
        up_mbps=interval([run.up.goodput_mbps if run.up else None for run in runs]),
        down_jain=interval([run.down.jain_index if run.down else None for run in runs]),
        up_jain=interval([run.up.jain_index if run.up else None for run in runs]),
        factor=_factor(baseline, runs),
        differences=found,
    )


def _factor(baseline: list[Summary], runs: list[Summary]) -> Factor:
    first, second, paired = matched(baseline, runs, lambda run: run.seed)
    before, after = _increases(first), _increases(second)
    whole = len(before) == len(first) and len(after) == len(second)
    same = [run.path for run in second] == [run.path for run in first]
    return factor(before, after, same=same, paired=paired and whole)


def _increases(runs: Sequence[Summary]) -> list[float]:
    increases = [run.latency.increase_mean_ms for run in runs]
    return [increase for increase in increases if increase is not None]


def factor(before: list[float], after: list[float], *, same: bool, paired: bool = False) -> Factor:
    """Mean of `before` / mean of `after`, with its interval unless they are the same runs.

    Args:
        before: the baseline's increases, one a repetition.
        after: the increases of the configuration.
        same: whether both are the same runs.
        paired: whether the repetitions of one place belong together.
    """
    if not before or not after or np.mean(before) < MEASURED_MS:
        return Factor(factor=None, low=None, high=None)
    left = float(np.mean(after))
    ratio = float(np.mean(before)) / left if left > 0 else None
    if same or len(before) < 2 or len(after) < 2:
        return Factor(factor=ratio, low=None, high=None)
    sides = np.array(before), np.array(after)
    if not scatters(*sides):
        return Factor(factor=ratio, low=None, high=None)
    angles = resampled(_angle, *sides, paired=paired)
    low, high = (None if angle == np.pi / 2 else float(np.tan(angle)) for angle in angles)
    return Factor(factor=ratio, low=low, high=None if ratio is None else high)


def _angle(
    before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], axis: int = -1
) -> npt.NDArray[np.float64]:
    """The angle whose tangent is the factor: a right one if nothing is left of the increase, and so finite.

    A mean of noise may lie below 0. What was no increase before cannot have been cured: its factor is 0.
    """
    increase, left = before.mean(axis=axis), np.maximum(after.mean(axis=axis), 0)
    return np.where(increase > 0, np.arctan2(increase, left), 0.0)


MEASURED_MS = 0.05
"""A baseline's increase of less is none: tables, which have tenths of a millisecond, show it as 0.0.

A simulated one may be of a few nanoseconds, of which packet comes first; a live clock's wake-ups take longer.
"""
