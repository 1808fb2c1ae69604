"""The study `autorate`: shapers that find a line's rate, on lines that change.

What the lines are is in `weirstudies.shapers.lines`; beside Weir's controller there are no shaper, a fixed
one, CAKE's own estimate, and the published law of cake-autorate in two settings.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from weirlab.scenario import ResolvedRun, TestSpec, load_test, mean_rate
from weirlab.stats import (
    Interval,
    busy_share,
    calm_after_s,
    interval,
    noticed_after_s,
    summarise,
    used_after_s,
)
from weirstudies.shapers import controls
from weirstudies.shapers.lines import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.scenario import Direction
    from weirstudies.shapers.lines import Line


@dataclass(frozen=True, kw_only=True)
class Row:
    """Figures of a control on a line, over the seeds.

    Attributes:
        line, control: names of both.
        increase_ms: mean ping under load, less that of the idle line.
        p99_ms: 99th percentile of the increase.
        used: share of the line that was used under load; of two loaded ways, that of the one with less.
        noticed_s: after the line dropped: until the rate was first lowered.
        calm_s: after the line dropped: until the mean ping was within 5 ms of the idle line and stayed so.
        used_again_s: after the line rose: until 90 % of it was used.
        runs: how many there were.
    """

    line: str
    control: str
    increase_ms: Interval | None
    p99_ms: Interval | None
    used: Interval | None
    noticed_s: Interval | None
    calm_s: Interval | None
    used_again_s: Interval | None
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values, for JSON."""
        return asdict(self)


def runs_of(line: Line, *, seeds: int) -> list[ResolvedRun]:
    """The runs of all controls on a line."""
    usual = {way: mean_rate(line.link, way) or UNLIMITED for way in DIRECTIONS}
    test = _test(line)
    return [
        run
        for control in controls_on(line)
        for run in controls.runs(line.link, test, control, usual=usual, seeds=seeds)
    ]


def controls_on(line: Line) -> list[str]:
    """The controls that can be had on a line: CAKE's estimate is for what comes in."""
    return [name for name in controls.CONTROLS if name != controls.CAKE or line.direction == "down"]


def row(line: Line, control: str, records: Sequence[Record]) -> Row:
    """Figures of a control on a line."""
    summaries = [summarise(record).latency for record in records]

    def after(which: str) -> Interval | None:
        return interval([_times(line, record)[which] for record in records])

    p99 = [one.loaded.p99 - one.idle.median if one.loaded and one.idle else None for one in summaries]
    return Row(
        line=line.name,
        control=control,
        increase_ms=interval(
            [one.loaded.mean - one.idle.median if one.loaded and one.idle else None for one in summaries]
        ),
        p99_ms=interval(p99),
        used=interval([_used(line, record) for record in records]),
        noticed_s=after("noticed"),
        calm_s=after("calm"),
        used_again_s=after("used"),
        runs=len(records),
    )


def against_the_law(rows: Sequence[Row]) -> str:
    """On which lines cake-autorate's law, at one of its settings, is ahead of `auto` in ping mode, in words.

    Ahead means less delay at no less use, or more use at no more delay, in the means; who has only one of
    them is neither.
    """
    ahead: list[str] = []
    behind: list[str] = []
    by_line: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_line.setdefault(row.line, {})[row.control] = row
    for line, by_control in by_line.items():
        ours = by_control[controls.PING]
        laws = [by_control[name] for name in (controls.LAW, controls.LAW_TOLD)]
        if any(_is_ahead(law, ours) for law in laws):
            behind.append(line)
        elif all(_is_ahead(ours, law) for law in laws):
            ahead.append(line)
    where = ", ".join(f"`{line}`" for line in behind) or "none"
    return (
        f"Of {len(by_line)} lines, the law is ahead of `auto` in ping mode, at one of its settings, on "
        f"{len(behind)}: {where}. `auto` is ahead of both settings on {len(ahead)}; on the others one has "
        "less delay, and the other carries more."
    )


def _is_ahead(one: Row, other: Row) -> bool:
    """Whether the first has less delay at no less use, or more use at no more delay."""
    if one.increase_ms is None or other.increase_ms is None or one.used is None or other.used is None:
        return False
    less_ms = other.increase_ms.mean - one.increase_ms.mean
    more = one.used.mean - other.used.mean
    return min(less_ms, more) >= 0 and max(less_ms, more) > 0


def _used(line: Line, record: Record) -> float | None:
    start, end = record.phase("load") or (0, record.reached_ns)
    shares = [busy_share(record, way, start, end) for way in _loaded(line)]
    return min((share for share in shares if share is not None), default=None)


def _times(line: Line, record: Record) -> dict[str, float | None]:
    idle = summarise(record).latency.idle
    found: dict[str, float | None] = {"noticed": None, "calm": None, "used": None}
    if line.drop_s is not None and line.rise_s is not None and idle is not None:
        found["noticed"] = noticed_after_s(record, line.direction, line.drop_s)
        found["calm"] = calm_after_s(record, line.drop_s, idle.median + CALM_MS, line.rise_s)
        found["used"] = used_after_s(record, line.direction, line.rise_s, USED_AGAIN)
    return found


def _loaded(line: Line) -> list[Direction]:
    """The ways that are loaded."""
    return [way for way in DIRECTIONS if line.both_loaded or way == line.direction]


def _test(line: Line) -> TestSpec:
    """Eight flows each way that is loaded, so that TCP itself finds a faster line within the goal's time."""
    base = load_test(f"tcp_n{line.direction}")
    loads = [flow for way in _loaded(line) for flow in load_test(f"tcp_n{way}").flows]
    flows = [flow.model_copy(update={"count": FLOWS}) for flow in loads]
    phases = base.phases.model_copy(update={"idle": IDLE_NS, "load": LOAD_NS, "cooldown": 0})
    return base.model_copy(update={"flows": flows, "parameters": {}, "phases": phases})


FLOWS = 8
IDLE_NS = 5_000_000_000
LOAD_NS = 55_000_000_000
UNLIMITED = 1_000_000_000
"""Rate in bit/s that a control is told for a line without a limit."""

CALM_MS = 5.0
USED_AGAIN = 0.9
"""The goals: within 5 ms of the idle line, 90 % of the line used."""
