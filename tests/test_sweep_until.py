"""Sweeps that repeat until intervals are small enough, and that keep raw samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weirlab
from weirlab.errors import RecordError, UsageError
from weirlab.sweeps import sweeping, until
from weirlab.sweeps.estimate import estimate
from weirlab.sweeps.plan import plan_of
from weirlab.sweeps.runs import sweep_of
from weirlab.sweeps.store import Store
from weirlab.viewer.repeat import repeat_of

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.sweeps.sweeping import Outcome

SCENARIO = {
    "test": "rrul",
    "link": "cable-20-8",
    "phases": {"idle": "500ms", "load": "1s", "cooldown": "500ms"},
}


def plan(queues: list[str], **sweep: Any) -> Any:
    return plan_of({**SCENARIO, "sweep": {"axes": {"queue": queues}, **sweep}})


def carry_out(asked: Any, store: Store, jobs: int = 1) -> Outcome:
    return sweeping.carry_out(sweep_of(asked), store, jobs=jobs)


def test_points_are_looked_at_after_the_same_numbers_of_runs() -> None:
    assert until.counts(3, 20) == [3, 6, 12, 20]
    assert until.counts(5, 5) == [5]


def test_a_point_is_repeated_until_its_interval_is_small_and_no_other(tmp_path: Path) -> None:
    """Of the figures that stand in the store already, one point's scatter and one's do not."""
    said = {"figure": "loaded_mean_ms", "amount": 1.0, "most": 8}
    asked = plan(["pfifo_fast", "fq_codel"], repeat=2, until=said)
    sweep = sweep_of(asked)
    assert len(sweep.runs) == 16
    store = Store.made(tmp_path / "store")
    calm, restless = sweep.runs[0].configuration, sweep.runs[1].configuration
    # Its first look has runs 10 ms apart, its second ones all alike but for these: half an interval of 8 ms.
    values = {id(calm): [5.0, 5.1] * 4, id(restless): [0.0, 10.0, *[5.0] * 6]}
    store.append(
        [
            {"run": run.key, "seed": run.seed, "loaded_mean_ms": values[id(run.configuration)][run.seed - 1]}
            for run in sweep.runs
        ],
        {},
    )
    looks = [[(run.configuration is calm, run.seed) for run in runs] for runs in until.looks(sweep, store)]
    assert until.unsettled(sweep, store) == 1
    assert looks == [
        [(True, 1), (False, 1), (True, 2), (False, 2)],
        [(False, 3), (False, 4)],
        [(False, 5), (False, 6), (False, 7), (False, 8)],
    ]


def test_a_figure_that_is_the_same_in_a_few_runs_is_not_known_yet(tmp_path: Path) -> None:
    """Twice no loss, or the same number of segments, may be chance; six that are the same are not."""
    asked = plan(["fq_codel"], repeat=2, until={"figure": "loaded_mean_ms", "amount": 1.0, "most": 32})
    sweep = sweep_of(asked)
    store = Store.made(tmp_path / "store")
    rows = [{"run": run.key, "seed": run.seed, "loaded_mean_ms": 5.0} for run in sweep.runs]
    store.append(rows, {})
    assert [[run.seed for run in runs] for runs in until.looks(sweep, store)][:4] == [
        [1, 2],
        [3, 4],
        [5, 6, 7, 8],
        [],
    ]


def test_an_interrupted_sweep_and_another_number_of_workers_come_to_the_same_runs(tmp_path: Path) -> None:
    # Never small enough: each point has the most runs.
    said = {"figure": "increase_p95_ms", "share": 1e-9, "most": 5}
    wanted = plan(["pfifo_fast", "sfq"], repeat=2, until=said)
    whole = Store.made(tmp_path / "whole")
    outcome = carry_out(wanted, whole)
    assert (outcome.runs, outcome.done, outcome.left, outcome.unsettled) == (10, 10, 0, 2)
    assert estimate(sweep_of(wanted), None).at_most
    short = Store.made(tmp_path / "short")
    spent = carry_out(plan(["pfifo_fast", "sfq"], repeat=2, until=said, budget="1ms"), short)
    assert (spent.done, spent.unsettled) == (1, None)
    rest = carry_out(wanted, short)
    assert (rest.runs, rest.kept + rest.done) == (10, 10)
    ours, theirs = (one.collected().sort("run").select("run", "increase_p95_ms") for one in (short, whole))
    assert_frame_equal(ours, theirs, check_exact=True)


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ({"until": {"figure": "queue", "share": 0.1, "most": 5}, "repeat": 2}, "no figure `queue`"),
        ({"until": {"figure": "up_goodput_mbps", "most": 5}, "repeat": 2}, "`share`, `amount` or both"),
        ({"until": {"figure": "up_goodput_mbps", "share": 0.1, "most": 5}}, "takes 2 runs or more"),
        (
            {"until": {"figure": "up_goodput_mbps", "share": 0.1, "most": 5}, "repeat": 6},
            "fewer than `repeat`",
        ),
        ({"samples": ["lunch"]}, "no phase `lunch` (known: idle, load, cooldown, or `all`)"),
    ],
)
def test_what_cannot_be_is_told(sweep: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        sweep_of(plan(["sfq"], **sweep))
    assert says in str(error.value)


def test_raw_samples_are_kept_of_all_of_some_phases_or_of_none(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "store")
    load = plan(["sfq"], samples=["load"])
    key = sweep_of(load).runs[0].key
    assert carry_out(plan(["sfq"]), store).done == 1
    assert store.samples() == set()
    with pytest.raises(RecordError, match=r"has no raw samples `samples/.*\.load\.weir`"):
        store.record(key, ["load"])
    # The row is there and the samples are not: the run is made again.
    assert carry_out(load, store).done == 1
    assert carry_out(load, store).done == 0
    part = store.record(key, ["load"])
    part.check()
    assert part.manifest.warnings == ["samples of the phase load alone are kept"]
    assert part.pings["t_ns"].is_between(500_000_000, 1_500_000_000, closed="left").all()
    assert carry_out(plan(["sfq"], samples="all"), store).done == 1
    whole = store.record(key)
    assert repeat_of(whole).text == repeat_of(part).text
    assert "--queue sfq" in str(repeat_of(whole).text)
    [told] = weirlab.run("rrul", queue="sfq", phases=SCENARIO["phases"])  # type: ignore[arg-type]
    for table in ("latency", "throughput", "queue", "tcp", "flows"):
        assert_frame_equal(getattr(whole, table), getattr(told, table), check_exact=True)
    assert 0 < part.pings.height < whole.pings.height
    # What has all has those of a phase.
    assert carry_out(plan(["sfq"], samples=["idle"]), store).done == 0
    rows = store.collected()
    assert (rows.height, rows["warnings"].to_list()) == (1, [""])


def test_samples_of_the_load_have_all_of_its_intervals_and_give_the_figures_of_the_row(
    tmp_path: Path,
) -> None:
    store = Store.made(tmp_path / "store")
    asked = plan(["htb rate 95% fq_codel"], samples=["load"], repeat=2)
    carry_out(asked, store)
    for run in sweep_of(asked).runs:
        part = store.record(run.key, ["load"])
        for times, table in ((part.throughput["t_ns"], "throughput"), (part.queue["t_ns"], "queue")):
            interval = part.interval_ns("queue" if table == "queue" else "throughput")
            assert (times.min(), times.max()) == (500_000_000 + interval, 1_500_000_000), table
        [row] = store.collected().filter(pl.col("run") == run.key).to_dicts()
        found = weirlab.frame([part]).to_dicts()[0]
        for figure in ("down_goodput_mbps", "up_goodput_mbps", "down_utilisation", "up_utilisation"):
            assert found[figure] == row[figure], figure
        assert found["loaded_p95_ms"] == row["loaded_p95_ms"]


def test_samples_of_a_phase_take_less_room_than_all(tmp_path: Path) -> None:
    sizes = {}
    for samples in ("load", "all"):
        store = Store.made(tmp_path / samples)
        asked = plan(["pfifo_fast", "fq_codel"], samples=samples if samples == "all" else [samples])
        carry_out(asked, store)
        sizes[samples] = sum((store.path / "samples" / name).stat().st_size for name in store.samples())
    assert sizes["load"] < sizes["all"]


def test_raw_samples_of_worker_processes_are_those_of_one_process(tmp_path: Path) -> None:
    stores = {}
    for jobs in (1, 2):
        store = stores[jobs] = Store.made(tmp_path / f"store-{jobs}")
        assert carry_out(plan(["sfq", "fq_codel"], samples="all"), store, jobs).failed == 0
    assert stores[1].samples() == stores[2].samples()
    for name in stores[1].samples():
        ours, theirs = (one.record(name.removesuffix(".weir")) for one in stores.values())
        assert_frame_equal(ours.latency, theirs.latency, check_exact=True)


def test_bytes_of_raw_samples_are_estimated(tmp_path: Path) -> None:
    asked = sweep_of(plan(["sfq", "fq_codel"], samples="all"))
    store = Store.made(tmp_path / "store")
    expected = estimate(asked, store).bytes
    sweeping.carry_out(asked, store, jobs=1)
    taken = sum((store.path / "samples" / name).stat().st_size for name in store.samples())
    assert 0.5 * taken < expected < 2 * taken
    for phase in ("idle", "load"):
        some = sweep_of(plan(["sfq", "fq_codel"], samples=[phase]))
        store = Store.made(tmp_path / phase)
        expected = estimate(some, store).bytes
        sweeping.carry_out(some, store, jobs=1)
        taken = sum((store.path / "samples" / name).stat().st_size for name in store.samples())
        assert 0.8 * taken < expected < 1.25 * taken, phase
    without = estimate(sweep_of(plan(["sfq", "fq_codel"])), None).bytes
    assert without < expected / 5
    assert pl.read_parquet(store.path / "runs" / "*.parquet").height == 2
