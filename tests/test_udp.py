"""UDP loads, voice streams and their score."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import weirlab
from weirlab.cli import weir as group
from weirlab.errors import UsageError
from weirlab.plots import plot
from weirlab.report.applications import comparison_of_applications
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import compare, summarise
from weirlab.stats.agreeing import figures
from weirlab.stats.assertions import Assertion
from weirlab.stats.e_model import mean_opinion_score, mos, rating
from weirlab.stats.shaping import loaded_direction
from weirlab.stats.summary import busy_share
from weirlab.stats.udp import mos_by_second
from weirlab.stats.udp_losses import udp_rows
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from weirlab.record import Record

HOP = {"name": "line", "rate": "10mbit", "delay": "10ms", "queue": "pfifo limit 100"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
VOICE = {"name": "call", "direction": "down", "voice": {}}


def run(out: Path, *flows: dict[str, Any], load: str = "10s") -> Record:
    """A test with these flows and nothing else, on a line of 10 Mbit/s with 10 ms each way."""
    phases = {"idle": "1s", "load": load}
    test = {"name": "udp", "title": "UDP", "phases": phases, "flows": list(flows)}
    (record,) = weirlab.run(test, link=LINK, out=out)
    return record


def test_a_rate_below_the_lines_arrives_whole_and_a_flood_is_cut_to_the_line(tmp_path: Path) -> None:
    calm = {"name": "calm", "direction": "up", "udp": {"rate": "4mbit", "payload": 1000}}
    flood = {"name": "flood", "direction": "down", "udp": {"rate": "40mbit", "payload": 1000}}
    record = run(tmp_path / "run", calm, flood)
    summary = summarise(record)
    assert summary.up is not None
    assert summary.down is not None
    assert summary.up.goodput_mbps == pytest.approx(4, rel=0.01)
    assert summary.down.goodput_mbps == pytest.approx(10 * 1000 / 1028, rel=0.02), "28 bytes of headers"
    assert (summary.udp["calm"].lost, summary.udp["calm"].loss_rate) == (0, 0)
    assert summary.udp["calm"].delay_max_ms == pytest.approx(10 + 1028 * 8 / 1e4, abs=0.01)
    assert summary.udp["flood"].loss_rate == pytest.approx(1 - 10 * 1000 / 1028 / 40, abs=0.01)
    full_ms = 10 + 101 * 1028 * 8 / 1e4
    assert summary.udp["flood"].delay_max_ms == pytest.approx(full_ms, abs=1), "a queue of 100 packets"
    totals = {row["name"]: row for row in record.flows.iter_rows(named=True)}
    sent = totals["flood"]["sent_segments"]
    assert sent == pytest.approx(50_000, rel=0.01), "it starts up to 100 ms later"
    unseen = totals["flood"]["dropped_packets"] - summary.udp["flood"].lost
    assert 0 <= unseen <= 4 * 101, (
        "the receiver has not got what was sent behind the last queue of 100 packets"
    )
    assert record.tcp.height == 0
    assert set(record.flow_names["protocol"]) == {"udp"}


@pytest.mark.parametrize(
    ("udp", "mbps"),
    [
        ({"rate": "4mbit", "pattern": "poisson"}, 4.0),
        ({"rate": "4mbit", "pattern": "bursts", "on": "100ms", "off": "300ms"}, 1.0),
        ({"rate": "4mbit", "pattern": "on_off", "on": "20ms", "off": "20ms"}, 2.0),
    ],
)
def test_patterns_send_what_they_say_in_the_mean(tmp_path: Path, udp: dict[str, str], mbps: float) -> None:
    record = run(tmp_path / "run", {"name": "load", "direction": "up", "udp": udp}, load="40s")
    summary = summarise(record)
    assert summary.up is not None
    assert summary.up.goodput_mbps == pytest.approx(mbps, rel=0.15)


def test_a_call_on_an_idle_line_is_as_good_as_its_delay_lets_it_be(tmp_path: Path) -> None:
    record = run(tmp_path / "run", VOICE)
    voice = summarise(record).udp["call"].voice
    assert voice is not None
    assert voice.mouth_to_ear_ms == pytest.approx(20 + 10 + 200 * 8 / 1e4 + 40, abs=0.1)
    assert voice.mos == pytest.approx(mos(70.16, 0), abs=0.001)
    assert voice.mos_min == pytest.approx(voice.mos, abs=0.001)
    assert voice.late_rate == 0
    scores = mos_by_second(record, 0, udp_rows(record))
    assert scores["t_s"].to_list() == [number + 0.5 for number in range(11)]


def test_shorter_packets_fill_sooner_and_cost_more(tmp_path: Path) -> None:
    record = run(tmp_path / "run", VOICE | {"voice": {"packet_time": "10ms"}})
    summary = summarise(record)
    voice = summary.udp["call"].voice
    assert voice is not None
    assert voice.mouth_to_ear_ms == pytest.approx(10 + 10 + 120 * 8 / 1e4 + 40, abs=0.1)
    assert summary.down is not None
    assert summary.down.goodput_mbps == pytest.approx((80 + 12) * 8 * 100 / 1e6, rel=0.01)


def test_a_full_queue_spoils_a_call_and_weir_show_says_so(tmp_path: Path) -> None:
    bulk = {"name": "bulk", "direction": "down"}
    record = run(tmp_path / "run", VOICE, bulk, load="20s")
    voice = summarise(record).udp["call"].voice
    assert voice is not None
    assert voice.mos < 4.2
    assert voice.mos_min <= voice.mos_median
    assert voice.mos_min < 2, "as the queue fills packets come too late"
    asked = Assertion("down.mos < down.mos[idle]").of(record)
    assert asked.left == voice.mos
    assert asked.right == pytest.approx(mos(70.16, 0), abs=0.01)
    assert asked.holds
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "run")])
    assert shown.exception is None
    assert f"{voice.mos_min:.2f}" in shown.output
    summary = summarise(record)
    assert summary.down is not None
    assert summary.down.jain_index is None, "a call takes no share"
    assert summary.down.retransmitted_segments is not None


def test_of_udp_alone_nothing_is_sent_again_and_nothing_is_told_of_that(tmp_path: Path) -> None:
    bulk = {"name": "bulk", "direction": "up", "tcp": {"congestion_control": "cubic"}}
    record = run(tmp_path / "run", VOICE, bulk)
    summary = summarise(record)
    assert summary.down is not None
    assert summary.up is not None
    assert (summary.down.tcp_flows, summary.up.tcp_flows) == (0, 1)
    assert (summary.down.retransmitted_segments, summary.down.timeouts) == (None, None)
    assert summary.up.retransmitted_segments == record.flows["retransmitted_segments"].sum() > 0
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "run")]).output
    (line,) = (line for line in shown.splitlines() if "retransmitted" in line)
    assert f"whole run: retransmitted {summary.up.retransmitted_segments}, timeouts" in line
    assert figures(summary)["retransmits"] == summary.up.retransmitted_segments
    assert weirlab.frame(record)["down_retransmitted_segments"].to_list() == [None]


def test_a_call_of_which_nothing_arrives_is_all_lost_and_has_the_worst_score(tmp_path: Path) -> None:
    test = {"name": "udp", "title": "UDP", "phases": {"idle": "1s", "load": "5s"}, "flows": [VOICE]}
    hop = HOP | {"queue": "netem loss 100%"}
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, out=tmp_path / "run")
    call = summarise(record).udp["call"]
    # Those of the last two intervals might still be under way, but the record knows that they were dropped.
    assert (call.received, call.lost, call.loss_rate) == (0, 250, 1.0)
    assert call.voice is not None
    assert (call.voice.mos, call.voice.mos_median, call.voice.mos_min) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("cooldown", ["0s", "1s"])
def test_a_call_of_which_nothing_was_due_yet_has_no_score(tmp_path: Path, cooldown: str) -> None:
    """It starts 100 ms before the load ends, over a line of 200 ms."""
    call = VOICE | {"start": "2900ms"}
    phases = {"idle": "1s", "load": "2s", "cooldown": cooldown}
    test = {"name": "udp", "title": "UDP", "phases": phases, "flows": [call]}
    link = LINK | {"down": [HOP | {"delay": "200ms"}]}
    (record,) = weirlab.run(test, link=link, start_jitter="0s", out=tmp_path / "run")
    found = summarise(record).udp["call"]
    assert (found.received, found.lost, found.delay_mean_ms, found.voice) == (0, 0, None, None)
    # Behind the load it is heard, as well as its delay lets it be; what was silent before is none of it.
    scores = mos_by_second(record, 0, udp_rows(record))
    after = [] if cooldown == "0s" else [(3.5, pytest.approx(mos(260.16, 0), abs=0.001))]
    assert scores.rows() == after
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "run")])
    assert "MOS" not in shown.output


def test_silence_within_a_call_is_the_worst_there_is(tmp_path: Path) -> None:
    """A queue of two seconds fills at once: nothing comes for so long, and nothing is lost."""
    changes = [{"at": "3s", "rate": "16kbit"}, {"at": "5s", "rate": "10mbit"}]
    test = {"name": "udp", "title": "UDP", "phases": {"idle": "1s", "load": "8s"}, "flows": [VOICE]}
    link = LINK | {"down": [HOP | {"queue": "pfifo limit 1000", "changes": changes}]}
    (record,) = weirlab.run(test, link=link, start_jitter="0s", out=tmp_path / "run")
    scores = dict(mos_by_second(record, 0, udp_rows(record)).iter_rows())
    assert summarise(record).udp["call"].lost == 0
    assert (scores[2.5] > 4, scores[4.5]) == (True, 1.0)


OUTAGE = HOP | {"changes": [{"at": "3s", "down": True}]}
FLOOD = {"name": "load", "direction": "down", "udp": {"rate": "2mbit"}}


@pytest.mark.parametrize("back", [None, "9s", "12s"])
def test_what_is_lost_in_an_outage_is_lost_while_it_lasts(tmp_path: Path, back: str | None) -> None:
    changes = [{"at": "3s", "down": True}, *([{"at": back, "rate": "10mbit"}] if back else [])]
    test = {
        "name": "udp",
        "title": "UDP",
        "phases": {"idle": "1s", "load": "10s", "cooldown": "3s"},
        "flows": [VOICE, FLOOD],
    }
    link = LINK | {"down": [HOP | {"queue": "pfifo limit 10", "changes": changes}]}
    (record,) = weirlab.run(test, link=link, start_jitter="0s", out=tmp_path / "run")
    found = summarise(record).udp
    away = 0.6 if back == "9s" else 0.8
    assert found["load"].loss_rate == pytest.approx(away, abs=0.02)
    # Ten packets wait in the queue: a call of 50 a second beside 170 of the load.
    assert found["call"].loss_rate == pytest.approx(away, abs=0.02)
    assert found["call"].voice is not None
    assert found["call"].voice.mos < 1.5
    scores = dict(mos_by_second(record, 0, udp_rows(record)).iter_rows())
    assert [scores[second + 0.5] < 1.1 for second in range(1, 11)] == [
        second >= 3 and not (back == "9s" and second >= 9) for second in range(1, 11)
    ]
    told = record.udp.filter(record.udp["flow"] == 1)
    assert told["sent_packets"].sum() == record.flows["sent_segments"][1]


@pytest.mark.parametrize(("rate", "load"), [("16kbit", 1), ("64kbit", 1), ("64kbit", 10), ("1mbit", 10)])
def test_a_slow_line_carries_no_more_than_it_can(tmp_path: Path, rate: str, load: int) -> None:
    hop = HOP | {"queue": "pfifo limit 10", "rate": rate}
    test: dict[str, Any] = {"name": "udp", "title": "UDP", "phases": {"load": f"{load}s", "cooldown": "1s"}}
    test["flows"] = [FLOOD]
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, start_jitter="0s", out=tmp_path / "run")
    share = busy_share(record, "down", 0, load * 1_000_000_000)
    assert share is not None
    assert 0.98 < share <= 1


def test_packets_that_are_overtaken_are_not_lost(tmp_path: Path) -> None:
    hop = HOP | {"rate": "1gbit", "reorder": {"probability": 0.25, "gap": 1}}
    phases = {"load": "5s", "cooldown": "1s"}
    test: dict[str, Any] = {"name": "udp", "title": "UDP", "phases": phases}
    test["flows"] = [{"name": "load", "direction": "down", "udp": {"rate": "8mbit", "payload": 100}}]
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, out=tmp_path / "run")
    load = summarise(record).udp["load"]
    assert (load.lost, load.loss_rate) == (0, 0.0)


def test_overtaken_packets_that_came_are_taken_off_in_the_table_too(tmp_path: Path) -> None:
    """An eighth passes a delay of 500 ms: what they overtook is called lost until it comes."""
    hop = HOP | {"delay": "500ms", "reorder": {"probability": 0.25, "gap": 5}}
    test: dict[str, Any] = {"name": "udp", "title": "UDP", "phases": {"load": "5s", "cooldown": "2s"}}
    test["flows"] = [{"name": "load", "direction": "down", "udp": {"rate": "8mbit", "payload": 1222}}]
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, start_jitter="0s", out=tmp_path / "run")
    told, (sent,) = record.udp, record.flows["sent_segments"]
    assert told["received_packets"].sum() == sent
    assert told["lost_packets"].sum() == 0
    assert told["lost_packets"].max() > 10 > -10 > told["lost_packets"].min()  # type: ignore[operator]
    assert udp_rows(record)["lost_packets"].to_list() == [0] * told.height


@pytest.mark.parametrize("loss", [{}, {"loss": {"model": "random", "probability": 0.02}}])
def test_overtaken_packets_under_way_at_the_end_are_not_lost(tmp_path: Path, loss: dict[str, Any]) -> None:
    hop = HOP | {"delay": "500ms", "reorder": {"probability": 0.25, "gap": 5}} | loss
    test: dict[str, Any] = {"name": "udp", "title": "UDP", "phases": {"load": "5s", "cooldown": "0s"}}
    test["flows"] = [{"name": "load", "direction": "down", "udp": {"rate": "8mbit", "payload": 1222}}]
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, start_jitter="0s", out=tmp_path / "run")
    (dropped,) = record.flows["dropped_packets"]
    assert (dropped > 0) == bool(loss)
    assert record.udp["lost_packets"].sum() > dropped, "some were called lost"
    rows = udp_rows(record)
    assert rows["lost_packets"].sum() == pytest.approx(dropped, abs=0)
    assert rows["lost_packets"].min() == 0


@pytest.mark.parametrize("cooldown", ["0s", "30s"])
def test_what_is_known_to_be_dropped_behind_the_last_that_arrived_is_lost(
    tmp_path: Path, cooldown: str
) -> None:
    """A queue holds more than the run carries: most of a flood is dropped, which no packet shows."""
    hop = HOP | {"queue": "pfifo limit 2000", "rate": "1mbit"}
    test: dict[str, Any] = {"name": "udp", "title": "UDP", "phases": {"load": "10s", "cooldown": cooldown}}
    test["flows"] = [{"name": "flood", "direction": "down", "udp": {"rate": "10mbit", "payload": 1222}}]
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, start_jitter="0s", out=tmp_path / "run")
    (dropped,), (sent,) = record.flows["dropped_packets"], record.flows["sent_segments"]
    found = summarise(record).udp["flood"]
    assert dropped > 7000
    assert found.lost == pytest.approx(dropped, rel=0.01)
    assert found.loss_rate == pytest.approx(dropped / sent, rel=0.01), "what waits is not lost, but was sent"


def test_what_a_standing_queue_drops_is_lost_when_it_was_sent(tmp_path: Path) -> None:
    hop = HOP | {"queue": "bfifo limit 400kb", "rate": "1mbit"}
    phases = {"idle": "1s", "load": "10s", "cooldown": "5s"}
    test = {"name": "udp", "title": "UDP", "phases": phases, "flows": [FLOOD]}
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, out=tmp_path / "run")
    (dropped,) = record.flows["dropped_packets"]
    rows = udp_rows(record)
    # Three seconds of the queue are received behind the load.
    assert rows.filter(rows["t_ns"] > 11_100_000_000)["received_packets"].sum() > 200
    assert rows.filter(rows["t_ns"] > 11_100_000_000)["lost_packets"].sum() == 0
    assert rows["lost_packets"].sum() == dropped > 300


def test_packets_under_way_at_the_end_are_not_lost(tmp_path: Path) -> None:
    hop = HOP | {"queue": "bfifo limit 100mb"}
    test: dict[str, Any] = {"name": "udp", "title": "UDP", "phases": {"load": "5s"}}
    test["flows"] = [{"name": "flood", "direction": "down", "udp": {"rate": "20mbit"}}]
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, out=tmp_path / "run")
    assert summarise(record).udp["flood"].lost == 0


def test_a_run_that_was_cut_short_has_no_totals_and_still_its_losses(tmp_path: Path) -> None:
    whole = run(tmp_path / "run", {"name": "flood", "direction": "down", "udp": {"rate": "20mbit"}})
    shutil.copytree(whole.path, tmp_path / "cut", ignore=shutil.ignore_patterns("flows"))
    manifest = json.loads((tmp_path / "cut" / "manifest.json").read_text())
    del manifest["tables"]["flows"]
    (tmp_path / "cut" / "manifest.json").write_text(json.dumps(manifest | {"complete": False}))
    cut = weirlab.open_record(tmp_path / "cut")
    assert cut.totals("sent_segments") is None
    assert summarise(cut).udp["flood"].lost == pytest.approx(summarise(whole).udp["flood"].lost, rel=0.02)
    assert loaded_direction(cut) == loaded_direction(whole) == "down"


def test_packets_that_cannot_have_arrived_yet_are_not_lost(tmp_path: Path) -> None:
    hop = HOP | {"delay": "6s"}
    call = VOICE | {"start": "5s"}
    test = {"name": "udp", "title": "UDP", "phases": {"load": "10s"}, "flows": [call]}
    (record,) = weirlab.run(test, link=LINK | {"down": [hop]}, out=tmp_path / "run")
    found = summarise(record).udp["call"]
    assert (found.received, found.lost, found.loss_rate) == (0, 0, None)


def test_pings_without_an_answer_at_the_end_are_lost(tmp_path: Path) -> None:
    probes = [{"name": "ping", "kind": "icmp", "period": "100ms"}]
    test = {"name": "ping", "title": "a ping", "phases": {"idle": "1s", "load": "10s"}, "probes": probes}
    (record,) = weirlab.run(test, link=LINK | {"down": [OUTAGE]}, out=tmp_path / "run")
    found = summarise(record).latency
    assert (found.sent, found.lost) == (100, 80)


def test_a_chart_shows_delay_jitter_loss_and_score(tmp_path: Path) -> None:
    record = run(tmp_path / "run", VOICE, {"name": "flood", "direction": "down", "udp": {"rate": "20mbit"}})
    chart = plot(record, "udp")
    labels = ["One-way delay, ms", "Jitter, ms", "Lost, %", "MOS"]
    assert [axes.get_ylabel() for axes in chart.axes[:4]] == labels
    assert [len(axes.lines) for axes in chart.axes[:4]] == [2, 2, 2, 1]
    flood = np.asarray(chart.axes[2].lines[1].get_ydata(), dtype=float)
    assert 45 < np.nanmax(flood[20:90]) < 60, "half of 20 Mbit/s is lost"
    bare = run(tmp_path / "bare", {"name": "TCP download", "direction": "down"}, load="1s")
    with pytest.raises(UsageError, match="has no UDP flows to draw"):
        plot(bare, "udp")


def test_the_losses_of_all_streams_are_a_share_of_their_packets(tmp_path: Path) -> None:
    """Not the mean of their shares: a call of 50 packets a second weighs as much as it sends."""
    flood = {"name": "flood", "direction": "down", "udp": {"rate": "40mbit", "payload": 1000}}
    record = run(tmp_path / "run", VOICE | {"direction": "up"}, flood)
    summary = summarise(record)
    call, drowned = summary.udp["call"], summary.udp["flood"]
    assert (call.loss_rate, call.packets) == (0, 500)
    assert drowned.loss_rate == pytest.approx(drowned.lost / drowned.packets)
    table = comparison_of_applications(compare([record]))
    assert table is not None
    (shown,) = [next(iter(one.cells)) for one in table.columns if str(one.header).startswith("UDP lost")]
    assert float(str(shown)) == pytest.approx(100 * drowned.lost / (drowned.packets + 500), abs=0.006)


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ({"udp": {"rate": "1mbit"}, "voice": {}}, "it has `udp` and `voice`: write one of them"),
        ({"udp": {"rate": "1mbit"}, "tcp": {"ecn": True}}, "it has `tcp` and `udp`: write one of them"),
        ({"udp": {"rate": "1mbit"}, "bytes": 1000}, "`bytes` is for data over TCP"),
        ({"udp": {"rate": "1mbit", "on": "1s"}}, "`on` and `off` are for the patterns"),
        ({"udp": {"rate": "1mbit", "pattern": "bursts"}}, "need the times `on` and `off`"),
        ({"udp": {"rate": "1mbit", "payload": 1473}}, "udp.payload 1473: write 1 to 1472 bytes"),
        ({"udp": {}}, "rate"),
        ({"voice": {"jitter_buffer": "61s"}}, "voice.jitter_buffer 61s: write 60s or less"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, flow: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(tmp_path / "run", {"name": "load", "direction": "up", **flow})


def test_a_shaper_with_fq_codel_takes_the_wait_of_an_upload_from_the_shipped_game(tmp_path: Path) -> None:
    game = tomllib.loads((Path(__file__).parent.parent / "scenarios" / "gaming.toml").read_text())
    queues = ["default", "htb rate 95% fq_codel"]
    bloated, shaped = weirlab.run(game["test"], link=game["link"], queue=queues, out=tmp_path / "run")
    before, after = summarise(bloated).udp["game upload"], summarise(shaped).udp["game upload"]
    assert before.delay_max_ms is not None
    assert after.delay_max_ms is not None
    assert before.delay_max_ms > 150, "the upload fills the modem's queue"
    assert after.delay_max_ms < 50
    for record in (bloated, shaped):
        assert summarise(record).udp["game download"].loss_rate == 0, "nothing loads the way down"
    assert after.loss_rate == 0


@pytest.mark.parametrize("test", ["udp_flood", "voip", "bursts"])
def test_the_lab_takes_the_shipped_udp_loads(test: str) -> None:
    (resolved,) = resolve(ScenarioSpec(test=test, link="cable-20-8"))
    world_named("lab").check(resolved)


def test_the_e_model_has_the_published_values() -> None:
    """ITU-T G.107: R = 93.2 without impairments, and the scores of annex B."""
    assert rating(0, 0) == pytest.approx(93.2, abs=0.05)
    published = {93.2: 4.41, 90: 4.34, 80: 4.03, 70: 3.60, 60: 3.10, 50: 2.58, 0: 1.0, 100: 4.5}
    for r, score in published.items():
        assert mean_opinion_score(r) == pytest.approx(score, abs=0.01)
    assert mean_opinion_score(3) == 1.0, "the polynomial is below 1 there"


def test_delay_impairs_as_cole_and_rosenbluth_fitted_it() -> None:
    """Voice over IP performance monitoring, 2001: Id = 0.024 d, and 0.11 (d - 177.3) more beyond 177.3 ms."""
    for delay in range(0, 301, 10):
        fitted = 93.2 - 0.024 * delay - 0.11 * max(0, delay - 177.3)
        assert rating(delay, 0) == pytest.approx(fitted, abs=1)


def test_loss_impairs_g711_with_concealment_by_half_of_the_scale_at_its_robustness() -> None:
    """Ie_eff = (95 - Ie) Ppl / (Ppl + Bpl) is 47.5 where the loss in percent is Bpl = 25.1."""
    assert rating(0, 0) - rating(0, 0.251) == pytest.approx(47.5)
