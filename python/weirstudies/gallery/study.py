"""The gallery: experiments that others have published, repeated, and what they said of them, held against it.

Each is data (`NAME.toml`): set-ups, and statements with the conditions under which they
count as seen.
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from weirlab.errors import UsageError
from weirlab.plots import KINDS
from weirlab.scenario import Direction, Model, ResolvedRun, ScenarioSpec, check, resolve
from weirlab.stats import Interval, interval
from weirstudies.gallery.figures import FIGURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.resources.abc import Traversable

    from weirlab.record import Record


class Quantity(Model):
    """A figure of a set-up.

    Attributes:
        figure: its name, of `figures`.
        of: the set-up's label.
        direction: of which direction, where it matters.
        flows: how the names of the flows begin that it is about; all flows if nothing is said.
    """

    figure: str
    of: str
    direction: Direction = "down"
    flows: str = ""

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if self.figure not in FIGURES:
            raise ValueError(f"unknown figure `{self.figure}` (known: {', '.join(FIGURES)})")
        return self


class Condition(Quantity):
    """A quantity and where it must lie.

    Attributes:
        above, below: between what it lies; at least one of them.
        times: a quantity; the bounds are then multiples of it.
    """

    above: float | None = None
    below: float | None = None
    times: Quantity | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> Self:
        if self.above is None and self.below is None:
            raise ValueError(f"condition on `{self.figure}`: give `above`, `below` or both")
        return self


class Statement(Model):
    """Something that was said of an experiment.

    Attributes:
        says: what was said; in quotation marks if it is the source's own words.
        when: the conditions under which it counts as seen, all of them.
        undecided: why it cannot be decided here, if it cannot.
    """

    says: str
    when: tuple[Condition, ...] = ()
    undecided: str | None = None

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        if bool(self.when) == bool(self.undecided):
            raise ValueError(f"statement `{self.says}`: give either `when` or `undecided`")
        return self


class SetUp(Model):
    """What is run.

    Attributes:
        label: its name.
        scenario: what a scenario file can say.
    """

    label: str
    scenario: dict[str, Any]


class Experiment(Model):
    """One experiment of the gallery.

    Attributes:
        name, title, summary: what it is.
        source: who published it.
        chosen: what the source does not tell, and what was taken for it.
        columns: the figures of its table, with a heading each.
        charts: kinds of charts to draw, of `weirlab.plots.KINDS`.
        set_ups: what is run.
        statements: what was said of it.
    """

    name: str
    title: str
    summary: str
    source: str
    chosen: str
    repeat: Annotated[int, Field(ge=1)] = 5
    columns: dict[str, Column]
    charts: list[str]
    set_ups: Annotated[list[SetUp], Field(min_length=1)]
    statements: Annotated[list[Statement], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        labels = [one.label for one in self.set_ups]
        conditions = [condition for statement in self.statements for condition in statement.when]
        named = [condition.of for condition in conditions]
        named += [condition.times.of for condition in conditions if condition.times]
        for label in named:
            if label not in labels:
                raise ValueError(f"there is no set-up `{label}` (there are: {', '.join(labels)})")
        for kind in self.charts:
            if kind not in KINDS:
                raise ValueError(f"there is no chart `{kind}` (known: {', '.join(KINDS)})")
        return self


class Column(Model):
    """A column of an experiment's table."""

    figure: str
    direction: Direction = "down"
    flows: str = ""
    digits: int = 1


@dataclass(frozen=True, kw_only=True)
class Side:
    """A quantity as it was found: over the repetitions."""

    what: Quantity
    values: list[float]
    found: Interval | None


