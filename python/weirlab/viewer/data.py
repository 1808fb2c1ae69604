"""Data of a record for the viewer: names, phases and the figures that tables show, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.plots.caption import short_names
from weirlab.plots.series import step_ns
from weirlab.record.configurations import slug
from weirlab.stats import describe, load_window_ns, summarise, totals_mbps
from weirlab.stats.sharing import sharing
from weirlab.viewer.words import record_says

__all__ = ["record_data", "service"]

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.viewer.overview import Overview


def record_data(
    record: Record, name: str, url: str | None = None, overview: Overview | None = None
) -> dict[str, Any]:
    """All that the viewer needs beside the record's own files.

    Args:
        record: the record.
        name: what tells it apart from the others on the page.
        url: where the page finds its `.weir` file; None if the page has it within.
        overview: what is drawn at first of very many pings; None of a record that is read as a whole.
    """
    summary = summarise(record)
    goodput = {way: describe(totals_mbps(record, way)["mbps"]) for way in ("down", "up")}
    return {
        **_frame(record, name, url),
        "summary": summary.as_dict() | {"path": str(record.path.name)},
        "goodput": {way: asdict(found) if found else None for way, found in goodput.items()},
        "says": record_says(record),
        "overview": overview.told() if overview else None,
    }


def _frame(record: Record, name: str, url: str | None) -> dict[str, Any]:
    """What the manifest alone says of a record that came to its end."""
    scenario = record.manifest.scenario
    start, end = load_window_ns(record)
    return {
        "name": name,
        "file": f"{slug(name)}.weir",
        "url": url,
        "reached_s": record.reached_ns / 1e9,
        "load_s": [start / 1e9, end / 1e9],
        "step_s": step_ns(record.reached_ns) / 1e9,
        "throughput_interval_s": scenario["sampling"]["throughput_ns"] / 1e9,
        "phases": [
            {"name": one["name"], "start_s": one["start_ns"] / 1e9, "end_s": one["end_ns"] / 1e9}
            for one in scenario["phases"]
        ],
        "flows": _flows(record),
        "probes": _probes(record),
    }


def _flows(record: Record) -> list[dict[str, Any]]:
    ways = {way: record.flows_in(way) for way in ("up", "down")}
    labels = {way: short_names([row["name"] for row in flows]) for way, flows in ways.items()}
    sharers = {flow["flow"] for flows in ways.values() for flow in sharing(record, flows)}
    return [
        {
            "name": row["name"],
            "label": labels[row["direction"]].pop(0),
            "direction": row["direction"],
            "service": service(row["dscp"]),
            "cc": row["congestion_control"],
            "start_s": row["start_ns"] / 1e9,
            "stop_s": row["stop_ns"] / 1e9,
            "shares": row["flow"] in sharers,
        }
        for row in record.flow_rows
    ]


def _probes(record: Record) -> list[dict[str, Any]]:
    pings = record.manifest.scenario["probes"]
    apart = {*record.manifest.routers, *record.manifest.probes_apart}
    names = record.probe_names
    return [
        {
            "name": name,
            "label": label,
            "service": service(pings[number]["dscp"]) if number < len(pings) else "",
            "counts": number < len(pings) and number not in apart,
        }
        for number, (name, label) in enumerate(zip(names, short_names(names), strict=True))
    ]


def service(dscp: int | None) -> str:
    """The name of a service class, such as `BE`, `CS1`, `AF41`, `EF`, or its number; empty if not known."""
    return "" if dscp is None else _native.dscp_name(dscp) or f"DSCP {dscp}"
