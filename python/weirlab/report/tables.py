"""Tables and sentences about records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.stats import Comparison, Distribution, Interval, Summary


def comparison_table(records: Sequence[Record], comparisons: Sequence[Comparison]) -> Table:
    """One line a queue set-up: what came through, how long pings took, by which factor that fell."""
    first = records[0]
    table = Table(title=f"{first.manifest.title}: {first.manifest.link['title']}")
    table.add_column("queue", overflow="fold")
    for heading in ("down\nMbit/s", "up\nMbit/s"):
        table.add_column(heading, justify="right")
    for heading in ("idle\nms", "loaded\nms", "median\nms", "p95\nms", "p99\nms", "increase\nms"):
        table.add_column(heading, justify="right")
    for heading in ("factor", "Jain\ndown", "Jain\nup", "pings\nlost"):
        table.add_column(heading, justify="right")
    for one in comparisons:
        table.add_row(
            one.queue,
            _figure(one.down_mbps),
            _figure(one.up_mbps),
            *(_figure(x, digits=1) for x in (one.idle_ms, one.loaded_ms, one.median_ms)),
            *(_figure(x, digits=1) for x in (one.p95_ms, one.p99_ms, one.increase_ms)),
            _factor(one),
            _figure(one.down_jain, digits=3),
            _figure(one.up_jain, digits=3),
            _lost(one),
        )
    repetitions = max(len(one.runs) for one in comparisons)
    if repetitions > 1:
        table.caption = f"means of {repetitions} runs, ± half of the 95 % interval"
    return table


def story(comparisons: Sequence[Comparison]) -> Text:
    """What the comparison comes to, in a sentence or two."""
    baseline, *others = comparisons
    if baseline.increase_ms is None:
        return Text("")
    if not others:
        return Text(
            f"Under load a ping takes {baseline.increase_ms.mean:.1f} ms longer than on the idle line."
        )
    better = [one for one in others if one.factor.factor is not None and one.increase_ms]
    if not better:
        return Text("")
    best = max(better, key=lambda one: one.factor.factor or 0.0)
    factor = best.factor.factor or 0.0
    if factor < NOTICEABLE or best.increase_ms is None:
        return Text(f"None of them shortens the wait of `{baseline.queue}` noticeably.")
    text = (
        f"With `{best.queue}` the load makes pings {best.increase_ms.mean:.1f} ms slower instead of "
        f"{baseline.increase_ms.mean:.1f} ms: {factor:.1f} times less"
    )
    return Text(text + _cost(baseline, best) + ".")


def latency_table(summary: Summary) -> Table:
    """Round trips of each probe during the load, and of all together."""
    table = Table(title="Round trips during the load, ms")
    table.add_column("probe")
    figures = ("mean", "std", "min", "median", "p95", "p99", "max", "count")
    for figure in figures:
        table.add_column(figure, justify="right")
    rows: list[tuple[str, Distribution | None]] = [
        *summary.probes.items(),
        ("all", summary.latency.loaded),
        ("idle, all", summary.latency.idle),
    ]
    for name, figures_of in rows:
        if figures_of is not None:
            values = [getattr(figures_of, figure) for figure in figures]
            table.add_row(name, *(f"{value:.2f}" for value in values[:-1]), str(values[-1]))
    return table


def flow_table(summary: Summary) -> Table:
    """Goodput of each flow during the load."""
    table = Table(title="Flows during the load")
    table.add_column("flow")
    table.add_column("goodput Mbit/s", justify="right")
    for direction in (summary.down, summary.up):
        if direction is None:
            continue
        for name, mbps in direction.per_flow_mbps.items():
            table.add_row(name, f"{mbps:.3f}")
        way = "download" if direction is summary.down else "upload"
        used = "" if direction.utilisation is None else f", {direction.utilisation:.1%} of the line"
        table.add_row(
            Text(
                f"{way}: retransmitted {direction.retransmitted_segments}, "
                f"timeouts {direction.timeouts}{used}",
                style="dim",
            ),
            f"{direction.goodput_mbps:.3f}",
            end_section=True,
        )
    return table


def _figure(value: Interval | None, *, digits: int = 2) -> str:
    if value is None:
        return "-"
    text = f"{value.mean:.{digits}f}"
    if value.high is None:
        return text
    return f"{text}\n±{value.high - value.mean:.{digits}f}"


def _factor(one: Comparison) -> str:
    factor = one.factor
    if factor.factor is None:
        return "-"
    text = f"{factor.factor:.1f}"
    if factor.low is None or factor.high is None:
        return text
    return f"{text}\n{factor.low:.1f}-{factor.high:.1f}"


def _lost(one: Comparison) -> str:
    sent = sum(run.latency.sent for run in one.runs)
    lost = sum(run.latency.lost for run in one.runs)
    return f"{lost / sent:.2%}" if sent else "-"


def _cost(baseline: Comparison, best: Comparison) -> str:
    """What became of the throughput."""
    parts = []
    for word, before, after in (
        ("download", baseline.down_mbps, best.down_mbps),
        ("upload", baseline.up_mbps, best.up_mbps),
    ):
        if before is not None and after is not None and before.mean > 0:
            change = after.mean / before.mean - 1
            parts.append(f"{word} {change:+.1%}")
    return f" ({', '.join(parts)})" if parts else ""


NOTICEABLE = 1.1
"""A factor below this is not worth a word."""
