"""Requests to end: whenever they come, what was measured stays; the second one always ends the process."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from live import PATIENCE_S
from weirlab.api import run_all
from weirlab.interrupt import SAME_S, heeding
from weirlab.scenario import ScenarioSpec, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirlab.scenario import ResolvedRun
    from weirlab.worlds import Progress

pytestmark = pytest.mark.realtime

WEIR = [sys.executable, "-m", "weirlab"]
SHORT = ["ping", "--idle", "1s", "--load", "1s", "--cooldown", "1s", "--no-charts"]


BEFORE_THE_COMMAND = {"__init__.py", "shown.py", "__main__.py", "ending.py"}
"""Modules that are loaded before the command hears requests to end: nothing that takes time."""

STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    """Whatever a test started has ended after it, also where the test failed."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=PATIENCE_S)


def start(*words: str, folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*WEIR, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    STARTED.append(process)
    return process


@pytest.fixture
def many(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A command with two thousand short runs, some of which have ended."""
    process = start("run", *SHORT, "--repeat", "2000", "--out", "o", folder=tmp_path)
    until(lambda: len(list(tmp_path.glob("o/*/*/manifest.json"))) > 20 or process.poll() is not None)
    yield process
    process.kill()
    process.communicate(timeout=PATIENCE_S)


def until(true: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_with_many_runs_waiting_it_ends_and_keeps_what_there_is(
    many: subprocess.Popen[str], number: signal.Signals
) -> None:
    many.send_signal(number)
    output, errors = many.communicate(timeout=PATIENCE_S)
    assert many.returncode == 130, errors
    assert "interrupted: the figures are those of what was measured until then" in errors
    assert "Traceback" not in errors
    assert "Ping" in output


def test_a_second_request_ends_it_at_once(tmp_path: Path) -> None:
    """While the first is still at work: thousands of records are being read."""
    process = start(
        "run", "rrul", "--load", "3000s", "--repeat", "9", "--jobs", "9", "--out", "o", folder=tmp_path
    )
    until(lambda: any(tmp_path.glob("o/*/*/latency/part-*.parquet")) or process.poll() is not None)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    time.sleep(2 * SAME_S)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert errors.rstrip().endswith("interrupted") or "interrupted: the figures" in errors
    assert "Traceback" not in errors


HANGS = """
import time
from weirlab import interrupt
interrupt.take_over()
interrupt.started()
with interrupt.heeding() as stop:
    print("ready", flush=True)
    while not stop.told:
        time.sleep(0.01)
    print("told", flush=True)
    time.sleep(3600)
"""


def test_a_second_request_ends_what_the_first_does_not() -> None:
    """Work that is told to end and does not: without the second request it would go on for an hour."""
    process = subprocess.Popen(
        [sys.executable, "-c", HANGS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        for said in ("ready\n", "told\n"):
            assert process.stdout.readline() == said
            time.sleep(2 * SAME_S)
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, errors) == (130, "weir: interrupted\n")
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def test_at_any_moment_there_is_a_sentence_and_no_trace(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - moments
    for number in range(8):
        process = start("run", *SHORT, "--out", f"o{number}", folder=tmp_path)
        time.sleep(chance.uniform(0.05, 1.5))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        ours = set(re.findall(r"weirlab/(\S+\.py)", errors))
        if process.returncode == -signal.SIGINT or "site.py" in errors or "<frozen" in errors:
            # Python itself was starting: nothing of ours had run but what it loads to find the command.
            assert ours <= BEFORE_THE_COMMAND
            continue
        assert process.returncode in {0, 130}, errors
        assert "Traceback" not in errors, errors
        if process.returncode == 130:
            assert re.search(r"weir: interrupted", errors), errors


def test_a_request_of_which_a_library_makes_an_error_of_its_own_is_a_request_all_the_same() -> None:
    program = """
import os, signal, time
import weirlab.cli
from weirlab import __main__, interrupt

def polars():
    interrupt.started()
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    except KeyboardInterrupt:
        raise RuntimeError("KeyboardInterrupt: ") from None

weirlab.cli.main = polars
__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "weir: interrupted\n")


def test_signals_that_are_ignored_stay_ignored(tmp_path: Path) -> None:
    """As `nohup` and a script's jobs in the background have them."""
    line = 'trap "" HUP INT; exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", line, "sh", *WEIR, "run", *SHORT, "--repeat", "60", "--out", "o"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: any(tmp_path.glob("o/*/*/manifest.json")) or process.poll() is not None)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors


class Waiting:
    """A world whose runs go on until they are told to stop."""

    name = "sim"
    at_once: int | None = 2

    def __init__(self) -> None:
        self.entered = threading.Event()

    def check(self, run: ResolvedRun) -> None: ...

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        del run, folder
        self.entered.set()
        assert progress is not None
        deadline = time.monotonic() + PATIENCE_S
        while progress(0):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return False


def runs() -> list[ResolvedRun]:
    return resolve(ScenarioSpec.model_validate({"test": "ping", "link": "cable-20-8", "repeat": 50}))


def send_when(entered: threading.Event) -> threading.Thread:
    def send() -> None:
        entered.wait(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_in_a_program_of_others_ctrl_c_ends_the_runs_and_its_handler_is_back(tmp_path: Path) -> None:
    world = Waiting()
    before = signal.getsignal(signal.SIGINT)
    sender = send_when(world.entered)
    assert run_all(runs(), world, tmp_path / "o") == []
    sender.join(PATIENCE_S)
    assert signal.getsignal(signal.SIGINT) is before


SCRIPT = """
import os, signal, threading, time, warnings
from pathlib import Path
import weirlab
from weirlab.errors import Interrupted
def end():
    while not any(Path("o").glob("*/*/latency/part-*.parquet")):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=end, daemon=True).start()
try:
    weirlab.run("rrul", phases={"load": "20000s"}, repeat=200, out="o")
except Interrupted as error:
    print(type(error).__name__, error, len(error.records) > 0, error.records[0].manifest.complete)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        weirlab.compare(error.records)
    print(len(told) == len(error.records), told[0].filename, told[0].message)
"""


def test_a_script_is_told_that_its_runs_were_ended(tmp_path: Path) -> None:
    """Otherwise it would go on with runs that were cut short at different times as if it had all of them."""
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    raised, compared = done.stdout.splitlines()
    assert raised == "RunsInterrupted interrupted: 0 of 200 runs came to their end True False"
    assert re.fullmatch(r"True <string> `o/.*`: the run was cut short at \d+\.\d s", compared)


def test_a_handler_of_the_program_itself_is_left_alone(tmp_path: Path) -> None:
    class Theirs(Exception):
        pass

    def theirs(number: int, frame: object) -> None:
        del number, frame
        raise Theirs

    world = Waiting()
    before = signal.signal(signal.SIGINT, theirs)
    try:
        sender = send_when(world.entered)
        with pytest.raises(Theirs):
            run_all(runs(), world, tmp_path / "o")
        sender.join(PATIENCE_S)
        assert signal.getsignal(signal.SIGINT) is theirs
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_second_request_raises_in_a_program_of_others() -> None:
    with heeding() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.told
        # So soon after it is the same one.
        signal.raise_signal(signal.SIGINT)
        time.sleep(SAME_S)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_in_another_thread_runs_go_on_as_ever(tmp_path: Path) -> None:
    made: list[Any] = []
    phases = {"idle": "1s", "load": "1s", "cooldown": "1s"}
    thread = threading.Thread(
        target=lambda: made.extend(weirlab.run("ping", phases=phases, repeat=2, out=tmp_path / "o"))
    )
    thread.start()
    thread.join(PATIENCE_S)
    assert [record.manifest.complete for record in made] == [True, True]


def test_a_run_that_fails_ends_the_others_and_tells_why(tmp_path: Path) -> None:
    class Failing(Waiting):
        def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
            if run.seed == 2:
                raise RuntimeError("the second one")
            return super().run(run, folder, progress)

    with pytest.raises(RuntimeError, match="the second one"):
        run_all(runs(), Failing(), tmp_path / "o")
