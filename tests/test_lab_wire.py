"""What queues and routers of the lab do to real packets. Real time: short runs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from live import PATIENCE_S, skip_if_disturbed
from weirlab.plots import plot
from weirlab.stats import summarise

if TYPE_CHECKING:
    import polars as pl

pytestmark = [pytest.mark.realtime, pytest.mark.needs_lab]

LINE: dict[str, Any] = {
    "name": "line",
    "title": "10 Mbit/s, 20 ms",
    "up": [
        {"name": "router", "place": "queue", "rate": "10mbit", "delay": "4ms"},
        {"name": "far", "rate": "100mbit", "delay": "6ms"},
    ],
    "down": [{"name": "line", "place": "queue", "rate": "10mbit", "delay": "10ms"}],
}
BRIEFLY = {"idle": "0s", "load": "3s", "cooldown": "0s"}


def run(test: str | dict[str, Any], tmp_path: Path, world: str = "lab", **more: Any) -> weirlab.Record:
    (record,) = weirlab.run(
        test, link=LINE, world=world, phases=BRIEFLY, out=tmp_path / f"out-{world}", **more
    )
    return record


@pytest.mark.parametrize("ip", [4, 6])
def test_probes_of_all_kinds_are_answered_where_they_should_be(ip: int, tmp_path: Path) -> None:
    probes = [
        {"name": "icmp", "kind": "icmp"},
        {"name": "udp", "kind": "udp"},
        {"name": "tcp", "kind": "tcp"},
        {"name": "home router", "kind": "udp_ttl", "ttl": 1},
        {"name": "behind one hop", "kind": "udp_ttl", "ttl": 2},
        {"name": "behind two hops", "kind": "udp_ttl", "ttl": 3},
    ]
    test = {"name": "probes", "title": "Probes", "phases": {"load": "3s"}, "probes": probes}
    record = run(test, tmp_path, ip=ip)
    # Behind one hop the way back passes the one hop down, as behind both.
    skip_if_disturbed(record)
    least = {0: 20.0, 1: 20.0, 2: 20.0, 3: 0.0, 4: 14.0, 5: 20.0}
    for number, base in least.items():
        rows = record.latency.filter(record.latency["probe"] == number)
        assert rows.height > 50
        answered = rows["rtt_ns"].drop_nulls().to_list()
        assert len(answered) >= rows.height * 0.9, probes[number]
        # Never sooner than light, and, machine willing, soon after.
        assert base <= min(answered) / 1e6 < base + 5.0, probes[number]
    udp = record.latency.filter(record.latency["probe"] == 1).drop_nulls("rtt_ns")
    assert (udp["up_ns"] + udp["down_ns"] == udp["rtt_ns"]).all()
    assert min(udp["up_ns"].to_list()) >= 10_000_000


def test_the_simulator_answers_ttl_probes_at_the_same_routers(tmp_path: Path) -> None:
    probes = [{"name": f"router {ttl}", "kind": "udp_ttl", "ttl": ttl} for ttl in (1, 2, 3)]
    test = {"name": "probes", "title": "Probes", "phases": {"load": "3s"}, "probes": probes}
    record = run(test, tmp_path, world="sim")
    least = record.latency.group_by("probe").min().sort("probe")["rtt_ns"].to_list()
    assert [0 <= rtt / 1e6 - base < 0.5 for rtt, base in zip(least, (0, 14, 20), strict=True)] == [True] * 3


def total(column: pl.Series) -> int:
    numbers: list[int] = column.to_list()
    return sum(numbers)


def test_marks_reach_the_receiver_and_spare_the_sender_losses(tmp_path: Path) -> None:
    record = run("tcp_download", tmp_path, queue="codel ecn", tcp={"ecn": True})
    marked = total(record.flows["marked_packets"])
    assert marked > 0
    counters = json.loads((record.path / "manifest.json").read_text())["counters"]
    # What the kernel at the receiver has seen is what our queue has marked, but for what was under way.
    assert 0.8 * marked <= counters["client"]["IpExt:InCEPkts"] <= marked
    # Samples are of whole intervals: what is marked behind the end of the last one is in no row.
    reasons = [column for column in record.queue.columns if column.startswith("marked_")]
    assert 0.8 * marked <= sum(total(record.queue[column]) for column in reasons) <= marked
    skip_if_disturbed(record)
    assert counters["server"].get("Tcp:RetransSegs", 0) <= 0.2 * marked


def test_without_sack_the_kernel_recovers_without(tmp_path: Path) -> None:
    record = run("tcp_download", tmp_path, queue="pfifo limit 20", tcp={"sack": False})
    assert total(record.flows["retransmitted_segments"]) > 0
    server = json.loads((record.path / "manifest.json").read_text())["counters"]["server"]
    assert "TcpExt:TCPSackRecovery" not in server
    assert server["TcpExt:TCPRenoRecovery"] > 0


@pytest.mark.parametrize("control", ["reno", "bbr"])
def test_the_kernels_own_congestion_controls_fill_the_line(control: str, tmp_path: Path) -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if control not in available:
        pytest.skip(f"this kernel has no {control}")
    record = run("tcp_download", tmp_path, queue="pfifo limit 60", tcp={"congestion_control": control})
    skip_if_disturbed(record)
    goodput = total(record.flows["delivered_bytes"]) * 8 / 3
    assert 6e6 < goodput < 9.8e6


def test_type_of_service_chooses_the_band(tmp_path: Path) -> None:
    code = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x10);"
        "[s.sendto(b'x' * 100, ('server', 9)) for _ in range(50)];"
        "import time; time.sleep(1)"
    )
    out = tmp_path / "record"
    words = ("lab", "exec", "--queue", "pfifo_fast", "--out", str(out), "--", sys.executable, "-c", code)
    done = subprocess.run(
        [sys.executable, "-m", "weirlab", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    queue = weirlab.open_record(out).queue
    bands = queue.filter((queue["queue"] == "up/router") & (queue["class"] != ""))
    sent = {
        name: total(bands.filter(bands["class"] == name)["departed_packets"])
        for name in bands["class"].unique().to_list()
    }
    assert max(sent, key=lambda name: sent[name]) == min(sent), sent


def test_connections_of_any_program_are_in_the_record(tmp_path: Path) -> None:
    server = (
        "import socket; s = socket.create_server(('', 7000)); c = s.accept()[0];"
        "c.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'reno');"
        "c.recv(3); c.sendall(bytes(300_000)); c.recv(1)"
    )
    # The last look at both ends is before they close.
    client = (
        "import socket, time; c = socket.socket()\n"
        "while c.connect_ex(('server', 7000)): c = socket.socket(); time.sleep(0.1)\n"
        "c.sendall(b'get'); left = 300_000\n"
        "while left: left -= len(c.recv(left))\n"
        "time.sleep(1)"
    )
    out = tmp_path / "record"
    words = ("--out", str(out), "--server-command", shlex.join([sys.executable, "-c", server]))
    done = subprocess.run(
        [sys.executable, "-m", "weirlab", "lab", "exec", *words, "--", sys.executable, "-c", client],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    record = weirlab.open_record(out)
    manifest = json.loads((out / "manifest.json").read_text())
    [one] = manifest["connections"]
    assert (one["client"].partition(":")[0], one["server"]) == ("10.0.0.1", "10.1.0.1:7000")
    assert one["server_congestion_control"] == "reno"
    bytes_of = {
        flow: total(record.throughput.filter(record.throughput["flow"] == flow)["bytes"]) for flow in (0, 1)
    }
    assert bytes_of == {0: 3, 1: 300_000}
    wire = total(record.throughput.filter(record.throughput["flow"] == 1)["wire_bytes"])
    # Kernels count some of the segments that came joined as one.
    assert 300_000 < wire < 330_000
    down = record.tcp.filter(record.tcp["flow"] == 1)
    assert total(down["srtt_ns"]) >= 14_000_000 * down.height  # the empty line
    port = one["client"].partition(":")[2]
    assert [(row["name"], row["direction"]) for row in record.flow_rows] == [
        (f"port {port} up to 7000", "up"),
        (f"port {port} down from 7000", "down"),
    ]
    found = summarise(record).down
    assert found is not None
    # 300 kB over the 20 Mbit/s of the line take 0.13 s and slow start; the rest is not of the flow.
    assert 2 < found.per_flow_running_mbps[f"port {port} down from 7000"] < 20
    assert any(len(line.get_path()) for axes in plot(record, "tcp").axes for line in axes.lines)


def test_a_setting_that_forbids_the_lab_is_named() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can forbid it for a moment, in a namespace of its own")
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec "
    command = forbid + f"{sys.executable} -m weirlab lab exec -- true"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "/proc/sys/user/max_user_namespaces = 0 forbids" in done.stderr
    assert done.stderr.count("\n") == 1
