"""The path to a server elsewhere: `weir test` and the world net, over lab lines and loopback."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock, patch

import polars as pl
import pytest
from click.testing import CliRunner
from rich.console import Console

from live import MAX_LATENESS_MS, skip_if_late, together, weir_in
from weirlab import _native
from weirlab.cli import weir as group
from weirlab.plots.distribution import pings_by_probe
from weirlab.record import open_record
from weirlab.report.scores import formulas, score_table
from weirlab.scores import measured, score_all
from weirlab.stats import quantile

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.realtime, pytest.mark.quiet, pytest.mark.needs_lab]

LINE = """
name = "line"
title = "{down} Mbit/s down, {up} Mbit/s up, 10 ms each way"

[[up]]
name = "line"
place = "queue"
rate = "{up}mbit"
delay = "10ms"

[[down]]
name = "line"
place = "queue"
rate = "{down}mbit"
delay = "10ms"
"""

ROUTE = "ip route replace 10.0.0.0/8 dev weir0 proto kernel scope link congctl cubic"
"""A route that names a congestion control."""

WEIR = f"{shutil.which(sys.executable)} -m weirlab"
NDT_SERVER = Path(__file__).parent / "clients/bin/ndt-server"


@dataclass(frozen=True)
class Measured:
    """What a command at the client's end of a line said, and the folder in which it ran."""

    folder: Path
    done: subprocess.CompletedProcess[str]

    def said(self) -> Any:
        assert self.done.returncode == 0, self.done.stderr
        return json.loads(self.done.stdout)

    def skip_if_busy(self) -> None:
        """Skips where the lab says that it was late, or a record that this machine held its pings back."""
        skip_if_late(self.done.stderr)
        if (self.folder / "o").exists():
            late = quantile(open_record(self.folder / "o").latency["timer_error_ns"], 0.99)
            if late is not None and late > MAX_LATENESS_MS * 1e6:
                pytest.skip(f"pings left up to {late / 1e6:.1f} ms late (p99): this machine was busy")


def measure(
    folder: Path,
    queue: str,
    *words: str,
    down: int = 20,
    up: int = 10,
    server: str = f"{WEIR} serve",
    first: str = "true",
    line: Sequence[str] = (),
) -> Measured:
    """Runs `first` and then `weir` at the client's end of a line, with `server` at the other."""
    (folder / "line.toml").write_text(LINE.format(down=down, up=up))
    line = ("--link", "line.toml", "--queue", queue, "--server-command", server, *line)
    program = ("sh", "-c", f"{first} && exec {WEIR} {shlex.join(words)}")
    return Measured(folder, weir_in(folder, "lab", "exec", *line, "--", *program))


