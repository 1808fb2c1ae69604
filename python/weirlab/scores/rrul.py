"""The summary of Realtime Response Under Load: both directions at once, as Flent's `rrul` tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirlab.stats import summarise

if TYPE_CHECKING:
    from weirlab.record import Record


def summary(record: Record) -> list[dict[str, Any]]:
    """Goodput of both directions and the mean ping, over the whole phase `load`; empty without one."""
    if record.phase("load") is None:
        return []
    figures = summarise(record)
    idle, loaded = figures.latency.told
    if loaded is None:
        return []
    down = figures.down.goodput_mbps if figures.down else None
    up = figures.up.goodput_mbps if figures.up else None
    return [
        {
            "name": "RRUL",
            "formula": "Flent 2.3 rrul: means over the load, both ways at once (best effort only)",
            "value": f"{_rate(down)} / {_rate(up)} Mbit/s, ping {loaded.mean:.1f} ms",
            "unit": "",
            "parts": {
                "down_mbps": None if down is None else round(down, 3),
                "up_mbps": None if up is None else round(up, 3),
                "ping_mean_ms": round(loaded.mean, 3),
                "ping_p99_ms": round(loaded.p99, 3),
                "idle_mean_ms": round(idle.mean, 3) if idle else None,
            },
            "says": "",
        }
    ]


def _rate(mbps: float | None) -> str:
    """A rate that was measured; `-` for one that was not."""
    return "-" if mbps is None else f"{mbps:.2f}"
