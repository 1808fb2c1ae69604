"""A sweep on a Dask cluster of processes whose scheduler and workers are killed, hung, added and removed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from polars.testing import assert_frame_equal

from weirlab.children import ONE_THREAD
from weirlab.errors import UsageError
from weirlab.sweeps import cluster as clusters
from weirlab.sweeps import sweeping
from weirlab.sweeps.cluster import Cluster
from weirlab.sweeps.columns import ORIGIN
from weirlab.sweeps.plan import plan_of
from weirlab.sweeps.runs import LAB, sweep_of
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import polars as pl

pytestmark = [
    pytest.mark.realtime,
    # Looked for, not loaded: every process that collects would wait for it.
    pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not there"),
]

REPEAT = 8

ASKED = plan_of(
    {
        "test": "rrul",
        "link": "cable-20-8",
        "phases": {"idle": "500ms", "load": "1s", "cooldown": "0s"},
        "sweep": {"axes": {"queue": ["pfifo_fast", "fq_codel"]}, "repeat": REPEAT, "samples": ["load"]},
    }
)


class Processes:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, silence: str = "300s") -> None:
        """Starts a scheduler that gives up a worker after such a silence: Dask's own, unless it is said."""
        self.settings = {
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": silence,
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.all: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()

    def start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Weir is told of no signal for these, and they of none for it.
            process_group=0,
            env=os.environ | ONE_THREAD | self.settings,
        )
        self.all.append(started)
        return started

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--dashboard-address", "127.0.0.1:0"]
        return self.start(["distributed.cli.dask_scheduler", *words])

    def wait(self) -> None:
        """Waits until the scheduler listens."""
        ends_s = time.monotonic() + STARTS_S
        while time.monotonic() < ends_s:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)
        raise TimeoutError("the scheduler does not listen")

    def add_worker(self, *more: str) -> None:
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", *more]
        self.workers.append(self.start(["distributed.cli.dask_worker", self.address, *words]))

    def end(self) -> None:
        for one in self.all:
            one.send_signal(signal.SIGKILL)
            one.wait()


@pytest.fixture
def processes(request: pytest.FixtureRequest) -> Iterator[Processes]:
    found = Processes(*getattr(request, "param", ()))
    try:
        found.wait()
        yield found
    finally:
        found.end()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The rows of one process."""
    store = Store.made(tmp_path_factory.mktemp("alone") / "store")
    assert sweeping.carry_out(sweep_of(ASKED), store, jobs=1).done == 2 * REPEAT
    return figures(store)


def figures(store: Store) -> pl.DataFrame:
    rows = rows_of(sweep_of(ASKED), store).collect()
    return rows.drop(*(name for name in ORIGIN if name != "weir"))


class Accidents:
    """Does something to the cluster when so many runs are done."""

    def __init__(self, what: dict[int, Callable[[], None]]) -> None:
        self.what, self.done = what, 0

    def begun(self, count: int) -> None:
        assert count == 2 * REPEAT

    def ended(self, *, failed: bool) -> None:
        assert not failed
        self.done += 1
        if self.done in self.what:
            self.what.pop(self.done)()


def carried_out(tmp_path: Path, processes: Processes, what: dict[int, Callable[[], None]]) -> Store:
    store = Store.made(tmp_path / "store")
    accidents = Accidents(what)
    # Weir waits for workers as long as it is let: those that a busy machine makes silent have gone for good.
    stopper = threading.Timer(LASTS_S, os.kill, (os.getpid(), signal.SIGINT))
    stopper.start()
    try:
        outcome = sweeping.carry_out(
            sweep_of(ASKED), store, cluster=Cluster(processes.address), watcher=accidents
        )
    finally:
        stopper.cancel()
    assert (outcome.done, outcome.failed, outcome.left) == (2 * REPEAT, 0, 0)
    assert not accidents.what
    return store


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "MAX_BATCH_SAMPLES", 1)


@pytest.mark.usefixtures("small_batches")
def test_a_scheduler_that_is_killed_and_started_again_changes_nothing(
    tmp_path: Path, processes: Processes, alone: pl.DataFrame
) -> None:
    """Its workers end with it, and others come to the new one: what it forgot is sent again."""
    processes.add_worker()

    def restart() -> None:
        processes.scheduler.kill()
        processes.scheduler.wait()
        processes.scheduler = processes.start_scheduler()
        processes.add_worker()

    store = carried_out(tmp_path, processes, {3: restart})
    assert_frame_equal(figures(store), alone, check_exact=True)
    assert len(store.samples()) == 2 * REPEAT


@pytest.mark.usefixtures("small_batches")
def test_a_batch_of_which_a_scheduler_was_never_told_is_sent_again(
    tmp_path: Path, processes: Processes, alone: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is sent while a scheduler is started again may reach neither: nobody answers for it then."""
    from distributed import Client  # noqa: PLC0415 - optional

    processes.add_worker()
    monkeypatch.setattr(clusters, "ASK_EVERY_S", 0.5)
    sends, lost = Client._send_to_scheduler_safe, [2, 5]

    def loses(self: Any, message: dict[str, Any]) -> None:
        if message["op"] == "update-graph":
            lost[:] = [left - 1 for left in lost]
            if 0 in lost:
                return
        sends(self, message)

    monkeypatch.setattr(Client, "_send_to_scheduler_safe", loses)
    store = carried_out(tmp_path, processes, {})
    assert max(lost) < 0
    assert_frame_equal(figures(store), alone, check_exact=True)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("processes", [("5s",)], indirect=True)
