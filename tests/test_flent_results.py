"""Data files of Flent without single samples: what stands on their steps takes the place of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flent_files import document, imported
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

SOCKETS = {"tcp_cwnd": 30.0, "tcp_rtt": 25.0, "tcp_rtt_var": 2.0, "tcp_pacing_rate": 9.0}


def bare(**changes: Any) -> dict[str, Any]:
    """A file whose samples are gone, with what the sockets of its upload told."""
    found = document(raw_values={}, **changes)
    for key, value in SOCKETS.items():
        found["results"][f"TCP upload::{key}"] = [None] * 5 + [value] * 11 + [None] * 5
        found["metadata"]["SERIES_META"][f"TCP upload::{key}"] = {"UNITS": "Mbits/s"}
    return found


@pytest.mark.parametrize("version", [1, 4])
def test_windows_and_round_trips_of_sockets_are_no_streams(version: int, tmp_path: Path) -> None:
    content = bare(version=version)
    record = imported(tmp_path, content)
    assert record.flow_names["name"].to_list() == ["TCP upload"]
    up = summarise(record).up
    assert up is not None
    assert up.goodput_mbps == pytest.approx(8.0, rel=0.1)
    rows = record.tcp.row(0, named=True)
    assert (rows["cwnd_segments"], rows["srtt_ns"], rows["pacing_rate_bps"]) == (30, 25_000_000, 9_000_000)
    assert record.tcp.height == 11


@pytest.mark.parametrize("version", [1, 4])
def test_sums_and_sockets_of_numbered_flows_are_no_streams(version: int, tmp_path: Path) -> None:
    content = bare(version=version)
    values = content["results"].pop("TCP upload")
    sockets = [one for one in content["results"] if one.startswith("TCP upload::")]
    for number in (1, 2):
        content["results"][f"TCP upload::{number}"] = values
        for name in sockets:
            content["results"][name.replace("::", f"::{number}::")] = content["results"][name]
    for name in sockets:
        del content["results"][name]
    content["results"]["TCP upload sum"] = [16.0] * 21
    content["metadata"]["SERIES_META"] = {}
    record = imported(tmp_path, content)
    assert record.flow_names["name"].to_list() == ["TCP upload::1", "TCP upload::2"]


def test_a_gap_has_the_rate_that_is_told_behind_it(tmp_path: Path) -> None:
    content = bare()
    # Flent has no value on a step that lies in an interval of more than five: that ended where values go on.
    content["results"]["TCP upload"][7:13] = [None] * 6
    record = imported(tmp_path, content)
    up = summarise(record).up
    assert up is not None
    assert up.goodput_mbps == pytest.approx(8.0, rel=0.1)
    assert record.throughput["bytes"].sum() == 11 * 200_000
    assert any("gaps" in said and "`TCP upload`" in said for said in record.manifest.warnings)
