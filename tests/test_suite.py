"""The suite itself: what skips is counted, and a run that skips too much fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = """
import pytest

@pytest.mark.skip(reason="too busy")
def test_one(): pass

@pytest.mark.skip(reason="too busy")
def test_two(): pass

def test_three(): pass
"""


@pytest.mark.parametrize(("allowed", "code"), [(None, 0), ("2", 0), ("1", 1)])
def test_skipped_tests_are_counted_and_limited(tmp_path: Path, allowed: str | None, code: int) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text((HERE / "conftest.py").read_text())
    environment = {name: value for name, value in os.environ.items() if name != "WEIR_MAX_SKIPPED"}
    if allowed is not None:
        environment["WEIR_MAX_SKIPPED"] = allowed
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "   2  too busy" in done.stdout
    assert ("this run shows too little" in done.stdout) == (code != 0)