def test_workers_that_are_killed_hung_added_and_removed_change_nothing(
    tmp_path: Path, processes: Processes, alone: pl.DataFrame
) -> None:
    processes.add_worker()
    processes.add_worker()

    def hang() -> None:
        # It answers no more, and does not end: the scheduler gives it up after its time to live.
        processes.workers[0].send_signal(signal.SIGSTOP)
        processes.add_worker()

    def remove() -> None:
        processes.add_worker()
        processes.workers[1].terminate()

    def kill() -> None:
        processes.workers[2].kill()
        processes.add_worker()

    store = carried_out(tmp_path, processes, {2: hang, 5: remove, 8: kill})
    assert_frame_equal(figures(store), alone, check_exact=True)


def test_a_worker_of_another_version_is_refused_in_one_sentence(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.add_worker()
    store = Store.made(tmp_path / "store")
    monkeypatch.setattr(clusters, "version", lambda: "0.0.9")
    with pytest.raises(
        UsageError, match=r"a worker.* has Weir .*, this machine 0\.0\.9 .*: install the same on"
    ):
        sweeping.carry_out(sweep_of(ASKED), store, cluster=Cluster(processes.address))
    assert store.collected().height == 0


def test_a_lab_goes_only_where_a_worker_says_that_it_has_one(processes: Processes) -> None:
    from distributed import Client  # noqa: PLC0415 - optional

    from weirlab.sweeps.runs import Work  # noqa: PLC0415 - for this alone

    processes.add_worker()
    with Client(processes.address, timeout=60) as client:
        client.wait_for_workers(1)
        with pytest.raises(UsageError, match="start one a machine with `--resources lab=1`"):
            clusters._check_labs(client, Work(world="lab"))
        clusters._check_labs(client, Work())
        processes.add_worker("--resources", "lab=1")
        client.wait_for_workers(2)
        clusters._check_labs(client, Work(world="lab"))
        began = time.monotonic()
        where: Any = client.submit(os.getpid, resources={LAB: 1}, pure=False)
        assert where.result(timeout=60) == processes.workers[1].pid
        assert time.monotonic() - began < 60


STARTS_S = 60
"""A scheduler starts in a few seconds, on a busy machine later."""

LASTS_S = 180.0
"""How long a sweep may last, which takes some seconds."""
