"""Quality of outcome: how near an application's experience is to perfect, 0 to 100.

The formula is that of draft-ietf-ippm-qoo: for each of latency at a percentile, loss and throughput the
place between the value at which the application is perfect and the one at which it is of no use, in
percent; the least of them counts. The draft leaves those values to whoever states them; ours are chosen
from ITU-T G.114 (150 and 400 ms from mouth to ear, of which codec and jitter buffer take about 100 ms),
ITU-T G.1010 (loss and delay of audio, games and streams) and the rates that common services ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.record.differences import WHEN

if TYPE_CHECKING:
    from weirlab.scores.measured import Loaded, Measured


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Requirements of an application; the first of each pair is perfect, the second is useless.

    Attributes:
        name: the application.
        percentile: of the round trip that counts; one that a `Distribution` has.
        rtt_ms: round trips.
        loss: share of packets lost.
        down_mbps, up_mbps: throughput.
    """

    name: str
    percentile: int
    rtt_ms: tuple[float, float]
    loss: tuple[float, float]
    down_mbps: tuple[float, float]
    up_mbps: tuple[float, float] | None


APPLICATIONS = (
    Needs(
        name="video call",
        percentile=95,
        rtt_ms=(100, 600),
        loss=(0.01, 0.05),
        down_mbps=(3, 0.5),
        up_mbps=(3, 0.5),
    ),
    Needs(
        name="game",
        percentile=99,
        rtt_ms=(50, 200),
        loss=(0.005, 0.05),
        down_mbps=(1, 0.1),
        up_mbps=(0.5, 0.05),
    ),
    Needs(
        name="stream", percentile=95, rtt_ms=(500, 5000), loss=(0.02, 0.1), down_mbps=(16, 1.5), up_mbps=None
    ),
)


def applications(figures: Measured) -> list[dict[str, Any]]:
    """The score of each application in the phase that is worst for it."""
    scores = []
    for needs in APPLICATIONS:
        by_phase = {name: _parts(needs, one, figures) for name, one in figures.loaded.items()}
        name, parts = min(by_phase.items(), key=lambda item: min(item[1].values()))
        value = min(parts.values())
        weakest = min(parts, key=lambda part: parts[part])
        scores.append(
            {
                "name": f"outcome, {needs.name}",
                "formula": f"draft-ietf-ippm-qoo, Weir's thresholds 1, p{needs.percentile}; the worst phase",
                "value": round(value),
                "unit": "of 100",
                "parts": {part: round(one, 1) for part, one in parts.items()},
                "says": "perfect." if value >= 100 else f"held back by {weakest} {WHEN[name]}.",
            }
        )
    return scores


def _parts(needs: Needs, one: Loaded, figures: Measured) -> dict[str, float]:
    # What a line can carry, not what is left of it: an application in use has its share.
    rates = {"download": (needs.down_mbps, figures.down_mbps), "upload": (needs.up_mbps, figures.up_mbps)}
    parts = {
        "latency": place(getattr(one.latency, f"p{needs.percentile}"), needs.rtt_ms),
        "loss": place(one.pings.unanswered / one.pings.sent, needs.loss),
    }
    for way, (wanted, got) in rates.items():
        if wanted is not None and got is not None:
            parts[way] = place(got, wanted)
    return parts


def place(value: float, pair: tuple[float, float]) -> float:
    """Where `value` lies between perfect (100) and of no use (0)."""
    perfect, useless = pair
    return float(np.clip((useless - value) / (useless - perfect), 0.0, 1.0) * 100)
