"""One-way delay without synchronised clocks: by how much each way grew, and how sure that is.

A ping sent at t comes in at the server at its clock's f(t) + t, and the answer b(t) after the server's clock
says that it left: f is the way up plus the offset of the clocks, b the way down less it. The offset runs
away evenly (drift). The least delays lie on two straight lines of opposite slope; they are found as those
lines below all points that are nearest to them (a linear programme; Moon, Skelly, Towsley, "Estimation and
removal of clock skew from network delay measurements", INFOCOM 1999, here for both ways at once). What lies
above a line is delay beyond the least of that way. The offset itself stays unknown to within half of the
shortest round trip, since no measurement tells asymmetry of an idle path from offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirlab.record import Record

    Numbers = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class OneWay:
    """Delays of each way beyond the least of that way.

    Attributes:
        t_ns: when each answered ping was sent.
        up_ms, down_ms: how much longer than the least its way took.
        drift_ppm: by how much the server's clock is faster.
        offset_ms: how far the server's clock is ahead at the start, if the idle path is symmetric.
        offset_bound_ms: by how much that may be wrong: half of the shortest round trip.
        bound_ms: by how much `up_ms` and `down_ms` may be wrong: the furthest that the least delay of any
            second of the idle phase (of the whole run without one) lies above its line.
    """

    t_ns: NDArray[np.int64]
    up_ms: Numbers
    down_ms: Numbers
    drift_ppm: float
    offset_ms: float
    offset_bound_ms: float
    bound_ms: float


def one_way(record: Record, probe: int = 0) -> OneWay | None:
    """The delays of one probe; None if its server told no stamps or fewer than two seconds were answered."""
    if "server_received_ns" not in record.latency.columns:
        return None
    rows = record.latency.filter(pl.col("probe") == probe).drop_nulls(["rtt_ns", "server_received_ns"])
    if rows.height == 0:
        return None
    return separate(
        rows["t_ns"].to_numpy(),
        rows["rtt_ns"].to_numpy(),
        rows["server_received_ns"].to_numpy(),
        idle=record.phase("idle"),
    )


def separate(
    t: NDArray[np.int64],
    rtt: NDArray[np.int64],
    received: NDArray[np.int64],
    *,
    idle: tuple[int, int] | None,
) -> OneWay | None:
    """One-way delays from stamps in ns: client's send time, round trip, server's receive time.

    The round trip is without the time that the server held the ping.
    """
    forth = (received - t).astype(float)
    back = (t + rtt - received).astype(float)
    # Around their middle, in milliseconds: large numbers spoil the programme.
    zero = float(np.median(forth))
    f, b = (forth - zero) / 1e6, (back + zero) / 1e6
    seconds = t // SECOND_NS
    firsts = np.unique(seconds)
    if firsts.size < 2:
        return None
    least_f = [int(np.flatnonzero(seconds == s)[np.argmin(f[seconds == s])]) for s in firsts]
    least_b = [int(np.flatnonzero(seconds == s)[np.argmin(b[seconds == s])]) for s in firsts]
    x = t / SECOND_NS
    # Highest lines u + a x below f, v - a x below b.
    count = firsts.size
    rows = [[1.0, 0.0, x[i]] for i in least_f] + [[0.0, 1.0, -x[i]] for i in least_b]
    limits = [f[i] for i in least_f] + [b[i] for i in least_b]
    weights = [-count, -count, -(sum(x[i] for i in least_f) - sum(x[i] for i in least_b))]
    slope = (-MAX_DRIFT_PPM / 1e3, MAX_DRIFT_PPM / 1e3)
    from scipy.optimize import linprog  # noqa: PLC0415 - loads slowly, and few records have both ways

    found = linprog(
        weights, A_ub=rows, b_ub=limits, bounds=[(None, None), (None, None), slope], method="highs"
    )
    if not found.success:
        return None
    u, v, a = (float(value) for value in found.x)
    up, down = f - (u + a * x), b - (v - a * x)
    quiet = [
        n for n, s in enumerate(firsts) if idle is None or idle[0] <= s * SECOND_NS < idle[1] - SECOND_NS // 2
    ]
    bound = max((max(up[least_f[n]], down[least_b[n]]) for n in quiet), default=float("nan"))
    return OneWay(
        t_ns=t,
        up_ms=np.maximum(up, 0.0),
        down_ms=np.maximum(down, 0.0),
        drift_ppm=a * 1e3,
        offset_ms=zero / 1e6 + (u - v) / 2,
        offset_bound_ms=float(rtt.min()) / 2e6,
        bound_ms=float(bound),
    )


SECOND_NS = 1_000_000_000

MAX_DRIFT_PPM = 500.0
"""Largest frequency error that NTP accepts (RFC 5905, section 11.3); quartz is within 100."""
