"""Applications: how long pages, names and segments of videos took, and how a video played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from weirlab.stats.pings import load_window_ns

if TYPE_CHECKING:
    import polars as pl

    from weirlab.record import Record

Application = Literal["web", "video", "dns"]

APPLICATIONS: tuple[Application, ...] = ("web", "video", "dns")
"""What makes a flow of a test an application, and the record's protocol of that flow."""


@dataclass(frozen=True, kw_only=True)
class VideoSummary:
    """How a video played.

    Attributes:
        bitrate_mbps: mean over the segments that came, in Mbit/s; None if none did.
        switches: how often the bitrate changed from one segment to the next.
        stalls: how often the picture stood still within the span; None if there was no picture in it.
        stalled_ms: for how long within the span all of them together, in ms; None if there was no picture.
        stalled_rate: share of the time from the first picture on, within the span, for which it stood still,
            0 to 1; None if there was no picture.
        startup_ms: from its start to the first picture, in ms; None unless it starts within the span and has
            one.
    """

    bitrate_mbps: float | None
    switches: int
    stalls: int | None
    stalled_ms: float | None
    stalled_rate: float | None
    startup_ms: float | None


@dataclass(frozen=True, kw_only=True)
class TransferSummary:
    """What an application asked for within a span, such as the load, and how a video played in it.

    Attributes:
        kind: what asks: `web`, `video` or `dns`.
        done: how many came.
        given_up: how many the application gave up waiting for.
        cut: how many were under way when the flow stopped.
        failed_rate: given_up / (done + given_up); None if there were none.
        mean_ms, median_ms, p95_ms, max_ms: how long those took that came, in ms; None if none did.
        first_byte_ms: mean time to the first byte of those that came, in ms.
        idle_ms: mean time of those that began before the load and came, in ms; None without any.
        response: idle_ms / mean_ms: 1 where load makes it no slower; None if one of both is not known.
        video: how it played; None of what is no video.
    """

    kind: Application
    done: int
    given_up: int
    cut: int
    failed_rate: float | None
    mean_ms: float | None
    median_ms: float | None
    p95_ms: float | None
    max_ms: float | None
    first_byte_ms: float | None
    idle_ms: float | None
    response: float | None
    video: VideoSummary | None


def transfer_summaries(record: Record, span_ns: tuple[int, int] | None = None) -> dict[str, TransferSummary]:
    """What became of what each application of a record asked for, by the flow's name.

    Args:
        record: the run.
        span_ns: of what began within this span, its start and end in ns since the run began; without it that
            of the load, or the whole run if it has none.
    """
    start, end = span_ns or load_window_ns(record)
    idle = record.phase("idle")
    ends = ends_ns(record)
    found = {}
    for number, name, kind in applications(record):
        rows = record.transfers
        rows = rows.filter(rows["flow"] == number)
        before = durations_ms(began_in(rows, *idle)) if idle else np.empty(0)
        base = float(before.mean()) if before.size and idle != (start, end) else None
        video = _video(rows, (start, min(end, ends[number]))) if kind == "video" else None
        found[name] = _summary(kind, began_in(rows, start, end), base, video)
    return found


def applications(record: Record) -> list[tuple[int, str, Application]]:
    """Number, name and kind of each flow that is an application."""
    rows = record.flow_rows
    return [(row["flow"], row["name"], row["protocol"]) for row in rows if row["protocol"] in APPLICATIONS]


def ends_ns(record: Record) -> dict[int, int]:
    """When each flow ended, at the latest with the run, by its number."""
    return {flow["flow"]: min(flow["stop_ns"], record.reached_ns) for flow in record.flow_rows}


def began_in(rows: pl.DataFrame, start_ns: int, end_ns: int) -> pl.DataFrame:
    """The rows of `transfers` that began within a span."""
    return rows.filter((rows["t_ns"] >= start_ns) & (rows["t_ns"] < end_ns))


