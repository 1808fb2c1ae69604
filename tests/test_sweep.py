"""Sweeps: what is missing is run, every run once, and the store holds what came of it."""

from __future__ import annotations

import json
import resource
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weirlab
from live import PATIENCE_S
from weirlab.errors import RecordError, UsageError, WriteError
from weirlab.interrupt import Stop
from weirlab.stats.pings import PingFigures, ping_figures
from weirlab.sweeps import estimate as estimating
from weirlab.sweeps import local, sweeping, work
from weirlab.sweeps.columns import FIGURES, IDENTITY
from weirlab.sweeps.estimate import ROW_BYTES, estimate
from weirlab.sweeps.local import Orders, run_here, run_in_processes
from weirlab.sweeps.places import place_of
from weirlab.sweeps.plan import plan_of
from weirlab.sweeps.runs import PLAIN, sweep_of
from weirlab.sweeps.shown import grouped
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import rows_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from weirlab.record import Record
    from weirlab.sweeps.plan import Plan
    from weirlab.sweeps.runs import Run, Sweep
    from weirlab.sweeps.sweeping import Outcome
    from weirlab.sweeps.work import Row

SCENARIO = {
    "test": "tcp_upload",
    "link": "cable-20-8",
    "phases": {"idle": "500ms", "load": "1s", "cooldown": "0s"},
}

QUEUES = ["pfifo_fast", "fq_codel"]


def plan(queues: list[str] = QUEUES, **sweep: Any) -> Any:
    return plan_of({**SCENARIO, "sweep": {"axes": {"queue": queues}, **sweep}})


