"""A client with several paths: what is bound to one leaves there, and records tell the paths apart."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections import Counter
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import weirlab
from live import skip_if_disturbed, skip_if_late, weir_in
from weirlab.cli.lab_lines import queue_of, resolved
from weirlab.errors import UsageError
from weirlab.stats import busy_share

if TYPE_CHECKING:
    import subprocess

    from weirlab.record import Record

pytestmark = pytest.mark.realtime

LINE = """
name = "{name}"
title = "{name}"
up = [{{ name = "air", rate = "5mbit", delay = "{delay}", place = "queue" }}]
down = [{{ name = "air", rate = "{rate}", delay = "{delay}", place = "queue", queue = "pfifo limit 50" }}]
"""

SERVER = """
import socket, sys, threading
protocol = int(sys.argv[1])
echo = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
echo.bind(("", 7777))
# The answer leaves from the address that was asked (IPV6_RECVPKTINFO brings it).
echo.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
def answer():
    while True:
        data, about, _, peer = echo.recvmsg(100, 100)
        echo.sendmsg([data], about, 0, peer)
threading.Thread(target=answer, daemon=True).start()
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
listener.bind(("", 7778))
listener.listen()
def send(taker):
    try:
        while True:
            taker.sendall(bytes(65536))
    except OSError:
        pass
while True:
    threading.Thread(target=send, args=[listener.accept()[0]], daemon=True).start()
"""

ROUND_TRIPS = """
import json, socket, sys, time
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
wifi, lte = ("fd00::1", "fd00::2") if sys.argv[1] == "6" else ("10.0.0.1", "10.0.0.2")

def least_ms(server, address=None, device=None):
    near = socket.socket(family, socket.SOCK_DGRAM)
    near.settimeout(30)
    if address:
        near.bind((address, 0))
    if device:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
    near.connect((server, 7777))
    times = []
    for number in range(10):
        start = time.monotonic()
        near.send(b"%d" % number)
        assert near.recv(100) == b"%d" % number
        times.append(time.monotonic() - start)
    return near.getsockname()[0], min(times) * 1e3

print(json.dumps({
    "unbound": least_ms("server"),
    "unbound to wifi": least_ms("server-wifi"),
    "unbound to lte": least_ms("server-lte"),
    "from wifi": least_ms("server", address=wifi),
    "from lte": least_ms("server", address=lte),
    "from the name of lte": least_ms("server", address="client-lte"),
    "from wifi to lte": least_ms("server-lte", address=wifi),
    "on weir0": least_ms("server-lte", device=b"weir0"),
    "on weir1": least_ms("server", device=b"weir1"),
}))
"""

CHANGED = """
import json, socket, subprocess, sys, time

def least_ms():
    found = {}
    for path in ("wifi", "lte"):
        near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        near.settimeout(30)
        near.bind((f"client-{path}", 0))
        near.connect(("server", 7777))
        times = []
        for number in range(10):
            start = time.monotonic()
            near.send(b"%d" % number)
            assert near.recv(100) == b"%d" % number
            times.append(time.monotonic() - start)
        found[path] = min(times) * 1e3
    return found

before = least_ms()
change = ("lab", "set", "line.sock", "down/lte/air", "delay=100ms")
subprocess.run([sys.argv[1], "-m", "weirlab", *change], check=True, stdout=sys.stderr)
print(json.dumps([before, least_ms()]))
"""

DOWNLOADS = """
import json, socket, sys, threading, time
goodput = {}
def download(address):
    near = socket.create_connection(("server", 7778), source_address=(address, 0))
    count, start = 0, time.monotonic()
    while time.monotonic() < start + 4:
        got = len(near.recv(65536))
        count += got if time.monotonic() > start + 2 else 0
    goodput[address] = count * 8 / 2 / 1e6
threads = [threading.Thread(target=download, args=[address]) for address in sys.argv[1:]]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(json.dumps(goodput))
"""

MULTIPATH = """
import socket, subprocess, time
for words in ("limits set subflows 2", "endpoint add 10.0.0.2 dev weir1 subflow"):
    subprocess.run(["ip", "mptcp", *words.split()], check=True)
near = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
near.connect(("server", 7778))
count, start = 0, time.monotonic()
while time.monotonic() < start + 6:
    got = len(near.recv(65536))
    count += got if time.monotonic() > start + 3 else 0
print(count * 8 / 3 / 1e6)
"""


def lab(
    folder: Path, program: str, *words: str, options: tuple[str, ...] = (), protocol: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs `program`, with `words`, at a client that has `wifi` (20 ms there and back) and `lte` (80 ms)."""
    for name, delay, rate in (("wifi", "10ms", "16mbit"), ("lte", "40ms", "4mbit")):
        (folder / f"{name}.toml").write_text(LINE.format(name=name, delay=delay, rate=rate))
    for name, text in (("server.py", SERVER), ("program.py", program)):
        (folder / name).write_text(text)
    server = f"exec {sys.executable} {folder / 'server.py'} {protocol}"
    paths = ("--path", "wifi=wifi.toml", "--path", "lte=lte.toml", *options)
    done = weir_in(
        folder,
        *("lab", "exec", *paths, "--server-command", server, "--"),
        *(sys.executable, str(folder / "program.py"), *words),
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.needs_lab
@pytest.mark.parametrize("device", ["auto", "veth"])
@pytest.mark.parametrize("ip", ["4", "6"])
def test_what_is_bound_to_an_address_or_a_device_takes_its_path(tmp_path: Path, ip: str, device: str) -> None:
    done = lab(tmp_path, ROUND_TRIPS, ip, options=("--ip", ip, "--device", device))
    wifi, lte = ("fd00::1", "fd00::2") if ip == "6" else ("10.0.0.1", "10.0.0.2")
    found = json.loads(done.stdout)
    assert {name: address for name, (address, _) in found.items()} == {
        "unbound": wifi,
        "unbound to wifi": wifi,
        "unbound to lte": lte,
        "from wifi": wifi,
        "from lte": lte,
        "from the name of lte": lte,
        "from wifi to lte": wifi,
        "on weir0": wifi,
        "on weir1": lte,
    }
    # Never shorter than the path; how much longer is up to how busy the machine is.
    for name, (address, least_ms) in found.items():
        assert least_ms >= (20.0 if address == wifi else 80.0), name
    skip_if_late(done.stderr)
    for name, (address, least_ms) in found.items():
        assert least_ms < (50.0 if address == wifi else 120.0), name


@pytest.mark.quiet
@pytest.mark.needs_lab
def test_paths_carry_at_once_what_their_lines_do_and_the_record_tells_them_apart(tmp_path: Path) -> None:
    options = ("--queue", "pfifo limit 60", "--queue-down", "lte=pfifo limit 20")
    kept = ("--out", "record", "--pcap", "packets.pcapng")
    done = lab(tmp_path, DOWNLOADS, "10.0.0.1", "10.0.0.2", options=(*options, *kept))
    record = weirlab.open_record(tmp_path / "record")
    manifest = record.manifest
    assert sorted(set(record.queue["queue"])) == [
        "down/lte/air",
        "down/wifi/air",
        "up/lte/air",
        "up/wifi/air",
    ]
    path = manifest.scenario["path"]
    assert [hop["queue"] for hop in path["down"]] == ["pfifo limit 60", "pfifo limit 20"]
    assert manifest.scenario["routes"] == [
        {"name": "wifi", "up": [0], "down": [0]},
        {"name": "lte", "up": [1], "down": [1]},
    ]
    queues = "wifi: pfifo limit 60; lte: up pfifo limit 60, down pfifo limit 20"
    assert manifest.configuration == f"wifi: wifi; lte: lte; {queues}"
    of_path = {one["client"].split(":")[0]: one["path"] for one in manifest.extra["connections"]}
    assert of_path == {"10.0.0.1": "wifi", "10.0.0.2": "lte"}
    packets = packets_by_interface((tmp_path / "packets.pcapng").read_bytes())
    assert packets.keys() == {("wifi", "10.0.0.1"), ("lte", "10.0.0.2")}
    skip_if_disturbed(record)
    # Of both lines together, though neither is the slower one of the other's.
    assert busy_share(record, "down", *while_loaded_ns(record)) == pytest.approx(1, abs=0.15)
    goodput = json.loads(done.stdout)
    assert goodput["10.0.0.1"] == pytest.approx(16 * 1448 / 1500, rel=0.1)
    assert goodput["10.0.0.2"] == pytest.approx(4 * 1448 / 1500, rel=0.1)


def while_loaded_ns(record: Record) -> tuple[int, int]:
    """From a second after packets first waited on the way down until they last did.

    A busy machine takes its time to start the program, and to end it.
    """
    waits = pl.col("queue").str.starts_with("down/") & (pl.col("backlog_packets") > 0)
    waited = record.queue.filter(waits)["t_ns"].to_numpy()
    return int(waited.min()) + 1_000_000_000, int(waited.max())


def packets_by_interface(capture: bytes) -> Counter[tuple[str, str]]:
    """How many packets of a pcapng file an interface has of the client's address; they are in order."""
    names: list[str] = []
    last: tuple[int, ...] = (0, 0)
    found: Counter[tuple[str, str]] = Counter()
    while capture:
        kind, length = struct.unpack_from("=II", capture)
        block, capture = capture[8 : length - 4], capture[length:]
        if kind == INTERFACE:
            (size,) = struct.unpack_from("=H", block, 10)
            names.append(block[12 : 12 + size].decode())
        elif kind == PACKET:
            number, *time = struct.unpack_from("=III", block)
            assert tuple(time) >= last
            last = tuple(time)
            ends = [
                str(IPv4Address(block[34 + at : 38 + at])) for at in (12, 16)
            ]  # behind an Ethernet header
            found[names[number], next(end for end in ends if end.startswith("10.0."))] += 1
    return found


INTERFACE, PACKET = 1, 6
"""Types of blocks (draft-ietf-opsawg-pcapng, sections 4.2 and 4.3)."""


@pytest.mark.needs_lab
def test_a_change_of_a_line_names_its_path(tmp_path: Path) -> None:
    done = lab(tmp_path, CHANGED, sys.executable, options=("--control", "line.sock", "--live"))
    before, after = json.loads(done.stdout)
    assert min(before["wifi"], after["wifi"]) >= 20.0
    assert before["lte"] >= 80.0
    assert after["lte"] >= 140.0
    assert "packets wait in down/wifi/air" in done.stderr
    assert "; up/lte 0." in done.stderr
    skip_if_late(done.stderr)
    assert max(before["wifi"], after["wifi"]) < 50.0
    assert before["lte"] < 120.0
    assert after["lte"] < 180.0


def has_multipath_tcp() -> bool:
    """Whether this kernel has MPTCP, and this machine the program that configures it."""
    return Path("/proc/sys/net/mptcp/enabled").exists() and shutil.which("ip") is not None


@pytest.mark.needs_lab
@pytest.mark.skipif(
    not has_multipath_tcp(), reason="the kernel has no MPTCP, or there is no ip(8) to set it up"
)
def test_a_connection_of_multipath_tcp_uses_both_paths(tmp_path: Path) -> None:
    done = lab(tmp_path, MULTIPATH, options=("--out", "record"), protocol=262)
    record = weirlab.open_record(tmp_path / "record")
    paths = {one["client"].split(":")[0]: one["path"] for one in record.manifest.extra["connections"]}
    assert paths == {"10.0.0.1": "wifi", "10.0.0.2": "lte"}
    skip_if_disturbed(record)
    # More than the faster path carries by itself. What came out of order is handed over in bursts: the last
    # seconds may have more than both carry.
    assert float(done.stdout) > 16


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--path", "wifi"), "--path `wifi`: write a name and the path's link, such as `wifi=cable-20-8`"),
        (("--path", "Wifi=cable-20-8"), "path `Wifi`: write a name of 1 to 32 characters, of `a` to `z`"),
        (("--path", "a=cable-20-8", "--path", "a=lte-verizon"), "two are called path `a`: name them apart"),
        (("--path", "a=no-such-link"), "unknown link `no-such-link`"),
        (("--path", "a=lte-verizon", "--link", "dsl"), "--link `dsl` and --path exclude each other"),
        (
            ("--path", "a=small.toml", "--path", "b=cable-20-8"),
            "path `b` has an mtu of 1500 bytes, path `a` one",
        ),
        ((*9 * ("--path", "a=cable-20-8"),), "the client has 9 paths: write up to 8"),
        (("--path", "a=cable-20-8", "--queue", "b=pfifo"), "no path is called `b` (known: a)"),
        (
            ("--path", "a=cable-20-8", "--queue", "a="),
            "--queue `a=`: write the path's queue, such as `a=fq_codel`",
        ),
        (
            ("--path", "a=cable-20-8", "--path", "b=cable-20-8", "--queue", "b=pfif"),
            "path `b`: path up, hop `router`: unknown queue discipline `pfif`",
        ),
    ],
)
def test_paths_that_cannot_be_are_told_in_a_sentence(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text('name = "small"\ntitle = "small"\nmtu = 1400\n')
    done = weir_in(tmp_path, "lab", "exec", *words, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr


def test_a_queue_is_for_one_path_or_for_all() -> None:
    given = ["fq_codel", "lte=pfifo limit 100", "wifi=cake bandwidth 95%"]
    of = {path: queue_of(given, "--queue", path, ("wifi", "lte", "dsl")) for path in ("wifi", "lte", "dsl")}
    assert of == {"wifi": "cake bandwidth 95%", "lte": "pfifo limit 100", "dsl": "fq_codel"}
    assert queue_of([], "--queue", "lte", ("lte",)) is None
    assert queue_of(["pfifo"], "--queue", None, ()) == "pfifo"
    for words, path, message in (
        (["a", "b"], None, "--queue is given 2 times, as `a` and `b`: write it once"),
        (["lte=a", "lte=b"], "lte", "--queue is given 2 times for path `lte`, as `a` and `b`: write it once"),
        (["lte=a"], None, "no path is called `lte` (there are none: write `--path lte=LINK`)"),
    ):
        with pytest.raises(UsageError) as caught:
            queue_of(words, "--queue", path, (path,) if path else ())
        assert message in str(caught.value)


def test_a_path_without_a_queue_of_its_own_has_that_of_its_link_in_words_too() -> None:
    words = {"paths": ["wifi=cable-20-8", "lte=lte-verizon"], "link": None, "seed": 1, "ip": "4"}
    run = resolved(words | {"queues": ["lte=fq_codel"], "queues_up": [], "queues_down": []})
    assert run.queue == "wifi: the link's own queue; lte: fq_codel"


WITH_ROUTES = """
name = "two"
title = "Two ways"
up = [{ name = "a", rate = "10mbit" }, { name = "b", rate = "10mbit" }]
down = [{ name = "c", rate = "10mbit" }]

[routes]
near = { up = ["a"] }
far = { up = ["b"] }
"""


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("--link=two.toml", "or give a link for each as `--path NAME=LINK`"),
        ("--path=x=two.toml", "or give a link of one of its routes"),
    ],
)
def test_a_link_with_routes_is_refused_with_what_can_be_done(
    tmp_path: Path, option: str, instead: str
) -> None:
    (tmp_path / "two.toml").write_text(WITH_ROUTES)
    done = weir_in(tmp_path, "lab", "exec", option, "--", "true")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "link `two.toml` has routes (near, far), by which the servers of a test are reached" in said
    assert said.endswith(f"leave `routes` out, {instead}")


@pytest.mark.parametrize("option", ["--link=two.toml", "--path=x=two.toml"])
def test_another_fault_of_a_line_without_routes_is_told_as_it_is(tmp_path: Path, option: str) -> None:
    (tmp_path / "two.toml").write_text(WITH_ROUTES.split("[routes]", maxsplit=1)[0])
    done = weir_in(tmp_path, "lab", "exec", option, "--queue=cable-20-8", "--", "true")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "routes" not in said
    assert "cable-20-8" in said
