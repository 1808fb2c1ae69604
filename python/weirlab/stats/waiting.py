"""Where packets waited under load: whether the queue under test stands at the bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.record.tables import TABLES
from weirlab.scenario.plain import of_direction
from weirlab.stats.capacity import load_paths
from weirlab.stats.pings import load_window_ns

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.scenario import Direction


@dataclass(frozen=True, kw_only=True)
class Bypassed:
    """A queue that stayed empty while packets waited at another hop of the same direction.

    Attributes:
        direction: `up` or `down`, as the client sees it.
        queue: the spec of the queue that stayed empty.
        hop: where it stands.
        other_hop: where packets waited instead.
        wait_ms: how long they waited there during the load, on average.
        joined: whether loads come to the other hop on routes that do not pass the queue.
        varies: whether the rate of the other hop's line changes during the run.
    """

    direction: str
    queue: str
    hop: str
    other_hop: str
    wait_ms: float
    joined: bool
    varies: bool


def bypassed_queues(record: Record) -> list[Bypassed]:
    """The queues under test in which nothing waited, although packets waited elsewhere.

    Only queues that the queue spec names as they stand count: a link's own queues are not under test. One
    that dropped or marked something has managed it, and one in which packets wait longer on the other way is
    where the wait is.
    """
    waits, acted = _waits_and_acts(record)
    path: dict[Direction, list[dict[str, Any]]] = record.manifest.scenario.get("path", {})
    found = []
    for direction, hops in path.items():
        across_ms = _wait_across(record, direction, waits)
        for hop in hops:
            if hop["queue"] != of_direction(record.manifest.queue, direction):
                continue
            others = [one for one in hops if one["name"] != hop["name"]]
            other = max(others, key=lambda one: waits.get(f"{direction}/{one['name']}", 0.0), default=None)
            own_ms = waits.get(f"{direction}/{hop['name']}")
            if other is None or own_ms is None or own_ms >= MAX_EMPTY_MS:
                continue
            if f"{direction}/{hop['name']}" in acted:
                continue
            wait_ms = waits.get(f"{direction}/{other['name']}", 0.0)
            if wait_ms >= MIN_WAIT_MS and wait_ms > across_ms:
                found.append(
                    Bypassed(
                        direction=direction,
                        queue=hop["queue"],
                        hop=hop["name"],
                        other_hop=other["name"],
                        wait_ms=wait_ms,
                        joined=_is_joined(record, direction, hop["name"], other["name"]),
                        varies=_varies(other),
                    )
                )
    return found


def _wait_across(record: Record, direction: Direction, waits: dict[str, float]) -> float:
    """How many ms packets of the other direction wait in the same queue under test; 0 without it there."""
    other: Direction = "down" if direction == "up" else "up"
    spec = of_direction(record.manifest.queue, other)
    if spec != of_direction(record.manifest.queue, direction):
        return 0.0
    hops = record.manifest.scenario.get("path", {}).get(other, [])
    return max(
        (waits.get(f"{other}/{one['name']}", 0.0) for one in hops if one["queue"] == spec), default=0.0
    )


def _is_joined(record: Record, direction: Direction, hop: str, other: str) -> bool:
    """Whether loads come to the hop `other` on a path that `hop` does not lie on."""
    paths = [{one["name"] for one in on_path} for on_path in load_paths(record, direction)]
    return any(other in names and hop not in names for names in paths)


def _varies(hop: dict[str, Any]) -> bool:
    """Whether a hop's line has one rate after another: by a recording, by changes, or by its path's."""
    recorded = hop["rate"] != "unlimited" and "trace" in hop["rate"]
    return bool(recorded or hop.get("changes") or hop.get("reconfiguration"))


def _waits_and_acts(record: Record) -> tuple[dict[str, float], set[str]]:
    """Mean wait in ms of the packets of each queue during the load, and which queues dropped or marked some.

    Queues without packets have no wait.
    """
    start, end = load_window_ns(record)
    waited: dict[str, int] = {}
    left: dict[str, int] = {}
    acted: set[str] = set()
    for rows in record.pieces("queue", ("t_ns", "queue", "class", *WAITS, *ACTS)):
        at, packets, mean = (rows.numbers(name) for name in ("t_ns", *WAITS))
        during = rows.is_text("class", "") & (at > start) & (at <= end)
        acts = np.sum([np.nan_to_num(rows.with_nan(name)) for name in ACTS], axis=0) > 0
        waits = packets > 0
        for known in (rows.known(name) for name in WAITS):
            waits &= True if known is None else known
        for place, name in enumerate(rows.texts("queue")):
            mine = during & (rows.numbers("queue") == place)
            if np.any(mine & acts):
                acted.add(name)
            one = np.flatnonzero(mine & waits)
            if one.size:
                waited[name] = waited.get(name, 0) + int((mean[one] * packets[one]).sum())
                left[name] = left.get(name, 0) + int(packets[one].sum())
    return {name: waited[name] / count / 1e6 for name, count in left.items()}, acted


WAITS = ("departed_packets", "sojourn_mean_ns")
"""The columns of `queue` that waits are made of."""

ACTS = tuple(
    name
    for name in TABLES["queue"]
    if name.startswith(("dropped_", "marked_")) and not name.endswith(("_bytes", "_link_loss"))
)
"""The columns of `queue` that count what a queue dropped or marked, and not what the line behind it lost."""

MAX_EMPTY_MS = 0.5
"""A queue whose packets wait less than this on average has nothing to manage."""

MIN_WAIT_MS = 5.0
"""Waiting that a queue at the bottleneck would have shortened: the `target` of CoDel."""
