"""The plan of a sweep: a scenario, the axes over which it is varied, and how often each point is run.

A plan in a file is the file of a scenario with a table `sweep`: docs/sweep.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from pydantic import BeforeValidator, Field

from weirlab import reading
from weirlab.errors import UsageError
from weirlab.forms import Model
from weirlab.forms.faults import Fault, line_of
from weirlab.forms.faults import faults as faults_of
from weirlab.forms.tables import without_table
from weirlab.scenario.catalogue import check
from weirlab.scenario.files import name_files, names_files, told
from weirlab.scenario.models import ScenarioSpec
from weirlab.scenario.units import time_ns
from weirlab.sweeps.axes import MAX_VALUES, Axis, Span, Unusable
from weirlab.sweeps.columns import FIGURES, OWN, VARIABLE
from weirlab.sweeps.samples import ALL
from weirlab.worlds.base import Datapath, PlannedWorld

if TYPE_CHECKING:
    from pathlib import Path

DesignName = Literal["grid", "random", "latin", "sobol"]


class AxisSpec(Model):
    """One axis, as a plan says it.

    Attributes:
        key: dotted keys of the scenario that a value is written to; the axis' own name if None.
        values: the values.
        labels: a text for each value, which stands in the column in its place.
        low, high: ends of a range, instead of values.
        steps: number of values of the range.
        step: distance of two values of the range.
        scale: whether equal differences or equal ratios are equal steps.
    """

    key: str | list[str] | None = None
    values: list[Any] | None = None
    labels: list[str] | None = None
    low: Any = Field(None, alias="from")
    high: Any = Field(None, alias="to")
    steps: Annotated[int, Field(ge=2, le=MAX_VALUES)] | None = None
    step: Any = None
    scale: Literal["linear", "log"] = "linear"


class UntilSpec(Model):
    """Repetitions until the interval of a figure is small enough at each point.

    Attributes:
        figure: the column whose mean is sought.
        share: half of the 95 % interval is at most this share of the mean.
        amount: or at most so much, in the column's unit; where both are given, the wider counts.
        most: runs of a point at most.
    """

    figure: str
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    amount: Annotated[float, Field(gt=0)] | None = None
    most: Annotated[int, Field(ge=2, le=100_000)]


def _samples(written: object) -> object:
    """What is written for `samples`, if it is a list or one of the two words.

    Raises:
        ValueError: if it is neither.
    """
    if isinstance(written, list | tuple) or written in ("none", "all"):
        return written
    phase = written if isinstance(written, str) else "load"
    raise ValueError(f'`{written}`: write `none`, `all`, or a list of phases such as `["{phase}"]`')


class SweepSpec(Model):
    """The table `sweep` of a plan.

    Attributes:
        axes: the axes by name.
        world: where the runs are made.
        datapath: who has the queues and lines of lab and kernel; if None Weir in the lab, else the kernel.
        zip: groups of axes that advance together.
        where: conditions on the columns of the axes; a point for which one does not hold is left out.
        design: how points are chosen.
        points: number of points of a design that is no grid.
        design_seed: seed of the choice of points.
        repeat: runs of each point, each with the next seed; the first ones, if there is `until`.
        until: until when a point is repeated further.
        samples: of which phases raw samples are kept; `all` for whole records, `none` for none.
        budget: processor time after which no further run starts.
        run_limit: time by the clock after which a run that has not ended counts as failed.
    """

    axes: dict[str, AxisSpec] = Field(min_length=1, max_length=50)
    world: PlannedWorld = "sim"
    datapath: Datapath | None = None
    zip: list[list[str]] = Field(default_factory=list)
    where: str | list[str] = Field(default_factory=list)
    design: DesignName = "grid"
    points: Annotated[int, Field(ge=1, le=100_000)] | None = None
    design_seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    repeat: Annotated[int, Field(ge=1, le=100_000)] = 1
    until: UntilSpec | None = None
    samples: Annotated[Literal["none", "all"] | list[str], BeforeValidator(_samples)] = "none"
    budget: str | None = None
    run_limit: str = "3600s"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep that can be carried out.

    Attributes:
        place: what a message calls it.
        text: the file; None of a plan made in Python, and of one that was kept.
        file: where the file is, beside which lies what it names; None of a plan made in Python.
        written: the scenario as it is written, without the table `sweep`.
        scenario: the same with paths of the files that it names.
        sweep: the table `sweep`.
        axes: the axes, in the order of the plan.
        budget_s: processor time in seconds after which no further run starts; None for no limit.
        run_limit_s: time by the clock in seconds after which a run that has not ended counts as failed.
    """

    place: str
    text: str | None
    file: str | None
    written: dict[str, Any]
    scenario: dict[str, Any]
    sweep: SweepSpec
    axes: tuple[Axis, ...]
    budget_s: float | None
    run_limit_s: float

    @property
    def most_repeats(self) -> int:
        """Runs of a point at most."""
        return self.sweep.repeat if self.sweep.until is None else self.sweep.until.most

    @property
    def samples(self) -> tuple[str, ...]:
        """Phases of which raw samples are kept, or what stands for the whole record."""
        said = self.sweep.samples
        return () if said == "none" else ALL if said == "all" else tuple(dict.fromkeys(said))

    @property
    def names_files(self) -> bool:
        """Whether it names tests, links or recordings that are not shipped."""
        inner = (
            {key.rpartition(".")[2]: value}
            for axis in self.axes
            for key in axis.keys
            for value in axis.values
        )
        return names_files(self.written) or any(map(names_files, inner))

    def refusal(self, found: list[Fault]) -> UsageError:
        """The error that tells these faults, each with its line in a file."""
        return UsageError(_all_told(self.place, self.text, found, []))