Runs = dict[str, "Future[Measured]"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Our own test behind a deep FIFO and behind CAKE, and two scenarios: four lines at once."""
    test = ["test", "server", "--idle", "2s", "--load", "6s", "--out", "o", "--json"]
    rrul = "run rrul --world net --host server --idle 1s --load 4s --cooldown 1s --no-charts --out o --json"
    upload = "run tcp_upload --cc reno --world net --host server --idle 1s --load 1s --no-charts"
    recorded = partial(measure, first=ROUTE, line=("--out", "line"))
    folders = {name: tmp_path_factory.mktemp(name) for name in ("fifo", "cake", "rrul", "route")}
    return together(
        {
            "fifo": partial(measure, folders["fifo"], "pfifo limit 1000", *test, "--locate"),
            "cake": partial(measure, folders["cake"], "cake", *test),
            "rrul": partial(measure, folders["rrul"], "fq_codel", *rrul.split()),
            "route": partial(recorded, folders["route"], "fq_codel", *upload.split(), "--cooldown", "1s"),
        }
    )


@pytest.mark.parametrize(("queue", "grades"), [("fifo", {"D", "F"}), ("cake", {"A", "A+"})])
def test_the_grade_is_that_of_the_queue(own: Runs, queue: str, grades: set[str]) -> None:
    """A deep FIFO, and a queue that isolates flows and keeps delays short, on the same line."""
    measured = own[queue].result()
    said = measured.said()
    assert (measured.folder / "o/charts/phases.png").exists()
    names = {score["name"]: score for score in said["scores"]}
    assert names["RPM"]["formula"].startswith("draft-ietf-ippm-responsiveness-09")
    record = open_record(measured.folder / "o")
    assert record.manifest.world == "net"
    # What the server echoes; of `--locate`'s pings the routers tell no more than that they are there.
    echoes = record.latency.filter(record.latency["probe"] == 0)
    assert echoes["server_received_ns"].null_count() == echoes["rtt_ns"].null_count() < echoes.height
    senders = record.flows["congestion_control"].unique().to_list()
    assert senders == ["cubic"]
    assert (record.flows["sent_bytes"] > 0).all()
    measured.skip_if_busy()
    assert said["grade"] in grades
    assert 15 < said["down_mbps"] < 20
    assert 7 < said["up_mbps"] < 10


def test_the_queue_is_found_before_the_router_behind_it(own: Runs) -> None:
    """Router 1 stands before the line, router 2 behind it."""
    own["fifo"].result().skip_if_busy()
    place = own["fifo"].result().said()["location"]
    assert place["begins"] == dict.fromkeys(("download", "upload", "load"), "router 2")
    first, second = place["hops"][:2]
    assert first["increase_ms"]["upload"] < 20 < second["increase_ms"]["upload"]


def test_what_routers_answer_is_no_ping(own: Runs) -> None:
    """Of six routers two are there: neither their silence nor their short way counts as the path's."""
    measured = own["fifo"].result()
    measured.said()
    record = open_record(measured.folder / "o")
    assert record.manifest.routers == [1, 2, 3, 4, 5, 6]
    assert record.latency.filter(pl.col("probe") == 6)["rtt_ns"].count() == 0
    assert record.pings["probe"].unique().to_list() == [0]
    assert list(pings_by_probe(record)) == ["UDP"]


def test_a_scenario_runs_over_the_real_path(own: Runs) -> None:
    """RRUL in the world net: the same tables as in any world."""
    measured = own["rrul"].result()
    measured.said()
    record = open_record(next((measured.folder / "o").rglob("manifest.json")).parent)
    assert record.manifest.complete
    assert record.flows.height == 8
    assert (record.flows["delivered_bytes"] > 0).all()
    assert set(record.latency["probe"].unique()) == {0, 1, 2, 3}
    assert {"up", "down"} == set(record.flow_names["direction"])


def test_a_load_has_its_congestion_control_whatever_the_route_names(own: Runs) -> None:
    """As the kernel tells it; of the sender, whose data the record has, not of the end that acknowledges."""
    measured = own["route"].result()
    assert measured.done.returncode == 0, measured.done.stderr
    line = open_record(measured.folder / "line")
    connections: list[dict[str, str]] = line.manifest.extra["connections"]
    bytes_of = line.throughput.group_by("flow").agg(pl.sum("bytes"))
    (most,) = bytes_of.top_k(1, by="bytes")["flow"]
    assert connections[most // 2]["client_congestion_control"] == "reno"


def test_the_table_fits_80_columns_and_every_formula_is_said_once(own: Runs) -> None:
    own["cake"].result().said()
    record = open_record(own["cake"].result().folder / "o")
    figures = measured(record)
    assert figures is not None
    scores = score_all(record, figures)
    terminal = Console(width=80, file=io.StringIO())
    terminal.print(score_table(record, figures, scores))
    said = cast("io.StringIO", terminal.file).getvalue()
    for score in scores.scores:
        assert score.name in said  # none is folded
    assert max(len(line) for line in said.splitlines()) <= 80
    below = [text.plain for text in formulas(record, scores)]
    for score in scores.scores:
        assert sum(line.endswith(score.formula) for line in below) == 1
    assert "AIM, streaming, gaming, real-time calls: Cloudflare AIM, @cloudflare/speedtest 1.14.1" in below


METHODS = ("ndt7", "cloudflare", "librespeed", "ookla", "rpm")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Each method against our own server, with the truth beside it, all at once on lines of their own.

    Cloudflare's sends so many bytes: on a slower line it takes minutes.
    """

    def run(method: str, folder: Path) -> Measured:
        words = ("--no-verify",) if method == "rpm" else ()
        options = ("--method", method, *words, "--truth", "--out", "o", "--json")
        down, up = RATES[method]
        return measure(folder, "fq_codel", "test", "server", *options, down=down, up=up)

    return together({method: partial(run, method, tmp_path_factory.mktemp(method)) for method in METHODS})


RATES = dict.fromkeys(METHODS, (20, 10)) | {"cloudflare": (100, 50)}
"""Mbit/s down and up."""


@pytest.mark.parametrize("method", METHODS)
def test_foreign_methods_complete(foreign: Runs, method: str) -> None:
    said = foreign[method].result().said()
    result, truth = said["result"], said["truth"]
    assert result["failures"] == []
    record = open_record(foreign[method].result().folder / said["out"])
    (kept,) = record.methods.iter_rows(named=True)
    assert (kept["kind"], json.loads(kept["result"])) == (method, result)
    assert 2e9 < kept["began_ns"] < kept["ended_ns"] <= record.reached_ns + 1e9
    assert record.pings.height > 100
    assert f"grade {said['verdict_of_pings']['grade']}, " in said["verdict_of_pings"]["says"]
    down = result["download"]["goodput_mbps"] if method == "rpm" else result["download_mbps"]
    up = result["upload"]["goodput_mbps"] if method == "rpm" else result["upload_mbps"]
    foreign[method].result().skip_if_busy()
    rate = RATES[method]
    # LibreSpeed adds 6 % for headers, Ookla drops slow chunks.
    assert 0.6 * rate[0] < down < 1.05 * rate[0]
    assert 0.6 * rate[1] < up < 1.2 * rate[1]
    assert truth["during"]["median"] < truth["idle"]["median"] + 30


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Servers of others at the far end, and our own without its own protocol."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("files", "ours", "ndt", "data")}
    with (folders["files"] / "file").open("wb") as file:
        file.truncate(100_000_000)
    python = f"{shutil.which(sys.executable)} -m http.server 8080 --directory {folders['files']}"
    words = ("test", "http://server:8080/file", "--json")
    files = partial(measure, folders["files"], "pfifo limit 1000", *words, server=python)
    words = ("test", "server", "--json")
    ours = partial(measure, folders["ours"], "cake", *words, server=f"{WEIR} serve --without weir")
    nowhere = [
        f"-{name} 127.0.0.1:0" for name in ("ndt7_addr", "ndt5_ws_addr", "ndt5_wss_addr", "health_addr")
    ]
    official = f"{NDT_SERVER} -datadir {folders['data']} -ndt7_addr_cleartext :8080 {' '.join(nowhere)}"
    ndt = partial(measure, folders["ndt"], "fq_codel", *words, "--method", "ndt7", server=official)
    jobs = {"files": files, "ours": ours}
    return together(jobs | {"ndt": ndt} if NDT_SERVER.exists() else jobs)


def test_a_server_of_files_is_measured_with_what_it_has(servers: Runs) -> None:
    """Python's own web server: one file, no upload, no connection kept alive."""
    said = servers["files"].result().said()
    result = said["result"]
    assert "is a file" in said["instead_of"]
    assert (result["server_kind"], result["upload_mbps"]) == ("a file", None)
    assert any("upload" in missing for missing in result["missing"])
    servers["files"].result().skip_if_busy()
    assert 15 < result["download_mbps"] < 20
    assert 20 < result["latency_ms"] < 40
    # 1000 packets at 20 Mbit/s are 600 ms.
    assert result["download_loaded_latency_ms"] > 200
    assert said["verdict"]["grade"] in {"D", "F"}


def test_a_server_without_our_protocol_is_measured_over_http(servers: Runs) -> None:
    """A server with its own protocol switched off: no word but Cloudflare's, LibreSpeed's, Ookla's."""
    said = servers["ours"].result().said()
    result = said["result"]
    assert "does not speak Weir's protocol" in said["instead_of"]
    assert result["server_kind"] == "Cloudflare"
    servers["ours"].result().skip_if_busy()
    assert 12 < result["download_mbps"] < 20
    assert 6 < result["upload_mbps"] < 10
    assert said["verdict"]["grade"] in {"A", "A+"}
    # A foreign server is recognised.
    assert said["instead_of"].endswith("; it speaks Cloudflare's test too: --method cloudflare")


def test_ndt7_completes_against_the_official_server(servers: Runs) -> None:
    """The other end is M-Lab's ndt-server, which `make clients` builds."""
    if not NDT_SERVER.exists():
        pytest.skip("ndt-server is not there: make clients")
    result = servers["ndt"].result().said()["result"]
    assert result["failures"] == []
    assert result["truncated"] == {"download": False, "upload": False}
    servers["ndt"].result().skip_if_busy()
    assert 12 < result["download_mbps"] < 21
    assert 6 < result["upload_mbps"] < 11
    # Twice 10 ms of the line, and nothing of its queue.
    assert 20 <= result["latency_ms"] < 25


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "rrul", "--world", "net"), "the world net needs a server"),
        (("run", "rrul", "--world", "net", "--host", "h", "--queue", "cake"), "leave it out"),
        (("run", "rrul", "--host", "h"), "only the world net has one"),
        (("test", "h", "--truth"), "give --method too"),
        (("test", "h", "--load", "1s"), "write 3s or more"),
        (("test", "h", "--no-verify"), "give --method too"),
        (("test", "http://h", "--method", "rpm"), "write https://"),
        (("test", "h", "--method", "ndt7", "--charts"), "--charts goes with --truth"),
        (("test", "h", "--method", "ndt7", "--load", "5s"), "--load is for Weir's own test"),
    ],
)
def test_what_cannot_be_done_is_refused(weir_here: Weir, words: tuple[str, ...], sentence: str) -> None:
    """One sentence, and nothing happens."""
    done = weir_here(*words)
    assert done.returncode in {1, 2}
    assert sentence in done.stderr


