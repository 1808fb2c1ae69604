"""Charts of a sweep's store, as PNG, SVG or PDF: `weir sweep plot`."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

from weirlab.errors import UsageError
from weirlab.loading import without_lament
from weirlab.plots import MAX_TITLE_CHARS, format_of, save
from weirlab.sweeps.charts.asked import MOST_CELLS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

    from matplotlib.figure import Figure

    from weirlab.sweeps.charts.asked import Asked
    from weirlab.sweeps.charts.told import Told
    from weirlab.sweeps.store import Store

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "heat": "mean of a figure for each value of one axis with each of another",
        "lines": "medians of a figure along an axis of numbers, with bands, a line for each value of another",
        "pareto": "a figure of throughput against one of latency, and the points that none beats in both",
        "sensitivity": "which axis matters to a figure: Sobol' indices over a full grid",
    }
)
"""All kinds of charts with what they show. The function `figure` of the module of its name draws each."""


def usual_kind(store: Store) -> str:
    """The chart of a store for who asks for none: the first that its axes are enough for.

    Two that vary and have few enough values make a heat map, one of numbers lines; of any other each value
    is a point.
    """
    from weirlab.sweeps.shown import of_newest  # noqa: PLC0415 - loads Polars

    newest, _, _ = of_newest(store.collected().lazy())
    # Runs that failed, or are of another version, are not drawn.
    rows = newest.collect()
    rows = rows.filter(rows["error"].is_null())
    values = {name: rows[name].drop_nulls().n_unique() for name in store.axes()}
    vary = [name for name, count in values.items() if count > 1]
    if sum(1 < count <= MOST_CELLS for count in values.values()) > 1:
        return "heat"
    return "lines" if any(rows[name].dtype.is_numeric() for name in vary) else "pareto"


def draw(store: Store, kind: str, asked: Asked, target: Path) -> Path:
    """Draws a chart of a store into the file `target`, in the format that its suffix names.

    Args:
        store: the store.
        kind: one of `KINDS`.
        asked: which figure, by which axes.
        target: the file; one that is there is replaced, and only by a finished chart.

    Returns:
        `target`.

    Raises:
        UsageError: if the suffix does not fit, an axis or figure is none or has no room, or there is nothing
            to draw.
    """
    if asked.title is not None and len(asked.title) > MAX_TITLE_CHARS:
        raise UsageError(f"a title of {len(asked.title)} characters: write {MAX_TITLE_CHARS} or fewer")
    drawing = _drawing(kind)
    asked.check()
    format_of(target)
    from weirlab.sweeps.charts.data import drawn  # noqa: PLC0415 - loads Polars

    found = drawn(store)

    def make() -> Figure:
        chart: Figure = drawing.figure(found, asked)
        return chart

    return save(make, target)


def told(store: Store, kind: str, asked: Asked) -> Told:
    """The figures that `draw` draws.

    Args:
        store: the store.
        kind: one of `KINDS`.
        asked: which figure, by which axes.

    Raises:
        UsageError: as `draw`.
    """
    drawing = _drawing(kind)
    asked.check()
    from weirlab.sweeps.charts.data import drawn  # noqa: PLC0415 - loads Polars

    found: Told = drawing.told(drawn(store), asked)
    return found


def _drawing(kind: str) -> ModuleType:
    """The module of a kind."""
    if kind not in KINDS:
        raise UsageError(f"there is no chart `{kind}` of a sweep (known: {', '.join(KINDS)})")
    without_lament()
    return importlib.import_module(f"weirlab.sweeps.charts.{kind}")
