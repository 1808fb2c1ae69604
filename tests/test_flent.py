"""Data files of Flent: read as records, and written so that Flent itself opens them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import resource
import subprocess
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from weirlab.cli import weir as group
from weirlab.errors import RecordError, UsageError, WriteError
from weirlab.export import export
from weirlab.flent import import_flent, read_document
from weirlab.flent.exporting import flent_document
from weirlab.flent.points import aligned
from weirlab.flent.tests import flent_tests
from weirlab.plots import draw
from weirlab.record import open_record, pack, reader
from weirlab.scenario import shipped_tests
from weirlab.stats import summarise

if TYPE_CHECKING:
    from weirlab.record import Record

FLENT = Path(__file__).parent / "clients/.flent"
SAMPLES = FLENT / "unittests/test_data"

T0 = 1_700_000_000.0

CLOCK_NS = 1000
"""Seconds since 1970 as a float are exact to a quarter of a microsecond."""


def document(**changes: Any) -> dict[str, Any]:
    """A small file of version 4: an upload of 8 Mbit/s from 1 s to 3 s, pings of 20 ms, one of them lost."""
    x_values = [round(0.2 * step, 6) for step in range(21)]
    pings = [{"t": T0 + 0.1 * n, "val": 20.0, "seq": n} for n in range(40) if n != 7]
    stream = [{"t": T0 + 1.25 + 0.25 * n, "dur": 0.25, "val": 8.0} for n in range(8)]
    found: dict[str, Any] = {
        "version": 4,
        "x_values": x_values,
        "results": {"Ping (ms) ICMP": [20.0] * 21, "TCP upload": [None] * 5 + [8.0] * 11 + [None] * 5},
        "raw_values": {"Ping (ms) ICMP": pings, "TCP upload": stream},
        "metadata": {
            "NAME": "tcp_upload",
            "TITLE": "before",
            "HOST": "server.example",
            "LOCAL_HOST": "laptop",
            "TIME": "2023-11-14T22:13:20.000000Z",
            "T0": "2023-11-14T22:13:20.000000Z",
            "LENGTH": 2,
            "TOTAL_LENGTH": 4,
            "STEP_SIZE": 0.2,
            "FLENT_VERSION": "2.3.0",
            "NOTE": "cable modem",
            "SERIES_META": {
                "Ping (ms) ICMP": {"UNITS": "ms", "RUNNER": "PingRunner"},
                "TCP upload": {"UNITS": "Mbits/s", "CONG_CONTROL": "cubic", "TCP_RETRANSMIT": "3"},
            },
        },
    }
    return found | changes


def written(folder: Path, content: dict[str, Any] | bytes, name: str = "one.flent.gz") -> Path:
    path = folder / name
    data = content if isinstance(content, bytes) else gzip.compress(json.dumps(content).encode())
    path.write_bytes(data)
    return path


def imported(folder: Path, content: dict[str, Any]) -> Record:
    record = import_flent(written(folder, content), folder / "record")
    record.check()
    return record


def test_a_file_becomes_a_record_that_says_where_it_is_from(tmp_path: Path) -> None:
    record = imported(tmp_path, document())
    manifest = record.manifest
    assert manifest.imported is not None
    assert (manifest.imported.tool, manifest.imported.tool_version) == ("Flent", "2.3.0")
    assert (manifest.imported.test, manifest.imported.format) == ("tcp_upload", 4)
    assert (manifest.world, manifest.seed, manifest.complete) == ("imported", None, True)
    assert (manifest.note, manifest.link["title"]) == ("cable modem", "before (path to server.example)")
    assert manifest.imported.metadata["LOCAL_HOST"] == "laptop"
    # A ping is told when its answer comes: the first was sent 20 ms earlier, which is time 0.
    assert manifest.started_at == "2023-11-14T22:13:19.980000Z"
    assert record.latency["t_ns"][:2].to_list() == pytest.approx([0, 100_000_000], abs=CLOCK_NS)


def test_figures_are_those_of_the_samples(tmp_path: Path) -> None:
    record = imported(tmp_path, document())
    summary = summarise(record)
    assert summary.up is not None
    # 8 Mbit/s over 2 s, of which the last 20 ms are behind the load's end: time 0 is 20 ms before T0.
    assert summary.up.goodput_mbps == pytest.approx(8.0, rel=0.015)
    assert record.throughput["bytes"].sum() == 2_000_000
    assert summary.up.retransmitted_segments == 3
    assert summary.latency.loaded is not None
    assert summary.latency.loaded.mean == 20.0
    assert record.latency["rtt_ns"].null_count() == 1
    assert record.latency.filter(pl.col("rtt_ns").is_null())["seq"].to_list() == [7]
    assert record.latency.filter(pl.col("seq") == 7)["t_ns"].to_list() == pytest.approx(
        [700_000_000], abs=CLOCK_NS
    )


def test_what_the_file_does_not_tell_is_unknown_and_not_0(tmp_path: Path) -> None:
    record = imported(tmp_path, document())
    summary = summarise(record)
    assert summary.up is not None
    assert summary.up.throughput_mbps is None
    assert summary.up.utilisation is None
    assert summary.up.loss_rate is None
    assert summary.up.timeouts is None
    assert record.throughput["wire_bytes"].null_count() == record.throughput.height
    assert record.latency["timer_error_ns"].null_count() == record.latency.height
    assert record.flow_names["ecn"].to_list() == [None]
    assert record.flow_names["dscp"].to_list() == [None]


def test_means_of_netperf_are_no_pings_whose_losses_are_known(tmp_path: Path) -> None:
    content = document()
    means = [{"t": T0 + 0.2 * n, "val": 30.0, "dur": 0.2} for n in range(20)]
    # netperf stops when a packet is lost, and tells one last interval over the rest.
    content["raw_values"]["Ping (ms) UDP BE"] = [*means, {"t": T0 + 70, "val": 1e5, "dur": 66.0}]
    content["results"]["Ping (ms) UDP BE"] = [30.0] * 21
    record = imported(tmp_path, content)
    latency = summarise(record).latency
    assert (latency.lost, latency.loss_rate) == (None, None)
    assert latency.loaded is not None
    assert latency.loaded.max == 30.0
    assert "losses" in record.manifest.warnings[0]
    assert weirlab.compare(record)[0].lost_share is None


@pytest.mark.parametrize("runner", ["NetperfDemoRunner", None])
def test_means_stay_means_when_they_are_written_and_read_again(runner: str | None, tmp_path: Path) -> None:
    content = document()
    content["metadata"]["NAME"] = "rrul"
    of = content["raw_values"]
    of["TCP upload BE"] = of.pop("TCP upload")
    content["results"]["TCP upload BE"] = content["results"].pop("TCP upload")
    if runner:
        of["Ping (ms) UDP BE"] = [{"t": T0 + 0.2 * n, "val": 30.0, "dur": 0.2} for n in range(20)]
        content["metadata"]["SERIES_META"]["Ping (ms) UDP BE"] = {"UNITS": "ms", "RUNNER": runner}
    content["results"]["Ping (ms) UDP BE"] = [30.0] * 21
    first = imported(tmp_path, content)
    (file,) = export([first], tmp_path / "again.flent.gz")
    second = import_flent(file, tmp_path / "second")
    for record in (first, second):
        of_file = record.manifest.imported
        assert of_file is not None
        assert [record.probe_names[one] for one in of_file.losses_unknown] == ["Ping (ms) UDP BE"]
        assert summarise(record).latency.lost is None
    assert second.manifest.warnings == first.manifest.warnings
    assert read_document(file).series_meta["Ping (ms) UDP BE"]["RUNNER"] == "NetperfDemoRunner"


def test_irtt_tells_losses_and_the_servers_clock(tmp_path: Path) -> None:
    content = document()
    content["raw_values"]["Ping (ms) UDP BE"] = [
        {"t": T0 + 1.0, "val": 20.0, "owd_up": 1005.0, "owd_down": -985.0, "seq": 0},
        {"t": T0 + 1.2, "lost": True, "lost_dir": "up", "seq": 1},
    ]
    content["results"]["Ping (ms) UDP BE"] = [20.0] * 21
    record = imported(tmp_path, content)
    rows = record.latency.filter(pl.col("probe") == 1)
    sent = rows["t_ns"][0]
    assert rows["server_received_ns"].to_list() == [sent + 1_005_000_000, None]
    assert rows["server_sent_ns"].to_list() == [sent + 1_005_000_000, None]
    assert rows["rtt_ns"].to_list() == [20_000_000, None]
    assert rows["up_ns"].null_count() == 2, "two clocks tell no delay of one way"


def test_old_versions_have_other_units_and_places(tmp_path: Path) -> None:
    content = document(version=3)
    content["raw_values"]["Ping (ms) UDP BE"] = [{"t": T0 + n, "val": 50.0, "dur": 0.2} for n in range(3)]
    content["results"]["Ping (ms) UDP BE"] = [20.0] * 21
    read = read_document(written(tmp_path, content))
    assert [point["val"] for point in read.raw_values["Ping (ms) UDP BE"]] == [20.0] * 3

    first = document(version=1)
    first["metadata"]["SERIES_META"]["TCP upload"]["RAW_VALUES"] = first.pop("raw_values")["TCP upload"]
    read = read_document(written(tmp_path, first))
    assert (read.version, len(read.raw_values["TCP upload"]), read.fake_raw) == (1, 8, False)

    bare = {key: value for key, value in document().items() if key not in {"version", "raw_values"}}
    read = read_document(written(tmp_path, bare))
    assert (read.version, read.fake_raw) == (1, True)
    assert read.raw_values["TCP upload"][0] == {"t": T0 + 1.0, "val": 8.0}


def test_local_times_of_old_files_are_brought_to_utc(tmp_path: Path) -> None:
    content = document(version=2)
    content["metadata"] |= {"T0": "2023-11-15T00:13:20.000000", "TIME": "2023-11-15T00:13:19.000000"}
    assert read_document(written(tmp_path, content)).t0_s == T0


@pytest.mark.parametrize("pack_it", [gzip.compress, bz2.compress, bytes])
def test_containers_are_told_by_their_first_bytes(pack_it: Any, tmp_path: Path) -> None:
    path = written(tmp_path, pack_it(json.dumps(document()).encode()), "any-name")
    assert read_document(path).name == "tcp_upload"


def test_nan_and_null_are_missing_samples(tmp_path: Path) -> None:
    text = json.dumps(document()).replace("20.0", "NaN", 3).replace('"val": 8.0', '"val": null', 1)
    record = import_flent(written(tmp_path, text.encode(), "one.json"), tmp_path / "record")
    assert record.throughput["bytes"].sum() == 1_750_000
    assert record.latency["rtt_ns"].drop_nulls().unique().to_list() == [20_000_000]


GZIP_BOMB = gzip.compress(b" " * (200 << 20), compresslevel=9, mtime=0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "no object"),
        (b"{}", "`metadata` is missing"),
        (b"\x1f\x8b\x08\x00broken", "gzip data"),
        (gzip.compress(json.dumps(document()).encode(), mtime=0)[:-9], "ends too early"),
        (gzip.compress(b"{}", mtime=0) + b"more", "stands something else"),
        (b"BZh9 broken", "bzip2 data is damaged"),
        (GZIP_BOMB, "more than 192 MiB"),
        (b"[" * 100_000, "nested too deep"),
        (b"[" + b"0," * 8_100_000 + b"0]", "values"),
        (b'{"version": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"\xff\xfe{", "not UTF-8"),
        (document(version=5), "version 5 of the format; this Weir reads up to 4"),
        (document(version=0), "its version is `0`"),
        (document(version="new"), "its version is `new`"),
        (document(metadata={}), "no NAME"),
        (document(x_values=[0, 1]), "has 21 values for 2 `x_values`"),
        (document(x_values=[0.2 * (20 - n) for n in range(21)]), "goes back in time"),
        (document(x_values=[None] * 21), "no time from 0"),
        (document(x_values=None), "`x_values` are missing"),
        (document(results={"a": 3}), "no list"),
        (document(raw_values={"a": [3]}), "no object"),
        (document(raw_values={"\ud800": []}), "no text"),
        (document(raw_values={"Ping (ms) ICMP": [{"t": 4e18, "val": 1}]}), "behind T0"),
        (document(raw_values={"Ping (ms) ICMP": [{"t": T0, "val": -1e300}]}), "a round trip takes"),
        (document(raw_values={"TCP upload": [{"t": T0 + 1, "val": 1e300, "dur": 1}]}), "Mbit/s"),
        (
            document(
                raw_values={"Ping (ms) ICMP": [{"t": T0 + n, "val": 1, "seq": n * 10**9} for n in (0, 1)]}
            ),
            "numbers of pings are missing",
        ),
        (document(metadata=document()["metadata"] | {"STEP_SIZE": 0}), "STEP_SIZE"),
        (document(metadata=document()["metadata"] | {"LENGTH": "long"}), "LENGTH"),
        (document(metadata=document()["metadata"] | {"T0": "yesterday"}), "its time `yesterday`"),
        (document(results={}, raw_values={}), "neither pings nor streams"),
    ],
)
def test_a_broken_file_is_refused_in_a_sentence(
    content: dict[str, Any] | bytes, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(RecordError, match=said) as caught:
        import_flent(path, tmp_path / "record")
    assert len(str(caught.value)) < 500
    assert str(path) in str(caught.value)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_the_command_imports_many_and_tells_the_bad_one(tmp_path: Path) -> None:
    for name in ("a.flent.gz", "b.flent.gz"):
        written(tmp_path, document(), name)
    written(tmp_path, b"{", "c.flent.gz")
    files = [str(tmp_path / f"{name}.flent.gz") for name in "abc"]
    done = CliRunner().invoke(group, ["import", *files, "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, RecordError)
    assert "1 of 3 files cannot be imported" in str(done.exception)
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["a", "b"]
    again = CliRunner().invoke(group, ["import", *files[:1], "--out", str(tmp_path / "out/a")])
    assert isinstance(again.exception, UsageError)
    one = CliRunner().invoke(group, ["import", files[0], "--out", str(tmp_path / "x.weir")])
    assert one.exception is None
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "x.weir")])
    assert "imported from Flent 2.3.0, test tcp_upload, format 4" in " ".join(shown.output.split())


def test_an_archive_that_has_no_room_is_not_left_in_part(tmp_path: Path) -> None:
    written(tmp_path, document(), "a.flent.gz")
    words = ["import", str(tmp_path / "a.flent.gz"), "--out", str(tmp_path / "x.weir")]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # There is room for each file of the record, and not for all in one.
    largest = max(one.stat().st_size for one in imported(tmp_path, document()).path.rglob("*.*"))
    there = sorted(one.name for one in tmp_path.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 200, limits[1]))
    try:
        done = CliRunner().invoke(group, words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(done.exception, WriteError)
    assert "x.weir` cannot be written" in str(done.exception)
    assert sorted(one.name for one in tmp_path.iterdir()) == there
    assert CliRunner().invoke(group, words).exception is None


def test_an_imported_record_is_compared_plotted_packed_and_exported(tmp_path: Path) -> None:
    first = imported(tmp_path, document())
    (tmp_path / "b").mkdir()
    slower = document()
    slower["metadata"] |= {"TITLE": "after"}
    for point in slower["raw_values"]["Ping (ms) ICMP"]:
        point["val"] = 10.0
    second = imported(tmp_path / "b", slower)
    names = [one.name for one in weirlab.compare([first, second])]
    assert [name.partition(" ")[0] for name in names] == ["before", "after"]
    for kind in ("three-plot", "cdf", "box", "ping"):
        assert draw(kind, first, tmp_path / f"{kind}.svg").exists()
    pack(first, tmp_path / "one.weir")
    assert open_record(tmp_path / "one.weir").manifest == first.manifest
    for form in ("csv", "jsonl", "parquet"):
        export([first, second], tmp_path / form, form)
    rows = [json.loads(line) for line in (tmp_path / "jsonl/runs.jsonl").read_text().splitlines()]
    assert [row["seed"] for row in rows] == [None, None]
    assert [row["loaded_mean_ms"] for row in rows] == [20.0, 10.0]


def test_a_repetition_is_one_configuration(tmp_path: Path) -> None:
    records = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        content = document()
        content["metadata"]["TIME"] = content["metadata"]["T0"] = f"2023-11-14T22:13:2{number}.000000Z"
        for points in content["raw_values"].values():
            for point in points:
                point["t"] += number
        records.append(imported(folder, content))
    (one,) = weirlab.compare(records)
    assert len(one.runs) == 2


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


def test_web_pages_are_written_as_their_times(tmp_path: Path) -> None:
    phases = {"idle": "1s", "load": "6s", "cooldown": "0s"}
    (record,) = weirlab.run("http-1up", phases=phases, out=tmp_path / "out")
    done = record.transfers.filter(pl.col("outcome") == "done")
    written = flent_document(record)
    points = written["raw_values"]["HTTP latency"]
    took_ms = sorted(ns / 1e6 for ns in done["took_ns"].to_list())
    assert sorted(point["val"] for point in points) == took_ms
    meta = written["metadata"]["SERIES_META"]["HTTP latency"]
    assert meta["UNITS"] == "ms"
    assert meta["MEAN_VALUE"] == pytest.approx(sum(took_ms) / len(took_ms))


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
    assert isinstance(done.exception, RecordError)
    assert "1 of 2 records cannot be written for Flent; the others are" in str(done.exception)
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


# With Flent itself.


def samples() -> list[Path]:
    if not SAMPLES.is_dir():
        pytest.skip("flent is not there: make clients")
    return sorted(SAMPLES.glob("*.flent.gz"))


def flent(*words: str, folder: Path) -> str:
    """Runs Flent on what was written; returns what it printed."""
    samples()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "flent", *words],
        env=os.environ | {"PYTHONPATH": str(FLENT), "MPLBACKEND": "agg", "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "ERROR" not in done.stderr, done.stderr
    return done.stdout


def statistics(*files: Path) -> list[dict[str, dict[str, str]]]:
    """What Flent's `stats_csv` says of each series, for each file."""
    told = flent("-f", "stats_csv", *map(str, files), folder=files[0].parent)
    rows = csv.DictReader(io.StringIO(told[told.index("filename,") :]))
    # Flent makes names of its own, but keeps the order.
    found = [{row["series"]: row for row in group} for _, group in groupby(rows, key=itemgetter("filename"))]
    assert len(found) == len(files)
    return found