@pytest.mark.parametrize(
    "host",
    ["[10.9.0.2", "10.9.0.2]", "[10.9.0.2]", "]", "[]", "[]:80", "[::1", "::1]", "http://[::1", "[server]"],
)
def test_brackets_of_a_server_are_a_pair_around_an_address_of_ipv6(weir_here: Weir, host: str) -> None:
    said = f"weir: server `{host}`: write HOST, HOST:PORT or [IPV6]:PORT"
    test = weir_here("test", host)
    assert test.stderr.startswith(said)
    run = weir_here("run", "ping", "--world", "net", "--host", host)
    assert run.stderr == f"{said}\n"
    proof = weir_here("shape", "start", "lo", "--prove", "--server", host)
    assert [one.returncode for one in (test, run, proof)] == [2, 2, 2]
    assert proof.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "test 127.0.0.1:1",
        "shape start lo --prove --server 127.0.0.1:1",
        "run ping --world net --host 127.0.0.1:1",
    ],
)
def test_where_nothing_listens_it_is_told_what_to_start_there(weir_here: Weir, words: str) -> None:
    done = weir_here(*words.split())
    hint = "start `weir serve` or `weir-agent serve` there, or name the port where it listens"
    assert " ".join(done.stderr.split()) == f"weir: server `127.0.0.1:1`: connection refused; {hint}"
    assert done.returncode == 1


