"""What the compiled part takes from Python is typed, and refused in one sentence where it does not fit."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# No ping is sent, but functions that send some are called.
pytestmark = pytest.mark.realtime

PING: dict[str, Any] = {
    "address": "127.0.0.1",
    "scope": 0,
    "port": 0,
    "method": "icmp",
    "secret": None,
    "payload_bytes": 56,
    "dscp": 0,
    "ttl": None,
    "period_ns": 100_000_000,
    "count": 1,
    "timeout_ns": 1_000_000_000,
}

ENDED: dict[str, Any] = {"name": "http", "kind": "http", "began_ns": 5, "ended_ns": 9, "result": "{}"}


def never(*_: object) -> bool:
    raise AssertionError("a ping was sent")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("address", "nobody", "address `nobody`: write an IPv4 or IPv6 address"),
        ("scope", -1, "scope -1: write a whole number from 0 to 4294967295"),
        ("port", 70_000, "port 70000: write a whole number from 0 to 65535"),
        ("method", "smoke", "there are no pings of method `smoke`"),
        ("payload_bytes", 1.5, "payload_bytes 1.5: write a whole number from 0 to 4294967295"),
        ("payload_bytes", 65_001, "payload 65001 bytes: write 0 to 65000"),
        ("dscp", True, "dscp true: write a whole number from 0 to 255"),
        ("ttl", 256, "ttl 256: write a whole number from 0 to 255"),
        ("period_ns", 999_999, "ping 999999ns: write 1ms or more"),
        ("count", "ten", "count `ten`: write a whole number from 0 to 18446744073709551615"),
        (
            "timeout_ns",
            2**64,
            f"timeout_ns {2**64}: write a whole number from 0 to {2**64 - 1}",
        ),
    ],
)
def test_pings_that_cannot_be_sent_are_refused_in_one_sentence(name: str, value: object, told: str) -> None:
    with pytest.raises(_native.InputError) as refusal:
        _native.ping(never, **{**PING, name: value})
    assert str(refusal.value) == told


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("began_ns", -1, "began_ns -1: write a whole number from 0 to 18446744073709551615"),
        ("ended_ns", None, "ended_ns None: write a whole number from 0 to 18446744073709551615"),
    ],
)
def test_a_speed_test_that_cannot_be_is_refused_in_one_sentence(name: str, value: object, told: str) -> None:
    with pytest.raises(_native.InputError) as refusal:
        _native.SpeedTest(**{**ENDED, name: value})
    assert str(refusal.value) == told


def test_a_ramp_of_more_flows_than_can_be_counted_is_refused_in_one_sentence() -> None:
    with pytest.raises(_native.InputError) as refusal:
        _native.plan_test(idle="4s", load="8s", ping="10ms", max_flows=2**32, cc="cubic", locate=False)
    assert str(refusal.value) == "max_flows 4294967296: write a whole number from 0 to 4294967295"


def test_text_is_no_longer_taken_for_a_request(tmp_path: Path) -> None:
    untyped: Any = _native
    folder = tmp_path / "record"
    with refused("'str' object is not an instance of 'SpeedTest'", of="speed_test"):
        untyped.record_method("{}", folder, json.dumps(ENDED))
    with refused("'str' object is not an instance of 'Ramp'", of="ramp"):
        untyped.measure("{}", folder, None, hosts=["192.0.2.1"], secret=None, ramp="{}")
    with refused("'str' object is not an instance of 'bool'", of="verify"):
        untyped.run_method("http", "http://192.0.2.1", secret=None, verify="no", progress=None)
    with pytest.raises(TypeError, match=r"^ping\(\) takes 1 positional arguments? but 2 were given$"):
        untyped.ping(json.dumps(PING), never)
    assert not folder.exists()


@contextmanager
def refused(told: str, of: str) -> Iterator[None]:
    """Something is refused for the type of an argument, which a note names."""
    with pytest.raises(TypeError) as refusal:
        yield
    assert (str(refusal.value), refusal.value.__notes__) == (told, [f"while processing '{of}'"])


def test_a_speed_test_is_recorded_as_it_was_given(tmp_path: Path) -> None:
    _native.record_method('{"seed": 1}', tmp_path / "record", _native.SpeedTest(**ENDED))
    manifest = json.loads((tmp_path / "record" / "manifest.json").read_text())
    assert (manifest["seed"], manifest["complete"], manifest["reached_ns"]) == (1, True, 9)
    [row] = pl.read_parquet(tmp_path / "record" / "method").to_dicts()
    assert {name: row[name] for name in ("name", "kind", "began_ns", "ended_ns", "result")} == ENDED


def test_names_that_are_declared_in_rust() -> None:
    assert [_native.parse_dscp(name) for name in ("AF41", "CS7", "LE")] == [34, 56, 1]
    bounds = _native.bounds()
    assert bounds["max_pings"] == 2**32 - 1
    assert bounds["max_ping_payload_bytes"] == 65_000
