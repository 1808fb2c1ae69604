"""`weir serve` under clients: those of other projects (`make clients` installs them), and our own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from live import PATIENCE_S, together, weir_in
from serving import RATE_MBIT, WEIR, fetch, serving
from weirlab.errors import RecordError
from weirlab.record import open_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

pytestmark = pytest.mark.realtime

CLIENTS = Path(__file__).parent / "clients"


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


def test_a_server_that_goes_away_leaves_its_figures(clients: dict[str, Future[Any]]) -> None:
    """Killed in the middle of the download: told in a sentence, below what is known until then."""
    done, folder = clients["leave_a_client"].result()
    assert done.returncode == 1
    assert done.stderr.startswith("weir: the control connection to server `127.0.0.1:")
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


def test_responsiveness_over_http2_and_tls() -> None:
    """Both sets of names, one byte, a load that goes on, an upload: over one HTTP/2 connection with TLS."""
    curl = program("curl")
    with serving("--max-rate", f"{RATE_MBIT}mbit") as server:
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
    """A hundred new connections a second, which it leaves open: the idle ones make room for others.

    None is given up within a second, in which twice as many come if the client itself was held up.
    """
    client = program(CLIENTS / "bin/goresponsiveness")
    with serving("--max-rate", f"{RATE_MBIT}mbit", "--max-connections-per-address", "256") as started:
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


def test_irtt_completes() -> None:
    client = program("irtt")
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
    with serving("--max-rate", f"{RATE_MBIT}mbit") as server:
        assert server.irtt is not None
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
