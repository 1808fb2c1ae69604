"""What the charts of distributions can be of in place of pings: throughput, TCP, calls, applications.

All values are of the load, or of the whole run where a test has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.errors import UsageError
from weirlab.plots.look import current
from weirlab.record.configurations import numbered
from weirlab.stats import load_window_ns
from weirlab.stats.summary import totals
from weirlab.stats.transfers import applications, began_in, durations_ms
from weirlab.stats.udp import mos_by_second
from weirlab.stats.udp_losses import udp_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.plots.series import Numbers
    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Something of which a run has many values.

    Attributes:
        name: what it is asked for by.
        label: of its axis, with the unit.
        plural: its values in words.
        unit: of its values; empty for scores.
        axis: `ping` or `throughput`, whose ends and scale hold for its axis; empty for an axis of its own.
        more_is_better: whether the small ones are the bad ones, of which tables then have quantiles.
        parts: its values in a run, for each flow or direction that has any, by name.
    """

    name: str
    label: str
    plural: str
    unit: str
    axis: str
    more_is_better: bool = False
    parts: Callable[[Record], dict[str, Numbers]]

    @property
    def shares(self) -> tuple[int, int, int]:
        """The quantiles that tables have, in per cent: the median and two of the bad end."""
        return (50, 5, 1) if self.more_is_better else (50, 95, 99)

    def of(self, record: Record) -> Numbers:
        """All its values in a run.

        Raises:
            UsageError: if the run has none.
        """
        return np.concatenate(list(self.by_part(record).values()))

    def by_part(self, record: Record) -> dict[str, Numbers]:
        """Its values in a run by flow or direction.

        Raises:
            UsageError: if the run has none.
        """
        found = {name: values for name, values in self.parts(record).items() if values.size}
        if not found:
            raise UsageError(f"`{record.path}` has no {self.plural} to draw")
        return found

    def pooled(self, records: Sequence[Record]) -> Numbers:
        """All its values in several runs.

        Raises:
            UsageError: if one of the runs has none.
        """
        return np.concatenate([self.of(record) for record in records])


def asked() -> Quantity | None:
    """What the chart that is being drawn is of; None for pings."""
    return QUANTITIES.get(current().of)


def _of_flows(record: Record, *, table: str, column: str, per: float) -> dict[str, Numbers]:
    """The samples of a column of `tcp` or `udp` during the load, by flow."""
    start, end = load_window_ns(record)
    flows = _flows(record)
    found: dict[str, list[Numbers]] = {name: [np.zeros(0)] for _, name in flows}
    # What a stream at a constant rate adds says nothing of calls.
    of_calls = ["late_packets"] if table == "udp" else []
    for rows in record.pieces(table, ("t_ns", "flow", column, *of_calls)):
        at, flow = rows.numbers("t_ns"), rows.numbers("flow")
        counted = (at > start) & (at <= end)
        for told in (rows.known(name) for name in (column, *of_calls)):
            counted &= True if told is None else told
        for number, name in flows:
            found[name].append(rows.numbers(column)[counted & (flow == number)] / per)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _induced(record: Record) -> dict[str, Numbers]:
    """One-way delays of voice streams in ms above the least of the whole run: what waiting adds."""
    import polars as pl  # noqa: PLC0415 - charts of pings need none

    voice = record.udp.filter(pl.col("late_packets").is_not_null()).drop_nulls("delay_mean_ns")
    least = dict(voice.group_by("flow").agg(pl.col("delay_mean_ns").min() / 1e6).iter_rows())
    numbers = {name: number for number, name in _flows(record)}
    delays = _of_flows(record, table="udp", column="delay_mean_ns", per=1e6)
    return {name: values - least[numbers[name]] for name, values in delays.items() if values.size}


def _losses(record: Record) -> dict[str, Numbers]:
    """Per cent of the packets of voice streams that were lost or came too late, of each interval."""
    import polars as pl  # noqa: PLC0415 - charts of pings need none

    late = pl.col("late_packets")
    known = pl.col("received_packets") + pl.col("lost_packets")
    start, end = load_window_ns(record)
    rows = udp_rows(record)
    rows = rows.filter((pl.col("t_ns") > start) & (pl.col("t_ns") <= end) & late.is_not_null())
    rows = rows.filter(known > 0).with_columns(share=100 * (pl.col("lost_packets") + late) / known)
    return {
        name: rows.filter(pl.col("flow") == number)["share"].cast(pl.Float64).to_numpy()
        for number, name in _flows(record)
    }


