"""Web pages, DNS lookups, adaptive video, flows of fixed size, and IPv4 beside IPv6, in the simulator."""

from __future__ import annotations

import math
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
from weirlab.plots.quantity import QUANTITIES
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import summarise
from weirlab.stats.assertions import Assertion
from weirlab.stats.rrul import rrul_scores
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from weirlab.record import Record

HOP = {"name": "line", "rate": "10mbit", "delay": "20ms", "queue": "pfifo limit 100"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
PLAIN = {"objects": 0, "document": 1000, "tls": False, "dns": False, "every": "1s"}


def run(out: Path, *flows: dict[str, Any], load: str = "10s", **more: Any) -> Record:
    """A test with these flows and nothing else, on a line of 10 Mbit/s with a round trip of 40 ms."""
    test = {"name": "t", "title": "T", "phases": {"idle": "2s", "load": load}, "flows": list(flows)} | more
    (record,) = weirlab.run(test, link=LINK, start_jitter="0s", out=out)
    return record


def web(**settings: Any) -> dict[str, Any]:
    return {"name": "page", "direction": "down", "web": PLAIN | settings}


def ms_on_wire(*ip_bytes: int) -> float:
    """Time of packets on the line of 10 Mbit/s."""
    return sum(ip_bytes) * 8 / 1e4


def test_a_small_page_takes_a_handshake_a_request_and_its_answer(tmp_path: Path) -> None:
    record = run(tmp_path / "run", web())
    rows = record.transfers
    assert rows["t_ns"].to_list() == [second * 10**9 for second in range(12)], (
        "one a second, from the start on"
    )
    assert set(rows["outcome"]) == {"done"}
    # SYN, SYN-ACK (60 bytes with their options), ACK and request, its ACK and the answer, behind 52 each.
    took = 4 * 20 + ms_on_wire(60, 60, 52, 450 + 52, 52, 1300 + 52)
    assert rows["took_ns"].to_list() == [pytest.approx(took * 1e6, abs=1e3)] * 12
    page = summarise(record).applications["page"]
    assert (page.kind, page.done, page.given_up, page.failed_rate) == ("web", 10, 0, 0)
    assert page.mean_ms == pytest.approx(took, abs=0.001)
    assert page.max_ms == pytest.approx(took, abs=0.001)
    assert page.response == pytest.approx(1, abs=1e-6)
    assert set(rows["bytes"]) == {1300}
    assert record.flows["delivered_bytes"].to_list() == [12 * 1300]


def test_a_lookup_and_tls_take_a_round_trip_each(tmp_path: Path) -> None:
    bare = summarise(run(tmp_path / "bare", web())).applications["page"].mean_ms
    looked_up = summarise(run(tmp_path / "dns", web(dns=True))).applications["page"].mean_ms
    secured = summarise(run(tmp_path / "tls", web(tls=True))).applications["page"].mean_ms
    assert bare is not None
    assert looked_up is not None
    assert secured is not None
    # 51 and 120 bytes of payload behind 28 of IPv4 and UDP.
    assert looked_up - bare == pytest.approx(40 + ms_on_wire(79, 148), abs=0.01)
    assert 40 < secured - bare < 45, "a round trip, and 3.6 kB more on the line"


def test_http_2_asks_for_all_objects_in_one_round_trip(tmp_path: Path) -> None:
    many = {"objects": 60, "object": 500}
    one = summarise(run(tmp_path / "1.1", web(**many))).applications["page"].mean_ms
    two = summarise(run(tmp_path / "2", web(http="2", **many))).applications["page"].mean_ms
    assert one is not None
    assert two is not None
    # Sixty objects over six connections, the first of which is open: ten round trips and a handshake.
    assert one > 80 + 10 * 40
    # Slow start sends 10 segments, then the rest; all have their time on the line, with headers.
    assert two < 80 + 3 * 40 + ms_on_wire(60 * (109 + 52), 60 * (629 + 52))


def test_dns_waits_in_the_queue_that_bulk_fills_and_a_lost_query_is_asked_again(tmp_path: Path) -> None:
    dns = {"name": "names", "direction": "down", "dns": {"every": "100ms"}}
    record = run(tmp_path / "run", dns, {"name": "bulk", "direction": "down"}, load="30s")
    names = summarise(record).applications["names"]
    idle = Assertion("dns.max[idle] < 41ms").of(record)
    assert idle.left == pytest.approx(40 + ms_on_wire(79, 148), abs=0.01)
    assert names.mean_ms is not None
    assert names.mean_ms > 80, "up to 100 packets of 1500 bytes are 120 ms"
    again = record.transfers.filter(record.transfers["queries"] == 2)
    assert again.height > 0, "a full queue drops answers"
    assert min(again["took_ns"].to_list()) >= 5_000_000_000
    assert names.response is not None
    assert names.response < 0.5


def test_a_video_takes_the_bitrate_that_the_line_carries_and_stalls_where_it_carries_none(
    tmp_path: Path,
) -> None:
    video = {"name": "film", "direction": "down", "video": {"bitrates": ["1mbit", "3mbit", "20mbit"]}}
    record = run(tmp_path / "calm", video, load="40s")
    film = summarise(record).applications["film"].video
    assert film is not None
    assert film.bitrate_mbps == pytest.approx(3, abs=0.2), "nine tenths of 10 Mbit/s carry no 20"
    assert (film.stalls, film.stalled_ms) == (0, 0)
    outage = HOP | {"changes": [{"at": "20s", "down": True}, {"at": "30s", "rate": "10mbit"}]}
    short = video | {"video": {"bitrates": ["1mbit", "3mbit"], "segment": "2s", "buffer": "4s"}}
    test = {"name": "t", "title": "T", "phases": {"load": "60s"}, "flows": [short]}
    (broken,) = weirlab.run(test, link=LINK | {"down": [outage]}, out=tmp_path / "broken")
    film = summarise(broken).applications["film"].video
    assert film is not None
    assert film.stalls == 1
    # 10 s without the line, 2 to 4 of them loaded ahead; TCP's timer may wait as long again.
    assert film.stalled_ms is not None
    assert 6_000 < film.stalled_ms < 20_000
    assert Assertion("video.stalled > 10%").of(broken).holds


def test_a_flow_of_fixed_size_tells_when_it_was_complete(tmp_path: Path) -> None:
    sized = {"name": "file", "direction": "down", "bytes": 2_000_000}
    record = run(tmp_path / "run", sized, {"name": "long", "direction": "up", "bytes": 10**12})
    took = summarise(record).completion_ms
    assert took["file"] is not None
    assert took["file"] > 1600
    assert took["long"] is None
    assert Assertion("completion.max[flow=file] > 1.6s").of(record).holds
    assert not Assertion("completion.max < 3600s").of(record).holds, "one was not delivered"
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "run")]).output
    assert "not complete" in shown


