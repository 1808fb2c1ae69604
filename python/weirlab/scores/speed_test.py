"""Meaning of a foreign speed test's result, with the bands and grades of Weir's own test.

Only what the result itself has is judged: most official clients show no latency while the line is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from weirlab.record.differences import is_beside_no_scenario
from weirlab.scores import bufferbloat
from weirlab.scores.responsiveness import band
from weirlab.stats import describe

if TYPE_CHECKING:
    from weirlab.record import MethodResult, Record
    from weirlab.record.results import RpmResult
    from weirlab.stats import Distribution


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Round trips of Weir's own pings before and beside a foreign test, in milliseconds.

    `began_s` is when the test began, in the time of the pings' record.
    """

    began_s: float
    idle: Distribution
    during: Distribution
    lost: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Meaning of a result.

    Attributes:
        grade: the bufferbloat grade of the worse direction; None if the result has no latency under load.
        says: the same in a sentence or two.
    """

    grade: str | None
    says: str


def verdict(result: MethodResult) -> Verdict:
    """Meaning of the result of a foreign test."""
    if result["method"] == "rpm":
        return _of_rpm(result)
    increases = _increases(result)
    if not increases:
        why = (
            "the line was never full"
            if result["method"] == "http"
            else f"{result['method']} showed no latency while the line was full"
        )
        return Verdict(grade=None, says=f"No grade: {why}, so that nothing is known of it.")
    way = max(increases, key=lambda name: increases[name])
    increase = max(increases[way], 0.0)
    letter = bufferbloat.grade(increase)
    return Verdict(
        grade=letter,
        says=f"Grade {letter}: by this test's own figures a round trip takes {increase:.0f} ms longer during "
        f"the {way}: {bufferbloat.MEANING[letter]}",
    )


def truth_of(record: Record) -> Truth | None:
    """What Weir's own pings saw before and beside the foreign test of a record (`weir test --truth`).

    None of any other record, and if none of them was answered before it or beside it.
    """
    if not is_beside_no_scenario(record):
        return None
    began_ns = record.columns("method").rows()[0]["began_ns"]
    latency = record.latency
    before = latency["t_ns"] < began_ns
    idle, during = (describe(latency.filter(rows)["rtt_ns"] / 1e6) for rows in (before, ~before))
    if idle is None or during is None:
        return None
    lost = latency["rtt_ns"].null_count()
    return Truth(began_s=round(began_ns / 1e9, 3), idle=idle, during=during, lost=lost)


def verdict_of_truth(seen: Truth | None) -> Verdict | None:
    """Meaning of Weir's own pings beside a speed test, if there were any."""
    return verdict_of_pings(seen.during.mean - seen.idle.mean) if seen is not None else None


def verdict_of_pings(increase_ms: float) -> Verdict:
    """Meaning of Weir's own pings, which took so much longer on average during a foreign test."""
    letter = bufferbloat.grade(increase_ms)
    return Verdict(
        grade=letter,
        says=f"Our own pings took {max(increase_ms, 0):.0f} ms longer on average from its begin to its end, "
        f"pauses included: grade {letter}, {bufferbloat.MEANING[letter]}",
    )


def _of_rpm(result: RpmResult) -> Verdict:
    rates = {way: one["rpm"] for way in WAYS if (one := result[way]) is not None and one["rpm"] is not None}
    if not rates:
        return Verdict(grade=None, says="No grade: no probe was answered under load.")
    way = min(rates, key=lambda name: rates[name])
    return Verdict(
        grade=None,
        says=f"Responsiveness during the {way} is {band(rates[way])}: {rates[way]:.0f} round trips a minute. "
        "This test has no round trips without load, and so no grade.",
    )


def _increases(result: MethodResult) -> dict[str, float]:
    """By how many milliseconds a round trip takes longer in each direction that says so."""
    if result["method"] == "http":
        full = {way: one for way in WAYS if (one := result[way]) is not None and one["saturated"]}
        increases = {way: one["latency_increase_ms"] for way, one in full.items()}
        return {way: one for way, one in increases.items() if one is not None}
    if "download_loaded_latency_ms" not in result:
        return {}
    idle = result.get("latency_ms")
    if idle is None:
        return {}
    loaded = {
        "download": result["download_loaded_latency_ms"],
        "upload": result["upload_loaded_latency_ms"],
    }
    return {way: one - idle for way, one in loaded.items() if one is not None}


WAYS: tuple[Literal["download", "upload"], ...] = ("download", "upload")
