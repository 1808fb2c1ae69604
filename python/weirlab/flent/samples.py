"""Tables of a record, made of the samples of a Flent file."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.errors import RecordError
from weirlab.flent.document import MAX_LENGTH_S, MAX_STEPS, number
from weirlab.record.tables import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weirlab.flent.document import Document, Point
    from weirlab.flent.series import Ping, Series, Stream

    Numbers = NDArray[np.floating[Any]]


def zero_s(document: Document, series: Series) -> float:
    """Time 0 of the record in seconds since 1970: T0, or when the first ping was sent or interval began.

    T0 is the time of the first sample, which is the end of what it tells.

    Raises:
        RecordError: if a sample lies far from T0, or all lie before the test or behind it.
    """
    times = [(point["t"], _sent_s(ping, point), ping.name) for ping in series.pings for point in ping.points]
    times += [
        (point["t"], _began_s(point, document.step_s), stream.name)
        for stream in series.streams
        for point in stream.points
    ]
    for when, _, name in times:
        if not -MAX_EARLY_S <= when - document.t0_s <= MAX_LENGTH_S:
            raise RecordError(
                f"a sample of `{name}` lies {when - document.t0_s:.6g} s behind T0; from -{MAX_EARLY_S} to "
                f"{MAX_LENGTH_S} s are read"
            )
    _check_within(document, [when for when, _, _ in times])
    return min([document.t0_s, *(sent for _, sent, _ in times)])


def _check_within(document: Document, times: Sequence[float]) -> None:
    """Refuses a file whose T0 says another time than all its samples: nothing in it could be placed."""
    if not times:
        return
    begins_s = document.t0_s - document.step_s
    ends_s = document.t0_s + max([document.total_s, *document.x_values[-1:]]) + document.step_s
    if max(times) < begins_s or min(times) > ends_s:
        ahead_s = min(times) - document.t0_s
        raise RecordError(
            f"no sample lies within the time of its test: the first is {ahead_s:.6g} s after T0"
        )


def latency(pings: Sequence[Ping], zero: float, *, one_clock: bool = False) -> pl.DataFrame:
    """The table `latency`: a row a ping, lost ones too where the file tells them.

    Args:
        pings: the series.
        zero: time 0 of the record in seconds since 1970.
        one_clock: whether one-way delays are those of one clock, as in all files that Weir wrote.

    Raises:
        RecordError: if numbers of pings leave too large a gap.
    """
    tables = [_pings(number_, ping, zero, one_clock=one_clock) for number_, ping in enumerate(pings)]
    return pl.concat(tables) if tables else pl.DataFrame(schema=schema("latency"))


def throughput(streams: Sequence[Stream], zero: float, step_s: float) -> pl.DataFrame:
    """The table `throughput`: bytes of each stream on the file's steps.

    Intervals of Flent's tools have no fixed length. Their bytes are spread evenly over them and are summed on
    steps of `step_s`, so that none is lost or counted twice.

    Raises:
        RecordError: if that makes too many rows.
    """
    tables = [pl.DataFrame(schema=schema("throughput"))]
    rows = 0
    for flow, stream in enumerate(streams):
        starts, ends, counts = _intervals(stream, zero, step_s)
        if ends.size == 0:
            continue
        # In seconds the beginning of a step may lie a little before or behind it: 0.6 // 0.2 is 2.
        begin, end = (round(max(at, 0) / step_s, 6) for at in (starts[0], ends[-1]))
        first, last = int(begin), int(np.ceil(end))
        rows += last - first
        if last > MAX_STEPS:
            far = f"`{stream.name}` goes on for {last} steps of {step_s:g} s"
            raise RecordError(f"{far}; {MAX_STEPS} are read at most")
        if rows > MAX_ROWS:
            raise RecordError(
                f"its streams have {rows} steps of {step_s:g} s together; {MAX_ROWS} are read at most"
            )
        edges = np.arange(first, last + 1) * step_s
        times = np.column_stack([starts, ends]).ravel()
        sums = np.cumsum(counts)
        until = np.column_stack([np.concatenate([[0.0], sums[:-1]]), sums]).ravel()
        arrived = np.diff(np.rint(np.interp(edges, times, until))).astype(np.int64)
        ends_ns = np.rint(edges[1:] * 1e9).astype(np.int64)
        tables.append(_table("throughput", t_ns=ends_ns, flow=np.full(arrived.size, flow), bytes=arrived))
    return pl.concat(tables).sort("t_ns", "flow")


def tcp(document: Document, streams: Sequence[Stream], zero: float) -> pl.DataFrame:
    """The table `tcp`: what `ss` told of the sending sockets, if it was asked."""
    tables = [pl.DataFrame(schema=schema("tcp"))]
    for flow, stream in enumerate(streams):
        told = [point for point in document.raw_values.get(stream.name, []) if "tcp_cwnd" in point]
        told = told or _sockets_on_steps(document, stream.name)
        columns: dict[str, list[int | None]] = {
            column: [_scaled(point.get(key), factor) for point in told]
            for column, (key, factor) in OF_SOCKETS.items()
        }
        times = [_scaled(point["t"] - zero, 1e9) for point in told]
        tables.append(_table("tcp", t_ns=times, flow=[flow] * len(told), **columns))
    return pl.concat(tables).sort("t_ns", "flow")


def _sockets_on_steps(document: Document, stream: str) -> list[Point]:
    """What was told of the sockets of a stream on the file's steps, where single samples are gone."""
    keys = [key for key, _ in OF_SOCKETS.values()]
    told = {key: document.results.get(f"{stream}::{key}", []) for key in keys}
    points = []
    for place, x in enumerate(document.x_values):
        there = {key: values[place] for key, values in told.items() if values and values[place] is not None}
        if there:
            points.append({"t": document.t0_s + x, **there})
    return points


