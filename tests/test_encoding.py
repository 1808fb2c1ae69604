"""Output where the terminal or pipe has no signs but ASCII."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import weirlab
from live import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

ASCII = ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two configurations, each twice: their table has plus-minus signs."""
    out = tmp_path_factory.mktemp("encoding") / "réc"
    phases = {"idle": "1s", "load": "1s", "cooldown": "0s"}
    weirlab.run("tcp_download", queue=["pfifo", "fq_codel"], repeat=2, phases=phases, out=out)
    return out


def said(words: list[str], environment: dict[str, str]) -> tuple[str, str]:
    bare = {
        name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "weirlab", *words],
        env=bare | environment,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    return done.stdout.decode("ascii"), done.stderr.decode("ascii")


@pytest.mark.parametrize("environment", ASCII, ids=["PYTHONIOENCODING", "LC_ALL"])
def test_records_are_shown_in_ascii(environment: dict[str, str], repeated: Path) -> None:
    out, _ = said(["compare", str(repeated)], environment)
    assert "+-" in out
    assert "means of 2 runs" in out
    out, _ = said(["show", str(repeated)], environment)
    assert "Round trips during the load" in out


@pytest.mark.parametrize("words", ["list links", "list queues", "study", "--help"])
def test_lists_are_shown_in_ascii(words: str) -> None:
    out, _ = said(words.split(), ASCII[0])
    assert out


@pytest.mark.parametrize("words", ["shape status", "shape stop", "shape", "ping 127.0.0.1 --count 1 --dscp"])
def test_bytes_that_are_no_text_are_refused_in_a_sentence(words: str, weir_here: Weir) -> None:
    done = weir_here(*words.split(), os.fsdecode(b"\xff"))
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "this is not UTF-8" in done.stderr
