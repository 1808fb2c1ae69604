"""Tables about applications: web pages, names and videos, and the scores of the RRUL specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.report.tables import LOOK
from weirlab.stats import interval
from weirlab.stats.experience import GIVEN_UP, experienced
from weirlab.stats.rrul import rrul_scores
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.stats import Comparison, Summary


def comparison_of_applications(comparisons: Sequence[Comparison]) -> Table | None:
    """A line a configuration: what came of calls, pages, names and other UDP; None where none of that ran.

    Figures are means over what there is of each in a run, and then over the repetitions.
    """
    found = {figure: [experienced(one.runs, figure) for one in comparisons] for _, figure, _ in COMPARED}
    shown = [
        (heading, figure, digits) for heading, figure, digits in COMPARED if _is_told(figure, found[figure])
    ]
    if not shown:
        return None
    table = Table(title="Calls, pages, names, videos and UDP", **LOOK)
    table.add_column("queue", overflow="fold", min_width=16)
    for heading, _, _ in shown:
        table.add_column(heading, justify="right", no_wrap=True)
    for place, one in enumerate(comparisons):
        table.add_row(
            one.name, *(_mean_of(found[figure][place], digits) or "-" for _, figure, digits in shown)
        )
    given_up = [GIVEN_UP[figure].what for _, figure, _ in shown if figure in GIVEN_UP]
    if given_up:
        table.caption = (
            f"Where {' and '.join(given_up)} were given up, there is no time of theirs: "
            "how long those took that came says nothing of those that did not."
        )
    return table


def _is_told(figure: str, values: Sequence[Sequence[float | None]]) -> bool:
    """Whether some run has the figure; of what is given up, whether some run gave up."""
    known = [value for of_runs in values for value in of_runs if value is not None]
    return any(known) if figure in GIVEN_UP else bool(known)


def _mean_of(values: Sequence[float | None], digits: int) -> str | None:
    """The mean over repetitions with half of its interval; None if none has the figure."""
    value = interval(values)
    if value is None:
        return None
    spread = "" if value.high is None else f"\n±{value.high - value.mean:.{digits}f}"
    return f"{value.mean:.{digits}f}{spread}"


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


COMPARED: tuple[tuple[str, str, int], ...] = (
    ("MOS", "mos", 2),
    ("page\nms", "page_ms", 1),
    ("pages given\nup, %", "pages_given_up_percent", 1),
    ("name\nms", "lookup_ms", 1),
    ("names given\nup, %", "lookups_given_up_percent", 1),
    ("video\nMbit/s", "video_mbps", 2),
    ("stalled\n%", "stalled_percent", 1),
    ("startup\nms", "startup_ms", 0),
    ("UDP lost\n%", "udp_loss_percent", 2),
)
"""What is told of applications of several configurations: heading, figure of a run, decimals."""
