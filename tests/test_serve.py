"""`weir serve`: as a command, and under the clients of other projects (`make clients` installs them)."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from live import PATIENCE_S, together, weir_in
from weirlab.errors import NetError, RecordError
from weirlab.net.methods import Less, less
from weirlab.record import open_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

pytestmark = pytest.mark.realtime

WEIR = [sys.executable, "-m", "weirlab"]
CLIENTS = Path(__file__).parent / "clients"
RATE_MBIT = 50
"""A server lets so much pass: a result above it would be wrong, and several at once leave a machine idle."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server at work: its process and where it listens."""

    process: subprocess.Popen[str]
    address: str
    irtt: str | None


@contextmanager
def serving(*words: str) -> Iterator[Server]:
    """A server on free ports of the loopback address."""
    command = [*WEIR, "serve", "--listen", "127.0.0.1:0", "--irtt-port", "0", "--json", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        told: dict[str, str] = {}
        while not {"address", "irtt"} <= told.keys():
            line = process.stderr.readline()
            assert line, "the server ended"
            told |= json.loads(line)
        yield Server(process=process, address=told["address"], irtt=told["irtt"])
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--max-rate", f"{RATE_MBIT}mbit") as started:
        yield started


def fetch(address: str, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


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


def leave_a_client(folder: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """What our own test says when its server is killed during the download, and where its record is."""
    words = ["test", "--idle", "1s", "--load", "60s", "--out", str(folder / "o"), "--json"]
    with serving("--max-rate", f"{RATE_MBIT}mbit") as started:
        client = subprocess.Popen(
            [*WEIR, *words, started.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while client.poll() is None and _reached_s(folder / "o") < 4:
            time.sleep(0.1)
        started.process.kill()
        said, errors = client.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(words, client.returncode, said, errors), folder / "o"


def _reached_s(folder: Path) -> float:
    try:
        return open_record(folder).reached_ns / 1e9
    except RecordError:
        return 0.0


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
        assert less(address, None) is None
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
            held = [one if is_open(one) else half_request(host, int(port)) for one in held]
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


def program(path: str | Path) -> str:
    """A program of another project, or a skipped test."""
    found = shutil.which(str(path))
    if found is None:
        pytest.skip(f"{Path(path).name} is not there: make clients")
    return found


def run(command: list[str], **more: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    output: str = done.stdout
    return output


def plausible(mbit_s: float) -> bool:
    """What TCP may carry where the server lets `RATE_MBIT` pass, bursts included."""
    return 0.3 * RATE_MBIT < mbit_s < 1.15 * RATE_MBIT


def ndt7(address: str) -> list[Any]:
    """In clear text and over TLS, both at once."""
    client = program(CLIENTS / "bin/ndt7-client")
    words = ["-server", address, "-no-verify", "-format", "json", "-quiet"]
    both = {scheme: partial(run, [client, *words, "-scheme", scheme]) for scheme in ("ws", "wss")}
    return [json.loads(one.result()) for one in together(both).values()]


def msak(address: str) -> str:
    client = program(CLIENTS / "bin/msak-client")
    return run([client, "-server", address, "-scheme", "ws", "-duration", "3s", "-streams", "2"])


def speedtest_cli(address: str) -> Any:
    """It asks `www.speedtest.net` for its settings first, which here is the same server as a proxy."""
    client = program(CLIENTS / ".venv/bin/speedtest-cli")
    url = f"http://{address}/"
    return json.loads(
        run([client, "--mini", url, "--json"], env={"http_proxy": url, "PATH": "/usr/bin:/bin"})
    )


def cloudflare(address: str) -> Any:
    node, browser = program("node"), program("chromium")
    if not (CLIENTS / "node_modules/@cloudflare/speedtest").exists():
        pytest.skip("@cloudflare/speedtest is not there: make clients")
    return json.loads(run([node, str(CLIENTS / "cloudflare.mjs"), f"http://{address}", browser]))


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Any]]:
    """What clients of other projects and our own say, each of a server of its own, all at once."""

    def ask(client: Callable[[str], Any]) -> Any:
        with serving("--max-rate", f"{RATE_MBIT}mbit") as started:
            return client(started.address)

    theirs = {one.__name__: partial(ask, one) for one in (ndt7, msak, speedtest_cli, cloudflare)}
    folders = {one: tmp_path_factory.mktemp(one.__name__) for one in (trust, leave_a_client)}
    return together(theirs | {one.__name__: partial(one, folder) for one, folder in folders.items()})


def test_a_server_that_goes_away_leaves_its_figures(clients: dict[str, Future[Any]]) -> None:
    """Killed in the middle of the download: told in a sentence, below what is known until then."""
    done, folder = clients["leave_a_client"].result()
    assert done.returncode == 1
    assert done.stderr.startswith("weir: the control connection to the server broke: ")
    assert done.stderr.endswith(
        f"; the figures are those of what was measured until then, kept in {folder}\n"
    )
    assert done.stderr.count("\n") == 1
    figures = json.loads(done.stdout)
    assert 0 < figures["down_mbps"] < 1.2 * RATE_MBIT
    assert figures["up_mbps"] is None


def test_the_official_ndt7_client_completes(clients: dict[str, Future[Any]]) -> None:
    summaries = clients["ndt7"].result()
    print(f"ndt7-client over ws and wss: {json.dumps(summaries)}")
    for direction in ("Download", "Upload"):
        throughputs = [summary[direction]["Throughput"] for summary in summaries]
        assert [one["Unit"] for one in throughputs] == ["Mbit/s", "Mbit/s"]
        # They take turns of equal size, however much each writes at once.
        assert min(one["Value"] for one in throughputs) > 0.3 * RATE_MBIT
        assert plausible(sum(one["Value"] for one in throughputs))
    for summary in summaries:
        assert summary["ServerIP"] == "127.0.0.1"
        assert 0 < summary["Download"]["Latency"]["Value"] < 1000


def test_the_official_msak_client_completes(clients: dict[str, Future[Any]]) -> None:
    output = clients["msak"].result()
    down, up = (float(rate) for rate in re.findall(r"(?:download|upload) rate: ([\d.]+) Mb/s", output)[-2:])
    assert plausible(down), output
    assert plausible(up), output
    print(f"msak-client: down {down} Mbit/s, up {up} Mbit/s")


def test_speedtest_cli_completes(clients: dict[str, Future[Any]]) -> None:
    result = clients["speedtest_cli"].result()
    # Its clock starts before its first connection; its requests are many and short. An upload is over for it
    # when its sockets have taken the bytes: two connections hold 10 MB each (tcp_wmem, tcp_rmem), in 10 s.
    for direction, held_mbit in (("download", 0), ("upload", 16)):
        rate = result[direction] / 1e6
        assert 0.1 * RATE_MBIT < rate < 1.15 * RATE_MBIT + held_mbit, result
    assert 0 < result["ping"] < 1000
    print(f"speedtest-cli: {result['download'] / 1e6:.1f}/{result['upload'] / 1e6:.1f} Mbit/s")


def test_the_official_cloudflare_engine_completes(clients: dict[str, Future[Any]]) -> None:
    answer = clients["cloudflare"].result()
    assert answer["foreign"] == []
    results = answer["results"]
    # The engine's figure is the 90th percentile of requests of all sizes: short ones fit into the bursts that
    # the server lets pass.
    for direction in ("download", "upload"):
        assert 0.3 * RATE_MBIT < results[direction] / 1e6 < 2 * RATE_MBIT, results
    assert 0 <= results["latency"] < 1000
    assert results["downLoadedLatency"] > 0
    print(f"Cloudflare's engine: {json.dumps(results)}")


def test_responsiveness_over_http2_and_tls(server: Server) -> None:
    """Both sets of names, one byte, a load that goes on, an upload: over one HTTP/2 connection with TLS."""
    curl = program("curl")
    base = f"https://{server.address}"
    ask = [curl, "--silent", "--insecure", "--http2", "--write-out", "\n%{http_version} %{http_code}"]
    config, protocol = run([*ask, f"{base}/.well-known/nq"]).rsplit("\n", 1)
    assert protocol == "2 200"
    urls = json.loads(config)["urls"]
    assert urls["small_download_url"] == urls["small_https_download_url"] == f"{base}/small"
    assert run([*ask, urls["small_download_url"]]) == "w\n2 200"
    upload = [*ask, "--data-binary", "@-", urls["upload_url"]]
    assert run(upload, input="x" * 3_000_000) == "\n2 200"
    load = [*ask, "--output", "/dev/null", "--max-time", "2", urls["large_https_download_url"]]
    done = subprocess.run(load, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    # 28: its time is over, and the load is not.
    assert (done.returncode, done.stdout) == (28, "\n2 200")


def test_goresponsiveness_completes_on_its_defaults() -> None:
    """A hundred new connections a second, which it leaves open: the idle ones make room for others."""
    client = program(CLIENTS / "bin/goresponsiveness")
    with serving("--max-rate", f"{RATE_MBIT}mbit", "--max-connections-per-address", "128") as started:
        host, port = started.address.rsplit(":", 1)
        words = ["--config", host, "--port", port, "--path", ".well-known/nq", "--insecure-skip-verify"]
        output = run([client, *words])
        metrics = fetch(started.address, "/metrics")[1].decode()
    # By the 90th percentile, and by the trimmed mean: infinite where probes were refused.
    final = [int(number) for number in re.findall(r"^Final RPM: +(\d+) ", output, re.MULTILINE)]
    assert len(final) == 2, output
    assert final[1] > 0
    assert "weir_refusals_total" not in metrics, metrics
    (given_up,) = re.findall(r"^weir_connections_given_up_total (\d+)$", metrics, re.MULTILINE)
    assert int(given_up) > 0
    print(f"goresponsiveness: {final} RPM; {given_up} idle connections given up")


def test_irtt_completes(server: Server) -> None:
    client = program("irtt")
    assert server.irtt is not None
    words = [
        "client",
        "-Q",
        "-d",
        "2s",
        "-i",
        "20ms",
        "-l",
        "172",
        "--dscp=0xb8",
        "--fill=rand",
        "-o",
        "-",
    ]
    result = json.loads(run([client, *words, server.irtt]))
    stats = result["stats"]
    # Of 100: it leaves out those for which a busy machine wakes it too late.
    assert stats["packets_sent"] >= 40
    assert stats["packets_received"] == stats["packets_sent"] == stats["server_packets_received"]
    assert stats["duplicates"] == stats["late_packets"] == 0
    # Both clocks are this machine's: one way is less than both.
    assert 0 < stats["send_delay"]["median"] < stats["rtt"]["median"] * 2
    assert result["config"]["params"]["dscp"] == 0xB8
    assert all(trip["timestamps"]["server"]["receive"]["monotonic"] > 0 for trip in result["round_trips"])
    print(f"irtt: {stats['packets_received']} of {stats['packets_sent']}, median {stats['rtt']['median']} ns")


def test_irtt_knows_the_secret_as_its_key(tmp_path: Path) -> None:
    client = program("irtt")
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    with serving("--auth", str(secret)) as started:
        assert started.irtt is not None
        words = ["client", "-Q", "-d", "200ms", "-i", "20ms", "-o", "-"]
        result = json.loads(run([client, *words, "--hmac=correct horse", started.irtt]))
        assert result["stats"]["packets_received"] > 0
        for wrong in ([], ["--hmac=incorrect horse"]):
            command = [client, *words, *wrong, "--timeouts=300ms", started.irtt]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            assert done.returncode != 0


def trust(folder: Path) -> dict[str, Future[subprocess.CompletedProcess[str]]]:
    """What our client says of a certificate of a company's authority, by what the named store knows."""
    openssl = [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made = [*openssl, "-nodes", "-days", "2", "-subj"]
    authority = [folder / "authority.pem", folder / "authority.key"]
    server = [folder / "server.pem", folder / "server.key"]
    run([*made, "/CN=Example Ltd", "-out", str(authority[0]), "-keyout", str(authority[1])])
    signed = ["-CA", str(authority[0]), "-CAkey", str(authority[1])]
    for_server = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=IP:127.0.0.1"]
    run([*made, "/CN=server", *signed, *for_server, "-out", str(server[0]), "-keyout", str(server[1])])
    (folder / "empty").touch()
    words = ("--cert", str(server[0]), "--key", str(server[1]), "--max-rate", f"{RATE_MBIT}mbit")
    with serving(*words, "--max-duration", "1s") as started:

        def test(store: Path | None) -> subprocess.CompletedProcess[str]:
            words = ("test", f"https://{started.address}", "--method", "ndt7", "--json")
            # The folder that may be named where the tests run adds to the file.
            named = {} if store is None else {"SSL_CERT_FILE": str(store), "SSL_CERT_DIR": ""}
            return weir_in(folder, *words, environment=named)

        stores = {"believed": authority[0], "unknown": None, "empty": folder / "empty"}
        return together({name: partial(test, store) for name, store in stores.items()})


def test_a_company_s_own_authority_is_believed_where_the_system_believes_it(
    clients: dict[str, Future[Any]],
) -> None:
    """OpenSSL's variables name the store; without them, it is the system's, which does not know ours."""
    done = clients["trust"].result()
    believed, unknown, empty = (done[name].result() for name in ("believed", "unknown", "empty"))
    assert believed.returncode == 0, believed.stderr
    assert json.loads(believed.stdout)["result"]["failures"] == []
    assert unknown.returncode == 1
    assert "certificate" in unknown.stderr
    assert "--no-verify believes any" in " ".join(unknown.stderr.split())
    assert empty.returncode == 1
    said = " ".join(empty.stderr.split())
    assert "no certificate of an authority in SSL_CERT_FILE: none is there in PEM" in said


def test_a_foreign_test_tells_the_secret_where_nobody_reads_along(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    told = ("--auth", str(secret))
    with serving(*told) as started, serving(*told, "--max-duration", "1s") as brief:

        def test(scheme: str, method: str, *words: str) -> tuple[int, str, str]:
            url = f"{scheme}://{(brief if method == 'ndt7' else started).address}"
            done = weir_in(tmp_path, "test", url, "--method", method, "--no-verify", "--json", *words)
            return done.returncode, done.stdout, done.stderr

        # Over WebSockets, and by requests of HTTP.
        known = together({one: partial(test, "https", one, *told) for one in ("ndt7", "cloudflare")})
        others = together(
            {
                "unknown": partial(test, "https", "cloudflare"),
                "clear": partial(test, "http", "ndt7", *told),
                "lines": partial(test, "https", "ookla", *told),
            }
        )
    for one in known.values():
        code, out, err = one.result()
        assert code == 0, err
        assert json.loads(out)["result"]["download_mbps"] > 1
    code, _, err = others["unknown"].result()
    assert code == 1
    assert "401" in err
    code, _, err = others["clear"].result()
    assert code == 2
    assert f"over http:// to whoever reads along: write https://{brief.address}" in err
    assert others["lines"].result()[::2] == (
        2,
        "weir: --auth: ookla has no place for a secret: leave it out\n",
    )


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
    assert less(server.address, None) is None
    with forwarding(server.address) as address:
        assert less(address, None) == Less(
            f"server `{address}` answers no datagrams from here", f"http://{address}"
        )
    with serving("--without", "weir") as other:
        lacks = less(f"http://{other.address}/", None)
        assert lacks is not None
        assert "does not speak Weir's protocol" in lacks.why
        assert lacks.url == f"http://{other.address}"
    for url in (f"https://{server.address}", f"http://{server.address}/file"):
        lacks = less(url, None)
        assert lacks is not None
        assert lacks.url == url
    with pytest.raises(NetError, match="connection refused"):
        less("127.0.0.1:1", None)


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
