"""Part files of a table, read all in one go: the rows of one after the other, and the same refusals."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from live import PATIENCE_S
from weirlab.record import pack, parts
from weirlab.record.manifest import SCHEMA
from weirlab.record.parts import PartError, decoded, decoded_as_one

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

COUNT = 20
NAMES = [f"throughput/part-{number:06}.parquet" for number in range(COUNT)]


@pytest.fixture
def frames(rrul: list[Record]) -> list[pl.DataFrame]:
    """A table in part files of different lengths."""
    rows = rrul[0].throughput.height
    ends = [rows * number * number // (COUNT * COUNT) for number in range(COUNT + 1)]
    table = rrul[0].throughput
    return [table.slice(start, end - start) for start, end in pairwise(ends)]


def written(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def said(contents: list[bytes]) -> str:
    with pytest.raises(PartError) as caught:
        decoded_as_one(NAMES, contents, SCHEMA)
    return str(caught.value)


def test_they_are_the_rows_of_all_in_their_order(rrul: list[Record], frames: list[pl.DataFrame]) -> None:
    contents = [written(frame) for frame in frames]
    whole = decoded_as_one(NAMES, contents, SCHEMA)
    assert_frame_equal(whole, rrul[0].throughput)
    each = [decoded(name, one, None, SCHEMA) for name, one in zip(NAMES, contents, strict=True)]
    assert_frame_equal(whole, pl.concat(each))
    assert whole.n_chunks() == 1


def test_the_one_that_is_damaged_is_named(frames: list[pl.DataFrame]) -> None:
    contents = [written(frame) for frame in frames]
    contents[7] = contents[7][:-9]
    assert said(contents) == f"`{NAMES[7]}` is damaged: it is no whole Parquet file"


def test_the_one_without_a_column_is_named(frames: list[pl.DataFrame]) -> None:
    contents = [written(frame.drop("flow") if number == 3 else frame) for number, frame in enumerate(frames)]
    assert said(contents).startswith(f"`{NAMES[3]}` is no part of `throughput`: `flow` is missing")


def test_the_one_with_rows_of_nothing_is_named(frames: list[pl.DataFrame]) -> None:
    frames[11] = frames[11].with_columns(flow=pl.lit(None, pl.Int64))
    says = said([written(frame) for frame in frames])
    height = frames[11].height
    assert says.startswith(
        f"`{NAMES[11]}` is no part of `throughput`: {height} of {height} rows have no `flow`"
    )


def test_the_one_with_more_rows_than_a_part_may_have_is_named(
    frames: list[pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = max(frame.height for frame in frames)
    monkeypatch.setattr(parts, "MAX_PART_ROWS", longest - 1)
    at = [frame.height for frame in frames].index(longest)
    says = said([written(frame) for frame in frames])
    assert says == f"`{NAMES[at]}` has more than {longest - 1} rows, which is the most"


def test_parts_with_other_columns_are_refused(frames: list[pl.DataFrame]) -> None:
    frames[5] = frames[5].with_columns(other=pl.lit(1))
    assert (
        said([written(frame) for frame in frames]) == "the part files of `throughput` have different columns"
    )


def test_an_archive_that_became_a_pipe_is_not_waited_for(rrul: list[Record], tmp_path: Path) -> None:
    """It is opened anew for each table: nobody writes into the pipe."""
    place = tmp_path / "one.weir"
    pack(rrul[0], place)
    words = ["import os, sys, weirlab", "record = weirlab.open_record(sys.argv[1])", "os.unlink(sys.argv[1])"]
    words += [
        "os.mkfifo(sys.argv[1])",
        "try: record.latency",
        "except weirlab.WeirError as error: print(error)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(words), str(place)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == f"`{place}` is no record: neither a folder nor a .weir file\n", done.stderr
