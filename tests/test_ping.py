"""`weir ping`: to this machine, and past three routers as an ordinary user."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from live import PATIENCE_S, weir_in
from row import SERVER, SERVER_6, figures, in_row, need_row, router
from weirlab.errors import UsageError
from weirlab.net.ping import COLUMNS, PingTarget, SampleFile, Samples, plan_ping
from weirlab.record import open_record, record_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.realtime

WORDS: dict[str, Any] = {
    "method": "icmp",
    "port": None,
    "ttl": None,
    "payload": None,
    "dscp": "BE",
    "ip": None,
    "ping": "200ms",
    "count": None,
    "length": None,
    "timeout": "5s",
    "auth": None,
}

TEN = ("--count", "10", "--ping", "5ms", "--json")


@contextmanager
def listening() -> Iterator[str]:
    """The port of a TCP server that never looks at who comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


def row(seq: int, rtt: int | None = 5, by: str | None = None) -> Any:
    return (seq * 10, seq, rtt, 1, by, (11, 0) if by else None)


def test_samples_are_counted_and_described_whatever_their_order() -> None:
    samples = Samples()
    samples.add([row(1, 3_000_000), row(0, 1_000_000, "10.0.0.2"), row(2, None), row(3, 8_000_000)])
    assert (samples.sent, samples.answered, samples.lost) == (4, 3, 1)
    assert samples.mean_ms == 4.0
    assert samples.last_ns == 8_000_000
    np.testing.assert_array_equal(samples.rtt_ms, [1, 3, np.nan, 8])
    said = samples.figures()
    assert (said["rtt_ms"]["median"], said["loss_rate"]) == (3.0, 0.25)
    assert said["answered_by"] == {"10.0.0.2 (time exceeded)": 1}


def test_without_pings_there_are_no_figures() -> None:
    said = Samples().figures()
    assert (said["sent"], said["rtt_ms"], said["loss_rate"]) == (0, None, None)
    lost = Samples()
    lost.add([row(0, None)])
    assert (lost.mean_ms, lost.distribution, lost.loss_rate) == (None, None, 1.0)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_file_has_every_sample_in_the_order_of_sending(tmp_path: Path, suffix: str) -> None:
    file = SampleFile(tmp_path / f"new/pings.{suffix}")
    file.add([row(1), row(0, None)], 1_000)
    file.add([row(4, 7, "fd00::1"), row(2)], 1_000)
    file.close()
    if suffix == "csv":
        found = pl.read_csv(file.path)
    else:
        found = pl.read_ndjson(file.path) if suffix == "jsonl" else pl.read_parquet(file.path)
    assert found.columns == list(COLUMNS)
    assert found["seq"].to_list() == [0, 1, 2, 4]
    assert found["rtt_ns"].to_list() == [None, 5, 5, 7]
    assert found["unix_ns"].to_list() == [1_000, 1_010, 1_020, 1_040]
    assert found.row(3)[-3:] == ("fd00::1", 11, 0)
    with pytest.raises(UsageError, match="it is there already"):
        SampleFile(file.path)


def test_the_name_of_a_file_need_not_be_utf_8(tmp_path: Path) -> None:
    file = SampleFile(tmp_path / "\udcff.parquet")
    file.add([row(0)], 0)
    file.close()
    with file.path.open("rb") as kept:
        assert pl.read_parquet(kept)["seq"].to_list() == [0]


def test_an_interrupted_file_of_lines_has_what_came_until_then(tmp_path: Path) -> None:
    file = SampleFile(tmp_path / "pings.csv")
    file.add([row(0), row(1), row(3)], 0)
    lines = (tmp_path / "pings.csv").read_text().splitlines()
    file.close()
    assert [line.split(",")[0] for line in lines] == ["seq", "0", "1"]