def test_ipv6_beside_ipv4_has_20_bytes_more_of_headers(tmp_path: Path) -> None:
    flows = [
        {"name": f"load {ip}", "direction": "down", "ip": ip, "udp": {"rate": "1mbit", "payload": 1000}}
        for ip in (4, 6)
    ]
    # The second sends 5 ms later, so that it does not wait behind the first.
    probes = [
        {"name": f"ping {ip}", "kind": "icmp", "ip": ip, "payload": 1000, "start": start}
        for ip, start in ((4, "0s"), (6, "5ms"))
    ]
    record = run(tmp_path / "run", *flows, probes=probes)
    wire = record.throughput.group_by("flow").sum().sort("flow")
    per_packet = (wire["wire_bytes"] / (wire["bytes"] / 1000)).to_list()
    assert per_packet == [1028, 1048]
    idle = record.latency.filter(record.latency["t_ns"] < 1_900_000_000)
    four, six = (min(idle.filter(idle["probe"] == probe)["rtt_ns"].to_list()) for probe in (0, 1))
    assert six - four == 2 * 20 * 8 * 100, "20 bytes each way at 10 Mbit/s"


@pytest.mark.parametrize("test", ["rrul46", "rrul46compete", "rrul_spec"])
def test_simulator_and_lab_take_two_internet_protocols_at_once(test: str) -> None:
    (resolved,) = resolve(ScenarioSpec(test=test, link="cable-20-8"))
    for world in ("sim", "lab"):
        world_named(world).check(resolved)


