"""Charts of the study `speedtest-aqm`, from the figures of its runs.

Boxes reach from the 25th to the 75th percentile of runs, whiskers over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab import _native
from weirlab.plots import axes as parts
from weirlab.plots import theme
from weirlab.plots.layout import constrained, name_above
from weirstudies.speedtest_aqm import design
from weirstudies.speedtest_aqm.calibration import reported_ms, true_ms
from weirstudies.speedtest_aqm.figures import LOADED, QUANTILES, STEP_S, WAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from weirlab.plots.theme import Style
    from weirstudies.speedtest_aqm.calibration import Truth
    from weirstudies.speedtest_aqm.design import Cell, Metric, Study
    from weirstudies.speedtest_aqm.figures import Run, Spread

    Found = Mapping[Cell, Sequence[Run]]


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        select: of all cells those that it draws.
        draw: draws them.
    """

    select: Callable[[Found, Study], Found]
    draw: Callable[[Found, Study], Figure]


def throughput(cells: Found, of: Study) -> Figure:
    """Reported throughput of ndt7 by rate and queue, as a share of the rate (the paper's figure 1)."""
    chart = _frame(
        "Throughput that ndt7 reports, as a share of the line's rate",
        "one flow each way, 20 ms, no burst, no cross traffic; BBR down, CUBIC up",
        cells,
        "Boxes: 25 % to 75 % of runs, whiskers all of them.",
        height=8.0,
    )
    rates = sorted({cell.rate_mbps for cell in cells})
    styles = _styles(of)
    panels = chart.subplots(2, 1, sharex=True)
    for axes, (name, key) in zip(
        panels, (("Download", "download_mbps"), ("Upload", "upload_mbps")), strict=True
    ):
        for number, queue in enumerate(styles):
            for cell, runs in cells.items():
                shares = [100 * run.result[key] / cell.rate_mbps for run in runs if run.result.get(key)]
                if cell.queue == queue and shares:
                    at = rates.index(cell.rate_mbps) + (number - (len(styles) - 1) / 2) * SIDE
                    _box(axes, at, shares, styles[queue], vertical=True)
        axes.set_ylabel(f"{name}, % of the rate")
        axes.set_ylim(0, 104)
        axes.set_xticks(range(len(rates)), [f"{rate}" for rate in rates])
        axes.grid(visible=False, axis="x")
    panels[1].set_xlabel("Rate of the shaper, Mbit/s")
    _legend(panels[0], styles, loc="lower left", ncols=4)
    return chart


def latency(cells: Found, of: Study) -> Figure:
    """Latency that each method reports beneath each queue, and the true one."""
    shown = [
        (method.name, metric)
        for method in of.method
        for metric in method.metric
        if metric.way != "up" and any(cell.method == method.name for cell in cells)
    ]
    wide = 3
    high = -(-len(shown) // wide)
    crosses = {of.cross_named(cell.cross) for cell in cells if cell.cross != "none"}
    beside = " and ".join(f"beside {one.says}" for one in crosses) or "no cross traffic"
    chart = _frame(
        "What each method reports as latency, and what is true",
        f"downloads at 100 Mbit/s, 20 ms, no burst, {beside}",
        cells,
        "Boxes: reported, 25 % to 75 % of runs, whiskers all. Below them, line: the true round trip of the "
        "load's own "
        "packets (in the lab SRTT), diamond: of "
        "pings in another flow (medians of runs). Without a box the method reports nothing.",
        height=1.4 + high * (0.7 + 0.2 * len({cell.queue for cell in cells})),
    )
    panels = chart.subplots(high, wide, sharex=True, sharey=True, squeeze=False).flatten()
    styles = _styles(of)
    names = [name for name in styles if any(cell.queue == name for cell in cells)]
    ends: list[float] = []
    for axes, (method, metric) in zip(panels, shown, strict=False):
        for cell, runs in cells.items():
            if cell.method == method:
                ends += _beside_truth(axes, names.index(cell.queue), runs, metric, styles[cell.queue])
        axes.set_title(f"{method}: {metric.name}", size=9.5, loc="left")
        axes.grid(visible=False, axis="y")
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    panels[0].set_yticks(range(len(names)), names)
    parts.logarithmic(panels[0], "x", min(ends), max(ends), most=6)
    # Only the lowest panels have a label.
    panels[0].set_xlabel("")
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(shown) - wide) : len(shown)]:
        axes.set_xlabel(f"ms{parts.LOG_SCALE}")
        axes.tick_params(axis="x", labelbottom=True)
    return chart


