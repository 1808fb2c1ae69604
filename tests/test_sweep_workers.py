"""Who runs a sweep: workers and Dask clusters come to the rows of one process, also when workers die."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from polars.testing import assert_frame_equal

from weirlab import children
from weirlab.errors import UsageError, WeirError
from weirlab.interrupt import Stop
from weirlab.sweeps import cluster as clusters
from weirlab.sweeps import local, runs, sweeping
from weirlab.sweeps.cluster import Cluster, batch_carried_out
from weirlab.sweeps.columns import ORIGIN
from weirlab.sweeps.plan import plan_of
from weirlab.sweeps.runs import Work, sweep_of
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import Outcome, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

pytestmark = pytest.mark.realtime

SCENARIO = {
    "test": "rrul",
    "link": "cable-20-8",
    "phases": {"idle": "500ms", "load": "1s", "cooldown": "0s"},
}


def plan(repeat: int) -> Any:
    axes = {
        "queue": ["pfifo_fast", "fq_codel"],
        "trace": {"key": "link.down.cmts.rate", "values": ["10mbit", "20mbit"]},
    }
    return plan_of({**SCENARIO, "sweep": {"axes": axes, "repeat": repeat}})


def carry_out(asked: Any, store: Store, **words: Any) -> Outcome:
    return sweeping.carry_out(sweep_of(asked), store, **words)


def figures(path: Path, repeat: int) -> pl.DataFrame:
    rows = rows_of(sweep_of(plan(repeat)), Store.opened(path)).collect()
    return rows.drop(*(name for name in ORIGIN if name != "weir"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The rows of one process."""
    store = Store.made(tmp_path_factory.mktemp("alone") / "store")
    assert carry_out(plan(6), store, jobs=1).done == 24
    return figures(store.path, 6)


