"""The study `autorate`: shapers that find a line's rate, on lines that change.

Steps and ramps in front of deep buffers, recorded LTE lines, and a VDSL line with bloated buffers; beside
Weir's controller no shaper, a fixed one, CAKE's own estimate, and the published law of cake-autorate.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from weirlab.errors import UsageError
from weirlab.scenario import LinkSpec, ResolvedRun, TestSpec, load_link, load_test, mean_rate
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.scenario import Direction


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line that is uploaded or downloaded over.

    Attributes:
        name: its name.
        what: what it is, in a line.
        direction: which way the load goes.
        link: the line itself.
        drop_s, rise_s: when it becomes slower and faster, if at one moment.
    """

    name: str
    what: str
    direction: Direction
    link: LinkSpec
    drop_s: float | None = None
    rise_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """Figures of a control on a line, over the seeds.

    Attributes:
        line, control: names of both.
        increase_ms: mean ping under load, less that of the idle line.
        p99_ms: 99th percentile of the increase.
        used: share of the line that was used under load.
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


def lines() -> list[Line]:
    """All lines of the study."""
    found: list[Line] = []
    for direction in DIRECTIONS:
        found += [_steps(direction), _ramp(direction)]
    for direction in DIRECTIONS:
        for name in ("lte-verizon", "lte-tmobile", "lte-att"):
            link = load_link(name)
            found.append(Line(name=f"{name} {direction}", what=link.title, direction=direction, link=link))
    vdsl = load_link("vdsl-100-40")
    for direction in DIRECTIONS:
        what = "VDSL with the modem's own buffers"
        found.append(Line(name=f"vdsl {direction}", what=what, direction=direction, link=vdsl))
    return found


def chosen(only: Sequence[str]) -> list[Line]:
    """The lines whose names match one of the patterns, all of them if there is none.

    Raises:
        UsageError: if none matches a pattern.
    """
    known = lines()
    for pattern in only:
        if not any(fnmatchcase(line.name, pattern) for line in known):
            names = ", ".join(f"`{line.name}`" for line in known)
            raise UsageError(f"study `autorate` has no line `{pattern}` (known: {names})")
    return [line for line in known if not only or any(fnmatchcase(line.name, one) for one in only)]


def runs_of(line: Line, *, seeds: int) -> list[ResolvedRun]:
    """The runs of all controls on a line."""
    usual = {way: mean_rate(line.link, way) or UNLIMITED for way in DIRECTIONS}
    test = _test(line.direction)
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


def _used(line: Line, record: Record) -> float | None:
    start, end = record.phase("load") or (0, record.reached_ns)
    return busy_share(record, line.direction, start, end)


def _times(line: Line, record: Record) -> dict[str, float | None]:
    idle = summarise(record).latency.idle
    found: dict[str, float | None] = {"noticed": None, "calm": None, "used": None}
    if line.drop_s is not None and line.rise_s is not None and idle is not None:
        found["noticed"] = noticed_after_s(record, line.direction, line.drop_s)
        found["calm"] = calm_after_s(record, line.drop_s, idle.median + CALM_MS, line.rise_s)
        found["used"] = used_after_s(record, line.direction, line.rise_s, USED_AGAIN)
    return found


def _steps(direction: Direction) -> Line:
    changes = [{"at": f"{DROP_S}s", "rate": "20mbit"}, {"at": f"{RISE_S}s", "rate": "80mbit"}]
    return Line(
        name=f"steps {direction}",
        what="80 Mbit/s, 20 from 20 s on, 80 from 35 s on",
        direction=direction,
        link=_link(f"steps-{direction}", "80, 20 and 80 Mbit/s", direction, changes),
        drop_s=DROP_S,
        rise_s=RISE_S,
    )


def _ramp(direction: Direction) -> Line:
    """80 Mbit/s that fall to 20 from 15 s to 25 s, and rise again from 30 s to 40 s, in steps of 250 ms."""
    changes = []
    for step in range(1, RAMP_STEPS + 1):
        share = step / RAMP_STEPS
        changes.append(
            {"at": f"{15_000 + 10_000 * share:.0f}ms", "rate": f"{80_000 - 60_000 * share:.0f}kbit"}
        )
    for step in range(1, RAMP_STEPS + 1):
        share = step / RAMP_STEPS
        changes.append(
            {"at": f"{30_000 + 10_000 * share:.0f}ms", "rate": f"{20_000 + 60_000 * share:.0f}kbit"}
        )
    return Line(
        name=f"ramp {direction}",
        what="80 Mbit/s, down to 20 within 10 s and up again",
        direction=direction,
        link=_link(f"ramp-{direction}", "80, down to 20 and up to 80 Mbit/s", direction, changes),
    )


def _link(name: str, title: str, direction: Direction, changes: list[dict[str, str]]) -> LinkSpec:
    """A line with 200 ms of buffer at its greatest rate, 20 ms long there and back."""

    def hop(way: Direction) -> dict[str, Any]:
        return {
            "name": "modem" if way == "up" else "headend",
            "queue": "bfifo limit 2000000",
            "rate": "80mbit",
            "framing": "docsis",
            "delay": "10ms",
            "changes": changes if way == direction else [],
        }

    return LinkSpec.model_validate({"name": name, "title": title, "up": [hop("up")], "down": [hop("down")]})


def _test(direction: Direction) -> TestSpec:
    """Eight flows, so that TCP itself finds a faster line within the goal's time."""
    base = load_test(f"tcp_n{direction}")
    flows = [flow.model_copy(update={"count": FLOWS}) for flow in base.flows]
    phases = base.phases.model_copy(update={"idle": IDLE_NS, "load": LOAD_NS, "cooldown": 0})
    return base.model_copy(update={"flows": flows, "parameters": {}, "phases": phases})


DIRECTIONS: tuple[Direction, ...] = ("down", "up")
FLOWS = 8
IDLE_NS = 5_000_000_000
LOAD_NS = 55_000_000_000
DROP_S = 20.0
RISE_S = 35.0
RAMP_STEPS = 40
UNLIMITED = 1_000_000_000
"""Rate in bit/s that a control is told for a line without a limit."""

CALM_MS = 5.0
USED_AGAIN = 0.9
"""The goals: within 5 ms of the idle line, 90 % of the line used."""
