"""Scenarios beyond one chain: routes in records, pictures, sweeps and captures, and what refuses them."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import weirlab
from test_capture import captured, time_to_live, transport
from weirlab.capture import Packets
from weirlab.cli.verdicts import Verdicts
from weirlab.export import export
from weirlab.plots.series import exceeds_line
from weirlab.report.tables import assertion_table
from weirlab.stats import Assertion, load_window_ns, summarise
from weirlab.stats.capacity import limit_bytes, limiting_hops, share_remarks, slowest_hops, why_no_limit
from weirlab.stats.shaping import course
from weirlab.viewer.path import path_svg

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from weirlab.record import Record

PARKING_LOT = Path(__file__).parent.parent / "scenarios" / "parking-lot.toml"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A run of the shipped parking lot, shortened."""
    out = tmp_path_factory.mktemp("parking") / "out"
    said = tomllib.loads(PARKING_LOT.read_text())
    (found,) = weirlab.run(said["test"], link=said["link"], tcp=said["tcp"], phases={"load": "20s"}, out=out)
    return found


def test_the_record_keeps_the_routes_and_the_shares_of_all_flows(record: Record) -> None:
    scenario: dict[str, Any] = record.manifest.scenario
    assert scenario["routes"][0] == {"name": "all", "up": [0, 1, 2], "down": [0]}
    assert [host["route"] for host in scenario["hosts"]] == [0, 1, 2, 3]
    sums = record.throughput.group_by("flow").agg(pl.col("bytes").sum()).sort("flow")
    long, *cross = sums["bytes"].to_list()
    assert 0 < long < min(cross)


def test_the_picture_of_the_path_says_which_route_leads_where(record: Record) -> None:
    picture = path_svg(record)
    assert "route all (end): up a, b, c; down back" in picture
    assert "route b (exit b): up b; down back" in picture
    assert 'viewBox="0 0' in picture


APART = """
name = "apart"

[link]
name = "apart"
title = "Two lines"
up = [{ name = "a", rate = "10mbit" }, { name = "b", rate = "5mbit" }]
down = [{ name = "a", rate = "10mbit" }, { name = "b", rate = "5mbit" }]

[link.routes]
first = { up = ["a"], down = ["a"] }
second = { up = ["b"], down = ["b"] }

[test]
name = "apart"
title = "Two servers"
phases = { load = "1s" }
hosts = [{ name = "one", route = "first" }, { name = "two", route = "second" }]
probes = [{ name = "one", kind = "icmp", host = "one" }, { name = "two", kind = "icmp", host = "two" }]
"""


def test_routes_that_share_no_hop_have_rows_of_their_own_in_the_picture(tmp_path: Path) -> None:
    said = tomllib.loads(APART)
    (record,) = weirlab.run(said["test"], link=said["link"], out=tmp_path / "out")
    picture = path_svg(record)
    rows = re.findall(r'class="quiet">([^<]*: (?:up|down) [^<]*)<', picture)
    assert rows == ["first: up to one", "first: down from one", "second: up to two", "second: down from two"]
    # Each hop stands at the same place of its row.
    places = re.findall(r'x="(\d+)" y="(\d+)" font-weight="600">([ab])<', picture)
    assert len({x for x, _, _ in places}) == 1
    assert [name for _, y, name in sorted(places, key=lambda place: int(place[1]))] == ["a", "a", "b", "b"]


LOADED_APART = """
phases = { load = "4s" }
hosts = [{ name = "one", route = "first" }, { name = "two", route = "second" }]
flows = [
    { name = "one", direction = "down", host = "one" },
    { name = "two", direction = "down", host = "two" },
    { name = "back", direction = "up", host = "two" },
]
"""


