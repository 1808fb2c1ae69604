"""Records: complete, cut short, killed, packed, foreign."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import polars as pl
import pytest

import weirlab
from live import PATIENCE_S
from weirlab.cli.records import readable
from weirlab.errors import RecordError
from weirlab.record import find_records, open_record, pack, part_files, reader
from weirlab.record.configurations import numbered
from weirlab.record.flows import rows_of_connections
from weirlab.record.tables import TABLES
from weirlab.report import quality_table
from weirlab.stats import summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from weirlab.record import Record

    Weir = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full", "/dev/null", "pipe"])
def test_what_is_no_file_is_no_record(tmp_path: Path, name: str) -> None:
    """A device is read without end, and a pipe waits for who writes into it: not in this process."""
    os.mkfifo(tmp_path / "pipe")
    place = tmp_path / name
    words = ["import sys, weirlab", "try: weirlab.open_record(sys.argv[1])"]
    words += ["except weirlab.WeirError as error: print(error)"]
    limited = ["sh", "-c", 'ulimit -v 8000000; exec "$@"', "sh", sys.executable, "-c", "\n".join(words)]
    done = subprocess.run(
        [*limited, str(place)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.stdout == f"`{place}` is no record: neither a folder nor a .weir file\n", done.stderr


def test_a_record_says_what_it_is(rrul: list[Record]) -> None:
    record = rrul[1]
    manifest = record.manifest
    assert (manifest.complete, manifest.world, manifest.seed) == (True, "sim", 1)
    assert manifest.queue == "htb rate 95% fq_codel"
    assert manifest.scenario["path"]["up"][0]["queue"] == "htb rate 95% fq_codel"
    assert manifest.reached_ns == 6_000_000_000
    assert record.flows.height == 8
    assert record.probe_names[0] == "Ping (ms) ICMP"
    assert record.phase("load") == (1_000_000_000, 5_000_000_000)


def test_every_ping_has_its_row(rrul: list[Record]) -> None:
    latency = rrul[0].latency
    for probe in range(4):
        seq = latency.filter(pl.col("probe") == probe)["seq"]
        assert seq.to_list() == list(range(seq.len()))
        assert seq.len() in {599, 600}  # the first comes up to a period late


def test_one_way_delays_add_up(rrul: list[Record]) -> None:
    answered = rrul[0].latency.drop_nulls("rtt_ns")
    assert (answered["up_ns"] + answered["down_ns"] == answered["rtt_ns"]).all()


def test_bytes_in_intervals_are_the_bytes_of_flows(rrul: list[Record]) -> None:
    record = rrul[0]
    by_interval = record.throughput.group_by("flow").agg(pl.col("bytes").sum()).sort("flow")
    # What arrives behind the end of the run is in the totals only.
    totals = record.flows.sort("flow")["delivered_bytes"]
    assert (totals - by_interval["bytes"] >= 0).all()
    assert sum(totals - by_interval["bytes"]) <= 0.001 * sum(totals)


def test_a_packed_record_reads_like_its_folder(rrul: list[Record], tmp_path: Path) -> None:
    archive = tmp_path / "one.weir"
    pack(rrul[0], archive)
    packed = open_record(archive)
    assert packed.manifest == rrul[0].manifest
    assert packed.latency.equals(rrul[0].latency)
    assert [record.path for record in find_records(archive)] == [archive]


def test_a_killed_run_leaves_a_readable_record(tmp_path: Path) -> None:
    out = tmp_path / "killed"
    code = (
        "import weirlab; weirlab.run('rrul', link='vdsl-100-40', queue='fq_codel', "
        f"phases={{'idle': '1s', 'load': '3000s'}}, out={str(out)!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    folder = out / "01-fq-codel"
    deadline = time.monotonic() + PATIENCE_S
    while not list(folder.glob("latency/part-*.parquet")):
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=PATIENCE_S) == -signal.SIGKILL

    record = open_record(folder)
    assert not record.manifest.complete
    assert record.reached_ns > 1_000_000_000
    latency = record.latency
    assert latency.height > 100
    summary = weirlab.summarise(record)
    assert summary.latency.loaded is not None
    assert summary.down is not None
    assert summary.down.goodput_mbps is not None
    assert summary.down.goodput_mbps > 10
    # Totals are written at the end, which never came: what is known until then is in the samples.
    counted = record.tcp.group_by("flow").agg(pl.col("retransmits").max())
    down = record.flow_names.filter(pl.col("direction") == "down").join(counted, on="flow")
    assert summary.down.retransmitted_segments == down["retransmits"].sum()
    assert summary.down.loss_rate is None


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(weirlab.WeirError, match="is not empty: choose another folder"):
        weirlab.run("ping", out=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (None, "is no record: there is no manifest.json in it"),
        ("{", "its manifest.json is damaged"),
        ("[]", "its manifest.json is damaged: it is no object"),
        ('{"schema_version": 1}', "its manifest.json is damaged: `complete` is missing"),
        (json.dumps({"schema_version": 99}), "has format 99; this Weir reads up to 3"),
        ("[" * 100_000, "its manifest.json is damaged"),
    ],
)
def test_what_is_no_record_is_refused(manifest: str | None, message: str, tmp_path: Path) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(RecordError, match=message):
        open_record(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("dscp", 2**63), ("start_ns", -(2**63) - 1), ("stop_ns", 1.5), ("name", 7), ("direction", True)],
)
def test_a_flow_that_cannot_be_told_is_refused(
    rrul: list[Record], tmp_path: Path, key: str, value: object
) -> None:
    folder = copied(rrul[0], tmp_path / "odd")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["scenario"]["flows"][0][key] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RecordError, match=r"its manifest\.json is damaged"):
        open_record(folder).check()


TAKEN_AWAY = [
    "scenario",
    "scenario.name",
    "scenario.duration_ns",
    "scenario.sampling",
    "scenario.sampling.throughput_ns",
    "scenario.phases",
    "scenario.phases.0.end_ns",
    "scenario.path",
    "scenario.path.down",
    "scenario.path.up.0.rate",
    "scenario.path.up.0.delay_ns",
    "scenario.flows",
    "scenario.flows.0.direction",
    "scenario.flows.0.stop_ns",
    "scenario.probes",
    "scenario.probes.0.name",
    "link.title",
]
"""Keys that figures and charts need."""


@pytest.mark.parametrize("place", TAKEN_AWAY)
def test_a_manifest_without_what_charts_need_says_what_is_missing(
    rrul: list[Record], tmp_path: Path, place: str
) -> None:
    folder, table, last = placed(rrul[0], tmp_path, place)
    del table[last]
    refused_for(folder, f"`{named(place)}` is missing")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("scenario.sampling", None, "should be an object, not null"),
        ("scenario.sampling.queue_ns", "often", "should be a whole number, not text"),
        ("scenario.sampling.throughput_ns", -5, "is -5: it should be 0 or more"),
        ("scenario.sampling.throughput_ns", float("inf"), "should be a whole number, not a number"),
        ("scenario.duration_ns", 2**70, f"is {2**70}, which has more than 64 bits"),
        ("scenario.phases", {}, "should be a list, not an object"),
        ("scenario.flows.0", 3, "should be an object, not a whole number"),
        ("scenario.flows.0.direction", "sideways", "should be `up` or `down`, not `sideways`"),
        ("scenario.path.up.0.rate", 7, "should be text or an object, not a whole number"),
        ("scenario.path.up.0.rate", {}, "should have one of bps, trace, packets_per_second"),
        ("scenario.path.up.0.rate", "", "should be `unlimited`, not ``"),
        ("scenario.path.down.0.rate.bps", None, "should be a whole number, not null"),
        ("scenario.path.down.0.rate.bps", "fast", "should be a whole number, not text"),
        ("scenario.path.down.0.delay_ns", [5], "should be a whole number, not a list"),
        ("scenario.ip_version", {"a": 1}, "should be text, not an object"),
        ("link.title", True, "should be text, not a truth value"),
    ],
)
def test_a_manifest_with_a_value_of_another_type_says_which(
    rrul: list[Record], tmp_path: Path, place: str, value: object, said: str
) -> None:
    folder, table, last = placed(rrul[0], tmp_path, place)
    table[int(last) if last.isdigit() else last] = value
    refused_for(folder, f"`{named(place)}` {said}")


def test_samples_that_were_never_taken_and_are_there_are_told(rrul: list[Record], tmp_path: Path) -> None:
    altered, table, last = placed(rrul[0], tmp_path, "scenario.sampling.throughput_ns")
    table[last] = 0
    (altered.folder / "manifest.json").write_text(json.dumps(altered.manifest))
    record = open_record(altered.folder)
    with pytest.raises(
        RecordError, match=r"`scenario\.sampling\.throughput_ns` is 0, and the table has rows"
    ):
        weirlab.draw("three-plot", record, tmp_path / "x.svg")


def placed(record: Record, folder: Path, place: str) -> tuple[Altered, Any, str]:
    """A copy of a record whose manifest is to be altered, what is to be altered in it, and the last key."""
    copy = copied(record, folder / "odd")
    manifest = json.loads((copy / "manifest.json").read_text())
    *above, last = place.split(".")
    table = manifest
    for word in above:
        table = table[int(word) if word.isdigit() else word]
    return Altered(copy, manifest), table, last


class Altered(NamedTuple):
    """A record's folder, and its manifest as it is to be."""

    folder: Path
    manifest: Any


