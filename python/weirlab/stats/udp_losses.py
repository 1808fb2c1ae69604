"""Which packets of UDP flows were lost, and when they were sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from weirlab.record import Record

    Counts = NDArray[np.int64]


def udp_rows(record: Record) -> pl.DataFrame:
    """The table `udp` by flow and time, with losses where they belong.

    A receiver finds out by a later packet that one is missing. So what was lost in a silence is told behind
    it, what was lost behind the last packet that arrived is never told, and what was overtaken may have been
    called lost. Where the record tells when packets were sent, `lost_packets` has losses in the intervals in
    which they were sent: of a silence evenly, and behind the last packet that arrived all but those that may
    still have been under way when the run ended: sent no longer before that than the flow's longest delay, or
    that of its empty path, and an interval, and not before a second or more in which nothing came.
    """
    import polars as pl  # noqa: PLC0415 - most runs have no such flow

    rows = record.udp.sort("flow", "t_ns", maintain_order=True)
    if rows.height == 0:
        return rows
    totals = dict(record.flows.select("flow", "sent_segments").iter_rows())
    ends = _Ends(reached_ns=record.reached_ns, interval_ns=record.interval_ns("throughput"))
    lost = [
        _lost(one, totals.get(flow), ends, _way_ns(record, flow))
        for (flow,), one in rows.group_by("flow", maintain_order=True)
    ]
    return rows.with_columns(pl.Series("lost_packets", np.concatenate(lost)))


@dataclass(frozen=True)
class _Ends:
    """When the run ended, and how long intervals are, in ns."""

    reached_ns: int
    interval_ns: int


def _way_ns(record: Record, flow: int) -> int:
    """Least time that a packet of a flow takes on the scenario's path, in ns."""
    scenario = record.manifest.scenario
    if flow >= len(scenario["flows"]):
        return 0
    one, path, hosts = scenario["flows"][flow], scenario.get("path", {}), scenario.get("hosts", [])
    host = hosts[one["host"]]["delay_ns"] if one.get("host", 0) < len(hosts) else 0
    return int(sum(hop["delay_ns"] for hop in path.get(one["direction"], [])) + host)


def _lost(rows: pl.DataFrame, total: int | None, ends: _Ends, way_ns: int) -> Counts:
    """Losses of a flow in each of its rows."""
    told = rows["lost_packets"].to_numpy().astype(np.int64)
    if rows["sent_packets"].null_count():
        return told
    received = rows["received_packets"].to_numpy().astype(np.int64)
    sent = np.cumsum(rows["sent_packets"].to_numpy().astype(np.int64))
    told = _without_overtaken(told, max(int(sent[-1]), total or 0) - int(received.sum()))
    settled = np.cumsum(received + told)
    lost = told.copy()
    for row in _behind_silence(received, told):
        # Of packets numbered from `first` to `settled[row]` some arrived and some did not.
        first = settled[row - 1]
        each = _sent_of(sent, int(first), int(settled[row]))
        share = np.diff(np.round(np.cumsum(each) * told[row] / (settled[row] - first)), prepend=0.0)
        lost[row] -= int(share.sum())
        lost += share.astype(np.int64)
    at = rows["t_ns"].to_numpy()
    under_way = max(int(rows["delay_max_ns"].fill_null(0).to_numpy().max()), way_ns) + ends.interval_ns
    silence = ends.reached_ns - int(at[received > 0].max(initial=0))
    ended = received.any() and silence >= SILENCE_NS + way_ns
    overdue = at <= ends.reached_ns - (min(under_way, silence) if ended else under_way)
    if overdue.any():
        lost += _sent_of(sent, int(settled[-1]), int(sent[overdue][-1]))
    return lost


SILENCE_NS = 1_000_000_000
"""After so long without a packet, no earlier one is on its way."""


def _without_overtaken(told: Counts, most: int) -> Counts:
    """Losses without those last told that have arrived after all: no more than `most` can be missing."""
    return np.diff(np.minimum(np.cumsum(told), max(most, 0)), prepend=0)


def _behind_silence(received: Counts, told: Counts) -> list[int]:
    """The rows that tell of losses after one or more in which nothing arrived."""
    behind = np.flatnonzero(told > 0)
    return [int(row) for row in behind if row > 0 and received[row - 1] == 0 and told[row - 1] == 0]


def _sent_of(sent: Counts, first: int, end: int) -> Counts:
    """How many packets numbered from `first` to before `end` were sent in each row; `sent` are totals."""
    until = np.clip(sent, first, max(first, end))
    return np.diff(until, prepend=first)
