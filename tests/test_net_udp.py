"""UDP loads and calls in the world net: `weir run` against `weir serve` on the loopback address."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

import polars as pl
import pytest

from live import PATIENCE_S
from serving import WEIR, serving
from weirlab.record import Record, open_record
from weirlab.stats.udp import udp_summaries

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.realtime


def run_against(address: str, test: str, out: Path, *more: str) -> subprocess.Popen[str]:
    words = ["run", test, "--world", "net", "--host", address, "--no-charts", "--out", str(out), *more]
    return subprocess.Popen([*WEIR, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(run: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, said = run.communicate(timeout=PATIENCE_S)
    return run.returncode, out, said


def only_record(out: Path) -> Record:
    (manifest,) = out.rglob("manifest.json")
    return open_record(manifest.parent)


def test_a_call_over_a_server_has_the_figures_of_every_world(tmp_path: Path) -> None:
    with serving() as server:
        code, told, said = ended(run_against(server.address, "voip", tmp_path, "--idle", "4s", "--json"))
    assert code == 0, said
    assert json.loads(told)
    record = only_record(tmp_path)
    assert record.manifest.world == "net"
    ends = record.udp.filter(pl.col("sent_packets").is_not_null())
    assert ends.height == record.udp.height
    calls = udp_summaries(record)
    assert set(calls) == {"VoIP upload", "VoIP download"}
    for call in calls.values():
        assert call.loss_rate is not None
        assert call.loss_rate < 0.05
        assert call.voice is not None
        assert call.voice.mos > 3.5, "there is nothing on the loopback address that impairs a call"


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_run_whose_client_or_server_ends_keeps_what_was_measured(tmp_path: Path, who: str) -> None:
    said = cut_short("voip", tmp_path, who)
    if who == "server":
        assert re.search("server `127.0.0.1:[0-9]+` ended the session: the server is stopping", said)
    assert not only_record(tmp_path).manifest.complete


def cut_short(test: str, out: Path, who: str) -> str:
    """Ends the client or the server of a run while it measures, and returns what the client said."""
    with serving() as server:
        run = run_against(server.address, test, out, "--idle", "60s")
        wait_for_rows(out)
        (run if who == "client" else server.process).send_signal(signal.SIGINT)
        code, _, said = ended(run)
    assert code == (130 if who == "client" else 1), said
    assert "Traceback" not in said
    return said


def wait_for_rows(out: Path) -> None:
    """Waits until a run has begun to write."""
    pause = threading.Event()
    for _ in range(10 * PATIENCE_S):
        if any(out.rglob("manifest.json")):
            pause.wait(4)
            return
        pause.wait(0.1)
    pytest.fail("nothing is written")


def test_what_a_server_does_not_allow_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with serving("--max-udp-rate", "50mbit") as server:
        code, _, said = ended(run_against(server.address, "udp_flood", tmp_path))
    assert code == 1
    assert "this server allows one address 50 Mbit/s (`weir serve --max-udp-rate`)" in unwrapped(said)
    assert not list(tmp_path.rglob("*.parquet"))


def unwrapped(said: str) -> str:
    """What was said, without the line breaks of the terminal."""
    return " ".join(said.split())
