"""Bufferbloat grades: by how much a ping takes longer under load.

Thresholds of DSLReports (dslreports.com/faq/17930), which Waveform has too: A+ < 5 ms, A < 30, B < 60,
C < 200, D < 400, F from 400 on. They and the words are declared once, in crates/speedtest/src/bufferbloat.rs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirlab import _native

if TYPE_CHECKING:
    from weirlab.scores.measured import Measured


def grade(increase_ms: float) -> str:
    """The grade of an increase of the round trip under load, in milliseconds."""
    letter, _, _ = _native.bufferbloat_score(increase_ms, None)
    return letter


def sentence(increase_ms: float, *, limit_mbps: float | None) -> str:
    """A sentence on an increase of the round trip under load, in milliseconds.

    Args:
        increase_ms: the increase.
        limit_mbps: what the server lets pass, if the loads may have met that and never filled the line.
    """
    _, _, says = _native.bufferbloat_score(increase_ms, limit_mbps)
    return says


def worse_direction(figures: Measured) -> dict[str, Any]:
    """The grade of the phase in which pings grew most: what a call suffers while somebody uploads."""
    letter, formula, says = _native.bufferbloat_score(figures.worst.increase_ms, figures.limit_mbps)
    return {
        "name": "bufferbloat",
        "formula": formula,
        "value": letter,
        "unit": "",
        "parts": {name: round(one.increase_ms, 3) for name, one in figures.loaded.items()},
        "says": says,
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


MEANING = {letter: meaning for letter, _, meaning in _native.bufferbloat_grades()}
"""What people notice, by grade; the best one first."""
