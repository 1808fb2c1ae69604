"""Metadata of data files of Flent: what a record and its export keep of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from flent_files import document, imported
from weirlab.export import export
from weirlab.flent import import_flent
from weirlab.flent.exporting import flent_document
from weirlab.record import Record

if TYPE_CHECKING:
    from pathlib import Path

MORE: dict[str, Any] = {
    "BATCH_NAME": "night",
    "BATCH_TITLE": "every night",
    "BATCH_UUID": "7a",
    "BATCH_TIME": "2023-11-14T20:00:00.000000Z",
    "DATA_FILENAME": "tcp_upload-before.flent.gz",
    "EGRESS_INFO": {"iface": "eth0", "qdiscs": [{"name": "fq_codel", "params": {"limit": 10240}}]},
    "GATEWAYS": [{"ip": "192.0.2.1", "iface": "eth0"}],
    "IP_ADDRS": {"eth0": ["192.0.2.2"]},
    "MODULE_VERSIONS": {"sch_cake": "abc"},
    "REMOTE_METADATA": {"router": {"KERNEL_NAME": "Linux"}},
    "SYSCTLS": {"net.ipv4.tcp_ecn": 1},
    "TEST_PARAMETERS": {"tcp_cong_control": "bbr"},
    "TIME": "2023-11-14T22:13:04.000000Z",
    "IP_VERSION": 4,
    "KERNEL_NAME": "Linux",
    "KERNEL_RELEASE": "5.10 with a space",
    "FAILED_RUNNERS": 0,
    "HTTP_GETTER_WORKERS": 4,
}


def test_what_a_file_said_of_its_run_is_written_again(tmp_path: Path) -> None:
    content = document()
    content["metadata"] |= MORE
    again = flent_document(imported(tmp_path, content))["metadata"]
    assert {key: again[key] for key in MORE} == MORE
    for key in ("NAME", "TITLE", "HOST", "LOCAL_HOST", "NOTE", "T0", "STEP_SIZE"):
        assert again[key] == content["metadata"][key]
    assert again["LENGTH"] == 2.0


def test_what_a_file_said_of_its_series_is_written_again(tmp_path: Path) -> None:
    content = document()
    told = content["metadata"]["SERIES_META"]
    told["Ping (ms) ICMP"] |= {"IDX": 7, "COMMAND": "/usr/bin/fping", "MEAN_VALUE": 21.5}
    told["TCP upload"] |= {
        "IDX": 4,
        "RUNNER": "NetperfDemoRunner",
        "MEAN_VALUE": 7.5,
        "ELAPSED_TIME": 62.2,
        "BYTES_SENT": 2_000_000,
        "BYTES_RECVD": 1_999_000,
        "TCPI_TOTAL_RETRANS": 35,
        "TCP_MSS": 1448,
        "CONG_CONTROL": None,
    }
    again = flent_document(imported(tmp_path, content))["metadata"]["SERIES_META"]
    for series, meta in told.items():
        assert {key: again[series][key] for key in meta} == meta
    assert again["Ping (ms) ICMP"]["MIN_VALUE"] == 20.0, "what the file did not tell is added"


def test_a_time_that_no_file_told_is_not_made_up(tmp_path: Path) -> None:
    again = flent_document(imported(tmp_path, document()))["metadata"]["SERIES_META"]
    assert "ELAPSED_TIME" not in again["TCP upload"]


def test_what_flows_resent_and_warnings_are_read_again(tmp_path: Path) -> None:
    phases = {"idle": "1s", "load": "6s", "cooldown": "0s"}
    (record,) = weirlab.run("rrul", link="cable-20-8", phases=phases, out=tmp_path / "out")
    totals = ("delivered_bytes", "retransmitted_segments")
    ours = [record.flows[column].to_list() for column in totals]
    assert all(any(column) for column in ours)
    path = record.path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"warnings": ["the clock stood still"]}))
    record = Record(record.path)
    for name in ("first", "second", "third"):
        (file,) = export([record], tmp_path / f"{name}.flent.gz")
        record = import_flent(file, tmp_path / name)
        assert record.manifest.warnings == ["the clock stood still"]
        assert [record.flows[column].to_list() for column in totals] == ours


@pytest.mark.parametrize("key", ["TIME", "BATCH_TIME"])
def test_local_times_of_an_old_file_become_utc(key: str, tmp_path: Path) -> None:
    content = document(version=2)
    content["metadata"] |= {
        "T0": "2023-11-15T03:43:20.000000",
        "TIME": "2023-11-15T03:43:04.5",
        key: "2023-11-15T03:43:04.5",
    }
    again = flent_document(imported(tmp_path, content))["metadata"]
    assert again["T0"] == "2023-11-14T22:13:20.000000Z"
    assert again[key] == "2023-11-14T22:13:04.500000Z"


def on_real_path(record: Record, *names: str) -> Record:
    """`record` as if it had been measured over the paths to these servers."""
    path = record.path / "manifest.json"
    manifest = json.loads(path.read_text())
    hosts = [one["name"] for one in manifest["scenario"]["hosts"]]
    manifest["servers"] = [
        {"host": host, "name": name, "address": "127.0.0.1:8080"}
        for host, name in zip(hosts, names, strict=True)
    ]
    path.write_text(json.dumps(manifest))
    return Record(record.path)


def test_the_host_is_the_one_that_the_user_named(tmp_path: Path) -> None:
    phases = {"idle": "1s", "load": "1s", "cooldown": "0s"}
    (record,) = weirlab.run("tcp_upload", phases=phases, out=tmp_path / "one")
    assert flent_document(record)["metadata"]["HOST"] == "server"
    told = flent_document(on_real_path(record, "localhost:8080"))["metadata"]
    assert (told["HOST"], told["HOSTS"]) == ("localhost", ["localhost"])
    told = flent_document(on_real_path(record, "b.example:99"))["metadata"]
    assert (told["HOST"], told["HOSTS"]) == ("b.example:99", ["b.example:99"])


def test_servers_in_the_names_of_series_keep_these(tmp_path: Path) -> None:
    phases = {"idle": "1s", "load": "1s", "cooldown": "0s"}
    (record,) = weirlab.run("rtt_fair_up", phases=phases, out=tmp_path / "one")
    hosts = [one["name"] for one in record.manifest.scenario["hosts"]]
    real = [f"{place}.example:8080" for place in range(len(hosts))]
    told = flent_document(on_real_path(record, *real))["metadata"]
    assert (told["HOST"], told["HOSTS"]) == ("0.example", hosts)