@dataclass(frozen=True, kw_only=True)
class Found:
    """A condition and what was found.

    Attributes:
        condition: the condition.
        ours: its quantity.
        other: the quantity that it is a multiple of, if it is of one.
        holds: whether the means fulfil it; None if a quantity is missing.
        runs: in how many repetitions it holds.
    """

    condition: Condition
    ours: Side
    other: Side | None
    holds: bool | None
    runs: int


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A statement and whether it was seen: None if that cannot be decided."""

    statement: Statement
    found: list[Found]

    @property
    def seen(self) -> bool | None:
        """Whether all of its conditions hold."""
        if any(one.holds is False for one in self.found):
            return False
        if not self.found or any(one.holds is None for one in self.found):
            return None
        return True


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of an experiment: a table's row for each set-up, and its statements judged."""

    experiment: Experiment
    world: str
    rows: dict[str, dict[str, Interval | None]]
    judged: list[Judged]

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
                    "conditions": [
                        {
                            "condition": found.condition.model_dump(exclude_none=True),
                            "holds": found.holds,
                            "runs": found.runs,
                            "values": found.ours.values,
                            "beside": found.other.values if found.other else None,
                        }
                        for found in one.found
                    ],
                }
                for one in self.judged
            ],
        }


def names() -> dict[str, str]:
    """The names of all experiments with a line on each."""
    return {name: load(name).summary for name in NAMES}


def load(name: str) -> Experiment:
    """The experiment of that name as shipped.

    Raises:
        UsageError: if there is none.
    """
    if name not in NAMES:
        raise UsageError(f"the gallery has no experiment `{name}` (known: {', '.join(NAMES)})")
    text = (_folder() / f"{name}.toml").read_text(encoding="utf-8")
    return check(Experiment, tomllib.loads(text), f"study `{name}`")


def runs_of(experiment: Experiment, *, repeat: int | None = None) -> list[ResolvedRun]:
    """All runs of an experiment; a record's label is its set-up's."""
    runs = []
    for set_up in experiment.set_ups:
        written = {"repeat": repeat or experiment.repeat, **set_up.scenario}
        spec = check(ScenarioSpec, written, f"study `{experiment.name}`, set-up `{set_up.label}`")
        runs += [dataclasses.replace(run, queue=set_up.label) for run in resolve(spec)]
    return runs


def outcome(experiment: Experiment, records: Sequence[Record], *, world: str) -> Outcome:
    """What came of an experiment: its table and its statements."""
    by_label: Mapping[str, list[Record]] = {
        one.label: [record for record in records if record.label == one.label] for one in experiment.set_ups
    }

    def side(what: Quantity) -> Side:
        figure = FIGURES[what.figure]
        values = [figure(record, what.direction, what.flows) for record in by_label[what.of]]
        return Side(
            what=what,
            values=[value for value in values if value is not None],
            found=interval(values),
        )

    rows = {
        label: {
            heading: side(
                Quantity(figure=column.figure, of=label, direction=column.direction, flows=column.flows)
            ).found
            for heading, column in experiment.columns.items()
        }
        for label in by_label
    }
    judged = [
        Judged(
            statement=statement,
            found=[
                _found(condition, side(condition), side(condition.times) if condition.times else None)
                for condition in statement.when
            ],
        )
        for statement in experiment.statements
    ]
    return Outcome(experiment=experiment, world=world, rows=rows, judged=judged)


def _found(condition: Condition, ours: Side, other: Side | None) -> Found:
    if ours.found is None or (other is not None and other.found is None):
        return Found(condition=condition, ours=ours, other=other, holds=None, runs=0)
    scale = other.found.mean if other and other.found else 1.0
    scales = other.values if other else [1.0] * len(ours.values)
    return Found(
        condition=condition,
        ours=ours,
        other=other,
        holds=_lies(condition, ours.found.mean, scale),
        runs=sum(_lies(condition, *pair) for pair in zip(ours.values, scales, strict=False)),
    )


def _lies(condition: Condition, value: float, scale: float) -> bool:
    return (condition.above is None or value > condition.above * scale) and (
        condition.below is None or value < condition.below * scale
    )


def _folder() -> Traversable:
    return resources.files("weirstudies.gallery")


NAMES = (
    "sqm-boxes",
    "yurtlab",
    "fios",
    "two-rruls",
    "global-sync",
    "tcp-forms",
    "competing-rtt",
    "ipv6-ipv4",
)
"""All experiments, in the order of their seeds."""
