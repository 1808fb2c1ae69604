"""Data files of Flent: read as records."""

from __future__ import annotations

import bz2
import gzip
import html
import json
import re
import resource
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from flent_files import CLOCK_NS, T0, document, imported, written
from weirlab.cli import weir as group
from weirlab.errors import RecordError, UsageError, WeirError, WriteError
from weirlab.export import export
from weirlab.flent import import_flent, read_document
from weirlab.plots import draw
from weirlab.record import open_record, pack
from weirlab.stats import summarise
from weirlab.viewer import report_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


def in_two_streams(data: bytes) -> bytes:
    """As programs pack that work in parallel, padded as tapes are."""
    return gzip.compress(data[:100]) + bytes(20_000) + gzip.compress(data[100:]) + bytes(7)


@pytest.mark.parametrize("pack_it", [gzip.compress, bz2.compress, bytes, in_two_streams])
def test_containers_are_told_by_their_first_bytes(pack_it: Any, tmp_path: Path) -> None:
    path = written(tmp_path, pack_it(json.dumps(document()).encode()), "any-name")
    assert read_document(path).name == "tcp_upload"


def test_nan_and_null_are_missing_samples(tmp_path: Path) -> None:
    text = json.dumps(document()).replace("20.0", "NaN", 3).replace('"val": 8.0', '"val": null', 1)
    record = import_flent(written(tmp_path, text.encode(), "one.json"), tmp_path / "record")
    assert record.throughput["bytes"].sum() == 1_750_000
    assert record.latency["rtt_ns"].drop_nulls().unique().to_list() == [20_000_000]


def gzip_bomb() -> bytes:
    return gzip.compress(b" " * (200 << 20), compresslevel=9, mtime=0)


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
        (bz2.compress(b"") * 10_001, "bzip2 data is more than 10000 streams"),
        (gzip_bomb, "more than 192 MiB"),
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
    content: dict[str, Any] | bytes | Callable[[], bytes], said: str, tmp_path: Path
) -> None:
    # What takes long to make is made where it is needed, not by every process that collects.
    path = written(tmp_path, content() if callable(content) else content)
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
    assert str(done.exception) == "1 of 3 files cannot be imported; the others are"
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["a", "b"]
    again = CliRunner().invoke(group, ["import", *files[:1], "--out", str(tmp_path / "out/a")])
    assert isinstance(again.exception, UsageError)
    one = CliRunner().invoke(group, ["import", files[0], "--out", str(tmp_path / "x.weir")])
    assert one.exception is None
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "x.weir")])
    assert "imported from Flent 2.3.0, test tcp_upload, format 4" in " ".join(shown.output.split())


def test_a_file_of_flent_is_no_record_and_a_folder_is_no_file(tmp_path: Path) -> None:
    file = written(tmp_path, document())
    shown = CliRunner().invoke(group, ["show", str(file)])
    assert str(shown.exception) == (
        f"`{file}` is no record: neither a folder nor a .weir file; "
        "`weir import` makes records of Flent's files"
    )
    folder = CliRunner().invoke(group, ["import", str(tmp_path)])
    assert isinstance(folder.exception, UsageError)
    assert str(folder.exception) == f"`{tmp_path}` is a folder: name the files in it that are to be imported"


def test_of_many_files_a_disk_that_takes_none_counts_before_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [written(tmp_path, document(), f"{name}.flent.gz") for name in "ab"]
    bad = written(tmp_path, b"{", "c.flent.gz")
    full = WriteError("the folder `x` cannot be made: Read-only file system")
    monkeypatch.setattr(
        "weirlab.cli.import_command.import_flent",
        lambda file, out: import_flent(file, out) if file == bad else raised(full),
    )
    done = CliRunner().invoke(group, ["import", *map(str, [bad, *good]), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, WeirError)
    assert done.exception.exit_code == 1
    assert str(done.exception) == "3 of 3 files cannot be imported"
    first, *others = done.stderr.splitlines()
    assert first.startswith(f"weir: `{bad}`")
    assert others == [f"weir: `{file}`: {full}" for file in good]


def raised(error: Exception) -> NoReturn:
    raise error


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


def test_a_page_says_of_queues_and_machine_no_more_than_the_file(tmp_path: Path) -> None:
    page = html.unescape(report_page([imported(tmp_path, document())]))
    assert "the path's own queues" in page
    assert "the link's own queue" not in page
    assert re.search(r"; python [^;<]+, weir [^;<]+\.</p>", page), "nothing stands for the machine"
