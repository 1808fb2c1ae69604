"""Sweeps that are interrupted: what is done is kept, and the same command does only the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

from live import PATIENCE_S
from weirlab.sweeps.store import Store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.realtime

RUNS = 10_000
"""More than the fastest of machines does before the first part is written."""

PLAN = """
test = "tcp_upload"
link = "cable-20-8"
phases = {{ idle = "500ms", load = "5s", cooldown = "0s" }}
[sweep]
repeat = {}
[sweep.axes]
queue = ["pfifo_fast"]
"""


def test_ctrl_c_keeps_what_is_done_and_the_same_command_does_the_rest(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(RUNS))
    command = [sys.executable, "-m", "weirlab", "sweep", "plan.toml", "--jobs", "2", "--json"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        # A part is written five seconds after the first run at the latest: runs have ended, many are left.
        deadline = time.monotonic() + PATIENCE_S
        while not list(tmp_path.glob("plan.sweep/runs/part-*.parquet")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "no part was written in time"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
    first = json.loads(said)
    assert process.returncode == 130, errors
    assert first["interrupted"]
    assert "interrupted: " in errors
    store = Store.opened(tmp_path / "plan.sweep")
    before = store.collected()
    assert 0 < before.height == first["done"] < RUNS
    assert before["error"].is_null().all()
    # A plan of a few runs more than are done: it runs these alone, and leaves the rows that are there.
    asked = first["done"] + 3
    (tmp_path / "plan.toml").write_text(PLAN.format(asked))
    again = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    there = before.filter(pl.col("seed") <= asked).height
    rest = json.loads(again.stdout)
    assert (rest["kept"], rest["done"], rest["left"]) == (there, asked - there, 0)
    after = store.collected()
    assert after.filter(pl.col("seed") <= asked)["seed"].sort().to_list() == list(range(1, asked + 1))
    assert after.join(before, on="run", how="semi").sort("run").equals(before.sort("run"), null_equal=True)


def test_ctrl_c_leaves_nothing_of_a_run_that_was_under_way(tmp_path: Path) -> None:
    """Its worker is ended at once, and has no time to clear up."""
    (tmp_path / "plan.toml").write_text(LONG_PLAN)
    (scratch := tmp_path / "scratch").mkdir()
    command = [sys.executable, "-m", "weirlab", "sweep", "plan.toml", "--jobs", "2"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while len(list(scratch.glob("**/record"))) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "no run began in time"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
    assert process.returncode == 130
    assert list(scratch.iterdir()) == []


LONG_PLAN = """
test = "rrul"
link = "docsis-31"
phases = { load = "1h" }
[sweep]
repeat = 2
samples = "all"
[sweep.axes]
queue = ["fq_codel"]
"""
