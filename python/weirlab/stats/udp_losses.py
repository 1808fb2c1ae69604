"""Which packets of UDP flows were lost, and when they were sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.stats.intervals import ends_ns

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from weirlab.record import Record

    Counts = NDArray[np.int64]


def udp_rows(record: Record) -> pl.DataFrame:
    """The table `udp` by flow and time, with losses where they belong.

    A receiver finds out by a later packet that one is missing. So what was lost while packets waited is
    told late, and what was lost behind the last packet that arrived is never told. Where the record
    tells when packets were sent, `lost_packets` has losses in the intervals in which they were sent: of
    those told at once evenly, and behind the last packet that arrived all but those that may still have
    been under way when the run ended: sent no longer before that than the flow's longest delay, or that
    of its empty path, and an interval, and not before a second or more in which nothing came. No more
    are lost than were sent and did not arrive: what was called lost and came after all is not.

    `t_ns` is the end of the interval, which a live world samples a little late.
    """
    import polars as pl  # noqa: PLC0415 - most runs have no such flow

    interval_ns = record.interval_ns("throughput")
    rows = record.udp.sort("flow", "t_ns", maintain_order=True)
    if rows.height == 0:
        return rows
    rows = rows.with_columns(t_ns=pl.Series(ends_ns(rows["t_ns"].to_numpy(), interval_ns)))
    totals = dict(record.flows.select("flow", "sent_segments").iter_rows())
    ends = _Ends(reached_ns=record.reached_ns, interval_ns=interval_ns)
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
    at = rows["t_ns"].to_numpy()
    received = rows["received_packets"].to_numpy().astype(np.int64)
    sent = np.cumsum(rows["sent_packets"].to_numpy().astype(np.int64))
    sent[-1] = max(int(sent[-1]), total or 0)
    under_way = max(int(rows["delay_max_ns"].fill_null(0).to_numpy().max()), way_ns) + ends.interval_ns
    silence = ends.reached_ns - int(at[received > 0].max(initial=0))
    ended = received.any() and silence >= SILENCE_NS + way_ns
    overdue = at <= ends.reached_ns - (min(under_way, silence) if ended else under_way)
    due = int(sent[overdue][-1]) if overdue.any() else 0
    settled = np.cumsum(received + told)
    lost = np.zeros_like(told)
    # Of the packets whose fate a row tells, `first` to `settled[row]`, some arrived and some did not.
    for row in np.flatnonzero(told).tolist():
        first = int(settled[row - 1]) if row else 0
        _share_out(lost, sent, (first, int(settled[row])), int(told[row]), row)
    _share_out(lost, sent, (int(settled[-1]), due), max(due - int(settled[-1]), 0), told.size - 1)
    # What is more than can be missing was overtaken, and what is told first was called lost too soon.
    more = int(lost.sum() + received.sum() - sent[-1])
    if more > 0:
        lost = np.diff(np.maximum(np.cumsum(lost) - more, 0), prepend=0)
    return lost


def _share_out(lost: Counts, sent: Counts, packets: tuple[int, int], count: int, row: int) -> None:
    """Adds losses to the rows in which packets of these numbers were sent, evenly; else to `row`."""
    first, end = packets
    low, high = np.searchsorted(sent, [first, end], side="right")
    high = min(int(high) + 1, sent.size)
    until = np.clip(sent[low:high], first, end)
    each = np.diff(until, prepend=first)
    if count == 0 or each.sum() == 0:
        lost[row] += count
        return
    shares = np.diff(np.round(np.cumsum(each) * (count / each.sum())), prepend=0.0)
    lost[low:high] += shares.astype(np.int64)


SILENCE_NS = 1_000_000_000
"""After so long without a packet, no earlier one is on its way."""