@pytest.mark.parametrize("name", ["pings", "pings.txt", "pings.weir"])
def test_a_file_says_by_its_suffix_what_it_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"ends in \.csv, \.jsonl or \.parquet"):
        SampleFile(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ({}, None),
        ({"count": 7}, 7),
        ({"length": "1s"}, 5),
        ({"length": "1001ms"}, 6),
        ({"length": "1s", "count": 3}, 3),
        ({"length": "1ms"}, 1),
    ],
)
def test_pings_end_by_count_or_time_whichever_comes_first(words: dict[str, Any], count: int | None) -> None:
    assert plan_ping(WORDS | words).count == count


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"ping": "10"}, "--ping: `10` is a time without its unit: write `10s`, `10ms` or `10us`"),
        ({"length": "60"}, "--for: `60` is a time without its unit: write `60s`, `60ms` or `60us`"),
        ({"timeout": "2"}, "--timeout: `2` is a time without its unit: write `2s`, `2ms` or `2us`"),
        ({"ping": "999us"}, "--ping 999us: write 1ms to 3600s"),
        ({"length": "0s"}, "--for 0s: write 1ns to 31536000s"),
        ({"port": 80}, "--port 80: ICMP has no ports: leave it out, or write --method weir"),
        (
            {"method": "tcp", "ttl": 3},
            "--ttl 3: routers that answer are heard with --method icmp and udp only",
        ),
        ({"method": "tcp", "payload": 3}, "--payload 3: a handshake carries nothing"),
        ({"auth": "file"}, "--auth file: only `weir serve` asks for a secret"),
        ({"dscp": "XX"}, "--dscp: "),
    ],
)
def test_words_that_do_not_fit_are_refused_in_a_sentence(words: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_ping(WORDS | words)
    assert str(caught.value).startswith(said)


def test_what_hrping_sends_can_be_said() -> None:
    plan = plan_ping(WORDS | {"method": "udp", "ttl": 3, "payload": 0})
    assert plan.words == "UDP to port 33434, TTL 3, 0 bytes, every 200ms"


@pytest.mark.parametrize("name", ["", "no.such.host.invalid", "a" * 70 + ".invalid", "127.0.0.1:80", "\0"])
def test_a_host_without_an_address_is_wrong_input(name: str) -> None:
    with pytest.raises(UsageError, match="host"):
        PingTarget.find(name or "\0", None)


def test_a_host_is_found_over_the_protocol_that_is_asked_for() -> None:
    assert PingTarget.find("127.0.0.1", None) == PingTarget("127.0.0.1", "127.0.0.1", 0)
    assert str(PingTarget("here", "::1", 0)) == "here (::1)"
    with pytest.raises(UsageError, match="over IPv6"):
        PingTarget.find("127.0.0.1", 6)


def test_handshakes_are_timed_and_every_one_is_kept(tmp_path: Path) -> None:
    with listening() as port:
        words = ("ping", "127.0.0.1", "--method", "tcp", "--port", port, *TEN)
        done = weir_in(tmp_path, *words, "--out", "pings.parquet", "--chart", "pings.png")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["sent"], said["answered"]) == (10, 10)
    assert said["rtt_ms"]["min"] > 0
    kept = pl.read_parquet(tmp_path / "pings.parquet")
    assert kept["seq"].to_list() == list(range(10))
    assert kept["rtt_ns"].min() == round(said["rtt_ms"]["min"] * 1e6)
    assert (tmp_path / "pings.png").read_bytes().startswith(b"\x89PNG")


def test_one_ping_has_no_scatter(tmp_path: Path) -> None:
    once = ("ping", "127.0.0.1", "--count", "1", "--chart", "one.png")
    done = weir_in(tmp_path, *once)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    heading = next(line for line in lines if "std" in line)
    written = dict(zip(heading, lines[lines.index(heading) + 2], strict=True))
    assert written["std"] == "-"
    assert written["min"] == written["max"] != "-"
    assert json.loads(weir_in(tmp_path, *once[:-2], "--json").stdout)["rtt_ms"]["std"] is None


