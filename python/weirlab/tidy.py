"""Records as one tidy table: a row a run, probe, flow or sample, with names in place of numbers.

The first columns say which run a row is of: `configuration`, `test`, `link`, `queue`, `world`, `seed`,
`complete`, and in what else the records differ. Names of columns end in their units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from weirlab.arguments import records_of
from weirlab.errors import UsageError
from weirlab.record.configurations import configurations, distinct, numbered
from weirlab.record.differences import is_of_programs
from weirlab.record.tables import TABLES as OF_RECORD
from weirlab.record.tables import schema
from weirlab.stats import idle_pings, loaded_pings, summarise, totals_of_flows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from weirlab.record import Record
    from weirlab.stats import DirectionSummary, Distribution, LatencySummary
    from weirlab.stats.pings import Pings

Rows = Literal["run", "probe", "flow"]


def frame(records: Record | Sequence[Record], by: Rows = "run") -> pl.DataFrame:
    """The figures of `records` as one tidy table.

    Args:
        records: a record, or several in the order of their rows; a run that is given twice counts once.
        by: what a row is: a `run`, a `probe` of a run, or a `flow` of a run.

    Returns:
        A Polars data frame; `.write_csv(PATH)` leads on, and `.to_pandas()` where pandas and pyarrow are
        installed, which Weir does not need. Figures are those of `summarise`: times in ms, rates in Mbit/s,
        shares from 0 to 1. Round trips of a run are of the probes of which its increase is
        (`summary.latency.told`). What a record does not tell is null. The columns
        `configuration`, `test`, `link`, `queue`, `world`, `seed` and `complete` say which run it is; whatever
        else the records differ in (such as `congestion_control`, `load_s`, `down_line_mbps`, of runs on a
        real clock `started_at`) has its own column.

    Raises:
        UsageError: if these are no records, or `by` is none of the three.
    """
    chosen = distinct(records_of(records, "frame"))
    if by not in get_args(Rows):
        raise UsageError(f"frame(..., by={by!r}): write one of {', '.join(map(repr, get_args(Rows)))}")
    rows = {"run": _runs, "probe": _probes, "flow": _flows}[by]
    runs = list(_which(chosen))
    found = [which | one for record, which in runs for one in rows(record)]
    # A column is there, and has its type, also where no record of these has a row or tells it.
    none = {"run": {}, "probe": _probe(), "flow": _flow()}[by]
    kinds = {name: _kind_of(name) for name in (found or [runs[0][1] | none])[0]}
    return pl.DataFrame(found, schema=kinds, infer_schema_length=None)


def samples(records: Sequence[Record], name: str) -> Iterator[pl.DataFrame]:
    """The raw samples of one of `TABLES` of all `records`, with the names of probes and flows.

    The column `queue` of a record's tables, direction and hop such as `up/modem`, is called `hop`.

    Yields:
        Frames of the same columns and types, one after the other; no more than a part of a long table is in
        memory. The first has no rows.
    """
    runs = [
        (record, {name: value for name, value in which.items() if name not in OF_RUNS})
        for record, which in _which(records)
    ]
    none = pl.concat(
        [_tidy(record, which, pl.DataFrame(schema=schema(name))) for record, which in runs],
        how="diagonal_relaxed",
    )
    yield none
    for record, which in runs:
        for rows in record.ordered_chunks(name):
            yield pl.concat([none, _tidy(record, which, rows)], how="diagonal_relaxed")


def _tidy(record: Record, which: Mapping[str, Any], rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of a table with the columns that say which run it is, and names in place of numbers."""
    # `queue` is the queue spec here, as in all tidy tables.
    rows = rows.rename({"queue": "hop"}, strict=False)
    for column, names in (("probe", record.probe_names), ("flow", record.flow_names["name"].to_list())):
        if column in rows.columns:
            known = dict(enumerate(numbered(names)))
            rows = rows.with_columns(
                pl.col(column).replace_strict(known, default=None, return_dtype=pl.String)
            )
    told = (pl.lit(value, dtype=_kind_of(key)).alias(key) for key, value in which.items())
    return rows.select(*told, pl.all())


def _kind_of(column: str) -> type[pl.DataType]:
    """The type of a column of figures, or of one that says which run it is."""
    if column in TEXTS:
        return pl.String
    if column in TRUTHS:
        return pl.Boolean
    return pl.Float64 if column.endswith(FRACTIONS) else pl.Int64


