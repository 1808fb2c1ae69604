"""The command line, as a person and as a script use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

SHORT = ("--idle", "1s", "--load", "2s", "--cooldown", "0s")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, weirlab.cli as cli\n"
        "sys.argv = ['weir', '--help']\n"
        "cli.main()\n"
        "heavy = {'polars', 'numpy', 'matplotlib', 'pydantic', 'scipy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "weir run rrul" in done.stdout


def test_run_shows_a_table_and_leaves_records_and_charts(weir: Weir, tmp_path: Path) -> None:
    done = weir(
        "run",
        "rrul",
        "--queue",
        "pfifo_fast",
        "--queue",
        "htb rate 95% fq_codel",
        *SHORT,
        "--out",
        "o",
    )
    assert done.returncode == 0, done.stderr
    assert "Realtime Response Under Load" in done.stdout
    assert "times less" in done.stdout
    charts = sorted(file.name for file in (tmp_path / "o" / "charts").iterdir())
    assert charts == [
        "box.png",
        "cdf.png",
        "overlay.png",
        "ping.png",
        "three-plot-01-pfifo-fast.png",
        "three-plot-02-htb-rate-95-fq-codel.png",
    ]


def test_json_is_all_there_is_on_standard_output(weir: Weir) -> None:
    done = weir("run", "tcp_download", "--repeat", "2", *SHORT, "--no-charts", "--json", "--out", "o")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    [set_up] = figures["set_ups"]
    assert len(set_up["runs"]) == 2
    assert set_up["down_mbps"]["count"] == 2
    shown = json.loads(weir("show", "o", "--json").stdout)
    assert [one["seed"] for one in shown] == [1, 2]
    [compared] = json.loads(weir("compare", "o", "--json").stdout)
    assert compared["factor"]["factor"] == pytest.approx(1.0)


def test_show_compare_and_plot_read_what_run_wrote(weir: Weir, tmp_path: Path) -> None:
    weir("run", "rrul", "--queue", "pfifo_fast", *SHORT, "--no-charts", "--out", "a")
    weir("run", "rrul", "--queue", "fq_codel", *SHORT, "--no-charts", "--out", "b")
    shown = weir("show", "a")
    assert shown.returncode == 0, shown.stderr
    assert "TCP download EF" in shown.stdout
    compared = weir("compare", "a", "b")
    assert compared.returncode == 0, compared.stderr
    assert "fq_codel" in compared.stdout
    drawn = weir("plot", "a", "b", "--kind", "cdf", "--out", "c.svg")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("what", ["tests", "links", "queues"])
def test_list(weir: Weir, what: str) -> None:
    done = weir("list", what)
    assert done.returncode == 0, done.stderr
    entries = json.loads(weir("list", what, "--json").stdout)
    for entry in entries:
        assert entry["name"] in done.stdout
        one = weir("list", what, entry["name"])
        assert one.returncode == 0, one.stderr


def test_doctor_finds_nothing_wrong_except_perhaps_the_lab(weir: Weir) -> None:
    done = weir("doctor", "--json")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert set(findings) >= {"machine", "simulator", "lab"}
    lab = findings.pop("lab")
    assert all(finding["good"] for finding in findings.values())
    # Where namespaces are forbidden there is no lab, and the exit code says so.
    assert done.returncode == (0 if lab["good"] else 1), done.stderr
    assert "tun" in lab["found"] or not lab["good"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "rrull"), 2, "unknown test `rrull`"),
        (("run", "rrul", "--link", "x"), 2, "unknown link `x`"),
        (("run", "rrul", "--queue", "fq"), 2, "unknown queue discipline `fq`"),
        (("run", "rrul", "--load", "soon"), 2, "`soon` is not a time"),
        (("run", "rrul", "--world", "moon"), 2, "'moon' is not"),
        (("run", "rrul", "--repeat", "0"), 2, "0 is not in the range"),
        (("run", "tcp_nup", "--set", "streams=many"), 2, "write NAME=NUMBER"),
        (("run", "gone.toml"), 2, "`gone.toml` cannot be read"),
        (("runn",), 2, "No such command"),
        (("show", "nothing"), 3, "there is no record in `nothing`"),
        (("list", "queues", "cak"), 2, "there is no queue `cak`"),
        (("plot", "."), 3, "there is no record in `.`"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing_behind(
    weir: Weir, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = weir(*words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not list(tmp_path.iterdir())


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "weirlab",
            "run",
            "rrul",
            "--link",
            "vdsl-100-40",
            "--load",
            "3000s",
            "--no-charts",
            "--out",
            "o",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("o/*/latency/part-*.parquet")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Realtime Response Under Load" in out
    assert "interrupted: the figures are those of what was measured until then" in err
