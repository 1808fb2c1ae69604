"""Whether two sides of one and the same thing agree: figures, goals, and what chance alone does."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.experience import EXPERIENCE
from weirlab.stats.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from weirlab.record import Record
    from weirlab.stats.summary import DirectionSummary, Summary


@dataclass(frozen=True, kw_only=True)
class Goal:
    """How far a side's mean may be from the reference's: the wider of the two.

    Attributes:
        share: as a share of the reference's mean.
        amount: in the figure's own unit.
    """

    share: float = 0.0
    amount: float = 0.0

    def allows(self, ours: float, reference: float) -> bool:
        """Whether two means are near enough to each other."""
        return abs(ours - reference) <= max(self.share * abs(reference), self.amount)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One figure beside its reference.

    Attributes:
        figure: its name.
        ours, reference: means over the runs.
        ours_std, reference_std: standard deviations over the runs; None for a single one.
        difference: (ours - reference) / reference; None if the reference has 0.
        scatter: how far apart the means of two sets of runs of one and the same thing may be: half of
            Welch's 95 % interval of the difference. A single run is taken to scatter as those of the other
            side do; None if both sides are single runs.
        met: whether the goal is met; None for a figure without a goal.
    """

    figure: str
    ours: float
    reference: float
    ours_std: float | None
    reference_std: float | None
    difference: float | None
    scatter: float | None
    met: bool | None

    @property
    def is_scatter(self) -> bool:
        """Whether the goal is missed by no more than other seeds would miss it."""
        return (
            self.met is False and self.scatter is not None and abs(self.ours - self.reference) <= self.scatter
        )


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One configuration on a side, beside the same configuration on the side that is the reference.

    Attributes:
        name: the configuration's name.
        side, reference: the two sides' names.
        runs, reference_runs: how many runs each has.
        findings: the figures that both have.
        warnings: why runs of either side should not be trusted, if anything, each once.
    """

    name: str
    side: str
    reference: str
    runs: int
    reference_runs: int
    findings: dict[str, Finding]
    warnings: list[str]

    @property
    def met(self) -> bool:
        """Whether all goals are met."""
        return all(one.met is not False for one in self.findings.values())

    @property
    def agrees(self) -> bool:
        """Whether no goal is missed by more than other seeds would miss it."""
        return all(one.met is not False or one.is_scatter for one in self.findings.values())

    def as_dict(self) -> dict[str, Any]:
        """The agreement as plain values, for JSON."""
        return asdict(self) | {"met": self.met, "agrees": self.agrees}


def agreement(
    name: str, ours: tuple[str, Sequence[Record]], reference: tuple[str, Sequence[Record]]
) -> Agreement:
    """Compares two sides, each a name with its records, for one configuration."""
    (side, our_records), (reference_side, reference_records) = ours, reference
    our_runs = [figures(summarise(record)) for record in our_records]
    reference_runs = [figures(summarise(record)) for record in reference_records]
    warnings = [text for record in [*our_records, *reference_records] for text in record.manifest.warnings]
    return Agreement(
        name=name,
        side=side,
        reference=reference_side,
        runs=len(our_runs),
        reference_runs=len(reference_runs),
        findings=_findings(our_runs, reference_runs),
        warnings=list(dict.fromkeys(warnings)),
    )


def _findings(
    ours: Sequence[Mapping[str, float]], reference: Sequence[Mapping[str, float]]
) -> dict[str, Finding]:
    # A figure that some run lacks, such as the median of pings that were all lost, is not compared.
    common = [name for name in FIGURES if all(name in run for run in [*ours, *reference])]
    return {
        name: finding(
            name, [run[name] for run in ours], [run[name] for run in reference], AGREEMENT.get(name)
        )
        for name in common
    }


def figures(summary: Summary) -> dict[str, float]:
    """The figures of a run by which sides are compared; those that it does not have are left out."""
    loaded = summary.latency.loaded
    resending = [one for one in (summary.down, summary.up) if one is not None and one.tcp_flows]
    found: dict[str, float | None] = {
        **_of_direction("down", summary.down),
        **_of_direction("up", summary.up),
    }
    if loaded:
        found |= {
            "min_ms": loaded.min,
            "p50_ms": loaded.median,
            "p95_ms": loaded.p95,
            "p99_ms": loaded.p99,
        }
    if resending:
        found |= {
            "retransmits": _sum([one.retransmitted_segments for one in resending]),
            "timeouts": _sum([one.timeouts for one in resending]),
        }
    found |= {name: of(summary) for name, of in EXPERIENCE.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum; None if one of them is unknown."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _of_direction(name: str, direction: DirectionSummary | None) -> dict[str, float | None]:
    if direction is None:
        return {}

    def percent(share: float | None) -> float | None:
        return None if share is None else share * 100

    return {
        f"{name}_mbps": direction.goodput_mbps,
        f"{name}_used_percent": percent(direction.utilisation),
        f"{name}_jain": direction.jain_index,
        f"{name}_loss_percent": percent(direction.loss_rate),
        f"{name}_marked_percent": percent(direction.mark_rate),
    }


def finding(
    figure: str, ours: Sequence[float], reference: Sequence[float], goal: Goal | None = None
) -> Finding:
    """A figure of several runs, one value each, beside the reference's."""
    a, b = np.array(ours, dtype=float), np.array(reference, dtype=float)
    mean, theirs = float(a.mean()), float(b.mean())
    return Finding(
        figure=figure,
        ours=mean,
        reference=theirs,
        ours_std=float(a.std(ddof=1)) if a.size > 1 else None,
        reference_std=float(b.std(ddof=1)) if b.size > 1 else None,
        difference=mean / theirs - 1 if theirs else None,
        scatter=_scatter(a, b),
        met=goal.allows(mean, theirs) if goal else None,
    )


