"""AIM points of Cloudflare's speed test (`@cloudflare/speedtest` 1.14.1, `src/config/internalConfig.js`)."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.pings import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.scores.measured import Measured
    from weirlab.stats import Pings

_Table = tuple["Sequence[float]", "Sequence[int]"]

LOSS: _Table = ((0.01, 0.05, 0.25, 0.5), (10, 5, 0, -10, -20))
LATENCY: _Table = ((10, 20, 50, 100, 500), (20, 10, 5, 0, -10, -20))
JITTER: _Table = ((10, 20, 100, 500), (10, 5, 0, -10, -20))
MBPS: _Table = ((1, 10, 50, 100), (0, 5, 10, 20, 30))
WORDS = ("bad", "poor", "average", "good", "great")
EXPERIENCES: tuple[tuple[str, tuple[str, ...], tuple[int, ...]], ...] = (
    ("streaming", ("latency", "loss", "download", "increase"), (15, 20, 40, 60)),
    ("gaming", ("latency", "loss", "increase"), (5, 15, 25, 30)),
    ("real-time calls", ("latency", "jitter", "loss", "increase"), (5, 15, 25, 40)),
)
"""Points of which each score is the sum, and the bounds from which each word applies."""


def points(figures: Measured) -> list[dict[str, Any]]:
    """The three scores; latency, jitter and loss are those of our own probes."""
    medians = [one.latency.median for one in figures.loaded.values()]
    parts: dict[str, float] = {
        "latency": _points(LATENCY, figures.idle.median),
        "jitter": _points(JITTER, _jitter_ms(figures.before)),
        "loss": _points(LOSS, figures.loss_rate or 0.0),
        "increase": _points(LATENCY, max(medians) - figures.idle.median),
    }
    if figures.down_mbps is not None:
        parts["download"] = _points(MBPS, figures.down_mbps)
    scores = []
    for name, needed, cuts in EXPERIENCES:
        if any(part not in parts for part in needed):
            continue
        total = max(sum(parts[part] for part in needed), 0)
        word = WORDS[bisect_right(cuts, total)]
        scores.append(
            {
                "name": f"AIM, {name}",
                "formula": "Cloudflare AIM, @cloudflare/speedtest 1.14.1",
                "value": total,
                "unit": "points",
                "parts": {part: parts[part] for part in needed},
                "says": f"{word}.",
            }
        )
    return scores


def _jitter_ms(pings: Pings) -> float:
    """The mean difference of each round trip and the one before it."""
    total, last = 0, np.zeros(0, np.int64)
    for part in pings.rtt_ns:
        both = np.concatenate([last, part])
        total += int(np.abs(np.diff(both)).sum())
        last = both[-1:]
    return total / NS_PER_MS / (pings.answered - 1) if pings.answered > 1 else 0.0


def _points(table: _Table, value: float) -> int:
    thresholds, given = table
    return given[bisect_right(thresholds, value)]
