"""Writes a record as a data file that Flent opens and plots under the name of its own test.

Flent draws what its test of that name names: the series must have its names, and a file must have the
metadata without which Flent fails. What Flent does not know stands in a block of its own, `weir`, which it
ignores.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weirlab.errors import UsageError
from weirlab.flent.document import VERSION
from weirlab.flent.metadata import hosts_in_series, metadata, series_metadata, title_of
from weirlab.flent.own import own_block
from weirlab.flent.points import ReadAnew, aligned, epoch_of, means, ping_series, start_of, step_s, t0_ns
from weirlab.flent.tests import computed_series
from weirlab.stats import load_window_ns, summarise, totals_of_flows
from weirlab.stats.transfers import began_in, durations_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from weirlab.flent.points import Numbers, Point, Points
    from weirlab.record import Record


class NotOfFlent(UsageError):
    """Flent has no test with the series of a record.

    Attributes:
        path: the record.
        why: what Flent does not have.
    """

    def __init__(self, record: Record, why: str, more: str = "") -> None:
        """The sentence, of which `more` need be told once only of several records."""
        super().__init__(f"`{record.path}`: {why}{more}")
        self.path = record.path
        self.why = why


def export_flent(record: Record, file: Path, title: str | None = None) -> None:
    """Writes `record` into `file` as Flent's format, version 4.

    Args:
        record: of a test of Flent's, such as `rrul`, that ran here or was imported.
        file: where it goes; gzip.
        title: its TITLE; None for link and queue, or that of the file that `record` was made of.

    Raises:
        UsageError: if Flent has no test of that name with these flows and probes.
    """
    document, raw = _document(record, title)
    # No time and no name in the gzip header: the same record gives the same bytes.
    with file.open("wb") as out, gzip.GzipFile("", "wb", COMPRESSION, out, mtime=0) as packed:
        for text in _texts(document, raw):
            packed.write(text.encode())


def flent_name(record: Record, title: str | None = None) -> str:
    """The file name by Flent's rule: test, time and title."""
    manifest = record.manifest
    titled = re.sub(r"[^A-Za-z0-9-]", "_", title_of(record) if title is None else title)
    when = start_of(record).strftime("%Y-%m-%dT%H%M%S.%f")
    named = ".".join(filter(None, [f"{manifest.scenario['name']}-{when}", titled]))
    return f"{named[:MAX_FILE_NAME_CHARS]}{FLENT_SUFFIX}"


def flent_document(record: Record) -> dict[str, Any]:
    """The record as the JSON of Flent's format, version 4.

    Raises:
        UsageError: as `export_flent`.
    """
    document, raw = _document(record)
    return document | {"raw_values": {name: list(points) for name, points in raw.items()}}


def _texts(document: Mapping[str, Any], raw: Mapping[str, Points]) -> Iterator[str]:
    """The JSON of `document` with `raw_values`, part by part: a long record has millions of points."""
    whole = json.dumps({**document, "raw_values": {}}, indent=2, sort_keys=True, allow_nan=False)
    before, after = whole.split(NO_RAW_VALUES)
    yield f"{before}{NO_RAW_VALUES[:-1]}"
    for number, name in enumerate(sorted(raw)):
        yield f"{',' if number else ''}\n    {json.dumps(name)}: ["
        points, written = iter(raw[name]), 0
        while some := list(islice(points, POINTS_AT_ONCE)):
            yield f"{',' if written else ''}{_text_of(some)}"
            written += len(some)
        yield "\n    ]" if written else "]"
    yield f"\n  }}{after}" if raw else f"}}{after}"


def _text_of(points: list[Point]) -> str:
    """Points as they stand in the JSON."""
    # All in one call, which takes a quarter of the time of one call each. No value has a brace in it.
    text = POINTS.encode(points)[2:-2].replace(BETWEEN, "\n      },\n      {\n        ")
    return f"\n      {{\n        {text}\n      }}"


def _document(record: Record, title: str | None = None) -> tuple[dict[str, Any], dict[str, Points]]:
    """The document without its `raw_values`, and these."""
    computed = check_exportable(record)
    offset_s = t0_ns(record) / 1e9
    x_values = _steps(record)
    at_s = x_values + offset_s
    results: dict[str, list[float | None]] = {}
    raw: dict[str, Points] = {}
    meta: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(record.probe_names[: len(record.manifest.scenario["probes"])]):
        raw[name], results[name], meta[name] = ping_series(record, number, at_s)
    # Of a run that was cut short those until its last sample.
    resent = totals_of_flows(record, "retransmitted_segments") or [None] * len(record.flow_rows)
    for flow, again in zip(record.flows.iter_rows(named=True), resent, strict=True):
        name = flow["name"]
        if _is_web(flow):
            raw[name], results[name], meta[name] = _pages(record, flow, at_s)
            continue
        raw[name], results[name], meta[name] = _stream(record, flow, at_s)
        if flow["protocol"] == "tcp" and again is not None:
            meta[name]["TCP_RETRANSMIT"] = again
        if flow["direction"] == "up":
            of_sockets = ReadAnew(partial(_sockets, record, flow["flow"]))
            raw[name] = ReadAnew(partial(merge, raw[name], of_sockets, key=itemgetter("t")))
    measured = dict(results)
    for name, of, how in computed:
        parts = {one: values for one, values in measured.items() if re.fullmatch(of, one)}
        results[name], meta[name] = _computed(record, name, parts, how)
        raw[name] = []
    meta = series_metadata(record, meta)
    document = {
        "version": VERSION,
        "x_values": [round(float(x), 6) for x in x_values],
        "results": results,
        "metadata": {**metadata(record, title), "SERIES_META": meta},
        "weir": own_block(record, t0_ns(record)),
    }
    return document, raw


