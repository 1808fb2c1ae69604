"""Figures of a record by name, as the statements of studies ask for them.

Each takes the record, the direction, and the beginning of the names of the flows that it is about; all flows
of the direction if that is empty. None if the record does not have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from weirlab.stats import goodputs_mbps, jain_index, load_window_ns, summarise, totals_mbps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.scenario import Direction
    from weirlab.stats import DirectionSummary

    Figure = Callable[[Record, Direction, str], float | None]


def goodput_mbps(record: Record, direction: Direction, flows: str) -> float | None:
    """Goodput of all flows together during the load, in Mbit/s."""
    per_flow = _per_flow(record, direction, flows)
    return sum(per_flow.values()) if per_flow else None


def share(record: Record, direction: Direction, flows: str) -> float | None:
    """The flows' goodput as a share of that of all flows of the direction."""
    every = goodput_mbps(record, direction, "")
    these = goodput_mbps(record, direction, flows)
    return these / every if these is not None and every else None


def jain(record: Record, direction: Direction, flows: str) -> float | None:
    """Jain's index of the flows' goodputs, each while the flow runs."""
    return jain_index(list(_per_flow(record, direction, flows, running=True).values()))


def unfairness(record: Record, direction: Direction, flows: str) -> float | None:
    """One less Jain's index of the flows' goodputs: 0 for equal ones."""
    found = jain(record, direction, flows)
    return None if found is None else 1 - found


def jain_together(record: Record, direction: Direction, flows: str) -> float | None:
    """Jain's index of the flows' goodputs while all of them run."""
    names = [name for name in record.flow_names["name"] if name.startswith(flows)]
    return jain_index(list(goodputs_mbps(record, direction, names=names, together=True).values()))


def jain_of_bytes(record: Record, direction: Direction, flows: str) -> float | None:
    """Jain's index of the bytes that the flows receive during the load, however long each runs.

    Of equal flows it is 1 only if all of them run equally long.
    """
    start, end = load_window_ns(record)
    chosen = _chosen(record, direction, flows)
    at = pl.col("t_ns")
    arrived = record.throughput.filter((at > start) & (at <= end) & pl.col("flow").is_in(chosen))
    by_flow = dict(arrived.group_by("flow").agg(pl.col("bytes").sum()).iter_rows())
    return jain_index([float(by_flow.get(number, 0)) for number in chosen])


def variability(record: Record, direction: Direction, flows: str) -> float | None:
    """How much single flows vary: interquartile range of a flow's rate over its median, mean of flows.

    Rates are means over a second, from five seconds behind the start of the load on, as slow start is no
    variation. A flow that receives nothing for more than half of the time has no such figure.
    """
    start, end = load_window_ns(record)
    heights = []
    chosen = pl.col("flow").is_in(_chosen(record, direction, flows))
    for name in record.flow_names.filter(chosen)["name"]:
        times, rate = _rate(record, direction, name)
        taken = rate[(times > start / SECOND + SETTLED_S) & (times <= end / SECOND)]
        low, middle, high = np.quantile(taken, [0.25, 0.5, 0.75])
        if middle > 0:
            heights.append((high - low) / middle)
    return float(np.mean(heights)) if heights else None


def rate_p25(record: Record, direction: Direction, flows: str) -> float | None:
    """The 25th percentile of the direction's total rate, in Mbit/s: the lower end of its box."""
    del flows
    return _number(totals_mbps(record, direction)["mbps"].quantile(0.25, "linear"))


def rate_p75(record: Record, direction: Direction, flows: str) -> float | None:
    """The 75th percentile of the direction's total rate, in Mbit/s: the upper end of its box."""
    del flows
    return _number(totals_mbps(record, direction)["mbps"].quantile(0.75, "linear"))


def rate_min(record: Record, direction: Direction, flows: str) -> float | None:
    """The least of the direction's total rates, in Mbit/s."""
    del flows
    return _number(totals_mbps(record, direction)["mbps"].min())


def rate_max(record: Record, direction: Direction, flows: str) -> float | None:
    """The greatest of the direction's total rates, in Mbit/s."""
    del flows
    return _number(totals_mbps(record, direction)["mbps"].max())


def idle_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The mean round trip of all pings on the idle line, in ms."""
    del direction, flows
    idle = summarise(record).latency.idle
    return idle.mean if idle else None


def loaded_median_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The median round trip of all pings under load, in ms."""
    del direction, flows
    loaded = summarise(record).latency.loaded
    return loaded.median if loaded else None


def within_15_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The share of the run's pings that took less than 15 ms."""
    del direction, flows
    return _within(record, 15)


def within_20_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The share of the run's pings that took less than 20 ms."""
    del direction, flows
    return _within(record, 20)