@pytest.mark.parametrize("test", ["http", "dns", "dash", "household", "short_flows"])
def test_the_lab_takes_the_shipped_applications(test: str) -> None:
    (resolved,) = resolve(ScenarioSpec(test=test, link="cable-20-8"))
    world_named("lab").check(resolved)


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ({"web": {}, "dns": {}}, "it has `web` and `dns`: write one of them"),
        ({"dns": {}, "tcp": {"ecn": True}}, "it has `tcp` and `dns`: write one of them"),
        ({"web": {}, "bytes": 1000}, "`bytes` is for data over TCP"),
        ({"web": {}, "direction": "up"}, "what `web` asks for comes down"),
        ({"web": {"http": "3"}}, "1.1"),
        ({"web": {"every": "1us"}}, "web.every 1us: write 1ms to 3600s"),
        ({"video": {"bitrates": ["2mbit", "1mbit"]}}, "each higher than the one before"),
        ({"video": {"segment": "40s"}}, "video.buffer 30s: write 80s or more"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, flow: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(tmp_path / "run", {"name": "load", "direction": "down"} | flow)


def test_the_specified_rrul_has_scores_that_a_queue_by_class_betters(tmp_path: Path) -> None:
    queues = ["default", "htb rate 95% cake diffserv4"]
    phases = {"idle": "10s", "load": "15s"}
    bloated, shaped = weirlab.run(
        "rrul_spec", link="cable-20-8", queue=queues, phases=phases, out=tmp_path / "run"
    )
    before, after = ({one.name: one.percent for one in rrul_scores(run)} for run in (bloated, shaped))
    web = "web page, of its speed on the idle line"
    assert before[web] < after[web] < 100
    share = "share of CS1 of the upload"
    assert after[share] < before[share], "CAKE tells the classes apart"
    assert {"share of EF of the download", "isochronous up EF, lost or too late"} <= before.keys()
    shown = CliRunner().invoke(group, ["show", str(shaped.path)]).output
    assert "Scores of the RRUL specification" in shown


def test_charts_show_pages_names_and_videos(tmp_path: Path) -> None:
    flows = [
        web(),
        {"name": "names", "direction": "down", "dns": {"every": "130ms"}},
        {"name": "film", "direction": "down", "video": {}},
    ]
    record = run(tmp_path / "run", *flows)
    chart = plot(record, "applications")
    labels = ["Page load time, s", "DNS lookup, ms", "Bitrate, Mbit/s", "Buffer, s"]
    assert [axes.get_ylabel() for axes in chart.axes[:4]] == labels
    assert [len(axes.lines) for axes in chart.axes[:4]] == [1, 1, 1, 1]
    assert QUANTITIES["page-load"].of(record).size == 10
    # From 2.08 to 11.96 s; the last would take 41 ms at least, and the flow stops after 40.
    assert QUANTITIES["dns"].of(record).size == 76, "one is cut at the end"
    assert summarise(record).applications["names"].cut == 1
    bare = run(tmp_path / "bare", {"name": "TCP download", "direction": "down"}, load="1s")
    with pytest.raises(UsageError, match="has no applications to draw"):
        plot(bare, "applications")


def test_the_shipped_household_is_judged_line_by_line() -> None:
    scenario = tomllib.loads((Path(__file__).parent.parent / "scenarios" / "household.toml").read_text())
    (first, *_) = resolve(ScenarioSpec(**scenario))
    for text in scenario["assert"]:
        Assertion(text).check(first.scenario)


def test_a_test_has_phases_of_any_name_which_flows_and_assertions_name(tmp_path: Path) -> None:
    flows = [
        {"name": "up", "direction": "up", "during": "upload"},
        {"name": "down", "direction": "down", "during": "both"},
    ]
    stages = {"upload": "4s", "both": "6s"}
    record = run(tmp_path / "run", *flows, stages=stages)
    named = [(phase["name"], phase["start_ns"] / 1e9) for phase in record.manifest.scenario["phases"]]
    assert named == [("idle", 0), ("load", 2), ("upload", 2), ("both", 6)]
    assert Assertion("up.goodput[upload] > 5mbit").of(record).holds
    assert Assertion("down.goodput[upload] <= 0mbit").of(record).holds
    assert Assertion("down.goodput[both] > 5mbit").of(record).holds
    with pytest.raises(UsageError, match=r"no phase `quiet` \(it has: idle, load, upload, both\)"):
        Assertion("up.goodput[quiet] > 5mbit").of(record)


@pytest.mark.parametrize(
    ("stages", "during", "said"),
    [
        ({"a": "5s"}, "b", r"flow `x`: the test has no phase `b` \(it has: idle, load, a\)"),
        ({"a": "5s", "b": "6s"}, "a", "stages.b: it would end 1 s behind the load"),
        ({"idle": "5s"}, "idle", "stages.idle: the phase of that name is one of `phases`"),
    ],
)
def test_phases_that_do_not_fit_are_refused(
    tmp_path: Path, stages: dict[str, str], during: str, said: str
) -> None:
    flow = {"name": "x", "direction": "up", "during": during}
    with pytest.raises(UsageError, match=said):
        run(tmp_path / "run", flow, stages=stages)


def test_flows_of_fixed_size_run_until_they_are_complete(tmp_path: Path) -> None:
    """Two of equal size share unequally while both run; once one is complete it takes no part."""
    hop = {"name": "line", "rate": "20mbit", "delay": "5ms", "queue": "pfifo limit 100"}
    test: dict[str, Any] = {"name": "t", "title": "t", "phases": {"idle": "1s", "load": "20s"}}
    test["hosts"] = [{"name": "near"}, {"name": "far", "delay": "80ms"}]
    test["flows"] = [
        {"name": host, "direction": "down", "host": host, "bytes": "10mb"} for host in ("near", "far")
    ]
    (record,) = weirlab.run(
        test, link={"name": "l", "title": "l", "up": [hop], "down": [hop]}, out=tmp_path / "o"
    )
    down = summarise(record).down
    assert down is not None
    took_s = {
        row["name"]: (row["completed_ns"] - row["start_ns"]) / 1e9
        for row in record.flows.iter_rows(named=True)
    }
    assert took_s["near"] < 0.8 * took_s["far"] < 16
    expected = {name: 80 / took for name, took in took_s.items()}
    assert down.per_flow_running_mbps == pytest.approx(expected, rel=0.05)
    # Both were delivered whole within the load of 20 s.
    assert down.per_flow_mbps == pytest.approx(dict.fromkeys(expected, 10 * 2**20 * 8e-6 / 20))
    assert down.jain_index is not None
    assert 0.5 < down.jain_index < 0.95


def test_a_flow_that_is_complete_within_an_interval_has_the_goodput_of_its_time(tmp_path: Path) -> None:
    hop = {"name": "line", "rate": "20mbit", "delay": "5ms", "queue": "fq_codel"}
    test: dict[str, Any] = {"name": "t", "title": "t", "phases": {"idle": "1s", "load": "5s"}}
    test["flows"] = [
        {"name": "tiny", "direction": "down", "bytes": "20kb", "start": "3s"},
        {"name": "one", "direction": "down"},
        {"name": "other", "direction": "down"},
    ]
    link = {"name": "l", "title": "l", "up": [hop], "down": [hop]}
    (record,) = weirlab.run(test, link=link, out=tmp_path / "o")
    found = summarise(record)
    took_ms = found.completion_ms["tiny"]
    assert took_ms is not None
    assert found.down is not None
    assert found.down.per_flow_running_mbps["tiny"] == pytest.approx(163.84 / took_ms)
    # The others run together all along, and share evenly.
    assert found.down.jain_index == pytest.approx(1, abs=0.01)


LOSS = {"loss": {"model": "random", "probability": 0.2}}


def test_losses_of_applications_are_shares_of_what_servers_sent(tmp_path: Path) -> None:
    flows = [
        {"name": "names", "direction": "down", "dns": {"every": "100ms"}},
        web(document=100_000, timeout="3s"),
    ]
    test = {"name": "t", "title": "T", "phases": {"load": "30s"}, "flows": flows}
    links = {way: LINK | {way: [HOP | LOSS]} for way in ("up", "down")}
    (up,) = weirlab.run(test, link=links["up"], start_jitter="0s", out=tmp_path / "up")
    assert up.transfers["queries"].sum() > up.transfers.filter(up.transfers["flow"] == 0).height
    assert up.flows["dropped_packets"].to_list() == [0, 0], "queries and requests are lost, no data"
    names = up.flows.row(0, named=True)
    assert names["sent_segments"] == names["delivered_bytes"] // 120, "an answer to each query that came"
    direction = summarise(up).down
    assert direction is not None
    assert direction.loss_rate == 0

    (down,) = weirlab.run(test, link=links["down"], start_jitter="0s", out=tmp_path / "down")
    names = down.flows.row(0, named=True)
    # An answer behind the last sample of the run may be under way.
    assert names["sent_segments"] == names["delivered_bytes"] // 120 + names["dropped_packets"]
    assert (names["sent_bytes"], names["retransmitted_segments"]) == (120 * names["sent_segments"], 0)
    direction = summarise(down).down
    assert direction is not None
    assert direction.loss_rate == pytest.approx(0.2, abs=0.05)


def test_a_picture_that_stands_still_over_the_end_of_a_phase_counts_in_both(
    tmp_path: Path,
) -> None:
    outage = HOP | {"changes": [{"at": "20s", "down": True}, {"at": "30s", "rate": "10mbit"}]}
    short = {"bitrates": ["1mbit", "3mbit"], "segment": "2s", "buffer": "4s"}
    film = {"name": "film", "direction": "down", "start": "0s", "stop": "60s", "video": short}
    phases = {"idle": "15s", "load": "12s", "cooldown": "38s"}
    test = {"name": "t", "title": "T", "phases": phases, "flows": [film]}
    (record,) = weirlab.run(test, link=LINK | {"down": [outage]}, start_jitter="0s", out=tmp_path / "run")
    (row,) = record.transfers.filter(record.transfers["stalled_ns"] > 0).iter_rows(named=True)
    again = row["t_ns"] + row["took_ns"]
    stood = again - row["stalled_ns"]
    assert 20e9 < stood < 27e9, "from within the load"
    assert again > 30e9, "until behind it"

    def stalled(phase: str) -> float:
        return Assertion(f"video.stalled[{phase}] < 1").of(record).left

    assert stalled("idle") == 0
    assert stalled("load") == pytest.approx((27e9 - stood) / 12e9)
    assert stalled("cooldown") == pytest.approx((again - 27e9) / (60e9 - 27e9)), "the film ends at 60 s"
    assert stalled("25s..27s") == pytest.approx(1), "and no segment was asked for in it"
    video = summarise(record).applications["film"].video
    assert video is not None
    assert video.stalls == 1
    assert video.stalled_ms == pytest.approx((27e9 - stood) / 1e6)
    (buffer,) = plot(record, "applications").axes[1].lines
    at_s, level_s = (np.asarray(values, dtype=float) for values in buffer.get_data())
    # It falls by a second each second, and is empty until the segment is there.
    assert np.interp([stood / 1e9 - 1, stood / 1e9, 28, again / 1e9 - 1e-6], at_s, level_s) == pytest.approx(
        [1, 0, 0, 0], abs=1e-6
    )
    assert level_s.min() == 0


def test_a_video_without_a_picture_does_not_play_without_a_stall(tmp_path: Path) -> None:
    video = {"name": "film", "direction": "down", "video": {"bitrates": ["1gbit"]}}
    record = run(tmp_path / "run", video | {"start": "3s", "stop": "8s"})
    film = summarise(record).applications["film"].video
    assert film is not None
    assert (film.stalls, film.stalled_ms, film.stalled_rate, film.startup_ms) == (None, None, None, None)
    assert not Assertion("video.stalled < 1%").of(record).holds
    shown = CliRunner().invoke(group, ["show", str(tmp_path / "run")], env={"COLUMNS": "100"}).output
    (line,) = (line for line in shown.splitlines() if line.split()[:2] == ["film", "0"])
    assert line.split() == ["film", "0", "-", "0", "-", "-", "-"]
    assert Assertion("video.stalled[idle] < 1%").of(record).holds is False, "it has not begun"


def test_a_buffer_is_drawn_until_the_video_ends(tmp_path: Path) -> None:
    """It is full long before, and nothing more is asked for."""
    video = {"bitrates": ["100kbit"], "segment": "10s", "buffer": "20s"}
    record = run(tmp_path / "run", {"name": "film", "direction": "down", "stop": "6s", "video": video})
    assert record.transfers["outcome"].to_list() == ["done", "done"]
    began, full = (record.transfers["t_ns"] + record.transfers["took_ns"]).to_list()
    (buffer,) = plot(record, "applications").axes[1].lines
    at_s, level_s = (np.asarray(values, dtype=float) for values in buffer.get_data())
    assert at_s[-1] == 6
    assert full / 1e9 < 5
    assert level_s[-1] == pytest.approx(20 - (6 - began / 1e9))


def test_an_assertion_is_of_the_applications_that_run_in_its_span(tmp_path: Path) -> None:
    """One that has ended before, or begins behind it, has no figure there to be the worst."""
    video = {"bitrates": ["100kbit"], "segment": "1s", "buffer": "2s"}
    times = {"before": ("0s", "2s"), "all along": ("0s", "12s"), "late": ("2s", "12s"), "last": ("9s", "12s")}
    record = run(
        tmp_path / "run",
        *(
            {"name": name, "direction": "down", "start": start, "stop": stop, "video": video}
            for name, (start, stop) in times.items()
        ),
        web() | {"start": "0s", "stop": "2s"},
        web() | {"name": "other", "start": "2s", "stop": "9s"},
    )
    films = summarise(record).applications
    late, last, page = (films[name] for name in ("late", "last", "other"))
    assert late.video is not None
    assert last.video is not None

    def left(figure: str) -> float:
        least = "1" if "stalled" in figure else "1s"
        return Assertion(f"{figure} < {least}").of(record).left

    assert left("video.stalled[3s..8s]") == 0
    assert left("video.startup[load]") == max(late.video.startup_ms or 0, last.video.startup_ms or 0) > 0
    assert left("video.startup[2s..8s]") == late.video.startup_ms
    assert math.isnan(left("video.startup[3s..8s]"))
    assert left("web.mean[load]") == page.mean_ms
    assert math.isnan(left("web.mean[10s..12s]")), "none runs"