def carry_out(asked: Plan, store: Store, *, jobs: int, retry: bool = False) -> Outcome:
    return sweeping.carry_out(sweep_of(asked), store, jobs=jobs, retry=retry)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the runs that are really run."""
    found: list[str] = []
    really = run_here

    def counted(orders: Orders) -> None:
        def heard(run: Run, row: Row) -> bool:
            found.append(run.key)
            return orders.told(run, row)

        really(replace(orders, told=heard))

    monkeypatch.setattr(sweeping, "run_here", counted)
    return found


def test_a_row_has_the_figures_that_the_record_has(tmp_path: Path) -> None:
    rows = weirlab.sweep(
        SCENARIO, axes={"queue": QUEUES}, repeat=2, store=tmp_path / "store", jobs=1
    ).collect()
    assert rows.columns[0] == "queue"
    records = weirlab.run(
        "tcp_upload",
        queue=QUEUES,
        repeat=2,
        phases={"idle": "500ms", "load": "1s", "cooldown": "0s"},
        out=tmp_path / "records",
    )
    expected = weirlab.frame(records)
    shared = [name for name in FIGURES if name in expected.columns]
    assert len(shared) > 30
    order = ["queue", "seed"]
    ours, theirs = (table.sort(order).select(*order, *shared) for table in (rows, expected))
    assert_frame_equal(ours, theirs, check_exact=True, check_dtypes=False)


def test_a_recorded_line_is_read_once_and_no_worker_needs_its_file(tmp_path: Path) -> None:
    trace = tmp_path / "line.trace"
    trace.write_text("".join(f"{at}\n" for at in range(1, 2000, 2)))
    hop = {"name": "line", "place": "queue", "delay": "5ms"}
    link = {
        "name": "l",
        "title": "l",
        "up": [{**hop, "trace": str(trace)}],
        "down": [{**hop, "rate": "1mbit"}],
    }
    there = sweep_of(plan_of({**SCENARIO, "link": link, "sweep": {"axes": {"queue": QUEUES}}}))
    trace.unlink()
    store = Store.made(tmp_path / "store")
    assert sweeping.carry_out(there, store, jobs=1).failed == 0
    # 6 Mbit/s, which an upload fills.
    assert all(share > 0.5 for share in store.collected()["up_utilisation"])


def test_what_is_there_is_not_run_again_and_an_extended_sweep_does_what_is_new(
    tmp_path: Path, calls: list[str]
) -> None:
    store = Store.made(tmp_path / "store")
    first = carry_out(plan(), store, jobs=1)
    assert (first.done, first.kept, len(calls)) == (2, 0, 2)
    again = carry_out(plan(), store, jobs=1)
    assert (again.done, again.kept, len(calls)) == (0, 2, 2)
    more = carry_out(plan([*QUEUES, "sfq"], repeat=2), store, jobs=1)
    assert (more.done, more.kept, more.runs, len(calls)) == (4, 2, 6, 6)
    assert len(set(calls)) == 6
    # Another store has nothing.
    assert carry_out(plan(), Store.made(tmp_path / "other"), jobs=1).done == 2


def test_a_later_plan_with_more_axes_has_the_rows_that_were_there(tmp_path: Path, calls: list[str]) -> None:
    store = Store.made(tmp_path / "store")
    carry_out(plan(), store, jobs=1)
    wider = plan_of(
        {
            **SCENARIO,
            "sweep": {"axes": {"queue": QUEUES, "load": {"key": "phases.load", "values": ["1s", "2s"]}}},
        }
    )
    outcome = carry_out(wider, store, jobs=1)
    assert (outcome.kept, outcome.done, len(calls)) == (2, 2, 4)
    rows = rows_of(sweep_of(wider), store).collect()
    assert rows.select("queue", "load_ms").rows() == [
        ("pfifo_fast", 1000.0),
        ("pfifo_fast", 2000.0),
        ("fq_codel", 1000.0),
        ("fq_codel", 2000.0),
    ]
    assert store.scan().collect().height == 4
    assert store.axes() == ["queue", "load_ms"]
    # The narrower plan still finds its own.
    assert rows_of(sweep_of(plan()), store).collect().height == 2


def test_a_sweep_that_is_stopped_keeps_what_is_done_and_goes_on(tmp_path: Path, calls: list[str]) -> None:
    store = Store.made(tmp_path / "store")
    spent = carry_out(plan(["pfifo_fast", "fq_codel", "sfq"], budget="1ms"), store, jobs=1)
    assert (spent.done, spent.left, spent.interrupted) == (1, 2, False)
    rest = carry_out(plan(["pfifo_fast", "fq_codel", "sfq"]), store, jobs=1)
    assert (rest.kept, rest.done) == (1, 2)
    assert len(set(calls)) == 3


def test_a_write_that_fails_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = Store.append
    asked: list[int] = []

    def full(store: Store, rows: list[dict[str, Any]], axes: Any) -> None:
        asked.append(len(rows))
        if len(asked) == 1:
            raise WriteError("no space left on device")
        really(store, rows, axes)

    monkeypatch.setattr(Store, "append", full)
    monkeypatch.setattr(sweeping, "PART_ROWS", 2)
    store = Store.made(tmp_path / "store")
    with pytest.raises(WriteError, match="no space left"):
        carry_out(plan(["pfifo_fast", "fq_codel", "sfq"]), store, jobs=1)
    # The rows of the part that could not be written were written at the end.
    assert asked == [2, 2]
    assert store.scan().collect().height == 2


def test_rows_that_have_no_room_are_told_in_a_sentence(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "store")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(WriteError, match=r"store/runs/part-.* cannot be written: File too large"):
            carry_out(plan(["pfifo_fast", "fq_codel"]), store, jobs=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert carry_out(plan(["pfifo_fast", "fq_codel"]), store, jobs=1).done == 2


def test_a_row_does_not_wait_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PART_EVERY_S", 0.01)
    store = Store.made(tmp_path / "store")
    really = work.carried_out
    heights: list[int] = []

    def patient(*given: Any, **words: Any) -> Row:
        began = time.monotonic()
        while heights and not store.scan().collect().height and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.01)
        heights.append(store.scan().collect().height)
        return really(*given, **words)

    monkeypatch.setattr(local, "carried_out", patient)
    carry_out(plan(["pfifo_fast", "fq_codel"]), store, jobs=1)
    assert heights == [0, 1]


def test_what_is_shown_is_of_one_version_and_tells_runs_that_are_no_repetitions(
    tmp_path: Path, weir_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    store = Store.made(tmp_path / "store")
    carry_out(plan(), store, jobs=1)
    rows = store.scan().collect()
    changed = pl.col("run").str.replace("^.", "x").alias("run")
    before = rows.with_columns(changed, weir=pl.lit("0.0.1"), finished_at=pl.lit("2020-01-01T00:00:00Z"))
    store.append(before.with_columns(down_goodput_mbps=1e6).to_dicts(), {})
    shown = weir_here("sweep", "show", "store", "--by", "test", "--figure", "down_goodput_mbps")
    assert "2 runs of other versions of Weir than" in shown.stderr
    assert "same seed" not in shown.stderr
    assert "1000000" not in shown.stdout
    store.append(rows.with_columns(changed).to_dicts(), {})
    assert (
        "4 runs stand at a point where another has the same seed"
        in weir_here("sweep", "show", "store").stderr
    )


def test_a_mean_says_of_how_many_runs_it_is(
    tmp_path: Path, weir_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """A run without idle pings has no increase: the mean of two runs is not shown as one of four."""
    idle = '[sweep.axes]\nidle = { key = "phases.idle", values = ["0s", "1s"] }\n'
    phases = 'phases = { idle = "1s", load = "1s", cooldown = "0s" }\n'
    (tmp_path / "plan.toml").write_text(
        f'test = "rrul_be"\nlink = "cable-20-8"\n{phases}[sweep]\nrepeat = 2\n{idle}'
    )
    assert weir_here("sweep", "plan.toml", "--jobs", "1").returncode == 0
    asked = ["--by", "test", "--figure", "increase_p95_ms", "--figure", "up_goodput_mbps"]
    shown = json.loads(weir_here("sweep", "show", "plan.sweep", *asked, "--json").stdout)["rows"][0]
    assert (shown["runs"], shown["increase_p95_ms_runs"]) == (4, 2)
    assert "up_goodput_mbps_runs" not in shown
    assert "p95 ms runs" in " ".join(weir_here("sweep", "show", "plan.sweep", *asked).stdout.split())
    with_idle = json.loads(weir_here("sweep", "show", "plan.sweep", "--json").stdout)["rows"]
    assert [one["increase_p95_ms_runs"] for one in with_idle] == [0, 2]


def test_a_point_that_was_run_more_often_counts_no_more_than_another() -> None:
    points = [("codel", 5.0, [10.0]), ("codel", 50.0, [40.0] * 9), ("sfq", 5.0, [20.0, 22.0])]
    runs = [(queue, rate, mean) for queue, rate, figures in points for mean in figures]
    schema = ["queue", "rate_mbps", "mean_ms"]
    rows = pl.LazyFrame(runs, schema, orient="row").with_columns(error=pl.lit(None, pl.String))
    found = grouped(rows, ["queue"], ["mean_ms"], points=["queue", "rate_mbps"])
    assert found.rows() == [("codel", 10, 25.0), ("sfq", 2, 21.0)]
    assert grouped(rows, ["rate_mbps"], ["mean_ms"], points=["queue", "rate_mbps"]).rows() == [
        (5.0, 3, 15.5),
        (50.0, 9, 40.0),
    ]


def test_a_column_that_other_plans_made_texts_is_not_written_anew_each_time() -> None:
    rows = pl.DataFrame({"size": [1, 2, 3, None], "size" + sweeping._THERE: ["1", "5", None, None]})
    unlike = sweeping._unlike("size", {"size": pl.String()})
    assert rows.select(unlike).to_series().to_list() == [False, True, True, False]


class _Workers:
    """Stands for worker processes: the first run ends when the second has begun, and the second behind it."""

    late = False
    second_began = threading.Event()
    first_told = threading.Event()

    def __init__(self, *_: Any) -> None:
        self.killed = threading.Event()

    def answer(self, run: Run, traces: Any, limit_s: float) -> Row | None:
        del traces, limit_s
        if run.seed == 1:
            assert self.second_began.wait(10)
            return {"run": run.key, "processor_s": 1.0}
        self.second_began.set()
        assert self.first_told.wait(10)
        return None if self.killed.wait(3 * local.LISTEN_EVERY_S) else {"run": run.key, "processor_s": 1.0}

    def kill(self) -> None:
        self.killed.set()

    def end_if_late(self) -> None:
        """None of its runs is."""

    def end(self) -> str:
        return "the end"


def test_a_budget_that_is_spent_lets_end_what_runs_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "_Worker", _Workers)
    found: list[int] = []

    def told(run: Run, row: Row) -> bool:
        del row
        found.append(run.seed)
        _Workers.first_told.set()
        return False

    runs = sweep_of(plan(["sfq"], repeat=4)).runs
    assert [run.seed for run in runs] == [1, 2, 3, 4]
    run_in_processes(Orders(runs=runs, traces={}, told=told, stop=Stop(), run_limit_s=60), jobs=2)
    assert found == [1, 2]


def test_a_run_that_does_not_end_in_time_is_kept_as_failed(tmp_path: Path) -> None:
    long = {**SCENARIO, "phases": {"idle": "1s", "load": "3000s", "cooldown": "0s"}}
    sweep = {"axes": {"queue": ["sfq"]}, "run_limit": "50ms"}
    outcome = carry_out(plan_of({**long, "sweep": sweep}), store := Store.made(tmp_path / "store"), jobs=1)
    assert (outcome.done, outcome.failed, outcome.left) == (1, 1, 0)
    assert store.scan().collect()["error"].to_list() == [
        "it did not end within 50ms: `sweep.run_limit` is the time of a run"
    ]


def test_runs_that_failed_in_an_earlier_call_are_told_again(
    tmp_path: Path, weir_here: Callable[..., Any]
) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(
        'test = "rrul"\nlink = "cable-20-8"\nphases = { idle = "1s", load = "3000s", cooldown = "0s" }\n'
        '[sweep]\nrun_limit = "50ms"\naxes = { queue = ["sfq", "fq_codel"] }\n'
    )
    first = weir_here("sweep", str(file), "--jobs", "1")
    assert (first.returncode, "2 of 2 runs failed: `weir sweep show" in first.stderr) == (1, True)
    second = weir_here("sweep", str(file))
    assert second.returncode == 1
    assert "0 runs done, 2 were there, of 2" in second.stdout
    assert "2 of 2 runs failed, 2 of them in an earlier call" in second.stderr
    assert "`--retry` does these again" in second.stderr
    said = weir_here("sweep", str(file), "--json")
    told = json.loads(said.stdout)
    assert (said.returncode, told["done"], told["failed"], told["failed_before"]) == (1, 0, 2, 2)
    dry = weir_here("sweep", str(file), "--dry-run")
    assert "2 points, 2 runs, 0 of them to do" in dry.stdout
    assert "2 runs that are there failed: `--retry` does them again" in dry.stderr
    again = json.loads(weir_here("sweep", str(file), "--dry-run", "--retry", "--json").stdout)
    assert (again["missing"], again["failed"]) == (2, 0)


def test_python_warns_of_all_that_the_command_line_tells(tmp_path: Path) -> None:
    scenario: dict[str, Any] = SCENARIO
    with pytest.warns(UserWarning, match="the budget is spent, what ran has ended: 9 runs left"):
        rows = weirlab.sweep(
            scenario, axes={"queue": ["sfq"]}, repeat=10, budget="1ms", store=tmp_path / "budget", jobs=1
        )
    assert rows.collect().height == 1
    until = {"figure": "increase_p95_ms", "amount": 1e-9, "most": 3}
    with pytest.warns(UserWarning, match="1 point did not come to the interval that `until` asks for"):
        weirlab.sweep(
            scenario, axes={"queue": ["sfq"]}, repeat=2, until=until, store=tmp_path / "until", jobs=1
        )
    long = {**scenario, "phases": {"idle": "1s", "load": "3000s", "cooldown": "0s"}}

    def failing(**more: Any) -> None:
        weirlab.sweep(
            long, axes={"queue": ["sfq"]}, run_limit="50ms", store=tmp_path / "failed", jobs=1, **more
        )

    with pytest.warns(UserWarning, match="1 of 1 run failed: the column `error` says why"):
        failing()
    with pytest.warns(UserWarning, match=r"1 of 1 run failed, 1 of them in an earlier call: .*`retry=True`"):
        failing()


def test_an_estimate_is_free_of_what_a_process_loads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three pilot runs, and of the only one, the first takes longer."""
    spent = iter([0.05, 0.002, 0.002] * 2)

    def tried(_: Sweep, run: Run) -> estimating._Tried:
        return estimating._Tried(next(spent), 0.001, run.configuration.volume_bits)

    monkeypatch.setattr(estimating, "_tried", tried)
    many = estimate(sweep_of(plan(["sfq"], repeat=100)), None)
    assert many.processor_s == pytest.approx(100 * 0.003)
    one = estimate(sweep_of(plan(["sfq"])), None)
    assert one.processor_s == pytest.approx(0.003)