def named(place: str) -> str:
    """A place as it is told: `a[0].b`, and not `a.0.b`."""
    return re.sub(r"\.(\d+)", r"[\1]", place)


def refused_for(altered: Altered, said: str) -> None:
    (altered.folder / "manifest.json").write_text(json.dumps(altered.manifest))
    with pytest.raises(RecordError) as caught:
        open_record(altered.folder)
    assert str(caught.value) == f"`{altered.folder}`: its manifest.json is damaged: {said}"


def test_times_of_flows_may_be_written_as_fractions(rrul: list[Record], tmp_path: Path) -> None:
    folder = copied(rrul[0], tmp_path / "fractions")
    manifest = json.loads((folder / "manifest.json").read_text())
    for flow in manifest["scenario"]["flows"]:
        flow["start_ns"] = float(flow["start_ns"])
    (folder / "manifest.json").write_text(json.dumps(manifest))
    record = open_record(folder)
    record.check()
    assert record.flow_names.equals(rrul[0].flow_names)


def copied(record: Record, to: Path, *, checked: bool = True) -> Path:
    """A copy of the record in the folder `to`; in the format without counts and digests if not `checked`."""
    shutil.copytree(record.path, to)
    manifest = json.loads((to / "manifest.json").read_text())
    if checked:
        manifest["tables"] = {table: counted(to / table) for table in TABLES if (to / table).is_dir()}
    else:
        manifest = {key: value for key, value in manifest.items() if key != "tables"} | {"schema_version": 1}
    (to / "manifest.json").write_text(json.dumps(manifest))
    return to