def _beside_truth(axes: Axes, at: int, runs: Sequence[Run], metric: Metric, style: Style) -> list[float]:
    """A row: the reported values as a box, both truths as marks; returns all values."""
    told = [value for run in runs if (value := reported_ms(run, metric)) is not None]
    if told:
        _box(axes, at - BELOW, told, style, vertical=False)
    ends = list(told)
    marks: tuple[tuple[Truth, str, float], ...] = (("own", "|", 9), ("other", "D", 3.5))
    for truth, marker, size in marks:
        real = [value for run in runs if (value := true_ms(run, "down", truth)) is not None]
        if real:
            middle = float(np.median(real))
            axes.plot(
                [middle],
                [at + BELOW],
                linestyle="none",
                marker=marker,
                markersize=size,
                markeredgewidth=2.0 if truth == "own" else 0.9,
                markeredgecolor=theme.INK,
                markerfacecolor="white",
                zorder=5,
            )
            ends.append(middle)
    return ends


def shares(cells: Found, of: Study) -> Figure:
    """CDF of ndt7's instantaneous throughput by queue and cross traffic, each way."""
    crosses = [one for one in of.cross if any(cell.cross == one.name for cell in cells)]
    chart = _frame(
        "Throughput of ndt7 while it loads, by what runs beside it",
        "100 Mbit/s, 20 ms, no burst; BBR down, CUBIC up",
        cells,
        f"Goodput in each {INTERVAL_MS} ms of all runs of a queue together, from their quantiles. More "
        "than the line's rate is what a gap held up and then came at once.",
        height=6.4,
    )
    panels = chart.subplots(2, len(crosses), sharex=True, sharey=True, squeeze=False)
    styles = _styles(of)
    for row, way in enumerate(WAYS):
        for axes, cross in zip(panels[row], crosses, strict=True):
            for cell, runs in cells.items():
                rates = [run.ways[way].rates for run in runs if way in run.ways]
                if cell.cross == cross.name and rates:
                    _cdf(axes, _pooled(rates), styles[cell.queue])
            if row == 0:
                axes.set_title(CROSS_TITLES[cross.name], size=9.5, loc="left")
        panels[row][0].set_ylabel({"down": "Download", "up": "Upload"}[way] + ": intervals, %")
    for axes in panels[1]:
        axes.set_xlabel("Mbit/s, or less")
    panels[0][0].set_xlim(0, 120)
    panels[0][0].set_ylim(0, 100)
    _lines_legend(chart, styles)
    return chart


def _cdf(axes: Axes, values: NDArray[np.floating[Any]], style: Style) -> None:
    axes.plot(values, np.linspace(0, 100, values.size), color=style.colour, linestyle=style.dash, linewidth=2)


