"""Sweeps in other worlds: what is asked beforehand, which runs are equal, what stands in the store."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import weirlab
from weirlab.cli import weir
from weirlab.errors import UsageError
from weirlab.sweeps import estimate as estimating
from weirlab.sweeps import runs, sweeping
from weirlab.sweeps.bundle import write_bundle
from weirlab.sweeps.charts.data import drawn
from weirlab.sweeps.columns import table
from weirlab.sweeps.estimate import estimate
from weirlab.sweeps.plan import load_plan, plan_of
from weirlab.sweeps.runs import Work, sweep_of, work_of
from weirlab.sweeps.shown import alike
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import carry_out
from weirlab.sweeps.work import begun
from weirlab.worlds.kernel import KernelWorld
from weirlab.worlds.lab import LabWorld
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.scenario import ResolvedRun

SCENARIO = {
    "test": "tcp_download",
    "link": "cable-20-8",
    "phases": {"idle": "500ms", "load": "1s", "cooldown": "0s"},
}
QUEUES = {"queue": ["default", "htb rate 95% fq_codel"]}


class StoppedClock:
    """Stands for the module `time`: what waits for nothing moves it itself."""

    process_time = staticmethod(time.process_time)

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    monkeypatch.setattr(estimating, "time", clock)
    return clock


def plan(**sweep: Any) -> Any:
    return plan_of({**SCENARIO, "sweep": {"axes": QUEUES, **sweep}})


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('world = "net"', "line 4: sweep.world: `net`: write 'sim', 'lab' or 'kernel'"),
        (
            'datapath = "kernel"',
            "line 4: sweep.datapath: datapath `kernel`: world `sim` has no kernel in it: write lab or kernel",
        ),
    ],
)
def test_a_world_that_is_none_for_sweeps_is_told_with_its_line(
    tmp_path: Path, written: str, says: str
) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(f'test = "rrul"\nlink = "cable-20-8"\n[sweep]\n{written}\naxes = {{ queue = ["sfq"] }}\n')
    with pytest.raises(UsageError) as refused:
        sweep_of(load_plan(file))
    assert str(refused.value) == f"{file}, {says}"


def test_without_a_kernel_nothing_is_run_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_KERNEL", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="WEIR_KERNEL: there is no file"):
        weirlab.sweep({**SCENARIO, "sweep": {"axes": QUEUES, "world": "kernel"}}, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_runs_of_other_worlds_are_others_and_the_usual_data_path_may_be_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LabWorld, "check", lambda *_: None)

    def keys(**sweep: Any) -> list[str]:
        return [run.key for run in sweep_of(plan(**sweep)).runs]

    found = [keys(), keys(world="lab"), keys(world="lab", datapath="kernel")]
    assert len({key for some in found for key in some}) == 6
    assert keys(world="sim") == found[0]
    assert keys(world="lab", datapath="userspace") == found[1]


def test_what_a_worker_is_sent_of_the_world_comes_back() -> None:
    work = Work(world="lab", datapath="kernel", samples=("load",))
    assert work_of(json.loads(json.dumps(work.__dict__))) == work
    assert work.place == "lab, kernel's queues"
    assert Work(world="lab", datapath="userspace").place == "lab"


def test_a_lab_is_asked_about_each_word_once_and_the_simulator_about_every_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[type, str]] = []
    for one in (LabWorld, SimWorld):

        def check(self: Any, run: ResolvedRun) -> None:
            asked.append((type(self), run.queue))

        monkeypatch.setattr(one, "check", check)
    rate = {"key": "link.down.cmts.rate", "from": "10mbit", "to": "50mbit", "steps": 5}
    axes = {**QUEUES, "rate": rate}
    sweep_of(plan(world="lab", axes=axes))
    assert asked == [(LabWorld, queue) for queue in QUEUES["queue"]]
    sweep_of(plan(axes={"rate": rate}, world="lab"))
    assert len(asked) == 3
    asked.clear()
    sweep_of(plan(axes=axes))
    assert len(asked) == 10


def test_what_a_lab_refuses_is_told_at_the_value_that_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: Any, run: ResolvedRun) -> None:
        if run.queue == "htb rate 95% fq_codel":
            raise UsageError("this kernel has no queue discipline `htb`")

    monkeypatch.setattr(LabWorld, "check", check)
    rate = {"key": "link.down.cmts.rate", "values": ["10mbit", "20mbit"]}
    with pytest.raises(UsageError) as refused:
        sweep_of(plan(world="lab", axes={**QUEUES, "rate": rate}))
    assert str(refused.value) == "plan: sweep.axes.queue.1: this kernel has no queue discipline `htb`"


def test_a_store_of_the_lab_alone_has_nothing_for_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LabWorld, "check", lambda *_: None)
    monkeypatch.setattr(sweeping, "run_here", lambda *_: None)
    carry_out(sweep_of(plan(world="lab")), store := Store.made(tmp_path / "lab.sweep"))
    store.append([begun("run 1", 1, Work(world="lab"))], {})
    with pytest.raises(UsageError, match="a bundle has no others: run a plan in the world sim first"):
        write_bundle(store, tmp_path / "lab.bundle")


def test_runs_in_other_releases_of_the_kernel_are_told_apart(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "both.sweep")
    works = [Work(), Work(world="kernel", kernel="6.12.1"), Work(world="kernel", kernel="6.18.2")]
    rows = [begun(f"run {number}", 1, work) for number, work in enumerate(works)]
    assert [row["kernel"] for row in rows] == [None, "6.12.1", "6.18.2"]
    store.append(rows[:2], {})
    assert store.axes() == ["world"]
    store.append(rows[2:], {})
    assert store.axes() == ["world", "kernel"]
    assert alike(store.scan(), store.axes()) == 0


def test_a_store_of_an_earlier_build_lacks_no_column(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "old.sweep")
    store._write(table([begun("run 1", 1)], {}).drop("kernel"), 1)
    assert store.axes() == []
    assert store.scan().select("run", "kernel").collect().row(0) == ("run 1", None)


@pytest.mark.realtime
@pytest.mark.needs_lab
def test_what_a_lab_cannot_do_is_told_before_the_first_run() -> None:
    queues = {"queue": ["default", "cake bandwidth 95%"]}
    with pytest.raises(UsageError, match=r"sweep\.axes\.queue\.1: .*cake"):
        sweep_of(plan(world="lab", datapath="kernel", axes=queues))


@pytest.mark.realtime
@pytest.mark.needs_lab
def test_two_worlds_in_one_store_stand_beside_each_other(tmp_path: Path) -> None:
    file, place = tmp_path / "plan.toml", tmp_path / "both.sweep"
    text = 'test = "tcp_download"\nlink = "cable-20-8"\n'
    text += 'phases = { idle = "500ms", load = "1s", cooldown = "0s" }\n'
    text += '[sweep]\naxes = { queue = ["htb rate 95% fq_codel"] }\n'
    for said, where in (("", True), ('world = "lab"\n', False)):
        file.write_text(text + said, encoding="utf-8")
        done = CliRunner().invoke(weir, ["sweep", str(file), "--out", str(place)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert "1 run done, of 1" in done.output
        assert ("in the simulator" in done.output) is where
    store = Store.opened(place)
    assert store.axes() == ["world"]
    rows = {row["world"]: row for row in store.collected().iter_rows(named=True)}
    assert rows.keys() == {"sim", "lab"}
    assert rows["lab"]["complete"]
    assert rows["lab"]["processor_s"] > 0
    assert rows["lab"]["simulator_s"] is None
    assert rows["lab"]["down_goodput_mbps"] == pytest.approx(rows["sim"]["down_goodput_mbps"], rel=0.2)
    assert drawn(store).origin() == "worlds lab; sim · 2 runs of 2 points · seed 1 · both.sweep"
    # A bundle is what anybody can run again to the bit.
    assert write_bundle(store, tmp_path / "sweep.bundle")["left_out"] == 1


def test_the_lab_is_estimated_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LabWorld, "check", lambda *_: None)
    clock = stopped_clock(monkeypatch)

    def begun_and_ended(*words: Any, **_: Any) -> dict[str, Any]:
        clock.now_s += 0.4
        assert not words[4](250_000_000), "it ends as soon as it has begun"
        clock.now_s += 0.3
        return {"simulated_s": 0.25}

    monkeypatch.setattr(estimating, "carried_out", begun_and_ended)
    found = estimate(sweep_of(plan(world="lab", repeat=3)), None)
    assert (found.processor_s, found.failure) == (None, None)
    # What a run takes beyond the time that it lasts, it takes to start and to end.
    assert found.clock_s == pytest.approx(6 * (1.5 + 0.45))
    monkeypatch.undo()
    assert estimate(sweep_of(plan()), None).clock_s is None


def test_a_pilot_run_counts_from_when_its_world_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that starts slowly has simulated something all the same."""
    clock = stopped_clock(monkeypatch)
    monkeypatch.setattr(KernelWorld, "check", lambda *_: None)
    monkeypatch.setattr(runs, "kernel_build", lambda: "6.12.117 3f2a91c04d1e")

    def slowly_started(*words: Any, **_: Any) -> dict[str, Any]:
        clock.now_s += 30.0
        reached_s = 0.0
        while words[4](round(reached_s * 1e9)):
            clock.now_s += 1.0
            reached_s += 0.25
        return {"simulated_s": reached_s, "processor_s": 2.0, "simulator_s": None}

    monkeypatch.setattr(estimating, "carried_out", slowly_started)
    asked = sweep_of(plan(world="kernel"))
    found = estimate(asked, None)
    # A second, of the 1.5 s that a run lasts, took 2 s.
    assert found.failure is None
    assert found.processor_s == pytest.approx(len(asked.runs) * 3.0)


