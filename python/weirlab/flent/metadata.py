"""Metadata of a record as Flent has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from weirlab.flent.document import ZONE_S, number
from weirlab.flent.points import start_of, step_s
from weirlab.stats import load_window_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirlab.record import Record
    from weirlab.record.manifest import Imported


def metadata(record: Record, title: str | None = None) -> dict[str, Any]:
    """Metadata of a run that Flent needs or shows, and all that the file had of which it was made.

    Args:
        record: the record.
        title: its TITLE; None for that of `title_of`.
    """
    told, of = _of_run(record) | ({} if title is None else {"TITLE": title}), record.manifest.imported
    if of is None:
        return told
    return told | {
        key: _in_utc(value, record, of) if key in TIMES else value
        for key, value in of.metadata.items()
        if key not in OWN and (value is not None or key not in told)
    }


def series_metadata(record: Record, ours: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is told of each series: all that the file had of which the record was made, and what that lacks.

    Args:
        record: the record.
        ours: what the record itself says of each, by its name, in their order.
    """
    of = record.manifest.imported
    told = {name: of.series.get(name, {}) if of else {} for name in ours}
    places = [number(meta.get("IDX")) for meta in told.values()]
    behind = 1 + int(max((one for one in places if one is not None), default=-1))
    return {
        name: {"IDX": behind + place, **meta}
        | {
            key: value
            for key, value in told[name].items()
            if key not in OWN_OF_SERIES and (value is not None or key not in meta)
        }
        for place, (name, meta) in enumerate(ours.items())
    }


def hosts_in_series(record: Record) -> list[str]:
    """The servers by the names that series have. Flent's fairness tests name them so."""
    of = record.manifest.imported
    told = of.metadata.get("HOSTS") if of else None
    if isinstance(told, list) and told:
        return [str(one) for one in told]
    if of:
        return [str(of.metadata.get("HOST") or "unknown")]
    return [str(one["name"]) for one in record.manifest.scenario.get("hosts", [])] or ["server"]


def title_of(record: Record) -> str:
    """Title of a run: link and queue, or the title of the file that it was made of."""
    of = record.manifest.imported
    return str(of.metadata.get("TITLE") or "") if of else record.manifest.configuration


def _of_run(record: Record) -> dict[str, Any]:
    """What the record itself says."""
    manifest = record.manifest
    start, end = load_window_ns(record)
    has_flows = record.flow_names.height > 0
    # Of a run that was cut short what was reached: Flent draws its axis as long as that.
    total = min(manifest.scenario["duration_ns"], record.reached_ns) / 1e9
    began = _text(start_of(record))
    version = manifest.scenario.get("ip_version")
    name = manifest.scenario["name"]
    uploads = (record.flow_names["direction"] == "up").sum()
    streams = {
        "tcp_nup": ("upload_streams", uploads),
        "tcp_ndown": ("download_streams", record.flow_names.height),
    }
    parameters = {key: str(count) for test, (key, count) in streams.items() if test == name}
    hosts = hosts_in_series(record)
    real = _servers(record) or hosts
    in_series = any(host in series for host in hosts for series in record.flow_names["name"].to_list())
    return {
        "NAME": name,
        "TITLE": title_of(record),
        "TIME": began,
        "T0": began,
        "LENGTH": (end - start) / 1e9 if has_flows else total,
        "TOTAL_LENGTH": total,
        "STEP_SIZE": step_s(record),
        "HOST": real[0],
        "HOSTS": hosts if in_series else real,
        "LOCAL_HOST": manifest.host.get("name", "unknown"),
        "NOTE": manifest.note or None,
        "TEST_PARAMETERS": parameters,
        "FLENT_VERSION": f"Weir {manifest.versions.get('weir', '?')}",
        "IP_VERSION": int(version) if version in {"4", "6"} else None,
        "KERNEL_NAME": manifest.host.get("kernel", "").partition(" ")[0] or None,
        "KERNEL_RELEASE": manifest.host.get("kernel", "").partition(" ")[2] or None,
        "FAILED_RUNNERS": 0 if manifest.imported is None else None,
    }


def _servers(record: Record) -> list[str]:
    """The servers of a run over real paths, as the user wrote them, in the order of the scenario's hosts."""
    told = record.manifest.extra.get("servers")
    named: Mapping[str, str] = {
        str(one.get("host")): str(one["name"]).removesuffix(USUAL_PORT)
        for one in (told if isinstance(told, list) else [])
        if isinstance(one, dict) and one.get("name")
    }
    hosts = [str(one["name"]) for one in record.manifest.scenario.get("hosts", [])]
    return [named[host] for host in hosts] if named.keys() >= set(hosts) else []


def _in_utc(value: object, record: Record, of: Imported) -> object:
    """A time of an old file, which may be a local one, in UTC."""
    try:
        time, began = (
            datetime.fromisoformat(str(one)) for one in (value, of.metadata.get("T0") or of.metadata["TIME"])
        )
        if time.tzinfo is not None:
            return _text(time.astimezone(UTC))
        if began.tzinfo is not None:
            return value
        ahead_s = (began.replace(tzinfo=UTC) - start_of(record)).total_seconds()
        return _text(time.replace(tzinfo=UTC) - timedelta(seconds=round(ahead_s / ZONE_S) * ZONE_S))
    except (KeyError, ValueError, OverflowError):
        return value


def _text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


OWN = {"NAME", "TITLE", "T0", "LENGTH", "TOTAL_LENGTH", "STEP_SIZE", "HOSTS", "NOTE", "FLENT_VERSION"}
"""What the record says, whatever the file did of which it was made."""

OWN_OF_SERIES = {"UNITS"}
"""What says how the values of a series stand in this file."""

TIMES = {"TIME", "BATCH_TIME"}

USUAL_PORT = ":8080"
"""That of `weir serve`, which is not written if nothing else is said."""