def test_shares_of_lines_are_of_all_paths_that_loads_take(tmp_path: Path) -> None:
    said = tomllib.loads(APART)
    test = {"name": "both", "title": "Both paths", **tomllib.loads(LOADED_APART)}
    (record,) = weirlab.run(test, link=said["link"], out=tmp_path / "out")
    second = 1_000_000_000
    names = [[hop["name"] for hop in limiting_hops(record, way, 0, second)] for way in ("down", "up")]
    assert names == [["a", "b"], ["b"]], "the other path has no load up"
    capacity = limit_bytes(record, "down", [0, second])
    assert capacity is not None
    assert capacity[1] - capacity[0] == 15e6 / 8
    down, up = summarise(record).down, summarise(record).up
    assert down is not None
    assert down.goodput_mbps is not None
    assert down.utilisation is not None
    assert up is not None
    assert up.utilisation is not None
    assert 12.5 < down.goodput_mbps < 15
    assert 0.9 < down.utilisation <= 1
    assert up.throughput_mbps is not None
    # Acknowledgements of the download are in front of this upload, and count.
    assert up.throughput_mbps / up.utilisation == pytest.approx(5, rel=0.1)
    # What both paths carry together is more than one of them could, and the charts do not call that an error.
    assert not exceeds_line(record, "down")


BEHIND = """
[link]
name = "behind"
title = "Two lines that meet"
up = [{ name = "up" }]
down = [
    { name = "a", rate = "10mbit" },
    { name = "b", rate = "10mbit" },
    { name = "shared", rate = "12mbit" },
]

[link.routes]
first = { down = ["a", "shared"] }
second = { down = ["b", "shared"] }
"""


def test_where_paths_meet_behind_their_own_lines_the_shared_line_may_limit_them(tmp_path: Path) -> None:
    said = tomllib.loads(BEHIND)
    test = {"name": "both", "title": "Both paths", **tomllib.loads(LOADED_APART)}
    (record,) = weirlab.run(test, link=said["link"], out=tmp_path / "out")
    span = load_window_ns(record)
    assert [hop["name"] for hop in limiting_hops(record, "down", *span)] == ["shared"]
    down = summarise(record).down
    assert down is not None
    assert down.throughput_mbps is not None
    assert down.utilisation is not None
    assert 0.9 < down.utilisation <= 1
    # Data packets fill the line but for what frames cost and the first moments.
    assert down.throughput_mbps / down.utilisation == pytest.approx(12, rel=0.05)
    assert course(record, "down").capacity_mbps == pytest.approx(12)


@pytest.mark.parametrize(
    ("rates", "limiting"),
    [
        ({"a": 10, "b": 10, "shared": 20}, ["shared"]),
        ({"a": 10, "b": 10, "shared": 21}, ["a", "b"]),
        ({"a": 10, "b": 30, "shared": 21}, ["shared"]),
        ({"a": 10, "b": None, "shared": 21}, ["shared"]),
        ({"a": 10, "b": 10, "shared": None}, ["a", "b"]),
        ({"a": 10, "b": None, "shared": None}, []),
    ],
)
def test_the_lines_that_limit_are_those_that_carry_least_together(
    rates: dict[str, int | None], limiting: list[str], tmp_path: Path
) -> None:
    link = tomllib.loads(BEHIND)["link"]
    link["down"] = [
        {"name": name, "delay": "5ms"} | ({"rate": f"{rate}mbit"} if rate else {})
        for name, rate in rates.items()
    ]
    test = {"name": "both", "title": "Both paths", **tomllib.loads(LOADED_APART), "phases": {"load": "1s"}}
    (record,) = weirlab.run(test, link=link, out=tmp_path / "out")
    assert [hop["name"] for hop in limiting_hops(record, "down", 0, 1_000_000_000)] == limiting
    told = [] if limiting else [f"{NO_SHARE}: no line of one of their paths is limited."]
    assert share_remarks(record) == told
    found = Assertion("down.utilisation > 90%").of(record)
    assert found.remark == (told[0] if told else None)
    assert math.isnan(found.left) == (not limiting)
    shown = Verdicts(runs=["run"], outcomes=[[found]], compared=[]).each[0].found
    assert shown.endswith("is limited.") == (not limiting)
    table = assertion_table(["run"], [[found]])
    assert (NO_SHARE in str(next(iter(table.columns[0].cells)))) == (not limiting)


NO_SHARE = "The downloads are told no share of a line"


