"""`weir serve` as a command: what it serves, refuses, logs and survives."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from live import PATIENCE_S, weir_in
from serving import RATE_MBIT, WEIR, Server, fetch, serving
from weirlab.errors import NetError
from weirlab.net.methods import Less, offered
from weirlab.net.plan import Limits
from weirlab.record import open_record

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.realtime


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--max-rate", f"{RATE_MBIT}mbit") as started:
        yield started


def test_it_serves_a_page_and_loads(server: Server) -> None:
    status, page = fetch(server.address, "/")
    assert status == 200
    assert b"<title>Weir: latency under load</title>" in page
    foreign = re.findall(rb'(?:src|href)="(?:https?:)?//', page)
    assert foreign == []
    for file in (b"page.js", b"page.css", b"icon.svg"):
        assert file in page
        assert fetch(server.address, f"/{file.decode()}")[0] == 200
    assert len(fetch(server.address, "/__down?bytes=12345")[1]) == 12345
    assert fetch(server.address, "/nothing")[0] == 404


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly_whatever_is_under_way(number: signal.Signals) -> None:
    with serving() as started:
        host, port = started.address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            client.recv(1000)
            started.process.send_signal(number)
            assert started.process.wait(timeout=PATIENCE_S) == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--listen", "nowhere"], 2, "write a port (8080), or an address with a port"),
        (["--no-such-thing"], 2, "there is no option --no-such-thing: see --help"),
        (["--log", "json"], 2, "--log is now --json"),
        (["--json", "--json"], 2, "--json is given twice: give it once"),
        (["--max-rate", "100"], 2, "write a rate of 1kbit or more with its unit"),
        (["--public-url", "http://h"], 2, "write https://HOST"),
        (["--auth", "\udcff"], 2, "`\\xff` is not UTF-8"),
        (["--auth", "/no/such/file"], 2, "secret `/no/such/file`: no such file or directory"),
        (["--auth", "/dev/null"], 2, "secret `/dev/null`: it is no regular file"),
        (["--cert", "/no/cert", "--key", "/no/key"], 2, "certificate `/no/cert`: no such file or directory"),
        (["--cert", "/dev/null", "--key", "/no/key"], 2, "certificate `/dev/null`: no certificate in PEM"),
        (["--cert", "x"], 2, "write --key <FILE> too"),
    ],
)
def test_wrong_words_are_one_sentence(words: list[str], code: int, message: str) -> None:
    done = subprocess.run(
        [*WEIR, "serve", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.startswith("weir: ")
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_told(server: Server) -> None:
    done = subprocess.run(
        [*WEIR, "serve", "--listen", server.address],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        f"weir: cannot listen on TCP {server.address}: address already in use\n",
    )


def free_port(kind: socket.SocketKind) -> int:
    """A port of the loopback address that nobody has at the moment."""
    with socket.socket(socket.AF_INET, kind) as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


@contextmanager
def broken_log(kind: str) -> Iterator[int]:
    """Something to write a log to that takes nothing: a full disk, a closed pipe, one that nobody reads."""
    if kind == "full disk":
        with Path("/dev/full").open("wb") as full:
            yield full.fileno()
        return
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    if kind == "closed pipe":
        os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)
        if kind != "closed pipe":
            os.close(reader)


@pytest.mark.parametrize("kind", ["full disk", "closed pipe", "pipe that nobody reads"])
def test_a_log_that_cannot_be_written_stops_nothing(kind: str) -> None:
    address = f"127.0.0.1:{free_port(socket.SOCK_STREAM)}"
    words = ["--verbose", "--listen", address, "--irtt-port", str(free_port(socket.SOCK_DGRAM))]
    with broken_log(kind) as stderr:
        process = subprocess.Popen([*WEIR, "serve", *words], stderr=stderr)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError):
                fetch(address, "/empty")
                break
            time.sleep(0.1)
        # Each is a line of the log, and all of them are more than a pipe holds.
        for _ in range(100):
            assert fetch(address, "/empty")[0] == 200
        # The same thread answers both kinds of datagrams.
        assert isinstance(offered(address, None), Limits)
        status, body = fetch(address, "/healthz")
        health = json.loads(body)
        assert (status, health["status"]) == (200, "ok")
        assert [one["transport"] for one in health["listeners"]] == ["TCP", "UDP", "UDP"]
        if kind != "pipe that nobody reads":
            assert health["log_lines_lost"] > 100
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def shut_down(pid: int, transport: str, address: str) -> None:
    """Shuts down a process's socket behind its back."""
    port = int(address.rsplit(":", 1)[1])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/{transport}").read_text().splitlines()[1:]]
    # A listening TCP socket, or a UDP socket without a peer (`tcp_states.h`).
    state = {"tcp": "0A", "udp": "07"}[transport]
    (inode,) = [row[9] for row in rows if int(row[1].split(":")[1], 16) == port and row[3] == state]
    files = [
        one.name for one in Path(f"/proc/{pid}/fd").iterdir() if str(one.readlink()) == f"socket:[{inode}]"
    ]
    pidfd = os.pidfd_open(pid)
    libc = ctypes.CDLL(None, use_errno=True)
    stolen = libc.syscall(PIDFD_GETFD, pidfd, int(files[0]), 0)
    os.close(pidfd)
    if stolen < 0:
        pytest.skip(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
    # Linux shuts a socket without a peer down and says nevertheless that it has none.
    with socket.socket(fileno=stolen) as taken, suppress(OSError):
        taken.shutdown(socket.SHUT_RDWR)


PIDFD_GETFD = 438
"""The system call, of the same number on all processors (Linux 5.6)."""


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_listening_socket_that_dies_ends_the_server_with_an_error(transport: str) -> None:
    with serving() as started:
        shut_down(started.process.pid, transport, started.address)
        assert started.process.wait(timeout=PATIENCE_S) == 1
        assert started.process.stderr is not None
        last = started.process.stderr.read().splitlines()[-1]
    assert last.startswith(f"weir: listening on {transport.upper()} {started.address} ended: ")


def half_request(host: str, port: int) -> socket.socket:
    """A connection that has begun a request and never ends it: none that is idle."""
    connection = socket.create_connection((host, port), timeout=PATIENCE_S)
    connection.sendall(b"GE")
    connection.setblocking(False)
    return connection


def again(connection: socket.socket, host: str, port: int) -> socket.socket:
    """Another in place of one that the server has given up."""
    connection.close()
    return half_request(host, port)


def is_open(connection: socket.socket) -> bool:
    """Whether the other end has not closed it."""
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_refusals_are_logged_with_their_counts() -> None:
    with serving("--max-connections-per-address", "2") as started:
        host, port = started.address.rsplit(":", 1)
        held = [half_request(host, int(port)) for _ in range(2)]
        status = 0
        deadline = time.monotonic() + PATIENCE_S
        while status != 503:
            assert time.monotonic() < deadline, "two connections and one more are not refused"
            # One whose first bytes the server has not read yet counts as idle, and is given up for the next.
            held = [one if is_open(one) else again(one, host, int(port)) for one in held]
            with suppress(OSError):
                status = fetch(started.address, "/empty")[0]
        assert started.process.stderr is not None
        line: dict[str, Any] = {}
        while line.get("reason") != "connections of an address":
            line = json.loads(started.process.stderr.readline())
        assert line["message"] == "refused"
        assert line["count"] >= 1
        assert (line["clients"], line["most_from"]) == (1, "127.0.0.1")
        for one in held:
            one.close()


def test_help_lists_the_options() -> None:
    done = subprocess.run(
        [*WEIR, "serve", "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0
    for option in ("--listen", "--auth", "--without", "--max-tests-per-address", "--public-metrics"):
        assert option in done.stdout


def test_every_option_is_documented() -> None:
    done = subprocess.run(
        [*WEIR, "serve", "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    page = (Path(__file__).parent.parent / "docs/serve.md").read_text()
    options = set(re.findall(r"(--[a-z-]+)", done.stdout)) - {"--help", "--version"}
    assert {option for option in options if f"`{option}" not in page} == set()


@contextmanager
def forwarding(address: str) -> Iterator[str]:
    """Another address of this machine, whose TCP goes to `address` and whose datagrams go nowhere."""
    host, port = address.rsplit(":", 1)

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    class Forwarder(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, int(port))) as server:
                back = threading.Thread(target=pump, args=(server, self.request))
                back.start()
                pump(self.request, server)
                back.join(PATIENCE_S)

    with socketserver.ThreadingTCPServer(("127.0.0.2", 0), Forwarder) as forwarder:
        thread = threading.Thread(target=forwarder.serve_forever)
        thread.start()
        yield f"127.0.0.2:{forwarder.server_address[1]}"
        forwarder.shutdown()
        thread.join(PATIENCE_S)


def test_what_a_server_lacks_is_seen_before_a_test(server: Server) -> None:
    """Nothing; datagrams; our protocol; TLS and files; an answer at all."""
    assert isinstance(offered(server.address, None), Limits)
    with forwarding(server.address) as address:
        assert offered(address, None) == Less(
            f"server `{address}` answers no datagrams from here", f"http://{address}"
        )
    with serving("--without", "weir") as other:
        lacks = offered(f"http://{other.address}/", None)
        assert isinstance(lacks, Less)
        assert "does not speak Weir's protocol" in lacks.why
        assert lacks.url == f"http://{other.address}"
    for url in (f"https://{server.address}", f"http://{server.address}/file"):
        lacks = offered(url, None)
        assert isinstance(lacks, Less)
        assert lacks.url == url
    with pytest.raises(NetError, match="connection refused"):
        offered("127.0.0.1:1", None)


def test_a_test_fits_what_its_server_allows(tmp_path: Path, weir_here: Any) -> None:
    """Loads that nobody asked for are shorter; what was asked for is refused before anything is measured."""
    with serving("--max-duration", "3s", "--max-rate", "50mbit", "--max-tests", "1") as short:
        limits = offered(short.address, None)
        assert isinstance(limits, Limits)
        assert (limits.server, limits.load_ns) == (short.address, 3_000_000_000)
        for words, why in (
            (("--load", "5s"), f"load 5s: server `{short.address}` lets a load last 3 s at most"),
            (("--cc", "nosuch"), f"cc nosuch: server `{short.address}` has "),
        ):
            done = weir_here("test", short.address, *words, "--out", "refused")
            assert (done.returncode, why in done.stderr) == (2, True), done.stderr
            assert not (tmp_path / "refused").exists()
        # The session in which that was asked has ended on the server, which takes one at a time.
        done = weir_here("test", short.address, "--idle", "1s", "--no-charts", "--out", "kept")
        assert done.returncode == 0, done.stderr
        assert "each phase with load takes 3 s instead of 8s" in done.stderr
        record = open_record(tmp_path / "kept")
        assert record.phase("download") == (1_000_000_000, 4_000_000_000)
    # What the command warned of is in the record, and told by what reads it.
    limited = f"server `{short.address}` gives this address 50 Mbit/s at most: that may be the bottleneck"
    told = [line.removeprefix("warning: ") for line in done.stderr.splitlines() if line.startswith("warning")]
    assert told.count(limited) == 1
    assert told == record.manifest.warnings
    shown = weir_here("show", "kept")
    assert [f"warning: {text}" in shown.stderr for text in told] == [True] * len(told)
    page = weir_here("report", "kept", "-o", "page.html")
    assert page.returncode == 0, page.stderr
    assert f"Caution: {limited.replace('`', '')}" in re.sub(
        "<[^>]*>", "", (tmp_path / "page.html").read_text()
    )


def sent_bytes(address: str) -> int:
    """What a server has sent over TCP so far."""
    return int(
        re.findall(r"^weir_sent_bytes_total (\d+)", fetch(address, "/metrics")[1].decode(), re.MULTILINE)[0]
    )


def test_a_server_that_stands_still_ends_a_test_without_grade(tmp_path: Path, weir: Any) -> None:
    def stop_in_the_midst(of: Server) -> None:
        until = time.monotonic() + PATIENCE_S
        # Half of what the download of 5 s brings: its beginning is measured by then, its end is not.
        while sent_bytes(of.address) < 15_000_000 and time.monotonic() < until:
            time.sleep(0.1)
        of.process.send_signal(signal.SIGSTOP)

    with serving("--max-rate", "50mbit") as server:
        stop = threading.Thread(target=stop_in_the_midst, args=[server])
        stop.start()
        try:
            done = weir(
                "test", server.address, "--idle", "1s", "--load", "5s", "--no-charts", "--out", "kept"
            )
        finally:
            stop.join()
            server.process.send_signal(signal.SIGCONT)
    assert done.returncode == 1
    assert f"nothing has come from server `{server.address}` for 10 s" in done.stderr
    words = " ".join(done.stdout.split())
    assert "No grade: " in words
    assert "the test did not come to the end of" in words
    assert "bufferbloat" not in words
    assert not open_record(tmp_path / "kept").manifest.complete
    assert "No grade: " in weir("show", "kept").stdout


def test_a_session_that_has_ended_leaves_room_at_once() -> None:
    with serving("--max-tests", "1") as server:
        for _ in range(20):
            assert isinstance(offered(server.address, None), Limits)


def test_memory_stays_bounded_under_messages_that_never_end() -> None:
    """WebSocket messages of 16 MiB, which ndt7 allows, are not kept."""
    with serving() as started:
        host, port = started.address.rsplit(":", 1)

        def resident_mib() -> float:
            status = Path(f"/proc/{started.process.pid}/status").read_text()
            return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024

        before = resident_mib()
        clients = []
        for _ in range(40):
            client = socket.create_connection((host, int(port)))
            client.sendall(
                b"GET /ndt/v7/upload HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                b"Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n"
            )
            assert client.recv(1000).startswith(b"HTTP/1.1 101 ")
            # A frame of 16 MiB of which all but the last byte comes.
            client.sendall(b"\x82\xff" + (1 << 24).to_bytes(8, "big") + b"\0\0\0\0")
            clients.append(client)
        for client in clients:
            client.sendall(bytes((1 << 24) - 1))
        time.sleep(0.5)
        # Kept, they would be 640 MiB; a connection may have its buffers.
        assert resident_mib() - before < 100
        for client in clients:
            client.close()


def test_no_charts_may_be_said_of_tests_that_have_none(tmp_path: Path) -> None:
    refused = weir_in(tmp_path, "test", "127.0.0.1:9", "--method", "ndt7", "--no-charts", "--out", "o")
    assert refused.returncode == 1
    assert "127.0.0.1:9" in refused.stderr


def frames(address: str, head: bytes) -> list[tuple[int, bytes]]:
    """The frames of HTTP/2 that answer a request with these fields, to its refusal and the end."""
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE_S) as plain,
        context.wrap_socket(plain) as secured,
    ):
        settings, headers = (0, 4, 0, 0), (len(head), 1, 5, 1)
        secured.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(*settings) + frame(*headers) + head)
        found: list[tuple[int, bytes]] = []
        with secured.makefile("rb") as answers:
            while not {RST_STREAM, GOAWAY} <= {kind for kind, _ in found}:
                start = answers.read(9)
                if len(start) < 9:
                    break
                found.append((start[3], answers.read(int.from_bytes(start[:3]))))
    return found


def frame(length: int, kind: int, flags: int, stream: int) -> bytes:
    return length.to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4)


RST_STREAM, GOAWAY = 3, 7
"""Kinds of frames (RFC 9113, section 6)."""


def test_a_connection_on_which_a_flow_may_not_come_is_ended() -> None:
    """Firefox else sends each body over it first, and again over HTTP/1.1: half of what the line carries."""
    path = b"/weir/v1/flow?ticket=none"
    with serving() as server:
        # POST, https, and names of the static table (RFC 7541) with values as they are.
        own = server.address.encode()
        head = b"\x83\x87" + b"\x04" + bytes([len(path)]) + path + b"\x01" + bytes([len(own)]) + own
        answers = frames(server.address, head)
    assert (RST_STREAM, (13).to_bytes(4)) in answers, "HTTP_1_1_REQUIRED"
    assert GOAWAY in dict(answers)