def test_a_worker_that_hangs_is_ended_and_its_run_kept_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Row] = []
    runs = sweep_of(plan(["sfq"], repeat=2)).runs
    monkeypatch.setattr(
        local, "WORKER", ["/bin/sh", "-c", 'echo \'{"weir": "x", "build": "x"}\'; exec sleep 600']
    )
    monkeypatch.setattr(local, "version", lambda: "x")
    monkeypatch.setattr(local, "build", lambda: "x")

    def told(run: Run, row: Row) -> bool:
        found.append(row)
        return run.seed != 2

    run_in_processes(Orders(runs=runs, traces={}, told=told, stop=Stop(), run_limit_s=0.2), jobs=1)
    reason = "it did not end within 200ms: `sweep.run_limit` is the time of a run"
    assert [(row["run"], row["error"]) for row in found] == [(run.key, reason) for run in runs]


def test_an_answer_in_the_last_moment_makes_no_later_run_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "WORKER", ["/bin/sh", "-c", "exec sleep 600"])
    worker = local._Worker(PLAIN, Path())

    def answered(run: Run, traces: Any) -> Row:
        del run, traces
        worker.end_if_late()
        assert worker.late
        worker._process.wait()
        return {"run": "x"}

    monkeypatch.setattr(worker, "_answer", answered)
    assert worker.answer(sweep_of(plan()).runs[0], {}, 0.0) == {"run": "x"}
    assert not worker.late
    worker.end_if_late()
    assert not worker.late, "between two runs there is no time that could be up"
    worker.end()


