"""Where packets waited under load: whether the queue under test stands at the bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

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

    Only queues that the queue spec names as they stand count: a link's own queues are not under test.
    """
    waits = _mean_waits_ms(record)
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
    left = record.queue.filter(
        (pl.col("class") == "")
        & (pl.col("t_ns") > start)
        & (pl.col("t_ns") <= end)
        & pl.col("sojourn_mean_ns").is_not_null()
        & (pl.col("departed_packets") > 0)
    )
    waited = pl.col("sojourn_mean_ns") * pl.col("departed_packets")
    means = left.group_by("queue").agg(waited.sum() / pl.col("departed_packets").sum() / 1e6)
    return {str(name): float(wait) for name, wait in means.iter_rows()}


MAX_EMPTY_MS = 0.5
"""A queue whose packets wait less than this on average has nothing to manage."""

MIN_WAIT_MS = 5.0
"""Waiting that a queue at the bottleneck would have shortened: the `target` of CoDel."""
