"""Whether our runs say what the authors say: the rules of `rules`, judged by intervals over seeds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirstudies import judge
from weirstudies.speedtest_aqm.known import Known
from weirstudies.speedtest_aqm.rules import RULES
from weirstudies.statements import seen_word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weirstudies.speedtest_aqm.design import Cell, Study
    from weirstudies.speedtest_aqm.figures import Run
    from weirstudies.speedtest_aqm.rules import Rule


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A statement.

    Attributes:
        rule: the statement and its rule.
        rulings: the judge's rulings on the rule's claims.
        others: under other rules that do not count: which, and the rulings.
        cells: the cells that it is about.
    """

    rule: Rule
    rulings: list[judge.Ruling]
    others: list[tuple[str, list[judge.Ruling]]]
    cells: frozenset[Cell] = field(repr=False)

    @property
    def seen(self) -> bool | None:
        """Whether it is; None if that is undecided."""
        return judge.seen(self.rulings)

    @property
    def evidence(self) -> list[str]:
        """Intervals and repetitions, then what other rules say, and what a reader must know."""
        lines = [_brief(self.rulings)]
        if self.rule.changed:
            lines.append(f"The rule was changed after its result was known: {self.rule.changed}.")
        for why, rulings in self.others:
            lines.append(f"{why}: **{seen_word(judge.seen(rulings))}**: {_brief(rulings)}")
        return [*lines, self.rule.note] if self.rule.note else lines

    def as_dict(self) -> dict[str, Any]:
        """It as plain values, for JSON."""
        return {
            "says": self.rule.says,
            "by": self.rule.by,
            "rule": self.rule.rule,
            "changed": self.rule.changed,
            "note": self.rule.note,
            "seen": self.seen,
            "claims": [one.as_dict() for one in self.rulings],
            "others": [
                {"why": why, "seen": judge.seen(rulings), "claims": [one.as_dict() for one in rulings]}
                for why, rulings in self.others
            ],
        }


def judged(
    found: Mapping[Cell, Sequence[Run]], of: Study, looks: Sequence[int] = judge.LOOKS
) -> list[Judged]:
    """All statements. One whose cells were not run is undecided."""
    every = []
    for rule in RULES:
        known = Known(found, of)
        rulings = judge.judge(rule.claims(known), looks)
        cells = frozenset(known.asked)
        others = [(why, judge.judge(claims(known), looks)) for why, claims in rule.others]
        every.append(Judged(rule=rule, rulings=rulings, others=others, cells=cells))
    return every


def wanting(found: Sequence[Judged]) -> set[Cell]:
    """The cells of which more repetitions could decide a statement."""
    still = [
        one for one in found if one.seen is None and any(r.seen is None and not r.why for r in one.rulings)
    ]
    return {cell for one in still for cell in one.cells}


def _brief(rulings: Sequence[judge.Ruling]) -> str:
    if not rulings or all(one.repetitions == 0 for one in rulings):
        return NOT_RUN
    counts = sorted({one.repetitions for one in rulings})
    runs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    pairs = "paired repetitions" if any(one.paired for one in rulings) else "repetitions"
    return f"{'; '.join(_interval(one) for one in rulings)} ({runs} {pairs})"


def _interval(one: judge.Ruling) -> str:
    mark = {True: "", False: " (fails)", None: " (open)"}[one.seen]
    if one.value is None or one.low is None or one.high is None:
        return f"{one.claim.what}: {one.why}"
    return f"{one.claim.what} {one.shown}{mark}"


NOT_RUN = "the cells that it is about were not run"
