"""What the process does that a request to end finds in the midst of an import, or on its way out."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from live import PATIENCE_S
from weirlab.ending import INTERRUPTED

if TYPE_CHECKING:
    from pathlib import Path

SLOW = """
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
for _ in range(30):
    time.sleep(0.001)
print("imported", flush=True)
"""
IMPORTS = """
import time
from weirlab import interrupt
interrupt.take_over()
interrupt.started()
try:
    import slow
    for _ in range(5000):
        time.sleep(0.001)
    print("never interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""
SWALLOWS = """
import os, signal, time
from weirlab import interrupt
interrupt.take_over()
interrupt.started()

class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

try:
    late = Late()
    del late
    for _ in range(5000):
        time.sleep(0.001)
    print("never interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""
LEAVES = """
import os, signal, sys
import weirlab.__main__ as entry
import weirlab.cli

class Late:
    def __del__(self, kill=os.kill, own=os.getpid(), number=signal.SIGINT):
        kill(own, number)

late = Late()

def ends():
    print("all told")
    sys.exit({code})

weirlab.cli.main = ends
entry.main()
"""


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_ctrl_c_waits_for_an_import_to_end(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    ended = run(tmp_path, IMPORTS)
    assert (ended.stdout, ended.stderr) == ("imported\ninterrupted\n", "")


def test_ctrl_c_where_python_lets_no_error_out_is_heard_right_after(tmp_path: Path) -> None:
    done = run(tmp_path, SWALLOWS)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


@pytest.mark.parametrize("code", [0, 3, INTERRUPTED])
def test_a_signal_that_comes_while_python_ends_changes_no_exit_code(code: int, tmp_path: Path) -> None:
    ended = run(tmp_path, LEAVES.format(code=code))
    assert (ended.returncode, ended.stdout) == (code, "all told\n")


IGNORES = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from weirlab import interrupt
{ignores}
import polars as pl

def interrupted(rows):
    os.kill(os.getpid(), signal.SIGINT)
    return rows

rows = pl.DataFrame({{"a": [1, 2]}}).lazy().map_batches(interrupted)
for _ in range(20):
    rows.sink_csv("rows.csv")
print("went on")
"""


@pytest.mark.parametrize("ignores", ["interrupt.take_over()", "interrupt.ignore_ctrl_c()"])
def test_ctrl_c_that_is_ignored_stays_so_where_polars_works(ignores: str, tmp_path: Path) -> None:
    done = run(tmp_path, IGNORES.format(ignores=ignores))
    assert (done.stdout, done.stderr, done.returncode) == ("went on\n", "", 0)


WAITING = """
import atexit, signal, time
from weirlab import interrupt
# What is registered first is done last: after Weir's own.
atexit.register(time.sleep, 0.5)
interrupt.take_over()
signal.setitimer(signal.ITIMER_REAL, 0.3)
"""
"""A process that ends while the alarm is set by which a request waits for the end of an import."""


def test_a_request_that_waits_for_an_import_changes_no_exit_code() -> None:
    ended = subprocess.run([sys.executable, "-c", WAITING], timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0
