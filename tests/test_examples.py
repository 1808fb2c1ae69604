"""Shipped scenarios and examples work as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from live import PATIENCE_S
from weirlab.scenario import load_scenario, resolve
from weirlab.worlds import world_named

ROOT = Path(__file__).parent.parent
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenarios_resolve_for_every_world(path: Path) -> None:
    runs = resolve(load_scenario(path))
    assert runs
    for name in ("sim", "lab"):
        for one in runs:
            world_named(name).check(one)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_something(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 3
