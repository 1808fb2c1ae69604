"""One scenario and seed give the same record, bit for bit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from weirlab.api import run_all
from weirlab.record import open_record
from weirlab.record.tables import TABLES
from weirlab.scenario import ScenarioSpec, resolve, shipped_links, shipped_tests
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from pathlib import Path


LIVE_ONLY = {"emulator": "how late this machine was, which no seed repeats; the simulator is never late"}
"""Tables that the simulator does not write."""

CALL: dict[str, Any] = {
    "test": "voip-1up",
    "link": "cable-20-8",
    "queue": ["fq_codel"],
    "phases": {"idle": "1s", "load": "2s"},
}

PAGES: dict[str, Any] = {
    "test": "http-1down",
    "link": "cable-20-8",
    "queue": ["fq_codel"],
    "phases": {"idle": "1s", "load": "4s"},
}

RATE_CONTROL = {
    "test": "rrul_be",
    "link": "cable-20-8",
    "queue": ["fq_codel"],
    "shaper": ["auto"],
    "phases": {"idle": "1s", "load": "4s"},
    "repeat": 2,
}
SPEED_TEST = {
    "test": {
        "name": "ndt7",
        "title": "ndt7",
        "summary": "a foreign speed test",
        "phases": {"idle": "1s", "load": "25s"},
        "probes": [{"name": "ping", "kind": "icmp"}],
        "hosts": [{"name": "server", "delay": "10ms"}],
        "methods": [{"name": "test", "kind": "ndt7"}],
    },
    "link": "cable-20-8",
    "queue": ["fq_codel"],
    "repeat": 2,
}


def tables_of(folder: Path) -> dict[str, bytes]:
    """The rows of each table of a record. Part files may be cut differently from run to run."""
    record = open_record(folder)
    frames = {"method" if name == "methods" else name: getattr(record, name) for name in ACCESSORS}
    return {name: frame.write_csv().encode() for name, frame in frames.items() if frame.height}


ACCESSORS = (
    "flows",
    "throughput",
    "latency",
    "tcp",
    "queue",
    "emulator",
    "shaper",
    "udp",
    "methods",
    "transfers",
)


def fingerprint(folder: Path) -> str:
    """One hash over all tables of a record."""
    digest = hashlib.sha256()
    for name, rows in tables_of(folder).items():
        digest.update(name.encode() + rows)
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
    assert len(set(alone)) == len(alone), "configurations and seeds must differ"


@pytest.mark.parametrize("written", [RATE_CONTROL, SPEED_TEST], ids=["shaper", "method"])
def test_shapers_and_speed_tests_repeat_themselves(written: dict[str, Any], tmp_path: Path) -> None:
    spec = ScenarioSpec.model_validate(written)
    alone = prints(spec, tmp_path / "alone", jobs=1)
    assert alone == prints(spec, tmp_path / "together", jobs=4)
    assert len(set(alone)) == 2, "seeds must differ"


def test_every_table_that_the_simulator_writes_is_compared(tmp_path: Path) -> None:
    seen: set[str] = set()
    for number, written in enumerate((RATE_CONTROL, SPEED_TEST, CALL, PAGES)):
        spec = ScenarioSpec.model_validate(written | {"repeat": 1})
        (record,) = run_all(resolve(spec), world_named("sim"), tmp_path / str(number), jobs=1)
        seen |= tables_of(record.path).keys()
    assert seen == set(TABLES) - LIVE_ONLY.keys()


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
