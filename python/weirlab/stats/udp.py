"""UDP flows: what their receivers counted, and how good a voice stream sounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.stats.e_model import MIN_MOS, mos
from weirlab.stats.pings import load_window_ns
from weirlab.stats.udp_losses import of_packets, udp_rows

if TYPE_CHECKING:
    from collections.abc import Collection

    import polars as pl

    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class VoiceSummary:
    """A voice stream during the load, second by second, as the E-model of ITU-T G.107 rates it.

    Attributes:
        mos: mean opinion score of the whole load, from its mean delay and its loss, 1 to 4.5.
        mos_median, mos_min: of the scores of each second.
        mouth_to_ear_ms: mean time from speaking to hearing, in ms: the time that a packet takes to fill, its
            way, and the time that the jitter buffer held it back; None if nothing was played out.
        late_rate: share of the packets that came too late for the jitter buffer, 0 to 1.
    """

    mos: float
    mos_median: float
    mos_min: float
    mouth_to_ear_ms: float | None
    late_rate: float


@dataclass(frozen=True, kw_only=True)
class UdpSummary:
    """A UDP flow during the load.

    Attributes:
        received: packets that arrived.
        lost: packets that never arrived, as far as the record tells: see `udp_rows`.
        packets: packets of which `loss_rate` is a share: those sent in the same time; received + lost where
            the record does not tell how many were; of a flow of which nothing arrived in the whole run, all
            that it sent.
        loss_rate: lost / packets; None if there were none, 1 if nothing of it arrived in the whole run
            although it sent.
        delay_mean_ms, delay_max_ms: one way, in ms; None if nothing arrived.
        jitter_ms: mean of the interarrival jitter (RFC 3550) over the load, in ms.
        voice: how good it sounded; None if it is no voice stream, or none of its packets had come yet or was
            missing.
    """

    received: int
    lost: int
    packets: int
    loss_rate: float | None
    delay_mean_ms: float | None
    delay_max_ms: float | None
    jitter_ms: float
    voice: VoiceSummary | None


def udp_summaries(record: Record, span_ns: tuple[int, int] | None = None) -> dict[str, UdpSummary]:
    """What became of each UDP flow of a record, by name.

    Args:
        record: the run.
        span_ns: within this span, its start and end in ns since the run began; without it that of the load,
            or the whole run if it has none.
    """
    if not record.columns("udp").height:
        return {}
    import polars as pl  # noqa: PLC0415 - most runs have no such flow

    start, end = span_ns or load_window_ns(record)
    every, starved = udp_rows(record), _starved(record)
    within = (pl.col("t_ns") > start) & (pl.col("t_ns") <= end)
    each = every.filter(within).partition_by("flow", as_dict=True)
    spoken = _spoken(every, starved).filter(within)
    return {
        name: _summary(
            each[number,],
            spoken.filter(pl.col("flow") == number),
            _packet_ms(record, number),
            starved.get(number),
        )
        for number, name in record.flow_names.select("flow", "name").iter_rows()
        if (number,) in each
    }


def mos_by_second(record: Record, flow: int, rows: pl.DataFrame) -> pl.DataFrame:
    """The mean opinion score of a voice stream in each second of the run: `t_s`, the middle, and `mos`.

    There are no rows for a flow that is no voice stream.

    Args:
        record: the run.
        flow: the number of the flow.
        rows: the record's `udp_rows`.
    """
    import polars as pl  # noqa: PLC0415

    rows = _spoken(rows.filter(pl.col("flow") == flow), _starved(record))
    return _by_second(rows, _packet_ms(record, flow))


def _spoken(rows: pl.DataFrame, starved: Collection[int]) -> pl.DataFrame:
    """The rows of voice streams from the first packet on that came or is missing.

    Before it nothing was to be played out, which is no silence. Of the flows `starved`, of which nothing
    came, it is not known when it was to come.

    Args:
        rows: all rows of these flows, as `udp_rows` has them.
        starved: flows of which nothing came, and the record does not tell when they sent.
    """
    import polars as pl  # noqa: PLC0415

    known = (pl.col("received_packets") + pl.col("lost_packets")).cum_sum().over("flow")
    rows = rows.filter((known > 0) | pl.col("flow").is_in(list(starved)))
    return rows.filter(pl.col("late_packets").is_not_null())


def _packet_ms(record: Record, flow: int) -> float:
    """Time that a packet of a UDP flow takes to fill at its rate, in ms; 0 where that is not known."""
    load = record.manifest.scenario["flows"][flow].get("udp")
    known = load and load["payload_bytes"] and load["rate_bps"]
    return float(8000 * load["payload_bytes"] / load["rate_bps"]) if known else 0.0


def _starved(record: Record) -> dict[int, int]:
    """What flows sent of which nothing arrived, in packets, where the record does not tell when they did."""
    import polars as pl  # noqa: PLC0415

    arrived = record.udp.group_by("flow").agg(
        pl.col("received_packets").sum(), pl.col("sent_packets").null_count().alias("unknown")
    )
    arrived = arrived.filter((pl.col("received_packets") == 0) & (pl.col("unknown") > 0))
    totals = arrived.join(record.flows, on="flow")
    if not totals.height:
        return {}
    return dict(totals.filter(pl.col("sent_segments") > 0).select("flow", "sent_segments").iter_rows())


def _summary(rows: pl.DataFrame, spoken: pl.DataFrame, packet_ms: float, starved: int | None) -> UdpSummary:
    """Figures of a flow: `spoken` are its rows of a call, `starved` what it sent if nothing of it arrived."""
    received, lost = int(rows["received_packets"].sum()), int(rows["lost_packets"].sum())
    packets = starved or (int(of_packets(rows).sum()) if received + lost else 0)
    loss_rate = lost / packets if packets else None
    delays = rows.drop_nulls("delay_mean_ns")
    mean_ns = (delays["delay_mean_ns"] * delays["received_packets"]).sum()
    return UdpSummary(
        received=received,
        lost=lost,
        packets=packets,
        loss_rate=1.0 if starved else loss_rate,
        delay_mean_ms=float(mean_ns) / received / 1e6 if received else None,
        delay_max_ms=float(delays["delay_max_ns"].max()) / 1e6 if received else None,  # type: ignore[arg-type]
        jitter_ms=float(rows["jitter_ns"].mean()) / 1e6,  # type: ignore[arg-type]
        voice=_voice(spoken, packet_ms),
    )


def _voice(rows: pl.DataFrame, packet_ms: float) -> VoiceSummary | None:
    if rows.height == 0:
        return None
    import polars as pl  # noqa: PLC0415

    totals = rows.select(pl.col(*_COUNTS).sum()).row(0)
    scores = _by_second(rows, packet_ms)["mos"]
    received, lost, late, _ = totals
    return VoiceSummary(
        mos=_score(packet_ms, *totals),
        mos_median=float(scores.median()),  # type: ignore[arg-type]
        mos_min=float(scores.min()),  # type: ignore[arg-type]
        mouth_to_ear_ms=_mouth_to_ear_ms(packet_ms, *totals),
        late_rate=late / (received + lost) if received + lost else 0.0,
    )


def _by_second(rows: pl.DataFrame, packet_ms: float) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    # A row belongs to the second in which its interval ends, that of the last nanosecond included.
    second = ((pl.col("t_ns") - 1) // 1_000_000_000).alias("second")
    each = rows.group_by(second).agg(pl.col(*_COUNTS).sum()).sort("second")
    return pl.DataFrame(
        {
            "t_s": [number + 0.5 for number in each["second"]],
            "mos": [_score(packet_ms, *counts) for counts in each.select(_COUNTS).iter_rows()],
        },
        schema={"t_s": pl.Float64, "mos": pl.Float64},
    )


def _score(packet_ms: float, received: int, lost: int, late: int, playout_sum_ns: int) -> float:
    """The mean opinion score of packets; silence, in which nothing is played out, is the worst there is."""
    delay_ms = _mouth_to_ear_ms(packet_ms, received, lost, late, playout_sum_ns)
    if delay_ms is None:
        return MIN_MOS
    return mos(delay_ms, (lost + late) / (received + lost))


def _mouth_to_ear_ms(
    packet_ms: float, received: int, lost: int, late: int, playout_sum_ns: int
) -> float | None:
    del lost
    played = received - late
    return packet_ms + playout_sum_ns / played / 1e6 if played else None


_COUNTS = ["received_packets", "lost_packets", "late_packets", "playout_sum_ns"]
