"""Scenarios: what is read, and the one sentence about what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from weirlab import _native
from weirlab.api import run, run_all
from weirlab.errors import UsageError
from weirlab.scenario import (
    HopSpec,
    LinkSpec,
    Model,
    PositiveNanoseconds,
    ScenarioSpec,
    TestSpec,
    line_rate,
    load_link,
    load_scenario,
    load_test,
    resolve,
    shipped_links,
    shipped_tests,
)
from weirlab.scenario.catalogue import check, scenario_in
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from pathlib import Path


def scenario(**words: Any) -> ScenarioSpec:
    return check(ScenarioSpec, {"test": "rrul", "link": "cable-20-8"} | words, "scenario")


def test_the_shipped_files_are_all_there() -> None:
    assert shipped_tests() == [
        "bursts",
        "bursts_11e",
        "cisco_5tcpup",
        "cisco_5tcpup_2udpflood",
        "cubic_bbr",
        "cubic_cdg",
        "cubic_dctcp",
        "cubic_ledbat",
        "cubic_ledbat_1",
        "cubic_reno",
        "cubic_westwood",
        "dash",
        "dns",
        "household",
        "http",
        "http-1down",
        "http-1up",
        "http-rrul",
        "ledbat_cubic_1",
        "ping",
        "reno_cubic_westwood_cdg",
        "reno_cubic_westwood_ledbat",
        "reno_cubic_westwood_lp",
        "rrul",
        "rrul46",
        "rrul46compete",
        "rrul_100_up",
        "rrul_50_down",
        "rrul_50_up",
        "rrul_be",
        "rrul_be_nflows",
        "rrul_cs8",
        "rrul_icmp",
        "rrul_noclassification",
        "rrul_prio",
        "rrul_spec",
        "rrul_torrent",
        "rrul_twice",
        "rrul_up",
        "rrul_var",
        "rtt_fair",
        "rtt_fair4be",
        "rtt_fair6be",
        "rtt_fair_up",
        "rtt_fair_var",
        "rtt_fair_var_down",
        "rtt_fair_var_up",
        "short_flows",
        "tcp_1up_noping",
        "tcp_2up_delay",
        "tcp_2up_square",
        "tcp_2up_square_westwood",
        "tcp_4up_squarewave",
        "tcp_bidirectional",
        "tcp_download",
        "tcp_ndown",
        "tcp_nup",
        "tcp_upload",
        "tcp_upload_1000",
        "tcp_upload_prio",
        "three_rtts",
        "udp_flood",
        "udp_flood_var_up",
        "udp_flood_var_up_stagger",
        "voip",
        "voip-1up",
        "voip-rrul",
    ]
    assert shipped_links() == [
        "cable-140-12",
        "cable-20-8",
        "denmark-germany",
        "docsis-31",
        "fios-25-25",
        "line-50",
        "lte-att",
        "lte-tmobile",
        "lte-verizon",
        "starlink",
        "thesis-10",
        "vdsl-100-40",
        "wifi-n",
    ]


@pytest.mark.parametrize("name", shipped_tests())
def test_every_test_names_its_source(name: str) -> None:
    test = load_test(name)
    assert test.name == name
    assert test.source
    assert test.summary


@pytest.mark.parametrize("name", shipped_links())
def test_every_link_names_its_source(name: str) -> None:
    link = load_link(name)
    assert link.name == name
    assert link.source
    assert [hop.place for hop in [*link.up, *link.down]].count("queue") >= 1


def test_rrul_is_flents() -> None:
    [run] = resolve(scenario())
    flows = run.scenario["flows"]
    assert [(flow["name"], flow["dscp"]) for flow in flows] == [
        ("TCP upload BE", 0),
        ("TCP upload BK", 8),
        ("TCP upload CS5", 40),
        ("TCP upload EF", 46),
        ("TCP download BE", 0),
        ("TCP download BK", 8),
        ("TCP download CS5", 40),
        ("TCP download EF", 46),
    ]
    assert {(flow["start_ns"], flow["stop_ns"]) for flow in flows} == {(5 * 10**9, 65 * 10**9)}
    assert [(probe["kind"], probe["dscp"]) for probe in run.scenario["probes"]] == [
        ("icmp", 0),
        ("udp", 0),
        ("udp", 8),
        ("udp", 46),
    ]
    assert {probe["period_ns"] for probe in run.scenario["probes"]} == {10**7}
    assert run.scenario["duration_ns"] == 70 * 10**9


def test_configurations_and_repetitions_multiply() -> None:
    runs = resolve(scenario(queue=["pfifo", "codel"], repeat=3, seed=7))
    assert [(run.queue, run.seed) for run in runs] == [
        ("pfifo", 7),
        ("pfifo", 8),
        ("pfifo", 9),
        ("codel", 7),
        ("codel", 8),
        ("codel", 9),
    ]


def test_the_queue_goes_where_the_link_has_room_for_it() -> None:
    [run] = resolve(scenario(queue=["codel"], queue_down="fq_codel"))
    queues = {
        direction: [hop["queue"] for hop in run.scenario["path"][direction]] for direction in ("up", "down")
    }
    assert queues["up"] == ["codel", "bfifo limit 250000"]
    assert queues["down"] == ["bfifo limit 625000", "fq_codel"]


def test_shares_refer_to_the_slowest_hop_of_the_direction() -> None:
    link = load_link("cable-20-8")
    assert line_rate(link, "up") == 8_000_000
    assert line_rate(link, "down") == 20_000_000
    assert line_rate(load_link("lte-verizon"), "down") is None


def test_parameters_set_the_number_of_streams() -> None:
    [run] = resolve(scenario(test="tcp_ndown", parameters={"streams": 3}))
    assert [flow["name"] for flow in run.scenario["flows"]] == [
        "TCP download::1",
        "TCP download::2",
        "TCP download::3",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"test": "rrulll"}, "unknown test `rrulll`, did you mean `rrul`? (known: bursts, bursts_11e, "),
        ({"link": "dsl"}, "unknown link `dsl` (known: cable-140-12, "),
        ({"link": "gone.toml"}, "gone.toml cannot be read: No such file or directory"),
        ({"queue": ["fq_kodel"]}, "path up, hop `router`: unknown queue discipline `fq_kodel`"),
        ({"queue": ["codel target soon"]}, "`target soon`: write a number that is not negative"),
        ({"queue": []}, "scenario: queue: the list is empty: write at least one"),
        ({"seed": -1}, "scenario: seed: -1: write 0 or more"),
        ({"repeat": 0}, "scenario: repeat: 0: write 1 or more"),
        ({"sede": 1}, "scenario: sede: unknown key, did you mean `seed`? (known: name, test, link, queue,"),
        ({"phases": {"load": "-5s"}}, "`-5s` is not a time"),
        ({"phases": {"idle": "0s", "load": "0s", "cooldown": "0s"}}, "the test lasts no time"),
        ({"tcp": {"congestion_control": "vegas"}}, "unknown congestion control `vegas`: there are reno, "),
        ({"tcp": {"congestion_control": "cubik"}}, "control `cubik`: did you mean `cubic`?"),
        ({"tcp": {"profile": "windows"}}, "unknown TCP profile `windows` (known: linux, rfc, linux22, bsd)"),
        ({"tcp": {"receive_window": "1kb"}}, "receive window 1024 bytes: write 18000 or more"),
        ({"parameters": {"streams": 3}}, "test `rrul` has no parameter `streams`"),
        (
            {"test": "tcp_nup", "parameters": {"streams": 0}},
            "parameter `streams` is 0: write a number from 1 to 10000",
        ),
        ({"sampling": {"ping": "0s"}}, "sampling.ping: `0s`: write a time above 0"),
    ],
)
def test_errors_are_one_sentence(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        simulable(words)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text


def simulable(words: dict[str, Any]) -> None:
    for one in resolve(scenario(**words)):
        world_named("sim").check(one)


def hop(**words: Any) -> dict[str, Any]:
    hops = [{"name": "line"} | words]
    return {"link": {"name": "l", "title": "L", "up": hops, "down": [{"name": "line"}]}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"rate": "0mbit"}, "link.up.0.rate: `0mbit`: write a rate from 1kbit to 1tbit"),
        ({"rate": "fast"}, "`fast` is not a rate: write a number with bit, kbit"),
        ({"delay": "-3ms"}, "`-3ms` is not a time: write a number that is not negative"),
        ({"rate": "1mbit", "trace": "x"}, "hop `line`: `rate` and `trace` exclude each other"),
        ({"trace": "nowhere"}, "trace `nowhere` is neither shipped nor a file that can be read"),
        ({"framing": "dsl"}, "link.up.0.framing: `dsl`: write 'none', 'ethernet', 'ptm', 'atm' or 'docsis'"),
        (
            {"loss": {"model": "random", "probability": 2}},
            "loss.probability: 2: write 1 or less",
        ),
    ],
)
def test_errors_in_links_are_one_sentence(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(scenario(**hop(**words)))
    text = str(caught.value)
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: write one millisecond a line"),
        ("1\n2\nx\n", "line 3: `x` is not a whole number of milliseconds"),
        ("3\n1\n", "line 2: 1 ms comes after 3 ms"),
        ("0\n", "lasts 0 ms"),
    ],
)
def test_a_malformed_recording_is_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    trace = tmp_path / "line.trace"
    trace.write_text(text)
    with pytest.raises(UsageError, match=message):
        run("ping", out=tmp_path / "out", **hop(trace=str(trace)))
    assert not list((tmp_path / "out").glob("*/manifest.json")), "nothing half-done stays behind"


def test_a_scenario_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('test = "rrul"\nlink = "cable-20-8"\nqueue = ["codel"]\n[phases]\nload = "9s"\n')
    [run] = resolve(load_scenario(path))
    assert run.queue == "codel"
    assert run.scenario["duration_ns"] == 19 * 10**9
    path.write_text("test = ")
    with pytest.raises(UsageError, match="is not TOML"):
        load_scenario(path)


def opened_by(opener: str, *, loss: float, flows: int, tmp_path: Path) -> list[dict[str, Any]]:
    """Downloads of one segment over a line of 100 ms each way, and what became of them."""
    hop: dict[str, Any] = {"name": "line", "delay": "100ms"}
    if loss:
        hop["loss"] = {"model": "random", "probability": loss}
    flow = {"name": "load", "direction": "down", "opened_by": opener, "count": flows, "bytes": "1kb"}
    test = {"name": "t", "title": "t", "phases": {"load": "60s"}, "flows": [flow]}
    link = {"name": "l", "title": "l", "up": [hop], "down": [hop]}
    [record] = run(
        check(TestSpec, test, "test"),  # type: ignore[arg-type]
        link=check(LinkSpec, link, "link"),  # type: ignore[arg-type]
        start_jitter="0s",
        out=tmp_path / opener,
    )
    return record.flows.to_dicts()


@pytest.mark.parametrize(("opener", "milliseconds"), [("client", 400), ("server", 300)])
def test_who_opens_a_connection_can_send_sooner(opener: str, milliseconds: int, tmp_path: Path) -> None:
    [flow] = opened_by(opener, loss=0, flows=1, tmp_path=tmp_path)
    assert flow["first_data_ns"] == milliseconds * 1_000_000


@pytest.mark.parametrize("opener", ["client", "server"])
def test_either_end_opens_in_spite_of_losses(opener: str, tmp_path: Path) -> None:
    flows = opened_by(opener, loss=0.15, flows=20, tmp_path=tmp_path)
    assert all(flow["completed_ns"] for flow in flows)


def uploads(client_host: str, tmp_path: Path) -> list[float]:
    """What eight uploads of `client_host` and then one of the client get of 9 Mbit/s, in Mbit/s."""
    line = {"name": "line", "delay": "10ms", "queue": "cake bandwidth 9mbit dual-srchost"}
    flows = [
        {"name": "eight", "direction": "up", "count": 8, "client_host": client_host},
        {"name": "one", "direction": "up"},
    ]
    test = {"name": "t", "title": "t", "phases": {"load": "10s"}, "flows": flows}
    link = {"name": "l", "title": "l", "up": [line], "down": [{"name": "line", "delay": "10ms"}]}
    [record] = run(
        check(TestSpec, test, "test"),  # type: ignore[arg-type]
        link=check(LinkSpec, link, "link"),  # type: ignore[arg-type]
        out=tmp_path / client_host,
    )
    mbps = [flow["delivered_bytes"] * 8 / 10e6 for flow in record.flows.sort("flow").to_dicts()]
    return [sum(mbps[:8]), mbps[8]]


def test_machines_of_the_clients_network_are_hosts_to_a_queue(tmp_path: Path) -> None:
    eight, one = uploads("client", tmp_path)
    assert 0.8 < one / (eight / 8) < 1.25
    eight, one = uploads("flooder", tmp_path)
    assert 0.8 < one / eight < 1.25


def test_the_lab_has_no_machines_beside_the_client_and_a_network_not_that_many(tmp_path: Path) -> None:
    load = {"name": "load", "direction": "up", "client_host": "second"}
    test = check(TestSpec, {"name": "t", "title": "t", "phases": {"load": "1s"}, "flows": [load]}, "test")
    [resolved] = resolve(scenario(test=test))
    assert resolved.scenario["flows"][0]["client_host"] == 1
    told = "flow `load` is of another machine of the client's network: .* alone, the world `sim` has others"
    with pytest.raises(_native.NativeError, match=told):
        _native.check_lab(json.dumps(resolved.scenario))
    # What a world refuses leaves no folder.
    with pytest.raises(UsageError, match=told):
        run_all([resolved], world_named("lab"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    far = resolved.scenario | {"flows": [resolved.scenario["flows"][0] | {"client_host": 254}]}
    with pytest.raises(UsageError, match=r"flow `load`: client_host 254: write 0 \(the client\) to 253"):
        world_named("sim").check(replace(resolved, scenario=far))


def through_a_tunnel(**words: Any) -> TestSpec:
    """A ping and an upload through WireGuard and a ping beside it; `words` are said of the upload."""
    test = {
        "name": "t",
        "title": "t",
        "phases": {"load": "2s"},
        "hosts": [{"name": "server"}, {"name": "far", "delay": "5ms"}],
        "tunnels": [{"name": "vpn", "kind": "wireguard", "host": "far", "client_host": "laptop"}],
        "flows": [{"name": "upload", "direction": "up", "tunnel": "vpn", **words}],
        "probes": [
            {"name": "inside", "kind": "udp", "tunnel": "vpn"},
            {"name": "outside", "kind": "udp"},
        ],
    }
    return check(TestSpec, test, "test")


def test_what_goes_through_a_tunnel_ends_where_it_does(tmp_path: Path) -> None:
    [resolved] = resolve(scenario(test=through_a_tunnel()))
    told = resolved.scenario
    assert told["tunnels"] == [
        {"name": "vpn", "kind": "wireguard", "host": 1, "client_host": 1, "on_first_hop": False}
    ]
    assert [(one["tunnel"], one["host"]) for one in [*told["flows"], *told["probes"]]] == [
        (0, 1),
        (0, 1),
        (None, 0),
    ]
    [record] = run_all([resolved], world_named("sim"), tmp_path)
    least = {
        probe: record.latency.filter(record.latency["probe"] == probe)["rtt_ns"].min() for probe in (0, 1)
    }
    # The far host's 5 ms each way, and 64 bytes more of 8 and 20 Mbit/s: 88 are padded to 96.
    assert 10_000_000 < least[0] - least[1] < 10_200_000  # type: ignore[operator]


def test_words_of_queues_and_markers_that_are_not_known_have_their_lines(tmp_path: Path) -> None:
    link = tmp_path / "mine.toml"
    link.write_text(
        "name = 'l'\ntitle = 'l'\n[[up]]\nname = 'a'\nqueue = 'fq_kodel'\n"
        "[[down]]\nname = 'b'\nmarker = 'paint'\n"
    )
    with pytest.raises(UsageError) as told:
        load_link(str(link))
    first, *faults = str(told.value).splitlines()
    assert first == f"{link} has 2 faults:"
    assert faults[0].startswith("  line 5: up.0.queue: unknown queue discipline `fq_kodel`")
    assert faults[1].startswith("  line 8: down.0.marker: unknown marker `paint`")
    with pytest.raises(UsageError, match=r"line 5: up\.0\.queue: unknown queue discipline"):
        resolve(scenario(link=str(link)))
    file = tmp_path / "s.toml"
    file.write_text("test = 'rrul'\nlink = 'line-50'\nqueue = ['default', 'codel limti 5']\n")
    with pytest.raises(UsageError, match=r"s\.toml, line 3: queue\.1: .*`limti`"):
        load_scenario(file)


def test_words_of_queues_are_told_with_all_other_faults(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        "test = 'rrul'\nlink = 'line-50'\nqueue = ['fq_codle']\n[phases]\nload = 3\n"
        "[parameters]\nnone_such = 3\n"
    )
    with pytest.raises(UsageError) as told:
        load_scenario(file)
    first, *faults = str(told.value).splitlines()
    assert first == f"{file} has 2 faults:"
    assert faults[0].startswith("  line 3: queue.0: unknown queue discipline `fq_codle`")
    assert faults[1].startswith("  line 5: phases.load: ")
    link = tmp_path / "l.toml"
    link.write_text("name = 'l'\ntitle = 'l'\n[[up]]\nname = 'a'\nqueue = 'fq_kodel'\nrate = 3\n")
    for read in (lambda: load_link(str(link)), lambda: resolve(scenario(link=str(link)))):
        with pytest.raises(UsageError) as told:
            read()
        assert "line 5: up.0.queue: unknown queue discipline" in str(told.value)
        assert "line 6: up.0.rate: " in str(told.value)


def test_tunnels_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"flows.0.tunnel: unknown tunnel `ipsec` \(known: vpn\)"):
        resolve(scenario(test=through_a_tunnel(tunnel="ipsec")))
    with pytest.raises(UsageError, match="`upload`: it goes to `server`, but its tunnel `vpn` ends at `far`"):
        resolve(scenario(test=through_a_tunnel(host="server")))
    [resolved] = resolve(scenario(test=through_a_tunnel()))
    with pytest.raises(
        UsageError, match="tunnel `vpn`: the world `lab` makes none, the world `sim` has them"
    ):
        run_all([resolved], world_named("lab"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


ROUGH = {"rate": "10mbit", "delay": "20ms", "reorder": {"probability": 0.5, "gap": 4}, "duplicate": 0.2}
"""A line that sends packets ahead of others and doubles them."""


def rough(**changes: Any) -> dict[str, Any]:
    """A scenario over that line both ways, with changes to it."""
    line = {"name": "line", **ROUGH, **changes}
    link = check(LinkSpec, {"name": "l", "title": "l", "up": [line], "down": [line]}, "link")
    return {"link": link, "phases": {"idle": "1s", "load": "4s", "cooldown": "0s"}}


def test_a_line_that_reorders_and_doubles_loses_nothing(tmp_path: Path) -> None:
    [record] = run("tcp_download", out=tmp_path / "out", **rough())
    pings = record.latency
    assert pings.height == pings.select("probe", "seq").unique().height, "a copy is no second answer"
    assert pings["rtt_ns"].null_count() == 0
    one_way = pings.filter(pings["t_ns"] < 1_000_000_000, pings["rtt_ns"] < 25_000_000)
    assert one_way.height > 0, "some pings were sent ahead on one of their ways"
    assert record.flows["dropped_packets"].sum() == 0
    assert record.flows["delivered_bytes"].sum() > 1_000_000


def test_what_cannot_be_reordered_is_refused() -> None:
    with pytest.raises(UsageError, match="packets overtake by not being delayed: give the hop a delay"):
        run("ping", **rough(delay="0s"))


def test_what_python_writes_is_what_a_file_says() -> None:
    link = load_link("line-50")
    assert link.written()["down"][0]["rate"] == "50mbit"
    assert "mtu" not in link.written(), "what was left to its default stays so"
    assert check(LinkSpec, link.written(), "link") == link
    spec = ScenarioSpec(test="rrul", link=link, phases={"load": "9s"})
    assert spec.written()["phases"] == {"load": "9s"}
    [run] = resolve(spec)
    assert run.link == link
    assert run.scenario["duration_ns"] == 19 * 10**9


def test_a_changed_copy_is_read_again() -> None:
    link = load_link("line-50")
    hop = link.down[-1].model_copy(update={"rate": 10})
    with pytest.raises(UsageError, match=r"link\.down\.0\.rate: `10bit`: write a rate from 1kbit to 1tbit"):
        resolve(scenario(link=link).model_copy(update={"link": link.model_copy(update={"down": [hop]})}))


class Own(Model):
    """A model of somebody else's, with a part of a scenario in it."""

    hop: HopSpec
    length: PositiveNanoseconds


