"""Records are written as data files of Flent, and read again."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from flent_files import document, imported
from weirlab.cli import weir as group
from weirlab.errors import RecordError, UsageError
from weirlab.export import export
from weirlab.flent import import_flent, read_document
from weirlab.flent.exporting import flent_document
from weirlab.flent.points import aligned, means
from weirlab.flent.tests import flent_tests
from weirlab.record import open_record, reader
from weirlab.scenario import shipped_tests
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


def test_what_is_written_is_read_again(rrul: list[Record], tmp_path: Path) -> None:
    for number, record in enumerate(rrul):
        (file,) = export([record], tmp_path / f"{number}.flent.gz")
        again = import_flent(file, tmp_path / str(number))
        ours, theirs = summarise(record), summarise(again)
        assert theirs.latency.loaded == ours.latency.loaded
        assert theirs.latency.idle == ours.latency.idle
        assert theirs.latency.lost == ours.latency.lost
        for way in ("up", "down"):
            mbps = getattr(theirs, way).per_flow_mbps
            assert mbps == pytest.approx(getattr(ours, way).per_flow_mbps, rel=0.02)


def test_one_way_delays_of_one_clock_are_read_again(tmp_path: Path) -> None:
    """Those of pings whose answer was lost too: they tell on which way it was."""
    phases = {"idle": "1s", "load": "5s", "cooldown": "0s"}
    lossy = {
        "name": "line",
        "loss": {"model": "random", "probability": 0.05},
        "delay": "5ms",
        "rate": "20mbit",
    }
    link = {"name": "lossy", "title": "Lossy", "up": [lossy], "down": [lossy]}
    (record,) = weirlab.run("rrul", link=link, phases=phases, out=tmp_path / "out")
    told = []
    for name in ("first", "second", "third"):
        (file,) = export([record], tmp_path / f"{name}.flent.gz")
        points = read_document(file).raw_values["Ping (ms) UDP BE"]
        told.append([{key: value for key, value in one.items() if key != "t"} for one in points])
        record = import_flent(file, tmp_path / name)
        rows = record.latency.drop_nulls("rtt_ns")
        assert rows["server_received_ns"].null_count() == rows.height
    assert told[0] == told[1] == told[2]
    lost = [point for point in told[0] if point.get("lost")]
    assert {point["lost_dir"] for point in lost} == {"up", "down"}
    assert all(("owd_up" in point) == (point["lost_dir"] == "down") for point in lost)
    answered = [point for point in told[0] if "val" in point]
    ways = [point["owd_up"] + point["owd_down"] for point in answered]
    assert ways == pytest.approx([point["val"] for point in answered])


@pytest.fixture
def uneven(tmp_path: Path) -> Record:
    """A run that idles longer before its load than behind it, which Flent's own tests never do."""
    phases = {"idle": "3s", "load": "4s", "cooldown": "1s"}
    return weirlab.run("rrul_be", link="cable-20-8", phases=phases, out=tmp_path / "out")[0]


def test_an_export_says_where_its_phases_are(uneven: Record, tmp_path: Path) -> None:
    (file,) = export([uneven], tmp_path / "a.flent.gz")
    again = import_flent(file, tmp_path / "again")
    (second,) = export([again], tmp_path / "b.flent.gz")
    for one in (again, import_flent(second, tmp_path / "twice")):
        assert one.manifest.complete
        assert one.reached_ns == uneven.reached_ns
        for name in ("idle", "load", "cooldown"):
            assert one.phase(name) == uneven.phase(name)
        assert summarise(one).latency == summarise(uneven).latency
    told = read_document(file)
    assert (told.length_s, told.total_s) == (4, 8)