def within_50_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The share of the run's pings that took less than 50 ms."""
    del direction, flows
    return _within(record, 50)


def spread(record: Record, direction: Direction, flows: str) -> float | None:
    """The interquartile range of the direction's total rate over its median: how high its box is."""
    del flows
    rates = totals_mbps(record, direction)["mbps"]
    low, middle, high = (rates.quantile(q, "linear") for q in (0.25, 0.5, 0.75))
    return (high - low) / middle if low is not None and middle and high is not None else None


def increase_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The mean round trip of all pings under load, less that of the idle line, in ms."""
    del direction, flows
    return summarise(record).latency.increase_mean_ms


def loaded_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The mean round trip of all pings under load, in ms."""
    del direction, flows
    loaded = summarise(record).latency.loaded
    return loaded.mean if loaded else None


def p99_ms(record: Record, direction: Direction, flows: str) -> float | None:
    """The 99th percentile of the round trips under load, in ms."""
    del direction, flows
    loaded = summarise(record).latency.loaded
    return loaded.p99 if loaded else None


def utilisation(record: Record, direction: Direction, flows: str) -> float | None:
    """The share of the slowest line's capacity that was occupied."""
    del flows
    summary = _direction(record, direction)
    return summary.utilisation if summary else None


def synchronised(record: Record, direction: Direction, flows: str) -> float | None:
    """The share of the flows that lose in one loss event, averaged over all losses.

    A loss event begins with a first retransmission and lasts for one round trip as it is at that time; all
    flows that retransmit within it lose in the same event. Averaged over losses, an event counts as often as
    flows lost in it, so that 1 / (number of flows) means that no flow ever loses with another.
    """
    samples = _windows(record, direction, flows)
    count = samples["flow"].n_unique()
    lost = (
        samples.with_columns(new=pl.col("retransmits").diff().over("flow"))
        .filter(pl.col("new") > 0)
        .sort("t_ns")
    )
    if count == 0 or lost.height == 0:
        return None
    events: list[set[int]] = []
    ends = -1
    for t_ns, flow, srtt_ns in lost.select("t_ns", "flow", "srtt_ns").iter_rows():
        if t_ns > ends:
            events.append(set())
            ends = t_ns + (srtt_ns or 0)
        events[-1].add(flow)
    sizes = [len(event) for event in events]
    return sum(size * size for size in sizes) / sum(sizes) / count


def window_correlation(record: Record, direction: Direction, flows: str) -> float | None:
    """The mean correlation (Pearson) of what two flows' congestion windows change by in a round trip.

    Of the changes, not of the windows: flows that halve together may have quite different windows to halve.
    """
    samples = _windows(record, direction, flows)
    table = samples.pivot(on="flow", index="t_ns", values="cwnd_segments", aggregate_function="first")
    windows = table.drop("t_ns").drop_nulls().to_numpy().astype(float)
    srtt_ns = samples["srtt_ns"].drop_nulls().to_numpy()
    if windows.shape[0] < MIN_SAMPLES or not srtt_ns.size:
        return None
    lag = max(1, round(srtt_ns.mean() / record.interval_ns("tcp")))
    changes = windows[lag:] - windows[:-lag]
    moving = changes[:, changes.std(axis=0) > 0]
    if moving.shape[1] < 2:
        return None
    matrix = np.corrcoef(moving, rowvar=False)
    return float(matrix[np.triu_indices_from(matrix, k=1)].mean())


def takes_share_s(record: Record, direction: Direction, flows: str) -> float | None:
    """Seconds from the start of the flows until, over a second, they have 80 % of an even share.

    An even share is the flows' number out of all, of the direction's goodput while they run. The length of
    their run if they never have it.
    """
    start, stop = _span(record, direction, flows)
    times, mine = _rate(record, direction, flows)
    _, every = _rate(record, direction, "")
    within = (times > start) & (times <= stop)
    even = every[within].mean() * _count(record, direction, flows) / _count(record, direction, "")
    return _until(times, mine >= NEAR * even, start, stop)


def gives_back_s(record: Record, direction: Direction, flows: str) -> float | None:
    """Seconds from the end of the flows until, over a second, the others have 80 % of what they settle at.

    What they settle at is their mean rate in the second half of what is left of the load. The length of what
    is left if they never have it.
    """
    _, stop = _span(record, direction, flows)
    _, last = _span(record, direction, "")
    times, mine = _rate(record, direction, flows)
    _, every = _rate(record, direction, "")
    others = every - mine
    settled = others[(times > (stop + last) / 2) & (times <= last)].mean()
    return _until(times, others >= NEAR * settled, stop, last)


def _within(record: Record, ms: float) -> float | None:
    """The share of all pings, idle and loaded, that took less; a lost one did not."""
    trips = record.latency["rtt_ns"]
    return float((trips < ms * 1e6).fill_null(value=False).mean()) if trips.len() else None  # type: ignore[arg-type]


