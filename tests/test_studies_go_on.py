"""Studies are sweeps: one that was interrupted goes on, in processes or on a cluster, to the same results."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

from weirlab.errors import Interrupted, UsageError, WeirError
from weirlab.interrupt import Stop
from weirlab.sweeps import local, sweeping
from weirlab.sweeps.runs import Work, study_key
from weirstudies import running
from weirstudies.command import by_label
from weirstudies.linux import study as linux
from weirstudies.linux.command import command
from weirstudies.running import Manner, manner, records_of, reduced

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun

pytestmark = pytest.mark.realtime

OF = linux.reference()


def runs(seeds: int = 2) -> list[ResolvedRun]:
    chosen = linux.chosen(["A_codel", "A_fq_codel"], of=OF)
    return [
        run
        for one in chosen
        for run in linux.runs_of(one, OF.families[one.family], seeds=seeds, duration_ns=1_000_000_000)
    ]


def length(record: Record, run: ResolvedRun) -> dict[str, Any]:
    return {"pings": record.pings.height, "name": run.queue, "seed": run.seed}


def refused(record: Record, run: ResolvedRun) -> None:
    del record
    raise UsageError(f"nothing comes of seed {run.seed}")


LENGTH = f"{__name__}:length"


@pytest.fixture
def interrupted_after(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has the next call be told to stop after so many runs, as Ctrl-C does."""

    def arrange(count: int) -> None:
        really = local.run_here

        def run_here(orders: local.Orders) -> None:
            monkeypatch.setattr(sweeping, "run_here", really)
            told, stop = orders.told, orders.stop
            assert isinstance(stop, Stop)

            def heard(run: Any, row: Any) -> bool:
                nonlocal count
                count -= 1
                stop.told = count == 0
                return told(run, row)

            really(replace(orders, told=heard))

        monkeypatch.setattr(sweeping, "run_here", run_here)

    return arrange


def test_a_study_that_was_interrupted_goes_on_on_a_cluster_to_the_same_records(
    tmp_path: Path, interrupted_after: Any
) -> None:
    pytest.importorskip("distributed")
    whole = records_of(runs(), "sim", Manner(folder=tmp_path / "whole", jobs=1, quiet=True))
    assert [record.label for record in whole] == ["A_codel"] * 2 + ["A_fq_codel"] * 2
    interrupted_after(2)
    out = tmp_path / "cut"
    with pytest.raises(Interrupted, match=f"the same command goes on with what is in `{out}`"):
        records_of(runs(), "sim", Manner(folder=out, goes_on=True, jobs=1, quiet=True))
    there = Manner(folder=out).store.collected()
    assert there.height == 2
    with manner(out, jobs=None, scheduler=None, cluster=1, quiet=True) as how:
        records = records_of(runs(), "sim", how)
    rows = how.store.collected()
    assert (rows.height, set(there["finished_at"]) <= set(rows["finished_at"])) == (4, True)
    for ours, theirs in zip(records, whole, strict=True):
        assert (ours.label, ours.manifest.seed) == (theirs.label, theirs.manifest.seed)
        for table in ("latency", "throughput", "queue", "flows"):
            assert_frame_equal(getattr(ours, table), getattr(theirs, table), check_exact=True)
    results = [
        linux.result(one, OF.families[one.family], by_label(found)[one.name]).as_dict()
        for found in (records, whole)
        for one in linux.chosen(["A_codel"], of=OF)
    ]
    assert json.dumps(results[0]) == json.dumps(results[1])


def test_what_a_study_makes_of_records_is_kept_in_place_of_them(tmp_path: Path) -> None:
    how = Manner(folder=tmp_path, goes_on=True, jobs=1, quiet=True)
    found = reduced(runs(), "sim", LENGTH, how)
    assert [(one["name"], one["seed"]) for one in found] == [
        ("A_codel", 1),
        ("A_codel", 2),
        ("A_fq_codel", 1),
        ("A_fq_codel", 2),
    ]
    assert all(one["pings"] > 5 for one in found)
    assert how.store.samples() == set()
    finished = set(how.store.collected()["finished_at"])
    assert reduced(runs(), "sim", LENGTH, how) == found
    assert set(how.store.collected()["finished_at"]) == finished
    # What is made of a record, and what a study calls its run, are parts of which run it is.
    one = runs()[0]
    keys = {study_key(one, work) for work in (Work(), Work(reduction=LENGTH), Work(world="lab"))}
    assert len(keys) == 3


def test_a_run_that_fails_ends_the_study_with_its_reason_and_is_done_again(tmp_path: Path) -> None:
    how = Manner(folder=tmp_path, goes_on=True, jobs=1, quiet=True)
    with pytest.raises(WeirError, match=r"^4 of 4 runs failed: `A_codel`: nothing comes of seed 1$"):
        reduced(runs(), "sim", f"{__name__}:refused", how)
    with pytest.raises(WeirError, match=r"no_such:thing` is not here, which reduces a record"):
        reduced(runs(1), "sim", "no_such:thing", how)
    assert running.STORE == "runs.sweep"


def test_a_command_goes_on_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = OF.families["A"].model_copy(update={"duration": 1_000_000_000})
    short = OF.model_copy(update={"families": {**OF.families, "A": family}})
    monkeypatch.setattr(linux, "reference", lambda: short)
    words = ["--only", "A_codel", "--json", "--jobs", "1", "--out", str(tmp_path / "o")]
    first = CliRunner().invoke(command, [*words, "--repeat", "1"], standalone_mode=False)
    again = CliRunner().invoke(command, [*words, "--repeat", "2"], standalone_mode=False)
    assert (first.exception, again.exception) == (None, None)
    assert (json.loads(first.stdout)[0]["seeds"], json.loads(again.stdout)[0]["seeds"]) == (1, 2)
    assert Manner(folder=tmp_path / "o").store.collected().height == 2
    both = [*words, "--cluster", "1"]
    refusal = CliRunner().invoke(command, both, standalone_mode=False).exception
    assert isinstance(refusal, UsageError)
    assert "cluster and jobs exclude each other" in str(refusal)