def test_an_export_says_how_far_a_run_got(uneven: Record, tmp_path: Path) -> None:
    manifest = uneven.path / "manifest.json"
    content = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps(content | {"complete": False, "reached_ns": 5_000_000_000}), "utf-8")
    (file,) = export([open_record(uneven.path)], tmp_path / "a.flent.gz")
    told = read_document(file)
    assert (told.length_s, told.total_s) == (2, 5)
    again = import_flent(file, tmp_path / "again")
    assert not again.manifest.complete
    assert again.manifest.scenario["phases"] == uneven.manifest.scenario["phases"]
    assert summarise(again).latency.idle == summarise(uneven).latency.idle


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"phases": []}, "the `phases` of its block `weir` are none, or two have one name"),
        ({"phases": [{"name": "load", "start_s": 2, "end_s": 1}]}, "ends before it begins"),
        (
            {"phases": [{"name": "load", "start_s": 0, "end_s": 1e9}]},
            "`end_s` of its block `weir` is no time",
        ),
        ({"phases": [{"name": "load", "start_s": 0, "end_s": 1}] * 2}, "two have one name"),
        ({"phases": [{"name": "\ud800", "start_s": 0, "end_s": 1}]}, "a name that is no text"),
        ({"flows": "TCP upload"}, "the `flows` of its block `weir` are no list"),
        ({"means": [1]}, "the `means` of its block `weir` are no list of names"),
        ({"warnings": "none"}, "the `warnings` of its block `weir` are no list of 1000 at most"),
        ({"warnings": ["of it", 1]}, "one of the `warnings` of its block `weir` is no text"),
        ({"reached_s": None}, "`reached_s` of its block `weir` is no time"),
    ],
)
def test_phases_of_a_stranger_are_checked(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    sound = {"phases": [{"name": "load", "start_s": 0, "end_s": 4}], "flows": [], "reached_s": 4}
    with pytest.raises(RecordError, match=says):
        imported(tmp_path, document(weir=sound | change))


def test_the_same_record_gives_the_same_bytes(rrul: list[Record], tmp_path: Path) -> None:
    for name in ("a.flent.gz", "b.flent.gz"):
        export(rrul[:1], tmp_path / name)
    assert (tmp_path / "a.flent.gz").read_bytes() == (tmp_path / "b.flent.gz").read_bytes()


def test_a_long_record_is_written_part_by_part_and_is_the_same(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(rrul[:1], tmp_path / "held.flent.gz")
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    long = open_record(rrul[0].path)
    export([long], tmp_path / "long.flent.gz")
    assert (tmp_path / "long.flent.gz").read_bytes() == (tmp_path / "held.flent.gz").read_bytes()
    assert "latency" not in vars(long)


def test_what_is_written_part_by_part_is_the_json_of_the_document(rrul: list[Record], tmp_path: Path) -> None:
    export(rrul[:1], tmp_path / "x.flent.gz")
    whole = json.dumps(flent_document(rrul[0]), indent=2, sort_keys=True, allow_nan=False)
    assert gzip.decompress((tmp_path / "x.flent.gz").read_bytes()).decode() == whole


def test_steps_of_a_stream_carry_what_the_stream_did(rrul: list[Record]) -> None:
    """A point of every second interval would leave out half of the bytes."""
    record = rrul[0]
    results = flent_document(record)["results"]
    for flow in record.flows.iter_rows(named=True):
        rows = record.throughput.filter(pl.col("flow") == flow["flow"])
        carried = sum(value or 0.0 for value in results[flow["name"]]) * 0.2
        assert carried == pytest.approx(float(rows["bytes"].sum()) * 8e-6, rel=1e-3), flow["name"]


def test_means_over_steps_are_of_the_intervals_in_them() -> None:
    ends, lengths, rates = np.array([0.1, 0.2, 0.3, 0.7]), np.full(4, 0.1), np.array([4.0, 8.0, 2.0, 6.0])
    found = means(np.arange(6) * 0.2, ends, lengths, rates, 0.2)
    assert found == [None, pytest.approx(6.0), pytest.approx(1.0), None, pytest.approx(3.0), None]


@pytest.mark.parametrize("seed", range(20))
def test_values_at_steps_do_not_hang_on_how_they_were_cut(seed: int) -> None:
    chance = np.random.default_rng(seed)
    times = np.sort(chance.uniform(0, 20, chance.integers(0, 60)))
    values = chance.uniform(0, 100, times.size)
    at_s = np.arange(101) * 0.2
    cuts = np.sort(chance.integers(0, times.size + 1, chance.integers(0, 6)))
    blocks = list(zip(np.split(times, cuts), np.split(values, cuts), strict=True))
    whole = aligned(at_s, [(times, values)], 0.2)
    assert aligned(at_s, blocks, 0.2) == whole
    assert len(whole) == at_s.size
    for x, value in zip(at_s, whole, strict=True):
        if value is not None and times[0] <= x:
            assert value == pytest.approx(np.interp(x, times, values))


def test_computed_series_are_of_measured_ones_only(rrul: list[Record]) -> None:
    results = flent_document(rrul[0])["results"]
    for way in ("upload", "download"):
        flows = [
            values for name, values in results.items() if name.startswith(f"TCP {way}") and name[-4] != " "
        ]
        single = [name for name in results if name.startswith(f"TCP {way} ") and name.split()[-1].isupper()]
        assert len(single) == 4, flows
        for step, total in enumerate(results[f"TCP {way} sum"]):
            there = [results[name][step] for name in single if results[name][step] is not None]
            assert total == (pytest.approx(sum(there)) if there else None)


def test_a_sum_over_some_flows_has_their_mean(tmp_path: Path) -> None:
    phases = {"idle": "1s", "load": "4s", "cooldown": "0s"}
    (record,) = weirlab.run("rrul_torrent", phases=phases, out=tmp_path / "out")
    meta = flent_document(record)["metadata"]["SERIES_META"]
    for way, direction in (("upload", summarise(record).up), ("download", summarise(record).down)):
        assert direction is not None
        background = [mbps for flow, mbps in direction.per_flow_mbps.items() if "Torrent" in flow]
        assert len(background) == 6
        assert meta[f"TCP {way} Torrent sum"]["MEAN_VALUE"] == pytest.approx(sum(background))
        assert meta[f"TCP {way} Torrent avg"]["MEAN_VALUE"] == pytest.approx(sum(background) / 6)


def test_the_mean_of_a_flow_is_of_when_it_ran(tmp_path: Path) -> None:
    """As that of Flent's tools, which know nothing of the rest of the test; sums are of the whole load."""
    phases = {"idle": "2s", "load": "10s", "cooldown": "0s"}
    (record,) = weirlab.run("tcp_2up_delay", phases=phases, out=tmp_path / "out")
    up = summarise(record).up
    assert up is not None
    meta = flent_document(record)["metadata"]["SERIES_META"]
    assert meta.keys() >= up.per_flow_running_mbps.keys()
    for name, mbps in up.per_flow_running_mbps.items():
        assert meta[name]["MEAN_VALUE"] == mbps
    # The second one runs from 5 s to 12 s, in seven of the ten seconds of the load.
    second = "TCP stream 2"
    assert up.per_flow_running_mbps[second] == pytest.approx(up.per_flow_mbps[second] * 10 / 7)
    rows = {row["flow"]: row for row in weirlab.frame(record, by="flow").to_dicts()}
    assert {name: row["goodput_running_mbps"] for name, row in rows.items()} == up.per_flow_running_mbps
    assert {name: row["goodput_mbps"] for name, row in rows.items()} == up.per_flow_mbps


def test_web_pages_are_written_as_their_times(tmp_path: Path) -> None:
    phases = {"idle": "1s", "load": "12s", "cooldown": "0s"}
    (record,) = weirlab.run("http-1up", phases=phases, out=tmp_path / "out")
    done = record.transfers.filter(pl.col("outcome") == "done")
    written = flent_document(record)
    points = written["raw_values"]["HTTP latency"]
    took_ms = sorted(ns / 1e6 for ns in done["took_ns"].to_list())
    assert sorted(point["val"] for point in points) == took_ms
    meta = written["metadata"]["SERIES_META"]["HTTP latency"]
    assert meta["UNITS"] == "ms"
    pages = summarise(record).applications["HTTP latency"]
    assert 0 < pages.done < len(points), "some came in the phase `idle`"
    assert (meta["MEAN_VALUE"], meta["MAX_VALUE"]) == (pages.mean_ms, pages.max_ms), "of the phase `load`"


def test_a_test_that_flent_has_not_is_refused(tmp_path: Path) -> None:
    (record,) = weirlab.run(
        "three_rtts",
        phases={"idle": "1s", "load": "1s", "cooldown": "0s"},
        out=tmp_path / "out",
    )
    with pytest.raises(UsageError, match="Flent has no test `three_rtts`"):
        export([record], tmp_path / "x.flent.gz")
    assert not (tmp_path / "x.flent.gz").exists()


def of_hosts(*hosts: str) -> dict[str, Any]:
    """A file of `rtt_fair_up`, in whose series stand the names of its servers."""
    content = document()
    content["metadata"] |= {"NAME": "rtt_fair_up", "HOST": hosts[0], "HOSTS": list(hosts)}
    renamed = {"TCP upload": f"TCP upload BE1 {hosts[0]}", "Ping (ms) ICMP": f"Ping (ms) ICMP2 {hosts[-1]}"}
    for part in (content["results"], content["raw_values"], content["metadata"]["SERIES_META"]):
        for old, new in renamed.items():
            part[new] = part.pop(old)
    return content


def test_a_file_with_the_names_of_its_servers_is_written_again(tmp_path: Path) -> None:
    record = imported(tmp_path, of_hosts("a.example", "b"))
    again = flent_document(record)
    assert set(again["raw_values"]) >= {"TCP upload BE1 a.example", "Ping (ms) ICMP2 b"}
    assert again["metadata"]["HOSTS"] == ["a.example", "b"]


def test_of_several_records_those_that_flent_has_a_test_for_are_written(tmp_path: Path) -> None:
    good = imported(tmp_path, document())
    (tmp_path / "bad").mkdir()
    content = document()
    content["metadata"]["NAME"] = "voip"
    bad = imported(tmp_path / "bad", content)
    out = tmp_path / "out"
    words = ["export", str(good.path), str(bad.path), "--flent", "--out", str(out)]
    done = CliRunner().invoke(group, words)
    assert isinstance(done.exception, UsageError)
    assert "1 of 2 records cannot be written for Flent; the others are" in str(done.exception)
    assert isinstance(done.exception, UsageError), "exit code 2"
    assert "Flent has no test `voip`" in done.stderr
    assert len(list(out.iterdir())) == 1
    done = CliRunner().invoke(group, ["export", str(bad.path), "--flent", "--out", str(tmp_path / "none")])
    assert isinstance(done.exception, UsageError)


def test_all_82_tests_are_named_and_lead_somewhere() -> None:
    tests = flent_tests()
    assert len(tests) == 82
    for test in tests.values():
        assert bool(test.runs) != bool(test.reason)
        assert not test.runs or test.runs[0] in shipped_tests()


def test_of_many_that_flent_has_no_test_for_a_line_tells_all(tmp_path: Path) -> None:
    """What is said last is how many cannot be written, and it is not buried."""
    content, bad = document(), []
    paths = [str(imported(tmp_path, content).path)]
    for number, name in enumerate(["voip"] * 5 + ["dns"]):
        (tmp_path / f"bad{number}").mkdir()
        content["metadata"]["NAME"] = name
        bad.append(imported(tmp_path / f"bad{number}", content))
    paths += [str(one.path) for one in bad]
    done = CliRunner().invoke(group, ["export", *paths, "--flent", "--out", str(tmp_path / "out")])
    assert "6 of 7 records cannot be written for Flent; the others are" in str(done.exception)
    lines = done.stderr.splitlines()
    named = ", ".join(f"`{one.path}`" for one in bad[:3])
    assert lines == [
        f"weir: Flent has no test `voip` with these series: {named} and 2 more",
        f"weir: Flent has no test `dns` with these series: `{bad[5].path}`",
    ]
