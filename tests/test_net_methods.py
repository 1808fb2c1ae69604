"""Foreign speed tests with our own pings beside them: the record ends when the test does, and says so."""

from __future__ import annotations

import html
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from serving import serving
from weirlab.errors import NetError
from weirlab.net.methods import ALONE, kept_run, run_alone, run_beside
from weirlab.net.plan import TestPlan, plan_test
from weirlab.record import configurations, open_record
from weirlab.report import cut_short, latency_table
from weirlab.report.differences import unrepeated
from weirlab.scenario import ScenarioSpec, check, resolve
from weirlab.scores import truth_of, verdict_of_truth
from weirlab.stats import compare, summarise
from weirlab.viewer import report_page
from weirlab.viewer.repeat import TEST_TITLE, repeat_of
from weirlab.viewer.words import record_says, summary_of
from weirlab.worlds.net import NetWorld, path_to

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import MethodResult, Record

pytestmark = pytest.mark.realtime

RESULT: dict[str, Any] = {"method": "librespeed", "formula": "its own", "download_mbps": 20.0, "failures": []}


def beside(folder: Path, **change: Any) -> Record:
    """The record of a speed test of a second."""

    def work() -> MethodResult:
        time.sleep(1)
        return cast("MethodResult", RESULT | change)

    with serving() as server:
        run_beside(NetWorld(server.address), kept_run(server.address), folder, work)
    return open_record(folder)


def test_the_record_of_a_speed_test_ends_when_it_does(tmp_path: Path) -> None:
    record = beside(tmp_path / "run")
    (test,) = record.methods.iter_rows(named=True)
    assert record.manifest.complete
    assert cut_short(record) is None
    idle, load = record.manifest.scenario["phases"]
    assert (idle["name"], load["name"]) == ("idle", "load")
    assert load["end_ns"] == min(test["ended_ns"], record.reached_ns)
    assert record.manifest.scenario["duration_ns"] == record.reached_ns
    assert record.manifest.scenario["probes"][0]["stop_ns"] == record.reached_ns
    record.check()
    summary = summarise(record)
    assert latency_table(summary).title == "Round trips during the load, ms"
    (comparison,) = compare([record])
    assert comparison.loaded_ms is not None
    said = " ".join([*summary_of(record), *record_says(record).values()])
    assert "under load" in said


def test_what_our_own_pings_saw_is_told_again(tmp_path: Path, weir_here: Any) -> None:
    """`weir show` and the page tell what the command told, and how to repeat it."""
    record = beside(tmp_path / "run")
    seen = truth_of(record)
    said = verdict_of_truth(seen)
    assert seen is not None
    assert said is not None
    assert seen.idle.count + seen.during.count + seen.lost == record.latency.height
    shown = " ".join(weir_here("show", str(record.path)).stdout.split())
    assert said.says in shown
    assert "our own pings during it" in shown
    page = report_page([record])
    assert html.escape(said.says) in page
    assert "our own pings before it" in page
    server = record.manifest.link["title"].removeprefix("path to ")
    assert repeat_of(record).text == f"weir test {server} --method librespeed --truth"


def test_how_a_speed_test_is_repeated_is_told_by_what_ran_it(tmp_path: Path) -> None:
    """One that a scenario has is repeated with its scenario."""
    both = [beside(tmp_path / "run"), open_record(tmp_path / "run")]
    other = both[1].manifest
    both[1].manifest = replace(other, link=other.link | {"title": "path to another"})
    (told,) = unrepeated(both, compare(both))
    assert told.endswith("needs repetitions (several `weir test` with the same `--note`)")
    for record in both:
        methods = [{"name": "Speed test", "kind": "http", "start_ns": 0, "stop_ns": None}]
        record.manifest = replace(record.manifest, scenario=record.manifest.scenario | {"methods": methods})
    (told,) = unrepeated(both, compare(both))
    assert told.endswith("needs repetitions (`--repeat 10`)")


def on_its_own(folder: Path, method: str, host: str = "server.example", note: str = "") -> Record:
    """The record of a speed test that was not measured beside."""
    run_alone(kept_run(host), folder, lambda: cast("MethodResult", RESULT | {"method": method}))
    record = open_record(folder)
    record.manifest = replace(record.manifest, note=note)
    return record