def test_a_look_at_a_store_that_changes_meanwhile_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.made(tmp_path / "store")
    for queue in QUEUES:
        carry_out(plan([queue]), store, jobs=1)
    really, looks = Path.glob, []

    def torn(folder: Path, pattern: str) -> list[Path]:
        found = sorted(really(folder, pattern))
        looks.append(len(found))
        return found[: len(looks) - 1] if pattern == "*.parquet" else found

    monkeypatch.setattr(Path, "glob", torn)
    assert len(store.parts()) == 2


class PanicException(BaseException):
    """As a panic of Rust comes to Python: by no `except Exception`."""


@pytest.mark.parametrize("fault", [ValueError, PanicException])
def test_a_run_that_fails_is_kept_with_its_reason_and_stops_no_other(
    fault: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = ping_figures

    def broken(record: Record, *, of_probes: bool) -> PingFigures:
        if record.manifest.queue == "fq_codel":
            raise fault("no figure today")
        return really(record, of_probes=of_probes)

    monkeypatch.setattr(work, "ping_figures", broken)
    store = Store.made(tmp_path / "store")
    outcome = carry_out(plan(["fq_codel", "sfq"]), store, jobs=1)
    assert (outcome.done, outcome.failed) == (2, 1)
    rows = rows_of(sweep_of(plan(["fq_codel", "sfq"])), store).collect()
    assert rows["error"].to_list() == [f"{fault.__name__}: no figure today", None]
    assert rows["up_goodput_mbps"].is_null().to_list() == [True, False]
    # It counts as done until it is asked for again; the row without an error is the one that counts.
    monkeypatch.setattr(work, "ping_figures", really)
    assert carry_out(plan(["fq_codel", "sfq"]), store, jobs=1).done == 0
    assert carry_out(plan(["fq_codel", "sfq"]), store, jobs=1, retry=True).done == 1
    assert store.scan().collect()["error"].is_null().all()


def test_parts_appear_whole_and_are_joined_without_loss(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "store")
    for queue in ("pfifo_fast", "fq_codel", "sfq"):
        carry_out(plan([queue]), store, jobs=1)
    before = store.scan().collect().sort("run")
    (store.path / "runs" / ".half.part").write_bytes(b"PAR1 half a file")
    assert store.compact() == (3, 3)
    assert len(store.parts()) == 1
    assert store.scan().collect().sort("run").equals(before, null_equal=True)
    manifest = json.loads((store.path / "manifest.json").read_text())
    assert [part["rows"] for part in manifest["parts"]] == [3]
    assert len(manifest["plans"]) == 3
    # Any reader of Parquet reads it as it is.
    assert pl.read_parquet(store.path / "runs" / "*.parquet").height == 3


def test_what_is_written_while_parts_are_joined_is_the_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.made(tmp_path / "store")
    axis = {"rate": pl.Float64}
    for key in ("a", "b"):
        store.append([{"run": key}], {})
    before = store.parts()
    really = Store._read

    def read(self: Store) -> tuple[list[str], pl.DataFrame]:
        found = really(self)
        monkeypatch.setattr(Store, "_read", really)
        self.append([{"run": "a", "rate": 5.0}, {"run": "c", "rate": 6.0}], axis)
        return found

    monkeypatch.setattr(Store, "_read", read)
    assert store.compact() == (2, 2)
    assert set(before).isdisjoint(store.parts())
    assert len(store.parts()) == 2
    found = store.scan().select("run", "rate").sort("run").collect()
    assert found.rows() == [("a", 5.0), ("b", None), ("c", 6.0)]


def test_an_estimate_takes_the_bytes_of_a_row_from_the_store(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "store")
    asked = sweep_of(plan(repeat=3))
    guessed = estimate(asked, store).bytes
    assert guessed == 6 * ROW_BYTES
    store.append(
        [{"run": f"{number:032x}", "warnings": f"{number * 7919}" * 99} for number in range(200)], {}
    )
    size = (store.path / store.parts()[0]).stat().st_size
    assert estimate(asked, store).bytes == round(6 * size / 200) != guessed


def test_a_manifest_that_is_lost_is_made_again(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "store")
    carry_out(plan(), store, jobs=1)
    written = (store.path / "manifest.json").read_bytes()
    (store.path / "manifest.json").unlink()
    Store.opened(store.path).write_manifest()
    assert (store.path / "manifest.json").read_bytes() == written


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "store")

    def write(writer: int) -> None:
        for number in range(5):
            key = f"{writer:016x}{number:016x}"
            store.append([{"run": key, "seed": number, "rate": float(writer)}], {"rate": pl.Float64})
            if number == 2:
                store.compact()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.scan().collect().height == 5 * len(threads)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is no store of a sweep"):
        Store.opened(tmp_path)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match=r"letter\.txt` is no folder: a store is a folder"):
        Store.opened(tmp_path / "letter.txt")
    with pytest.raises(UsageError, match="holds something else"):
        Store.made(tmp_path)
    with pytest.raises(UsageError, match="is no folder"):
        Store.made(tmp_path / "letter.txt")
    store = Store.made(tmp_path / "store")
    (store.path / "manifest.json").write_text('{"kind": "weir sweep", "format": 99}')
    with pytest.raises(RecordError, match="has format 99"):
        Store.opened(store.path)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "store")
    (store.path / "runs" / "part-1.parquet").write_bytes(b"PAR1 no such thing")
    with pytest.raises(RecordError, match=r"part-1\.parquet` is damaged"):
        store.scan()
    pl.DataFrame({"x": [1]}).write_parquet(store.path / "runs" / "part-1.parquet")
    with pytest.raises(RecordError, match="no part of a store"):
        store.scan()