def beside_cross(cells: Found, of: Study) -> Figure:
    """Share of 100 Mbit/s of each method beneath each queue, beside each kind of cross traffic."""
    crosses = [one for one in of.cross if any(cell.cross == one.name for cell in cells)]
    methods = [one.name for one in of.method if any(cell.method == one.name for cell in cells)]
    queues = [one.name for one in of.queue if any(cell.queue == one.name for cell in cells)]
    chart = _frame(
        "What a test gets of 100 Mbit/s",
        "goodput while it loads, by what runs beside it; 20 ms, no burst",
        cells,
        "A mark a cell: the median of its runs; the line reaches from the least run to the greatest.",
        height=7.6,
    )
    panels = chart.subplots(2, len(crosses), sharex=True, sharey=True, squeeze=False)
    styles = dict(zip(methods, theme.styles(len(methods)), strict=True))
    for row, way in enumerate(WAYS):
        for axes, cross in zip(panels[row], crosses, strict=True):
            for cell, runs in cells.items():
                mbps = [run.ways[way].mbps for run in runs if way in run.ways]
                if cell.cross == cross.name and mbps:
                    shift = (methods.index(cell.method) - (len(methods) - 1) / 2) * SIDE
                    _mark(axes, queues.index(cell.queue) + shift, mbps, styles[cell.method])
            axes.grid(visible=False, axis="y")
            if row == 0:
                axes.set_title(CROSS_TITLES[cross.name], size=9.5, loc="left")
        panels[row][0].set_ylabel({"down": "Download", "up": "Upload"}[way])
    for axes in panels[1]:
        axes.set_xlabel("Mbit/s")
    panels[0][0].set_ylim(len(queues) - 0.4, -0.6)
    panels[0][0].set_yticks(range(len(queues)), queues)
    panels[0][0].set_xlim(0, 100)
    for name, style in styles.items():
        panels[0][0].plot([], [], linestyle="none", marker=style.marker, color=style.colour, label=name)
    name_above(chart, columns=len(styles))
    return chart


def _mark(axes: Axes, at: float, values: Sequence[float], style: Style) -> None:
    axes.plot([min(values), max(values)], [at, at], color=style.colour, linewidth=1.2)
    axes.plot([float(np.median(values))], [at], marker=style.marker, markersize=4.5, color=style.colour)


def round_trips(cells: Found, of: Study) -> Figure:
    """CDF of true round trips under an ndt7 upload, in its own flow and in another."""
    chart = _frame(
        "True round trips while ndt7 uploads",
        "100 Mbit/s, 20 ms, no burst, no cross traffic; CUBIC",
        cells,
        "All samples of all runs of a queue together, from their quantiles.",
        height=5.6,
    )
    styles = _styles(of)
    panels = chart.subplots(1, 2, sharex=True, sharey=True)
    every: list[float] = []
    for axes, (which, title) in zip(
        panels,
        (("own", "packets of the load itself"), ("other", "pings in a flow of their own")),
        strict=True,
    ):
        for cell, runs in cells.items():
            spreads = [
                found for run in runs if "up" in run.ways and (found := getattr(run.ways["up"], which))
            ]
            if spreads:
                values = _pooled(spreads)
                every += [float(values[0]), float(values[-1])]
                _cdf(axes, values, styles[cell.queue])
        axes.set_title(title, size=9.5, loc="left")
    panels[0].set_ylabel("Round trips that took no longer, %")
    panels[0].set_ylim(0, 100)
    parts.logarithmic(panels[0], "x", min(every), max(every), most=7)
    for axes in panels:
        axes.set_xlabel(f"ms{parts.LOG_SCALE}")
    _lines_legend(chart, styles)
    return chart


def over_time(cells: Found, of: Study) -> Figure:
    """Instantaneous throughput and SRTT of the authors' set with cross traffic, queue beside queue."""
    names = [queue.name for queue in of.queue if any(cell.queue == queue.name for cell in cells)]
    chart = _frame(
        "An upload with BBR beside five with CUBIC, over time",
        f"{AT_MBPS} Mbit/s, 20 ms, high burst (g2); dotted: a sixth of the rate, and the empty path",
        cells,
        f"A line a run: goodput in each {STEP_S * 1e3:g} ms, and the sender's SRTT.",
        height=5.6,
    )
    panels = chart.subplots(2, len(names), sharex=True, sharey="row", squeeze=False)
    styles = _styles(of)
    for column, name in enumerate(names):
        runs = next(list(runs) for cell, runs in cells.items() if cell.queue == name)
        top, bottom = panels[0][column], panels[1][column]
        for run in runs:
            _over_time(top, bottom, run, styles[name].colour)
        top.axhline(AT_MBPS / 6, color=theme.INK, linewidth=1, linestyle=(0, (1, 2)))
        bottom.axhline(20, color=theme.INK, linewidth=1, linestyle=(0, (1, 2)))
        top.set_title(name, size=9.5, loc="left")
        bottom.set_xlabel("s")
        bottom.set_xlim(0, 10)
    panels[0][0].set_ylabel("Upload, Mbit/s")
    panels[0][0].set_ylim(bottom=0)
    panels[1][0].set_ylabel("SRTT, ms")
    panels[1][0].set_ylim(bottom=0)
    return chart


