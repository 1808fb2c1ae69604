"""What tests in real time share: work at the same time, and when a machine was too busy to tell anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from weirlab.record import Record

Result = TypeVar("Result")

PATIENCE_S = 300
"""How long a command may take before it counts as hanging: far longer than it takes on a busy machine."""

FOREVER_S = 2 * PATIENCE_S
"""How long a process goes on that is to be ended: whoever waits for its end sees whether it was."""


def together(jobs: Mapping[str, Callable[[], Result]]) -> dict[str, Future[Result]]:
    """Does all of `jobs` at once. Whoever asks for the result of one meets its error, and no other's.

    For jobs that wait and do not judge each other's machine: rates are bounded, latency is that of a line.
    """
    with ThreadPoolExecutor(len(jobs)) as pool:
        return {name: pool.submit(job) for name, job in jobs.items()}


def weir_in(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the command `weir` in `folder`, to its end, with `environment` beside what is there."""
    return subprocess.run(
        [sys.executable, "-m", "weirlab", *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@cache
def lab_refusal() -> str | None:
    """Why there is no lab on this machine, or None."""
    from weirlab.lab.check import try_lab  # noqa: PLC0415 - takes a while

    return try_lab().refusal


MAX_LATENESS_MS = 5
"""A lab that delivers one packet in a hundred later than this adds delays of its own as long as those that a
controller takes for a queue: nothing can be said of the line then."""


def skip_if_late(warnings: str) -> None:
    """Skips a test whose lab says that it was itself too late to tell anything."""
    said = " ".join(warnings.split())
    late = re.search(r"1 % of packets left ([0-9.]+) ms or more after their time", said)
    if (late and float(late[1]) > MAX_LATENESS_MS) or "this machine is too slow for the line" in said:
        pytest.skip(f"the lab itself was later than {MAX_LATENESS_MS} ms, or lost packets: {said}")


def skip_if_disturbed(record: Record) -> None:
    """As `skip_if_late`, for a run that left a record."""
    skip_if_late(" ".join(record.manifest.warnings))
