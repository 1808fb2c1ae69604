"""Outcome of an experiment of the gallery: its table, and its statements judged."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab.stats import interval
from weirstudies import judge
from weirstudies.gallery.figures import FIGURES, RANGES
from weirstudies.gallery.study import Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.stats import Interval
    from weirstudies.gallery.study import Column, Condition, Experiment, OtherRule, Statement


@dataclass(frozen=True, kw_only=True)
class Ruled:
    """A rule and the judge's rulings on its conditions.

    Attributes:
        rulings: one a condition.
        other: the rule, if it is not the one that counts.
    """

    rulings: list[judge.Ruling]
    other: OtherRule | None = None

    @property
    def seen(self) -> bool | None:
        """Whether all of its conditions hold; None if that is undecided."""
        return judge.seen(self.rulings)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A statement and what became of it.

    Attributes:
        statement: the statement.
        rule: its rule, judged.
        others: rules that do not count, judged.
    """

    statement: Statement
    rule: Ruled
    others: list[Ruled]

    @property
    def seen(self) -> bool | None:
        """Whether it was seen by the rule that counts; None if that is undecided."""
        return self.rule.seen

    @property
    def open(self) -> bool:
        """Whether more repetitions could decide it."""
        return self.seen is None and any(one.seen is None and not one.why for one in self.rule.rulings)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of an experiment: a table's row for each configuration, and its statements judged."""

    experiment: Experiment
    world: str
    rows: dict[str, dict[str, Interval | None]]
    judged: list[Judged]

    @property
    def wanting(self) -> set[str]:
        """The configurations of which more repetitions could decide a statement."""
        conditions = [condition for one in self.judged if one.open for condition in one.statement.conditions]
        return {what.of for one in conditions for what in (one, one.times) if what is not None}

    def as_dict(self) -> dict[str, Any]:
        """The outcome as plain values, for JSON."""
        return {
            "name": self.experiment.name,
            "world": self.world,
            "rows": {
                label: {name: found and dataclasses.asdict(found) for name, found in row.items()}
                for label, row in self.rows.items()
            },
            "statements": [
                {
                    "says": one.statement.says,
                    "seen": one.seen,
                    "undecided": one.statement.undecided,
                    "changed": one.statement.changed,
                    "note": one.statement.note,
                    "conditions": [ruling.as_dict() for ruling in one.rule.rulings],
                    "others": [
                        {
                            "why": other.other and other.other.why,
                            "seen": other.seen,
                            "conditions": [ruling.as_dict() for ruling in other.rulings],
                        }
                        for other in one.others
                    ],
                }
                for one in self.judged
            ],
        }


def outcome(
    experiment: Experiment, records: Sequence[Record], *, world: str, looks: Sequence[int]
) -> Outcome:
    """Judges an experiment: its table and its statements.

    Args:
        experiment: the experiment.
        records: its records, labelled as its configurations.
        world: where they were made.
        looks: after how many repetitions the judge looks, as planned before the run.
    """
    values = _Values(experiment, records, world)

    def ruled(conditions: Sequence[Condition], other: OtherRule | None = None) -> Ruled:
        claims = [_claim(one, values) for one in conditions]
        return Ruled(rulings=judge.judge(claims, looks), other=other)

    judged = [
        Judged(
            statement=statement,
            rule=ruled(statement.when),
            others=[ruled(other.when, other) for other in statement.others],
        )
        for statement in experiment.statements
    ]
    return Outcome(experiment=experiment, world=world, rows=_rows(experiment, values), judged=judged)


class _Values:
    """The values of quantities in an experiment's records."""

    def __init__(self, experiment: Experiment, records: Sequence[Record], world: str) -> None:
        self._world = world
        self._by_label = {
            one.label: [record for record in records if record.label == one.label]
            for one in experiment.configurations
        }

    def of(self, what: Quantity) -> dict[int, float]:
        """The values of a quantity by repetition, without those that it does not have."""
        figure = FIGURES[what.figure]
        found = {
            _repetition(record, place, self._world): figure(record, what.direction, what.flows)
            for place, record in enumerate(self._by_label[what.of], start=1)
        }
        return {seed: value for seed, value in found.items() if value is not None}


def _rows(experiment: Experiment, values: _Values) -> dict[str, dict[str, Interval | None]]:
    """The table's row for each configuration."""

    def cell(label: str, column: Column) -> Interval | None:
        what = Quantity(figure=column.figure, of=label, direction=column.direction, flows=column.flows)
        return interval(list(values.of(what).values()))

    labels = [one.label for one in experiment.configurations]
    return {
        label: {heading: cell(label, column) for heading, column in experiment.columns.items()}
        for label in labels
    }


def _repetition(record: Record, place: int, world: str) -> int:
    """By what repetitions are told apart: the seed, which the simulator's configurations share."""
    seed = record.manifest.seed
    return seed if world == "sim" and seed is not None else place


def _claim(condition: Condition, values: _Values) -> judge.Claim:
    least, most = RANGES.get(condition.figure, (None, None))
    beside = f" over {_words(condition.times)}" if condition.times else ""
    return judge.Claim(
        what=_words(condition) + beside,
        ours=values.of(condition),
        other=values.of(condition.times) if condition.times else None,
        above=condition.above,
        below=condition.below,
        least=least,
        most=most,
    )


def _words(what: Quantity) -> str:
    flows = f" {what.flows}" if what.flows else ""
    direction = f" {what.direction}" if what.figure not in WITHOUT_DIRECTION else ""
    return f"`{what.figure}`{direction}{flows} of *{what.of}*"


WITHOUT_DIRECTION = frozenset(
    {
        "idle_ms",
        "increase_ms",
        "loaded_ms",
        "loaded_median_ms",
        "p99_ms",
        "within_15_ms",
        "within_20_ms",
        "within_50_ms",
    }
)
"""Figures of pings, which go both ways."""