def _over_time(top: Axes, bottom: Axes, run: Run, colour: str) -> None:
    """One run's upload, from when it began."""
    if run.series is None:
        return
    rates = np.array(run.series.rates["up"])
    srtt = np.array([np.nan if one is None else one for one in run.series.srtt["up"]])
    # The request that asks for a test is upload too.
    begun = int(np.argmax(rates > LOADED * AT_MBPS))
    times = np.arange(rates.size - begun) * STEP_S
    top.plot(times, rates[begun:], color=colour, linewidth=0.9, alpha=0.7)
    bottom.plot(times, srtt[begun:], color=colour, linewidth=0.9, alpha=0.7)


def durations(cells: Found, of: Study) -> Figure:
    """CDF of how long a test takes, by method, with and without cross traffic."""
    names = [one.name for one in of.method if any(cell.method == one.name for cell in cells)]
    chart = _frame(
        "How long a test takes",
        "all cells of the grid that were run",
        cells,
        "From the first packet to the end; a test that did not end in time keeps its curve below 100 %.",
        height=4.8,
    )
    panels = chart.subplots(1, 2, sharex=True, sharey=True)
    for axes, crossed in zip(panels, (False, True), strict=True):
        for name, style in zip(names, theme.styles(len(names)), strict=True):
            runs = [
                run
                for cell, all_of in cells.items()
                for run in all_of
                if cell.method == name and (cell.cross != "none") == crossed
            ]
            times = sorted(run.seconds for run in runs if run.seconds is not None)
            if times:
                shares = 100 * np.arange(1, len(times) + 1) / len(runs)
                axes.step(
                    [times[0], *times],
                    [0, *shares],
                    where="post",
                    color=style.colour,
                    linestyle=style.dash,
                    linewidth=2,
                    label=name,
                )
        axes.set_title("beside cross traffic" if crossed else "without cross traffic", size=9.5, loc="left")
        axes.set_xlabel("s")
    longest = max((run.seconds or 0 for runs in cells.values() for run in runs), default=1)
    panels[0].set_xlim(0, 1.03 * longest)
    panels[0].set_ylabel("Runs that took no longer, %")
    panels[0].set_ylim(0, 101)
    panels[0].legend(frameon=False)
    return chart


def _of_world(found: Found, world: str) -> Found:
    """The runs of that world which count."""
    kept = {
        cell: [run for run in runs if run.world == world and run.disturbed is None]
        for cell, runs in found.items()
    }
    return {cell: runs for cell, runs in kept.items() if runs}


def _select(found: Found, world: str = "sim", *, client_cc: str | None = None, **wanted: Any) -> Found:
    """The cells with these values; where no sender is named, those with the method's own."""
    wanted["client_cc"] = client_cc
    return {
        cell: runs
        for cell, runs in _of_world(found, world).items()
        if all(getattr(cell, name) == value for name, value in wanted.items())
    }


def _beside(cross: str) -> Callable[[Found, Study], Found]:
    def select(found: Found, _: Study) -> Found:
        return _select(found, rate_mbps=100, rtt_ms=20, burst="g0", cross=cross)

    return select


def _frame(title: str, configuration: str, cells: Found, note: str, *, height: float) -> Figure:
    counts = {len(runs) for runs in cells.values()}
    runs = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(min(counts))
    (world,) = {run.world for runs in cells.values() for run in runs}
    origin = f"world {world} · {runs} {'run' if runs == '1' else 'runs'} a cell · study speedtest-aqm"
    version = f"Weir {_native.version()}"
    chart = theme.framed((title, configuration, origin), note, version, height=height)
    constrained(chart)
    return chart