def _which(records: Sequence[Record]) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Each record, and the columns that say which run it is."""
    if not records:
        raise UsageError("give at least one record: there is none to make a table of")
    names = {id(record): one.name for one in configurations(records) for record in one.records}
    different = [
        name
        for name, aspect in ASPECTS.items()
        if len({repr(aspect(record)) for record in records}) > 1
        and (name not in OF_CLOCKS or not all(_is_repeatable(record) for record in records))
    ]
    for record in records:
        manifest = record.manifest
        yield (
            record,
            {
                "configuration": names.get(id(record), record.label),
                "test": manifest.scenario["name"],
                "link": manifest.link.get("name"),
                "queue": record.label,
                "world": manifest.world,
                "seed": manifest.seed,
                "complete": manifest.complete,
                **{name: ASPECTS[name](record) for name in different},
            },
        )


def figures(record: Record) -> dict[str, Any]:
    """The figures of one run by the names of their columns: those that `frame(record)` has."""
    summary = summarise(record)
    return figures_of(summary.latency, summary.down, summary.up)


def figures_of(
    latency: LatencySummary, down: DirectionSummary | None, up: DirectionSummary | None
) -> dict[str, Any]:
    """The figures of one run, of what was computed of its pings and both directions.

    Round trips are of the probes of which the increase is; which were sent and lost is of all.
    """
    idle, loaded = latency.told
    return {
        "idle_mean_ms": idle.mean if idle else None,
        **_distribution("loaded", loaded),
        "increase_mean_ms": latency.increase_mean_ms,
        "increase_median_ms": latency.increase_median_ms,
        "increase_p95_ms": latency.increase_p95_ms,
        "increase_p99_ms": latency.increase_p99_ms,
        "pings_sent": latency.sent,
        "pings_lost": latency.lost,
        **_direction("down", down),
        **_direction("up", up),
    }


def _runs(record: Record) -> Iterator[dict[str, Any]]:
    yield figures(record)


def _probes(record: Record) -> Iterator[dict[str, Any]]:
    for number, name in enumerate(numbered(record.probe_names)):
        loaded, idle = loaded_pings([record], probe=number), idle_pings([record], probe=number).distribution
        yield _probe(name, idle, loaded)


def _probe(
    name: str | None = None, idle: Distribution | None = None, loaded: Pings | None = None
) -> dict[str, Any]:
    """The row of a probe."""
    of_load = loaded.distribution if loaded else None
    return {
        "probe": name,
        "idle_mean_ms": idle.mean if idle else None,
        **_distribution("loaded", of_load),
        "increase_mean_ms": of_load.mean - idle.mean if idle and of_load else None,
        "pings_sent": loaded.sent if loaded else None,
        "pings_lost": loaded.lost if loaded else None,
    }


def _flows(record: Record) -> Iterator[dict[str, Any]]:
    summary = summarise(record)
    of_ways = {"down": summary.down, "up": summary.up}
    # What a record has no totals of may stand in the samples of its senders, as in the figures of a run.
    counted = {column: totals_of_flows(record, column) for column in FLOW_TOTALS}
    names = numbered(record.flow_names["name"].to_list())
    for place, (told, name) in enumerate(zip(record.flow_names.iter_rows(named=True), names, strict=True)):
        row = told | {column: values[place] for column, values in counted.items() if values is not None}
        of_way = of_ways.get(row["direction"])
        whole, running = (of_way.per_flow_mbps, of_way.per_flow_running_mbps) if of_way else ({}, {})
        yield _flow(name, row, whole.get(row["name"]), running.get(row["name"]))


def _flow(
    name: str | None = None,
    row: Mapping[str, Any] | None = None,
    goodput_mbps: float | None = None,
    running_mbps: float | None = None,
) -> dict[str, Any]:
    """The row of a flow, of its row in the table `flows`."""
    told = row or {}
    return {
        "flow": name,
        "direction": told.get("direction"),
        "dscp": told.get("dscp"),
        "flow_congestion_control": told.get("congestion_control"),
        "goodput_mbps": goodput_mbps,
        "goodput_running_mbps": running_mbps,
        **{column: told.get(column) for column in FLOW_TOTALS},
    }


def _distribution(of: str, found: Distribution | None) -> dict[str, float | None]:
    names = ("mean", "std", "min", "median", "p95", "p99", "max")
    return {f"{of}_{name}_ms": getattr(found, name) if found else None for name in names}


def _direction(way: Literal["down", "up"], one: DirectionSummary | None) -> dict[str, Any]:
    return {f"{way}_{name}": getattr(one, name) if one else None for name in OF_DIRECTION}


def _phase_s(name: str) -> Callable[[Record], float | None]:
    def seconds(record: Record) -> float | None:
        spans = [one for one in record.manifest.scenario["phases"] if one["name"] == name]
        if not spans:
            return None
        start: int = spans[0]["start_ns"]
        end: int = spans[0]["end_ns"]
        # The phase of programs in a lab would go on for a day, and ended when they did.
        return (min(end, record.reached_ns) - start if is_of_programs(record) else end - start) / 1e9

    return seconds


def _line_mbps(way: str) -> Callable[[Record], float | None]:
    """The least constant rate of the direction's lines."""

    def mbps(record: Record) -> float | None:
        hops = record.manifest.scenario["path"][way]
        rates = [hop["rate"]["bps"] for hop in hops if isinstance(hop["rate"], dict) and "bps" in hop["rate"]]
        return min(rates) / 1e6 if rates else None

    return mbps