def load_plan(path: Path) -> Plan:
    """The plan in that file.

    Raises:
        UsageError: if it cannot be read, or something is wrong with it: all of that.
    """
    try:
        text = reading.read_text(path, reading.MAX_TOML_BYTES)
        data = reading.parse_toml(text)
    except reading.Unreadable as error:
        raise UsageError(f"`{path}` cannot be read: {error}") from error
    return _plan(data, str(path), text, str(path))


def plan_of(data: Mapping[str, Any], file: str | None = None) -> Plan:
    """The plan that is written in Python: a scenario with the key `sweep`; or one that was kept of `file`.

    Raises:
        UsageError: all that is wrong with it.
    """
    return _plan(dict(data), "plan", None, file)


def _plan(data: dict[str, Any], place: str, text: str | None, file: str | None) -> Plan:
    scenario = {key: value for key, value in data.items() if key != "sweep"}
    others = _scenario_faults(scenario, place, text)
    found = [Fault((key,), says) for key, says in _ELSEWHERE.items() if key in scenario]
    if "sweep" not in data:
        found.append(Fault((), "there is no table `sweep`: write the axes there, or run it with `weir run`"))
        raise UsageError(_all_told(place, text, found, others))
    sweep, of_sweep = _spec(data["sweep"])
    found += [Fault(("sweep", *one.path), one.says) for one in of_sweep]
    axes: list[Axis] = []
    times_s: dict[str, float | None] = {}
    if sweep is not None:
        for name, one in sweep.axes.items():
            try:
                axes.append(_axis(name, one))
            except Unusable as error:
                found.append(Fault(("sweep", "axes", name), str(error)))
        found += [*_together(sweep, axes), *_of_design(sweep, axes), *_of_until(sweep)]
        for key in ("budget", "run_limit"):
            written = getattr(sweep, key)
            try:
                times_s[key] = None if written is None else time_ns(written) / 1e9
            except ValueError as error:
                found.append(Fault(("sweep", key), str(error)))
        if times_s.get("run_limit") == 0:
            found.append(
                Fault(("sweep", "run_limit"), f"`{sweep.run_limit}`: write a time above 0, such as `3600s`")
            )
    if sweep is None or found or others:
        raise UsageError(_all_told(place, text, found, others))
    return Plan(
        place=place,
        text=text,
        file=file,
        written=scenario,
        scenario=scenario if file is None else name_files(scenario, file),
        sweep=sweep,
        axes=tuple(axes),
        budget_s=times_s["budget"],
        run_limit_s=times_s["run_limit"] or 0.0,
    )


def _scenario_faults(scenario: dict[str, Any], place: str, text: str | None) -> list[str]:
    """What is wrong with the scenario itself, a sentence each, those of a file with their lines in front."""
    try:
        if text is None:
            check(ScenarioSpec, scenario, place)
        else:
            from weirlab import _native  # noqa: PLC0415 - Python's plans need no file
            from weirlab.scenario.files import Files  # noqa: PLC0415 - Python's plans need no file

            told(lambda: _native.read_scenario(without_table(text, "sweep"), place, place, Files()))
    except UsageError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        said = lines[1:] if len(lines) > 1 else [lines[0].removeprefix(place).lstrip(":, ")]
        return [one for one in said if one]
    return []


