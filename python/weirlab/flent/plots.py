"""The plots of Flent 2.3 by name, and the charts of Weir that show the same."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class FlentPlot:
    """A plot of Flent.

    Attributes:
        name: its name, such as `all_scaled`.
        charts: the kinds of chart of `weir plot` that show together what it shows; empty if there is none.
        note: what they show of it, or why there is none.
    """

    name: str
    charts: tuple[str, ...]
    note: str

    @property
    def options(self) -> str:
        """The options of `weir plot` for these charts, as a message names them, with what they show."""
        kinds = ", ".join(f"`--kind {chart}`" for chart in self.charts)
        return f"{kinds} ({self.note})"


@cache
def flent_plots() -> Mapping[str, FlentPlot]:
    """All plots of Flent 2.3, by name."""
    text = (resources.files("weirlab") / "data/flent/plots.toml").read_text("utf-8")
    return {
        name: FlentPlot(name=name, charts=tuple(one["charts"]), note=one["note"])
        for one in tomllib.loads(text)["plots"]
        for name in sorted(one["names"])
    }
