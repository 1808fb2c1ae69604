"""Streams of UDP in data files of Flent are no TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from flent_files import T0, document, imported
from weirlab.export import export
from weirlab.flent import import_flent
from weirlab.flent.exporting import flent_document
from weirlab.stats import summarise
from weirlab.stats.udp import mos_by_second
from weirlab.stats.udp_losses import udp_rows

if TYPE_CHECKING:
    from pathlib import Path


def with_stream(name: str, test: str, **meta: Any) -> dict[str, Any]:
    """A file of `test` whose upload has another name, and of which this is told."""
    content = document()
    content["metadata"]["NAME"] = test
    for part in (content["raw_values"], content["results"], content["metadata"]["SERIES_META"]):
        part[name] = part.pop("TCP upload")
    content["metadata"]["SERIES_META"][name] = {"UNITS": "Mbits/s", "TCP_RETRANSMIT": 0, **meta}
    return content


@pytest.mark.parametrize(
    ("name", "test", "meta", "protocol"),
    [
        ("UDP upload", "udp_flood", {}, "udp"),
        ("UDP upload host1", "udp_flood_var_up", {"RUNNER": "IperfCsvRunner"}, "udp"),
        ("upload", "mine", {"RUNNER": "IperfCsvRunner", "COMMAND": "/bin/iperf -c a -u -b 6M"}, "udp"),
        ("upload", "mine", {"RUNNER": "IperfCsvRunner", "COMMAND": "/bin/iperf --udp -b 6M"}, "udp"),
        ("TCP upload BE", "rrul_be_iperf", {"RUNNER": "IperfCsvRunner"}, "tcp"),
        ("TCP upload", "tcp_upload", {"COMMAND": "/bin/netperf -u 3"}, "tcp"),
    ],
)
def test_what_iperf_sent_by_udp_is_udp(
    name: str, test: str, meta: dict[str, Any], protocol: str, tmp_path: Path
) -> None:
    record = imported(tmp_path, with_stream(name, test, **meta))
    (flow,) = record.flow_rows
    assert (flow["protocol"], flow["congestion_control"]) == (protocol, None)
    up = summarise(record).up
    assert up is not None
    assert up.retransmitted_segments == (0 if protocol == "tcp" else None)
    # Nor is it known how long one of its packets takes to fill.
    assert mos_by_second(record, flow["flow"], udp_rows(record)).is_empty()


@pytest.mark.parametrize("name", ["cisco_5tcpup_2udpflood", "udp_flood_var_up"])
def test_udp_stays_udp_when_it_is_written_and_read_again(name: str, tmp_path: Path) -> None:
    phases = {"idle": "1s", "load": "3s", "cooldown": "1s"}
    (record,) = weirlab.run(name, phases=phases, out=tmp_path / "out")
    told = flent_document(record)["metadata"]["SERIES_META"]
    assert all("TCP_RETRANSMIT" not in meta for series, meta in told.items() if series.startswith("UDP"))
    (file,) = export([record], tmp_path / "one.flent.gz")
    again = import_flent(file, tmp_path / "again")
    of = {row["name"]: row["protocol"] for row in record.flow_rows}
    assert {row["name"]: row["protocol"] for row in again.flow_rows} == of
    ours, theirs = summarise(record).up, summarise(again).up
    assert ours is not None
    assert theirs is not None
    if any(protocol == "tcp" for protocol in of.values()):
        assert theirs.retransmitted_segments == ours.retransmitted_segments
    assert theirs.jain_index == (
        None if ours.jain_index is None else pytest.approx(ours.jain_index, rel=0.01)
    )


@pytest.mark.parametrize("every_s", [0.1, 0.5])
def test_samples_that_tell_no_length_may_be_closer_or_farther_than_steps(
    every_s: float, tmp_path: Path
) -> None:
    content = with_stream("UDP upload", "udp_flood")
    count = round(2 / every_s)
    content["raw_values"]["UDP upload"] = [
        {"t": T0 + 1 + every_s * n, "val": 8.0} for n in range(1, count + 1)
    ]
    assert imported(tmp_path, content).throughput["bytes"].sum() == 2_000_000