def _number(found: object) -> float | None:
    return float(found) if isinstance(found, int | float) else None


def _direction(record: Record, direction: Direction) -> DirectionSummary | None:
    summary = summarise(record)
    return summary.down if direction == "down" else summary.up


def _per_flow(record: Record, direction: Direction, flows: str, *, running: bool = False) -> dict[str, float]:
    """Goodputs of the flows whose names begin so: over the whole load, or each while it runs."""
    summary = _direction(record, direction)
    per_flow = {}
    if summary:
        per_flow = summary.per_flow_running_mbps if running else summary.per_flow_mbps
    return {name: mbps for name, mbps in per_flow.items() if name.startswith(flows)}


def _chosen(record: Record, direction: Direction, flows: str) -> list[int]:
    names = record.flow_names
    wanted = (pl.col("direction") == direction) & pl.col("name").str.starts_with(flows)
    return names.filter(wanted)["flow"].to_list()


def _count(record: Record, direction: Direction, flows: str) -> int:
    return len(_chosen(record, direction, flows))


def _windows(record: Record, direction: Direction, flows: str) -> pl.DataFrame:
    """The senders' samples during the load."""
    start, end = record.phase("load") or (0, record.reached_ns)
    chosen = _chosen(record, direction, flows)
    return record.tcp.filter(
        pl.col("flow").is_in(chosen) & (pl.col("t_ns") >= start) & (pl.col("t_ns") < end)
    ).sort("t_ns")


def _span(record: Record, direction: Direction, flows: str) -> tuple[float, float]:
    """When the first of the flows starts and the last one stops, in seconds."""
    chosen = _chosen(record, direction, flows)
    spans = [_planned(record, number) for number in chosen]
    return min(start for start, _ in spans) / 1e9, max(stop for _, stop in spans) / 1e9


def _planned(record: Record, number: int) -> tuple[int, int]:
    """When a flow starts and stops, in ns."""
    flow = record.manifest.scenario["flows"][number]
    return flow["start_ns"], record.reached_ns if flow["stop_ns"] is None else flow["stop_ns"]


def _rate(
    record: Record, direction: Direction, flows: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The flows' goodput together, a mean over the second that ends at each sample, in Mbit/s."""
    interval = record.interval_ns("throughput")
    steps = record.reached_ns // interval
    samples = record.throughput.filter(pl.col("flow").is_in(_chosen(record, direction, flows)))
    arrived = np.zeros(steps + 1)
    places = np.minimum((samples["t_ns"].to_numpy() + interval - 1) // interval, steps)
    np.add.at(arrived, places, samples["bytes"].to_numpy())
    total = np.cumsum(arrived)
    window = max(1, int(SECOND // interval))
    before = np.concatenate([np.zeros(window), total])[: total.size]
    times = np.arange(steps + 1) * interval / SECOND
    return times, (total - before) * 8 / 1e6


def _until(times: NDArray[np.float64], reached: NDArray[np.bool_], start: float, stop: float) -> float | None:
    """Seconds from `start` until it is reached, at most until `stop`."""
    if stop <= start:
        return None
    found = times[reached & (times > start) & (times <= stop)]
    return float(found[0] - start) if found.size else stop - start


SECOND: Final = 1_000_000_000
NEAR: Final = 0.8
"""From what part of its share on a test has it."""
SETTLED_S: Final = 5.0
"""After so many seconds of load slow start is over."""
MIN_SAMPLES: Final = 20
"""Below this many samples a correlation says nothing."""

FIGURES: Final[Mapping[str, Figure]] = {
    figure.__name__: figure
    for figure in (
        goodput_mbps,
        share,
        jain,
        jain_together,
        jain_of_bytes,
        unfairness,
        spread,
        variability,
        rate_p25,
        rate_p75,
        rate_min,
        rate_max,
        idle_ms,
        increase_ms,
        loaded_ms,
        loaded_median_ms,
        p99_ms,
        within_15_ms,
        within_20_ms,
        within_50_ms,
        utilisation,
        synchronised,
        window_correlation,
        takes_share_s,
        gives_back_s,
    )
}
"""All figures."""

RANGES: Final[Mapping[str, tuple[float | None, float | None]]] = {
    "share": (0, 1),
    "jain": (0, 1),
    "jain_together": (0, 1),
    "jain_of_bytes": (0, 1),
    "unfairness": (0, 1),
    "within_15_ms": (0, 1),
    "within_20_ms": (0, 1),
    "within_50_ms": (0, 1),
    "synchronised": (0, 1),
    "window_correlation": (-1, 1),
}
"""Between what a figure can lie, where there is an end: a rule beyond it could not fail."""
