"""Runs in the world kernel: their ends, their numbers, and what is left of them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from weirlab.cli import weir
from weirlab.errors import UsageError
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.sweeps.columns import FIGURES
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.record import Record

if not os.environ.get("WEIR_KERNEL"):
    pytest.skip("the world kernel is run by these tests alone: make test-kernel", allow_module_level=True)

OWN = (
    "cake bandwidth 95%",
    "htb rate 95% choke limit 100 bandwidth 19mbit min 10 max 30",
    "htb rate 95% fq",
    "htb rate 95% fq_pie quantum 300",
    "htb rate 95% pie",
    "htb rate 95% red limit 400000 min 30000 max 90000 avpkt 1000 burst 55",
    "htb rate 95% sfq",
    "htb rate 95% skbprio",
)
SHORT = {"idle": "500ms", "load": "2s", "cooldown": "500ms"}


def run(
    folder: Path, *, world: str = "kernel", seed: int = 1, queue: str = "htb rate 95% fq_codel"
) -> Record:
    (record,) = weirlab.run(
        "tcp_download", link="cable-20-8", queue=queue, phases=SHORT, seed=seed, world=world, out=folder
    )
    return record


def rows(folder: Path) -> str:
    """What tells the rows of a record from those of another, to the byte."""
    found = hashlib.sha256()
    for part in sorted(folder.rglob("*.parquet")):
        found.update(part.relative_to(folder).as_posix().encode() + part.read_bytes())
    return found.hexdigest()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return run(tmp_path_factory.mktemp("kernel") / "first")


def kernels() -> set[int]:
    """The processes that are kernels of these tests, and what they run."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                program = (process / "exe").readlink()
            except OSError:
                continue
            if program == Path(os.environ["WEIR_KERNEL"]).resolve():
                found.add(int(process.name))
    return found


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("weir-kernel-*"))


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Each test leaves neither a process nor a folder."""
    before = kernels(), folders()
    yield
    until = time.monotonic() + 20
    while (kernels() - before[0] or folders() - before[1]) and time.monotonic() < until:
        time.sleep(0.1)
    assert kernels() <= before[0]
    assert folders() <= before[1]


def test_a_run_comes_to_its_end_and_says_which_kernel_it_was(first: Record) -> None:
    assert first.manifest.complete
    assert first.manifest.world == "kernel"
    assert first.manifest.datapath == "kernel"
    assert first.manifest.clock.startswith("virtual")
    assert first.manifest.warnings == []  # x
    told = first.manifest.extra["kernel"]
    assert told["release"].startswith("6.")
    assert told["sha256"] == hashlib.sha256(Path(os.environ["WEIR_KERNEL"]).read_bytes()).hexdigest()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(first: Record, tmp_path: Path) -> None:
    again, other = run(tmp_path / "elsewhere, again"), run(tmp_path / "other", seed=2)
    assert rows(again.path) == rows(first.path)
    assert rows(other.path) != rows(first.path)


def test_goodput_is_that_of_the_simulator(first: Record, tmp_path: Path) -> None:
    ours, theirs = (weirlab.summarise(one).down for one in (run(tmp_path / "sim", world="sim"), first))
    assert ours is not None
    assert theirs is not None
    assert theirs.goodput_mbps == pytest.approx(ours.goodput_mbps, rel=0.02)


def test_a_sweep_runs_several_and_comes_to_the_same_figures(tmp_path: Path) -> None:
    rows = []
    for jobs in (1, 2):
        found = weirlab.sweep(
            {"test": "tcp_download", "link": "cable-20-8", "phases": SHORT},
            axes={"queue": list(OWN[:2])},
            world="kernel",
            jobs=jobs,
            store=tmp_path / f"{jobs}.sweep",
        ).collect()
        assert found["error"].null_count() == 2, found["error"].to_list()
        assert set(found["world"]) == {"kernel"}
        # Most of it is the kernel's, which is another process.
        assert (found["processor_s"] > 0.5).all()
        rows.append(found.select("run", *FIGURES))
    assert rows[0].equals(rows[1], null_equal=True)


@pytest.mark.parametrize("queue", OWN)
def test_its_own_disciplines_do_what_ours_do(queue: str, tmp_path: Path) -> None:
    """Each is made by that kernel itself, and carries what the simulator says that it does.

    Not `sfb`, which draws lots for whole flows: seeds of either world scatter by a third.
    """
    records = [run(tmp_path / world, world=world, queue=queue) for world in ("sim", "kernel")]
    ours, theirs = (weirlab.summarise(one).down for one in records)
    assert ours is not None
    assert theirs is not None
    assert theirs.goodput_mbps == pytest.approx(ours.goodput_mbps, rel=0.05)


def test_it_is_a_world_that_others_are_held_against(tmp_path: Path) -> None:
    words = ["tcp_download", "--worlds", "sim,kernel-userspace,kernel", "--queue", "cake bandwidth 95%"]
    short = ["--idle", "1s", "--load", "4s", "--cooldown", "500ms", "--no-charts", "--json"]
    done = CliRunner().invoke(weir, ["validate", *words, *short, "--out", str(tmp_path / "out")])
    said = json.loads(done.output)["configurations"]
    assert [(one["side"], one["reference"]) for one in said] == [
        ("sim", "kernel"),
        ("kernel-userspace", "kernel"),
    ]
    assert done.exit_code == (0 if all(one["agrees"] for one in said) else 1)


def test_drops_and_marks_are_told_by_their_reasons(tmp_path: Path) -> None:
    """As the kernel counts them; all that it does not tell apart have one reason."""
    for queue, reasons in (
        # At its usual weights two seconds see an early drop only by chance.
        ("pie target 1ms alpha 32 beta 32 limit 20", {"early", "overlimit"}),
        ("choke limit 50 bandwidth 19mbit min 2 max 9", {"same_flow"}),
        ("red limit 40000 min 3000 max 9000 avpkt 1000 burst 8", {"early"}),
        ("sfb", {"early"}),
        ("cake bandwidth 19mbit", {"target_exceeded"}),
    ):
        words = queue if queue.startswith("cake") else f"htb rate 95% {queue}"
        rows = run(tmp_path / queue.split()[0], queue=words).queue
        sums = rows.select(pl.col("^dropped_.*$").exclude("dropped_bytes").sum()).to_dicts()[0]
        assert {name.removeprefix("dropped_") for name, count in sums.items() if count} == reasons, queue


@pytest.mark.parametrize("ip", [4, 6])
def test_filters_put_packets_into_the_classes_that_ours_do(ip: Literal[4, 6], tmp_path: Path) -> None:
    """Of a preset with three tiers by DSCP, of which each has a download and an upload."""
    shares = []
    for world in ("sim", "kernel"):
        (record,) = weirlab.run(
            "rrul", queue="nfq_codel rate 95%", phases=SHORT, ip=ip, world=world, out=tmp_path / world
        )
        rows = record.queue.filter(
            (pl.col("queue") == "up/router") & pl.col("class").str.contains("^1:1[123]$")
        )
        sums = rows.group_by("class").agg(pl.col("departed_bytes").sum()).sort("class")
        assert sums["class"].to_list() == ["1:11", "1:12", "1:13"]
        shares.append((sums["departed_bytes"] / sums["departed_bytes"].sum()).to_list())
    assert shares[1] == pytest.approx(shares[0], abs=0.05)


def test_what_the_kernel_lacks_is_refused() -> None:
    for words, said in (
        ({"cc": ["nonsense"]}, "congestion control `nonsense`: this kernel has reno"),
        ({"link": "lte-verizon"}, "cannot follow the recording"),
    ):
        spec = {"test": "tcp_download", "link": "cable-20-8"} | words
        [one] = resolve(ScenarioSpec.model_validate(spec))
        with pytest.raises(UsageError, match=said):
            world_named("kernel").check(one)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_run_that_is_ended_early_keeps_an_incomplete_record(number: int, tmp_path: Path) -> None:
    weir = started(tmp_path)
    weir.send_signal(number)
    assert weir.wait(60) == 130
    (record,) = (weirlab.open_record(one.parent) for one in tmp_path.rglob("manifest.json"))
    assert not record.manifest.complete
    assert record.manifest.reached_ns
    assert record.latency.height > 0


def test_of_a_killed_run_nothing_is_left_running(tmp_path: Path) -> None:
    weir = started(tmp_path)
    weir.kill()
    weir.wait(60)


def test_the_kernel_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    weir = started(tmp_path)
    children = Path(f"/proc/{weir.pid}/task").glob("*/children")
    (machine,) = {int(one) for file in children for one in file.read_text().split()}
    left = folders()
    os.kill(machine, signal.SIGKILL)
    assert weir.wait(60) != 0
    for folder in left:
        # Nobody was left to do it.
        subprocess.run(["rm", "-r", folder], check=True)


def started(folder: Path) -> subprocess.Popen[bytes]:
    """`weir` in the midst of a long run."""
    words = [
        "run",
        "tcp_download",
        "--world",
        "kernel",
        "--link",
        "cable-20-8",
        "--no-charts",
        "--load",
        "300s",
    ]
    weir = subprocess.Popen(
        [sys.executable, "-m", "weirlab", *words, "--out", str(folder / "out")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not list(folder.rglob("*.parquet")) and time.monotonic() < until:
        time.sleep(0.1)
    return weir
