"""The same scenario and seed give the same record, bit for bit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from weirlab.api import run_all
from weirlab.record import open_record
from weirlab.scenario import ScenarioSpec, resolve, shipped_links, shipped_tests
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from pathlib import Path


def fingerprint(folder: Path) -> str:
    """One hash over all tables of a record. Part files may be cut differently from run to run."""
    record = open_record(folder)
    digest = hashlib.sha256()
    for table in (record.flows, record.throughput, record.latency, record.tcp, record.queue):
        digest.update(table.write_csv().encode())
    return digest.hexdigest()


def prints(spec: ScenarioSpec, out: Path, *, jobs: int) -> list[str]:
    records = run_all(resolve(spec), world_named("sim"), out, jobs=jobs)
    assert all(record.manifest.complete for record in records)
    return [fingerprint(record.path) for record in records]


@pytest.mark.parametrize("test", shipped_tests())
def test_every_test_repeats_itself_on_one_and_on_several_workers(test: str, tmp_path: Path) -> None:
    spec = ScenarioSpec.model_validate(
        {
            "test": test,
            "link": "cable-20-8",
            "queue": ["pfifo_fast", "htb rate 95% fq_codel"],
            "repeat": 2,
            "phases": {"idle": "1s", "load": "2s" if test != "ping" else "0s"},
        }
    )
    alone = prints(spec, tmp_path / "alone", jobs=1)
    together = prints(spec, tmp_path / "together", jobs=4)
    assert alone == together
    assert len(set(alone)) == len(alone), "set-ups and seeds must differ"


@pytest.mark.parametrize("link", shipped_links())
def test_every_link_repeats_itself(link: str, tmp_path: Path) -> None:
    spec = ScenarioSpec.model_validate(
        {"test": "rrul_be", "link": link, "phases": {"idle": "1s", "load": "3s"}}
    )
    first = prints(spec, tmp_path / "first", jobs=1)
    assert first == prints(spec, tmp_path / "second", jobs=1)


def test_random_links_repeat_themselves_and_differ_by_seed(tmp_path: Path) -> None:
    link = {
        "name": "rough",
        "title": "A rough line",
        "up": [{"name": "line", "rate": "5mbit", "delay": "10ms", "jitter": "3ms"}],
        "down": [
            {
                "name": "line",
                "rate": "20mbit",
                "delay": "10ms",
                "loss": {
                    "model": "gilbert_elliott",
                    "good_to_bad": 0.001,
                    "bad_to_good": 0.2,
                },
            }
        ],
    }
    base = {"test": "tcp_download", "link": link, "phases": {"idle": "1s", "load": "3s"}}
    spec = ScenarioSpec.model_validate(base | {"repeat": 3})
    first = prints(spec, tmp_path / "first", jobs=3)
    assert first == prints(spec, tmp_path / "second", jobs=1)
    assert len(set(first)) == 3
