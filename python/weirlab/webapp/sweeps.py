"""Stores of sweeps below the folder: listed, summed up, and drawn as `weir sweep plot` draws them."""

from __future__ import annotations

import shlex
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab.errors import UsageError
from weirlab.record.places import store_paths
from weirlab.sweeps.charts import KINDS, draw, told, usual_kind
from weirlab.sweeps.charts.asked import Asked
from weirlab.sweeps.columns import FIGURES
from weirlab.sweeps.shown import grouped, of_newest, shown_columns
from weirlab.sweeps.store import Store
from weirlab.webapp.latest import Latest

__all__ = ["Seen", "Sweeps"]

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from weirlab.sweeps.charts.told import Told


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a page shows of a store.

    Attributes:
        place: where it lies below the folder, by which it is asked for.
        runs: how many runs it has.
        failed: how many of them failed.
        axes: columns of the axes.
        figures: columns of figures.
        kind: kind of the chart.
        asked: what is asked of it.
        command: the command that draws it.
        table: its figure by its axes, over all else; a row each, of up to `MAX_ROWS`.
    """

    place: str
    runs: int
    failed: int
    axes: list[str]
    figures: list[str]
    kind: str
    asked: Asked
    command: str
    table: pl.DataFrame


class Sweeps:
    """The stores below `folder`."""

    def __init__(self, folder: Path) -> None:
        """Reads nothing yet."""
        self.folder = folder
        self._charts: Latest[tuple[object, ...], bytes] = Latest(MAX_CHARTS)
        # Matplotlib's settings are those of the process.
        self._drawing = threading.Lock()

    def places(self) -> list[str]:
        """Where stores lie below the folder, sorted."""
        return [path.relative_to(self.folder).as_posix() for path in store_paths(self.folder)]

    def seen(self, query: Mapping[str, str]) -> Seen:
        """What there is to see of a store.

        Args:
            query: `store`, its place; of the chart `kind`, and `figure`, `against`, `x`, `by` and `panels`.

        Raises:
            UsageError: if there is no such store or chart, or a column is none of the store's.
            RecordError: if the store cannot be read.
        """
        store, kind, asked = self._asked(query)
        rows, _, _ = of_newest(store.collected().lazy())
        whole = rows.collect()
        figures = [name for name in FIGURES if name in whole.columns and whole[name].dtype.is_numeric()]
        named = [name for name in (asked.x, asked.by, asked.panels) if name is not None]
        asked_for = [asked.figure, asked.against] if kind == "pareto" else [asked.figure]
        by, shown = shown_columns(store, [*dict.fromkeys(named)], [*dict.fromkeys(asked_for)])
        return Seen(
            place=query["store"],
            runs=whole.height,
            failed=whole.height - whole["error"].null_count(),
            axes=store.axes(),
            figures=figures,
            kind=kind,
            asked=asked,
            command=self._command(query["store"], kind, asked),
            table=grouped(whole.lazy(), by, shown, points=store.axes()).head(MAX_ROWS),
        )

    def chart(self, query: Mapping[str, str]) -> bytes:
        """The chart that is asked for, as SVG.

        Args:
            query: as for `seen`.

        Raises:
            UsageError: if there is no such store or chart, or nothing to draw.
            RecordError: if the store cannot be read.
        """
        store, kind, asked = self._asked(query)
        return self._charts.get(
            (store.name, *store.parts(), kind, asked), lambda: self._drawn(store, kind, asked)
        )

    def told(self, query: Mapping[str, str]) -> Told:
        """The figures of the chart that is asked for.

        Args:
            query: as for `seen`.

        Raises:
            UsageError: if there is no such store or chart, or nothing to draw.
            RecordError: if the store cannot be read.
        """
        return told(*self._asked(query))

    def _drawn(self, store: Store, kind: str, asked: Asked) -> bytes:
        with tempfile.TemporaryDirectory(prefix="weir-") as folder, self._drawing:
            return draw(store, kind, asked, Path(folder) / "chart.svg").read_bytes()

    def _asked(self, query: Mapping[str, str]) -> tuple[Store, str, Asked]:
        place, kind = query.get("store", ""), query.get("kind")
        # Only what the folder's own list has: a path of the request is never opened.
        if place not in self.places():
            raise UsageError(f"`{place}`: there is no such store in `{self.folder}`")
        if kind is not None and kind not in KINDS:
            raise UsageError(f"there is no chart `{kind}` of a sweep (known: {', '.join(KINDS)})")
        words: dict[str, Any] = {name: query.get(name) or default for name, default in DEFAULTS.items()}
        store = Store.opened(self.folder / place)
        return store, kind or usual_kind(store), Asked(**words)

    def _command(self, place: str, kind: str, asked: Asked) -> str:
        said = {name: getattr(asked, name) for name in DEFAULTS}
        words = [
            word
            for name, value in said.items()
            if value != DEFAULTS[name]
            for word in (f"--{name}", str(value))
        ]
        return shlex.join(["weir", "sweep", "plot", str(self.folder / place), "--kind", kind, *words])


DEFAULTS: Mapping[str, str | None] = {name: one for name, one in asdict(Asked()).items() if name != "title"}
"""What is asked of a chart if nothing is said, as by `weir sweep plot`."""

MAX_ROWS = 1000
"""Rows of a table that a reader still looks through; `weir sweep show --json` has all."""

MAX_CHARTS = 32
"""Each has some 100 kB."""
