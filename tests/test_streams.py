"""Output that cannot be written, and disks that are full: one sentence and exit code 1."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from live import PATIENCE_S

WEIR = [sys.executable, "-m", "weirlab"]
RUN = ["run", "ping", "--idle", "1s", "--load", "1s", "--cooldown", "1s", "--no-charts"]
LONG = ["run", "ping", "--ping", "1ms", "--load", "20s", "--no-charts", "--out"]
"""A record of some 110 kB, into the folder that follows."""
FULL = Path("/dev/full")


def done(
    *words: str, folder: Path, out: IO[str] | int = subprocess.PIPE, err: IO[str] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WEIR, *words], cwd=folder, stdout=out, stderr=err, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize(
    "words",
    [("--help",), ("list", "tests"), ("list", "queues", "--json"), tuple(RUN), (*RUN, "--json")],
)
def test_standard_output_on_a_full_disk(tmp_path: Path, words: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        run = done(*words, folder=tmp_path, out=full)
    assert run.returncode == 1
    assert run.stderr.endswith("weir: output cannot be written: No space left on device\n"), run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(("words", "code"), [(tuple(RUN), 0), (("run", "nothing"), 2), (("--help",), 0)])
def test_standard_error_on_a_full_disk_changes_nothing(
    tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    with FULL.open("w") as full:
        run = done(*words, folder=tmp_path, err=full)
    assert run.returncode == code
    assert (run.stdout != "") == (code == 0)


def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path) -> None:
    line = f"{sys.executable} -m weirlab list queues | head -n 1; echo ${{PIPESTATUS[0]}}"
    run = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert run.stdout.endswith("\n0\n"), run
    assert run.stderr == ""


def test_a_closed_standard_output_is_none(tmp_path: Path) -> None:
    run = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *WEIR, *RUN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr


def test_files_that_may_not_grow_end_a_run_with_code_1(tmp_path: Path) -> None:
    """`ulimit -f`, at less than a manifest has."""
    run = subprocess.run(
        [*WEIR, *LONG, "o"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000)),
    )
    assert run.returncode == 1, run.stderr
    assert len(run.stderr.strip().splitlines()) == 1, run.stderr


@pytest.mark.skipif(shutil.which("unshare") is None, reason="the disk is made by util-linux")
def test_a_disk_that_becomes_full_ends_a_run_with_code_1(tmp_path: Path) -> None:
    """In the midst of a record, which is more than twice as large, in however many parts it is written."""
    small = 'mount -t tmpfs -o size=48k none disk && exec "$@"'
    (tmp_path / "disk").mkdir()
    run = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", small, "sh", *WEIR, *LONG, "disk/o"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    (said,) = run.stderr.splitlines()
    assert "no space left on device" in said.lower()


@pytest.mark.parametrize("place", ["/proc/weir", "/sys/weir"])
def test_where_nothing_can_be_written_is_told_in_a_sentence(tmp_path: Path, place: str) -> None:
    run = done(*RUN, "--out", place, folder=tmp_path)
    assert run.returncode in {1, 2}
    assert run.stderr.startswith(f"weir: `{place}` cannot take records: "), run.stderr
