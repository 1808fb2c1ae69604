"""Applications over real connections in the lab. Real time: short runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from live import skip_if_disturbed
from weirlab.cli import weir as group
from weirlab.errors import UsageError
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

pytestmark = [pytest.mark.realtime, pytest.mark.needs_lab]

HOP = {"name": "line", "rate": "10mbit", "delay": "10ms", "queue": "pfifo limit 100"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
PAGE = {"document": 20_000, "objects": 12, "object": 10_000, "every": "1s"}
PAGES: list[dict[str, Any]] = [
    {"name": "page", "direction": "down", "dscp": "CS1", "web": PAGE},
    {"name": "page 2", "direction": "down", "web": PAGE | {"http": "2", "every": "1300ms"}},
    {"name": "names", "direction": "down", "dns": {"every": "100ms"}},
]
FILM = {"name": "film", "direction": "down", "video": {"bitrates": ["200kbit", "1mbit"], "segment": "1s"}}
TEST: dict[str, Any] = {"name": "app", "title": "Applications", "phases": {"load": "5s"}}


def both(flows: list[dict[str, Any]], out: Path) -> tuple[Record, Record]:
    """The same test in simulator and lab.

    Pages run without a video, which fills the queue while it loads ahead: their times then depend on the seed
    by a factor of two and more, in the simulator as well.
    """
    sim, lab = (
        weirlab.run(TEST | {"flows": flows}, link=LINK, world=world, out=out / world)[0]
        for world in ("sim", "lab")
    )
    skip_if_disturbed(lab)
    return sim, lab


def check_pages(sim: Record, real: Record) -> None:
    """Whether pages and names of a record over real sockets are about those of the simulator's."""
    of_sim, of_real = (summarise(one).applications for one in (sim, real))
    for name in ("page", "page 2", "names"):
        assert of_real[name].given_up == 0
        assert of_real[name].done == pytest.approx(of_sim[name].done, abs=1), name
        median = of_sim[name].median_ms
        assert median is not None
        assert of_real[name].median_ms == pytest.approx(median, rel=0.25, abs=5), name
    for number in range(3):
        done = (pl.col("flow") == number) & (pl.col("outcome") == "done")
        sizes = [set(one.transfers.filter(done)["bytes"]) for one in (sim, real)]
        assert sizes[0] == sizes[1], "a page has as many bytes in both worlds"


def check_film(sim: Record, real: Record) -> None:
    """Whether a video over real sockets plays as the simulator's does."""
    films = [summarise(one).applications["film"].video for one in (sim, real)]
    assert films[0] is not None
    assert films[1] is not None
    assert films[1].bitrate_mbps == pytest.approx(films[0].bitrate_mbps, rel=0.1)
    assert films[1].stalls == films[0].stalls == 0


def test_the_lab_loads_pages_and_names_about_as_fast_as_the_simulator(tmp_path: Path) -> None:
    sim, lab = both(PAGES, tmp_path)
    check_pages(sim, lab)
    assert sim.flows["dropped_packets"].to_list() == [0, 0, 0]
    assert lab.flows["dropped_packets"].to_list() == [None] * 3, (
        "its queues do not know whose connections they see"
    )


def test_the_lab_plays_a_video_as_the_simulator_does(tmp_path: Path) -> None:
    check_film(*both([FILM], tmp_path))


def test_what_is_known_of_retransmissions_beside_a_page_is_told(tmp_path: Path) -> None:
    """The kernel is not asked of a page's connections, but of the downloads beside it."""
    bulk = [{"name": name, "direction": "down"} for name in ("first", "second")]
    (record,) = weirlab.run(TEST | {"flows": [PAGES[0], *bulk]}, link=LINK, world="lab", out=tmp_path / "o")
    flows = record.flows.sort("flow")
    assert flows["retransmitted_segments"].is_null().to_list() == [True, False, False]
    down = summarise(record).down
    assert down is not None
    assert (down.tcp_flows, down.retransmitted_segments, down.timeouts) == (3, None, None)
    assert down.known_resent is not None
    again, timeouts = flows["retransmitted_segments"].sum(), flows["timeouts"].sum()
    assert (down.known_resent.flows, down.known_resent.retransmitted_segments) == (2, again)
    assert down.known_resent.timeouts == timeouts
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "o")]).output
    assert f"retransmitted {again}, timeouts {timeouts} in 2 of 3 flows, not known of the others" in " ".join(
        shown.split()
    )


def test_switches_of_a_whole_namespace_are_refused_by_name(tmp_path: Path) -> None:
    flow = {"name": "page", "direction": "down", "web": {}, "tcp": {"ecn": True}}
    with pytest.raises(UsageError, match="flow `page`: `web`: real sockets switch sack, timestamps and ecn"):
        weirlab.run(TEST | {"flows": [flow]}, link=LINK, world="lab", out=tmp_path / "o")