def durations_ms(rows: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How long those took that came, in ms, in the order in which they did."""
    return rows.filter(rows["outcome"] == "done")["took_ns"].cast(float).to_numpy() / 1e6


def completion_ms(record: Record) -> dict[str, float | None]:
    """How long each flow of fixed size took until all was delivered, in ms, by name; None if it was not.

    Time runs from the planned start of the flow.
    """
    sized = {n for n, flow in enumerate(record.manifest.scenario["flows"]) if flow.get("bytes")}
    if not sized:
        return {}
    ended = record.totals("completed_ns") or [None] * len(record.flow_rows)
    return {
        flow["name"]: None if completed is None else (completed - flow["start_ns"]) / 1e6
        for flow, completed in zip(record.flow_rows, ended, strict=True)
        if flow["flow"] in sized
    }


def _summary(
    kind: Application, rows: pl.DataFrame, idle_ms: float | None, video: VideoSummary | None
) -> TransferSummary:
    outcomes = rows["outcome"]
    done, given_up, cut = (int((outcomes == word).sum()) for word in ("done", "given_up", "cut"))
    took = durations_ms(rows)
    first = rows.filter(rows["outcome"] == "done")["first_byte_ns"].drop_nulls()
    mean = float(took.mean()) if took.size else None
    return TransferSummary(
        kind=kind,
        done=done,
        given_up=given_up,
        cut=cut,
        failed_rate=given_up / (done + given_up) if done + given_up else None,
        mean_ms=mean,
        median_ms=float(np.median(took)) if took.size else None,
        p95_ms=float(np.quantile(took, 0.95)) if took.size else None,
        max_ms=float(took.max()) if took.size else None,
        first_byte_ms=float(first.mean()) / 1e6 if first.len() else None,  # type: ignore[arg-type]
        idle_ms=idle_ms,
        response=idle_ms / mean if idle_ms is not None and mean else None,
        video=video,
    )


def _video(rows: pl.DataFrame, span_ns: tuple[int, int]) -> VideoSummary:
    """How a video, all rows of which these are, played within a span that ends with the video or before."""
    begun = began_in(rows, *span_ns)
    came = begun.filter(begun["outcome"] == "done")
    rates = came["bitrate_bps"].cast(float).to_numpy()
    first = came.filter(came["seq"] == 0)
    stalls_ns = _stalls_ns(rows, span_ns)
    played_ns = _with_a_picture_ns(rows, span_ns)
    stalled_ns = sum(stalls_ns)
    return VideoSummary(
        bitrate_mbps=float(rates.mean()) / 1e6 if rates.size else None,
        switches=int((np.diff(rates) != 0).sum()),
        stalls=len(stalls_ns) if played_ns else None,
        stalled_ms=stalled_ns / 1e6 if played_ns else None,
        stalled_rate=stalled_ns / played_ns if played_ns else None,
        startup_ms=float(first["took_ns"][0]) / 1e6 if first.height else None,
    )


def _stalls_ns(rows: pl.DataFrame, span_ns: tuple[int, int]) -> list[int]:
    """For how long within a span the picture stood still, in ns, for each time that it did.

    It does so from the moment at which the buffer is empty until the segment is there, or the video ends.
    """
    ended = (rows["t_ns"] + rows["took_ns"]).to_list()
    lasted = rows["stalled_ns"].fill_null(0).to_list()
    within = (min(end, span_ns[1]) - max(end - ns, span_ns[0]) for end, ns in zip(ended, lasted, strict=True))
    return [ns for ns in within if ns > 0]


def _with_a_picture_ns(rows: pl.DataFrame, span_ns: tuple[int, int]) -> int:
    """For how long within a span there was a picture, moving or not, as far as is known, in ns.

    Of a run that was killed the last row tells until when what was loaded plays on.
    """
    first = rows.filter((rows["seq"] == 0) & (rows["outcome"] == "done"))
    if not first.height:
        return 0
    began = int(first["t_ns"][0]) + int(first["took_ns"][0])
    known: int = max((rows["t_ns"] + rows["took_ns"] + rows["buffer_ns"].fill_null(0)).to_list())
    return max(0, min(span_ns[1], known) - max(span_ns[0], began))
