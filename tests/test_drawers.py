"""Charts by a process of their own: the same as here, and nothing half-done stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live import PATIENCE_S, weir_in
from weirlab import drawers
from weirlab.drawers import Order, begin, begun_or_new, draws, end_begun
from weirlab.errors import UsageError, WeirError
from weirlab.plots import draw
from weirlab.report import charts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    from weirlab.record import Record


def order(kind: str, records: list[Record], target: Path) -> Order:
    paths = [str(record.path) for record in records]
    return Order(kind, paths, str(target), None, paths)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of a user whose home cannot be written, as that of a service."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("HOME", "/dev/null")
    for name in ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_who_has_no_home_draws_without_a_word_and_nothing_is_left(temporary: Path, tmp_path: Path) -> None:
    done = weir_in(tmp_path, "run", "ping", "--load", "200ms", "--idle", "100ms", "--out", "run")
    assert done.returncode == 0
    assert "atplotlib" not in done.stderr
    assert list((tmp_path / "run" / "charts").iterdir())
    assert list(temporary.iterdir()) == []
    done = weir_in(tmp_path, "plot", "run", "--kind", "cdf", "--out", "cdf.png")
    assert (done.returncode, "atplotlib" in done.stderr, list(temporary.iterdir())) == (0, False, [])


def test_what_was_begun_for_nothing_leaves_nothing(
    temporary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin()
    (one,) = drawers._begun
    until = time.monotonic() + PATIENCE_S
    while not list(temporary.iterdir()) and time.monotonic() < until:
        time.sleep(0.01)
    end_begun()
    assert running_in(one.pid) == []
    assert list(temporary.iterdir()) == []
    assert capfd.readouterr().err == ""


EXITING = 0x4
"""A process of Linux that is on its way out: PF_EXITING of include/linux/sched.h."""


def running_in(group: int) -> list[str]:
    """The numbers of the processes of a group; not of those that have ended or are on their way out.

    What ends closes its pipes, so that who waits for them goes on, before it has ended.
    """
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # Behind the name in brackets: state, parent, group, session, terminal, its group, flags.
            state, _, its_group, *_, flags = (place / "stat").read_text().rpartition(")")[2].split()[:7]
            if int(its_group) == group and state != "Z" and not int(flags) & EXITING:
                found.append(place.name)
    return found


def test_a_process_draws_the_bytes_that_are_drawn_here(rrul: list[Record], tmp_path: Path) -> None:
    drawn = charts_of(rrul, tmp_path / "there", title="A title", quiet=True)
    assert len(drawn) > 4
    one = next(path for path in drawn if path.name == "box.png")
    here = draw("box", rrul, tmp_path / "here.png", title="A title", whole=rrul)
    assert one.read_bytes() == here.read_bytes()


def test_a_chart_that_cannot_be_drawn_is_told_as_here_and_the_others_are_there(
    rrul: list[Record], tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as here:
        draw("overlay", rrul[:1], tmp_path / "here.png")
    orders = [order("overlay", rrul[:1], tmp_path / "a.png"), order("cdf", rrul, tmp_path / "b.png")]
    with begun_or_new() as process, pytest.raises(UsageError) as there:
        for _ in process.draw(orders, at_once=1):
            pass
    assert str(there.value) == str(here.value)
    assert [path.name for path in tmp_path.iterdir()] == ["b.png"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_ended_by_others_is_an_error(
    number: signal.Signals, rrul: list[Record], tmp_path: Path
) -> None:
    with begun_or_new() as process:
        os.kill(process.pid, number)
        with pytest.raises(WeirError, match=f"the process that draws charts ended with signal {number.name}"):
            list(process.draw([order("cdf", rrul, tmp_path / "a.png")], at_once=1))


def test_a_process_whose_answers_nobody_reads_ends_without_a_word(rrul: list[Record], tmp_path: Path) -> None:
    orders = [asdict(order("cdf", rrul, tmp_path / f"{number}.png")) for number in range(9)]
    command = [sys.executable, "-m", "weirlab.plots.drawer"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps({"at_once": 2, "orders": orders}).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        # Its children have ended, too, once nobody can write to it any more.
        assert process.stderr.read() == b""
    assert process.returncode == 0
    assert len(list(tmp_path.iterdir())) < len(orders)


def test_who_ends_early_leaves_no_process_and_no_half_chart(rrul: list[Record], tmp_path: Path) -> None:
    orders = [order("box", rrul, tmp_path / f"{number}.png") for number in range(12)]
    with begun_or_new() as process:
        first = next(iter(process.draw(orders, at_once=3)))
    assert running_in(process.pid) == []
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert first.target.endswith(tuple(left))
    assert len(left) < len(orders)
    assert all(
        name.endswith(".png") and content.endswith(b"IEND\xaeB`\x82") for name, content in left.items()
    )


BEGUN = """
import sys
from weirlab import drawers
drawers.begin = lambda: print("click is loaded:", "click" in sys.modules)
from weirlab.__main__ import main
main()
"""


ENDED_WHILE_IT_DRAWS = """
import signal
import weirlab.plots
from weirlab.plots import drawer

def draw(*_, **__):
    try:
        signal.raise_signal(signal.SIGTERM)
    except SystemExit:
        # As Matplotlib's compiled parts do.
        raise ValueError("Invalid bounding box")

weirlab.plots.draw = draw
drawer._draw_and_leave(0, {"kind": "cdf", "records": [], "target": "x.png", "title": "", "whole": []}, {}, 1)
"""


def test_a_child_that_is_told_to_end_while_it_draws_says_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDED_WHILE_IT_DRAWS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_process_that_is_begun_is_taken_once_and_else_ended() -> None:
    begin()
    begin()
    (one,) = drawers._begun
    with begun_or_new() as taken:
        assert taken is one
        assert drawers._begun == []
    begin()
    (other,) = drawers._begun
    end_begun()
    assert drawers._begun == []
    assert running_in(other.pid) == []


def test_a_run_that_is_refused_leaves_no_process(
    weir_here: Callable[..., CompletedProcess[str]],
) -> None:
    begin()
    (one,) = drawers._begun
    assert weir_here("run", "no-such-test").returncode == 2
    assert drawers._begun == []
    assert running_in(one.pid) == []


@pytest.mark.parametrize(("words", "begun"), [(["run", "no-such-test"], True), (["--version"], False)])
def test_what_draws_is_begun_before_the_line_is_understood(words: list[str], begun: bool) -> None:
    told = subprocess.run(
        [sys.executable, "-c", BEGUN, *words], check=False, capture_output=True, text=True, timeout=60
    )
    loaded = [line for line in told.stdout.splitlines() if line.startswith("click")]
    assert loaded == ["click is loaded: False"] * begun


def test_a_machine_without_room_for_a_process_refuses_no_run_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", refused)
    begin()
    assert drawers._begun == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run rrul --out x", True),
        ("run rrul --no-charts", False),
        ("run --help", False),
        ("run rrul --world lab", False),
        ("run rrul --world=lab", False),
        ("show x", False),
        ("", False),
    ],
)
def test_charts_are_expected_of_runs_in_the_simulator(line: str, expected: bool) -> None:
    assert draws(line.split()) is expected
