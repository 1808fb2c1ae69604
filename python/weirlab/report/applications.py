"""Tables about applications: web pages, names and videos, and the scores of the RRUL specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.report.tables import LOOK
from weirlab.stats import interval
from weirlab.stats.difference import FIGURES
from weirlab.stats.rrul import rrul_scores
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.record import Record
    from weirlab.stats import Comparison, Summary


def comparison_of_applications(comparisons: Sequence[Comparison]) -> Table | None:
    """A line a configuration: what came of calls, pages, names and other UDP; None where none of that ran.

    Figures are means over what there is of each in a run, and then over the repetitions.
    """
    cells = [[_mean_of(one.runs, figure, digits) for _, figure, digits in COMPARED] for one in comparisons]
    shown = [place for place in range(len(COMPARED)) if any(row[place] is not None for row in cells)]
    if not shown:
        return None
    table = Table(title="Calls, pages, names and UDP", **LOOK)
    table.add_column("queue", overflow="fold", min_width=16)
    for place in shown:
        table.add_column(COMPARED[place][0], justify="right", no_wrap=True)
    for one, row in zip(comparisons, cells, strict=True):
        table.add_row(one.name, *(row[place] or "-" for place in shown))
    return table


def _mean_of(runs: Sequence[Summary], figure: Callable[[Summary], float | None], digits: int) -> str | None:
    """The mean over repetitions with half of its interval; None if none has the figure."""
    value = interval([figure(run) for run in runs])
    if value is None:
        return None
    spread = "" if value.high is None else f"\n±{value.high - value.mean:.{digits}f}"
    return f"{value.mean:.{digits}f}{spread}"


def _udp_lost(run: Summary) -> float | None:
    """Share of the packets of all UDP streams that did not come, in percent; None if none was sent."""
    known = [(one.loss_rate, one.packets) for one in run.udp.values() if one.loss_rate is not None]
    packets = sum(of for _, of in known)
    return 100 * sum(share * of for share, of in known) / packets if packets else None


def application_tables(summary: Summary) -> list[Table]:
    """What became of what applications asked for during the load, and of flows of fixed size."""
    tables = (_transfers(summary), _videos(summary), _completions(summary))
    return [table for table in tables if table is not None]


def rrul_table(record: Record) -> Table | None:
    """The scores of the RRUL specification; None of a run that has not what they are of."""
    scores = rrul_scores(record)
    if not scores:
        return None
    table = Table(title="Scores of the RRUL specification, %", **LOOK)
    for heading in ("", "score", "ideal"):
        table.add_column(heading, justify="right" if heading else "left")
    for one in scores:
        ideal = "" if one.ideal is None else f"{one.ideal:.0f} or less"
        table.add_row(one.name, f"{one.percent:.1f}", ideal)
    return table


def _transfers(summary: Summary) -> Table | None:
    rows = {name: one for name, one in summary.applications.items() if one.kind != "video"}
    if not rows:
        return None
    table = Table(title="Pages and names during the load", **LOOK)
    table.add_column("flow")
    for heading in ("came", "given up", "idle ms", "mean ms", "median", "p95", "max", "first byte"):
        table.add_column(heading, justify="right")
    for name, one in rows.items():
        figures = (one.idle_ms, one.mean_ms, one.median_ms, one.p95_ms, one.max_ms, one.first_byte_ms)
        table.add_row(name, str(one.done), str(one.given_up), *(_figure(figure) for figure in figures))
    return table


def _videos(summary: Summary) -> Table | None:
    rows = {name: one for name, one in summary.applications.items() if one.video is not None}
    if not rows:
        return None
    table = Table(title="Videos during the load", **LOOK)
    table.add_column("flow")
    for heading in ("segments", "bitrate Mbit/s", "switches", "stalls", "stalled s", "startup s"):
        table.add_column(heading, justify="right")
    for name, one in rows.items():
        if one.video is not None:
            video = one.video
            stalls = "-" if video.stalls is None else str(video.stalls)
            table.add_row(
                name,
                str(one.done),
                _figure(video.bitrate_mbps, 2),
                str(video.switches),
                stalls,
                _figure(_seconds(video.stalled_ms), 2),
                _figure(_seconds(video.startup_ms), 2),
            )
    return table


def _completions(summary: Summary) -> Table | None:
    if not summary.completion_ms:
        return None
    table = Table(title="Flows of fixed size", **LOOK)
    table.add_column("flow")
    table.add_column("complete after s", justify="right")
    for name, took in summary.completion_ms.items():
        table.add_row(name, "not complete" if took is None else f"{took / 1e3:.3f}")
    return table


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _figure(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


COMPARED: tuple[tuple[str, Callable[[Summary], float | None], int], ...] = (
    ("MOS", FIGURES["mos"][0], 2),
    ("page\nms", FIGURES["page_ms"][0], 1),
    ("name\nms", FIGURES["lookup_ms"][0], 1),
    ("UDP lost\n%", _udp_lost, 2),
)
"""What is told of applications of several configurations: heading, figure of a run, decimals."""