def check_exportable(record: Record) -> list[tuple[str, str, str]]:
    """The series that Flent computes for the record's test: name, pattern of what it is of, and how.

    Raises:
        NotOfFlent: if Flent has no test of that name with these flows and probes.
    """
    name = record.manifest.scenario["name"]
    known = computed_series()
    if name not in known:
        more = "; records of Flent's own tests, such as `rrul`, can be written for it"
        raise NotOfFlent(record, f"Flent has no test `{name}` with these series", more)
    streams = record.flow_names["name"].to_list()
    pings = record.probe_names[: len(record.manifest.scenario["probes"])]
    test = known[name]
    patterns = [_with_hosts(pattern, record) for pattern in test.series]
    for series in [*streams, *pings]:
        if not any(re.fullmatch(pattern, series) for pattern in patterns):
            raise NotOfFlent(record, f"Flent's test `{name}` has no series `{series}`")
    if len({*streams, *pings}) < len(streams) + len(pings):
        raise NotOfFlent(record, "two of its series have one name, which Flent cannot hold")
    return [
        one for one in test.computed if any(re.fullmatch(one[1], series) for series in [*streams, *pings])
    ]


def _with_hosts(pattern: str, record: Record) -> str:
    """The pattern of a series with the servers' names: those of an imported file are in its own series."""
    if not record.manifest.imported:
        return pattern
    names = "|".join(re.escape(name) for name in hosts_in_series(record))
    return re.sub(r"\bhost\d+", lambda host: f"(?:{host[0]}|{names})", pattern)


def _steps(record: Record) -> Numbers:
    count = min(round((record.reached_ns - t0_ns(record)) / 1e9 / step_s(record)), MAX_STEPS)
    return np.arange(count + 1) * step_s(record)


def _stream(
    record: Record, flow: Mapping[str, Any], at_s: Numbers
) -> tuple[Points, list[float | None], dict[str, Any]]:
    rows = record.throughput.filter(pl.col("flow") == flow["flow"]).sort("t_ns")
    interval = record.interval_ns("throughput")
    ends = rows["t_ns"].to_numpy().astype(float)
    # The clock of a live world samples a little early or late.
    before = np.concatenate([[-np.inf], ends[:-1]])
    lengths = np.where(ends - before <= 1.5 * interval, ends - before, interval)
    mbps = rows["bytes"].to_numpy() * 8e3 / np.maximum(lengths, 1)
    epoch_s = epoch_of(record)

    def points() -> Iterator[Point]:
        for end, length, rate in zip(ends, lengths, mbps, strict=True):
            yield {"t": epoch_s(end), "dur": length / 1e9, "val": float(rate)}

    summary = summarise(record)
    of_way = summary.up if flow["direction"] == "up" else summary.down
    # A tool tells what came through while its flow ran.
    mean = None if of_way is None else of_way.per_flow_running_mbps.get(flow["name"])
    start, end = load_window_ns(record)
    tos = None if flow["dscp"] is None else int(flow["dscp"]) << 2
    is_tcp = flow["protocol"] == "tcp"
    meta = {
        "UNITS": "Mbits/s",
        "RUNNER": "NetperfDemoRunner" if is_tcp else "IperfCsvRunner",
        "MEAN_VALUE": mean,
        # An imported file tells it, or nobody knows.
        "ELAPSED_TIME": None if record.manifest.imported else (end - start) / 1e9,
        "CONG_CONTROL": flow["congestion_control"],
        "UPSTREAM_TOS": tos,
        "DOWNSTREAM_TOS": tos,
        "BYTES_RECVD": flow.get("delivered_bytes"),
    }
    known = {key: value for key, value in meta.items() if value is not None}
    if record.manifest.imported:
        # The file's own values at its own steps.
        return ReadAnew(points), aligned(at_s, [(ends / 1e9, mbps)], step_s(record)), known
    return ReadAnew(points), means(at_s, ends / 1e9, lengths / 1e9, mbps, step_s(record)), known


def _is_web(flow: Mapping[str, Any]) -> bool:
    """Whether a flow loads web pages, of which Flent has the times."""
    return bool(flow["protocol"] == "web")


