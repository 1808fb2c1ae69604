"""Why a test of a path should not be trusted, or only in part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.stats import quantile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.record import Record
    from weirlab.scores import Measured


def warnings_of(record: Record, figures: Measured) -> list[str]:
    """One sentence each."""
    said = record.manifest.model_extra or {}
    return [
        *_of_this_machine(record, said),
        *_of_the_server(said, figures),
        *_of_the_samples(record, said, figures),
        *_of_the_flows(record),
    ]


def _of_this_machine(record: Record, said: dict[str, Any]) -> Iterator[str]:
    cpu = said.get("own_cpu_percent") or 0.0
    if cpu > MOST_CPU_PERCENT:
        yield f"this program used {cpu:.0f} % of a processor: the machine may be the bottleneck"
    late = quantile(record.latency["timer_error_ns"], 0.99)
    if late is not None and late > MOST_LATE_NS:
        yield f"pings left up to {late / 1e6:.1f} ms late (p99): this machine was busy"
    machine = said.get("machine") or {}
    if machine.get("wireless"):
        saves = {True: " and saves power", None: " and may save power"}.get(machine.get("power_save"), "")
        yield (f"`{machine['interface']}` is wireless{saves}: its queue, airtime and sleep count too")


def _of_the_server(said: dict[str, Any], figures: Measured) -> Iterator[str]:
    if figures.idle.min > FAR_MS:
        yield (
            f"the server is {figures.idle.min:.0f} ms away: the bottleneck may be far, and TCP "
            "takes long to fill the line"
        )
    if figures.idle.p95 > 3 * figures.idle.median and figures.idle.p95 - figures.idle.median > BUSY_MS:
        yield "pings varied a lot before there was any load: the line was in use by others, or is wireless"
    limited = (said.get("echoes") or {}).get("limited", 0)
    if limited:
        yield f"the server left {limited} pings unanswered because there were too many: they count as lost"
    rate = ((said.get("server") or {}).get("limits") or {}).get("rate_bps")
    if rate:
        yield f"the server gives this address {rate / 1e6:g} Mbit/s at most: that may be the bottleneck"


def _of_the_samples(record: Record, said: dict[str, Any], figures: Measured) -> Iterator[str]:
    few = [name for name, one in figures.loaded.items() if one.rtt_ms.size < FEWEST]
    if figures.idle.count < FEWEST:
        few.insert(0, "idle")
    if few:
        yield f"fewer than {FEWEST} pings were answered in phase {', '.join(few)}: too few for percentiles"
    for ramp in said.get("ramps", []):
        if ramp["full_ns"] is None:
            yield (
                f"{ramp['flows']} flows did not fill the line in phase {ramp['phase']}: its throughput is a "
                "lower bound, and so is its latency"
            )
    if not record.manifest.complete:
        yield f"the test was cut short at {record.reached_ns / 1e9:.1f} s"


def _of_the_flows(record: Record) -> Iterator[str]:
    for name, direction in (("download", "down"), ("upload", "up")):
        span = record.phase(name)
        flows = record.flow_names.filter(pl.col("direction") == direction)["flow"].to_list()
        rows = record.throughput.filter(pl.col("flow").is_in(flows) & (pl.col("bytes") > 0))
        if span is None:
            continue
        inside = rows.filter((pl.col("t_ns") > span[0]) & (pl.col("t_ns") <= span[1]))["t_ns"].max()
        last = inside if isinstance(inside, int) else span[0]
        if last - span[0] < LEAST_SHARE * (span[1] - span[0]):
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
    if busy and window > MOST_WINDOW * busy:
        yield (
            f"senders waited {window / busy:.0%} of their time for the receiver's window: "
            "the line may carry more"
        )


MOST_CPU_PERCENT = 80.0
MOST_LATE_NS = 2_000_000
FAR_MS = 100.0
BUSY_MS = 10.0
FEWEST = 100
LEAST_SHARE = 0.9
"""Of a phase in which data must have come: less is a truncated test."""
MOST_WINDOW = 0.2