def _scores(record: Record) -> dict[str, Numbers]:
    """The mean opinion score of each second of each voice stream."""
    import polars as pl  # noqa: PLC0415 - charts of pings need none

    start, end = (t / 1e9 for t in load_window_ns(record))
    every, found = udp_rows(record), {}
    for number, name in _flows(record):
        rows = mos_by_second(record, number, every)
        if rows.height:
            found[name] = rows.filter(pl.col("t_s").is_between(start, end, closed="right"))["mos"].to_numpy()
    return found


def _durations(record: Record, *, kind: str, per: float) -> dict[str, Numbers]:
    """How long what applications of a kind asked for during the load took, by flow."""
    import polars as pl  # noqa: PLC0415 - charts of pings need none

    span = load_window_ns(record)
    rows = record.transfers
    return {
        name: durations_ms(began_in(rows.filter(pl.col("flow") == number), *span)) / per
        for number, name, of in applications(record)
        if of == kind
    }


def _totals(record: Record, *, direction: Any) -> dict[str, Numbers]:
    """Goodput of all flows of a direction together, in Mbit/s."""
    return {"download" if direction == "down" else "upload": totals(record, direction)[1]}


def _flows(record: Record) -> list[tuple[int, str]]:
    """Number and name of each flow; names that occur twice are numbered."""
    names = numbered([flow["name"] for flow in record.flow_rows])
    return list(zip((flow["flow"] for flow in record.flow_rows), names, strict=True))


QUANTITIES: Mapping[str, Quantity] = MappingProxyType(
    {
        one.name: one
        for one in (
            Quantity(
                name="download",
                label="Total download, Mbit/s",
                plural="intervals of total download",
                unit="Mbit/s",
                axis="throughput",
                more_is_better=True,
                parts=partial(_totals, direction="down"),
            ),
            Quantity(
                name="upload",
                label="Total upload, Mbit/s",
                plural="intervals of total upload",
                unit="Mbit/s",
                axis="throughput",
                more_is_better=True,
                parts=partial(_totals, direction="up"),
            ),
            Quantity(
                name="tcp-rtt",
                label="Smoothed RTT of TCP, ms",
                plural="smoothed round trips of TCP senders",
                unit="ms",
                axis="ping",
                parts=partial(_of_flows, table="tcp", column="srtt_ns", per=1e6),
            ),
            Quantity(
                name="voice-delay",
                label="One-way delay of calls, ms",
                plural="one-way delays of voice streams",
                unit="ms",
                axis="ping",
                parts=partial(_of_flows, table="udp", column="delay_mean_ns", per=1e6),
            ),
            Quantity(
                name="voice-induced-delay",
                label="Induced delay of calls, ms",
                plural="one-way delays of voice streams above the least of the run",
                unit="ms",
                axis="ping",
                parts=_induced,
            ),
            Quantity(
                name="voice-jitter",
                label="Jitter of calls, ms",
                plural="jitters (RFC 3550) of voice streams",
                unit="ms",
                axis="ping",
                parts=partial(_of_flows, table="udp", column="jitter_ns", per=1e6),
            ),
            Quantity(
                name="voice-loss",
                label="Lost or late packets of calls, %",
                plural="losses of voice streams",
                unit="%",
                axis="",
                parts=_losses,
            ),
            Quantity(
                name="page-load",
                label="Page load time, s",
                plural="web pages",
                unit="s",
                axis="",
                parts=partial(_durations, kind="web", per=1e3),
            ),
            Quantity(
                name="dns",
                label="DNS lookup, ms",
                plural="DNS lookups",
                unit="ms",
                axis="",
                parts=partial(_durations, kind="dns", per=1.0),
            ),
            Quantity(
                name="mos",
                label="MOS of each second",
                plural="scores of seconds of voice streams",
                unit="",
                axis="",
                more_is_better=True,
                parts=_scores,
            ),
        )
    }
)
"""What `--of` takes beside `ping`."""