def test_a_closed_port_answers_udp_and_refuses_tcp(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
        udp.bind(("127.0.0.1", 0))
        tcp.bind(("127.0.0.1", 0))
        port, closed = udp.getsockname()[1], tcp.getsockname()[1]
        udp.close()
        words = ("--method", "udp", "--port", str(port), "--timeout", "1s")
        answered = weir_in(tmp_path, "ping", "127.0.0.1", *words, *TEN)
        refused = weir_in(tmp_path, "ping", "127.0.0.1", "--method", "tcp", "--port", str(closed), *TEN)
    said = json.loads(answered.stdout)
    # Linux lets a host send no more than some of these a second.
    assert answered.returncode == 0
    assert list(said["answered_by"]) == ["127.0.0.1 (port unreachable)"]
    assert refused.returncode == 1
    said = json.loads(refused.stdout)
    assert (said["lost"], said["refused"]) == (10, {"Connection refused": 10})
    assert refused.stderr == "weir: none of 10 pings was answered by `127.0.0.1`\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_nobody_waits_for_pings_that_were_refused(tmp_path: Path, host: str) -> None:
    """They would be waited for for ten minutes: longer than this test's patience."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as closed:
        # Nobody listens at it, and nobody else gets it meanwhile.
        closed.bind((host, 0))
        words = ("--method", "tcp", "--port", str(closed.getsockname()[1]), "--timeout", "600s")
        refused = weir_in(tmp_path, "ping", host, *words, *TEN)
    assert json.loads(refused.stdout)["refused"] == {"Connection refused": 10}


def test_a_datagram_that_comes_back_answers(tmp_path: Path) -> None:
    echo = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))\n"
        "print(s.getsockname()[1], flush=True)\n"
        "while True: d, a = s.recvfrom(99); s.sendto(d, a)"
    )
    with subprocess.Popen([sys.executable, "-c", echo], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            for payload in ("0", "60"):
                words = ("--method", "udp", "--port", port, "--payload", payload, *TEN)
                said = json.loads(weir_in(tmp_path, "ping", "127.0.0.1", *words).stdout)
                assert (said["answered"], said["answered_by"]) == (10, {})
        finally:
            server.kill()


def test_the_report_and_the_samples_agree(tmp_path: Path) -> None:
    with listening() as port:
        words = ("--method", "tcp", "--port", port, "--for", "100ms", "--ping", "10ms")
        done = weir_in(tmp_path, "ping", "127.0.0.1", *words, "--out", "p.csv", environment={"COLUMNS": "80"})
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == f"127.0.0.1: TCP handshake to port {port}, every 10ms"
    lines = [line.split() for line in done.stdout.splitlines()]
    rtt_ms = pl.read_csv(tmp_path / "p.csv")["rtt_ns"].to_numpy() / 1e6
    heading = lines.index(["min", "mean", "max", "std", "median", "p5", "p95", "p99"])
    written = dict(zip(lines[heading], lines[heading + 2], strict=True))
    assert written["min"] == f"{rtt_ms.min():.3f}"
    assert written["std"] == f"{rtt_ms.std(ddof=1):.3f}"
    assert written["median"] == f"{np.median(rtt_ms):.3f}"
    assert ["10", "sent,", "0", "lost", "(0.0%)"] in lines
    assert done.stdout.endswith("p.csv\n")


def test_ctrl_c_ends_pings_with_their_statistics(tmp_path: Path) -> None:
    with listening() as port:
        words = [sys.executable, "-m", "weirlab", "ping", "127.0.0.1", "--method", "tcp", "--port", port]
        words += ["--ping", "5ms", "--out", "p.csv", "--json"]
        with subprocess.Popen(
            words,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        ) as pings:
            file = tmp_path / "p.csv"
            wait_for(lambda: file.exists() and file.read_text().count("\n") > 10)
            pings.send_signal(signal.SIGINT)
            out, _ = pings.communicate(timeout=PATIENCE_S)
    assert pings.returncode == 0
    said = json.loads(out)
    assert said["answered"] > 9
    assert pl.read_csv(file).height == said["sent"]


def wait_for(happened: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no.such.host.invalid",), "weir: host `no.such.host.invalid`: "),
        (("127.0.0.1", "--out", "x.txt"), "weir: --out x.txt: name a file that ends in"),
        (("127.0.0.1", "--chart", "x.txt"), "weir: "),
        (("127.0.0.1", "--ping", "5"), "weir: --ping: `5` is a time without its unit"),
        (("127.0.0.1", "--count", "0"), "weir: --count: `0`: write a whole number from 1"),
        (("127.0.0.1", "--method", "weir", "--port", "1"), "weir: server `127.0.0.1:1`: connection refused"),
    ],
)
def test_pings_that_cannot_be_sent_are_wrong_input(
    tmp_path: Path, weir_here: Weir, words: tuple[str, ...], said: str
) -> None:
    done = weir_here("ping", *words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(said)
    assert not list(tmp_path.iterdir())


def test_pings_pass_three_routers_as_an_ordinary_user(tmp_path: Path) -> None:
    need_row()
    allow = "nsenter --net=/run/netns/n0 sh -c 'echo 0 0 >/proc/sys/net/ipv4/ping_group_range'"
    commands: list[tuple[str, ...]] = []
    for host in (SERVER, SERVER_6):
        commands += [("ping", host, *TEN), ("ping", host, "--ttl", "2", *TEN)]
        for ttl in ("1", "2", "3"):
            commands.append(("ping", host, "--method", "udp", "--ttl", ttl, "--payload", "0", *TEN))
        commands.append(("ping", host, "--method", "udp", "--ttl", "3", "--payload", "60", *TEN))
        commands.append(("ping", host, "--method", "weir", *TEN))
        commands.append(("ping", host, "--method", "tcp", "--port", "8080", *TEN))
        commands.append(("ping", host, "--method", "udp", "--payload", "0", *TEN))
    serve = ("serve", "--irtt-port", "0")
    done = in_row(tmp_path, *commands, before=allow, server=serve)
    half = len(commands) // 2
    for ip, of, server in ((4, done[:half], SERVER), (6, done[half:], SERVER_6)):
        by: list[dict[str, int]] = [
            {},
            {f"{router(2, ip)} (time exceeded)": 10},
            *({f"{router(n, ip)} (time exceeded)": 10} for n in (1, 2, 3, 3)),
            {},
            {},
            {f"{server} (port unreachable)": 10},
        ]
        for one, expected in zip(of, by, strict=True):
            assert one.returncode == 0, (one.args, one.stderr)
            said = figures(one)
            assert (said["answered"], said["answered_by"]) == (10, expected), one.args


def test_a_router_that_answers_once_a_second_spoils_no_later_round_trip(tmp_path: Path) -> None:
    need_row()
    # Linux' own limit, by which most pings of this rate go unanswered.
    limit = "nsenter --net=/run/netns/n3 sh -c 'echo 1000 >/proc/sys/net/ipv4/icmp_ratelimit'"
    words = ("--method", "udp", "--ttl", "3", "--ping", "10ms", "--for", "3s", "--timeout", "1s", "--json")
    commands = [
        ("ping", SERVER, *words, "--payload", bytes_, "--out", f"{bytes_}.csv") for bytes_ in ("0", "60")
    ]
    for one, bytes_ in zip(in_row(tmp_path, *commands, before=limit), ("0", "60"), strict=True):
        said = figures(one)
        assert said["sent"] == 300
        answered = pl.read_csv(tmp_path / f"{bytes_}.csv").filter(pl.col("rtt_ns").is_not_null())
        assert answered.height == said["answered"]
        # Were answers given to the oldest ping, the first would have them all.
        last = answered["seq"].max()
        assert isinstance(last, int)
        assert last > 2 * answered.height > 0


def test_icmp_that_this_user_may_not_send_is_refused_with_what_to_do(tmp_path: Path) -> None:
    need_row()
    (one,) = in_row(tmp_path, ("ping", SERVER, "--count", "1"))
    assert (one.returncode, one.stdout) == (2, "")
    assert one.stderr.splitlines()[1] == (
        "weir: ICMP echo: this user may open neither ping sockets nor raw ones: run as root `sysctl -w "
        "net.ipv4.ping_group_range='0 2147483647'`, or ping by `--method udp` or `tcp`"
    )


def test_an_address_that_nobody_may_ping_is_not_one_that_this_user_may_not(tmp_path: Path) -> None:
    if weir_in(tmp_path, "ping", "127.0.0.1", "--count", "1").returncode != 0:
        pytest.skip("this user may send no ICMP echo at all")
    one = weir_in(tmp_path, "ping", "255.255.255.255", "--count", "1")
    assert (one.returncode, one.stdout) == (2, "")
    assert one.stderr.splitlines()[-1] == (
        "weir: `255.255.255.255` cannot be pinged: the kernel forbids it, as of a broadcast address"
    )


@pytest.mark.parametrize(("host", "is_told"), [("::1", False), ("[::1]:80", True), ("127.0.0.1:80", True)])
def test_a_port_behind_a_host_is_told_apart_from_an_address(host: str, *, is_told: bool) -> None:
    with pytest.raises(UsageError) as refused:
        PingTarget.find(host, 4)
    assert ("write its port with --port" in str(refused.value)) == is_told


@pytest.mark.parametrize("host", ["[10.9.0.2", "[10.9.0.2]", "]", "[", "[]", "[::1", "::1]", "[server]"])
def test_brackets_of_a_host_are_a_pair_around_an_address_of_ipv6(host: str) -> None:
    with pytest.raises(UsageError) as refused:
        PingTarget.find(host, None)
    assert str(refused.value) == (
        f"host `{host}`: brackets stand around an address of IPv6, such as [2001:db8::1]: write one so, or "
        "without brackets"
    )
    assert PingTarget.find("[::1]", None) == PingTarget.find("::1", 6)


def test_what_is_lost_past_routers_is_told(tmp_path: Path) -> None:
    need_row()
    no_way = "ip -n n2 route add unreachable 10.0.3.2/32; ip -n n2 route add blackhole 10.0.3.7/32"
    words = ("--method", "udp", "--timeout", "500ms", *TEN)
    told, silent = in_row(tmp_path, ("ping", SERVER, *words), ("ping", "10.0.3.7", *words), before=no_way)
    assert (told.returncode, silent.returncode) == (1, 1)
    # Linux tells a few of them, and of the others nothing.
    assert list(figures(told)["refused"]) == [os.strerror(errno.EHOSTUNREACH)]
    assert (figures(told)["lost"], figures(told)["answered_by"]) == (10, {})
    assert (figures(silent)["lost"], figures(silent)["refused"]) == (10, {})


def test_a_scenario_asks_any_router_of_a_real_path_and_names_no_link(tmp_path: Path) -> None:
    need_row()
    probes = [f'{{ name = "router {ttl}", kind = "udp_ttl", ttl = {ttl}, payload = 0 }}' for ttl in (1, 2, 3)]
    (tmp_path / "routers.toml").write_text(
        f"""
[test]
name = "routers"
title = "Routers"
phases = {{ idle = "300ms" }}
probes = [{", ".join(probes)}, {{ name = "server", kind = "udp" }}]
"""
    )
    words = ("run", "routers.toml", "--world", "net", "--host", SERVER, "--out", "out", "--no-charts")
    (done,) = in_row(tmp_path, words, server=("serve", "--irtt-port", "0"))
    assert done.returncode == 0, done.stderr
    # Nothing but pings ran.
    assert "loaded" not in done.stdout
    (record,) = (open_record(path) for path in record_paths(tmp_path / "out"))
    answered = record.latency.drop_nulls("rtt_ns").group_by("probe").len()
    assert dict(answered.iter_rows()).keys() == {0, 1, 2, 3}
    assert record.manifest.link["title"] == f"path to {SERVER}"


def test_who_may_ping_is_told_of_a_network_that_cannot_be_reached() -> None:
    need_row()
    weir = [sys.executable, "-m", "weirlab", "ping", "127.0.0.1", "--count", "1"]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", *weir],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    # In a network namespace of its own raw sockets may be had, and the loopback device is down.
    assert "weir: `127.0.0.1` cannot be pinged: network is unreachable" in done.stderr.splitlines()
