"""Records that are damaged or of something else: each is refused in a sentence that says what is wrong."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import pytest

import weirlab
from altered import change_a_byte, copied
from weirlab.errors import RecordError
from weirlab.record import open_record
from weirlab.stats import summarise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record import Record


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


def _delete(folder: Path) -> str:
    (folder / "latency/part-000000.parquet").unlink()
    return "`latency/part-000000.parquet` is missing: the run wrote"


def _delete_table(folder: Path) -> str:
    shutil.rmtree(folder / "flows")
    return "`flows/part-000000.parquet` is missing: the run wrote 1 part files of `flows`"


def _add(folder: Path) -> str:
    shutil.copy(folder / "tcp/part-000000.parquet", folder / "tcp/part-000099.parquet")
    return "`tcp/part-000099.parquet` does not belong to it"


def _link(folder: Path) -> str:
    part = folder / "latency/part-000000.parquet"
    part.unlink()
    part.symlink_to("/dev/zero")
    return "`latency/part-000000.parquet` is a symbolic link"


def _link_a_table(folder: Path) -> str:
    (folder / "latency").rename(folder.parent / "elsewhere")
    (folder / "latency").symlink_to(folder.parent / "elsewhere")
    return "`latency` is a symbolic link"


DAMAGES = [_delete, _delete_table, _add, change_a_byte, _link, _link_a_table]


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
