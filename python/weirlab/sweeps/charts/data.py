"""What a chart of a sweep draws: the rows of a store, the values of its axes, and words for both."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.errors import UsageError, counted
from weirlab.plots.caption import ROUNDING
from weirlab.sweeps.shown import of_newest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.sweeps.store import Store


@dataclass(frozen=True)
class Drawn:
    """The runs that a chart draws.

    Attributes:
        rows: a row a run without an error, of the version of Weir that ran last.
        axes: the columns of the axes that vary.
        place: the store's name.
        version: the version of Weir.
        left_out: why runs are not drawn, in words for the small print; empty if all are.
    """

    rows: pl.DataFrame
    axes: list[str]
    place: str
    version: str
    left_out: str

    def column(self, name: str, what: str) -> str:
        """The name, if it is a column of these rows.

        Raises:
            UsageError: if it is none.
        """
        if name not in self.rows.columns:
            raise UsageError(f"{what} {name}: no such column (known: {', '.join(self.rows.columns)})")
        return name

    def figure(self, name: str, what: str) -> str:
        """The name, if it is a column of numbers.

        Raises:
            UsageError: if it is none.
        """
        if not self.rows[self.column(name, what)].dtype.is_numeric():
            raise UsageError(f"{what} {name}: the column has no numbers")
        return name

    def counts(self) -> dict[str, int]:
        """How many values each axis has."""
        return {name: self.rows[name].drop_nulls().n_unique() for name in self.axes}

    def with_room(self, most: int) -> list[str]:
        """The axes of which a chart that has room for `most` values has room for all."""
        return [name for name, count in self.counts().items() if count <= most]

    def values(self, name: str, what: str, most: int) -> list[Any]:
        """The values of an axis in their order.

        Raises:
            UsageError: if there are more than `most`, or none.
        """
        found = self.rows[self.column(name, what)].drop_nulls().unique().sort().to_list()
        if not 0 < len(found) <= most:
            raise UsageError(f"{what} {name}: {len(found)} values; a chart has room for 1 to {most}")
        return found

    def over(self, *used: str | None) -> str:
        """The axes that are averaged, in words: all that vary where those of `used` have one value each."""
        held = self._held(*used)
        others = [plain(name) for name in self.axes if name not in used and name not in held]
        repeated = self.rows["seed"].n_unique() > 1
        return " and ".join([", ".join(others)] * bool(others) + ["seeds"] * repeated) or SINGLE

    def averaged(self, average: str, *used: str | None) -> str:
        """That an `average` is over the axes of `over`; where each place has one run, that there is none."""
        over = self.over(*used)
        return over.capitalize() if over == SINGLE else f"{average} over {over}"

    def beside(self, *used: str | None) -> str:
        """A sentence on axes that differ with those of `used` and are not averaged; empty if none do."""
        names = ", ".join(plain(name) for name in self._held(*used))
        if not names:
            return ""
        return f" Not averaged: {names}, of which each place has one value, so that places differ in it too."

    def _held(self, *used: str | None) -> list[str]:
        """The axes but `used` that have one value at most wherever those of `used` have one each."""
        by = [name for name in dict.fromkeys(used) if name is not None]
        others = [name for name in self.axes if name not in by]
        if not by or not others:
            return []
        most = self.rows.group_by(by).agg(pl.col(others).n_unique()).select(pl.col(others).max()).row(0)
        return [name for name, count in zip(others, most, strict=True) if count == 1]

    def origin(self) -> str:
        """Where the runs come from, in words."""
        points = self.rows.select(self.axes).n_unique() if self.axes else 1
        seeds = self.rows["seed"].to_numpy()
        least, greatest = seeds.min(), seeds.max()
        said = f"seed {least}" if least == greatest else f"seeds {least} to {greatest}"
        of = f"{counted(self.rows.height, 'run')} of {counted(points, 'point')}"
        worlds = sorted(self.rows["world"].drop_nulls().unique())
        made = f"world{'s' * (len(worlds) > 1)} {'; '.join(worlds)}"
        return f"{made} · {of} · {said} · {self.place}"


def drawn(store: Store) -> Drawn:
    """What there is to draw in a store.

    Raises:
        UsageError: if no run has come to its end.
        RecordError: if the store cannot be read.
    """
    newest, version, others = of_newest(store.collected().lazy())
    rows = newest.collect()
    whole = rows.filter(pl.col("error").is_null())
    if whole.is_empty():
        raise UsageError(f"`{store.name}` has no run that came to its end: there is nothing to draw")
    reasons = {"that failed": rows.height - whole.height, f"of other versions than {version}": others}
    left_out = "; ".join(f"{counted(count, 'run')} {why} left out" for why, count in reasons.items() if count)
    axes = [name for name in store.axes() if whole[name].n_unique() > 1]
    return Drawn(whole, axes, store.name.rstrip("/").rpartition("/")[2], version, left_out)


def words(column: str) -> str:
    """The name of a column for people, with its unit behind a comma."""
    for ending, unit in UNITS.items():
        if column.endswith(ending):
            return f"{column.removesuffix(ending).replace('_', ' ')}, {unit}"
    return column.replace("_", " ")


def plain(column: str) -> str:
    """The name of a column for people, without its unit."""
    return words(column).partition(", ")[0]


def number(value: float) -> str:
    """A figure for people: three digits, and all of those before the point."""
    return _with_digits(value, 3)


def text(value: float | str | bool) -> str:
    """A value of an axis for people: of a fraction four digits, and all of those before the point."""
    return _with_digits(value, 4) if isinstance(value, float) else str(value)


def _with_digits(value: float, digits: int) -> str:
    """So many digits and all before the point, without an exponent; 0 if it is nothing but rounding."""
    if abs(value) < ROUNDING:
        return "0"
    return f"{value:.0f}" if abs(value) >= 10**digits else format(Decimal(f"{value:.{digits}g}"), "f")


def is_logarithmic(values: Sequence[Any]) -> bool:
    """Whether numbers are spaced by equal ratios, as an axis with `scale = "log"` is."""
    numbers = np.asarray(values, dtype=float)
    if numbers.size < FEWEST or numbers.min() <= 0:
        return False
    ratios, steps = np.diff(np.log(numbers)), np.diff(numbers)
    return bool(np.ptp(ratios) / ratios.mean() < np.ptp(steps) / steps.mean())


FEWEST = 3
"""Values of which spacing can be told."""

SINGLE = "single runs"
"""What is averaged where each place has one run: nothing."""

UNITS = {"_ms": "ms", "_mbps": "Mbit/s", "_s": "s"}
"""Endings of columns, and the units that they stand for."""
