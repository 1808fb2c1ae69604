"""Statements of the thesis, and whether our runs show them too."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING

from weirstudies.judge import Claim, Ruling, judge, seen
from weirstudies.thesis.study import METRICS, Row, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.stats import Interval
    from weirstudies.thesis.study import Study


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of the thesis.

    Attributes:
        text: what it says.
        rulings: the judge's rulings on the comparisons that it is made of; none if it cannot be judged.
        evidence: what a reader must know beside the rulings, or why it cannot be judged.
    """

    text: str
    rulings: list[Ruling] = field(default_factory=list)
    evidence: str = ""

    @property
    def seen(self) -> bool | None:
        """Whether our runs say so too; None if that is undecided."""
        return seen(self.rulings)

    @property
    def grounds(self) -> str:
        """The comparisons by their verdicts, with the intervals of those that do not hold."""
        if not self.rulings:
            return self.evidence
        count = len(self.rulings)
        good = sum(one.seen is True for one in self.rulings)
        others = [
            f"{one.claim.what} {one.shown} {'undecided' if one.seen is None else 'not'}"
            for one in self.rulings
            if one.seen is not True
        ]
        claim = self.rulings[0].claim
        lines = [
            f"{good} of {count} comparisons hold ({claim.bounds}; {self.rulings[0].repetitions} paired seeds)"
        ]
        if others:
            lines.append("not so: " + ", ".join(others))
        elif count == 1:
            lines.append(f"{claim.what} {self.rulings[0].shown}")
        return "; ".join([*lines, *([self.evidence] if self.evidence else [])])


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two cases that follow each other in the thesis' order, and whether they do so here.

    Attributes:
        configuration, flows, metric: where.
        better, worse: the cases' names; `better` has the smaller value in the thesis.
        order: whether it is so here.
        separate: whether the 95 % intervals have no value in common.
    """

    configuration: str
    flows: int
    metric: str
    better: str
    worse: str
    order: bool
    separate: bool

    @property
    def word(self) -> str:
        """`yes`, `yes, overlapping`, `no` or `no, overlapping`."""
        return ("yes" if self.order else "no") + ("" if self.separate else ", overlapping")


def pairs(rows: Sequence[Row]) -> list[Pair]:
    """All pairs of neighbours in the thesis' order, for the metrics that are better when smaller."""
    known = values(rows)
    found = []
    for configuration, flows in _places(rows):
        cases = [case for case in ORDER if (configuration, flows, case) in known]
        for metric, (better, worse) in product(FALLING, pairwise(cases)):
            a = known[configuration, flows, better].interval(metric)
            b = known[configuration, flows, worse].interval(metric)
            found.append(
                Pair(
                    configuration=configuration,
                    flows=flows,
                    metric=metric,
                    better=better,
                    worse=worse,
                    order=a.mean < b.mean,
                    separate=_separate(a, b),
                )
            )
    return found


def statements(rows: Sequence[Row], readings: Sequence[Row], of: Study) -> list[Statement]:
    """The thesis' statements, in its order, then what it cannot tell; `readings` are rows of variants."""
    known = _Known(rows)
    if not known.whole:
        return []
    return [
        *(_order(known, metric) for metric in FALLING),
        _gap(known),
        _share_of(known, "timeouts", 0.02, "The number of timeouts falls by two orders of magnitude."),
        _share_of(known, "loss_percent", 0.5, "The probability of loss is halved in all cases."),
        _share_of(
            known, "variation", 0.0316, "The coefficient of variation is 1.5 orders of magnitude lower."
        ),
        _goodput(known),
        _alone(known),
        _parameters(known),
        _closer(known),
        _reno(known),
        Statement(
            text="The results scale to any number of flows.",
            evidence=f"the thesis has {' and '.join(str(flows) for flows in of.flows)} flows, and "
            "so has this study",
        ),
        _strict(known, readings),
        _flow_state(known),
        Statement(
            text="The differences are larger than chance.",
            evidence="the thesis tells neither the number of runs nor their variance; here every row has "
            f"{len(rows[0].whole)} seeds and an interval",
        ),
    ]