def test_worker_processes_that_are_killed_change_nothing(
    tmp_path: Path, alone: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the first four workers is killed in the middle of its second run."""
    killed: list[int] = []
    really = local._Worker.answer

    def answer(worker: Any, run: Any, traces: Any, limit_s: float) -> Any:
        asked = getattr(worker, "asked", 0)
        worker.asked = asked + 1
        if asked == 1 and len(killed) < 4:
            killed.append(worker._process.pid)
            os.kill(worker._process.pid, signal.SIGKILL)
        return really(worker, run, traces, limit_s)

    monkeypatch.setattr(local._Worker, "answer", answer)
    store = Store.made(tmp_path / "store")
    outcome = carry_out(plan(6), store, jobs=2)
    assert (outcome.done, outcome.failed, len(killed)) == (24, 0, 4)
    assert_frame_equal(figures(store.path, 6), alone, check_exact=True)


def test_a_run_that_kills_every_worker_is_kept_with_the_reason_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = sweep_of(plan(1)).runs[2].key
    really = local._Worker.answer

    def answer(worker: Any, run: Any, traces: Any, limit_s: float) -> Any:
        if run.key == victim:
            os.kill(worker._process.pid, signal.SIGKILL)
        return really(worker, run, traces, limit_s)

    monkeypatch.setattr(local._Worker, "answer", answer)
    store = Store.made(tmp_path / "store")
    outcome = carry_out(plan(1), store, jobs=2)
    assert (outcome.done, outcome.failed) == (4, 1)
    assert store.axes() == ["queue", "trace_mbps"]
    errors = figures(store.path, 1)["error"].to_list()
    assert errors[2] == ("3 worker processes ended while they ran it, the last one with signal SIGKILL")
    assert [errors[0], errors[1], errors[3]] == [None] * 3


def test_a_cluster_whose_workers_are_killed_and_added_comes_to_the_same_rows(
    tmp_path: Path, alone: pl.DataFrame
) -> None:
    distributed = pytest.importorskip("distributed")
    store = Store.made(tmp_path / "store")
    with distributed.LocalCluster(
        n_workers=2,
        processes=True,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        env=dict(children.ONE_THREAD),
        silence_logs="CRITICAL",
    ) as cluster:
        killer = Killer(cluster)
        outcome = carry_out(plan(6), store, cluster=Cluster(cluster.scheduler_address), watcher=killer)
    assert killer.killed == 3
    assert (outcome.done, outcome.failed, outcome.left) == (24, 0, 0)
    assert_frame_equal(figures(store.path, 6), alone, check_exact=True)


class Killer:
    """Kills a worker before the first run, after the first and after the eighth; then adds one."""

    def __init__(self, cluster: Any) -> None:
        self.cluster, self.done, self.killed = cluster, 0, 0

    def begun(self, count: int) -> None:
        assert count == 24
        self.kill()

    def ended(self, *, failed: bool) -> None:
        assert not failed
        self.done += 1
        if self.done in {1, 8}:
            self.kill()
        if self.done == 8:
            self.cluster.scale(3)

    def kill(self) -> None:
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            for nanny in list(self.cluster.workers.values()):
                pid = getattr(nanny, "pid", None)
                if pid:
                    os.kill(pid, signal.SIGKILL)
                    self.killed += 1
                    return
            time.sleep(0.05)


def test_a_cluster_of_this_machine_that_lost_all_workers_is_started_anew(
    tmp_path: Path, alone: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(clusters, "PATIENCE_S", 1.0)
    store = Store.made(tmp_path / "store")
    retirer = Retirer()
    outcome = carry_out(plan(6), store, cluster=Cluster(None, 1), watcher=retirer)
    assert retirer.retired
    assert (outcome.done, outcome.failed, outcome.left) == (24, 0, 0)
    assert_frame_equal(figures(store.path, 6), alone, check_exact=True)


class Retirer:
    """Has all workers end after the first run: Dask replaces none that was told to."""

    retired = False

    def begun(self, count: int) -> None:
        assert count == 24

    def ended(self, *, failed: bool) -> None:
        assert not failed
        if not self.retired:
            self.retired = True
            from distributed import default_client  # noqa: PLC0415 - optional

            default_client().retire_workers(close_workers=True)


def test_a_cluster_of_this_machine_whose_worker_dies_while_it_starts_is_started_again(
    tmp_path: Path, alone: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    really, tries = distributed.LocalCluster, []

    def started(**words: Any) -> Any:
        tries.append(words)
        if len(tries) == 1:
            raise RuntimeError("Nanny failed to start.")
        return really(**words)

    monkeypatch.setattr(distributed, "LocalCluster", started)
    store = Store.made(tmp_path / "store")
    outcome = carry_out(plan(6), store, cluster=Cluster(None, 1))
    assert (outcome.done, outcome.failed, len(tries)) == (24, 0, 2)
    assert_frame_equal(figures(store.path, 6), alone, check_exact=True)

    def never(**_: Any) -> Any:
        tries.append({})
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", never)
    with pytest.raises(WeirError, match=r"here: Nanny failed to start\.; a script asks for one below"):
        carry_out(plan(6), Store.made(tmp_path / "other"), cluster=Cluster(None, 1))
    assert len(tries) == 2 + clusters.MAX_IN_VAIN


def test_a_second_ctrl_c_while_workers_begin_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for those that have not begun."""
    begin, begun = threading.Thread.start, []

    def interrupted(thread: threading.Thread) -> None:
        if thread.name.startswith("worker"):
            begun.append(thread)
            if len(begun) > 1:
                raise KeyboardInterrupt
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    sweep = sweep_of(plan(10))
    orders = local.Orders(runs=sweep.runs, traces={}, told=lambda *_: True, stop=Stop(), run_limit_s=60)
    with pytest.raises(KeyboardInterrupt):
        local.run_in_processes(orders, jobs=3)
    assert orders.stop.told
    assert len(begun) == 2
    assert not begun[0].is_alive()


def test_rows_that_cannot_be_fetched_keep_nobody_from_those_that_can() -> None:
    """A batch whose worker died behind its last run stays under way; the next one's rows are taken."""
    sweep = sweep_of(plan(10))
    told: list[str] = []

    def heard(run: Any, _: Any) -> bool:
        told.append(run.key)
        return True

    orders = local.Orders(runs=sweep.runs, traces={}, told=heard, stop=Stop(), run_limit_s=60)
    batches = clusters._Batches(orders, patience_s=60)

    class Future:
        status = "finished"

        def __init__(self, rows: Any) -> None:
            self.rows = rows

        def result(self, timeout: float) -> Any:
            assert timeout == clusters.FETCH_S
            if isinstance(self.rows, list):
                return self.rows, 3.0
            self.status = "pending" if self.rows is KeyError else self.status
            raise self.rows

    first, second = list(sweep.runs[:1]), list(sweep.runs[1:2])
    lost: Any = Future(TimeoutError)
    gone: Any = Future(KeyError)
    there: Any = Future([{"processor_s": 0.1}])
    assert not batches._taken(lost, first)
    assert not batches._taken(gone, first)
    assert batches._taken(there, second)
    assert (told, batches.done) == ([second[0].key], 1)
    # A run takes two batches' time by the clock: the next batch has one.
    assert len(batches._next()) == 1
    broken: Any = Future(ValueError)
    with pytest.raises(ValueError):  # noqa: PT011 - it has no words
        batches._taken(broken, first)


def test_a_worker_of_another_version_is_refused() -> None:
    run = sweep_of(plan(1)).runs[0]
    with pytest.raises(clusters.OtherVersion):
        batch_carried_out([clusters._as_data(run)], {}, ("0.0.1", "abc"), 60)
    said = clusters._refusal(("1.0", "aa"), ("0.9", "bb"), worker="tcp://h:1")
    assert str(said) == (
        "worker `tcp://h:1` has Weir 0.9 (build bb), this machine 1.0 (build aa): install the same on all"
    )

    class Client:
        def run(self, _: Any, *, on_error: str) -> dict[str, Any]:
            assert on_error == "return"
            return {"tcp://h:1": ("0.9", "bb")}

    with pytest.raises(UsageError, match=r"has Weir 0\.9"):
        clusters._check_versions(Client())


def test_a_worker_without_the_kernel_that_is_asked_for_ends_the_sweep_and_fails_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have an error for each run sooner than others a figure, and so take them all."""
    monkeypatch.setenv("WEIR_KERNEL", str(tmp_path / "none"))
    run, work = sweep_of(plan(1)).runs[0], asdict(Work(world="kernel", kernel="6.12.0"))
    with pytest.raises(UsageError, match="WEIR_KERNEL: there is no file"):
        batch_carried_out([clusters._as_data(run)], {}, clusters.versions(), 60, work)

    class Future:
        status = "error"

        def exception(self) -> BaseException:
            return UsageError("the kernel here is 6.12.1")

    told: list[Any] = []

    def heard(*said: Any) -> bool:
        told.append(said)
        return True

    orders = local.Orders(runs=[run], traces={}, told=heard, stop=Stop(), run_limit_s=60)
    future: Any = Future()
    with pytest.raises(UsageError, match=r"^a worker cannot run it: the kernel here is 6\.12\.1$"):
        clusters._Batches(orders, patience_s=1.0)._taken(future, [run])
    assert not told


def test_builds_differ_in_the_compiled_part_and_in_every_module(tmp_path: Path) -> None:
    native, module = tmp_path / "_native.so", tmp_path / "stats" / "pings.py"
    module.parent.mkdir()
    found = set()
    for compiled, written in ((b"a", ""), (b"b", ""), (b"b", "x = 1\n")):
        native.write_bytes(compiled)
        module.write_text(written)
        found.add(runs._build_of(native, tmp_path))
    module.rename(tmp_path / "pings.py")
    found.add(runs._build_of(native, tmp_path))
    assert len(found) == 4
    assert len(runs.build()) == 12


def test_without_dask_and_without_a_scheduler_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.made(tmp_path / "store")
    with pytest.raises(UsageError, match="exclude each other"):
        clusters.cluster_of("tcp://h:1", None, 2)
    with monkeypatch.context() as patched:
        patched.setitem(__import__("sys").modules, "distributed", None)
        with pytest.raises(UsageError, match="a cluster needs Dask"):
            carry_out(plan(1), store, cluster=Cluster("tcp://127.0.0.1:1"))
    pytest.importorskip("distributed")
    monkeypatch.setattr(clusters, "CONNECT_S", 1)
    with pytest.raises(UsageError, match="no scheduler answers there"):
        carry_out(plan(1), store, cluster=Cluster("tcp://127.0.0.1:1"))
    assert store.collected().height == 0


@pytest.mark.parametrize(
    "address",
    [
        "x",
        "tcp://",
        "tcp://:1",
        "tcp://h:x",
        "tcp://h:0",
        "tcp://h:65536",
        "http://h:1",
        "\udcff",
        "é:1",
        "h" * 300 + ":1",
    ],
)
def test_what_can_be_no_address_of_a_scheduler_reaches_no_dask(address: str) -> None:
    with pytest.raises(UsageError, match="write the address as in tcp://HOST:8786 or HOST:8786"):
        clusters.cluster_of(address, None, None)


@pytest.mark.parametrize(
    "address", ["h:8786", "tcp://h.example:8786", "tls://[2001:db8::1]:8786", "ws://10.0.0.1:1"]
)
def test_addresses_of_schedulers_are_taken(address: str) -> None:
    assert clusters.cluster_of(address, None, None) == Cluster(address)


def test_a_scheduler_over_tls_wants_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(clusters, "CONNECT_S", 1)
    with pytest.raises(UsageError, match="no scheduler answers there: TLS expects"):
        carry_out(plan(1), Store.made(tmp_path / "store"), cluster=Cluster("tls://127.0.0.1:1"))