def counted(table: Path) -> dict[str, Any]:
    """What the manifest says of a table, worked out as docs/record.md has it."""
    parts = sorted(table.glob("*.parquet"))
    return {
        "parts": len(parts),
        "rows": sum(pl.read_parquet(part).height for part in parts),
        "sha256": hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest(),
    }


def test_the_manifest_counts_what_was_written(rrul: list[Record]) -> None:
    record = rrul[0]
    record.check()
    tables = record.manifest.tables
    assert tables is not None
    assert set(tables) == {"flows", "throughput", "latency", "tcp", "queue"}
    for name, written in tables.items():
        assert asdict(written) == counted(record.path / name) | {"extra": {}}


def test_an_older_record_still_opens(rrul: list[Record], tmp_path: Path) -> None:
    older = open_record(copied(rrul[0], tmp_path / "older", checked=False))
    older.check()
    assert older.manifest.tables is None
    assert older.latency.equals(rrul[0].latency)


def without(part: Path, *columns: str) -> None:
    pl.read_parquet(part).drop(columns).write_parquet(part)


def test_columns_that_an_older_format_did_not_have_yet_are_null(rrul: list[Record], tmp_path: Path) -> None:
    folder = copied(rrul[0], tmp_path / "older", checked=False)
    without(folder / "tcp/part-000000.parquet", "busy_ns")
    without(folder / "queue/part-000000.parquet", "dropped_bytes", "dropped_unfair")
    older = open_record(folder)
    for name in ("tcp", "queue"):
        assert getattr(older, name).schema == getattr(rrul[0], name).schema
    assert older.tcp["busy_ns"].is_null().all()
    assert older.queue["dropped_unfair"].null_count() == older.queue["dropped_bytes"].null_count() > 0
    assert older.queue["dropped_overlimit"].equals(rrul[0].queue["dropped_overlimit"])
    assert weirlab.summarise(older).down == weirlab.summarise(rrul[0]).down


