"""The tutorials word for word: what they say to type is run, and what they show is what comes out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weirlab
from weirlab.stats import summarise

PAGES = Path(__file__).parent.parent / "docs" / "tutorials"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^ {1,2}\w.*  +[-+]?\d", re.MULTILINE)
"""A row of a table: a name, and below its columns figures."""
LIMIT_S = 300
"""How long the commands of a page may take: the longest takes 10 s of processor time."""


def typed(page: str, folder: Path) -> None:
    """Runs the commands of a page in order; what it shows as output must have come out before."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    said: list[str] = []
    shown = 0
    for kind, text in BLOCK.findall((PAGES / page).read_text(encoding="utf-8")):
        if kind == "sh":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=folder,
                env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert done.returncode == 0, f"{text}\n{done.stderr}"
            said += [line.rstrip() for line in done.stdout.splitlines()]
        else:
            for line in text.splitlines():
                assert line.rstrip() in said, f"{page} shows {line!r}; there is\n" + "\n".join(said)
                shown += 1
    assert said
    assert shown


@pytest.mark.parametrize("page", ["researcher.md", "queue.md", "line.md", "router.md"])
def test_a_tutorial_shows_what_comes_out(page: str, tmp_path: Path) -> None:
    typed(page, tmp_path)


@pytest.mark.parametrize("page", ["researcher.md", "queue.md", "line.md", "router.md"])
def test_a_row_of_a_table_is_shown_with_what_its_columns_are(page: str) -> None:
    """Who only reads the page sees no more of the table than that."""
    shown = [
        text
        for kind, text in BLOCK.findall((PAGES / page).read_text(encoding="utf-8"))
        if kind == "text" and ROW.search(text)
    ]
    assert shown
    for text in shown:
        first, *rest = text.splitlines()
        assert re.search(r"  (up|95 % interval|default) ", first), f"{page}: {text}"
        rows = [line for line in rest if ROW.match(line)]
        names = [line.split("  ")[0] for line in rows]
        # A name that goes on below its row is told whole.
        folded = len(names) != len(set(names))
        assert len(rest) > len(rows) + 2 if folded else rows, f"{page}: {text}"


def test_the_factor_that_the_tutorial_of_a_router_names_is_that_of_its_table() -> None:
    page = (PAGES / "router.md").read_text(encoding="utf-8")
    (factor,) = re.findall(r"The load makes pings ([\d.]+) times less slow", page)
    (row,) = re.findall(r"^ shaper auto .*$", page, re.MULTILINE)
    assert factor == row.split()[-2]


def test_buffers_follow_from_pings_as_the_tutorial_of_a_line_says(tmp_path: Path) -> None:
    page = (PAGES / "line.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"<<'END'\n(.*?)^END$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "my-line.toml").write_text(line)
    for test, mbps, limit in (("tcp_upload", 10, 200_000), ("tcp_download", 50, 600_000)):
        (record,) = weirlab.run(
            test, link=str(tmp_path / "my-line.toml"), phases={"load": "15s"}, out=tmp_path / test
        )
        told = summarise(record).latency
        assert told.idle is not None
        assert told.loaded is not None
        assert (told.loaded.p99 - told.idle.mean) * mbps * 1e3 / 8 == pytest.approx(limit, rel=0.03)


@pytest.mark.realtime
@pytest.mark.needs_lab
def test_the_tutorial_with_a_program_on_a_line_shows_what_comes_out(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    typed("application.md", tmp_path)


def test_every_tutorial_is_tried() -> None:
    tried = {"index.md", "researcher.md", "queue.md", "line.md", "router.md", "application.md"}
    assert {page.name for page in PAGES.glob("*.md")} == tried