def test_an_axis_cannot_have_the_name_of_a_column() -> None:
    axis = {"key": "phases.load", "values": ["1s"], "labels": ["short"]}
    with pytest.raises(UsageError, match="every store has a column `host`"):
        plan_of({**SCENARIO, "sweep": {"axes": {"host": axis}}})
    assert set(IDENTITY).isdisjoint(FIGURES)


def test_an_estimate_counts_what_is_missing(tmp_path: Path) -> None:
    found = estimate(sweep_of(plan(repeat=3)), None)
    assert (found.points, found.runs, found.missing, found.simulated_s) == (2, 6, 6, 9.0)
    assert found.processor_s is not None
    assert found.processor_s > 0
    store = Store.made(tmp_path / "store")
    carry_out(plan(), store, jobs=1)
    assert estimate(sweep_of(plan(repeat=3)), store).missing == 4
    carry_out(plan(repeat=3), store, jobs=1)
    done = estimate(sweep_of(plan(repeat=3)), store)
    assert (done.missing, done.processor_s, done.bytes) == (0, 0.0, 0)


PLAN = """
test = "tcp_upload"
link = "cable-20-8"
phases = { idle = "500ms", load = "1s", cooldown = "0s" }
[sweep]
repeat = 2
[sweep.axes]
queue = ["pfifo_fast", "fq_codel"]
rate = { key = "link.up.modem.rate", from = "4mbit", to = "16mbit", steps = 3, scale = "log" }
"""