def test_other_models_may_hold_parts_of_scenarios() -> None:
    own = check(Own, {"hop": {"name": "line", "rate": "20mbit"}, "length": "5s"}, "own")
    assert (own.hop.rate, own.length) == (20_000_000, 5 * 10**9)
    with pytest.raises(UsageError) as caught:
        check(Own, {"hop": {"name": "line", "rate": 20}, "length": "0s"}, "own")
    assert str(caught.value) == (
        "own: hop: HopSpec: rate: `20` is a rate without its unit: write `20mbit` or `20kbit`; "
        "length: `0s`: write a time above 0, such as `5ms`"
    )


def test_python_may_hand_over_anything() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for odd in (endless, object(), b"rrul", {1: 2}, 10**40, float("nan"), {"name": {"name"}}):
        with pytest.raises(UsageError) as caught:
            scenario(test=odd)
        assert len(str(caught.value)) < 1000


def test_a_path_takes_the_place_of_the_link_of_a_file(tmp_path: Path) -> None:
    path = {"name": "path", "title": "the path to a server"}
    file = tmp_path / "s.toml"
    for link in ("", 'link = "nowhere"\n', 'link = ["nowhere", "line-50"]\n'):
        file.write_text(f'{link}test = "ping"\nseed = 7\n')
        scenario = scenario_in(file, link=path)
        assert scenario is not None
        (run,) = resolve(scenario)
        assert (run.link.name, run.seed) == ("path", 7)
    file.write_text('test = "ping"\n\nseed = "x"\n')
    with pytest.raises(UsageError, match=r"s\.toml, line 3: seed: `x`: write a whole number"):
        scenario_in(file, link=path)
    file.write_text('name = "own"\n')
    assert scenario_in(file, link=path) is None


