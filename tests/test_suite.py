"""The suite itself: what skips is counted and limited, and what works in real time says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import MAX_SKIPPED, SKIPPED
from realtime import works_in_real_time

HERE = Path(__file__).parent
TESTS = """
import pytest

@pytest.mark.skip(reason="too busy")
def test_one(): pass

@pytest.mark.skip(reason="too busy")
def test_two(): pass

def test_three(): pass
"""


def run_tests(
    folder: Path, text: str, *words: str, **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Runs the tests in `text` as this suite's own are run, with `environment` (None: not set)."""
    (folder / "test_some.py").write_text(text)
    (folder / "conftest.py").write_text((HERE / "conftest.py").read_text())
    settings = ("-c", str(HERE.parent / "pyproject.toml"), "--rootdir", str(folder))
    plugins = ("-p", "xdist", "-p", "pytest_timeout", "-p", "no:cacheprovider")
    own = {"PYTHONPATH": str(HERE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", MAX_SKIPPED: None, SKIPPED: None}
    variables = os.environ | own | environment
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *settings, *words, str(folder)],
        cwd=folder,
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("processes", "allowed", "code"),
    [((), None, 0), (("-n", "2"), "1", 1)],
    ids=["no limit", "above it, in two processes"],
)
def test_skipped_tests_are_counted_and_limited(
    tmp_path: Path, processes: tuple[str, ...], allowed: str | None, code: int
) -> None:
    done = run_tests(tmp_path, TESTS, *processes, **{MAX_SKIPPED: allowed})
    assert done.returncode == code, done.stdout + done.stderr
    assert "   2  too busy" in done.stdout
    assert ("this run shows too little" in done.stdout) == (code != 0)


def test_skipped_tests_of_two_parts_are_counted_together(tmp_path: Path) -> None:
    (tmp_path / "skipped").touch()
    limits: dict[str, str | None] = {MAX_SKIPPED: "3", SKIPPED: str(tmp_path / "skipped")}
    first = run_tests(tmp_path, TESTS, **limits)
    assert first.returncode == 0, first.stdout + first.stderr
    second = run_tests(tmp_path, TESTS, **limits)
    assert second.returncode == 1, second.stdout + second.stderr
    assert "   4  too busy" in second.stdout
    assert "4 tests skipped, but WEIR_MAX_SKIPPED=3: this run shows too little" in second.stdout


IN_REAL_TIME = """
import subprocess, sys
import pytest
from weirlab import _native

def test_a_process(): subprocess.run([sys.executable, "-m", "weirlab", "serve", "--listen", "nowhere"])

def test_a_world(): subprocess.run(["weir", "run", "rrul", "--world", "lab"])

def test_the_extension(): _native.lab("{}", lambda _: True)

def test_the_simulator(): subprocess.run([sys.executable, "-m", "weirlab", "list", "tests"], check=True)

@pytest.mark.realtime
def test_marked(): subprocess.run([sys.executable, "-m", "weirlab", "serve", "--listen", "nowhere"])
"""


def test_work_in_real_time_fails_without_its_mark(tmp_path: Path) -> None:
    done = run_tests(tmp_path, IN_REAL_TIME)
    assert "3 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    said = "RuntimeError: this test works in real time, and its module does not say so: "
    assert done.stdout.count(f"E       {said}") == 3
    for name in ("a_process", "a_world", "the_extension"):
        assert f"FAILED test_some.py::test_{name} - RuntimeError" in done.stdout


@pytest.mark.parametrize(
    ("line", "real"),
    [
        ("weir serve", True),
        ("/venv/bin/weir shape eth0 --up 5mbit", True),
        ("python -m weirlab run rrul --world lab", True),
        ("python -m weirlab run rrul", False),
        ("python -m weirlab serve --help", False),
        ("python -m weirlab", False),
        ("weir show lab", False),
        ("make test", False),
    ],
)
def test_the_words_of_a_command_tell_whether_it_works_in_real_time(line: str, *, real: bool) -> None:
    assert works_in_real_time(line.split()) == real
