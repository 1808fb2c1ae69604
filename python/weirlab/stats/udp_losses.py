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
    of its empty path, and an interval, and not before a second or more in which nothing came. What was
    called lost and came after all is not lost; nor is, of a flow whose packets overtake each other, what may
    still have been under way. Packets that the record knows as dropped are lost in any case: of those behind
    the last that arrived evenly.

    `t_ns` is the end of the interval, which a live world samples a little late.
    """
    import polars as pl  # noqa: PLC0415 - most runs have no such flow

    interval_ns = record.interval_ns("throughput")
    rows = record.udp.sort("flow", "t_ns", maintain_order=True)
    if rows.height == 0:
        return rows
    rows = rows.with_columns(t_ns=pl.Series(ends_ns(rows["t_ns"].to_numpy(), interval_ns)))
    # A run that was cut short has no totals.
    sent, dropped = (record.totals(column) for column in ("sent_segments", "dropped_packets"))
    known = {
        flow["flow"]: (sent[row] if sent else None, dropped[row] if dropped else None)
        for row, flow in enumerate(record.flow_rows)
    }
    knows_drops = record.manifest.world == "sim"
    ends = _Ends(reached_ns=record.reached_ns, interval_ns=interval_ns, knows_drops=knows_drops)
    copies = _copies(record)
    lost = [
        _lost(one, _Flow(*known.get(flow, (None, None)), way_ns=_way_ns(record, flow), copied=copies), ends)
        for (flow,), one in rows.group_by("flow", maintain_order=True)
    ]
    return rows.with_columns(pl.Series("lost_packets", np.concatenate(lost)))


def of_packets(rows: pl.DataFrame) -> pl.Series:
    """The packets of each row of `udp_rows` of which its losses are a share.

    They are those that were sent then, as losses are of packets that were; where the record does not tell,
    those of which it is known what became of them.
    """
    if rows["sent_packets"].null_count():
        return rows["received_packets"] + rows["lost_packets"]
    return rows["sent_packets"].cast(rows["lost_packets"].dtype)


@dataclass(frozen=True)
class _Ends:
    """When the run ended, how long intervals are, in ns, and whether all drops on the way are known."""

    reached_ns: int
    interval_ns: int
    knows_drops: bool


@dataclass(frozen=True)
class _Flow:
    """Of a flow packets sent and dropped, if known, its path's least delay in ns, and if it makes copies."""

    sent: int | None
    dropped: int | None
    way_ns: int
    copied: bool


def _way_ns(record: Record, flow: int) -> int:
    """Least time that a packet of a flow takes on the scenario's path, in ns."""
    scenario = record.manifest.scenario
    if flow >= len(scenario["flows"]):
        return 0
    one, path, hosts = scenario["flows"][flow], scenario.get("path", {}), scenario.get("hosts", [])
    host = hosts[one["host"]]["delay_ns"] if one.get("host", 0) < len(hosts) else 0
    return int(sum(hop["delay_ns"] for hop in path.get(one["direction"], [])) + host)


def _copies(record: Record) -> bool:
    """Whether packets are doubled on the way: a copy may be dropped and the packet arrive."""
    hops = [hop for way in record.manifest.scenario.get("path", {}).values() for hop in way]
    return any(hop.get("duplicate") or "duplicate" in str(hop.get("queue", "")) for hop in hops)


def _lost(rows: pl.DataFrame, flow: _Flow, ends: _Ends) -> Counts:
    """Losses of a flow in each of its rows."""
    told = rows["lost_packets"].to_numpy().astype(np.int64)
    lost = np.zeros_like(told)
    at = rows["t_ns"].to_numpy()
    under_way = max(int(rows["delay_max_ns"].fill_null(0).to_numpy().max()), flow.way_ns) + ends.interval_ns
    since = np.searchsorted(at, at - under_way).tolist()
    if rows["sent_packets"].null_count():
        for row in np.flatnonzero(told).tolist():
            lost[row] = max(int(told[row]), 0)
            _take_back(lost, -int(told[row]), since[row])
        return lost
    received = rows["received_packets"].to_numpy().astype(np.int64)
    sent = np.cumsum(rows["sent_packets"].to_numpy().astype(np.int64))
    sent[-1] = max(int(sent[-1]), flow.sent or 0)
    silence = ends.reached_ns - int(at[received > 0].max(initial=0))
    ended = received.any() and silence >= SILENCE_NS + flow.way_ns
    overdue = at <= ends.reached_ns - (min(under_way, silence) if ended else under_way)
    due = int(sent[overdue][-1]) if overdue.any() else 0
    settled = np.cumsum(received + told)
    # Of the packets whose fate a row tells, `first` to `settled[row]`, some arrived and some did not.
    for row in np.flatnonzero(told).tolist():
        first = int(settled[row - 1]) if row else 0
        _share_out(lost, sent, (first, int(settled[row])), max(int(told[row]), 0), row)
        _take_back(lost, -int(told[row]), since[row])
    last = max(int(settled[-1]), due)
    _share_out(lost, sent, (int(settled[-1]), last), last - int(settled[-1]), told.size - 1)
    # Receivers of older records took nothing back: what is more than can be missing was overtaken.
    _take_back(lost, int(lost.sum() + received.sum() - sent[-1]))
    dropped = flow.dropped or 0
    if ends.knows_drops and flow.dropped is not None:
        _take_back(lost, min(int(sent[-1]) - due, int(lost.sum()) - dropped), int(overdue.sum()))
    elif (told < 0).any():
        _take_back(lost, min(int(lost[~overdue].sum()), int(lost.sum()) - dropped), int(overdue.sum()))
    unseen, behind = dropped - int(lost.sum()), int(sent[-1]) - last
    if 0 < unseen <= behind and not flow.copied:
        _share_out(lost, sent, (last, int(sent[-1])), unseen, told.size - 1)
    return lost


def _take_back(lost: Counts, count: int, since: int = 0) -> None:
    """Takes so many losses back, if any: of row `since` and later, then any, the first that were told first.

    A row tells what was found missing less what came, so that a row which tells neither may have had both.
    """
    if count <= 0:
        return
    for rows in (lost[since:], lost):
        until = np.cumsum(rows)
        taken = max(min(count, int(rows.sum())), 0)
        rows[:] = np.diff(np.maximum(until - taken, 0), prepend=0)
        count -= taken


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
