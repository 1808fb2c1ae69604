"""What the thesis states, and whether our runs say so too."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Literal

from weirstudies.thesis.study import METRICS, Row, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.stats import Interval
    from weirstudies.thesis.study import Study

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be decided"]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of the thesis.

    Attributes:
        text: what it says.
        verdict: whether our runs say so too.
        evidence: with which numbers.
    """

    text: str
    verdict: Verdict
    evidence: str


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
            verdict="cannot be decided",
            evidence=f"the thesis has {' and '.join(str(flows) for flows in of.flows)} flows, and "
            "so has this study",
        ),
        _strict(known, readings),
        _flow_state(known),
        Statement(
            text="The differences are larger than chance.",
            verdict="cannot be decided",
            evidence="the thesis tells neither the number of runs nor their variance; here every row has "
            f"{len(rows[0].whole)} seeds and an interval",
        ),
    ]


class _Known:
    """Means by configuration, flows and case."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = values(rows)
        self.places = _places(rows)
        self.most = max(flows for _, flows in self.places)
        self.least = min(flows for _, flows in self.places)
        cases = {row.cell.case.name for row in rows}
        self.pairs = pairs(rows)
        self.whole = set(ORDER) <= cases and {"A", "B", "C", "D"} <= {place[0] for place in self.places}

    def mean(self, configuration: str, flows: int, case: str, metric: str) -> float:
        return self.rows[configuration, flows, case].interval(metric).mean


def _places(rows: Sequence[Row]) -> list[tuple[str, int]]:
    return list(
        dict.fromkeys((row.cell.configuration.name, row.cell.flows) for row in rows if not row.cell.variant)
    )


def _separate(a: Interval, b: Interval) -> bool:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.high < b.low or b.high < a.low


def _verdict(good: int, all_of: int) -> Verdict:
    if good == all_of:
        return "holds"
    return "holds in part" if 2 * good > all_of else "does not hold"


def _order(known: _Known, metric: str) -> Statement:
    some = [pair for pair in known.pairs if pair.metric == metric and pair.flows == known.most]
    good = sum(pair.order for pair in some)
    separate = sum(pair.order and pair.separate for pair in some)
    wrong = [
        f"{pair.configuration}: {pair.better} / {pair.worse}{'' if pair.separate else ' (overlapping)'}"
        for pair in some
        if not pair.order
    ]
    return Statement(
        text=f"With {known.most} flows {WORDS[metric]} falls in the order no marker, token bucket, "
        "TCP-friendly "
        "with RIO, TCP-friendly with FRIO, in all four configurations.",
        verdict=_verdict(good, len(some)),
        evidence=f"{good} of {len(some)} neighbours are in that order, {separate} of them with separate "
        "intervals" + (f"; not so: {', '.join(wrong)}" if wrong else ""),
    )


def _gap(known: _Known) -> Statement:
    """The gap between the best and the worst case, at few and at many flows."""
    texts, good, count = [], 0, 0
    for metric in FALLING:
        gaps = {
            name: [
                known.mean(name, flows, ORDER[-1], metric) - known.mean(name, flows, ORDER[0], metric)
                for flows in (known.least, known.most)
            ]
            for name in dict.fromkeys(place[0] for place in known.places)
        }
        good += sum(most > least for least, most in gaps.values())
        count += len(gaps)
        shown = ", ".join(
            f"{name} {least:.{DIGITS[metric]}f} to {most:.{DIGITS[metric]}f}"
            for name, (least, most) in gaps.items()
        )
        texts.append(f"{WORDS[metric]}: {shown}")
    return Statement(
        text=f"The gap between no marker and TCP-friendly with FRIO widens from {known.least} to "
        f"{known.most} flows.",
        verdict=_verdict(good, count),
        evidence="; ".join(texts),
    )


def _share_of(known: _Known, metric: str, most: float, text: str) -> Statement:
    """TCP-friendly with FRIO against the token bucket with RIO, as a share."""
    shares = {
        f"{name}/{flows}": known.mean(name, flows, ORDER[0], metric)
        / known.mean(name, flows, ORDER[2], metric)
        for name, flows in known.places
    }
    good = sum(share <= most for share in shares.values())
    shown = ", ".join(f"{place} {share:.3f}" for place, share in shares.items())
    return Statement(
        text=text,
        verdict=_verdict(good, len(shares)),
        evidence=f"TCP-friendly with FRIO has this share of the token bucket's: {shown} (for the statement: "
        f"{most:g} or less)",
    )


def _goodput(known: _Known) -> Statement:
    gains = {
        f"{name}/{flows}": known.mean(name, flows, ORDER[0], "goodput")
        / known.mean(name, flows, ORDER[2], "goodput")
        for name, flows in known.places
    }
    good = sum(gain > 1 for gain in gains.values())
    shown = ", ".join(f"{place} {gain - 1:+.1%}" for place, gain in gains.items())
    return Statement(
        text="The average goodput is always higher with TCP-friendly and FRIO than with the token bucket.",
        verdict=_verdict(good, len(gains)),
        evidence=shown,
    )


def _alone(known: _Known) -> Statement:
    some = [pair for pair in known.pairs if pair.better == ORDER[1]]
    good = sum(pair.order for pair in some)
    return Statement(
        text="The marker improves much with RIO alone, without state of flows at the core.",
        verdict=_verdict(good, len(some)),
        evidence=f"better than the token bucket in {good} of {len(some)} comparisons, "
        f"{sum(pair.order and pair.separate for pair in some)} of them with separate intervals",
    )


def _parameters(known: _Known) -> Statement:
    some = [
        known.mean(name, flows, ORDER[0], metric) < known.mean(name, flows, ORDER[2], metric)
        for name, flows in known.places
        if name in {"C", "D"}
        for metric in FALLING
    ]
    loss = {
        case: known.mean("C", known.most, case, "loss_percent")
        / known.mean("A", known.most, case, "loss_percent")
        for case in ORDER
    }
    return Statement(
        text="The improvement survives inappropriate parameters.",
        verdict=_verdict(sum(some), len(some)),
        evidence=f"better than the token bucket in {sum(some)} of {len(some)} comparisons of C and "
        "D; loss in C "
        f"over A with {known.most} flows: "
        + ", ".join(f"{case} {ratio:.2f}" for case, ratio in loss.items()),
    )


def _closer(known: _Known) -> Statement:
    def ratio(name: str) -> float:
        return known.mean(name, known.most, ORDER[1], "timeouts") / known.mean(
            name, known.most, ORDER[0], "timeouts"
        )

    ratios = {name: ratio(name) for name in ("A", "C")}
    return Statement(
        text="Inappropriate parameters bring the marker with RIO closer to the marker with FRIO.",
        verdict="holds" if ratios["C"] < ratios["A"] else "does not hold",
        evidence=f"timeouts with RIO over those with FRIO, {known.most} flows: A {ratios['A']:.2f}, "
        f"C {ratios['C']:.2f} (thesis: 2.93 and 1.65)",
    )


def _reno(known: _Known) -> Statement:
    def saved(name: str, metric: str) -> float:
        return known.mean(name, known.most, ORDER[2], metric) - known.mean(name, known.most, ORDER[0], metric)

    comparisons = list(product((("A", "B"), ("C", "D")), ("timeouts", "loss_percent")))
    worse = [
        known.mean(reno, known.most, case, metric) > known.mean(sack, known.most, case, metric)
        for ((sack, reno), metric), case in product(comparisons, ORDER)
    ]
    larger = [saved(reno, metric) > saved(sack, metric) for (sack, reno), metric in comparisons]
    return Statement(
        text="With Reno everything is worse than with SACK, and the improvement larger.",
        verdict=_verdict(sum(worse) + sum(larger), len(worse) + len(larger)),
        evidence=f"more timeouts or loss in {sum(worse)} of {len(worse)} comparisons with "
        f"{known.most} flows, a "
        f"larger improvement in {sum(larger)} of {len(larger)}; timeouts saved against the token bucket: "
        + ", ".join(f"{name} {saved(name, 'timeouts'):.0f}" for name in "ABCD")
        + "; points of loss saved: "
        + ", ".join(f"{name} {saved(name, 'loss_percent'):.1f}" for name in "ABCD"),
    )


def _strict(known: _Known, readings: Sequence[Row]) -> Statement:
    some = (row for row in readings if row.cell.variant and row.cell.variant.name == STRICT)
    strict = next((row for row in some if row.cell.case.name == ORDER[1]), None)
    bucket = known.mean("A", known.most, ORDER[2], "timeouts")
    soft = known.mean("A", known.most, ORDER[1], "timeouts")
    shown = f"{strict.interval('timeouts').mean:.0f}" if strict else "not run"
    return Statement(
        text="Whether the marker kept to its tokens strictly.",
        verdict="cannot be decided",
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
        verdict="cannot be decided",
        evidence="the thesis has FRIO only with its marker. Our controls, with FRIO as it is read here, A/"
        f"{known.most}: {shown}: FRIO by itself gives most of it",
    )


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
