"""Flent itself opens what is written here, and finds the same in its own files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import weirlab
from weirlab.export import export
from weirlab.flent import import_flent
from weirlab.stats import summarise

if TYPE_CHECKING:
    from weirlab.record import Record

FLENT = Path(__file__).parent / "clients/.flent"
SAMPLES = FLENT / "unittests/test_data"


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
