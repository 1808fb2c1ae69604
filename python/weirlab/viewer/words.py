"""Grade and summary of a record in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.scores import measured, score_all
from weirlab.scores.bufferbloat import MEANING, grade
from weirlab.stats import summarise

__all__ = ["Grade", "grade_of", "summary_of"]

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.stats import DirectionSummary


@dataclass(frozen=True)
class Grade:
    """A bufferbloat grade.

    Attributes:
        letter: from `A+` to `F`.
        says: what it means, in a sentence.
    """

    letter: str
    says: str


def grade_of(record: Record) -> Grade | None:
    """The grade of a run; None if it has no pings without load, or none with it.

    Of a record of `weir test` it is that command's own. Of any other it is that of the increase under load
    that `weir show` tells.
    """
    if "ramps" in (record.manifest.model_extra or {}):
        figures = measured(record)
        if figures is not None:
            scores = score_all(record, figures)
            return Grade(scores.grade, scores.scores[0].says)
    increase = summarise(record).latency.increase_mean_ms
    if increase is None:
        return None
    letter = grade(increase)
    return Grade(
        letter, f"With the line full a ping takes {max(increase, 0):.0f} ms longer: {MEANING[letter]}"
    )


def summary_of(record: Record) -> list[str]:
    """Sentences about throughput, pings and loss."""
    summary = summarise(record)
    said = [
        _throughput("Download", summary.down),
        _throughput("Upload", summary.up),
    ]
    latency = summary.latency
    if latency.loaded is not None:
        idle = "" if latency.idle is None else f"{latency.idle.mean:.1f} ms on the idle line and "
        said.append(f"A ping took {idle}{latency.loaded.mean:.1f} ms under load (mean).")
    if latency.loaded is not None and latency.lost is not None:
        said.append(f"{latency.lost} of {latency.sent} pings under load were lost.")
    return [one for one in said if one]


def _throughput(word: str, found: DirectionSummary | None) -> str:
    if found is None or found.goodput_mbps is None:
        return ""
    flows = "1 flow" if found.flows == 1 else f"{found.flows} flows"
    used = "" if found.utilisation is None else f", {found.utilisation:.1%} of the line in use"
    return f"{word}: {found.goodput_mbps:.2f} Mbit/s with {flows}{used}."
