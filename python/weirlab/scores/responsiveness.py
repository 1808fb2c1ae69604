"""Round trips per minute, by the formulas of draft-ietf-ippm-responsiveness-09 and of goresponsiveness.

A probe of ours in a flow of its own stands for each of the three round trips of a foreign probe (connect,
TLS, request); the smoothed round trip of a load's sender (TCP_INFO) for a self probe within a load, as the
draft has it for HTTP/1.1. TM is the trimmed mean without the worst 5 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.counted import MOST_HELD, Chunk
from weirlab.stats.pings import NS_PER_MS
from weirlab.stats.ranked import Ranked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirlab.scores.measured import Loaded, Measured
    from weirlab.stats import Pings

TRIMMED = 0.95
"""Section 4.3.1: the share that is kept."""


def trimmed_mean(values: NDArray[np.float64]) -> float:
    """The mean of the 95 % least values."""
    kept = max(int(np.floor(values.size * TRIMMED)), 1)
    return float(np.sort(values)[:kept].mean())


def trimmed_mean_of(pings: Pings) -> float:
    """The mean of the 95 % least round trips of answered pings, in ms; of very many none is held for it."""
    if pings.answered <= MOST_HELD:
        return trimmed_mean(pings.rtt_ms)
    kept = int(np.floor(pings.answered * TRIMMED))
    ranked = Ranked(lambda: (Chunk(np.zeros(one.size, np.int64), one, None) for one in pings.rtt_ns), 1)
    most = int(ranked.at({0: np.array([kept - 1])})[0][0])
    total = kept * most
    for part in pings.rtt_ns:
        total += int(np.minimum(part - most, 0).sum())
    return total / kept / NS_PER_MS


def draft(foreign_ms: float, self_ms: float) -> float:
    """Section 4.3.1: the mean of the two rates."""
    return (60_000 / foreign_ms + 60_000 / self_ms) / 2


def goresponsiveness(foreign_ms: float, self_ms: float) -> float:
    """rpm/calculations.go: the rate of the mean of the two round trips."""
    return 60_000 / ((foreign_ms + self_ms) / 2)


def rpm(figures: Measured) -> list[dict[str, Any]]:
    """Both scores of responsiveness, in round trips a minute; the least of the phases is the value.

    A phase counts if it has samples of both kinds.
    """
    parts = {name: _of(one) for name, one in figures.loaded.items() if one.in_flow_ms.size}
    if not parts:
        return []
    scores = []
    for name, key, formula in (
        ("RPM", "draft", "draft-ietf-ippm-responsiveness-09, section 4.3.1; the worst phase"),
        (
            "RPM, goresponsiveness",
            "goresponsiveness",
            "goresponsiveness rpm/calculations.go; the worst phase",
        ),
    ):
        value = min(part[key] for part in parts.values())
        scores.append(
            {
                "name": name,
                "formula": formula,
                "value": round(value),
                "unit": "round trips/min",
                "parts": parts if key == "draft" else {},
                "says": f"{band(value)}." if key == "draft" else "",
            }
        )
    return scores


def _of(one: Loaded) -> dict[str, float]:
    foreign, within = trimmed_mean_of(one.pings), trimmed_mean(one.in_flow_ms)
    return {
        "draft": round(draft(foreign, within), 1),
        "goresponsiveness": round(goresponsiveness(foreign, within), 1),
        "foreign_ms": round(foreign, 3),
        "self_ms": round(within, 3),
    }


def band(value: float) -> str:
    """The draft's word for so many round trips a minute."""
    if value < 300:
        return "poor"
    if value < 1000:
        return "fair"
    return "good" if value < 6000 else "excellent"