def test_the_same_speed_test_several_times_is_repetitions(tmp_path: Path) -> None:
    """How long one takes is found by itself; its server, its kind and its note are what was asked."""
    first, again, other = (
        beside(tmp_path / name, method=method)
        for name, method in (("first", "librespeed"), ("again", "librespeed"), ("other", "ookla"))
    )
    path = first.manifest.link["title"]
    for record in (again, other):
        assert record.manifest.scenario["phases"] != first.manifest.scenario["phases"]
        record.manifest = replace(record.manifest, link=record.manifest.link | {"title": path})
    # What was changed on the line between two of them no record tells.
    assert [len(one.records) for one in configurations([first, again, other])] == [1, 1, 1]
    for record in (first, again, other):
        record.manifest = replace(record.manifest, note="as it is")
    assert [(one.name, len(one.records)) for one in configurations([first, again, other])] == [
        ("speed test librespeed", 2),
        ("speed test ookla", 1),
    ]
    assert [one.loaded_ms.count for one in compare([first, again]) if one.loaded_ms] == [2]
    usual = "as it is"
    alone = [on_its_own(tmp_path / f"alone {number}", "librespeed", note=usual) for number in range(2)]
    asked = [
        on_its_own(tmp_path / "kind", "ookla", note=usual),
        on_its_own(tmp_path / "host", "librespeed", "another.example", note=usual),
        on_its_own(tmp_path / "note", "librespeed", note="with a shaper"),
    ]
    assert [len(one.records) for one in configurations([*alone, *asked])] == [2, 1, 1, 1]
    assert [len(one.records) for one in configurations([first, alone[0]])] == [1, 1]
    assert not any("load" in one.name.split() for one in configurations([first, alone[0]]))


def test_that_of_a_speed_test_alone_is_repeated_by_its_own_command(tmp_path: Path) -> None:
    run = kept_run("server.example")
    run_alone(run, tmp_path / "run", lambda: cast("MethodResult", RESULT))
    record = open_record(tmp_path / "run")
    assert truth_of(record) is None
    assert repeat_of(record).text == "weir test server.example --method librespeed"


def test_a_test_that_has_no_load_or_result_yet_is_told_by_its_phases(tmp_path: Path) -> None:
    planned = plan_test("server.example", ALONE).run
    assert planned.test.title == TEST_TITLE
    record = beside(tmp_path / "run", download_mbps=None)
    server = record.manifest.link["title"].removeprefix("path to ")
    assert repeat_of(record).text == f"weir test {server} --method METHOD --truth"
    phases = planned.scenario["phases"]
    record.manifest = replace(record.manifest, scenario=record.manifest.scenario | {"phases": phases})
    assert repeat_of(record).text == f"weir test {server} --idle 3s --load 200s --seed 1"
    assert "An earlier version wrote the record" in repeat_of(record).says
    record.manifest = replace(record.manifest, test=record.manifest.test | {"title": "RRUL"})
    assert repeat_of(record).text == f"weir run TEST --world net --host {server}"
    unnamed = record.manifest.link | {"title": "a path"}
    record.manifest = replace(record.manifest, link=unnamed)
    assert repeat_of(record).text == "weir run TEST --world net --host HOST"
    assert "HOST stands for the server, which it does not name" in repeat_of(record).says


def test_a_test_of_a_line_is_repeated_with_its_server_and_all_that_it_was_asked_for(tmp_path: Path) -> None:
    plan = TestPlan(idle="1s", load="3s", ping="20ms", max_flows=3, cc="reno", seed=7, locate=False)
    with serving("--max-rate", "20mbit") as server:
        planned = plan_test(server.address, plan)
        NetWorld(server.address).measure(
            planned.run, tmp_path / "run", None, ramp=planned.ramp, said=planned.said
        )
    how = repeat_of(open_record(tmp_path / "run"))
    asked = "--idle 1s --load 3s --ping 20ms --max-flows 3 --cc reno --seed 7"
    assert how.text == f"weir test {server.address} {asked}"
    assert "--auth" in how.says
    assert "does not name" not in how.says


def test_a_scenario_over_a_real_path_is_repeated_with_its_server(tmp_path: Path) -> None:
    words = {"test": "tcp_upload", "phases": {"idle": "1s", "load": "1s", "cooldown": "0s"}, "seed": 3}
    with serving("--max-rate", "20mbit") as server:
        (run,) = resolve(check(ScenarioSpec, words | {"link": path_to(server.address), "cc": "reno"}, "test"))
        NetWorld(server.address).run(run, tmp_path / "run", None)
    asked = "--cc reno --idle 1s --load 1s --cooldown 0s --seed 3"
    expected = f"weir run tcp_upload {asked} --world net --host {server.address}"
    found = repeat_of(open_record(tmp_path / "run")).text
    assert found is not None
    assert sorted(found.split()) == sorted(expected.split())
    assert found.startswith("weir run tcp_upload ")


@pytest.mark.parametrize("figures", [True, False])
def test_that_of_a_speed_test_that_failed_was_cut_short(tmp_path: Path, figures: bool) -> None:
    failed = {"failures": ["the server went away"]} | ({} if figures else {"download_mbps": None})
    record = beside(tmp_path / "run", **failed)
    assert not record.manifest.complete
    assert record.manifest.scenario["phases"][1]["end_ns"] <= record.reached_ns


def test_that_of_one_that_was_given_up_was_cut_short(tmp_path: Path) -> None:
    def work() -> MethodResult:
        raise NetError("no answer")

    with serving() as server, pytest.raises(NetError, match="no answer"):
        run_beside(NetWorld(server.address), kept_run(server.address), tmp_path / "run", work)
    assert not open_record(tmp_path / "run").manifest.complete
