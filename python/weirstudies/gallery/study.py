"""The gallery: experiments that others have published, repeated, and what they said of them, held against it.

Each is data (`NAME.toml`): configurations, and statements with the conditions under which they
count as seen.
"""

from __future__ import annotations

import dataclasses
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from weirlab.errors import UsageError
from weirlab.plots import KINDS
from weirlab.scenario import Direction, Model, ResolvedRun, ScenarioSpec, check, resolve
from weirstudies.gallery.figures import FIGURES, RANGES

if TYPE_CHECKING:
    from collections.abc import Collection
    from importlib.resources.abc import Traversable


class Quantity(Model):
    """A figure of a configuration.

    Attributes:
        figure: its name, of `figures`.
        of: the configuration's label.
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
        least, most = RANGES.get(self.figure, (None, None))
        if self.times is None and (
            _beyond(self.below, most) or (least is not None and _beyond(least, self.above))
        ):
            raise ValueError(f"condition on `{self.figure}`: no value can break it")
        return self


def _beyond(bound: float | None, end: float | None) -> bool:
    return bound is not None and end is not None and bound > end


class OtherRule(Model):
    """Another rule for the same statement, under which its verdict is shown beside the one that counts.

    Attributes:
        when: its conditions, all of them.
        why: whose it is, when it was written, and why it does not count.
    """

    when: Annotated[tuple[Condition, ...], Field(min_length=1)]
    why: str


class Statement(Model):
    """Something that was said of an experiment.

    Attributes:
        says: what was said; in quotation marks if it is the source's own words.
        when: the conditions under which it counts as seen, all of them.
        undecided: why it cannot be decided here, if it cannot.
        changed: what changed of the rule after a result was known, and why; empty if nothing did.
        others: rules that do not count; those that did once among them.
        note: what a reader must know beside the verdict.
    """

    says: str
    when: tuple[Condition, ...] = ()
    undecided: str | None = None
    changed: str = ""
    others: tuple[OtherRule, ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        if bool(self.when) == bool(self.undecided):
            raise ValueError(f"statement `{self.says}`: give either `when` or `undecided`")
        return self

    @property
    def conditions(self) -> list[Condition]:
        """The conditions of all of its rules."""
        return [*self.when, *(condition for other in self.others for condition in other.when)]


class Configuration(Model):
    """A configuration of an experiment.

    Attributes:
        label: its name.
        scenario: what a scenario file can say.
        drawn: whether it is in the charts.
    """

    label: str
    scenario: dict[str, Any]
    drawn: bool = True


class Experiment(Model):
    """One experiment of the gallery.

    Attributes:
        name, title, summary: what it is.
        source: who published it.
        chosen: what the source does not tell, and what was taken for it.
        columns: the figures of its table, with a heading each.
        charts: kinds of charts to draw, of `weirlab.plots.KINDS`.
        configurations: what is run.
        statements: what was said of it.
    """

    name: str
    title: str
    summary: str
    source: str
    chosen: str
    columns: dict[str, Column]
    charts: list[str]
    configurations: Annotated[list[Configuration], Field(min_length=1)]
    statements: Annotated[list[Statement], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        labels = [one.label for one in self.configurations]
        conditions = [condition for statement in self.statements for condition in statement.conditions]
        named = [condition.of for condition in conditions]
        named += [condition.times.of for condition in conditions if condition.times]
        for label in named:
            if label not in labels:
                raise ValueError(f"there is no configuration `{label}` (there are: {', '.join(labels)})")
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


def runs_of(
    experiment: Experiment, *, repeat: int, labels: Collection[str] | None = None
) -> list[ResolvedRun]:
    """The runs of an experiment with the seeds 1 to `repeat`; a record's label is its configuration's.

    Args:
        experiment: the experiment.
        repeat: how many runs of each configuration.
        labels: of these configurations alone; of all if None.
    """
    runs = []
    for configuration in experiment.configurations:
        if labels is not None and configuration.label not in labels:
            continue
        written = {"repeat": repeat, **configuration.scenario}
        spec = check(
            ScenarioSpec, written, f"study `{experiment.name}`, configuration `{configuration.label}`"
        )
        runs += [dataclasses.replace(run, queue=configuration.label) for run in resolve(spec)]
    return runs


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