def test_a_column_that_its_format_has_is_not_left_out(rrul: list[Record], tmp_path: Path) -> None:
    folder = copied(rrul[0], tmp_path / "record")
    without(folder / "queue/part-000000.parquet", "dropped_bytes")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"]["queue"] = counted(folder / "queue")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    wanted = "is no part of `queue`: `dropped_bytes` is missing and should be Int64"
    with pytest.raises(RecordError, match=wanted):
        open_record(folder).check()


def test_a_table_without_rows_has_the_columns_of_one_that_has_some(
    rrul: list[Record], tmp_path: Path
) -> None:
    folder = copied(rrul[0], tmp_path / "record", checked=False)
    tables = [table for table in TABLES if (folder / table).is_dir() and table != "flows"]
    for table in tables:
        shutil.rmtree(folder / table)
    empty = open_record(folder)
    assert len(tables) == 4
    for table in tables:
        assert getattr(empty, table).schema == getattr(rrul[0], table).schema


def _delete(folder: Path) -> str:
    (folder / "latency/part-000000.parquet").unlink()
    return "`latency/part-000000.parquet` is missing: the run wrote"


def _delete_table(folder: Path) -> str:
    shutil.rmtree(folder / "flows")
    return "`flows/part-000000.parquet` is missing: the run wrote 1 part files of `flows`"


def _add(folder: Path) -> str:
    shutil.copy(folder / "tcp/part-000000.parquet", folder / "tcp/part-000099.parquet")
    return "`tcp/part-000099.parquet` does not belong to it"


def _change_a_byte(folder: Path) -> str:
    part = folder / "latency/part-000000.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    return "`latency` is damaged: its bytes are not those that were written"


def _link(folder: Path) -> str:
    part = folder / "latency/part-000000.parquet"
    part.unlink()
    part.symlink_to("/dev/zero")
    return "`latency/part-000000.parquet` is a symbolic link"


def _link_a_table(folder: Path) -> str:
    (folder / "latency").rename(folder.parent / "elsewhere")
    (folder / "latency").symlink_to(folder.parent / "elsewhere")
    return "`latency` is a symbolic link"


DAMAGES = [_delete, _delete_table, _add, _change_a_byte, _link, _link_a_table]


@pytest.mark.parametrize("damage", DAMAGES, ids=[damage.__name__ for damage in DAMAGES])
def test_what_was_not_written_so_is_refused(
    rrul: list[Record], tmp_path: Path, damage: Callable[[Path], str]
) -> None:
    folder = copied(rrul[0], tmp_path / "damaged")
    wanted = damage(folder)
    with pytest.raises(RecordError) as caught:
        open_record(folder).check()
    assert wanted in str(caught.value)
    assert "\n" not in str(caught.value)


def _frame(record: Record) -> bytes:
    out = io.BytesIO()
    record.flow_names.write_parquet(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (lambda record: (record.path / "latency/part-000000.parquet").read_bytes()[:1000], "is damaged"),
        (lambda _: b"", "is damaged"),
        (lambda _: bytes(range(256)) * 8, "is damaged"),
        (lambda _: b"PAR1" + bytes(range(256)) * 8 + b"PAR1", "is damaged"),
        (_frame, "is no part of `latency`: `t_ns` is missing and should be Int64"),
    ],
    ids=["truncated", "empty", "random", "framed", "foreign"],
)
def test_damaged_parquet_without_digests_is_one_sentence(
    rrul: list[Record], tmp_path: Path, content: Callable[[Record], bytes], wanted: str
) -> None:
    folder = copied(rrul[0], tmp_path / "damaged", checked=False)
    (folder / "latency/part-000000.parquet").write_bytes(content(rrul[0]))
    with pytest.raises(RecordError, match=wanted):
        open_record(folder).check()