def test_the_sample_files_of_flent_open(tmp_path: Path) -> None:
    files = samples()
    assert len(files) == 10
    for file in files:
        record = import_flent(file, tmp_path / file.name)
        record.check()
        manifest = record.manifest
        assert manifest.complete
        assert manifest.imported is not None
        raw = json.loads(gzip.decompress(file.read_bytes()))
        assert (manifest.imported.test, manifest.imported.format) == (raw["metadata"]["NAME"], raw["version"])
        for row in record.flow_names.iter_rows(named=True):
            points = [point for point in raw["raw_values"][row["name"]] if point.get("val") is not None]
            told = sum(point["val"] * 1e6 / 8 * point["dur"] for point in points)
            ours = record.throughput.filter(pl.col("flow") == row["flow"])["bytes"].sum()
            assert ours == pytest.approx(told, abs=len(points)), (file.name, row["name"])


def test_round_trips_of_sample_files_are_those_that_flent_counts(tmp_path: Path) -> None:
    files = samples()
    for file, theirs in zip(files, statistics(*files), strict=True):
        record = import_flent(file, tmp_path / file.name)
        for number, name in enumerate(record.probe_names):
            if number in (record.manifest.imported.losses_unknown if record.manifest.imported else []):
                continue
            ms = record.latency.filter(pl.col("probe") == number)["rtt_ns"].drop_nulls().to_numpy() / 1e6
            assert float(theirs[name]["median"]) == pytest.approx(float(np.median(ms)), abs=1e-5)
            assert float(theirs[name]["min"]) == pytest.approx(float(ms.min()), abs=1e-5)
            assert float(theirs[name]["max"]) == pytest.approx(float(ms.max()), abs=1e-5)


