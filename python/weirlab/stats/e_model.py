"""The E-model of ITU-T G.107 (2015-06) for a voice stream: from delay and loss to the mean opinion score.

The rating of a call is R = Ro - Is - Id - Ie_eff + A (G.107, clause 7.1). All parameters but the delay and
the loss have their default values (G.107, clause 7.7), so that Ro = 94.77, Is = 1.41 and R = 93.2 for a call
without delay and loss; the advantage factor A is 0. The codec is G.711 with packet loss concealment: Ie = 0
and Bpl = 25.1 (ITU-T G.113, appendix I); losses count as random (BurstR = 1).
"""

from __future__ import annotations

import math

MIN_MOS = 1.0
"""The worst score: not a word can be understood."""


def rating(delay_ms: float, loss_rate: float) -> float:
    """The transmission rating factor R of a call.

    Args:
        delay_ms: one way from mouth to ear, in ms, 0 or more.
        loss_rate: share of the packets that are not played out, 0 to 1.

    Returns:
        93.2 without delay and loss, less otherwise; it may be below 0.
    """
    return _RO - _IS - _delay_impairment(delay_ms) - _loss_impairment(loss_rate)


def mean_opinion_score(rating: float) -> float:
    """The mean opinion score of conversational quality, 1 (bad) to 4.5 (G.107, annex B)."""
    if rating <= 0:
        return MIN_MOS
    if rating >= 100:
        return 4.5
    # Between 0 and 6.5 the polynomial falls below 1, which is the worst there is.
    return max(MIN_MOS, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)


def mos(delay_ms: float, loss_rate: float) -> float:
    """The mean opinion score of a call with that delay from mouth to ear, in ms, and that share of loss."""
    return mean_opinion_score(rating(delay_ms, loss_rate))


def _delay_impairment(delay_ms: float) -> float:
    """Id: talker echo, listener echo and too long a delay (G.107, clause 7.4)."""
    return _talker_echo(delay_ms) + _listener_echo(delay_ms) + _too_long(delay_ms)


def _talker_echo(delay_ms: float) -> float:
    reached = 40 * math.log10((1 + delay_ms / 10) / (1 + delay_ms / 150))
    loudness = _TELR - reached + 6 * math.exp(-0.3 * delay_ms**2)
    re = 80 + 2.5 * (loudness - 14)
    roe = -1.5 * (_NO - _RLR)
    half = (roe - re) / 2
    return (half + math.hypot(half, 10) - 1) * (1 - math.exp(-delay_ms))


def _listener_echo(delay_ms: float) -> float:
    # The round trip of the echo is twice the delay of one way.
    rle = 10.5 * (_WEPL + 7) * math.pow(2 * delay_ms + 1, -0.25)
    half = (_RO - rle) / 2
    return half + math.hypot(half, 13)


def _too_long(delay_ms: float) -> float:
    if delay_ms <= _NOTICED_MS:
        return 0.0
    x = math.log2(delay_ms / _NOTICED_MS)
    return 25 * (math.pow(1 + x**6, 1 / 6) - 3 * math.pow(1 + (x / 3) ** 6, 1 / 6) + 2)


def _loss_impairment(loss_rate: float) -> float:
    """Ie_eff of G.711 with packet loss concealment (G.107, clause 7.5)."""
    percent = 100 * loss_rate
    return 95 * percent / (percent + _BPL)


_RO = 94.77
_IS = 1.41
_NO = -61.18
_RLR = 2.0
_TELR = 65.0
_WEPL = 110.0
_NOTICED_MS = 100.0
_BPL = 25.1
