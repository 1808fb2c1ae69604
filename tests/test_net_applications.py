"""Applications in the world net: `weir run` against `weir serve`, over a line of the lab and on loopback."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

from live import skip_if_late, weir_in
from serving import serving
from test_lab_applications import check_film, check_pages
from test_net_udp import cut_short, ended, only_record, run_against, unwrapped
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


@pytest.mark.quiet
@pytest.mark.needs_lab
def test_pages_and_names_over_a_server_take_about_as_long_as_in_the_simulator(tmp_path: Path) -> None:
    sim, net = over_one_line(tmp_path, PAGES)
    assert net.manifest.world == "net"
    check_pages(sim, net)
    idle = net.transfers.filter((pl.col("flow") == 0) & (pl.col("t_ns") < 2_000_000_000))
    assert set(idle["outcome"]) == {"done"}, "there is a baseline without load"


@pytest.mark.needs_lab
def test_a_video_over_a_server_plays_as_in_the_simulator(tmp_path: Path) -> None:
    check_film(*over_one_line(tmp_path, FILM))


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
    cut_short("http", tmp_path, who)
    record = only_record(tmp_path)
    assert not record.manifest.complete
    assert record.transfers.height > 0


def test_ecn_by_flow_stays_with_the_simulator(tmp_path: Path) -> None:
    with serving() as server:
        code, _, said = ended(run_against(server.address, "rrul_spec", tmp_path))
    assert code == 1
    assert "the world net cannot ask for ECN by flow" in unwrapped(said)