def test_why_a_pilot_run_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, weir_here: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(estimating, "carried_out", lambda *_, **__: {"error": "the line is down"})
    found = estimate(sweep_of(plan()), None)
    assert (found.processor_s, found.failure) == (None, "the line is down")
    monkeypatch.setattr(estimating, "carried_out", lambda *_, **__: {"simulated_s": 0.0})
    assert estimate(sweep_of(plan()), None).failure == "nothing was simulated within 1 s"
    file = tmp_path / "plan.toml"
    file.write_text('test = "ping"\nlink = "line-50"\n[sweep.axes]\nqueue = ["sfq"]\n')
    said = weir_here("sweep", str(file), "--dry-run").stderr
    assert "how long it takes is not known, since a pilot run fails: nothing was simulated within 1 s" in said


def test_worlds_whose_runs_disturb_nobody_run_several_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[str] = []
    monkeypatch.setattr(sweeping, "run_here", lambda *_: ways.append("here"))
    monkeypatch.setattr(sweeping, "run_in_processes", lambda *_, jobs: ways.append(f"in {jobs}"))
    monkeypatch.setattr(LabWorld, "check", lambda *_: None)
    for world in ("sim", "lab"):
        carry_out(sweep_of(plan(world=world)), Store.made(tmp_path / world), jobs=2)
    assert ways == ["in 2", "here"]
