"""Pings to one host over time and how they are distributed, drawn from the pings themselves.

Every answered ping is a point; dashed is their mean. Ticks at the top are lost pings. Beside it stands how
many pings took how long, on the same scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab import _native
from weirlab.plots import axes as parts
from weirlab.plots import caption, theme
from weirlab.plots.series import Pings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weirlab.plots.series import Numbers
    from weirlab.stats import Distribution


@dataclass(frozen=True)
class Drawn:
    """Pings to one host.

    Attributes:
        host: the host, for the heading.
        words: what was sent, for the line below it.
        t_s: when each was sent, in seconds.
        rtt_ms: how long its round trip took, in milliseconds; NaN if it is lost.
        figures: the figures of those that were answered.
    """

    host: str
    words: str
    t_s: Numbers
    rtt_ms: Numbers
    figures: Distribution


def figure(drawn: Drawn) -> Figure:
    """The chart of `drawn`, of which at least one ping was answered."""
    answered = np.isfinite(drawn.rtt_ms)
    lost_s = drawn.t_s[~answered]
    pings = Pings(t_s=drawn.t_s[answered], rtt_ms=drawn.rtt_ms[answered], lost_s=lost_s)
    of = drawn.figures
    figures = {name: getattr(of, name) for name in ("min", "mean", "max", "std", "median")}
    found = [f"{name} {caption.number(value)}" for name, value in figures.items() if value is not None]
    lines = (
        f"Pings to {drawn.host}",
        drawn.words,
        f"{', '.join(found)} ms · {drawn.t_s.size} sent, {lost_s.size} lost",
    )
    note = "Every answered ping is a point. Dashed: mean, dotted: median. Ticks at the top: lost pings."
    chart = theme.framed(lines, note, f"Weir {_native.version()}", height=theme.HEIGHT * 0.8)
    over_time, spread = chart.subplots(1, 2, sharey=True, width_ratios=(5, 1))
    colour = theme.styles(1)[0].colour
    parts.pings(over_time, pings.rtt_ms, room=1.1 if lost_s.size else 1.0)
    over_time.set_xlim(0, max(1.005 * float(drawn.t_s.max()), MIN_SPAN_S))
    over_time.set_xlabel("Time, s")
    parts.points(over_time, pings, colour)
    if lost_s.size:
        parts.rug(over_time, lost_s)
    for axes in (over_time, spread):
        axes.axhline(of.mean, linestyle=(0, (5, 2)), **LINE)
        axes.axhline(of.median, linestyle=(0, (1, 1.5)), **LINE)
    _spread(spread, pings.rtt_ms, colour)
    return chart


def _spread(axes: Axes, rtt_ms: Numbers, colour: str) -> None:
    """How many pings took how long, as bars from the left."""
    low, high = axes.get_ylim()
    is_log = axes.get_yscale() == "log"
    edges = np.geomspace(low, high, BINS + 1) if is_log else np.linspace(low, high, BINS + 1)
    axes.hist(rtt_ms, bins=list(edges), orientation="horizontal", color=colour, linewidth=0)
    axes.set_xlabel("Pings")
    axes.tick_params(labelleft=False)


LINE: dict[str, Any] = {
    "color": theme.INK,
    "linewidth": 1.2,
    "zorder": 5,
    "path_effects": parts.halo(1.2),
}

MIN_SPAN_S = 1e-3
"""Seconds that the time axis has at least: a single ping has no span."""

BINS = 80
