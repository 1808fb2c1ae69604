"""Machines of a home behind `weir shape`: each has its share, however many connections it has. Real time."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from live import PATIENCE_S, together
from row import NEW, need_row

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

pytestmark = pytest.mark.realtime

MACHINES = {"10.0.0.11": 3, "10.0.0.12": 4, "10.0.0.13": 16}
"""Addresses of three machines, and how many connections each has each way."""

COUNTING = """
import collections, json, socket, threading
received = collections.Counter()
def serve(near, machine):
    try:
        wanted = near.recv(1)
        while wanted == b"d":
            near.sendall(bytes(16384))
        if wanted == b"c":
            near.sendall(json.dumps(received).encode())
            near.close()
        while data := near.recv(65536):
            received[machine] += len(data)
    except OSError:
        pass
server = socket.create_server(("", 5002), backlog=50)
while True:
    near, (machine, _) = server.accept()
    threading.Thread(target=serve, args=(near, machine), daemon=True).start()
"""
"""A server that takes and gives data, and tells how much it received of each machine."""

MEASURED = """
import collections, json, socket, subprocess, sys, threading, time
WEIR = [sys.executable, "-m", "weirlab", "shape"]
def sh(line):
    subprocess.run(line, shell=True, check=True)
sh("mount -t proc proc /proc")
words = ["unshare", "--net", "sh", "-c", f"echo; read go; exec {sys.executable} counting.py"]
server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdout.readline()
sh(f"ip link set lo up; ip link add home type veth peer name far netns {server.pid}")
sh("ip addr add 10.0.0.10/24 dev home; ip link set home up gso_max_segs 1")
inside = "ip link set lo up; ip addr add 10.0.0.1/24 dev far; ip link set far up gso_max_segs 1"
sh(f"nsenter --net=/proc/{server.pid}/ns/net sh -c '{inside}'")
server.stdin.write(b"go\\n"), server.stdin.flush()
for machine in MACHINES:
    sh(f"ip addr add {machine}/24 dev home")
received = collections.Counter()
def far(machine, what):
    far = socket.socket()
    far.bind((machine, 0))
    far.settimeout(60)
    far.connect(("10.0.0.1", 5002))
    far.sendall(what)
    return far
def upload(machine):
    connection = far(machine, b"u")
    while True:
        connection.sendall(bytes(16384))
def download(machine):
    connection = far(machine, b"d")
    while data := connection.recv(65536):
        received[machine] += len(data)
def counts():
    connection, said = far(next(iter(MACHINES)), b"c"), b""
    while part := connection.recv(65536):
        said += part
    return [collections.Counter(json.loads(said)), received.copy()]
for _ in range(500):
    if socket.socket().connect_ex(("10.0.0.1", 5002)) == 0:
        break
    time.sleep(0.02)
else:
    raise SystemExit("the server does not answer")
shaper = subprocess.Popen([*WEIR, "home", "--quiet", *WORDS])
while shaper.poll() is None:
    done = subprocess.run([*WEIR, "status", "home", "--json"], capture_output=True, text=True)
    if done.returncode == 0 and "sides" in done.stdout:
        break
    time.sleep(0.05)
else:
    raise SystemExit(f"the shaper ended with code {shaper.returncode}")
for machine, connections in MACHINES.items():
    for load in [upload, download] * connections:
        threading.Thread(target=load, args=(machine,), daemon=True).start()
time.sleep(4)
before = counts()
time.sleep(12)
after = counts()
subprocess.run([*WEIR, "stop", "home"], check=True)
shaper.wait(60)
server.kill()
print(json.dumps([[now[it] - then[it] for it in MACHINES] for now, then in zip(after, before)]), flush=True)
"""
"""A script at the home's end of a line: a namespace with all machines' addresses, and one with the server."""


def queues(up: str, down: str) -> list[str]:
    """Options for the queues of a shaper."""
    return ["--queue-up", up, "--queue-down", down]


# A long round trip for CAKE: three connections over a wire without delay do not keep a queue of 5 ms filled.
SHAPERS = {
    "userspace": [
        *("--backend", "userspace"),
        *queues("cake diffserv4 dual-srchost rtt 1s", "cake diffserv4 dual-dsthost rtt 1s"),
    ],
    "kernel": ["--backend", "kernel", *queues("htb hosts pfifo limit 20", "htb hosts pfifo limit 20")],
    "by flows": ["--backend", "userspace", *queues("cake flows rtt 500ms", "cake flows rtt 500ms")],
}
"""Two shapers that share by machines, the first by the usual discipline, and one that does not."""


def measured(words: list[str], folder: Path) -> list[list[float]]:
    """Shares of each machine in 12 s, up and down, at 6 Mbit/s each way."""
    (folder / "counting.py").write_text(COUNTING)
    words = ["--up", "6mbit", "--down", "6mbit", *words]
    (folder / "script.py").write_text(f"MACHINES = {MACHINES!r}\nWORDS = {words!r}\n{MEASURED}")
    done = subprocess.run(
        [*NEW, sys.executable, "script.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ways: list[list[int]] = json.loads(done.stdout)
    assert all(sum(way) > 0 for way in ways), ways
    return [[one / sum(way) for one in way] for way in ways]


@pytest.fixture(scope="module")
def shares(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Any]]:
    """All shapers at once, each on a line of its own."""
    need_row()
    return together(
        {name: partial(measured, words, tmp_path_factory.mktemp("lan")) for name, words in SHAPERS.items()}
    )


@pytest.mark.needs_lab
@pytest.mark.parametrize("backend", ["userspace", "kernel"])
def test_machines_share_alike_however_many_connections_they_have(
    shares: dict[str, Future[Any]], backend: str
) -> None:
    for way in shares[backend].result():
        assert all(0.25 < share < 0.42 for share in way), way


@pytest.mark.needs_lab
def test_by_flows_the_machine_with_most_connections_has_most(shares: dict[str, Future[Any]]) -> None:
    for way in shares["by flows"].result():
        assert way[2] > 0.6, way
