"""Repetitions until intervals are small enough: which runs of a sweep are wanted, look by look.

Each point is looked at after `repeat` runs, after twice as many, and so on: always after the same numbers, so
that an interrupted sweep, another machine and a cluster come to the same runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from weirlab.stats import interval
from weirlab.stats.repetition import MIN_ALIKE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weirlab.sweeps.plan import UntilSpec
    from weirlab.sweeps.runs import Run, Sweep
    from weirlab.sweeps.store import Store


def looks(sweep: Sweep, store: Store) -> Iterator[Sequence[Run]]:
    """The runs that are wanted: all at once, or those of each look when the ones before are in the store."""
    until = None if sweep.plan is None else sweep.plan.sweep.until
    if sweep.plan is None or until is None:
        yield sweep.runs
        return
    wanting = _points(sweep)
    before = 0
    for count in counts(sweep.plan.sweep.repeat, until.most):
        yield [runs[number] for number in range(before, count) for runs in wanting if number < len(runs)]
        values = _values(store, until.figure)
        wanting = [runs for runs in wanting if not _settled([values.get(r.key) for r in runs[:count]], until)]
        before = count


def unsettled(sweep: Sweep, store: Store) -> int | None:
    """How many points of a sweep have no interval that is small enough, after all of their runs.

    None of a sweep without an `until`.
    """
    until = None if sweep.plan is None else sweep.plan.sweep.until
    if sweep.plan is None or until is None:
        return None
    values = _values(store, until.figure)
    after = counts(sweep.plan.sweep.repeat, until.most)
    of_points = ([values.get(run.key) for run in runs] for runs in _points(sweep))
    return sum(not any(_settled(found[:count], until) for count in after) for found in of_points)


def _points(sweep: Sweep) -> list[list[Run]]:
    """The runs of each point."""
    points: dict[int, list[Run]] = {}
    for run in sweep.runs:
        points.setdefault(id(run.configuration), []).append(run)
    return list(points.values())


def counts(first: int, most: int) -> list[int]:
    """After how many runs a point is looked at: after the first ones, then twice as many, up to the most."""
    found = [first]
    while found[-1] < most:
        found.append(min(2 * found[-1], most))
    return found


def _values(store: Store, figure: str) -> dict[str, float]:
    """The figure of every run of a store that has one, by its key."""
    rows = store.collected().filter(pl.col("error").is_null()).select("run", pl.col(figure).cast(pl.Float64))
    return dict(rows.drop_nulls().iter_rows())


def _settled(values: Sequence[float | None], until: UntilSpec) -> bool:
    """Whether the 95 % interval of the mean is small enough; never if a run has no such figure."""
    found = interval(values)
    if found is None or found.low is None or found.high is None or found.count < len(values):
        return False
    if len(set(values)) == 1 and found.count < MIN_ALIKE:
        # That so few are the same may be chance.
        return False
    half = (found.high - found.low) / 2
    return half <= max(until.amount or 0.0, (until.share or 0.0) * abs(found.mean))