def test_points_of_one_scenario_are_told_to_run_once(
    weir_here: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    axis = '[sweep.axes]\ncc = ["bbr", "cubic", "reno"]\n'
    (tmp_path / "plan.toml").write_text(f'test = "ping"\nlink = "cable-20-8"\n[sweep]\nrepeat = 2\n{axis}')
    dry = weir_here("sweep", "plan.toml", "--dry-run")
    assert dry.stdout.startswith("3 points, 2 runs, ")
    assert dry.stderr == "2 points of 3 come to the same scenario as another: it runs once\n"


def test_a_terminal_is_shown_that_points_are_resolved(
    weir: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    assert "resolving" not in weir("sweep", "plan.toml", "--dry-run").stderr
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = weir("sweep", "plan.toml", "--dry-run").stderr
    assert "resolving points" in shown
    assert "estimating" in shown
    assert "resolving" not in weir("sweep", "plan.toml", "--dry-run", "--json").stderr


def test_the_command_runs_shows_and_joins(
    weir_here: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    dry = weir_here("sweep", "plan.toml", "--dry-run")
    assert dry.stdout.startswith("6 points, 12 runs, 12 of them to do\nabout ")
    assert not (tmp_path / "plan.sweep").exists()
    done = weir_here("sweep", "plan.toml", "--jobs", "1")
    assert done.stdout == "12 runs done, of 12, in plan.sweep\n"
    again = weir_here("sweep", "plan.toml", "--jobs", "1", "--json")
    assert json.loads(again.stdout)["kept"] == 12
    # What is said twice counts once.
    twice = [*("--by", "queue") * 2, *("--figure", "up_goodput_mbps") * 2]
    shown = weir_here("sweep", "show", "plan.sweep", *twice, "--json")
    rows = json.loads(shown.stdout)
    assert rows["axes"] == ["queue", "rate_mbps"]
    assert [(one["queue"], one["runs"]) for one in rows["rows"]] == [("fq_codel", 6), ("pfifo_fast", 6)]
    table = weir_here("sweep", "show", "plan.sweep").stdout
    assert "6 points in plan.sweep" in table
    refused = weir_here("sweep", "show", "plan.sweep", "--figure", "colour")
    assert refused.returncode == 2
    assert "no column `colour` in `plan.sweep` (known: run, world" in refused.stderr
    assert weir_here("sweep", "compact", "plan.sweep").stderr.startswith("12 rows of ")
    assert weir_here("sweep", "show", "nowhere").returncode == 3


def test_a_store_whose_name_is_not_utf_8_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a store has a name in UTF-8"):
        place_of(tmp_path / "\udcff")
