"""The command line, as a person and as a script use it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.table import Table

from live import PATIENCE_S
from weirlab.cli import doctor_command
from weirlab.cli import weir as group
from weirlab.errors import UsageError, WeirWarning
from weirlab.record import open_record
from weirlab.report import cautions, quality_table
from weirlab.ui import console

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record import Record

    Weir = Callable[..., subprocess.CompletedProcess[str]]

SHORT = ("--idle", "1s", "--load", "2s", "--cooldown", "0s")


def test_brackets_of_names_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """An IPv6 address has them; what a user wrote is never read as a style."""
    table = Table("probe")
    table.add_row("[red]ping[/]")
    console.print(table)
    console.print("path to [fd77::1]:8080")
    said = capsys.readouterr().out
    assert "path to [fd77::1]:8080" in said
    assert "[red]ping[/]" in said


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (["--help"], {"polars", "numpy", "matplotlib", "pydantic", "scipy", "rich"}),
        # On a router it runs for months.
        (["shape", "nodev0"], {"polars", "numpy", "matplotlib", "scipy"}),
        (["shape", "status", "nodev0"], {"polars", "numpy", "matplotlib", "scipy"}),
    ],
)
def test_nothing_heavy_is_imported_that_is_not_needed(words: list[str], unneeded: set[str]) -> None:
    code = (
        "import sys, weirlab.cli as cli\n"
        f"sys.argv = ['weir', *{words!r}]\n"
        "try: cli.main()\n"
        f"finally: print('heavy', sorted({unneeded!r} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("heavy []\n"), done.stdout + done.stderr
    assert ("weir run rrul" in done.stdout) == (words == ["--help"])


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
    [configuration] = figures["configurations"]
    assert len(configuration["runs"]) == 2
    assert configuration["down_mbps"]["count"] == 2
    shown = json.loads(weir("show", "o", "--json").stdout)
    assert [one["seed"] for one in shown] == [1, 2]
    [compared] = json.loads(weir("compare", "o", "--json").stdout)
    assert compared["factor"]["factor"] == pytest.approx(1.0)


def test_show_compare_and_plot_read_what_run_wrote(weir_here: Weir, tmp_path: Path) -> None:
    weir_here("run", "rrul", "--queue", "pfifo_fast", *SHORT, "--no-charts", "--out", "a")
    weir_here("run", "rrul", "--queue", "fq_codel", *SHORT, "--no-charts", "--out", "b")
    shown = weir_here("show", "a")
    assert shown.returncode == 0, shown.stderr
    assert "TCP download EF" in shown.stdout
    compared = weir_here("compare", "a", "b")
    assert compared.returncode == 0, compared.stderr
    assert "fq_codel" in compared.stdout
    drawn = weir_here("plot", "a", "b", "--kind", "cdf", "--out", "c.svg")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")


def test_plot_says_that_there_is_nothing_to_draw(weir_here: Weir, tmp_path: Path) -> None:
    # As of `weir lab exec --out`: queues, and no loads or pings of the scenario.
    test = '{ name = "quiet", title = "quiet", phases = { load = "1s" } }'
    (tmp_path / "quiet.toml").write_text(f'name = "quiet"\nlink = "cable-20-8"\ntest = {test}\n')
    weir_here("run", "quiet.toml", "--no-charts", "--out", "quiet")
    done = weir_here("plot", "quiet", "--out", "charts")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no loads or answered pings" in done.stderr
    assert "`--kind" not in done.stderr, "nothing waited in a queue, and no TCP sent"
    assert "`weir show` tells" in done.stderr
    assert "nothing waited" in weir_here("plot", "quiet", "--kind", "queues", "--out", "q.svg").stderr


FEW = "warning: 2 repetitions are few: intervals of fewer than 5 are narrower than they should be"


def test_what_speaks_against_a_record_is_said_before_its_figures(weir_here: Weir, tmp_path: Path) -> None:
    weir_here("run", "tcp_download", "--repeat", "2", *SHORT, "--no-charts", "--out", "o")
    [manifest, _other] = sorted(tmp_path.glob("o/*/*/manifest.json"))
    assert weir_here("compare", "o").stderr.splitlines() == [FEW]
    odd = json.loads(manifest.read_text()) | {"warnings": ["the clock drifted"]}
    manifest.write_text(json.dumps(odd))
    assert "warning: the link's own queue · seed 1: the clock drifted" in weir_here("compare", "o").stderr
    assert "warning: the clock drifted" in weir_here("show", "o").stderr
    assert [one["warnings"] for one in json.loads(weir_here("show", "o", "--json").stdout)] == [
        ["the clock drifted"],
        [],
    ]


def test_of_many_warnings_a_few_are_said(rrul: list[Record]) -> None:
    odd = open_record(rrul[0].path)
    odd.manifest = replace(odd.manifest, warnings=["the clock drifted"])
    assert cautions([odd]) == ["the clock drifted"]
    told = cautions([odd] * 8)
    assert len(told) == 6
    assert told[0] == "pfifo_fast (1): the clock drifted"
    assert told[-1].startswith("3 more of that kind")


def test_a_live_record_says_how_well_its_world_worked(rrul: list[Record]) -> None:
    assert quality_table(rrul[0]) is None
    live = open_record(rrul[0].path)
    quality = {"late_p50_ns": 3e4, "late_p99_ns": 6e5, "late_p999_ns": 2.5e6, "cpu_percent": 19.0}
    live.manifest = replace(live.manifest, emulator=quality, device="tun")
    table = quality_table(live)
    assert table is not None
    assert table.caption == "device tun, 19.0 % of a processor"
    assert [next(iter(column.cells)) for column in table.columns[1:]] == ["0.030", "0.600", "2.500"]
    # The simulator sends its pings in time.
    assert [list(column.cells)[1] for column in table.columns[1:]] == ["0.000"] * 3


@pytest.mark.parametrize("category", [WeirWarning, UserWarning])
def test_a_warning_of_another_library_is_none_of_weirs(
    weir_here: Weir,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
    category: type[Warning],
) -> None:
    def warns() -> list[str]:
        warnings.warn("the clock drifted", category, stacklevel=1)
        return []

    monkeypatch.setattr("weirlab.cli.list_command.shipped_links", warns)
    is_ours = category is WeirWarning
    assert weir_here("list", "links").stderr == ("warning: the clock drifted\n" if is_ours else "")
    assert [str(one.message) for one in recwarn] == ([] if is_ours else ["the clock drifted"])


@pytest.mark.parametrize("what", ["tests", "links", "queues", "markers", "congestion-controls", "schemas"])
def test_list(weir_here: Weir, what: str) -> None:
    done = weir_here("list", what)
    assert done.returncode == 0, done.stderr
    entries = json.loads(weir_here("list", what, "--json").stdout)
    for entry in entries:
        assert entry["name"] in done.stdout
        one = weir_here("list", what, entry["name"])
        assert one.returncode == 0, one.stderr


def test_list_shows_what_a_preset_stands_for(weir_here: Weir) -> None:
    shown = weir_here("list", "queues", "simplest rate 8mbit").stdout
    assert "htb quantum 1749 rate 8000kbit ceil 8000kbit burst 1749 cburst 1749 prio 0" in shown
    assert "fq_codel limit 1001 target 5000us interval 100000us ecn flows 1024" in shown
    done = weir_here("list", "queues", "fq_codel limit 5")
    assert "`fq_codel` is no preset: write its name only" in done.stderr


def test_doctor_finds_nothing_wrong_except_perhaps_the_lab(weir: Weir) -> None:
    done = weir("doctor", "--json")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert set(findings) >= {"machine", "simulator", "lab"}
    lab, kernel = findings.pop("lab"), findings.pop("world kernel")
    # Where no kernel was built there is none, which is no fault and not good either.
    assert kernel["good"] is (True if kernel["found"].startswith("Linux ") else None)
    assert all(finding["good"] for finding in findings.values())
    # Where namespaces are forbidden there is no lab, and the exit code says so.
    assert done.returncode == (0 if lab["good"] else 1), done.stderr
    assert "tun" in lab["found"] or not lab["good"]


@pytest.mark.parametrize(("kernel", "mark"), [(None, "not there"), ("/nowhere/bzImage", "not good")])
def test_doctor_calls_nothing_good_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernel: str | None, mark: str
) -> None:
    """A kernel that is named must be there; one that nobody asked for need not be."""
    monkeypatch.delenv("WEIR_KERNEL", raising=False)
    if kernel is not None:
        monkeypatch.setenv("WEIR_KERNEL", kernel)
    monkeypatch.setattr("weirlab.worlds.kernel.usual_places", lambda: [tmp_path / "none"])
    found = doctor_command._kernel()
    word, _ = doctor_command.MARKS[found.good]
    assert word == mark
    assert "none: " not in found.found


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "rrull"), 2, "unknown test `rrull`"),
        (("run", "rrul", "--link", "x"), 2, "unknown link `x`"),
        (("run", "rrul", "--queue", "fq_kodel"), 2, "unknown queue discipline `fq_kodel`"),
        (("run", "rrul", "--load", "soon"), 2, "`soon` is not a time"),
        (("run", "rrul", "--world", "moon"), 2, "--world: `moon`: write one of sim, lab, net, kernel"),
        (("run", "rrul", "--repeat", "0"), 2, "--repeat: `0`: write 1 or more"),
        (("run", "tcp_nup", "--set", "streams=many"), 2, "write NAME=NUMBER"),
        (("run", "gone.toml"), 2, "`gone.toml` cannot be read"),
        (("runn",), 2, "there is no command `runn`: did you mean `run`?"),
        (("LAB", "shell"), 2, "there is no command `LAB`: did you mean `lab`?"),
        (("run\udce9",), 2, "did you mean `run`?"),
        (("convert",), 2, "there is no command `convert`: `weir --help` lists all"),
        (("lab", "shel"), 2, "there is no command `shel`: did you mean `shell`?"),
        (
            ("shape", "status", "lo", "--json", "--prometheus"),
            2,
            "--json and --prometheus exclude each other",
        ),
        (("shape", "lo", "--prove", "--load", "5", "--dry-run"), 2, "`5` is a time without its unit"),
        (("shape", "lo", "--prove", "--time", "2s", "--dry-run"), 2, "that the measurement takes"),
        (("show", "nothing"), 3, "`nothing` does not exist"),
        (("show", "."), 3, "there is no record in `.`"),
        (("show", "/dev/null"), 3, "`/dev/null` is no record: neither a folder nor a .weir file"),
        (("list", "queues", "cak"), 2, "there is no queue `cak`: did you mean `cake`?"),
        (("list", "tests", "RRUL-BE"), 2, "there is no test `RRUL-BE`: did you mean `rrul_be`?"),
        (("list", "tests", "moon"), 2, "there is no test `moon`: `weir list tests` names all"),
        (("list", "queues", "simple rate 95%"), 2, "this line has no fixed rate to take a share of"),
        (("list", "queues", "simple rate 383kbit"), 2, "its tiers need a rate of at least 384kbit"),
        (("list", "queues", "simple rate"), 2, "simple: `rate` needs a value behind it"),
        (("plot", "."), 3, "there is no record in `.`"),
        (("plot", ".", "--out", "x.png"), 2, "such as --kind box --out x.png"),
        (("plot", ".", "--kind", "box", "--out", "x.jpg"), 2, "its name must end in .png, .svg or .pdf"),
        (("plot", ".", "--title", "x" * 5000), 2, "a title of 5000 characters: write 200 or fewer"),
        (("plot", ".", "--kind", "windows", "--span", "5s"), 2, "write where it begins and ends"),
        (("plot", ".", "--kind", "box", "--span", "5s..8s"), 2, "chart `box` has no axis of time"),
        (("test", "localhost", "--auth", "gone"), 2, "secret `gone`: no such file or directory"),
        (("shape", "lo", "--dry-run", "--auth", "gone"), 2, "gone`: no such file or directory"),
        (("shape", "lo", "--dry-run", "--log", "gone/log"), 2, "cannot write the log `"),
        (("run", "rrul", "--world", "net", "--host", "localhost", "--auth", "gone"), 2, "secret `gone`"),
        (("shape", "status", "nodev0"), 2, "there is no device `nodev0`"),
        (("shape", "stop", "nodev0"), 2, "there is no device `nodev0`"),
        (("shape", "nodev0"), 2, "there is no device `nodev0`"),
        (("shape", "lo", "--rules", "gone"), 2, "rules `gone` are neither shipped"),
        (("shape", "lo", "--queue-up", "fq_kodel"), 2, "unknown queue discipline `fq_kodel`"),
        (
            ("shape", "replay", "/dev/null"),
            2,
            "log `/dev/null` cannot be read: it is a device, and no regular file",
        ),
        (("shape", "replay", __file__), 2, "test_cli.py`: line 1 is not of a shaper's log"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing_behind(
    weir_here: Weir, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = weir_here(*words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("group", [(), ("shape",), ("sweep",), ("lab",), ("study",)])
def test_the_help_of_a_group_cuts_no_summary(weir_here: Weir, group: tuple[str, ...]) -> None:
    done = weir_here(*group, "--help")
    assert done.returncode == 0, done.stderr
    _, listed = done.stdout.split("\nCommands:\n")
    assert "..." not in listed


@pytest.mark.parametrize("words", [("list", "links", "line-50"), ("run", "rrull"), ("show", "nothing")])
def test_a_process_says_what_is_said_here(weir: Weir, weir_here: Weir, words: tuple[str, ...]) -> None:
    own, here = weir(*words), weir_here(*words)
    assert (own.returncode, own.stdout, own.stderr) == (here.returncode, here.stdout, here.stderr)
    assert own.stdout or own.stderr


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
    deadline = time.monotonic() + PATIENCE_S
    while not list(tmp_path.glob("o/*/latency/part-*.parquet")):
        assert process.poll() is None, process.communicate(timeout=PATIENCE_S)
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "Realtime Response Under Load" in out
    assert "interrupted: the figures are those of what was measured until then" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("test ftp://host", "`ftp://host`: write HOST, HOST:PORT or [IPV6]:PORT with a port from 1 to 65535"),
        ("test host:99999", "`host:99999`: write HOST"),
        ("test host --idle 40ms", "idle 40ms: write 1s or more"),
        ("test host --load 2s", "load 2s: write 3s or more"),
        ("test host --ping 60s", "ping 60s: write 200ms or less"),
        ("test host --method ndt7 --locate", "--locate is for Weir's own test"),
        ("test host --method ndt7 --charts", "--charts goes with --truth"),
        ("shape lo --rounds 5", "--rounds goes with --prove"),
        ("shape lo --time 30ms", "shape: time: `30ms`: write 1s or more"),
        ("shape lo --up 20bit --down none", "shape: up: `20bit`: write 100kbit or more"),
        ("shape lo --up none --down none", "nothing would be shaped"),
        ("shape lo --up none --up-max 5mbit", "it bounds `auto`, and up is `none`"),
        ("shape lo --up 5mbit --down 5mbit --mode bandwidth", "mode bandwidth: it is `auto`'s"),
        ("study cfosspeed --load 10ms", "--load 10ms: write 2s or more"),
        ("study cfosspeed --only down --only across", "for any part of it; known: down, up, up-path)"),
        ("study cfosspeed --json --markdown", "only one of them can be printed"),
    ],
)
def test_what_would_be_passed_over_is_refused(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        group.main(words.split(), standalone_mode=False)
