"""IPv4 beside IPv6 over real sockets in the lab. Real time: short runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from live import skip_if_disturbed
from weirlab.api import run_all
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import summarise
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record
    from weirlab.worlds import Datapath

pytestmark = [pytest.mark.realtime, pytest.mark.needs_lab]

HOP = {"name": "line", "rate": "10mbit", "delay": "10ms", "queue": "fq_codel"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
UDP = {"rate": "400kbit", "payload": 1000}
PAGE = {"document": 20_000, "objects": 2, "object": 10_000, "every": "1s"}


def _of_each(name: str, **of: Any) -> list[dict[str, Any]]:
    return [{"name": f"{name} {ip}", "ip": ip} | of for ip in (4, 6)]


TEST: dict[str, Any] = {
    "name": "both",
    "title": "Both",
    "phases": {"idle": "1s", "load": "3s", "cooldown": "0s"},
    "flows": [
        *_of_each("TCP up", direction="up"),
        *_of_each("TCP down", direction="down"),
        *_of_each("UDP", direction="up", udp=UDP),
        *_of_each("page", direction="down", web=PAGE),
    ],
    "probes": [*_of_each("icmp", kind="icmp"), *_of_each("udp", kind="udp"), *_of_each("tcp", kind="tcp")],
}


def _headers(record: Record, name: str, packet: int) -> float:
    """Bytes of headers a packet of a flow, which carries that many bytes of data."""
    (number,) = record.flow_names.filter(pl.col("name") == name)["flow"]
    rows = record.throughput.filter(pl.col("flow") == number)
    wire, data = int(rows["wire_bytes"].sum()), int(rows["bytes"].sum())
    return wire / data * packet - packet


@pytest.mark.parametrize("datapath", ["userspace", "kernel"])
def test_loads_and_pings_of_both_protocols_share_a_line(tmp_path: Path, datapath: Datapath) -> None:
    hop = HOP | ({} if datapath == "userspace" else {"queue": "pfifo limit 100"})
    link = LINK | {"up": [hop], "down": [hop]}
    runs = resolve(ScenarioSpec.model_validate({"test": TEST, "link": link}))
    (record,) = run_all(runs, world_named("lab", datapath), tmp_path / "run")
    skip_if_disturbed(record)
    summary = summarise(record)
    answered = record.latency.filter(pl.col("rtt_ns").is_not_null()).group_by("probe").len()
    assert set(answered["probe"]) == set(range(6)), "each probe has answers"
    for name, packet, headers in (
        ("UDP 4", 1000, 28),
        ("UDP 6", 1000, 48),
        ("TCP down 4", 1448, 52),
        ("TCP down 6", 1428, 72),
    ):
        assert _headers(record, name, packet) == pytest.approx(headers, abs=2), name
    for ip in (4, 6):
        assert summary.applications[f"page {ip}"].done >= 1, f"IPv{ip}"
        assert summary.udp[f"UDP {ip}"].loss_rate is not None
