"""Makes a record of a Flent file: its samples as tables, its settings and metadata as the manifest.

What the file does not tell is null. The record says that it is imported, from which tool, version and test.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import RecordError, UsageError, cannot_write
from weirlab.flent import samples
from weirlab.flent.document import read_document
from weirlab.flent.own import read_own
from weirlab.flent.plan import planned, told_plan
from weirlab.flent.series import sort_series
from weirlab.flent.tests import title_of
from weirlab.record.manifest import SCHEMA
from weirlab.record.parts import packed
from weirlab.record.reader import Record
from weirlab.record.store import MAX_MANIFEST_BYTES
from weirlab.scenario.plain import DEFAULT_QUEUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from weirlab.flent.document import Document
    from weirlab.flent.own import Own
    from weirlab.flent.plan import Plan
    from weirlab.flent.series import Ping, Series, Stream


def import_flent(file: Path, folder: Path) -> Record:
    """Makes a record in `folder` of a data file of Flent.

    Args:
        file: a file of format version 1 to 4; gzip, bzip2 or plain.
        folder: where the record goes; it is made, and must not be there yet.

    Returns:
        The record.

    Raises:
        RecordError: if the file is none, is damaged, too large, or holds nothing that a record can.
        UsageError: if something is at `folder` already, or it cannot be written.
    """
    document = read_document(file)
    try:
        own = read_own(document.own)
        series = _series(document, own)
        zero = samples.zero_s(document, series)
        tables = _tables(document, series, zero, own)
        plan = planned(document, series, zero) if own is None else told_plan(own, document.t0_s - zero)
        manifest = _manifest(document, series, tables, plan, own, zero, file)
    except RecordError as error:
        raise RecordError(f"`{file}`: {error}") from error
    _write(manifest, tables, folder)
    return Record(folder)


def _series(document: Document, own: Own | None) -> Series:
    series = sort_series(document, own.means if own else ())
    if not series.pings and not series.streams:
        raise RecordError(f"test `{document.name}` has neither pings nor streams: {_why(series)}")
    return series


def _why(series: Series) -> str:
    first = next(iter(series.left_out.items()), None)
    return "it is empty" if first is None else f"of `{first[0]}`, {first[1]}"


def _tables(document: Document, series: Series, zero: float, own: Own | None) -> dict[str, pl.DataFrame]:
    tables = {
        "flows": samples.flows(series.streams, is_measured=own is not None and own.is_measured),
        "latency": samples.latency(series.pings, zero, one_clock=own is not None),
        "throughput": samples.throughput(series.streams, zero, document.step_s),
        "tcp": samples.tcp(document, series.streams, zero),
    }
    return {name: table for name, table in tables.items() if table.height}


def _manifest(  # noqa: PLR0913, PLR0917 - what was read of a file
    document: Document,
    series: Series,
    tables: Mapping[str, pl.DataFrame],
    plan: Plan,
    own: Own | None,
    zero: float,
    file: Path,
) -> dict[str, Any]:
    told = document.metadata
    link = _link_title(told)
    apart = [number for number, ping in enumerate(series.pings) if _is_apart(ping, series)]
    fetched = [one for number in apart for one in _fetched(tables["latency"], number)]
    last = max(_last(table) for table in tables.values())
    steps_end = round((document.t0_s - zero + (document.x_values or [0.0])[-1]) * 1e9)
    reached = max(last, plan.reached or steps_end)
    loaded = plan.phases[-2 if len(plan.phases) > 2 else -1][2]
    return {
        "schema_version": SCHEMA,
        "complete": not plan.cut and reached >= loaded - 2e9 * document.step_s,
        "world": WORLD,
        "seed": None,
        "queue": DEFAULT_QUEUE,
        "title": title_of(document.name),
        "configuration": link,
        "link": {"name": "path", "title": link, "up": [], "down": []},
        "test": {"name": document.name, "title": title_of(document.name)},
        "scenario": _scenario(document, series, plan),
        "versions": {"weir": _native.version(), "python": platform.python_version()},
        "host": _host(told),
        "clock": "wall clock of Flent's host, nanoseconds since the first sample",
        "started_at": datetime.fromtimestamp(zero, UTC)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z"),
        "offloads": "whatever the machines did; what Flent saw of it stands in `imported`",
        "warnings": _warnings(document, series, plan, own),
        "reached_ns": reached,
        "note": _text(told, "NOTE"),
        "tags": [],
        "probes_apart": apart,
        "imported": _imported(document, series, own, zero, file) | {"fetched": fetched},
    }


def _link_title(told: Mapping[str, Any]) -> str:
    """What is known of the path: the user's title, and the other end."""
    title = _text(told, "TITLE")
    path = f"path to {_text(told, 'HOST') or 'an unknown host'}"
    return f"{title} ({path})" if title else path


def _host(told: Mapping[str, Any]) -> dict[str, str]:
    """What is known of the machine that measured."""
    name = _text(told, "LOCAL_HOST")
    kernel = " ".join(filter(None, (_text(told, "KERNEL_NAME"), _text(told, "KERNEL_RELEASE"))))
    return ({"name": name} if name else {}) | ({"kernel": kernel} if kernel else {})


def _imported(document: Document, series: Series, own: Own | None, zero: float, file: Path) -> dict[str, Any]:
    """Of which file the record was made, and what that says of itself."""
    return {
        "tool": "Flent",
        "tool_version": _text(document.metadata, "FLENT_VERSION") or None,
        "format": document.version,
        "test": document.name,
        "file": file.name,
        "t0_ns": round((document.t0_s - zero) * 1e9),
        "losses_unknown": [number for number, ping in enumerate(series.pings) if not ping.losses_known],
        "unnumbered": [
            number for number, ping in enumerate(series.pings) if not (ping.losses_known or ping.means)
        ],
        "left_out": series.left_out,
        "is_measured": own is not None and own.is_measured,
        "metadata": document.metadata,
        "series": document.series_meta,
    }