def _styles(of: Study) -> dict[str, Style]:
    names = [queue.name for queue in of.queue]
    styles = [
        replace(style, colour=SEVENTH) if number >= len(theme.COLOURS) else style
        for number, style in enumerate(theme.styles(len(names)))
    ]
    return dict(zip(names, styles, strict=True))


def _box(axes: Axes, at: float, values: Sequence[float], style: Style, *, vertical: bool) -> None:
    low, first, middle, third, high = (float(one) for one in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
    line = {"color": style.colour, "linewidth": 1.2}
    axes.bxp(
        [{"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high}],
        positions=[at],
        widths=SIDE * 0.8 if vertical else 0.36,
        orientation="vertical" if vertical else "horizontal",
        manage_ticks=False,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": style.colour + "88", "edgecolor": style.colour, "linewidth": 1.2},
        medianprops=line | {"linewidth": 2.0},
        whiskerprops=line,
        capprops=line,
    )


def _pooled(spreads: Sequence[Spread]) -> NDArray[np.floating[Any]]:
    """Quantiles 0 to 100 of several distributions together, each read between its own quantiles."""
    steps = np.linspace(0, 1, 201)
    values = np.concatenate([np.interp(steps, QUANTILES, one.at) for one in spreads])
    return np.asarray(np.quantile(values, steps))


def _legend(axes: Axes, styles: Mapping[str, Style], **where: Any) -> None:
    for name, style in styles.items():
        axes.bar([0], [0], color=style.colour, label=name)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", **where)


def _lines_legend(chart: Figure, styles: Mapping[str, Style]) -> None:
    for name, style in styles.items():
        chart.axes[0].plot([], [], color=style.colour, linestyle=style.dash, linewidth=2, label=name)
    chart.legend(loc="outside right center", frameon=False, handlelength=4)


SEVENTH = "#777777"
"""There are more queues than colours; boxes have no dashes to tell them apart."""

CROSS_TITLES = {"none": "alone", "cubic": "5 CUBIC", "bbr": "5 BBR", "udp": "UDP, half the rate"}

INTERVAL_MS = 100
"""Of the table `throughput`, if nothing is said."""

SIDE = 0.12
"""From box to box, where rates are 1 apart."""

BELOW = 0.2
"""How far the truth stands below the middle of a row, and what is reported above it."""

AT_MBPS = 300
"""Of the chart over time: the authors' figures are by rate."""

CHARTS: Mapping[str, Chart] = {
    "throughput": Chart(
        lambda found, _: _select(found, rtt_ms=20, burst="g0", cross="none", method="ndt7"), throughput
    ),
    "latency": Chart(
        lambda found, _: _select(found, rate_mbps=100, rtt_ms=20, burst="g0", cross="none"), latency
    ),
    **{f"latency-{cross}": Chart(_beside(cross), latency) for cross in ("cubic", "bbr", "udp")},
    "latency-lab": Chart(
        lambda found, _: _select(found, "lab", rate_mbps=100, rtt_ms=20, burst="g0", cross="none"), latency
    ),
    "throughput-cdf": Chart(
        lambda found, _: _select(found, rate_mbps=100, rtt_ms=20, burst="g0", method="ndt7"),
        shares,
    ),
    "cross-traffic": Chart(
        lambda found, _: _select(found, rate_mbps=100, rtt_ms=20, burst="g0"), beside_cross
    ),
    "round-trips": Chart(
        lambda found, _: _select(found, rate_mbps=100, rtt_ms=20, burst="g0", cross="none", method="ndt7"),
        round_trips,
    ),
    "over-time": Chart(
        lambda found, _: _select(found, rate_mbps=AT_MBPS, cross="cubic-up", method="ndt7", client_cc="bbr"),
        over_time,
    ),
    "durations": Chart(
        lambda found, of: {
            cell: runs for cell, runs in _of_world(found, "sim").items() if design.in_grid(cell, of)
        },
        durations,
    ),
}
"""All charts by name."""
