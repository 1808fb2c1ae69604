"""Tables as arrays have what their data frames have, whoever reads them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from weirlab import _native
from weirlab.record import open_record
from weirlab.record.columns import Columns
from weirlab.record.tables import MAX_PART_ROWS, TABLES, schema
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


def frame_of(record: Record, table: str) -> pl.DataFrame:
    frame: pl.DataFrame = getattr(record, "methods" if table == "method" else table)
    return frame.select(list(TABLES[table])) if table == "flows" and record.parts("flows") else frame


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_of_the_data_frame(rrul: list[Record], table: str) -> None:
    # A record of its own for each: none takes the rows of the other.
    frame, columns = frame_of(open_record(rrul[0].path), table), open_record(rrul[0].path).columns(table)
    assert columns.height == frame.height
    assert columns.frame().equals(frame)
    for name in frame.columns:
        assert columns.values(name) == frame[name].to_list()
    assert columns.rows() == frame.to_dicts()
    assert Columns.of_frame(table, frame).frame().equals(frame)


def test_a_data_frame_that_is_made_of_columns_is_the_one_that_is_read(rrul: list[Record]) -> None:
    read, made = open_record(rrul[0].path), open_record(rrul[0].path)
    made.check()
    for table in TABLES:
        assert frame_of(made, table).equals(frame_of(read, table))


def as_polars_writes_it(record: Record, folder: Path) -> Record:
    """A copy with other bytes, packed in a way that is not compiled in; nothing tells its digests."""
    shutil.copytree(record.path, folder)
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace('"tables"', '"former_tables"'))
    for part in folder.glob("*/*.parquet"):
        pl.read_parquet(part).write_parquet(part, compression="zstd")
    return open_record(folder)


def test_figures_do_not_depend_on_who_reads(rrul: list[Record], tmp_path: Path) -> None:
    for number, record in enumerate(rrul):
        other = as_polars_writes_it(record, tmp_path / f"{number}")
        part = other.path / "latency" / "part-000000.parquet"
        assert _native.read_table("latency", [part.read_bytes()], MAX_PART_ROWS) is None
        found, wanted = summarise(other).as_dict(), summarise(open_record(record.path)).as_dict()
        assert found | {"path": ""} == wanted | {"path": ""}


def test_a_part_of_polars_that_is_packed_as_ours_is_read(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "method": [1, 0, 2],
            "name": ["b", "a", "b"],
            "kind": ["x", "x", "x"],
            "began_ns": [5, 6, -(2**62)],
            "ended_ns": [None, 7, None],
            "result": ["{}", None, "\N{LATIN SMALL LETTER U WITH DIAERESIS}"],
        },
        schema=schema("method"),
    )
    frame.write_parquet(tmp_path / "part", compression="snappy")
    content = (tmp_path / "part").read_bytes()
    values = _native.read_table("method", [content, content], 6)
    assert values is not None
    columns = Columns.of_values("method", values)
    assert columns.frame().equals(pl.concat([frame, frame]))
    assert columns.is_text("name", "b").tolist() == [True, False, True] * 2
    assert columns.with_nan("ended_ns")[1] == 7.0
    assert np.isnan(columns.with_nan("ended_ns")[0])
    assert _native.read_table("method", [content], 2) is None
    assert _native.read_table("method", [content, content], 5) is None


def test_nothing_is_said_of_a_damaged_part(rrul: list[Record], capfd: pytest.CaptureFixture[str]) -> None:
    whole = (rrul[0].path / "latency" / "part-000000.parquet").read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = 0
    for place in range(footer, len(whole)):
        damaged = bytearray(whole)
        # The library panics of some of them.
        damaged[place] = 0xFF
        refused += _native.read_table("latency", [bytes(damaged)], MAX_PART_ROWS) is None
    assert refused
    assert capfd.readouterr() == ("", "")


def test_what_stands_in_a_column_without_a_value_is_not_its_first_text() -> None:
    columns = Columns.of_frame("method", pl.DataFrame({"result": [None, "a", None, "b"]}))
    assert columns.values("result") == [None, "a", None, "b"]
    assert columns.is_text("result", "a").tolist() == [False, True, False, False]
    assert columns.values_in("result", np.array([True, False, False, True])) == [None, "b"]