def test_flent_counts_what_we_count_of_our_records(rrul: list[Record], tmp_path: Path) -> None:
    (file,) = export(rrul[:1], tmp_path / "ours.flent.gz")
    [theirs], summary = statistics(file), summarise(rrul[0])
    for number, name in enumerate(rrul[0].probe_names):
        found = summary.probes[name]
        assert found is not None
        # Its mean is the one that the file names: that of the phase `load`. The rest is of the whole run.
        assert float(theirs[name]["mean"]) == pytest.approx(found.mean)
        ms = rrul[0].latency.filter(pl.col("probe") == number)["rtt_ns"].drop_nulls().to_numpy() / 1e6
        for figure, value in (("median", np.median(ms)), ("min", ms.min()), ("max", ms.max())):
            assert float(theirs[name][figure]) == pytest.approx(float(value), abs=1e-5)
        assert float(theirs[name]["pct99"]) == pytest.approx(float(np.quantile(ms, 0.99)), rel=0.01)
    for way, direction in (("upload", summary.up), ("download", summary.down)):
        assert direction is not None
        for name, mbps in direction.per_flow_mbps.items():
            assert float(theirs[name]["mean"]) == pytest.approx(mbps)
        assert float(theirs[f"TCP {way} sum"]["mean"]) == pytest.approx(direction.goodput_mbps)