class _Known:
    """Figures by configuration, flows and case."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = values(rows)
        self.places = _places(rows)
        self.names = list(dict.fromkeys(name for name, _ in self.places))
        self.most = max(flows for _, flows in self.places)
        self.least = min(flows for _, flows in self.places)
        cases = {row.cell.case.name for row in rows}
        self.whole = set(ORDER) <= cases and {"A", "B", "C", "D"} <= set(self.names)

    def mean(self, configuration: str, flows: int, case: str, metric: str) -> float:
        return self.rows[configuration, flows, case].interval(metric).mean

    def values(self, configuration: str, flows: int, case: str, metric: str) -> dict[int, float]:
        """A figure of each run, by seed; all rows have the same seeds."""
        row = self.rows[configuration, flows, case]
        return {seed: float(getattr(run, metric)) for seed, run in enumerate(row.whole, start=1)}

    def published(self, better: str, worse: str, metric: str) -> list[float]:
        """A figure of a case over that of another one, in each place where the thesis has both."""
        tables = [
            (self.rows[*place, better].published, self.rows[*place, worse].published) for place in self.places
        ]
        return [
            float(getattr(ours, metric)) / float(getattr(other, metric))
            for ours, other in tables
            if ours is not None and other is not None
        ]

    def judge(self, claims: Sequence[Claim]) -> list[Ruling]:
        """The rulings after all repetitions, as they were planned."""
        return judge(claims, (len(next(iter(self.rows.values())).whole),))

    def ratio(  # noqa: PLR0913 - two figures and a bound
        self,
        place: tuple[str, int],
        better: str,
        worse: str,
        metric: str,
        *,
        what: str,
        above: float | None = None,
        below: float | None = None,
    ) -> Claim:
        """A figure of a case over that of another one in the same place."""
        return Claim(
            what=what,
            ours=self.values(*place, better, metric),
            other=self.values(*place, worse, metric),
            above=above,
            below=below,
        )


def _places(rows: Sequence[Row]) -> list[tuple[str, int]]:
    return list(
        dict.fromkeys((row.cell.configuration.name, row.cell.flows) for row in rows if not row.cell.variant)
    )


def _separate(a: Interval, b: Interval) -> bool:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.high < b.low or b.high < a.low


def _order(known: _Known, metric: str) -> Statement:
    claims = [
        known.ratio((name, known.most), better, worse, metric, what=f"{name} {better} over {worse}", below=1)
        for name in known.names
        for better, worse in pairwise(ORDER)
    ]
    return Statement(
        text=f"With {known.most} flows {WORDS[metric]} falls in the order no marker, token bucket, "
        "TCP-friendly with RIO, TCP-friendly with FRIO, in all four configurations.",
        rulings=known.judge(claims),
    )


def _gap(known: _Known) -> Statement:
    """The gap between the best and the worst case, at few and at many flows."""

    def gap(name: str, flows: int, metric: str) -> dict[int, float]:
        worst, best = (known.values(name, flows, case, metric) for case in (ORDER[-1], ORDER[0]))
        return {seed: worst[seed] - best[seed] for seed in worst}

    claims = []
    for name, metric in product(known.names, FALLING):
        most, least = (gap(name, flows, metric) for flows in (known.most, known.least))
        wider = {seed: most[seed] - least[seed] for seed in most}
        claims.append(Claim(what=f"{name} {WORDS[metric]}, wider by", ours=wider, above=0))
    return Statement(
        text=f"The gap between no marker and TCP-friendly with FRIO widens from {known.least} to "
        f"{known.most} flows.",
        rulings=known.judge(claims),
    )


def _share_of(known: _Known, metric: str, most: float, text: str) -> Statement:
    """TCP-friendly with FRIO against the token bucket with RIO, as a share."""
    claims = [
        known.ratio(place, ORDER[0], ORDER[2], metric, what=f"{place[0]}/{place[1]}", below=most)
        for place in known.places
    ]
    evidence = "share of the token bucket's with RIO"
    theirs = known.published(ORDER[0], ORDER[2], metric)
    if theirs:
        met = sum(one < most for one in theirs)
        evidence += (
            f"; in the thesis' own tables it is {min(theirs):.3g} to {max(theirs):.3g}, {met} of "
            f"{len(theirs)} below {most:g}"
        )
    return Statement(text=text, rulings=known.judge(claims), evidence=evidence)


def _goodput(known: _Known) -> Statement:
    claims = [
        known.ratio(place, ORDER[0], ORDER[2], "goodput", what=f"{place[0]}/{place[1]}", above=1)
        for place in known.places
    ]
    return Statement(
        text="The average goodput is always higher with TCP-friendly and FRIO than with the token bucket.",
        rulings=known.judge(claims),
    )


def _alone(known: _Known) -> Statement:
    claims = [
        known.ratio(place, ORDER[1], ORDER[2], metric, what=f"{place[0]}/{place[1]} {WORDS[metric]}", below=1)
        for place in known.places
        for metric in FALLING
    ]
    return Statement(
        text="The marker improves much with RIO alone, without state of flows at the core.",
        rulings=known.judge(claims),
        evidence="of the token bucket's with RIO",
    )


def _parameters(known: _Known) -> Statement:
    claims = [
        known.ratio(place, ORDER[0], ORDER[2], metric, what=f"{place[0]}/{place[1]} {WORDS[metric]}", below=1)
        for place in known.places
        if place[0] in {"C", "D"}
        for metric in FALLING
    ]
    return Statement(
        text="The improvement survives inappropriate parameters.",
        rulings=known.judge(claims),
        evidence="of the token bucket's with RIO, in C and D",
    )


def _closer(known: _Known) -> Statement:
    def ratios(name: str) -> dict[int, float]:
        rio, frio = (known.values(name, known.most, ORDER[case], "timeouts") for case in (1, 0))
        return {seed: rio[seed] / frio[seed] for seed in rio if frio[seed]}

    claim = Claim(what="C's ratio over A's", ours=ratios("C"), other=ratios("A"), below=1)
    return Statement(
        text="Inappropriate parameters bring the marker with RIO closer to the marker with FRIO.",
        rulings=known.judge([claim]),
        evidence=f"ratios are timeouts with RIO over those with FRIO, {known.most} flows (thesis: A 2.93, "
        "C 1.65)",
    )


def _reno(known: _Known) -> Statement:
    def saved(name: str, metric: str) -> dict[int, float]:
        bucket, best = (known.values(name, known.most, ORDER[case], metric) for case in (2, 0))
        return {seed: bucket[seed] - best[seed] for seed in bucket}

    comparisons = list(product((("A", "B"), ("C", "D")), ("timeouts", "loss_percent")))
    claims = [
        Claim(
            what=f"{reno} over {sack}, {case}, {WORDS[metric]}",
            ours=known.values(reno, known.most, case, metric),
            other=known.values(sack, known.most, case, metric),
            above=1,
        )
        for ((sack, reno), metric), case in product(comparisons, ORDER)
    ]
    claims += [
        Claim(
            what=f"saved in {reno} over {sack}, {WORDS[metric]}",
            ours=saved(reno, metric),
            other=saved(sack, metric),
            above=1,
        )
        for (sack, reno), metric in comparisons
    ]
    return Statement(
        text="With Reno everything is worse than with SACK, and the improvement larger.",
        rulings=known.judge(claims),
    )


def _strict(known: _Known, readings: Sequence[Row]) -> Statement:
    some = (row for row in readings if row.cell.variant and row.cell.variant.name == STRICT)
    strict = next((row for row in some if row.cell.case.name == ORDER[1]), None)
    bucket = known.mean("A", known.most, ORDER[2], "timeouts")
    soft = known.mean("A", known.most, ORDER[1], "timeouts")
    shown = f"{strict.interval('timeouts').mean:.0f}" if strict else "not run"
    return Statement(
        text="Whether the marker kept to its tokens strictly.",
        evidence=f"the thesis does not say. In A/{known.most} with RIO the thesis has 120 timeouts, "
        "our soft cap, "
        f"where retransmissions and small windows are green without tokens, {soft:.0f}, a strict "
        f"cap {shown}, the "
        f"token bucket {bucket:.0f}",
    )


def _flow_state(known: _Known) -> Statement:
    controls = ("No Marker & FRIO", "Token Bucket & FRIO")
    there = [case for case in controls if ("A", known.most, case) in known.rows]
    shown = ", ".join(
        f"{case} {known.mean('A', known.most, case, 'timeouts'):.0f} timeouts and "
        f"{known.mean('A', known.most, case, 'loss_percent'):.1f} % loss"
        for case in (*there, ORDER[0], ORDER[1])
    )
    return Statement(
        text="How much of the improvement with FRIO is the marker's.",
        evidence="the thesis has FRIO only with its marker. Our controls, with FRIO as it is read here, A/"
        f"{known.most}: {shown}: FRIO by itself gives most of it",
    )


def near(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """By metric, how many of the thesis' figures lie within a factor of 1.5 of ours, of how many."""
    found = {}
    for metric in METRICS:
        ratios = [ratio for row in rows if (ratio := row.ratio(metric)) is not None]
        found[metric] = (sum(1 / NEAR <= ratio <= NEAR for ratio in ratios), len(ratios))
    return found


ORDER = ("TCP Friendly & FRIO", "TCP Friendly & RIO", "Token Bucket & RIO", "No Marker & RED")
"""The thesis' cases, from the best to the worst."""

FALLING = ("timeouts", "loss_percent", "variation")
"""The metrics that are better when smaller."""

WORDS = dict(
    zip(
        METRICS,
        ("the number of timeouts", "the loss", "the goodput", "the variation of goodput"),
        strict=True,
    )
)
DIGITS = dict(zip(METRICS, (0, 2, 0, 2), strict=True))

STRICT = "strict cap"
"""The variant in which no packet is green without tokens."""

NEAR = 1.5
"""The factor within which a figure counts as near the thesis'."""