@pytest.mark.parametrize("table", ["throughput", "latency", "flows"])
def test_a_row_without_what_all_rows_have_is_refused(rrul: list[Record], tmp_path: Path, table: str) -> None:
    folder = copied(rrul[0], tmp_path / "damaged", checked=False)
    part = folder / f"{table}/part-000000.parquet"
    column = "probe" if table == "latency" else "flow"
    frame = pl.read_parquet(part)
    first = pl.when(pl.int_range(pl.len()) > 0).then(pl.col(column))
    frame.with_columns(first.alias(column)).write_parquet(part)
    said = (
        f"`{table}/part-000000.parquet` is no part of `{table}`: 1 of {frame.height} rows have no `{column}`"
    )
    with pytest.raises(RecordError, match=said):
        open_record(folder).check()


@pytest.mark.parametrize("number", [-1, 2**62, 4711])
def test_rows_of_flows_that_the_scenario_does_not_have_change_no_figure(
    rrul: list[Record], tmp_path: Path, number: int
) -> None:
    folder = copied(rrul[0], tmp_path / "strange", checked=False)
    part = folder / "throughput/part-000000.parquet"
    frame = pl.read_parquet(part)
    strange = frame.head(100).with_columns(pl.lit(number, pl.Int64).alias("flow"))
    pl.concat([strange, frame]).write_parquet(part)
    strange_summary, plain = summarise(open_record(folder)), summarise(rrul[0])
    assert replace(strange_summary, path=plain.path) == plain


def test_connections_of_programs_are_flows_named_by_their_ports() -> None:
    connections = [
        {"client": "10.0.0.1:5", "server": "10.1.0.1:80", "path": "lte", "server_congestion_control": "bbr"},
        {"client": "10.0.1.1:6", "server": "10.1.0.1:80", "path": "wifi"},
    ]
    rows = rows_of_connections(connections, {1: (3, 4)}, 9)
    told = [(row["flow"], row["name"], row["direction"], row["start_ns"], row["stop_ns"]) for row in rows]
    assert told == [
        (0, "port 5 up to 80 by lte", "up", 0, 9),
        (1, "port 5 down from 80 by lte", "down", 3, 4),
        (2, "port 6 up to 80 by wifi", "up", 0, 9),
        (3, "port 6 down from 80 by wifi", "down", 0, 9),
    ]
    assert [row["congestion_control"] for row in rows] == [None, "bbr", None, None]
    several = [*connections, {"client": "[fd00::1]:7", "server": "[fd00::2]:443"}]
    assert [row["name"] for row in rows_of_connections(several, {}, 9)][::2] == [
        "port 5 up to 10.1.0.1:80 by lte",
        "port 6 up to 10.1.0.1:80 by wifi",
        "port 7 up to [fd00::2]:443",
    ]


