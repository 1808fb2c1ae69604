"""`weir export`: what other programs read is what the record says."""

from __future__ import annotations

import errno
import json
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from weirlab import export as exporting
from weirlab.cli import weir as group
from weirlab.errors import RecordError, UsageError, WeirError, WriteError
from weirlab.export import NAMES, export
from weirlab.flent import import_flent
from weirlab.record import open_record, pack, reader
from weirlab.stats import compare

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from weirlab.record import Record


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Two configurations of a test with two probes' worth of names and two flows, twice each."""
    return weirlab.run(
        "tcp_bidirectional",
        queue=["pfifo_fast", "fq_codel"],
        repeat=2,
        phases={"idle": "1s", "load": "1s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("export") / "out",
    )


def command(*words: str) -> str:
    done = CliRunner().invoke(group, ["export", *words], catch_exceptions=False, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


def test_a_weir_file_is_the_record(records: list[Record], tmp_path: Path) -> None:
    target = tmp_path / "deep" / "run.weir"
    assert export(records[:1], target) == [target]
    opened = open_record(target)
    assert opened.manifest == records[0].manifest
    for table in ("latency", "throughput", "tcp", "queue", "flows"):
        assert getattr(opened, table).equals(getattr(records[0], table)), table
    assert compare(opened)[0].loaded_ms == compare(records[0])[0].loaded_ms
    # A packed record can be packed again, and is the same to the bit.
    again = tmp_path / "again.weir"
    pack(opened, again)
    assert again.read_bytes() == target.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_several_records_become_a_folder_of_weir_files(records: list[Record], tmp_path: Path) -> None:
    made = export(records, tmp_path / "o", "weir")
    assert [path.name for path in made] == [
        "01-pfifo-fast-seed-1.weir",
        "01-pfifo-fast-seed-2.weir",
        "02-fq-codel-seed-1.weir",
        "02-fq-codel-seed-2.weir",
    ]
    assert [open_record(path).manifest.seed for path in made] == [1, 2, 1, 2]


@pytest.mark.parametrize("form", ["weir", "flent"])
def test_no_file_takes_the_name_of_another(form: str, records: list[Record], tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("x y", "x+y", "x-y-2", "x-y_2")]
    for record, folder in zip(records, folders, strict=True):
        shutil.copytree(record.path, folder)
    several = [open_record(folder) for folder in folders]
    made = export(several, tmp_path / "out", form)
    assert len(set(made)) == len(several) == len(list((tmp_path / "out").iterdir()))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_without_a_row_have_all_columns(form: str, records: list[Record], tmp_path: Path) -> None:
    phases = {"idle": "0s", "load": "1s", "cooldown": "0s"}
    pings = weirlab.run("ping", phases=phases, out=tmp_path / "pings")
    read = pl.read_csv if form == "csv" else pl.read_parquet
    [full] = export(records[:1], tmp_path / f"full.{form}", form, table="flows")
    [empty] = export(pings, tmp_path / f"empty.{form}", form, table="flows")
    assert read(empty).height == 0
    assert read(empty).columns == read(full).columns
    if form == "parquet":
        assert read(empty).schema == read(full).schema
    assert "probe" in weirlab.tidy.frame([_without_pings(pings[0], tmp_path / "none")], by="probe").columns


def _without_pings(record: Record, folder: Path) -> Record:
    shutil.copytree(record.path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["scenario"]["probes"] = []
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return open_record(folder)


def test_csv_and_parquet_have_names_in_place_of_numbers(records: list[Record], tmp_path: Path) -> None:
    export(records, tmp_path / "pings.csv", table="latency")
    export(records, tmp_path / "pings.parquet", table="latency")
    csv, parquet = pl.read_csv(tmp_path / "pings.csv"), pl.read_parquet(tmp_path / "pings.parquet")
    assert csv.height == parquet.height == sum(record.latency.height for record in records)
    assert set(parquet["probe"]) == set(records[0].probe_names)
    assert parquet.columns[:7] == ["configuration", "test", "link", "queue", "world", "seed", "complete"]
    assert csv["rtt_ns"].sum() == sum(record.latency["rtt_ns"].sum() for record in records)
    export(records, tmp_path / "goodput.parquet", table="throughput")
    flows = pl.read_parquet(tmp_path / "goodput.parquet")
    assert set(flows["flow"]) == set(records[0].flow_names["name"])


def _on_a_clock(record: Record, folder: Path, started_at: str, note: str = "") -> Record:
    """A copy of a record, as if it had been measured then."""
    shutil.copytree(record.path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    told = {"world": "net", "started_at": started_at, "note": note}
    manifest["link"] |= {"name": "path", "title": f"path to {note}"}
    (folder / "manifest.json").write_text(json.dumps(manifest | told))
    return open_record(folder)


def test_rows_of_runs_on_a_real_clock_say_which_run_they_are_of(
    records: list[Record], tmp_path: Path
) -> None:
    """Their seed does not tell: all tests of a line have the same."""
    times = ["2026-11-01T00:00:00Z", "2026-11-01T00:05:00Z"]
    tests = [
        _on_a_clock(records[0], tmp_path / at[14:16], at, note)
        for at, note in zip(times, ("alice", "bob"), strict=True)
    ]
    rows = weirlab.frame(tests)
    assert rows["started_at"].to_list() == times
    assert rows["note"].to_list() == ["alice", "bob"]
    assert rows["path"].to_list() == ["path to alice", "path to bob"]
    export(tests, tmp_path / "pings.parquet", table="latency")
    pings = pl.read_parquet(tmp_path / "pings.parquet")
    counts = dict(pings.group_by("started_at").len().iter_rows())
    assert counts == dict.fromkeys(times, records[0].latency.height)
    assert ("path" in pings.columns, "note" in pings.columns) == (True, False)
    # When a simulation was computed says nothing, and the same records give the same bytes.
    assert "started_at" not in weirlab.frame(records).columns


def test_the_table_of_runs_is_the_frame(records: list[Record], tmp_path: Path) -> None:
    export(records, tmp_path / "figures.parquet")
    assert pl.read_parquet(tmp_path / "figures.parquet").equals(weirlab.frame(records))


def test_a_folder_gets_all_tables_that_have_rows(records: list[Record], tmp_path: Path) -> None:
    made = {path.name for path in export(records, tmp_path / "o", "csv")}
    assert made == {
        f"{name}.csv" for name in ("runs", "probes", "flows", "latency", "throughput", "tcp", "queue")
    }
    assert made == {path.name for path in (tmp_path / "o").iterdir()}


def test_calls_and_pages_are_among_the_tables(tmp_path: Path) -> None:
    brief = {"idle": "0s", "load": "3s", "cooldown": "0s"}
    made = [weirlab.run(test, phases=brief, out=tmp_path / test)[0] for test in ("voip", "http")]
    names = {path.name for path in export(made, tmp_path / "o", "parquet")}
    assert {"udp.parquet", "transfers.parquet"} <= names
    calls = pl.read_parquet(tmp_path / "o" / "udp.parquet")
    assert calls.height == made[0].udp.height > 0
    assert set(calls["test"]) == {"voip"}
    pages = pl.read_parquet(tmp_path / "o" / "transfers.parquet")
    assert pages.height == made[1].transfers.height > 0
    assert set(pages["flow"]) <= set(made[1].flow_names["name"])


def test_columns_have_their_types_whatever_the_records_tell(records: list[Record], tmp_path: Path) -> None:
    """A file of Flent's has no seed, and nothing of what was sent: files are read together all the same."""
    export(records[:1], tmp_path / "a.flent.gz")
    imported = import_flent(tmp_path / "a.flent.gz", tmp_path / "imported")
    assert imported.manifest.seed is None
    for table in ("runs", "probes", "flows", "latency"):
        for name, record in (("here", records[0]), ("imported", imported)):
            export([record], tmp_path / f"{table}-{name}.parquet", table=table)
        both = pl.scan_parquet(tmp_path / f"{table}-*.parquet").collect()
        assert both["seed"].to_list()[0] == 1
        assert both["seed"].to_list()[-1] is None


def test_a_folder_has_all_files_or_none(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_frames: object, _file: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    csv = exporting.WRITERS["csv"]
    calls = iter([csv, csv, full])

    def third_is_full(frames: Iterator[pl.DataFrame], file: IO[bytes]) -> None:
        next(calls)(frames, file)

    monkeypatch.setitem(exporting.WRITERS, "csv", third_is_full)
    with pytest.raises(WriteError, match=r"flows\.csv` cannot be written: No space left"):
        export(records, tmp_path / "new" / "folder", "csv")
    assert not list(tmp_path.iterdir())


def test_a_name_that_leads_nowhere_is_taken_too(records: list[Record], tmp_path: Path) -> None:
    (tmp_path / "x.csv").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="exists: choose another name"):
        export(records, tmp_path / "x.csv")


@pytest.mark.parametrize("where", ["", "new/deep"])
def test_a_name_that_is_too_long_is_wrong_input(records: list[Record], where: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: File name too long"):
        export(records, tmp_path / where / f"{'x' * 300}.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["weir", "csv", "parquet"])
def test_the_same_record_gives_the_same_bytes(suffix: str, records: list[Record], tmp_path: Path) -> None:
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    for target in (first, second):
        export([open_record(records[0].path)], target)
    assert first.read_bytes() == second.read_bytes()


def test_the_command_says_what_it_wrote(records: list[Record], tmp_path: Path) -> None:
    folder = str(records[0].path.parent.parent)
    said = command(folder, "--out", str(tmp_path / "x"), "--format", "parquet", "--table", "flows")
    assert said.split() == [str(tmp_path / "x" / "flows.parquet")]
    packed = str(tmp_path / "one.weir")
    command(str(records[0].path), "--out", packed)
    shown = CliRunner().invoke(group, ["show", packed, "--json"])
    assert json.loads(shown.output)[0]["seed"] == 1


@pytest.mark.parametrize("form", ["weir", "csv", "parquet"])
def test_one_bad_record_is_told_and_the_others_are_exported(
    form: str, records: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "given"
    for number, one in enumerate(records[:3]):
        shutil.copytree(one.path, given / str(number))
    damaged = min((given / "1").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    out = tmp_path / "out"
    words = ["export", str(given), "--out", str(out), "--format", form]
    words += [] if form == "weir" else ["--table", "runs"]
    with pytest.raises(RecordError, match="1 of 3 records cannot be read; the others are exported") as caught:
        group.main(words, standalone_mode=False)
    assert caught.value.exit_code == 3
    assert f"weir: `{given / '1'}" in capsys.readouterr().err
    made = sorted(path.name for path in out.iterdir())
    assert made == (["0.weir", "2.weir"] if form == "weir" else [f"runs.{form}"])
    if form == "csv":
        assert pl.read_csv(out / "runs.csv").height == 2


def test_a_bad_record_alone_leaves_nothing(records: list[Record], tmp_path: Path) -> None:
    shutil.copytree(records[0].path, tmp_path / "given")
    min((tmp_path / "given").rglob("*.parquet")).write_bytes(b"")
    with pytest.raises(RecordError) as caught:
        command(str(tmp_path / "given"), "--out", str(tmp_path / "x.csv"))
    assert caught.value.exit_code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


def test_wrong_words_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for words, said in (
        (["--out", "there.csv"], "exists: choose another name"),
        (["--out", "full", "--format", "csv"], "exists and is not an empty folder"),
        (
            ["--out", "x"],
            "name a file that ends in .weir, .flent.gz, .pcapng, .csv, .jsonl or .parquet, or give",
        ),
        (["--out", "x.csv", "--format", "weir"], "its name says .csv, --format says weir"),
        (["--out", "x.csv", "--title", "mine"], "only a .flent.gz file has a title: leave `mine` out"),
        (["--out", "x.weir", "--table", "latency"], "a .weir file always holds the whole record"),
    ):
        words[1] = str(tmp_path / words[1])
        with pytest.raises(UsageError, match=said):
            command("nowhere", *words)
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_several_records_are_no_weir_file(records: list[Record], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a \.weir file holds one record, not 4"):
        export(records, tmp_path / "x.weir")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.weir", "x.csv", "x.parquet"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    name: str, records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(WeirError, match=f"{name}` cannot be written: No space left on device") as caught:
        export(records[:1], tmp_path / name)
    assert caught.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_disk_that_fills_up_is_told_in_the_words_of_the_system(
    form: str, records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weirlab.writing.uuid.uuid4", lambda: SimpleNamespace(hex="part"))
    (tmp_path / ".part.part").symlink_to("/dev/full")
    with pytest.raises(WeirError) as caught:
        export(records[:1], tmp_path / f"x.{form}", table="latency")
    assert str(caught.value) == f"`{tmp_path / 'x'}.{form}` cannot be written: No space left on device"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_long_table_is_written_part_by_part_and_is_the_same(
    form: str, records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(records, tmp_path / f"held.{form}", table="latency")
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 10)
    long = [open_record(one.path) for one in records]
    export(long, tmp_path / f"long.{form}", table="latency")
    assert (tmp_path / f"long.{form}").read_bytes() == (tmp_path / f"held.{form}").read_bytes()
    assert not any("latency" in vars(one) for one in long)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_long_table_that_is_damaged_is_told_and_nothing_is_left(
    form: str, records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_HELD_ROWS", 10)
    folder = tmp_path / "damaged"
    shutil.copytree(records[0].path, folder)
    record = open_record(folder)
    part = folder / "latency/part-000000.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"X")
    with pytest.raises(RecordError, match="`latency` is damaged"):
        export([record], tmp_path / f"x.{form}", table="latency")
    assert [path.name for path in tmp_path.iterdir()] == ["damaged"]


def test_every_table_can_be_exported(records: list[Record], tmp_path: Path) -> None:
    for name in NAMES:
        export(records, tmp_path / f"{name}.csv", table=name)
