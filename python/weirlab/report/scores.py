"""Scores of a test, as a table and in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from weirlab.scores.measured import WHEN
from weirlab.stats.one_way import one_way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.record import Record
    from weirlab.scores import Measured, Scores


def score_table(record: Record, figures: Measured, scores: Scores) -> Table:
    """What came through, how long pings took, and all scores."""
    title = Text(record.manifest.set_up)
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold", max_width=VALUE_WIDTH)
    table.add_column(style="dim", overflow="fold")
    for name, mbps in (("download", figures.down_mbps), ("upload", figures.up_mbps)):
        if mbps is not None:
            table.add_row(name, f"{mbps:.2f} Mbit/s", "goodput once the line was full")
    table.add_row("ping, idle", f"{figures.idle.median:.1f} ms", f"median of {figures.idle.count}")
    for name, one in figures.loaded.items():
        word = PHASES[name]
        lost = f", {one.lost} of {one.sent} lost" if one.lost else ""
        latency = one.latency
        table.add_row(
            f"ping, {word}",
            f"{latency.median:.1f} ms",
            f"p95 {latency.p95:.1f}, max {latency.max:.1f} ms{lost}",
        )
    _add_ways(table, record, figures)
    table.add_section()
    for score in scores.scores:
        value = f"{score.value} {score.unit}".strip()
        # As it stands: brackets are no markup.
        words = Text(" ".join(part for part in (score.says, f"[{score.formula}]") if part))
        table.add_row(score.name, value, words)
    return table


def _add_ways(table: Table, record: Record, figures: Measured) -> None:
    """In which direction pings waited."""
    ways = one_way(record)
    if ways is None:
        return
    for name, one in figures.loaded.items():
        inside = (ways.t_ns >= one.start_ns) & (ways.t_ns < one.end_ns)
        if inside.any():
            up, down = float(ways.up_ms[inside].mean()), float(ways.down_ms[inside].mean())
            words = f"mean beyond the least of each way, within {ways.bound_ms:.1f} ms"
            table.add_row(f"wait, {PHASES[name]}", f"up {up:.1f}, down {down:.1f} ms", words)


def advice(figures: Measured, scores: Scores) -> Iterator[Text]:
    """What the grade means, and what to do about it."""
    bloat = scores.scores[0]
    yield Text(f"Grade {scores.grade}: {bloat.says}", style="bold")
    worst = figures.worst
    if scores.grade in ("A+", "A"):
        return
    yield Text(f"It is worst {WHEN[worst.phase]}. The queue in front of the slowest line is too deep.")
    rates = {"download": figures.down_mbps, "upload": figures.up_mbps}
    shaped = [f"{0.9 * mbps:.1f} Mbit/s {name}" for name, mbps in rates.items() if mbps]
    yield Text(
        "What helps: a router with smart queue management (CAKE, or fq_codel under a shaper), set to "
        f"{' and '.join(shaped)}, 90 % of what was measured; then test again. On a Linux "
        "router `weir shape IFACE` finds the rates by itself."
    )


PHASES = {"download": "download", "upload": "upload", "load": "both at once"}
"""What people call the phases."""

VALUE_WIDTH = 22
"""Leaves as much again for the words beside it where a terminal has 80 columns."""
