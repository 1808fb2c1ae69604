"""UDP loads and voice over real sockets in the lab. Real time: short runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import weirlab
from live import skip_if_disturbed
from weirlab.errors import UsageError
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.realtime, pytest.mark.quiet, pytest.mark.needs_lab]

HOP = {"name": "line", "rate": "10mbit", "delay": "10ms", "queue": "pfifo limit 100"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
FLOWS: list[dict[str, Any]] = [
    {"name": "calm", "direction": "up", "udp": {"rate": "2mbit", "payload": 1000}},
    {"name": "flood", "direction": "down", "udp": {"rate": "20mbit", "payload": 1000}},
    {"name": "call", "direction": "up", "dscp": "EF", "voice": {}},
]
TEST = {
    "name": "udp",
    "title": "UDP",
    "phases": {"idle": "1s", "load": "3s", "cooldown": "0s"},
    "flows": FLOWS,
}


def test_the_lab_counts_udp_as_the_simulator_does(tmp_path: Path) -> None:
    """What fits arrives whole after the line's delay; a flood is cut to the line and fills its queue."""
    found = {}
    for world in ("sim", "lab"):
        (record,) = weirlab.run(TEST, link=LINK, world=world, out=tmp_path / world)
        found[world] = record
    lab = found["lab"]
    skip_if_disturbed(lab)
    of_sim, of_lab = (summarise(found[world]).udp for world in ("sim", "lab"))
    # A sender that the machine held up leaves packets out, and says so.
    sent = lab.udp.group_by("flow").agg(pl.col("sent_packets", "skipped_packets").sum()).sort("flow")
    planned = found["sim"].udp.group_by("flow").agg(pl.col("sent_packets").sum()).sort("flow")
    missing = planned["sent_packets"] - (sent["sent_packets"] + sent["skipped_packets"])
    assert missing.is_between(0, 1).all(), "the run may end before a packet that is due at its very end"
    assert found["sim"].udp["late_max_ns"].max() == 0
    late = lab.udp["late_max_ns"].max()
    assert isinstance(late, int)
    if late > 50_000_000:
        pytest.skip(f"the machine is busy: a packet was sent {late / 1e6:.0f} ms late")
    for name in ("calm", "call"):
        assert of_lab[name].lost == 0, name
        mean = of_sim[name].delay_mean_ms
        assert mean is not None
        assert of_lab[name].delay_mean_ms == pytest.approx(mean, abs=5), name
    assert of_lab["flood"].loss_rate == pytest.approx(of_sim["flood"].loss_rate, abs=0.03)
    assert of_lab["flood"].delay_max_ms == pytest.approx(of_sim["flood"].delay_max_ms, abs=15)
    calls = [one["call"].voice for one in (of_sim, of_lab)]
    assert calls[0] is not None
    assert calls[1] is not None
    assert calls[1].mos == pytest.approx(calls[0].mos, abs=0.2)
    totals = {row["name"]: row for row in lab.flows.iter_rows(named=True)}
    flood = totals["flood"]
    unseen = flood["dropped_packets"] - of_lab["flood"].lost
    assert 0 <= unseen <= 2 * 101, "the receiver has not got what was sent behind the last full queue"


def test_packets_too_short_for_a_number_are_refused_by_name(tmp_path: Path) -> None:
    tiny = {**TEST, "flows": [{"name": "tiny", "direction": "up", "udp": {"rate": "8kbit", "payload": 15}}]}
    with pytest.raises(UsageError, match=r"flow `tiny`: udp\.payload 15: .*16 or more"):
        weirlab.run(tiny, link=LINK, world="lab", out=tmp_path / "o")
