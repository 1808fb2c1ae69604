"""Applications in the world net: `weir run` against `weir serve`, over a line of the lab and on loopback."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

from live import skip_if_late, weir_in
from serving import serving
from test_net_udp import ended, only_record, run_against, unwrapped, wait_for_rows
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

pytestmark = pytest.mark.realtime

LINE = """
name = "line"
title = "10 Mbit/s, 10 ms each way"
up = [{ name = "line", rate = "10mbit", delay = "10ms", queue = "pfifo limit 100" }]
down = [{ name = "line", rate = "10mbit", delay = "10ms", queue = "pfifo limit 100" }]
"""
HEAD = """
name = "app"
[test]
name = "app"
title = "Applications"
phases = { idle = "2s", load = "5s" }
"""
PAGE = "document = 20000, objects = 12, object = 10000"
PAGES = f"""
flows = [
    {{ name = "page", direction = "down", dscp = "CS1", web = {{ {PAGE}, every = "1s" }} }},
    {{ name = "page 2", direction = "down", web = {{ {PAGE}, every = "1300ms", http = "2" }} }},
    {{ name = "names", direction = "down", dns = {{ every = "100ms" }} }},
]
"""
FILM = """
flows = [{ name = "film", direction = "down", video = { bitrates = ["200kbit", "1mbit"], segment = "1s" } }]
"""
WEIR = f"{shutil.which(sys.executable)} -m weirlab"


def over_one_line(folder: Path, flows: str) -> tuple[Record, Record]:
    """The same test in the simulator, and over `weir serve` at the other end of the same line of the lab."""
    (folder / "line.toml").write_text(LINE)
    (folder / "app.toml").write_text(HEAD + flows)
    (folder / "sim.toml").write_text('link = "line.toml"\n' + HEAD + flows)
    sim = weir_in(folder, "run", "sim.toml", "--no-charts", "--out", "sim")
    assert sim.returncode == 0, sim.stderr
    line = ("--link", "line.toml", "--server-command", f"{WEIR} serve")
    run = f"{WEIR} run app.toml --world net --host server --no-charts --out net"
    net = weir_in(folder, "lab", "exec", *line, "--", *run.split())
    assert net.returncode == 0, net.stderr
    skip_if_late(net.stderr)
    return only_record(folder / "sim"), only_record(folder / "net")


@pytest.mark.needs_lab
def test_pages_and_names_over_a_server_take_about_as_long_as_in_the_simulator(tmp_path: Path) -> None:
    sim, net = over_one_line(tmp_path, PAGES)
    assert net.manifest.world == "net"
    of_sim, of_net = (summarise(one).applications for one in (sim, net))
    for name in ("page", "page 2", "names"):
        assert of_net[name].given_up == 0
        assert of_net[name].done == pytest.approx(of_sim[name].done, abs=1), name
        median = of_sim[name].median_ms
        assert median is not None
        assert of_net[name].median_ms == pytest.approx(median, rel=0.25, abs=5), name
    for number in range(3):
        done = (pl.col("flow") == number) & (pl.col("outcome") == "done")
        sizes = [set(one.transfers.filter(done)["bytes"]) for one in (sim, net)]
        assert sizes[0] == sizes[1], "a page has as many bytes in both worlds"
    idle = net.transfers.filter((pl.col("flow") == 0) & (pl.col("t_ns") < 2_000_000_000))
    assert set(idle["outcome"]) == {"done"}, "there is a baseline without load"


@pytest.mark.needs_lab
def test_a_video_over_a_server_plays_as_in_the_simulator(tmp_path: Path) -> None:
    films = [summarise(one).applications["film"].video for one in over_one_line(tmp_path, FILM)]
    assert films[0] is not None
    assert films[1] is not None
    assert films[1].bitrate_mbps == pytest.approx(films[0].bitrate_mbps, rel=0.1)
    assert films[1].stalls == films[0].stalls == 0


def test_a_page_beside_loads_has_its_figures_and_assertions(tmp_path: Path) -> None:
    words = ("--idle", "4s", "--load", "4s", "--cooldown", "1s", "--json")
    checked = ("--assert", "web.failed <= 0", "--assert", "web.p95 > 0ms")
    with serving("--max-rate", "50mbit") as server:
        code, told, said = ended(run_against(server.address, "http-rrul", tmp_path, *words, *checked))
    assert code == 0, said
    assert json.loads(told)
    record = only_record(tmp_path)
    (page,) = summarise(record).applications.values()
    assert page.done > 0
    assert page.given_up == 0
    assert set(record.transfers.filter(pl.col("outcome") == "done")["bytes"]) != {0}
    tcp = record.tcp["flow"].unique().to_list()
    number = record.flow_names.filter(pl.col("name") == next(iter(summarise(record).applications)))["flow"][0]
    assert number not in tcp
    assert not record.manifest.warnings


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_run_whose_client_or_server_ends_keeps_what_was_measured(tmp_path: Path, who: str) -> None:
    with serving() as server:
        run = run_against(server.address, "http", tmp_path, "--idle", "60s")
        wait_for_rows(tmp_path)
        (run if who == "client" else server.process).send_signal(signal.SIGINT)
        code, _, said = ended(run)
    assert code == (130 if who == "client" else 1), said
    assert "Traceback" not in said
    record = only_record(tmp_path)
    assert not record.manifest.complete
    assert record.transfers.height > 0


def test_ipv4_beside_ipv6_stays_with_the_simulator(tmp_path: Path) -> None:
    with serving() as server:
        code, _, said = ended(run_against(server.address, "rrul_spec", tmp_path))
    assert code == 1
    assert "the world net uses IPv4 or IPv6 and not both at once" in unwrapped(said)