def _spec(written: object) -> tuple[SweepSpec | None, list[Fault]]:
    """The table `sweep`, or all that is wrong with its form."""
    from pydantic import ValidationError  # noqa: PLC0415 - used here only

    if isinstance(written, Mapping) and isinstance(written.get("axes"), Mapping):
        axes = {
            name: {"values": list(one)} if isinstance(one, list | tuple) else one
            for name, one in written["axes"].items()
        }
        written = {**written, "axes": axes}
    try:
        return SweepSpec.model_validate(written), []
    except ValidationError as error:
        return None, faults_of(error, SweepSpec, written)


def _axis(name: str, spec: AxisSpec) -> Axis:
    """The axis that is written.

    Raises:
        Unusable: if it is none.
    """
    keys = (name,) if spec.key is None else (spec.key,) if isinstance(spec.key, str) else tuple(spec.key)
    for key in keys:
        if not all(key.split(".")):
            raise Unusable(f"`{key}`: write a key of a scenario, such as `phases.load`")
        if key.split(".")[0] in _NO_AXES:
            raise Unusable(f"`{key}` is no axis: {_NO_AXES[key.split('.')[0]]}")
    if not keys:
        raise Unusable("`key` is empty: write a key of a scenario, such as `phases.load`")
    ranged = spec.low is not None or spec.high is not None
    if (spec.values is not None) == ranged:
        raise Unusable("write either `values`, or `from` and `to`")
    return _ranged(name, keys, spec) if ranged else _listed(name, keys, spec)


def _ranged(name: str, keys: tuple[str, ...], spec: AxisSpec) -> Axis:
    if spec.low is None or spec.high is None:
        raise Unusable("a range has both `from` and `to`")
    if spec.labels is not None:
        raise Unusable("`labels` go with `values`, not with a range")
    if spec.steps is not None and spec.step is not None:
        raise Unusable("`steps` and `step` exclude each other: write one of them")
    span = Span.of(spec.low, spec.high, log=spec.scale == "log")
    values: list[Any] = []
    if spec.steps is not None:
        values = span.steps(spec.steps)
    elif spec.step is not None:
        values = span.every(spec.step)
    return Axis(name, keys, tuple(values), span=span)


def _listed(name: str, keys: tuple[str, ...], spec: AxisSpec) -> Axis:
    values = spec.values or []
    if spec.step is not None or spec.steps is not None or spec.scale != "linear":
        raise Unusable("`steps`, `step` and `scale` go with a range, not with `values`")
    if not 1 <= len(values) <= MAX_VALUES:
        raise Unusable(f"it has {len(values)} values: write 1 to {MAX_VALUES}")
    again = [one for number, one in enumerate(values) if _among(one, values[:number])]
    if again:
        raise Unusable(f"`{again[0]}` is listed twice: write each value once")
    labels = None if spec.labels is None else tuple(spec.labels)
    if labels is not None and (len(labels) != len(values) or len(set(labels)) != len(labels)):
        raise Unusable(f"write a label of its own for each of the {len(values)} values")
    return Axis(name, keys, tuple(values), labels=labels)


def _among(one: Any, others: list[Any]) -> bool:
    """Whether a value is among others of the same type: true is no 1."""
    return any(type(one) is type(other) and one == other for other in others)


def _together(sweep: SweepSpec, axes: list[Axis]) -> list[Fault]:
    """What is wrong with the axes beside each other, and with those that advance together."""
    found = []
    columns: dict[str, str] = {}
    keys: dict[str, str] = {}
    for axis in axes:
        place = ("sweep", "axes", axis.name)
        bare = axis.column.split("_")[0]
        if not axis.column or not bare[:1].isalpha():
            found.append(Fault(place, f"`{axis.name}`: a name begins with a letter"))
        if axis.column in OWN and not (axis.column in VARIABLE and axis.kind == "text"):
            says = f"every store has a column `{axis.column}`: give the axis another name, and a `key`"
            found.append(Fault(place, says))
        if axis.column in columns:
            other = columns[axis.column]
            found.append(Fault(place, f"its column `{axis.column}` is that of `{other}` too: rename one"))
        columns[axis.column] = axis.name
        for key in axis.keys:
            if key in keys:
                found.append(Fault(place, f"`{key}` is varied by `{keys[key]}` too"))
            keys[key] = axis.name
    by_name = {axis.name: axis for axis in axes}
    grouped: set[str] = set()
    for number, group in enumerate(sweep.zip):
        at = ("sweep", "zip", number)
        unknown = [name for name in group if name not in sweep.axes]
        found += [Fault(at, f"no axis `{name}` (known: {', '.join(sweep.axes)})") for name in unknown]
        twice = [name for name in group if name in grouped or group.count(name) > 1]
        if twice or len(group) < 2:
            found.append(Fault(at, "write two axes or more, each in one group"))
        grouped |= set(group)
        lengths = {name: len(by_name[name].values) for name in group if name in by_name}
        if sweep.design == "grid" and len(set(lengths.values())) > 1:
            counts = ", ".join(f"`{name}` has {count}" for name, count in lengths.items())
            found.append(Fault(at, f"axes that advance together have as many values: {counts}"))
    return found