def _pages(
    record: Record, flow: Mapping[str, Any], at_s: Numbers
) -> tuple[Points, list[float | None], dict[str, Any]]:
    """How long each page took that came whole, when it was there."""
    rows = record.transfers.filter((pl.col("flow") == flow["flow"]) & (pl.col("outcome") == "done"))
    whole = rows.with_columns(end_ns=pl.col("t_ns") + pl.col("took_ns")).sort("end_ns")
    ends, ms = whole["end_ns"].to_numpy().astype(float), whole["took_ns"].to_numpy() / 1e6
    epoch_s = epoch_of(record)
    points = [{"t": epoch_s(end), "val": float(value)} for end, value in zip(ends, ms, strict=True)]
    meta: dict[str, Any] = {"UNITS": "ms", "RUNNER": "HttpGetterRunner"}
    loaded = durations_ms(began_in(rows, *load_window_ns(record)))
    if loaded.size:
        figures = {"MEAN_VALUE": loaded.mean(), "MIN_VALUE": loaded.min(), "MAX_VALUE": loaded.max()}
        meta |= {key: float(ms) for key, ms in figures.items()}
    return points, aligned(at_s, [(ends / 1e9, ms)], step_s(record)), meta


def _sockets(record: Record, flow: int) -> Iterator[Point]:
    """State of the sending sockets, which Flent's `--socket-stats` adds to uploads."""
    epoch_s = epoch_of(record)
    for row in record.tcp.filter(pl.col("flow") == flow).sort("t_ns").iter_rows(named=True):
        point = {
            "tcp_cwnd": row["cwnd_segments"],
            "tcp_rtt": _divided(row["srtt_ns"], 1e6),
            "tcp_rtt_var": _divided(row["rttvar_ns"], 1e6) if row["srtt_ns"] is not None else None,
            "tcp_pacing_rate": _divided(row["pacing_rate_bps"], 1e6),
            "tcp_delivery_rate": _divided(row["delivery_rate_bps"], 1e6),
        }
        known = {key: value for key, value in point.items() if value is not None}
        yield {"t": epoch_s(row["t_ns"]), **known}


def _divided(value: int | None, by: float) -> float | None:
    return None if value is None else value / by


def _computed(
    record: Record, name: str, parts: Mapping[str, list[float | None]], how: str
) -> tuple[list[float | None], dict[str, Any]]:
    """A series that Flent computes of others at each step, from what is there of them."""
    values = []
    for at in zip(*parts.values(), strict=True):
        there = [one for one in at if one is not None]
        values.append(HOW[how](there) if there else None)
    meta: dict[str, Any] = {
        "UNITS": {"fairness": "Idx"}.get(how, "ms" if name.startswith("Ping") else "Mbits/s"),
        "RUNNER": RUNNERS[how],
        "COMPUTED_LATE": False,
    }
    mean = _mean_of(record, name, parts, how)
    return values, meta | ({} if mean is None else {"MEAN_VALUE": mean})


def _mean_of(record: Record, name: str, parts: Collection[str], how: str) -> float | None:
    """The figure of `weir show` that a series computed of `parts` stands for."""
    summary = summarise(record)
    if name.startswith("Ping"):
        return summary.latency.loaded.mean if summary.latency.loaded else None
    ways = [summary.up, summary.down] if name == "TCP totals" else []
    ways = ways or [summary.up if "upload" in name else summary.down]
    of_ways = {flow: mbps for one in ways if one for flow, mbps in one.per_flow_mbps.items()}
    if of_ways.keys() - set(parts):
        there = [mbps for flow, mbps in of_ways.items() if flow in parts]
        return HOW[how](there) if there else None
    if how == "fairness":
        return ways[0].jain_index if ways[0] else None
    totals = [(one.goodput_mbps, one.flows) for one in ways if one and one.goodput_mbps is not None]
    if not totals:
        return None
    total = sum(mbps for mbps, _ in totals)
    return total / sum(flows for _, flows in totals) if how == "average" else total


def _jain(values: list[float]) -> float | None:
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


NO_RAW_VALUES = '\n  "raw_values": {}'
"""As it stands in the JSON: in no text of it, where an end of line is written as two signs."""

POINTS = json.JSONEncoder(sort_keys=True, allow_nan=False, separators=(",\n        ", ": "))
"""Writes points of `raw_values` as they stand in the JSON, but for the ends of lines at their braces."""

BETWEEN = "},\n        {"
"""What stands between two points that it wrote."""

COMPRESSION = 6
"""As `gzip` has it if nothing is said. 9 takes five times as long, and files are 8 % shorter."""

POINTS_AT_ONCE = 1000
"""Points that are packed in one go."""

HOW: Mapping[str, Callable[[list[float]], float | None]] = {
    "average": lambda values: sum(values) / len(values),
    "sum": sum,
    "fairness": _jain,
}
"""Ways to compute a series of others."""

RUNNERS = {"average": "AverageRunner", "sum": "SumRunner", "fairness": "FairnessRunner"}
"""Flent's names of the ways to compute a series of others."""

MAX_STEPS = 1_000_000

FLENT_SUFFIX = ".flent.gz"
"""How names of Flent's files end."""

MAX_FILE_NAME_CHARS = 240
"""Flent's own limit is 250 with the suffix."""
