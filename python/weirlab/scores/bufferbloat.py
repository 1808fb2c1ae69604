"""Bufferbloat grades: by how much a ping takes longer under load.

Thresholds of DSLReports (dslreports.com/faq/17930), which Waveform has too: A+ < 5 ms, A < 30, B < 60,
C < 200, D < 400, F from 400 on.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weirlab.scores.measured import Measured

THRESHOLDS_MS = (5.0, 30.0, 60.0, 200.0, 400.0)
GRADES = ("A+", "A", "B", "C", "D", "F")


def grade(increase_ms: float) -> str:
    """The grade of an increase of the round trip under load, in milliseconds."""
    return GRADES[bisect_right(THRESHOLDS_MS, increase_ms)]


def sentence(increase_ms: float) -> str:
    """A sentence on an increase of the round trip under load, in milliseconds."""
    longer = f"{max(increase_ms, 0):.0f} ms longer"
    return f"With the line full a ping takes {longer}: {MEANING[grade(increase_ms)]}"


def worse_direction(figures: Measured) -> dict[str, Any]:
    """The grade of the phase in which pings grew most: what a call suffers while somebody uploads."""
    worst = figures.worst
    return {
        "name": "bufferbloat",
        "formula": "DSLReports/Waveform thresholds on the mean increase of the worst phase, Weir 1",
        "value": grade(worst.increase_ms),
        "unit": "",
        "parts": {name: round(one.increase_ms, 3) for name, one in figures.loaded.items()},
        "says": sentence(worst.increase_ms),
    }


def dslreports(figures: Measured) -> dict[str, Any] | None:
    """The grade as DSLReports gives it: the mean of download's and upload's increase."""
    both = [figures.loaded[name].increase_ms for name in ("download", "upload") if name in figures.loaded]
    if len(both) < 2:
        return None
    mean = sum(both) / 2
    return {
        "name": "bufferbloat, DSLReports",
        "formula": "DSLReports FAQ 17930: mean of the increases of download and upload",
        "value": grade(mean),
        "unit": "",
        "parts": {"increase_ms": round(mean, 3)},
        "says": "",
    }


MEANING = {
    "A+": "nobody notices that the line is in use.",
    "A": "calls and games hardly notice that the line is in use.",
    "B": "games become a little sluggish while the line is in use.",
    "C": "calls and games suffer while the line is in use.",
    "D": "calls stumble and pages wait while the line is in use.",
    "F": "calls, games and pages are close to unusable while the line is in use.",
}
