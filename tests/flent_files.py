"""Small data files of Flent for tests."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from weirlab.flent import import_flent

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

T0 = 1_700_000_000.0

CLOCK_NS = 1000
"""Seconds since 1970 as a float are exact to a quarter of a microsecond."""


def document(**changes: Any) -> dict[str, Any]:
    """A small file of version 4: an upload of 8 Mbit/s from 1 s to 3 s, pings of 20 ms, one of them lost."""
    x_values = [round(0.2 * step, 6) for step in range(21)]
    pings = [{"t": T0 + 0.1 * n, "val": 20.0, "seq": n} for n in range(40) if n != 7]
    stream = [{"t": T0 + 1.25 + 0.25 * n, "dur": 0.25, "val": 8.0} for n in range(8)]
    found: dict[str, Any] = {
        "version": 4,
        "x_values": x_values,
        "results": {"Ping (ms) ICMP": [20.0] * 21, "TCP upload": [None] * 5 + [8.0] * 11 + [None] * 5},
        "raw_values": {"Ping (ms) ICMP": pings, "TCP upload": stream},
        "metadata": {
            "NAME": "tcp_upload",
            "TITLE": "before",
            "HOST": "server.example",
            "LOCAL_HOST": "laptop",
            "TIME": "2023-11-14T22:13:20.000000Z",
            "T0": "2023-11-14T22:13:20.000000Z",
            "LENGTH": 2,
            "TOTAL_LENGTH": 4,
            "STEP_SIZE": 0.2,
            "FLENT_VERSION": "2.3.0",
            "NOTE": "cable modem",
            "SERIES_META": {
                "Ping (ms) ICMP": {"UNITS": "ms", "RUNNER": "PingRunner"},
                "TCP upload": {"UNITS": "Mbits/s", "CONG_CONTROL": "cubic", "TCP_RETRANSMIT": "3"},
            },
        },
    }
    return found | changes


def written(folder: Path, content: dict[str, Any] | bytes, name: str = "one.flent.gz") -> Path:
    path = folder / name
    data = content if isinstance(content, bytes) else gzip.compress(json.dumps(content).encode())
    path.write_bytes(data)
    return path


def imported(folder: Path, content: dict[str, Any]) -> Record:
    record = import_flent(written(folder, content), folder / "record")
    record.check()
    return record
