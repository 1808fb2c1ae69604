"""What a line could carry whose rate is not always the same."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weirlab
from weirlab.errors import RecordError
from weirlab.stats import summarise
from weirlab.stats.capacity import capacity_bytes, carried_bytes, transmitted

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

PATHS = {"period": "3s", "first": "2s", "delay": "5ms", "min_rate_share": 0.3, "outage": "200ms"}


def run(out: Path, seed: int, **of_line: Any) -> Record:
    line = {"name": "line", "rate": "40mbit", "delay": "10ms", "queue": "bfifo limit 400000"}
    link = {"name": "l", "title": "A line", "up": [line], "down": [line | of_line]}
    phases = {"idle": "1s", "load": "12s", "cooldown": "0s"}
    (record,) = weirlab.run("tcp_ndown", link=link, phases=phases, seed=seed, out=out)
    return record


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("of_line", [{}, {"changes": [{"at": "7s", "rate": "20mbit"}]}])
def test_a_line_in_use_all_the_time_carried_what_each_path_could(
    tmp_path: Path, seed: int, of_line: dict[str, Any]
) -> None:
    """Eight downloads behind a queue of 80 ms leave nothing, whichever path it is and whatever it pauses."""
    record = run(tmp_path / "run", seed, reconfiguration=PATHS, **of_line)
    hop = record.manifest.scenario["path"]["down"][0]
    middles, carried, _ = carried_bytes(record, "down", hop)
    # Of each path from when it is used on until it ends.
    for second in (3, 6, 9):
        edges = np.array([second - 0.7, second + 1.9]) * 1e9
        could = capacity_bytes(record, "down", hop, edges.astype(np.int64))
        assert could is not None
        within = (middles > edges[0]) & (middles < edges[1])
        assert carried[within].sum() == pytest.approx(could[1] - could[0], rel=0.02), second
    down = summarise(record).down
    assert down is not None
    assert down.utilisation is not None
    assert 0.95 < down.utilisation <= 1.0


DOWN_AND_UP = [{"at": f"{n}.0205s", **({"down": True} if n % 2 else {"rate": "1mbit"})} for n in range(1, 19)]
FALLS = [{"at": f"{n}.03s", "rate": ("1mbit", "100kbit")[n % 2]} for n in range(1, 19)]


@pytest.mark.parametrize(
    ("of_line", "beyond"),
    [
        ({"reconfiguration": {"period": "20ms", "outage": "10ms", "min_rate_share": 0.1}}, 0.15),
        ({"reconfiguration": {"period": "20ms", "outage": "10ms"}}, 0.15),
        (
            {"rate": "10mbit", "reconfiguration": {"period": "1s", "outage": "100ms", "min_rate_share": 0.5}},
            0,
        ),
        ({"changes": DOWN_AND_UP}, 0),
        ({"changes": FALLS}, 0),
    ],
)
def test_a_packet_that_leaves_while_its_line_pauses_is_of_what_the_line_could_carry(
    tmp_path: Path, of_line: dict[str, Any], beyond: float
) -> None:
    """A flood fills a line that pauses or slows down; the packet that is on it leaves as if it had not."""
    line = {"name": "line", "rate": "1mbit", "queue": "pfifo limit 100000"}
    link = {"name": "l", "title": "A line", "up": [line | of_line], "down": [line]}
    flow = {"name": "flood", "direction": "up", "udp": {"rate": "20mbit", "payload": 1472}}
    phases = {"idle": "0s", "load": "20s", "cooldown": "0s"}
    test: dict[str, Any] = {"name": "t", "title": "A flood", "phases": phases, "flows": [flow]}
    (record,) = weirlab.run(test, link=link, start_jitter="0s", out=tmp_path / "run")
    up, hop = summarise(record).up, record.manifest.scenario["path"]["up"][0]
    assert up is not None
    assert up.utilisation is not None
    assert 0.985 < up.utilisation <= 1
    _, carried, could = carried_bytes(record, "up", hop)
    assert np.all(carried <= could)
    until = capacity_bytes(record, "up", hop, [0, record.reached_ns])
    assert until is not None
    assert could.sum() >= (until[1] - until[0]) * (1 + beyond)
    assert record.line("up/line")[1].sum() >= carried.sum(), "no byte is carried that was not begun"


def test_bytes_beyond_what_a_line_could_carry_are_not_explained_away() -> None:
    """One pause explains one packet."""
    could = np.array([1000.0, 0.0, 1000.0])
    carried, lifted = transmitted(np.array([2000.0, 0.0, 4000.0]), could, np.array([0, 1, 0]), 1500)
    assert (carried <= lifted).tolist() == [True, True, False]
    # Nor one of long after it.
    falls = np.array([1, *[0] * 9])
    later = transmitted(np.array([*[0.0] * 9, 4000.0]), np.full(10, 1000.0), falls, 1500)
    assert later[1][-1] == 1000.0


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"period_ns": 0}, "reconfiguration: period 0ms: write 10ms or more"),
        ({"period_ns": -1}, "invalid value: integer `-1`"),
        ({"outage_ns": None}, "invalid type: null"),
    ],
)
def test_a_manifest_with_paths_that_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    record = run(tmp_path / "run", 1, reconfiguration=PATHS)
    manifest = json.loads((record.path / "manifest.json").read_text())
    manifest["scenario"]["path"]["down"][0]["reconfiguration"] |= changes
    (record.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RecordError, match=f"hop `down/line` of its scenario: .*{re.escape(why)}"):
        summarise(weirlab.open_record(record.path))


def test_a_pause_is_none_of_what_a_line_could_carry(tmp_path: Path) -> None:
    record = run(tmp_path / "run", 1, reconfiguration=PATHS | {"min_rate_share": 1.0})
    hop = record.manifest.scenario["path"]["down"][0]
    times = [0, 2_000_000_000, 2_200_000_000, 5_000_000_000, 5_100_000_000]
    could = capacity_bytes(record, "down", hop, times)
    assert could is not None
    assert could.tolist() == pytest.approx([0, 10e6, 10e6, 24e6, 24e6])


def test_a_pause_at_the_beginning_is_none_of_it_either(tmp_path: Path) -> None:
    record = run(tmp_path / "run", 1, reconfiguration=PATHS | {"min_rate_share": 1.0, "first": "0s"})
    hop = record.manifest.scenario["path"]["down"][0]
    could = capacity_bytes(record, "down", hop, [0, 100_000_000, 200_000_000, 3_000_000_000, 3_200_000_000])
    assert could is not None
    assert could.tolist() == pytest.approx([0, 0, 0, 14e6, 14e6])