def _scatter(ours: npt.NDArray[np.float64], reference: npt.NDArray[np.float64]) -> float | None:
    if max(ours.size, reference.size) < 2:
        return None
    from scipy.stats import t, ttest_ind  # noqa: PLC0415 - loads slowly

    if min(ours.size, reference.size) < 2:
        # The interval in which one more run of the side with several would lie.
        several = ours if ours.size > 1 else reference
        squared, freedom = several.var(ddof=1) * (1 + 1 / several.size), several.size - 1
        return float(t.ppf(0.975, freedom) * np.sqrt(squared))
    if ours.std() == reference.std() == 0:
        return 0.0  # of which there is no Student's distribution
    with warnings.catch_warnings():
        # Runs that are all the same, of which it thinks that a difference too small to be told was lost.
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        welch = ttest_ind(ours, reference, equal_var=False).confidence_interval(0.95)
    return float(welch.high - welch.low) / 2


FIGURES = (
    *("down_mbps", "up_mbps", "down_used_percent", "up_used_percent", "down_jain", "up_jain"),
    *("min_ms", "p50_ms", "p95_ms", "p99_ms"),
    *("down_loss_percent", "up_loss_percent", "down_marked_percent", "up_marked_percent"),
    *("retransmits", "timeouts"),
    *EXPERIENCE,
)
"""By what sides are compared, in the order in which it is shown."""

AGREEMENT = {
    # What a load gets is what a user pays for; TCPs that fill a line agree far better than this.
    "down_mbps": Goal(share=0.03),
    "up_mbps": Goal(share=0.03),
    # A live kernel wakes late: less than a millisecond cannot be told apart.
    "p50_ms": Goal(share=0.10, amount=1.0),
    # A tail is made by a few events of a run, and by every disturbance of a machine.
    "p99_ms": Goal(share=0.25, amount=1.0),
    # Losses are few and come in bursts; 0.05 points are eight packets of 10 s at 20 Mbit/s.
    "down_loss_percent": Goal(share=0.30, amount=0.05),
    "up_loss_percent": Goal(share=0.30, amount=0.05),
    # As between simulator and lab in the tests of calls: a twentieth of the scale.
    "mos": Goal(amount=0.2),
    # A lookup is a ping or two; a page is a hundred answers, each of which a kernel wakes for.
    "page_ms": Goal(share=0.10, amount=5.0),
    "lookup_ms": Goal(share=0.10, amount=1.0),
    # Of some pages of a load one more or less is many points, which the scatter of seeds has to tell.
    "pages_given_up_percent": Goal(amount=5.0),
    "lookups_given_up_percent": Goal(amount=5.0),
    # Bitrates stand a fifth to a half apart: one segment of many in the next one is less.
    "video_mbps": Goal(share=0.10),
    "stalled_percent": Goal(share=0.25, amount=1.0),
    "startup_ms": Goal(share=0.10, amount=5.0),
}
"""How near is near enough for two worlds that run the same scenario."""
