"""Where packets waited under load: whether the queue under test stands at the bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.record.tables import TABLES
from weirlab.stats.pings import load_window_ns

if TYPE_CHECKING:
    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Bypassed:
    """A queue that stayed empty while packets waited at another hop of the same direction.

    Attributes:
        direction: `up` or `down`, as the client sees it.
        queue: the spec of the queue that stayed empty.
        hop: where it stands.
        other_hop: where packets waited instead.
        wait_ms: how long they waited there during the load, on average.
    """

    direction: str
    queue: str
    hop: str
    other_hop: str
    wait_ms: float


def bypassed_queues(record: Record) -> list[Bypassed]:
    """The queues under test in which nothing waited, although packets waited elsewhere.

    Only queues that the queue spec names as they stand count: a link's own queues are not under test. One
    that dropped or marked something has managed it.
    """
    waits, acted = _mean_waits_ms(record), _acted(record)
    path: dict[str, list[dict[str, Any]]] = record.manifest.scenario.get("path", {})
    found = []
    for direction, hops in path.items():
        for hop in hops:
            if hop["queue"] != record.manifest.queue:
                continue
            others = [one["name"] for one in hops if one["name"] != hop["name"]]
            other = max(others, key=lambda name: waits.get(f"{direction}/{name}", 0.0), default=None)
            own_ms = waits.get(f"{direction}/{hop['name']}")
            if other is None or own_ms is None or own_ms >= MAX_EMPTY_MS:
                continue
            if f"{direction}/{hop['name']}" in acted:
                continue
            wait_ms = waits.get(f"{direction}/{other}", 0.0)
            if wait_ms >= MIN_WAIT_MS:
                found.append(
                    Bypassed(
                        direction=direction,
                        queue=hop["queue"],
                        hop=hop["name"],
                        other_hop=other,
                        wait_ms=wait_ms,
                    )
                )
    return found


def _mean_waits_ms(record: Record) -> dict[str, float]:
    """Mean wait of the packets of each queue during the load; queues without packets are absent."""
    start, end = load_window_ns(record)
    waited: dict[str, int] = {}
    left: dict[str, int] = {}
    for rows in record.pieces("queue", WAITS):
        at, packets, mean = (rows.numbers(name) for name in ("t_ns", "departed_packets", "sojourn_mean_ns"))
        counts = rows.is_text("class", "") & (at > start) & (at <= end) & (packets > 0)
        for known in (rows.known("departed_packets"), rows.known("sojourn_mean_ns")):
            counts &= True if known is None else known
        for place, name in enumerate(rows.texts("queue")):
            one = np.flatnonzero(counts & (rows.numbers("queue") == place))
            if one.size:
                waited[name] = waited.get(name, 0) + int((mean[one] * packets[one]).sum())
                left[name] = left.get(name, 0) + int(packets[one].sum())
    return {name: waited[name] / count / 1e6 for name, count in left.items()}


def _acted(record: Record) -> set[str]:
    """The queues that dropped or marked packets during the load."""
    start, end = load_window_ns(record)
    found: set[str] = set()
    for rows in record.pieces("queue", ("t_ns", "queue", "class", *ACTS)):
        at = rows.numbers("t_ns")
        acts = np.sum([np.nan_to_num(rows.with_nan(name)) for name in ACTS], axis=0)
        counts = rows.is_text("class", "") & (at > start) & (at <= end) & (acts > 0)
        places = np.unique(rows.numbers("queue")[counts])
        found.update(name for place, name in enumerate(rows.texts("queue")) if place in places)
    return found


WAITS = ("t_ns", "queue", "class", "departed_packets", "sojourn_mean_ns")
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
