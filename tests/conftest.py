"""What several tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weirlab
from live import weir_in

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record import Record

SHORT = {"idle": "1s", "load": "4s", "cooldown": "1s"}
"""Phases that are long enough to see something and short enough to wait for."""


@pytest.fixture(scope="session")
def rrul(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """A short RRUL on the cable line: bloated, and cured."""
    return weirlab.run(
        "rrul",
        link="cable-20-8",
        queue=["pfifo_fast", "htb rate 95% fq_codel"],
        phases=SHORT,
        out=tmp_path_factory.mktemp("rrul") / "out",
    )


@pytest.fixture
def weir(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command `weir`, run in an empty folder."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return weir_in(tmp_path, *words)

    return run
