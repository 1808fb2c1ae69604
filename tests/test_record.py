"""Records: complete, cut short, killed, packed, foreign."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

import weirlab
from live import PATIENCE_S
from weirlab.errors import RecordError
from weirlab.record import find_records, open_record, pack

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


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
    pack(rrul[0].path, archive)
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
        ("[]", "its manifest.json is damaged"),
        ('{"schema_version": 1}', "its manifest.json is damaged"),
        (json.dumps({"schema_version": 99}), "has format 99; this Weir reads up to 1"),
    ],
)
def test_what_is_no_record_is_refused(manifest: str | None, message: str, tmp_path: Path) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(RecordError, match=message):
        open_record(tmp_path)
