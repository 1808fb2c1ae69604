"""The packets of a simulated run as a pcapng file, for tcpdump, tshark and Wireshark.

A record keeps no packets. The simulator makes the same run again from what the record says, this time with
the bytes that its packets would have, and the run must come to what the record has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from weirlab import _native
from weirlab.errors import UsageError, WriteError
from weirlab.scenario import Direction
from weirlab.stats.capacity import slowest_hops

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Packets:
    """Which packets of a run are written.

    Attributes:
        hops: names of the hops, such as `up/modem`; if there is none, the slowest of each direction.
        arrivals: whether packets are taken as they arrive at a hop, those included that its queue drops;
            else as they leave the queue.
        snap_len: bytes that are kept of each packet, 1 or more; None for all.
    """

    hops: tuple[str, ...] = ()
    arrivals: bool = False
    snap_len: int | None = None


def check_packets(record: Record) -> None:
    """Refuses a record whose run cannot be made again.

    Raises:
        UsageError: why not.
    """
    manifest = record.manifest
    if manifest.imported is not None:
        raise UsageError(
            f"`{record.path}` was imported from {manifest.imported.tool}: of its packets nothing is known"
        )
    if manifest.world != "sim":
        keeps = "weir lab exec --pcap FILE keeps those of a lab" if manifest.world == "lab" else "use tcpdump"
        raise UsageError(f"`{record.path}`: packets of the world {manifest.world} were not kept: {keeps}")
    if not manifest.complete:
        raise UsageError(f"`{record.path}`: the run was cut short: packets are those of whole runs only")


def write_packets(record: Record, file: Path, packets: Packets) -> None:
    """Writes the packets of `record` to `file` as pcapng, with times in ns since the run began.

    Memory does not grow with the length of the run.

    Raises:
        UsageError: if the run cannot be made again, there is no such hop, or it comes to something else.
        WriteError: if the file cannot be written.
    """
    check_packets(record)
    manifest = record.manifest
    hops = list(packets.hops) or list(_slowest(record))
    try:
        outcome = _native.simulate_packets(
            json.dumps(manifest.scenario),
            manifest.seed or 0,
            {name: record.recording(name) for name in _recordings(record)},
            hops,
            packets.arrivals,
            packets.snap_len,
            file,
            None,
        )
    except _native.InputError as error:
        raise UsageError(f"`{record.path}`: {error}") from error
    except _native.NativeError as error:
        raise WriteError(str(error)) from error
    was = (manifest.reached_ns, manifest.events, manifest.packets)
    if was != (outcome["reached_ns"], outcome["events"], outcome["packets"]):
        version = manifest.versions.get("weir", "another version")
        raise UsageError(
            f"`{record.path}`: this Weir simulates {outcome['packets']} packets where the record, made by "
            f"Weir {version}, has {manifest.packets}: make the run anew"
        )


def _slowest(record: Record) -> Iterator[str]:
    """The slowest hop of each direction in which the path has hops; of each path, where there are several."""
    scenario = record.manifest.scenario
    for direction in get_args(Direction):
        hops = scenario["path"][direction]
        slowest = slowest_hops(record, direction, 0, scenario["duration_ns"]) or hops[:1]
        yield from (f"{direction}/{hop['name']}" for hop in slowest)


def _recordings(record: Record) -> set[str]:
    """Names of the recorded lines of the path."""
    path = record.manifest.scenario["path"]
    rates = [hop["rate"] for direction in get_args(Direction) for hop in path[direction]]
    return {rate["trace"] for rate in rates if isinstance(rate, dict) and "trace" in rate}