@pytest.mark.parametrize("loaded", ["100mbit", "9mbit"])
def test_why_there_is_no_share_is_told_of_the_load(tmp_path: Path, loaded: str) -> None:
    """What lines carry may change as the load begins, and a share is of its time.

    Of three paths that share 5 Mbit/s two by two all together carry 7.5, and no line for all is full at 9.
    """
    hops = [{"name": name, "rate": "5mbit"} for name in "abc"]
    change = {"at": "1s", "rate": loaded}
    routes = {f"{one}{two}": {"down": [one, two, "all"]} for one, two in ("ab", "bc", "ca")}
    link = {
        "name": "ring",
        "title": "Each two paths share a line",
        "up": [{"name": "up"}],
        "down": [*hops, {"name": "all", "rate": "100kbit", "changes": [change]}],
        "routes": routes,
    }
    test = {
        "name": "three",
        "title": "Three paths",
        "phases": {"idle": "1s", "load": "1s"},
        "hosts": [{"name": route, "route": route} for route in routes],
        "flows": [{"name": route, "direction": "down", "host": route, "start": "1s"} for route in routes],
    }
    (record,) = weirlab.run(test, link=link, out=tmp_path / "out")
    assert why_no_limit(record, "down", 0, 1_000_000_000) is None
    why = "their paths share hops, whose lines add up to no one capacity"
    assert share_remarks(record) == [f"{NO_SHARE}: {why}."]
    down = summarise(record).down
    assert down is not None
    assert down.utilisation is None


def test_paths_that_part_and_meet_have_no_one_capacity(record: Record) -> None:
    summary = summarise(record)
    assert summary.up is not None
    assert summary.up.utilisation is None
    assert [hop["name"] for hop in slowest_hops(record, "up", 0, record.reached_ns)] == ["a", "b", "c"]
    span = load_window_ns(record)
    assert why_no_limit(record, "up", *span) is not None
    assert why_no_limit(record, "down", *span) == "no line of their path is limited"
    [told] = share_remarks(record)
    said = "The uploads are told no share of a line: their paths share hops, whose lines add up to no one "
    assert told == f"{said}capacity."


def test_a_capture_at_a_hop_has_the_packets_of_the_routes_over_it(record: Record, tmp_path: Path) -> None:
    """And no others; in front of a hop each has passed as many routers as its route has hops before it."""
    (file,) = export([record], tmp_path / "run.pcapng", packets=Packets(hops=tuple(PASSED)))
    scenario: dict[str, Any] = record.manifest.scenario
    names = [one["name"] for one in (*scenario["flows"], *scenario["probes"])]
    seen: dict[str, dict[str, set[int]]] = {hop: {} for hop in PASSED}
    packets = 0
    for packet in captured(file):
        protocol, src, dst, data = transport(packet)
        client = src if packet.hop.startswith("up/") else dst
        identifier = data[4] << 8 | data[5]
        of = names[client[1] - 10_000 if protocol == 6 else identifier]
        seen[packet.hop].setdefault(of, set()).add(time_to_live(packet))
        packets += 1
    assert seen == {hop: {name: {64 - n} for name, n in passed.items()} for hop, passed in PASSED.items()}
    assert packets == record.manifest.packets


PASSED = {
    "up/a": {"long": 0, "cross a": 0, "ping end": 0},
    "up/b": {"long": 1, "cross b": 0, "ping end": 1, "ping exit b": 0},
    "up/c": {"long": 2, "cross c": 0, "ping end": 2},
    "down/back": dict.fromkeys(("long", "cross a", "cross b", "cross c", "ping end", "ping exit b"), 0),
}
"""Captured hops, and of each what passes it, with the number of the routers that it has passed before."""


def test_a_sweep_over_a_hop_of_a_route_moves_what_passes_it(
    weir_here: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(f"{PARKING_LOT.read_text()}{SWEEP}")
    assert weir_here("sweep", "plan.toml", "--jobs", "1").returncode == 0
    shown = weir_here(
        "sweep", "show", "plan.sweep", "--by", "rate_mbps", "--figure", "up_goodput_mbps", "--json"
    )
    slow, fast = json.loads(shown.stdout)["rows"]
    assert (slow["rate_mbps"], fast["rate_mbps"]) == (5, 10)
    # No more than all three lines carry together; the others are as they were.
    assert slow["up_goodput_mbps"] < 10 + 5 + 10 < fast["up_goodput_mbps"] < 30


SWEEP = """
[sweep.axes]
rate = { key = "link.up.b.rate", values = ["5mbit", "10mbit"] }
"""