def test_what_a_scenario_names_of_a_test_in_a_file_has_its_line(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("name = 'own'\ntitle = 't'\nphases = { load = '9s' }\n")
    scenario = tmp_path / "s.toml"
    scenario.write_text(f"test = '{own}'\nlink = 'line-50'\n[parameters]\nstreams = 9\n")
    with pytest.raises(UsageError) as refused:
        load_scenario(scenario)
    says = "parameters.streams: test `own` has no parameter `streams` (known: it has none)"
    assert str(refused.value) == f"{scenario}, line 4: {says}"


RICH_LINK = {
    "name": "rich",
    "title": "Rich",
    "mtu": 1400,
    "up": [
        {
            "name": "radio",
            "rate": "12.5mbit",
            "delay": "1500us",
            "jitter": "2ms",
            "queue": "fq_codel limit 100",
            "framing": {"overhead": 22, "minimum": 64},
            "loss": {"model": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 1},
            "reorder": {"probability": 0.1},
            "duplicate": 0.5,
            "changes": [{"at": "1s", "down": True}, {"at": "1500ms", "rate": "1kbit"}],
        }
    ],
    "down": [{"name": "radio", "rate": "1gbit", "loss": {"model": "random", "probability": 0.25}}],
}

RICH_TEST = {
    "name": "rich",
    "title": "Rich",
    "phases": {"idle": "1500ms", "load": "2s"},
    "parameters": {"streams": {"default": 2, "minimum": 1, "maximum": 9, "meaning": "how many"}},
    "hosts": [{"name": "server"}, {"name": "far", "delay": "30ms"}],
    "flows": [
        {"name": "some", "direction": "up", "count": "streams", "tcp": {"ecn": True, "rto_min": "1s"}},
        {"name": "file", "direction": "down", "bytes": "1mb", "dscp": "EF", "host": "far", "start": "500ms"},
        {"name": "call", "direction": "up", "voice": {}},
    ],
    "probes": [{"name": "ping", "kind": "icmp", "dscp": "CS1"}],
}


@pytest.mark.parametrize(
    ("test", "link"),
    [
        *((test, "cable-20-8") for test in shipped_tests() if test != "rrul_46"),
        *(("ping", link) for link in shipped_links()),
        (RICH_TEST, RICH_LINK),
    ],
)
def test_a_run_has_all_keys_of_test_and_link_as_their_models_write_them(test: Any, link: Any) -> None:
    one = resolve({"test": test, "link": link})[0]
    for part in (one.test_part, one.link_part):
        assert json.dumps(part.words) == json.dumps(part.spec.model_dump(mode="json"))
    of_model = resolve(scenario(test=test, link=link))[0]
    assert (one.test, one.link, one.scenario) == (of_model.test, of_model.link, of_model.scenario)
    assert one.link.model_fields_set == of_model.link.model_fields_set


def test_a_run_that_is_resolved_again_is_the_same() -> None:
    written = {"test": "ping", "link": "cable-20-8"}
    again, other = resolve(written)[0], resolve(written | {"link": "cable-140-12"})[0]
    assert resolve(written)[0] == again != other
    assert "partial" not in repr(again)


def test_a_scenario_without_its_test_is_no_broken_test(tmp_path: Path, weir_here: Any) -> None:
    file = tmp_path / "s.toml"
    file.write_text('tset = "rrul"\nlink = "cable-20-8"\n')
    said = weir_here("run", str(file), "--out", str(tmp_path / "out")).stderr
    assert "has 2 faults" in said
    assert "test: this key is missing" in said
    assert "did you mean `test`?" in said
    file.write_text("")
    said = weir_here("run", str(file), "--out", str(tmp_path / "out")).stderr
    assert "says nothing: a scenario says at least which test runs and over which link" in said
