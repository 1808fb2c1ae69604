"""Records: complete, cut short, killed, packed, of older formats."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

import weirlab
from altered import change_a_byte, copied, counted
from live import PATIENCE_S
from weirlab.errors import RecordError
from weirlab.record import find_records, open_record, pack
from weirlab.record.configurations import numbered
from weirlab.record.flows import rows_of_connections
from weirlab.record.tables import TABLES

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
    # On a slow machine a record begins with more parts than one.
    shutil.rmtree(folder / "latency")
    first = folder / "latency" / "part-000000.parquet"
    first.parent.mkdir()
    rrul[0].latency.write_parquet(first)
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
    change_a_byte(copied(rrul[1], tmp_path / "all/b"))
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
    change_a_byte(copied(rrul[1], tmp_path / "bad"))
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
