"""Round trips of probes as arrays: what figures are made of, without a data frame for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weirlab.record.columns import Columns

    Whole = NDArray[np.int64]

COLUMNS = ("t_ns", "probe", "rtt_ns")
"""The columns of `latency` that round trips are made of."""


class RoundTrips(NamedTuple):
    """Rows of `latency`, as arrays of one length.

    Attributes:
        t_ns: when each probe was sent, in ns since the run began.
        probe: its number.
        rtt_ns: how long its answer took, in ns; 0 where there was none.
        known: whether there was one; None if there was one everywhere.
    """

    t_ns: Whole
    probe: Whole
    rtt_ns: Whole
    known: NDArray[np.bool_] | None


def round_trips_in(rows: Columns) -> RoundTrips:
    """The round trips of rows of `latency`; of one that was not answered `rtt_ns` is anything."""
    at, probe, value = (rows.numbers(name).astype("int64", copy=False) for name in COLUMNS)
    return RoundTrips(at, probe, value, rows.known("rtt_ns"))