def test_flent_draws_our_records(rrul: list[Record], tmp_path: Path) -> None:
    (file,) = export(rrul[:1], tmp_path / "ours.flent.gz")
    for kind in ("all_scaled", "ping_cdf", "box_totals"):
        flent("-p", kind, "-o", f"{kind}.png", str(file), folder=tmp_path)
        assert (tmp_path / f"{kind}.png").stat().st_size > 10_000
    assert "TCP totals" in flent("-f", "summary", str(file), folder=tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "http-1up",
        "ping",
        "rrul46",
        "rrul_torrent",
        "rtt_fair",
        "tcp_bidirectional",
        "tcp_download",
        "tcp_ndown",
        "tcp_nup",
        "udp_flood_var_up",
    ],
)
def test_flent_opens_every_test_that_both_have(name: str, tmp_path: Path) -> None:
    samples()
    phases = {"idle": "2s"} if name == "ping" else {"idle": "1s", "load": "2s", "cooldown": "1s"}
    records = weirlab.run(name, phases=phases, out=tmp_path / "out")
    (file,) = export(records, tmp_path / "ours.flent.gz")
    plot = {
        "ping": "ping",
        "rtt_fair": "all_scaled",
        "rrul_torrent": "all_scaled",
        "udp_flood_var_up": "upload",
    }.get(name, "totals")
    flent("-p", plot, "-o", "one.png", str(file), folder=tmp_path)
    assert (tmp_path / "one.png").stat().st_size > 5_000
    assert "Ping (ms) ICMP" in flent("-f", "summary", str(file), folder=tmp_path)
