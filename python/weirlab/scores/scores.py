"""All scores of one test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from weirlab.scores import aim, bufferbloat, quality_of_outcome, responsiveness, rrul

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.scores.measured import Measured


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score.

    Attributes:
        name: what it is called.
        formula: which formula, with version and source.
        value: what comes of it: a grade, a number or points.
        unit: of a number; empty otherwise.
        parts: what it is made of.
        says: what it means, in a sentence.
    """

    name: str
    formula: str
    value: str | float | None
    unit: str
    parts: dict[str, Any]
    says: str


@dataclass(frozen=True, kw_only=True)
class Scores:
    """All scores of one test, the bufferbloat grade first; none of a test that was not all measured."""

    scores: list[Score]

    @property
    def grade(self) -> str | None:
        """The bufferbloat grade; None if there are no scores."""
        return str(self.scores[0].value) if self.scores else None

    def named(self, name: str) -> Score:
        """The score of that name."""
        return next(score for score in self.scores if score.name == name)

    def as_dict(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [asdict(score) for score in self.scores]


def score_all(record: Record, figures: Measured) -> Scores:
    """All scores that the record has data for; none where a phase with load was not measured.

    What was not measured may be what is worst.
    """
    if figures.ungraded is not None:
        return Scores(scores=[])
    made = [
        bufferbloat.worse_direction(figures),
        bufferbloat.dslreports(figures),
        *responsiveness.rpm(figures),
        *aim.points(figures),
        *rrul.summary(record),
        *quality_of_outcome.applications(figures),
    ]
    return Scores(scores=[Score(**one) for one in made if one is not None])
