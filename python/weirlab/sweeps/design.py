"""The points of a plan: all of a grid, or those that a random, Latin hypercube or Sobol design draws."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.forms.faults import Fault
from weirlab.sweeps.conditions import NoCondition, condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weirlab.sweeps.plan import Plan

Point = tuple[Any, ...]
"""A value of each axis, in the order of the plan's."""


@dataclass(frozen=True)
class Points:
    """The points of a plan.

    Attributes:
        points: those that its conditions keep, each once.
        columns: what stands in the columns of the axes for each.
        again: how many a design drew that it had drawn before, which are left out.
    """

    points: list[Point]
    columns: pl.DataFrame
    again: int


def points(plan: Plan) -> Points:
    """The points of a plan that its conditions keep.

    Raises:
        UsageError: if there are too many, none, or a condition is none.
    """
    groups = _groups(plan)
    chosen = _grid(plan, groups) if plan.sweep.design == "grid" else _drawn(plan, groups)
    distinct = list(dict(zip(map(repr, chosen), chosen, strict=True)).values())
    columns = pl.DataFrame(
        {axis.column: [axis.shown(one[n]) for one in distinct] for n, axis in enumerate(plan.axes)},
        strict=False,
    )
    kept = _kept(plan, columns)
    if not kept:
        raise plan.refusal([Fault(("sweep", "where"), "no point is left: the conditions exclude each other")])
    return Points([distinct[number] for number in kept], columns[kept], len(chosen) - len(distinct))


def _groups(plan: Plan) -> list[list[int]]:
    """Numbers of the axes that advance together; an axis by itself is a group of its own."""
    number = {axis.name: place for place, axis in enumerate(plan.axes)}
    zipped = [[number[name] for name in group] for group in plan.sweep.zip]
    of = {one: group for group in zipped for one in group}
    groups: list[list[int]] = []
    for place in range(len(plan.axes)):
        group = of.get(place, [place])
        if group not in groups:
            groups.append(group)
    return groups


def _grid(plan: Plan, groups: Sequence[Sequence[int]]) -> list[Point]:
    lengths = [len(plan.axes[group[0]].values) for group in groups]
    count = math.prod(lengths)
    if count > MAX_POINTS:
        says = f"{' x '.join(map(str, lengths))} = {count} points: a sweep has {MAX_POINTS} at most"
        raise plan.refusal([Fault(("sweep", "axes"), says)])
    return [
        _point(groups, [[plan.axes[one].values[place] for one in group] for group, place in one_each])
        for one_each in (
            list(zip(groups, places, strict=True)) for places in itertools.product(*map(range, lengths))
        )
    ]


def _drawn(plan: Plan, groups: Sequence[Sequence[int]]) -> list[Point]:
    return [
        _point(
            groups,
            [[plan.axes[one].at(share) for one in group] for group, share in zip(groups, row, strict=True)],
        )
        for row in _shares(plan, len(groups))
    ]


def _point(groups: Sequence[Sequence[int]], values: Sequence[Sequence[Any]]) -> Point:
    """The values in the order of the axes."""
    found = {
        axis: value
        for group, several in zip(groups, values, strict=True)
        for axis, value in zip(group, several, strict=True)
    }
    return tuple(found[axis] for axis in range(len(found)))


def _shares(plan: Plan, dimensions: int) -> Iterator[list[float]]:
    """Where on each dimension the points lie, from 0 up to but without 1.

    More points of a random or Sobol design begin with the points that fewer have.
    """
    import numpy as np  # noqa: PLC0415 - a grid needs neither
    from scipy.stats import qmc  # noqa: PLC0415

    count, seed = plan.sweep.points or 1, plan.sweep.design_seed
    if plan.sweep.design == "random":
        rows = np.random.default_rng(seed).random((count, dimensions))
    elif plan.sweep.design == "latin":
        rows = qmc.LatinHypercube(dimensions, rng=np.random.default_rng(seed)).random(count)
    else:
        rows = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed)).random(count)
    yield from rows.tolist()


def _kept(plan: Plan, columns: pl.DataFrame) -> list[int]:
    """Numbers of the points for which all conditions hold."""
    wanted = plan.sweep.where
    found: list[Fault] = []
    held = pl.Series([True] * columns.height)
    for number, text in enumerate([wanted] if isinstance(wanted, str) else wanted):
        at: tuple[str | int, ...] = (
            ("sweep", "where") if isinstance(wanted, str) else ("sweep", "where", number)
        )
        try:
            answer = columns.select(held=condition(text, columns.columns))["held"]
            if answer.dtype != pl.Boolean or len(answer) not in {1, columns.height}:
                raise NoCondition("it is neither true nor false of a point")  # noqa: TRY301
        except (pl.exceptions.PolarsError, NoCondition) as error:
            reason = " ".join(str(error).split("\n\n", maxsplit=1)[0].split())[:MAX_REASON_CHARS]
            known = ", ".join(columns.columns)
            says = f"{reason}: write a condition on the columns {known}, in place of `{text}`"
            found.append(Fault(at, says))
        else:
            # What is null, such as a comparison with null, does not hold.
            held = held & answer.fill_null(value=False)
    if found:
        raise plan.refusal(found)
    return [number for number, holds in enumerate(held) if holds]


MAX_POINTS = 100_000
"""Points of a sweep before its conditions: a grid of more takes more memory than the runs are worth."""

MAX_REASON_CHARS = 150
"""Characters of what is wrong with a condition."""