def _of_design(sweep: SweepSpec, axes: list[Axis]) -> list[Fault]:
    """What is wrong with the choice of points."""
    found = []
    if sweep.design == "grid":
        found += [
            Fault(("sweep", "axes", axis.name), "a grid needs `steps` or `step` of a range")
            for axis in axes
            if not axis.values
        ]
        if sweep.points is not None:
            found.append(Fault(("sweep", "points"), "a grid has the points of its axes: leave `points` out"))
        if "design_seed" in sweep.model_fields_set:
            says = "a grid has the points of its axes, and none is drawn: leave `design_seed` out"
            found.append(Fault(("sweep", "design_seed"), says))
    elif sweep.points is None:
        found.append(Fault(("sweep", "design"), f"`{sweep.design}` needs `points`, the number of points"))
    elif sweep.design == "sobol" and sweep.points & (sweep.points - 1):
        near = 1 << (sweep.points.bit_length() - 1)
        says = f"{sweep.points}: a Sobol sequence is balanced at powers of 2 only: write {near} or {2 * near}"
        found.append(Fault(("sweep", "points"), says))
    return found


def _of_until(sweep: SweepSpec) -> list[Fault]:
    """What is wrong with the end of the repetitions."""
    until = sweep.until
    if until is None:
        return []
    found = []
    if not FIGURES.get(until.figure, pl.String).is_numeric():
        names = [name for name, kind in FIGURES.items() if kind.is_numeric()]
        says = f"no figure `{until.figure}` (known: {', '.join(names)})"
        found.append(Fault(("sweep", "until", "figure"), says))
    if until.share is None and until.amount is None:
        says = "write how small the interval must be: `share`, `amount` or both"
        found.append(Fault(("sweep", "until"), says))
    if sweep.repeat < 2:
        says = f"{sweep.repeat}: an interval takes 2 runs or more: write `repeat = 3`"
        found.append(Fault(("sweep", "repeat"), says))
    if until.most < sweep.repeat:
        found.append(Fault(("sweep", "until", "most"), f"{until.most}: fewer than `repeat`, {sweep.repeat}"))
    return found


def _all_told(place: str, text: str | None, found: list[Fault], others: list[str]) -> str:
    """All faults in a message, those of a file in the order of their lines."""
    said = []
    for one in dict.fromkeys(found):
        line = None if text is None else line_of(one.path, text)
        said.append((line or 0, f"{one}" if line is None else f"line {line}: {one}"))
    for other in others:
        digits = other.removeprefix("line ").partition(":")[0]
        said.append((int(digits) if digits.isdecimal() else 0, other))
    told_lines = [text for _, text in sorted(said, key=lambda one: one[0])]
    if len(told_lines) == 1:
        return f"{place}, {told_lines[0]}" if text is not None else f"{place}: {told_lines[0]}"
    shown, rest = told_lines[:MAX_FAULTS], len(told_lines) - MAX_FAULTS
    more = [f"and {rest} more"] if rest > 0 else []
    return "\n  ".join([f"{place} has {len(told_lines)} faults:", *shown, *more])


_ELSEWHERE = {
    "repeat": "in a sweep the repetitions are `sweep.repeat`",
    "assert": "a sweep judges no assertions: leave it out, and ask the store",
}

_NO_AXES = {
    "repeat": "the repetitions are `sweep.repeat`",
    "seed": "the repetitions of a point have the seeds from the scenario's `seed` on",
    "assert": "a sweep judges no assertions",
    "sweep": "it is a part of the plan, not of the scenario",
    "name": "it changes nothing of a run",
    "note": "it changes nothing of a run",
    "tags": "they change nothing of a run",
}
"""Keys of a scenario that are not varied, and why."""

MAX_FAULTS = 20
"""Faults that a message tells."""
