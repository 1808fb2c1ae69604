"""How far a reported latency is from the true one under load.

Three truths, each the median over the time in which the method loaded that direction: round trips of the
load's own packets (in the lab, and of Weir's own loads, their senders' SRTT), of pings in a flow of their
own, and what packets waited in the queue on top of the empty path. A cell is worth the median of its runs; a
row ranges over cells.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, Literal

from weirstudies.speedtest_aqm import design

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.scenario import Direction
    from weirstudies.speedtest_aqm.design import Cell, Metric, Study
    from weirstudies.speedtest_aqm.figures import Run, Spread

Truth = Literal["own", "other", "queue"]
TRUTHS: tuple[Truth, ...] = ("own", "other", "queue")
"""The load's own packets, pings in another flow, the queue itself."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """Values of cells: their median, the least and the greatest."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A reported latency beside a true one, over cells.

    Attributes:
        truth: the true one, ms.
        difference: reported less true, ms.
        ratio: reported over true.
    """

    truth: Range
    difference: Range
    ratio: Range


@dataclass(frozen=True, kw_only=True)
class Row:
    """A latency that a method reports, beneath one queue.

    Attributes:
        method, metric, queue: which.
        crossed: whether there was cross traffic.
        world: where it ran.
        cells, runs: over how many of them it is.
        missing: runs in which the method reported no such figure.
        reported: what it reported, ms; None if never.
        gaps: beside each truth that there is.
    """

    method: str
    metric: Metric
    queue: str
    crossed: bool
    world: str
    cells: int
    runs: int
    missing: int
    reported: Range | None
    gaps: Mapping[Truth, Gap]

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values, for JSON."""
        return dataclasses.asdict(self) | {"metric": self.metric.name}


def rows(found: Mapping[Cell, Sequence[Run]], of: Study) -> list[Row]:
    """A row for each metric, queue and world, with and without cross traffic.

    Only the grid's cells count, and of their runs those that the lab did not spoil.
    """
    kept: dict[tuple[str, str, bool, str], dict[Cell, list[Run]]] = {}
    for cell, runs in found.items():
        if not design.in_grid(cell, of):
            continue
        for run in filter(_counts, runs):
            key = (cell.method, cell.queue, cell.cross != "none", run.world)
            kept.setdefault(key, {}).setdefault(cell, []).append(run)
    made = []
    for method in of.method:
        for metric in method.metric:
            for queue in of.queue:
                for world in ("sim", "lab"):
                    for crossed in (False, True):
                        mine = kept.get((method.name, queue.name, crossed, world))
                        if mine:
                            made.append(row(mine, metric, queue.name, crossed=crossed, world=world))
    return made


def _counts(run: Run) -> bool:
    return run.disturbed is None


def row(
    of_cells: Mapping[Cell, Sequence[Run]], metric: Metric, queue: str, *, crossed: bool, world: str
) -> Row:
    """One metric beneath one queue."""
    every = [run for runs in of_cells.values() for run in runs]
    told = [value for runs in of_cells.values() if (value := _cell(runs, metric)) is not None]
    way: Direction = metric.way or "down"
    gaps: dict[Truth, Gap] = {}
    for truth in TRUTHS:
        gap = _gap(list(of_cells.values()), metric, partial(true_ms, way=way, truth=truth))
        if gap:
            gaps[truth] = gap
    return Row(
        method=next(iter(of_cells)).method,
        metric=metric,
        queue=queue,
        crossed=crossed,
        world=world,
        cells=len(of_cells),
        runs=len(every),
        missing=sum(reported_ms(run, metric) is None for run in every),
        reported=_range(told) if told else None,
        gaps=gaps,
    )


def reported_ms(run: Run, metric: Metric) -> float | None:
    """Latency that the method reports, in ms; None if it reports none."""
    value: Any = run.result
    for name in metric.path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, int | float) or value <= 0:
        return None
    return MINUTE_MS / value if metric.per_minute else float(value)


def true_ms(run: Run, way: Direction, truth: Truth) -> float | None:
    """The true latency under that load: the median. Of a load without samples of its own it is its SRTT's."""
    loaded = run.ways.get(way)
    if loaded is None:
        return None
    found: Spread | None = getattr(loaded, truth)
    if found is None and truth == "own":
        found = loaded.srtt
    return found.median if found else None


def stand_in(found: Mapping[Cell, Sequence[Run]]) -> Range | None:
    """How far the median SRTT is from that of the load's own round trips, in ms, where both are known.

    The ends are those of nine tenths of all directions of runs.
    """
    gaps = [
        way.srtt.median - way.own.median
        for runs in found.values()
        for run in runs
        for way in run.ways.values()
        if way.own is not None and way.srtt is not None
    ]
    if len(gaps) < 2:
        return None
    twentieths = quantiles(gaps, n=20)
    return Range(median=median(gaps), low=twentieths[0], high=twentieths[-1])


def _cell(runs: Sequence[Run], metric: Metric) -> float | None:
    told = [value for run in runs if (value := reported_ms(run, metric)) is not None]
    return median(told) if told else None


def _gap(cells: Sequence[Sequence[Run]], metric: Metric, true: Callable[[Run], float | None]) -> Gap | None:
    """Differences and ratios are taken run by run."""
    truths, differences, ratios = [], [], []
    for runs in cells:
        pairs = [
            (told, real)
            for run in runs
            if (told := reported_ms(run, metric)) is not None and (real := true(run)) is not None
        ]
        if pairs:
            truths.append(median(real for _, real in pairs))
            differences.append(median(told - real for told, real in pairs))
            ratios.append(median(told / real for told, real in pairs))
    if not truths:
        return None
    return Gap(truth=_range(truths), difference=_range(differences), ratio=_range(ratios))


def _range(values: Sequence[float]) -> Range:
    return Range(median=median(values), low=min(values), high=max(values))


MINUTE_MS = 60_000.0
