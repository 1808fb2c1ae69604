"""Why a test of a path should not be trusted, or only in part.

Every caution is one sentence that says what was seen and what it may do to the result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from weirlab import _native
from weirlab.net.methods import KNOWN
from weirlab.net.ping import MAX_LATENESS_NS
from weirlab.record import open_record
from weirlab.record.store import MANIFEST
from weirlab.stats import quantile
from weirlab.writing import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.record import MethodResult, Record
    from weirlab.scores import Measured
    from weirlab.scores.locate import Location


def warnings_of(record: Record, figures: Measured, place: Location | None = None) -> list[str]:
    """Cautions of a test of our own; `place` is where pings wait, if that was asked for."""
    said = record.manifest.extra
    return [
        *_native.cautions(json.dumps(said)),
        *_of_this_machine(record),
        *(text for one in _interfaces(said) for text in of_the_interface(one, figures)),
        *_of_the_server(figures),
        *_of_the_samples(figures),
        *_of_the_flows(record),
        *of_second_bottlenecks(figures, place),
    ]


def kept_warnings(record: Record, figures: Measured, place: Location | None = None) -> Record:
    """The record of a test of our own that has just been made, with these cautions among its own warnings.

    So whatever reads it tells them as the command did. That it was cut short stands in it already.

    Raises:
        WriteError: if they cannot be written.
    """
    file = record.path / MANIFEST
    manifest = json.loads(file.read_bytes())
    manifest["warnings"] = [*manifest["warnings"], *warnings_of(record, figures, place)]
    text = json.dumps(manifest, indent=2)
    replaced(file, lambda part: part.write_text(text, encoding="utf-8"))
    return open_record(record.path)


def warnings_of_method(result: MethodResult) -> list[str]:
    """Cautions of a foreign test, from what it shows."""
    return [*_of_its_ends(result), *_of_missing_figures(result)]


def _of_its_ends(result: MethodResult) -> Iterator[str]:
    if "truncated" in result:
        lengths = {"download": result["download_duration_s"], "upload": result["upload_duration_s"]}
        for direction in DIRECTIONS:
            if result["truncated"][direction]:
                seconds = lengths[direction]
                ended = "said nothing" if seconds is None else f"ended after {seconds:.1f} s"
                due = "where 10 s were due"
                yield f"the {direction} {ended} {due}: it is truncated, and its rate that of a part"
    if "latency_ms" in result:
        idle = result["latency_ms"]
        if idle is not None and idle > FAR_MS:
            yield _far(idle)


def _of_missing_figures(result: MethodResult) -> Iterator[str]:
    """Cautions of the registry about figures that the result should have and has not."""
    for caution in KNOWN[result["method"]]["cautions"]:
        *outer, name = caution["figure"]
        holder: Any = result
        for key in outer:
            holder = None if holder is None else holder[key]
        if holder is not None and holder[name] in (None, False):
            yield caution["says"].format_map(holder)


def _interfaces(said: dict[str, Any]) -> list[dict[str, Any]]:
    """The interfaces towards the servers; the first records have the only one as `machine`."""
    return said.get("interfaces") or [said.get("machine") or {}]


def of_the_interface(machine: dict[str, Any], figures: Measured) -> Iterator[str]:
    """Cautions about an interface towards servers, as `worlds.machine` describes it."""
    name = machine.get("interface")
    if machine.get("wireless"):
        saves = {True: " and saves power", None: " and may save power"}.get(machine.get("power_save"), "")
        yield f"`{name}` is wireless{saves}: its queue, airtime and sleep count too"
    signal = machine.get("signal_dbm")
    if signal is not None and signal < WEAK_DBM:
        yield f"`{name}` receives {signal:.0f} dBm: so weak a signal makes the radio the bottleneck"
    offloads = machine.get("offloads") or {}
    if offloads.get("lro"):
        yield f"`{name}` joins packets on arrival (large-receive-offload): arrivals come late and in clumps"
    upload = figures.loaded.get("upload")
    if not (offloads.get("tso") or offloads.get("gso")) or upload is None or not upload.up_mbps:
        return
    burst_ms = GSO_PACKET_BYTES * 8 / (upload.up_mbps * 1e3)
    if burst_ms > 1 and MIN_WAIT_MS < upload.increase_ms < 2 * burst_ms:
        yield (
            f"`{name}` sends GSO packets (tso, gso), up to {burst_ms:.0f} ms of this line each: waits of "
            f"{upload.increase_ms:.0f} ms in the upload may be theirs, not a router's"
        )


def of_second_bottlenecks(figures: Measured, place: Location | None) -> Iterator[str]:
    """Signs that something besides one line holds the traffic up."""
    if place is not None:
        for phase, hop in place.also.items():
            yield f"pings wait at {place.begins[phase]} and also at {hop} in phase {phase}: two bottlenecks"
    both = figures.loaded.get("load")
    alone = (figures.loaded.get("download"), figures.loaded.get("upload"))
    if both is None or alone[0] is None or alone[1] is None:
        return
    rates = (both.down_mbps, alone[0].down_mbps, both.up_mbps, alone[1].up_mbps)
    down, down_alone, up, up_alone = (rate or 0.0 for rate in rates)
    # A deep queue of acknowledgements slows the other direction too, and shows as latency.
    if not down_alone or not up_alone or both.increase_ms > SHORT_WAIT_MS:
        return
    shares = (down / down_alone, up / up_alone)
    if max(shares) < MAX_SHARED and sum(shares) < MAX_SUM_OF_SHARES:
        yield (
            f"download and upload at once reached {shares[0]:.0%} and {shares[1]:.0%} of what each had "
            "alone: they share something, such as a radio or a processor, besides the line"
        )


def _far(ms: float) -> str:
    return f"the server is {ms:.0f} ms away: the bottleneck may be far, and TCP takes long to fill the line"


def _of_this_machine(record: Record) -> Iterator[str]:
    late = quantile(record.latency["timer_error_ns"], 0.99)
    if late is not None and late > MAX_LATENESS_NS:
        yield f"pings left up to {late / 1e6:.1f} ms late (p99): this machine was busy"


def _of_the_server(figures: Measured) -> Iterator[str]:
    if figures.idle.min > FAR_MS:
        yield _far(figures.idle.min)
    if figures.idle.p95 > 3 * figures.idle.median and figures.idle.p95 - figures.idle.median > BUSY_MS:
        yield "pings varied a lot before there was any load: the line was in use by others, or is wireless"


def _of_the_samples(figures: Measured) -> Iterator[str]:
    few = [name for name, one in figures.loaded.items() if one.pings.answered < MIN_PINGS]
    if figures.idle.count < MIN_PINGS:
        few.insert(0, "idle")
    if few:
        yield f"fewer than {MIN_PINGS} pings were answered in phase {', '.join(few)}: too few for percentiles"


def _of_the_flows(record: Record) -> Iterator[str]:
    for name, direction in (("download", "down"), ("upload", "up")):
        span = record.phase(name)
        flows = record.flow_names.filter(pl.col("direction") == direction)["flow"].to_list()
        rows = record.throughput.filter(pl.col("flow").is_in(flows) & (pl.col("bytes") > 0))
        if span is None:
            continue
        inside = rows.filter((pl.col("t_ns") > span[0]) & (pl.col("t_ns") <= span[1]))["t_ns"].max()
        last = inside if isinstance(inside, int) else span[0]
        if last - span[0] < MIN_PHASE_SHARE * (span[1] - span[0]):
            yield (
                f"the {name} stopped after {(last - span[0]) / 1e9:.1f} of "
                f"{(span[1] - span[0]) / 1e9:.1f} s: it is truncated"
            )
    if "receive_window_limited_ns" not in record.tcp.columns:
        return
    ends = record.tcp.group_by("flow").agg(
        pl.col("busy_ns").max(), window=pl.col("receive_window_limited_ns").max()
    )
    busy, window = int(ends["busy_ns"].sum() or 0), int(ends["window"].sum() or 0)
    if busy and window > MAX_WINDOW_SHARE * busy:
        yield (
            f"senders waited {window / busy:.0%} of their time for the receiver's window: "
            "the line may carry more"
        )


DIRECTIONS: tuple[Literal["download", "upload"], ...] = ("download", "upload")
FAR_MS = 100.0
BUSY_MS = 10.0
MIN_PINGS = 100
MIN_PHASE_SHARE = 0.9
"""Share of a phase in which data must have come: less is a truncated test."""
MAX_WINDOW_SHARE = 0.2
WEAK_DBM = -75.0
"""802.11n asks of a receiver -64 dBm for its fastest rate and -74 dBm for the middle one (20 MHz)."""
GSO_PACKET_BYTES = 65_536
MIN_WAIT_MS = 1.0
SHORT_WAIT_MS = 30.0
MAX_SHARED = 0.8
"""Greatest share of its rate alone that a direction of a shared medium keeps beside the other.

A full-duplex line gives all of it but what acknowledgements take.
"""
MAX_SUM_OF_SHARES = 1.3
"""Greatest sum of both directions' shares on a shared medium, where they add up to about 1."""