def _controls(record: Record) -> str:
    return ", ".join(sorted(set(record.flow_names["congestion_control"].drop_nulls())))


def _delay_ms(record: Record) -> float:
    hops = [hop for way in ("down", "up") for hop in record.manifest.scenario["path"][way]]
    return float(sum(hop["delay_ns"] for hop in hops)) / 1e6


def _is_repeatable(record: Record) -> bool:
    """Whether its seed makes the run: it says nothing more when that was."""
    return record.manifest.world in ("sim", "kernel")


def _path(record: Record) -> str | None:
    """Which path was measured: as links all of them are called `path`."""
    manifest = record.manifest
    return manifest.link.get("title") if manifest.world == "net" else None


ASPECTS: Mapping[str, Callable[[Record], Any]] = {
    "started_at": lambda record: record.manifest.started_at,
    "path": _path,
    "note": lambda record: record.manifest.note,
    "tags": lambda record: ", ".join(record.manifest.tags),
    "datapath": lambda record: record.manifest.datapath,
    "congestion_control": _controls,
    "ecn": lambda record: bool(record.flow_names["ecn"].any()),
    "idle_s": _phase_s("idle"),
    "load_s": _phase_s("load"),
    "cooldown_s": _phase_s("cooldown"),
    "down_line_mbps": _line_mbps("down"),
    "up_line_mbps": _line_mbps("up"),
    "path_delay_ms": _delay_ms,
}
"""In what records may differ beside the columns that all have.

`started_at` is UTC, `path` says which server was asked, `down_line_mbps` is the least constant rate of a
line, `path_delay_ms` the delay of all hops, both ways.
"""

OF_CLOCKS = ("started_at",)
"""What tells runs on a real clock apart, and says nothing of others."""

OF_RUNS = ("note",)
"""What only tables of figures have: up to 10000 letters would stand beside each of a million samples."""

OF_DIRECTION = (
    "flows",
    "goodput_mbps",
    "throughput_mbps",
    "utilisation",
    "jain_index",
    "loss_rate",
    "mark_rate",
    "retransmitted_segments",
    "timeouts",
)
"""The figures of a direction."""

FLOW_TOTALS = (
    "delivered_bytes",
    "sent_bytes",
    "sent_segments",
    "retransmitted_segments",
    "timeouts",
    "dropped_packets",
    "marked_packets",
)
"""Totals of a flow over the whole run."""

TEXTS = {
    *("configuration", "test", "link", "queue", "world", "datapath", "congestion_control"),
    *("started_at", "path", "note", "tags"),
    *("probe", "flow", "direction", "flow_congestion_control"),
}
"""Columns of text."""

TRUTHS = {"complete", "ecn"}
"""Columns that are true or false."""

FRACTIONS = ("_ms", "_mbps", "_s", "utilisation", "jain_index", "loss_rate", "mark_rate")
"""How names of columns end whose numbers are fractions; all others are whole."""

TABLES = tuple(name for name in OF_RECORD if name != "flows")
"""The tables of samples. What `flows` has are figures."""