def test_the_server_of_a_proof_that_is_not_found_is_told_of_as_that_of_a_test(weir_here: Weir) -> None:
    name = "no-such-host.invalid"
    measured = weir_here("test", name)
    proof = weir_here("shape", "lo", "--prove", "--server", name)
    assert (measured.returncode, proof.returncode) == (1, 1)
    for done in (measured, proof):
        assert done.stderr.startswith(f"weir: server `{name}"), done.stderr


def test_the_name_of_the_server_of_a_proof_is_looked_up_once(weir_here: Weir) -> None:
    """A name may have another address the next time."""
    server = _native.find_server("localhost:1")
    find, offer = Mock(return_value=server), Mock(wraps=_native.offer)
    with patch.multiple(_native, find_server=find, offer=offer):
        proof = weir_here("shape", "start", "lo", "--prove", "--server", "localhost:1")
    find.assert_called_once_with("localhost:1")
    offer.assert_called_once_with(server, None)
    assert proof.stderr.startswith("weir: server `localhost:1`: connection refused")


def test_a_run_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for out in (tmp_path / "new", mine, mine):
        words = ["run", "tcp_download", "--world", "net", "--host", "127.0.0.1:1", "--out", str(out)]
        done = CliRunner().invoke(group, words)
        assert "connection refused; start `weir serve`" in str(done.exception)
    assert [one.name for one in tmp_path.rglob("*")] == ["mine"]