def gap_s(stream: Stream, step_s: float) -> float:
    """The longest gap between values on steps, in seconds; 0 without one, and of single samples."""
    times = [point["t"] for point in stream.points] if stream.on_steps else []
    longest = max((after - before for before, after in pairwise(times)), default=0.0)
    return longest if longest > 1.5 * step_s else 0.0


def flows(streams: Sequence[Stream], *, is_measured: bool = False) -> pl.DataFrame:
    """The table `flows`: the totals that netperf told; the rest is not known.

    Args:
        streams: the series.
        is_measured: whether Weir itself measured what the file tells. netperf's 0 of what a download resent
            may stand for what it does not know.
    """
    delivered: list[int | None] = [
        _scaled(one.meta.get("BYTES_RECVD"), 1) if is_measured or one.direction == "down" else None
        for one in streams
    ]
    again = [
        count_of(one.meta.get("TCP_RETRANSMIT"))
        if (is_measured or one.direction == "up") and not one.is_udp
        else None
        for one in streams
    ]
    return _table(
        "flows",
        flow=list(range(len(streams))),
        delivered_bytes=delivered,
        retransmitted_segments=again,
    )


def _pings(probe: int, ping: Ping, zero: float, *, one_clock: bool) -> pl.DataFrame:
    rows: list[dict[str, int | None]] = []
    for point in ping.points:
        value = number(point.get("val"))
        lost = point.get("lost") not in (None, False, "false")
        if value is None and not lost:
            continue
        sent_ns = round((_sent_s(ping, point) - zero) * 1e9)
        row: dict[str, int | None] = {"t_ns": sent_ns, "seq": _scaled(point.get("seq"), 1)}
        up, down = number(point.get("owd_up")), number(point.get("owd_down"))
        if one_clock:
            # Of a ping whose answer was lost that to the server is known.
            row["up_ns"], row["down_ns"] = _way_ns(up), None if lost else _way_ns(down)
        if not lost and value is not None and 0 <= value <= MAX_RTT_MS:
            rtt_ns = row["rtt_ns"] = round(value * 1e6)
            if not one_clock:
                row |= _server_times(sent_ns, rtt_ns, up, down)
        elif not lost:
            raise RecordError(
                f"a sample of `{ping.name}` is {value:g} ms; a round trip takes 0 to {MAX_RTT_MS} ms"
            )
        rows.append(row)
    if ping.kind == "icmp" and ping.losses_known:
        rows += _unanswered(ping, rows)
    columns = {name: [row.get(name) for row in rows] for name in OF_PINGS}
    return _table("latency", probe=[probe] * len(rows), **columns)


def _server_times(sent_ns: int, rtt_ns: int, up: float | None, down: float | None) -> dict[str, int | None]:
    """When the server had a ping by its own clock: irtt tells delays between both, which nobody set."""
    received, sent = (way is not None and abs(way) <= MAX_RTT_MS * 1e6 for way in (up, down))
    return {
        "server_received_ns": sent_ns + round((up or 0.0) * 1e6) if received else None,
        "server_sent_ns": sent_ns + rtt_ns - round((down or 0.0) * 1e6) if sent else None,
    }


def _way_ns(delay_ms: float | None) -> int | None:
    """A one-way delay of a single clock, if it can be one."""
    return round(delay_ms * 1e6) if delay_ms is not None and 0 <= delay_ms <= MAX_RTT_MS else None


