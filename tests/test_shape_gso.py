"""GSO packets through `weir shape --backend userspace`: whole where they may be, cut where not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from live import PATIENCE_S, together
from row import NEW, need_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.needs_lab,
    pytest.mark.skipif(shutil.which("ip") is None, reason="the devices are made by iproute2"),
]

SERVER = """
import socket, sys, threading, zlib
def serve(near):
    what, size = near.recv(1), int.from_bytes(near.recv(8, socket.MSG_WAITALL))
    if what == b"d":
        near.sendall(bytes(range(256)) * (size // 256))
        near.close()
    else:
        sum, left = 0, size
        while left and (data := near.recv(1 << 20)):
            sum, left = zlib.crc32(data, sum), left - len(data)
        near.sendall(sum.to_bytes(4))
def echo(near):
    while True:
        data, whom = near.recvfrom(65536)
        near.sendto(data, whom)
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagrams.bind(("::", 5004))
threading.Thread(target=echo, args=(datagrams,), daemon=True).start()
server = socket.create_server(("::", 5003), family=socket.AF_INET6, dualstack_ipv6=True, backlog=50)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
"""A server that tells the checksum of what it receives, or sends data of which everybody knows it."""

CALLS = """
import json, socket, time, zlib
def connect(address):
    for _ in range(500):
        try:
            return socket.create_connection((address, 5003), timeout=120)
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"{address} does not answer")

DATA = bytes(range(256)) * 4096
def upload(address, size):
    near, sum = connect(address), 0
    near.sendall(b"u" + size.to_bytes(8))
    for _ in range(size // len(DATA)):
        near.sendall(DATA)
        sum = zlib.crc32(DATA, sum)
    return near.recv(4, socket.MSG_WAITALL) == sum.to_bytes(4)
def download(address, size):
    near, sum, wanted, left = connect(address), 0, 0, size
    near.sendall(b"d" + size.to_bytes(8))
    while left and (data := near.recv(1 << 20)):
        sum, left = zlib.crc32(data, sum), left - len(data)
    for _ in range(size // len(DATA)):
        wanted = zlib.crc32(DATA, wanted)
    return left == 0 and sum == wanted
"""
"""Transfers from and to the server: whether data came as it was sent."""

LINE = """
import os, pathlib, signal, subprocess, sys, threading
from weirlab.shape.running import status, view_in
WEIR = [sys.executable, "-m", "weirlab", "shape"]
def sh(line):
    subprocess.run(line, shell=True, check=True)
def there(place, line):
    sh(f"nsenter --net=/proc/{place.pid}/ns/net sh -c '{line}'")
def apart(command="sleep 1000"):
    words = ["unshare", "--net", "sh", "-c", f"echo; read go; exec {command}"]
    place = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    place.stdout.readline()
    return place
def go(place):
    place.stdin.write(b"go\\n"), place.stdin.flush()

# home - here, which forwards and shapes `line` - far
sh("mount -t proc proc /proc; mount -t sysfs sysfs /sys 2>/dev/null || true; ip link set lo up")
far, home = apart(f"{sys.executable} server.py"), apart()
for place, device, net, end in [(far, "line", 1, "far"), (home, "lan", 2, "home")]:
    sh(f"ip link add {device} type veth peer name {end} netns {place.pid}")
    sh(f"ip addr add 10.9.{net}.1/24 dev {device}; ip addr add fd09:{net}::1/64 dev {device} nodad")
    sh(f"ip link set {device} up")
    there(place, f"ip link set lo up; ip addr add 10.9.{net}.2/24 dev {end}; ip link set {end} up")
    there(place, f"ip addr add fd09:{net}::2/64 dev {end} nodad")
    there(place, f"ip route add default via 10.9.{net}.1; ip route add default via fd09:{net}::1")
sh("echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
go(far)

def came():
    "Packets that were handed over: those of which all is copied, and heads, of each way."
    text = pathlib.Path("/proc/self/net/netfilter/nfnetlink_queue").read_text()
    # Number of the queue, and of its last packet. The first of each way copies all.
    rows = sorted([int(column) for column in line.split()] for line in text.splitlines())
    half = len(rows) // 2
    ways = [rows[:half], rows[half:]] if rows else []
    return [count for first, *others in ways for count in [first[7], sum(row[7] for row in others)]]

def counter(place, name):
    "A counter, of all protocols that have it."
    files = ["/proc/net/netstat", "/proc/net/snmp"]
    text = subprocess.run(["nsenter", f"--net=/proc/{place.pid}/ns/net", "cat", *files],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    found = [int(values.split()[names.split().index(name)])
             for names, values in zip(text[::2], text[1::2]) if name in names.split()]
    if not found:
        raise SystemExit(f"no counter {name}")
    return sum(found)

def start(*words):
    # No probe is to cross the line: packets are counted.
    own = ["--backend", "userspace", "--state", "none", "--reflector", "127.0.0.1"]
    shaper = subprocess.Popen([*WEIR, "line", "--quiet", *own, *words])
    while shaper.poll() is None:
        done = subprocess.run([*WEIR, "status", "line", "--json"], capture_output=True, text=True)
        if done.returncode == 0 and "sides" in done.stdout:
            return shaper
        time.sleep(0.05)
    raise SystemExit(f"the shaper ended with code {shaper.returncode}")

def stop(shaper):
    subprocess.run([*WEIR, "stop", "line"], check=True, capture_output=True)
    assert shaper.wait(60) == 0

def crossed():
    "Bytes that crossed the line so far, of each way, as a view says that was made from now on."
    seen = set()
    while len(seen) < 3:
        time.sleep(0.02)
        view = view_in(status("line"))
        seen.add(view["t_ns"])
    return [side["counts"]["bytes"] for side in view["sides"]]

def measured(way, transfer):
    "What a transfer tells, and of its way packets of each queue, bytes on the line, and seconds."
    line, before, began = crossed()[way], came(), time.monotonic()
    told = transfer()
    seconds = time.monotonic() - began
    packets = [now - then for now, then in zip(came(), before)][way * 2:way * 2 + 2]
    return [told, packets, crossed()[way] - line, seconds]

def transfers(address, size):
    "Whether data came intact up and down, packets of each queue, bytes on the line, and Mbit/s, of each way."
    found = []
    for way, transfer in enumerate([upload, download]):
        *measures, seconds = measured(way, lambda: transfer(address, size))
        found.append([*measures, size * 8 / seconds / 1e6])
    return found

def both(rate, queue, size):
    "Transfers by IPv4 and IPv6 through a shaper of that rate and queue."
    shaper = start("--up", rate, "--down", rate, "--queue-up", queue, "--queue-down", queue)
    found = [transfers(address, size) for address in ["10.9.1.2", "fd09:1::2"]]
    stop(shaper)
    return found
"""
"""A script that shapes `line` between this namespace and the server's, and forwards for a third one."""


def on_line(script: str, folder: Path) -> Any:
    """What a script prints as JSON on a line of its own."""
    (folder / "server.py").write_text(SERVER)
    (folder / "home.py").write_text(CALLS + HOME)
    (folder / "script.py").write_text(CALLS + LINE + script)
    done = subprocess.run(
        [*NEW, sys.executable, "script.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def at(rates: str, queue: str, size_mb: int) -> str:
    """A script: transfers of so many MB by IPv4 and IPv6 at rates of both ways, with a queue.

    Where one is slow, it is judged by what the machine carries at a rate that it does not reach, in the
    dearest way. Something else may have ended in between: both are measured again then.
    """
    return f"""
def slowest(found):
    return min(mbps for ways in found for *_, mbps in ways)
rate, tries = {float(rates.removesuffix("mbit"))}, []
while len(tries) < {TRIES}:
    found = both("{rates}", "{queue}", {size_mb} << 20)
    tries.append([slowest(found), rate])
    if slowest(found) > {REACHED} * rate:
        break
    tries[-1][1] = min(rate, slowest(both("100gbit", "cake wash", {size_mb} << 20)))
    if slowest(found) > {REACHED} * tries[-1][1]:
        break
print(json.dumps([found, tries]))
"""


OF_4 = """
sh("ip link set line gso_max_size 6200")
there(far, "ip link set far gso_max_size 6200")
"""
"""Both ends make GSO packets of up to 4 segments: less than 6000 bytes."""

TRIES = 5
"""How often a line is measured that does not carry its part."""

REACHED = 0.3
"""Part of its rate, or of what the machine carries, that a line carries: the first round trips cost some."""

HOME = """
import sys
[_, size_mb, name] = sys.argv
transfer = {"upload": upload, "download": download}[name]
print(json.dumps([transfer(it, int(size_mb) << 20) for it in ["10.9.1.2", "fd09:1::2"]]))
"""

FORWARDED = """
def forwarded(rate, queue, size_mb):
    "As of transfers, but of a host behind this machine, by IPv4 and IPv6."
    shaper = start("--up", rate, "--down", rate, "--queue-up", queue, "--queue-down", queue)
    words = ["nsenter", f"--net=/proc/{home.pid}/ns/net", sys.executable, "home.py", str(size_mb)]
    found = []
    for way, name in enumerate(["upload", "download"]):
        call = lambda: subprocess.run([*words, name], capture_output=True, text=True, check=True)
        done, *measures, _ = measured(way, call)
        found.append([json.loads(done.stdout), *measures])
    stop(shaper)
    return found
"""

CHECKED = (
    FORWARDED
    + """
import array, fcntl, struct
def ethtool(device, command, value):
    words = array.array("I", [command, value])
    with socket.socket() as near:
        # SIOCETHTOOL, include/uapi/linux/sockios.h
        fcntl.ioctl(near, 0x8946, struct.pack("16sP16x", device.encode(), words.buffer_info()[0]))
# What leaves has its checksums done (ETHTOOL_STXCSUM), and who receives it looks at them.
ethtool("line", 0x17, 0)
def wrong():
    return [counter(far, "InCsumErrors"), counter(home, "InCsumErrors")]
"""
)

JOINED = (
    CHECKED
    + """
# The host sends one segment after another, and this machine joins them (GRO, ETHTOOL_SGRO), as of a card.
ethtool("lan", 0x2c, 1)
there(home, "ip link set home gso_max_segs 1")
"""
)

ECN_AT_HOME = """
for place in [far, home]:
    there(place, "echo 1 > /proc/sys/net/ipv4/tcp_ecn")
"""

SMALL = """
sh("ip link set line mtu 1400")
there(far, "ip link set far mtu 1400")
"""

MARKED = """
for place in [far, home]:
    there(place, "echo 1 > /proc/sys/net/ipv4/tcp_ecn")
sh("echo 1 > /proc/sys/net/ipv4/tcp_ecn")
shaper = start("--up", "300mbit", "--down", "300mbit",
               "--queue-up", "fq_codel ce_threshold 1us", "--queue-down", "fq_codel ce_threshold 1us")
found = [transfers(address, 32 << 20) for address in ["10.9.1.2", "fd09:1::2"]]
marks = counter(far, "InCEPkts")
wrong = counter(far, "InCsumErrors")
stop(shaper)
print(json.dumps([found, marks, wrong]))
"""

KILLED = """
shaper = start("--up", "600mbit", "--down", "600mbit")
done = []
load = threading.Thread(target=lambda: done.append(upload("10.9.1.2", 256 << 20)))
load.start()
time.sleep(0.5)
shaper.kill()
load.join(120)
print(json.dumps([shaper.wait(60), done, came()]))
"""

STOPPED = """
shaper = start("--up", "600mbit", "--down", "600mbit")
done = []
load = threading.Thread(target=lambda: done.append(upload("10.9.1.2", 256 << 20)))
load.start()
time.sleep(0.5)
[pid] = [json.loads(subprocess.run([*WEIR, "status", "line", "--json"], capture_output=True).stdout)["pid"]]
os.kill(pid, signal.SIGSTOP)
time.sleep(2)
os.kill(pid, signal.SIGCONT)
load.join(120)
again = transfers("10.9.1.2", 32 << 20)
stop(shaper)
print(json.dumps([done, again]))
"""

BIG = """
import struct
# RTM_NEWLINK with IFLA_GSO_MAX_SIZE and IFLA_GSO_IPV4_MAX_SIZE (Linux 6.3), which iproute2 6.1 does not know.
sizes = b"".join(struct.pack("=HHI", 8, kind, 200_000) for kind in [41, 63])
body = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex("line"), 0, 0) + sizes
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as near:
    near.send(struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body)
    assert near.recv(4096)[16:20] == bytes(4)
shaper = start("--up", "600mbit", "--down", "600mbit")
found = [transfers(address, 64 << 20) for address in ["10.9.1.2", "fd09:1::2"]]
stop(shaper)
print(json.dumps(found))
"""

HEADERS = """
shaper = start("--up", "600mbit", "--down", "600mbit")
near = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
near.settimeout(10)
near.connect(("fd09:1::2", 5004))
near.send(b"neighbours know each other"), near.recv(100)
before = came()
answers = []
for options in [b"", bytes([0x1e, 130]) + bytes(130) + bytes([0x1e, 128]) + bytes(128)]:
    # IPV6_DSTOPTS: two options of an experiment (RFC 4727), which whoever does not know them skips.
    header = options and bytes([0, (len(options) + 2) // 8 - 1]) + options
    near.setsockopt(socket.IPPROTO_IPV6, 59, header)
    near.send(b"so long")
    answers.append(near.recv(100) == b"so long")
    answers.append([now - then for now, then in zip(came(), before)])
stop(shaper)
print(json.dumps(answers))
"""

LINES = {
    "headers": HEADERS,
    "cake 600": at("600mbit", "cake", 64),
    "cake 100": at("100mbit", "cake", 12),
    "pfifo 200": at("200mbit", "pfifo", 24),
    "pfifo 100": at("100mbit", "pfifo", 12),
    "cake 100 of 4": OF_4 + at("100mbit", "cake", 12),
    "fq_codel 100 of 4": OF_4 + at("100mbit", "fq_codel", 12),
    "cake 60 of 4": OF_4 + at("60mbit", "cake", 8),
    "wash 600": at("600mbit", "cake wash", 64),
    "forwarded": FORWARDED + "print(json.dumps(forwarded('600mbit', 'cake', 64)))",
    "forwarded, cut": CHECKED + "print(json.dumps([forwarded('100mbit', 'cake', 12), wrong()]))",
    "forwarded, joined": JOINED + SMALL + "print(json.dumps([forwarded('100mbit', 'cake', 12), wrong()]))",
    "forwarded, marked": f"""{JOINED}{ECN_AT_HOME}
found = forwarded("300mbit", "fq_codel ce_threshold 1us", 32)
print(json.dumps([found, wrong(), [counter(far, "InCEPkts"), counter(home, "InCEPkts")]]))
""",
    "marked": MARKED,
    "killed": KILLED,
    "stopped": STOPPED,
    "big": BIG,
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Any]]:
    """All lines, one after another: each is to reach its rates."""
    need_row()
    found: dict[str, Future[Any]] = {}
    for name, script in LINES.items():
        found |= together({name: partial(on_line, script, tmp_path_factory.mktemp("gso"))})
    return found


WHOLE_MB = {"cake 600": 64, "pfifo 200": 24}
OF_4_MB = {"cake 100 of 4": 12, "fq_codel 100 of 4": 12}
CUT_MB = {"cake 100": 12, "pfifo 100": 12, "cake 60 of 4": 8, "wash 600": 64}


def lengths_of(line: Future[Any], name: str, sent: int) -> Iterator[float]:
    """The mean bytes of packets of each connection that sent so much and of which nothing was copied."""
    rate = float(name.split()[1])
    found, tries = line.result()
    assert tries[-1][0] > REACHED * tries[-1][1], tries
    for ways in found:
        for intact, [copied, heads], crossed, mbps in ways:
            assert intact
            # A connection without ECN: nothing is written into it, and nothing of it is copied.
            assert copied == 0
            assert_counted(sent, crossed)
            assert mbps < rate * 1448 / 1538 * 1.03
            yield sent / heads


@pytest.mark.parametrize("name", WHOLE_MB)
def test_where_a_packet_is_short_it_stays_whole(lines: dict[str, Future[Any]], name: str) -> None:
    assert all(length > 6000 for length in lengths_of(lines[name], name, WHOLE_MB[name] << 20))


@pytest.mark.parametrize("name", OF_4_MB)
def test_short_ones_stay_whole_at_rates_at_which_long_ones_are_cut(
    lines: dict[str, Future[Any]], name: str
) -> None:
    lengths = list(lengths_of(lines[name], name, OF_4_MB[name] << 20))
    # Most have 4 segments, of 1428 bytes at least.
    assert all(4000 < length < 4 * 1448 for length in lengths), lengths


@pytest.mark.parametrize("name", CUT_MB)
def test_where_it_is_long_or_written_into_the_kernel_cuts_it(
    lines: dict[str, Future[Any]], name: str
) -> None:
    rate = float(name.split()[1])
    found, tries = lines[name].result()
    assert tries[-1][0] > REACHED * tries[-1][1], tries
    for ways in found:
        for intact, [copied, heads], crossed, mbps in ways:
            assert intact
            assert (copied == 0) == (not name.startswith("wash"))
            assert (CUT_MB[name] << 20) / (copied + heads) < 1500
            assert_counted(CUT_MB[name] << 20, crossed)
            assert mbps < rate * 1448 / 1538 * 1.03


def assert_counted(size: int, crossed: int, mtu: int = 1500) -> None:
    """So much data is so many bytes on the line: with 38 bytes of framing a segment takes 1538.

    It holds 1448 bytes, over IPv6 1428; few are sent twice.
    """
    assert size * (mtu + 38) / (mtu - 52) <= crossed < size * (mtu + 38) / (mtu - 72) * 1.05


def forwarded(found: list[Any], size_mb: int, mtu: int = 1500) -> list[tuple[float, float]]:
    """Packets of which all was copied, and heads, of each way of what a host exchanged by both protocols.

    It is intact, and counts as what is on the line.
    """
    packets = []
    for intact, [copied, heads], crossed in found:
        assert intact == [True, True]
        assert_counted(2 * size_mb << 20, crossed, mtu)
        packets.append((copied, heads))
    return packets


def test_what_is_forwarded_stays_whole_and_intact(lines: dict[str, Future[Any]]) -> None:
    for copied, heads in forwarded(lines["forwarded"].result(), 64):
        assert copied == 0
        assert (128 << 20) / heads > 6000


def test_what_is_forwarded_is_cut_where_it_is_long(lines: dict[str, Future[Any]]) -> None:
    found, wrong = lines["forwarded, cut"].result()
    for copied, heads in forwarded(found, 12):
        assert copied == 0
        assert (24 << 20) / heads < 1500
    assert wrong == [0, 0]


def test_what_a_card_joined_is_intact_and_counts_as_the_segments_of_the_line(
    lines: dict[str, Future[Any]],
) -> None:
    found, wrong = lines["forwarded, joined"].result()
    for copied, heads in forwarded(found, 12, 1400):
        assert copied == 0
        # None is whole that takes more than 0.5 ms.
        assert (24 << 20) / heads < 6000
    assert wrong == [0, 0]


def test_what_is_forwarded_and_allows_marks_is_marked_and_intact(lines: dict[str, Future[Any]]) -> None:
    found, wrong, marked = lines["forwarded, marked"].result()
    for copied, _ in forwarded(found, 32):
        assert (64 << 20) / copied < 1500
    assert min(marked) > 100
    assert wrong == [0, 0]


def test_packets_that_allow_marks_come_cut_and_are_marked(lines: dict[str, Future[Any]]) -> None:
    found, marks, wrong = lines["marked"].result()
    for ways in found:
        for intact, [copied, _], crossed, _ in ways:
            assert intact
            assert (32 << 20) / copied < 1500
            assert_counted(32 << 20, crossed)
    assert marks > 100
    assert wrong == 0


def test_packets_longer_than_ip_can_tell_are_cut_and_intact(lines: dict[str, Future[Any]]) -> None:
    for up, down in lines["big"].result():
        assert up[0]
        assert down[0]
        # Up, where the device takes longer ones, many are, and come as segments; down there are none.
        [copied, _], [none, heads] = up[1], down[1]
        assert copied > 1000
        assert none == 0
        assert (64 << 20) / heads > 6000


def test_a_packet_whose_headers_are_long_comes_once_more_and_whole(lines: dict[str, Future[Any]]) -> None:
    plain, [_, heads, _, answers], long, [copied, all_heads, _, all_answers] = lines["headers"].result()
    assert plain
    assert long
    assert (heads, answers) == (1, 1)
    assert (copied, all_heads, all_answers) == (1, 2, 2)


def test_a_connection_goes_on_after_the_shaper_was_killed(lines: dict[str, Future[Any]]) -> None:
    code, done, queues = lines["killed"].result()
    assert code == -9
    assert done == [True]
    assert queues == []


def test_a_connection_goes_on_after_the_shaper_stood_still(lines: dict[str, Future[Any]]) -> None:
    done, again = lines["stopped"].result()
    assert done == [True]
    for intact, [copied, heads], *_ in again:
        assert intact
        assert copied == 0
        assert (32 << 20) / heads > 6000
