"""Numbers of pings, by which those that were lost are known: ping and fping tell the answered ones only."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from weirlab.flent.document import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.flent.document import Point


def numbered(points: Sequence[Point]) -> list[Point] | None:
    """The answered pings with numbers that only grow, each of them once.

    ICMP has 16 bits for a number, which begins anew behind its last one; and a ping may be answered twice.

    Returns:
        None if the numbers do not tell which pings were lost: there are none, or they are used again for
        other pings, or more are missing than there was time to send.
    """
    told = [number(point.get("seq")) for point in points]
    whole = [int(one) for one in told if one is not None and one.is_integer()]
    if len(whole) < len(points):
        return None
    sent_s: dict[int, float] = {}
    kept: list[Point] = []
    for point, seq in zip(points, _unwrapped(whole), strict=True):
        at_s = float(point["t"]) - (number(point.get("val")) or 0.0) / 1e3
        if seq not in sent_s:
            sent_s[seq] = at_s
            kept.append({**point, "seq": seq})
        elif abs(at_s - sent_s[seq]) > LATE_S:
            return None
    return kept if _had_time(sent_s) else None


def _unwrapped(numbers: Sequence[int]) -> list[int]:
    """The numbers as if they had more than 16 bits, if they have no more."""
    if not numbers or min(numbers) < 0 or max(numbers) >= NUMBERS:
        return list(numbers)
    found = [numbers[0]]
    for one in numbers[1:]:
        step = (one - found[-1]) % NUMBERS
        # A large step forward is a small one back: an answer that was overtaken.
        found.append(found[-1] + (step if step < NUMBERS - OVERTAKEN else step - NUMBERS))
    return found


def _had_time(sent_s: dict[int, float]) -> bool:
    """Whether there was time to send the pings that are missing, as often as others were sent."""
    numbers = sorted(sent_s)
    steps = [(after - before, sent_s[after] - sent_s[before]) for before, after in pairwise(numbers)]
    if len(steps) < FEWEST:
        return True
    usual_s = median(took_s / count for count, took_s in steps)
    return all(count * usual_s / 2 <= took_s + LATE_S for count, took_s in steps)


NUMBERS = 1 << 16
"""How many numbers an ICMP echo may have."""

OVERTAKEN = 1000
"""No answer is overtaken by more than that many others."""

LATE_S = 1.0
"""How far the times of sending may lie apart by which two answers are told to be of one ping."""

FEWEST = 3
"""Steps between numbers by which it is known how often pings were sent."""