def zipped(path: Path, files: Mapping[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_the_directory_of_an_archive_is_read_once_for_all_parts(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read for each part it takes as long as the square of their number: of 750 parts 3 s."""
    folder = copied(rrul[0], tmp_path / "many", checked=False)
    (first,) = (folder / "latency").iterdir()
    for number in range(1, 30):
        shutil.copy(first, folder / "latency" / f"part-{number:06}.parquet")
    pack(open_record(folder), tmp_path / "many.weir")
    record = open_record(tmp_path / "many.weir")
    read: list[object] = []
    directory = zipfile.ZipFile._RealGetContents  # type: ignore[attr-defined]

    def counted(archive: zipfile.ZipFile) -> None:
        read.append(archive)
        directory(archive)

    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", counted)
    assert record.latency.height == 30 * rrul[0].latency.height
    assert len(read) == 1
    pack(record, io.BytesIO())
    assert len(read) == 2


def test_an_archive_with_its_folder_inside_opens(rrul: list[Record], tmp_path: Path) -> None:
    folder = rrul[0].path
    files = {
        f"mine/{file.relative_to(folder).as_posix()}": file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    record = open_record(zipped(tmp_path / "one.weir", files))
    record.check()
    assert record.latency.equals(rrul[0].latency)
    two = files | {"other/manifest.json": files["mine/manifest.json"]}
    with pytest.raises(RecordError, match="has 2 records in it: unpack it"):
        open_record(zipped(tmp_path / "two.weir", two))


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"a": ""}, "is no record: there is no manifest.json in it"),
        ({"manifest.json": "{}", "../out": ""}, r"the path `\.\./out` leaves the archive"),
        ({"manifest.json": "{}", "/etc/out": ""}, "the path `/etc/out` leaves the archive"),
        ({"manifest.json": bytes(65 * 2**20)}, "`manifest.json` has 68157440 bytes"),
    ],
)
def test_an_archive_of_a_stranger_is_looked_at_first(
    files: dict[str, bytes | str], wanted: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=wanted):
        open_record(zipped(tmp_path / "one.weir", files))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_is_packed_as_records_are(method: int, rrul: list[Record], tmp_path: Path) -> None:
    """These two are unpacked without a bound: 20 kB take gigabytes."""
    archive = tmp_path / "one.weir"
    pack(rrul[0], archive)
    with zipfile.ZipFile(archive, "a", method) as more:
        more.writestr("latency/part-00009.parquet", bytes(1000))
    with pytest.raises(RecordError, match=f"is packed by method {method} of zip; .* stored .* deflated"):
        open_record(archive)


def test_a_truncated_archive_is_damaged(rrul: list[Record], tmp_path: Path) -> None:
    archive = tmp_path / "one.weir"
    pack(rrul[0], archive)
    archive.write_bytes(archive.read_bytes()[:-1000])
    with pytest.raises(RecordError, match="is damaged: it is no whole zip archive"):
        open_record(archive)


def test_one_bad_record_does_not_hide_the_others(weir_here: Weir, rrul: list[Record], tmp_path: Path) -> None:
    copied(rrul[0], tmp_path / "all/a")
    _change_a_byte(copied(rrul[1], tmp_path / "all/b"))
    copied(rrul[1], tmp_path / "all/c")
    bad = "weir: `all/b`: `latency` is damaged: its bytes are not those that were written"
    for words in (
        ("show", "all", "--json"),
        ("compare", "all", "--json"),
        ("plot", "all", "--kind", "cdf", "--out", "c.svg"),
    ):
        done = weir_here(*words)
        assert done.returncode == 3, done.stderr
        assert bad in done.stderr
        assert "weir: 1 of 3 records cannot be read; the others are shown" in done.stderr
        assert "Traceback" not in done.stderr
        if "--json" in words:
            assert len(json.loads(done.stdout)) == 2
    assert (tmp_path / "c.svg").exists()
    alone = weir_here("show", "all/b")
    assert (alone.returncode, alone.stderr) == (3, f"{bad}\n")


def test_charts_that_a_run_left_beside_its_records_are_no_record_that_is_missing(
    weir_here: Weir, rrul: list[Record], tmp_path: Path
) -> None:
    copied(rrul[0], tmp_path / "out/01-a")
    copied(rrul[1], tmp_path / "out/02-b")
    charts = tmp_path / "out/charts"
    charts.mkdir()
    (charts / "box.png").touch()
    of_shell = [f"out/{path.name}" for path in sorted((tmp_path / "out").iterdir())]
    assert of_shell[-1] == "out/charts"
    for words in (
        ("show", *of_shell),
        ("compare", *of_shell),
        ("compare", of_shell[-1], *of_shell[:-1]),
        ("report", *of_shell, "-o", "page.html"),
        ("plot", *of_shell, "--kind", "cdf", "--out", "c.svg"),
        ("export", *of_shell, "--out", "t.csv"),
        ("note", *of_shell),
    ):
        done = weir_here(*words)
        assert (done.returncode, "there is no record" in done.stderr) == (0, False), done.stderr
    # Alone it is none, and neither is a folder with anything else, or with no record beside it.
    assert "there is no record in `out/charts`" in weir_here("show", "out/charts").stderr
    (charts / "mine.txt").touch()
    assert weir_here("show", *of_shell).returncode == 3
    (charts / "mine.txt").unlink()
    charts.rename(tmp_path / "charts")
    assert weir_here("show", "out", "charts").returncode == 3


def test_nothing_becomes_the_baseline_in_place_of_a_first_record_that_cannot_be_read(
    weir_here: Weir, rrul: list[Record], tmp_path: Path
) -> None:
    copied(rrul[0], tmp_path / "good")
    copied(rrul[1], tmp_path / "other")
    _change_a_byte(copied(rrul[1], tmp_path / "bad"))
    for words in (
        ("compare",),
        ("compare", "--json"),
        ("report", "-o", "page.html"),
        ("plot", "--kind", "qq"),
    ):
        for first, why in (("nope", "`nope`"), ("bad", "`bad`: `latency` is damaged")):
            done = weir_here(words[0], first, "good", "other", *words[1:])
            assert (done.returncode, done.stdout) == (3, ""), words
            assert why in done.stderr
            assert "the baseline, and no other replaces it" in done.stderr
            assert not (tmp_path / "page.html").exists()
    later = weir_here("compare", "good", "nope", "other")
    assert later.returncode == 3
    assert "weir: 1 of 3 records cannot be read; the others are shown" in later.stderr


def test_notes_and_tags_are_kept_and_told(weir_here: Weir, tmp_path: Path) -> None:
    short = ("--idle", "200ms", "--load", "300ms", "--cooldown", "0s", "--no-charts")
    done = weir_here(
        "run", "rrul_be", *short, "--note", "new modem", "--tag", "home", "--tag", "dsl", "--out", "o"
    )
    assert done.returncode == 0, done.stderr
    [record] = find_records(tmp_path / "o")
    assert (record.manifest.note, record.manifest.tags) == ("new modem", ["home", "dsl"])
    for command in ("show", "compare"):
        assert "new modem [home, dsl]" in weir_here(command, "o").stdout
    [shown] = json.loads(weir_here("show", "o", "--json").stdout)
    told = {name: shown[name] for name in ("path", "world", "note", "tags")}
    assert told == {"path": "o/01-default", "world": "sim", "note": "new modem", "tags": ["home", "dsl"]}
    assert {"test", "link", "started_at"} <= set(shown)
    refused = weir_here("run", "rrul_be", "--tag", "two words", "--out", "p")
    assert refused.returncode == 2
    assert not (tmp_path / "p").exists()


def test_a_temporary_record_is_removed_with_the_last_of_its_run() -> None:
    phases = {"idle": "100ms", "load": "100ms", "cooldown": "0s"}
    records = weirlab.run("rrul_be", queue=["fq_codel", "pfifo"], phases=phases, note="gone soon")
    first, second = records
    folder = first.path.parent
    assert first.manifest.note == "gone soon"
    del records, first
    gc.collect()
    assert second.latency.height > 0
    del second
    gc.collect()
    assert not folder.exists()


def test_a_long_table_is_never_held_as_a_whole(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = summarise(open_record(rrul[0].path))
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    archive = tmp_path / "long.weir"
    pack(rrul[0], archive)
    for path in (rrul[0].path, archive):
        record = open_record(path)
        record.check()
        assert replace(summarise(record), path="") == replace(held, path="")
        assert quality_table(record) is None
        assert "latency" not in vars(record)
        assert record._columns.keys().isdisjoint({"latency", "throughput", "tcp", "queue"})
    assert open_record(rrul[0].path).latency.equals(rrul[0].latency), "who asks for it has it"


def test_figures_of_a_long_record_that_was_cut_short_are_those_of_one_that_is_held(
    rrul: list[Record], tmp_path: Path
) -> None:
    folder = copied(rrul[0], tmp_path / "cut", checked=False)
    shutil.rmtree(folder / "flows")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"reached_ns": None, "complete": False}))
    held = open_record(folder)
    assert held.is_long("tcp"), "how many rows there are is not told"
    held.tcp  # noqa: B018 - which is then what figures are made of
    found = summarise(open_record(folder))
    assert found == summarise(held)
    assert found.down is not None
    assert found.down.retransmitted_segments is not None
    assert found.down.loss_rate is None


def test_the_pieces_of_a_long_table_are_its_rows(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "parts"
    shutil.copytree(rrul[0].path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"] = None
    (folder / "manifest.json").write_text(json.dumps(manifest))
    frame = rrul[0].queue
    first = folder / "queue" / "part-000000.parquet"
    (first.parent / "part-000001.parquet").write_bytes(first.read_bytes())
    frame.write_parquet(first.parent / "part-000002.parquet", compression="zstd")
    monkeypatch.setattr(part_files, "PIECE_BYTES", 1)
    names = ["t_ns", "queue", "wire_bytes"]
    pieces = list(open_record(folder).pieces("queue", names))
    assert len(pieces) == 3
    for piece in pieces:
        assert piece.frame(names).equals(frame.select(names))
    assert open_record(folder).line("down/modem")[0].size == 3 * rrul[0].line("down/modem")[0].size


def test_figures_of_a_long_record_need_no_data_frames(rrul: list[Record]) -> None:
    program = (
        "import sys, weirlab.record.reader as reader; reader.MAX_HELD_ROWS = 100\n"
        "from weirlab.record import open_record; from weirlab.stats import summarise\n"
        f"record = open_record({str(rrul[0].path)!r}); record.check(); summarise(record)\n"
        "sys.exit('polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_of_several_long_records_none_has_its_tables_in_memory(
    rrul: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    with readable([rrul[0].path, rrul[1].path]) as several:
        assert [record._columns for record in several] == [{}, {}]
    with readable([rrul[0].path]) as one:
        assert one[0]._columns, "who shows it needs them"


def test_what_is_done_for_a_record_does_not_grow_with_how_many_there_are(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often a record is asked whether its tables are long: as often among twenty as among ten."""
    asked: list[str] = []
    real = reader.Record.is_long

    def is_long(self: Record, table: str) -> bool:
        asked.append(table)
        return real(self, table)

    for number in range(20):
        (tmp_path / f"{number:02d}").symlink_to(rrul[0].path)
    monkeypatch.setattr(reader.Record, "is_long", is_long)
    counts = []
    for count in (10, 20):
        asked.clear()
        with readable([tmp_path / f"{number:02d}" for number in range(count)]):
            counts.append(len(asked))
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.05)


def test_a_damaged_long_table_is_noticed(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(rrul[0], tmp_path / "long")
    part = folder / "latency/part-000000.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"X")
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 100)
    with pytest.raises(RecordError, match="its bytes are not those that were written"):
        open_record(folder).check()
    with pytest.raises(RecordError, match="its bytes are not those that were written"):
        summarise(open_record(folder))


def test_other_programs_read_what_is_written_as_differences(rrul: list[Record]) -> None:
    for table in ("latency", "tcp", "queue", "throughput"):
        parts = [str(part) for part in sorted((rrul[0].path / table).iterdir())]
        ours = pl.concat([pl.read_parquet(part) for part in parts])
        assert duckdb.read_parquet(parts).fetchall() == ours.rows(), table
        encodings = duckdb.sql(
            f"select encodings from parquet_metadata({parts}) where path_in_schema = 't_ns'"  # noqa: S608
        )
        assert all("DELTA_BINARY_PACKED" in one for (one,) in encodings.fetchall()), table


def test_names_that_occur_several_times_are_numbered_apart() -> None:
    assert numbered(["a", "b", "a", "b", "c"]) == ["a (1)", "b (1)", "a (2)", "b (2)", "c"]
    assert numbered(["a", "a", "a-1"], "{}-{}") == ["a-2", "a-3", "a-1"]
