"""A router whose processor forwards only so many packets per second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import weirlab
from weirlab.stats.capacity import slowest_hops
from weirlab.viewer.path import path_svg

if TYPE_CHECKING:
    from weirlab.record import Record

LINE = {"name": "line", "rate": "100mbit", "delay": "10ms"}
LINK: dict[str, Any] = {
    "name": "slow",
    "title": "a slow router",
    "up": [LINE],
    "down": [{**LINE, "packet_rate": 3125, "packet_queue": 100}],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The same run twice."""
    folder = tmp_path_factory.mktemp("slow")
    phases = {"idle": "1s", "load": "10s", "cooldown": "0s"}
    out = [folder / "first", folder / "second"]
    return [one for to in out for one in weirlab.run("tcp_download", link=LINK, phases=phases, out=to)]


def test_a_full_processor_forwards_its_rate_of_packets_of_whatever_length(runs: list[Record]) -> None:
    """Segments of 1500 bytes and pings of 84 share 3125 packets each second."""
    queue = runs[0].queue.filter(pl.col("queue") == "down/line-cpu")
    seconds = queue.group_by(second=pl.col("t_ns") // 10**9).agg(
        pl.col("departed_packets").sum(), pl.col("backlog_packets").min()
    )
    full = seconds.filter(pl.col("second").is_between(2, 10))
    assert min(full["backlog_packets"].to_list()) > 0
    assert full["departed_packets"].to_list() == [3125] * 9


def test_drops_stand_in_the_record_as_the_processors(runs: list[Record]) -> None:
    queue = runs[0].queue
    drops = dict(queue.group_by("queue").agg(pl.col("dropped_overlimit").sum()).iter_rows())
    assert set(drops) == {"up/line", "down/line", "down/line-cpu"}
    assert drops["down/line-cpu"] > 0
    assert (drops["down/line"], drops["up/line"]) == (0, 0)
    most = queue.filter(pl.col("queue") == "down/line-cpu")["backlog_packets"].to_list()
    assert 50 <= max(most) <= 100


def test_it_is_no_line_whose_bytes_could_be_used(runs: list[Record]) -> None:
    slowest = slowest_hops(runs[0], "down", 0, runs[0].reached_ns)
    assert [hop["name"] for hop in slowest] == ["line"]
    assert "3125 packets/s" in path_svg(runs[0])


def test_it_is_the_same_each_time(runs: list[Record]) -> None:
    first, second = runs
    assert first.queue.equals(second.queue)
    assert first.throughput.equals(second.throughput)
    assert first.latency.equals(second.latency)
