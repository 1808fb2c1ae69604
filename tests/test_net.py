"""The path to a server elsewhere: `weir test` and the world net, over lab lines and loopback."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weirlab.lab.check import try_lab
from weirlab.record import open_record

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Weir = Callable[..., subprocess.CompletedProcess[str]]

TRIAL = try_lab()
pytestmark = pytest.mark.skipif(TRIAL.refusal is not None, reason=f"no lab here: {TRIAL.refusal}")

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

WEIR = f"{shutil.which(sys.executable)} -m weirlab"
CLIENTS = Path(__file__).parent / "clients"
SHORT = ("--idle", "2s", "--load", "6s")


@pytest.fixture
def measure(weir: Weir, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `weir` at the client's end of a line, with `weir serve` at the other."""

    def run(
        queue: str, *words: str, down: int = 20, up: int = 10, server: str = f"{WEIR} serve"
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "line.toml").write_text(LINE.format(down=down, up=up))
        line = ("--link", "line.toml", "--queue", queue, "--server-command", server)
        return weir("lab", "exec", *line, "--", *WEIR.split(), *words)

    return run


@pytest.mark.parametrize(("queue", "grades"), [("pfifo limit 1000", {"D", "F"}), ("cake", {"A", "A+"})])
def test_the_grade_is_that_of_the_queue(measure: Weir, tmp_path: Path, queue: str, grades: set[str]) -> None:
    """A deep FIFO, and a queue that isolates flows and keeps delays short, on the same line."""
    done = measure(queue, "test", "server", *SHORT, "--out", "o", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    if any("busy" in warning for warning in said["warnings"]):
        pytest.skip("the machine is busy")
    assert said["grade"] in grades
    assert 15 < said["down_mbps"] < 20
    assert 7 < said["up_mbps"] < 10
    assert (tmp_path / "o/charts/phases.png").exists()
    names = {score["name"]: score for score in said["scores"]}
    assert names["RPM"]["formula"].startswith("draft-ietf-ippm-responsiveness-09")
    record = open_record(tmp_path / "o")
    assert record.manifest.world == "net"
    assert record.latency["server_received_ns"].null_count() == record.latency["rtt_ns"].null_count()
    senders = record.flows["congestion_control"].unique().to_list()
    assert senders == ["cubic"]
    assert (record.flows["sent_bytes"] > 0).all()


def test_the_queue_is_found_before_the_router_behind_it(measure: Weir) -> None:
    """Router 1 stands before the line, router 2 behind it."""
    done = measure("pfifo limit 1000", "test", "server", *SHORT, "--locate", "--out", "o", "--json")
    assert done.returncode == 0, done.stderr
    place = json.loads(done.stdout)["location"]
    assert place["begins"] == dict.fromkeys(("download", "upload", "load"), "router 2")
    first, second = place["hops"][:2]
    assert first["increase_ms"]["upload"] < 20 < second["increase_ms"]["upload"]


def test_a_scenario_runs_over_the_real_path(measure: Weir, tmp_path: Path) -> None:
    """RRUL in the world net: the same tables as in any world."""
    words = ("--world", "net", "--host", "server", "--idle", "1s", "--load", "4s", "--cooldown", "1s")
    done = measure("fq_codel", "run", "rrul", *words, "--no-charts", "--out", "o", "--json")
    assert done.returncode == 0, done.stderr
    record = open_record(next((tmp_path / "o").rglob("manifest.json")).parent)
    assert record.manifest.complete
    assert record.flows.height == 8
    assert (record.flows["delivered_bytes"] > 0).all()
    assert set(record.latency["probe"].unique()) == {0, 1, 2, 3}
    assert {"up", "down"} == set(record.flow_names["direction"])


@pytest.mark.parametrize(
    ("method", "words"),
    [("ndt7", ()), ("cloudflare", ()), ("librespeed", ()), ("ookla", ()), ("rpm", ("--no-verify",))],
)
def test_foreign_methods_complete(measure: Weir, method: str, words: tuple[str, ...]) -> None:
    """Each against our own server, with the truth beside it; Cloudflare's takes long on a slow line."""
    options = ("--method", method, *words, "--truth", "--out", "o", "--json")
    done = measure("fq_codel", "test", "server", *options, down=100, up=50)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    result, truth = said["result"], said["truth"]
    assert result["failures"] in ([None], [None, None])
    down = result["download"]["goodput_mbps"] if method == "rpm" else result["download_mbps"]
    up = result["upload"]["goodput_mbps"] if method == "rpm" else result["upload_mbps"]
    # LibreSpeed adds 6 % for headers, Ookla drops slow chunks.
    assert 60 < down < 105
    assert 30 < up < 60
    assert truth["during"]["median"] < truth["idle"]["median"] + 30


def test_a_server_of_files_is_measured_with_what_it_has(measure: Weir, tmp_path: Path) -> None:
    """Python's own web server: one file, no upload, no connection kept alive."""
    with (tmp_path / "file").open("wb") as file:
        file.truncate(100_000_000)
    server = f"{shutil.which(sys.executable)} -m http.server 8080 --directory {tmp_path}"
    done = measure("pfifo limit 1000", "test", "http://server:8080/file", "--json", server=server)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    result = said["result"]
    assert "is a file" in said["instead_of"]
    assert (result["server_is_like"], result["upload_mbps"]) == ("a file", None)
    assert 15 < result["download_mbps"] < 20
    assert 20 < result["latency_ms"] < 40
    # 1000 packets at 20 Mbit/s are 600 ms.
    assert result["down_loaded_latency_ms"] > 200
    assert result["grade"] in {"D", "F"}
    assert any("upload" in missing for missing in result["missing"])


def test_a_server_without_our_protocol_is_measured_over_http(measure: Weir) -> None:
    """The same server with its own protocol switched off: no word but Cloudflare's, LibreSpeed's, Ookla's."""
    done = measure("cake", "test", "server", "--json", server=f"{WEIR} serve --without weir")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    result = said["result"]
    assert "does not speak Weir's protocol" in said["instead_of"]
    assert result["server_is_like"] == "Cloudflare"
    assert 12 < result["download_mbps"] < 20
    assert 6 < result["upload_mbps"] < 10
    assert result["grade"] in {"A", "A+"}


def test_ndt7_completes_against_the_official_server(measure: Weir, tmp_path: Path) -> None:
    """The other end is M-Lab's ndt-server, which `make clients` builds."""
    program = CLIENTS / "bin/ndt-server"
    if not program.exists():
        pytest.skip("ndt-server is not there: make clients")
    nowhere = [
        f"-{name} 127.0.0.1:0" for name in ("ndt7_addr", "ndt5_ws_addr", "ndt5_wss_addr", "health_addr")
    ]
    server = f"{program} -datadir {tmp_path} -ndt7_addr_cleartext :8080 {' '.join(nowhere)}"
    done = measure("fq_codel", "test", "server", "--method", "ndt7", "--json", server=server)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert result["failures"] == [None, None]
    assert result["truncated"] == {"download": False, "upload": False}
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
    ],
)
def test_what_cannot_be_done_is_refused(weir: Weir, words: tuple[str, ...], sentence: str) -> None:
    """One sentence, and nothing happens."""
    done = weir(*words)
    assert done.returncode in {1, 2}
    assert sentence in done.stderr