def _unanswered(ping: Ping, rows: Sequence[dict[str, int | None]]) -> list[dict[str, int | None]]:
    """Pings whose numbers are missing: ping and fping tell the answered ones only.

    When they were sent is taken to lie evenly between their neighbours.
    """
    known = {row["seq"]: row["t_ns"] or 0 for row in rows if row["seq"] is not None}
    numbers = sorted(known)
    if len(numbers) < 2:
        return []
    missing = numbers[-1] - numbers[0] + 1 - len(numbers)
    if missing > MAX_LOST:
        raise RecordError(f"`{ping.name}`: {missing} numbers of pings are missing; {MAX_LOST} may be at most")
    absent = [one for one in range(numbers[0], numbers[-1]) if one not in known]
    times = np.interp(absent, numbers, [float(known[one]) for one in numbers])
    return [{"seq": one, "t_ns": round(time)} for one, time in zip(absent, times, strict=True)]


def _began_s(point: Point, step_s: float) -> float:
    """When the interval of a sample of a stream began, if it is no longer than intervals are."""
    length = number(point.get("dur"))
    return float(point["t"]) - (length if length is not None and 0 < length <= 5 * step_s else 0.0)


def _sent_s(ping: Ping, point: Point) -> float:
    """When a ping was sent, or a page asked for: before its answer, whose time an answered sample has.

    A mean over an interval keeps its own time, the end of the interval.
    """
    value = None if ping.means or point.get("lost") else number(point.get("val"))
    return float(point["t"]) - (value / 1e3 if value and 0 < value <= MAX_RTT_MS else 0.0)


def _intervals(stream: Stream, zero: float, step_s: float) -> tuple[Numbers, Numbers, Numbers]:
    """Beginning and end of each interval of a stream in seconds, and its bytes."""
    starts, ends, counts = [], [], []
    before: float | None = None
    # Values on steps have a gap where an interval was long: the value behind it is the mean over it.
    usual_s = step_s if stream.on_steps else _usual_s(stream, step_s)
    most = MAX_LENGTH_S if stream.on_steps else 1.5 * usual_s
    for point in stream.points:
        rate, end = number(point.get("val")), float(point["t"]) - zero
        if rate is None:
            continue
        if not 0 <= rate <= MAX_MBPS:
            raise RecordError(f"a stream of {rate:g} Mbit/s: it can have 0 to {MAX_MBPS:g}")
        told = number(point.get("dur"))
        length = told if told is not None and 0 < told <= MAX_LENGTH_S else None
        if length is None:
            length = usual_s if before is None or end <= before else min(end - before, most)
        start = max(end - length, 0.0 if before is None else before)
        if start >= end:
            continue
        starts.append(start)
        ends.append(end)
        counts.append(rate * 1e6 / 8 * length)
        before = end
    return np.array(starts), np.array(ends), np.array(counts)


def _usual_s(stream: Stream, step_s: float) -> float:
    """How long an interval is as a rule: iperf's do not tell it, and some are half a second long."""
    times = [float(point["t"]) for point in stream.points]
    lengths = [after - before for before, after in pairwise(times) if after > before]
    return min(median(lengths), MAX_LENGTH_S) if lengths else step_s


def _scaled(value: object, factor: float) -> int | None:
    found = number(value)
    return None if found is None or not 0 <= found * factor < 2**63 else round(found * factor)


def count_of(value: object) -> int | None:
    """A count, which some versions of Flent wrote as text."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 19 else None
    return _scaled(value, 1)


def _table(name: str, **columns: Any) -> pl.DataFrame:
    """A table of a record; columns that are not given are null."""
    kinds = schema(name)
    given = pl.DataFrame(
        {column: pl.Series(values, dtype=kinds[column]) for column, values in columns.items()}
    )
    missing = [pl.lit(None, kind).alias(column) for column, kind in kinds.items() if column not in columns]
    return given.with_columns(missing).select(*kinds)


OF_PINGS = ("t_ns", "seq", "rtt_ns", "up_ns", "down_ns", "server_received_ns", "server_sent_ns")

OF_SOCKETS = {
    "cwnd_segments": ("tcp_cwnd", 1.0),
    "srtt_ns": ("tcp_rtt", 1e6),
    "rttvar_ns": ("tcp_rtt_var", 1e6),
    "pacing_rate_bps": ("tcp_pacing_rate", 1e6),
    "delivery_rate_bps": ("tcp_delivery_rate", 1e6),
}
"""Flent's name of each column of `tcp`, and the factor from its unit to the column's."""

MAX_ROWS = 5_000_000
"""Rows of a table at most: half of what a part file of a record may have."""

MAX_LOST = 1_000_000
"""Unanswered pings between answered ones: a day and a half of them at ten a second."""

MAX_EARLY_S = 3600
"""How far a sample may lie before T0, which is that of the first one."""

MAX_RTT_MS = 3_600_000
"""An hour."""

MAX_MBPS = 10_000_000.0
"""10 Tbit/s."""
