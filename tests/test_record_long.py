"""Records with long tables: none is held as a whole, and figures are those of one that is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from altered import copied
from weirlab.cli.records import readable
from weirlab.errors import RecordError
from weirlab.record import open_record, pack, part_files, reader
from weirlab.report import quality_table
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


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
    written = sorted((folder / "queue").iterdir())
    for number in range(2):
        frame.write_parquet(folder / "queue" / f"part-9{number:05}.parquet", compression="zstd")
    monkeypatch.setattr(part_files, "PIECE_BYTES", 1)
    names = ["t_ns", "queue", "wire_bytes"]
    pieces = list(open_record(folder).pieces("queue", names))
    # On a slow machine a record begins with more parts than one.
    assert len(pieces) == len(written) + 2
    for piece in pieces[len(written) :]:
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