def _last(table: pl.DataFrame) -> int:
    """Time of the last row; 0 of a table without times."""
    found = table["t_ns"].max() if "t_ns" in table.columns else 0
    return found if isinstance(found, int) else 0


def _is_apart(ping: Ping, series: Series) -> bool:
    """Whether a series is no ping: the time to fetch something, beside pings."""
    return ping.kind == "http" and any(one.kind != "http" for one in series.pings)


def _fetched(latency: pl.DataFrame, probe: int) -> list[dict[str, int]]:
    """From when to when a probe that is no ping fetched something."""
    rows = latency.filter(latency["probe"] == probe).drop_nulls("rtt_ns")
    if not rows.height:
        return []
    begun, there = rows["t_ns"].to_list(), (rows["t_ns"] + rows["rtt_ns"]).to_list()
    return [{"probe": probe, "start_ns": max(0, min(begun)), "stop_ns": max(there)}]


def _warnings(document: Document, series: Series, plan: Plan, own: Own | None) -> list[str]:
    said = [*(own.warnings if own else []), *([plan.warning] if plan.warning else [])]
    failed = samples.count_of(document.metadata.get("FAILED_RUNNERS"))
    if failed:
        said.append(f"{failed} of Flent's programs failed (FAILED_RUNNERS)")
    if series.empty:
        verbs = ("was", "has") if len(series.empty) == 1 else ("were", "have")
        said.append(f"{_first_of(series.empty)} {verbs[0]} asked for and {verbs[1]} no samples")
    means = [ping.name for ping in series.pings if ping.means]
    if means:
        which = _first_of(means)
        said.append(
            f"of {which} the file tells means over intervals: neither single pings nor losses are known"
        )
    unnumbered = [ping.name for ping in series.pings if not ping.numbered]
    if unnumbered:
        said.append(
            f"of {_first_of(unnumbered)} the numbers of pings do not tell which were lost: that is not known"
        )
    gaps = {stream.name: samples.gap_s(stream, document.step_s) for stream in series.streams}
    if any(gaps.values()):
        names = [name for name, gap_s in gaps.items() if gap_s]
        said.append(
            f"of {_first_of(names)} the file has no single samples, and gaps between values, up to "
            f"{max(gaps.values()):.3g} s: the value behind a gap is taken for the mean over it"
        )
    # What a record of the same samples said already is said once.
    return list(dict.fromkeys(said))


def _first_of(names: Sequence[str]) -> str:
    return f"`{names[0]}`" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _scenario(document: Document, series: Series, plan: Plan) -> dict[str, Any]:
    """The settings of the test as a resolved scenario; of a path of which nothing is known."""
    version = str(document.metadata.get("IP_VERSION") or "")
    return {
        "name": document.name,
        "duration_ns": plan.end,
        "phases": [{"name": name, "start_ns": start, "end_ns": end} for name, start, end in plan.phases],
        "flows": [_flow(stream, *plan.flows.get(stream.name, plan.load)) for stream in series.streams],
        "probes": [
            {"name": ping.name, "kind": ping.kind, "dscp": None, "start_ns": 0, "stop_ns": plan.end}
            for ping in series.pings
        ],
        "methods": [],
        "hosts": [],
        "tunnels": [],
        "path": {"up": [], "down": []},
        "shaper": None,
        "sampling": {"throughput_ns": round(document.step_s * 1e9)},
        **({"ip_version": version} if version in {"4", "6"} else {}),
    }


def _flow(stream: Stream, start: int, stop: int) -> dict[str, Any]:
    side = "UPSTREAM_TOS" if stream.direction == "up" else "DOWNSTREAM_TOS"
    tos = stream.meta.get(side)
    control = stream.meta.get("CONG_CONTROL")
    return {
        "name": stream.name,
        "direction": stream.direction,
        "dscp": tos >> 2 if isinstance(tos, int) and 0 <= tos < 256 else None,
        "start_ns": start,
        "stop_ns": stop,
        "bytes": None,
        "tcp": {"congestion_control": control if isinstance(control, str) else None, "overrides": None},
        # What it was told to send is not known.
        "udp": {"rate_bps": None, "payload_bytes": None} if stream.is_udp else None,
    }


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _write(manifest: dict[str, Any], tables: Mapping[str, pl.DataFrame], folder: Path) -> None:
    """Writes a record beside its place and renames it: it is there as a whole or not at all."""
    if folder.exists():
        raise UsageError(f"`{folder}` exists: choose another name, or take it away first")
    manifest["tables"] = {}
    part = folder.with_name(f".{uuid.uuid4().hex}.part")
    try:
        try:
            for name, table in tables.items():
                content = packed(table)
                target = part / name / "part-000000.parquet"
                target.parent.mkdir(parents=True)
                target.write_bytes(content)
                digest = hashlib.sha256(content).hexdigest()
                manifest["tables"][name] = {"parts": 1, "rows": table.height, "sha256": digest}
            text = json.dumps(manifest, indent=1, sort_keys=True)
            if len(text) > MAX_MANIFEST_BYTES:
                raise RecordError(
                    f"its metadata has {len(text)} bytes; a record's has {MAX_MANIFEST_BYTES} at most"
                )
            part.mkdir(parents=True, exist_ok=True)
            (part / "manifest.json").write_text(text, encoding="utf-8")
            part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise cannot_write(f"`{folder}` cannot be written", error) from error


WORLD = "imported"
"""The world of records that another tool measured."""
