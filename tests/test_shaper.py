"""Shapers: what is read, what is recorded, and the cases that they must cope with."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from click.testing import CliRunner

import weirlab
from weirlab import _native
from weirlab.api import run, run_all, run_into
from weirlab.cli import weir
from weirlab.cli.study_command import command as study
from weirlab.errors import UsageError
from weirlab.plots import plot
from weirlab.scenario import ScenarioSpec, load_scenario, resolve
from weirlab.scenario.catalogue import check
from weirlab.stats import Assertion, interval
from weirlab.stats.shaping import calm_after_s, course, noticed_after_s, used_after_s
from weirlab.worlds import world_named
from weirstudies.shapers import autorate, cfosspeed, controls, lines

if TYPE_CHECKING:
    from weirlab.record import Record

CASES = Path(__file__).parent.parent / "scenarios" / "shaper"
SHORT = (
    "steps-down",
    "steps-up",
    "short-buffer",
    "buffer-5ms-ping-up",
    "buffer-5ms-ping-down",
    "reroute",
    "probe-loss",
    "clock-jump",
    "uplink-1",
    "half-fixed",
    "vpn",
    "short-flows",
    "steps-down-bandwidth",
    "lan-shares",
    "drop-17-up",
    "drop-17-down",
    "silent-reflectors-up",
    "silent-reflectors-down",
    "asleep",
    "foreign-sawtooth-up",
    "foreign-sawtooth-down",
    "foreign-sawtooth-call-up",
    "foreign-sawtooth-call-down",
    "restart-up",
    "restart-down",
    "adsl-down",
    "full-line-up",
    "full-line-down",
)
"""The cases that take a second or two, here in the first of their runs; `make cases` runs all of all."""

FIGURES_ON_THE_PAGE = ("adsl-down", "buffer-5ms-ping-up", "buffer-5ms-ping-down", "restart-down")
"""Cases whose figures `docs/rate-control.md` states, and that take a few seconds with all their runs."""

LINE = {
    "name": "line",
    "title": "10 Mbit/s",
    "up": [{"name": "modem", "queue": "bfifo limit 250000", "rate": "10mbit", "delay": "10ms"}],
    "down": [{"name": "headend", "queue": "bfifo limit 250000", "rate": "10mbit", "delay": "10ms"}],
}


def scenario(**words: Any) -> ScenarioSpec:
    return check(ScenarioSpec, {"test": "tcp_upload", "link": LINE} | words, "scenario")


def test_the_cases_hold(tmp_path: Path) -> None:
    specs = [load_scenario(CASES / f"{name}.toml") for name in SHORT]
    runs = [resolve(spec)[0] for spec in specs]
    folders = [tmp_path / name for name in SHORT]
    records = run_into(runs, world_named("sim"), folders)
    broken = [
        f"{name}: {outcome.text} ({outcome.left:.4g}, {outcome.right:.4g})"
        for name, spec, record in zip(SHORT, specs, records, strict=True)
        for outcome in (Assertion(text).of(record) for text in spec.assertions)
        if not outcome.holds
    ]
    assert broken == []


def test_the_page_has_the_figures_of_the_cases_that_it_names(tmp_path: Path) -> None:
    """A sample of them: all runs of cases that take a few seconds together."""
    page = " ".join((CASES.parent.parent / "docs/rate-control.md").read_text().split())
    figures = {name: _figures_of(name, tmp_path / name) for name in FIGURES_ON_THE_PAGE}
    more, used = figures["adsl-down"]
    assert f"(case `adsl-down`): {_range(more, 0)} ms more at {_range(used, 0)} % of the line," in page
    (up, up_used), (down, down_used) = (figures[f"buffer-5ms-ping-{way}"] for way in ("up", "down"))
    assert (
        f"{_range(up, 1)} ms more on the way up, at {_range(up_used, 1)} % of the line, and "
        f"{_range(down, 1)} ms on the way down, at {_range(down_used, 0)} %, instead of 3.5 ms"
    ) in page
    _, restarted = figures["restart-down"]
    assert "a download whose line is known, after a restart (case `restart-down`) and" in page
    assert f"without one: {_range(restarted, 0)} % of the line, instead of" in page


def _figures_of(name: str, folder: Path) -> tuple[list[float], list[float]]:
    """What all runs of a case have: ms that pings take more than on the idle line, and percent used."""
    spec = load_scenario(CASES / f"{name}.toml")
    runs = resolve(spec)
    records = run_into(runs, world_named("sim"), [folder / str(number) for number in range(len(runs))])
    found: dict[str, list[float]] = {"latency": [], "utilisation": []}
    for record in records:
        for text in spec.assertions:
            outcome = Assertion(text).of(record)
            allowed = re.search(r"latency\.median\[idle\] \+ ([\d.]+)ms$", text)
            if allowed:
                found["latency"].append(outcome.left - outcome.right + float(allowed[1]))
            elif ".utilisation" in text:
                found["utilisation"].append(outcome.left * 100)
    return found["latency"], found["utilisation"]


def _range(values: list[float], digits: int) -> str:
    least, greatest = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return least if least == greatest else f"{least} to {greatest}"


def test_machines_share_by_their_connections_where_the_queue_does_not_know_them(tmp_path: Path) -> None:
    """The shares that the case asserts come from the queue: one that shares by flows has none of them."""
    spec = load_scenario(CASES / "lan-shares.toml")
    by_flows = spec.model_copy(update={"queue_up": "cake flows", "queue_down": "cake flows"})
    (record,) = run_into(resolve(by_flows), world_named("sim"), [tmp_path / "flows"])
    shares = [Assertion(text).of(record) for text in spec.assertions if "flow=" in text]
    assert len(shares) == 16
    # The machine with 16 of 23 connections has too much, the others too little.
    assert [outcome.holds for outcome in shares] == [False, True, False, True, False, True, True, False] * 2


@pytest.mark.parametrize("path", sorted(CASES.rglob("*.toml")), ids=lambda path: path.stem)
def test_every_case_can_be_read(path: Path) -> None:
    spec = load_scenario(path)
    assert spec.assertions
    for text in spec.assertions:
        Assertion(text)
    if spec.tcp.congestion_control in {None, *(one["name"] for one in _native.congestion_controls())}:
        for one in resolve(spec):
            assert one.scenario["shaper"]
            for text in spec.assertions:
                Assertion(text).check(one.scenario)


STAND_IN = """#!/bin/sh
grep -q holds "$2" && exit 0
grep -q broken "$2" && echo "weir: no such key" >&2 || echo "weir: 1 of 1 assertions do not hold" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("met", "unmet", "code", "says"),
    [
        ("it holds", "it does not", 0, ""),
        ("it does not", "it does not", 1, "scenarios/shaper/met.toml does not hold"),
        (
            "it holds",
            "it holds",
            1,
            "scenarios/shaper/unmet/goal.toml holds now: move it to scenarios/shaper",
        ),
        ("it holds", "it is broken", 1, "scenarios/shaper/unmet/goal.toml did not run"),
    ],
)
def test_a_goal_that_is_met_leaves_the_list_of_those_that_are_not(
    tmp_path: Path, met: str, unmet: str, code: int, says: str
) -> None:
    folder = tmp_path / "scenarios" / "shaper"
    (folder / "unmet").mkdir(parents=True)
    (folder / "met.toml").write_text(met)
    (folder / "unmet" / "goal.toml").write_text(unmet)
    stand_in = tmp_path / "weir"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    script = Path(__file__).parent.parent / "tools" / "cases.sh"
    done = subprocess.run([script, stand_in], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert says in done.stdout
    assert ("FAILED" in done.stdout) == bool(says)


def test_a_shaper_stands_at_the_clients_end_of_the_line() -> None:
    plain, shaped = resolve(scenario(shaper=["none", "auto"], queue=["pfifo limit 50"]))
    assert [hop["name"] for hop in plain.scenario["path"]["up"]] == ["modem"]
    assert plain.scenario["shaper"] is None
    up, down = shaped.scenario["path"]["up"], shaped.scenario["path"]["down"]
    assert [(hop["name"], hop["shaped"], hop["queue"]) for hop in up] == [
        ("shaper", True, "pfifo limit 50"),
        ("modem", False, "bfifo limit 250000"),
    ]
    assert [hop["name"] for hop in down] == ["headend", "shaper"]
    assert [host["name"] for host in shaped.scenario["hosts"]] == [
        "server",
        "reflector 1",
        "reflector 2",
        "reflector 3",
    ]
    # The link has no place for the queue: without the shaper it is the link's own.
    assert [one.queue for one in (plain, shaped)] == ["default", "shaper auto, pfifo limit 50"]


def test_words_say_what_a_table_says() -> None:
    said = "cake-autorate up 1mbit:4mbit:16mbit down 2mbit:8mbit:32mbit probe udp"
    (one,) = resolve(scenario(shaper=[said]))
    assert one.scenario["shaper"]["control"] == {
        "cake_autorate": {
            "egress": {"min_bps": 1_000_000, "base_bps": 4_000_000, "max_bps": 16_000_000},
            "ingress": {"min_bps": 2_000_000, "base_bps": 8_000_000, "max_bps": 32_000_000},
        }
    }
    assert one.scenario["shaper"]["probe"] == "udp"
    (fixed,) = resolve(scenario(shaper=["fixed up 95% down 3mbit"]))
    assert fixed.scenario["shaper"]["control"] == {
        "fixed": {"egress_bps": 9_500_000, "ingress_bps": 3_000_000}
    }
    assert fixed.scenario["shaper"]["reflectors"] == []
    (half,) = resolve(scenario(shaper=["auto up 95%"]))
    control = half.scenario["shaper"]["control"]["auto"]
    assert control == {"mode": "ping", "egress_bps": 9_500_000}
    assert half.queue == "shaper auto up 95%"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            {"shaper": ["auto speed fast"]},
            "shaper `auto speed fast`: `speed` needs a value, or is none of its words",
        ),
        ({"shaper": ["magic"]}, "shaper `magic`: control: `magic`: write 'auto', 'cake-autorate' or 'fixed'"),
        (
            {"shaper": ["auto up 95% down 95%"]},
            "shaper: up 9500000 and down 9500000 bit/s: nothing is",
        ),
        ({"shaper": ["fixed up 95%"]}, "shaper `fixed`: `down` has no `rate`: write one, such as 95%"),
        (
            {"shaper": ["cake-autorate up 1mbit:2mbit"]},
            "shaper `cake-autorate`: `up` needs `min`, `base` and `max`",
        ),
        (
            {"shaper": ["cake-autorate up 2mbit:1mbit:3mbit down 1mbit:2mbit:3mbit"]},
            "shaper: up min 2000000, base 1000000, max 3000000 bit/s: write them in this order",
        ),
        (
            {"shaper": [{"control": "auto", "sleeps": [{"start": "5s", "stop": "5s"}]}]},
            "shaper: from 5s to 5s: it must last some time",
        ),
    ],
)
def test_errors_are_one_sentence(words: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError) as error:
        resolve(scenario(**words))
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("learned", "known"),
    [
        ({"up": "95%", "down": "80mbit"}, {"egress_known_bps": 9_500_000, "ingress_known_bps": 80_000_000}),
        ({"up": "7.5mbit", "age": "2592000s"}, {"egress_known_bps": 7_500_000}),
        # 30 days and a second, as with a real shaper's file.
        ({"up": "7.5mbit", "down": "95%", "age": "2592001s"}, {}),
    ],
)
def test_a_shaper_begins_with_what_was_learned_of_its_line(
    learned: dict[str, str], known: dict[str, int]
) -> None:
    (one,) = resolve(scenario(shaper=[{"control": "auto", "learned": learned}]))
    assert one.scenario["shaper"]["control"] == {"auto": {"mode": "ping"} | known}


def test_what_was_learned_of_a_direction_that_is_not_shaped_is_not_used() -> None:
    learned = {"up": "95%", "down": "95%"}
    (one,) = resolve(scenario(shaper=[{"control": "auto", "directions": ["up"], "learned": learned}]))
    assert one.scenario["shaper"]["control"] == {"auto": {"mode": "ping", "egress_known_bps": 9_500_000}}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"control": "auto", "learned": {"age": "1s"}}, "give `up`, `down` or both: what the line carried"),
        ({"control": "auto", "learned": {"up": "20"}}, "`20` is a rate without its unit: write `20mbit`"),
        ({"control": "auto", "learned": {"up": "1mbit", "age": 5}}, "`5` is a time without its unit"),
        ({"control": "fixed", "learned": {"up": "1mbit"}}, "`learned` with `fixed`: only `auto` learns"),
    ],
)
def test_what_was_learned_wrongly_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        scenario(shaper=[more])


def test_what_was_learned_of_a_line_without_a_rate_or_below_any_is_refused() -> None:
    for learned, more, said in (
        ({"up": "50kbit"}, {}, "shaper: up known 50000 bit/s: write 100000 or more"),
        (
            {"up": "5mbit"},
            {"up": {"rate": "4mbit"}},
            "shaper: up 4000000 and up known 5000000 bit/s: a rate that",
        ),
    ):
        with pytest.raises(UsageError) as error:
            resolve(scenario(shaper=[{"control": "auto", "learned": learned, **more}]))
        assert str(error.value).startswith(said)


@pytest.mark.parametrize(("age", "rate_bps"), [("86400s", 9_215_000), ("2592001s", None)])
def test_a_shaper_that_was_told_its_line_begins_at_its_rate(
    tmp_path: Path, age: str, rate_bps: int | None
) -> None:
    shaper = {"control": "auto", "learned": {"up": "95%", "age": age}}
    short = {"idle": "0s", "load": "1s", "cooldown": "0s"}
    (record,) = run("tcp_upload", link=LINE, shaper=[shaper], phases=short, out=tmp_path / "records")
    rows = record.shaper
    first = rows.filter(rows["queue"] == "up/shaper").row(0, named=True)
    # 3 % are left free in ping mode.
    assert (first["reason"], first["rate_bps"]) == ("start", rate_bps)


def test_a_trouble_is_one_thing() -> None:
    trouble = {"start": "1s", "stop": "2s", "late": "5ms", "silent": True}
    with pytest.raises(UsageError, match="give one of `silent`, `late`, `erratic`, `clock`"):
        scenario(shaper=[{"control": "auto", "reflectors": [{"troubles": [trouble]}]}])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"probe": "udp"}, "shaper: probe `udp` needs a `weir serve`"),
        ({"sleeps": [{"start": "1s", "stop": "2s"}]}, "shaper: `sleeps`: a real one is always awake"),
        ({"reflectors": [{"loss": 0.2}]}, "shaper: reflectors with troubles: real ones have none"),
    ],
)
def test_what_a_real_shaper_cannot_be_the_lab_refuses(more: dict[str, Any], said: str) -> None:
    (one,) = resolve(scenario(shaper=[{"control": "auto", **more}]))
    with pytest.raises(UsageError, match=said):
        world_named("lab").check(one)


def test_a_real_shaper_may_be_in_the_lab() -> None:
    (one,) = resolve(scenario(shaper=["auto"]))
    world_named("lab").check(one)


def stepped(tmp_path: Path) -> Record:
    """8 Mbit/s that are 2 from 6 s to 10 s, and 8 again, uploaded over by eight flows."""
    changes = [{"at": "6s", "rate": "2mbit"}, {"at": "10s", "rate": "8mbit"}]
    link = LINE | {"up": [LINE["up"][0] | {"rate": "8mbit", "changes": changes}]}  # type: ignore[operator]
    (record,) = run(
        {
            "name": "uploads",
            "title": "Eight uploads",
            "phases": {"idle": "2s", "load": "12s"},
            "flows": [{"name": "upload", "direction": "up", "count": 8}],
            "probes": [{"name": "ping", "kind": "icmp"}],
        },
        link=link,
        shaper=["auto"],
        out=tmp_path / "records",
    )
    return record


def test_what_a_shaper_changes_is_recorded(tmp_path: Path) -> None:
    record = stepped(tmp_path)
    rows = record.shaper
    assert set(rows["queue"]) == {"up/shaper", "down/shaper"}
    first = rows.filter(rows["queue"] == "up/shaper").row(0, named=True)
    assert first == {
        "t_ns": 0,
        "queue": "up/shaper",
        "rate_bps": None,
        "state": "idle",
        "reason": "start",
        "value": 0.0,
        "unit": "",
    }
    assert {"idle", "loaded", "probing", "backing_off"} <= set(rows["state"])
    assert set(rows.filter(rows["reason"] == "delay")["unit"]) == {"ms"}
    # The times of the goals.
    assert 0 < (noticed_after_s(record, "up", 6.0) or 9) <= 0.3
    # Eight flows at 2 Mbit/s: a ping waits for up to a packet of each.
    assert (calm_after_s(record, 6.0, 70.0, 10.0) or 9) <= 1.5
    assert (used_after_s(record, "up", 10.0, 0.9) or 9) <= 4.5
    over_time = course(record, "up", 1.0)
    assert over_time.capacity_mbps.tolist() == [8.0] * 6 + [2.0] * 4 + [8.0] * 4


def test_assertions_say_what_holds(tmp_path: Path) -> None:
    record = stepped(tmp_path)

    def outcome(text: str) -> tuple[float, float, bool]:
        found = Assertion(text).of(record)
        return found.left, found.right, found.holds

    assert outcome("20ms + 2 * (3ms - 1ms) <= 0.024s") == (24.0, 24.0, True)
    left, right, holds = outcome("latency.median[idle] < 20.2ms")
    assert 20.1 < left < 20.2
    assert (right, holds) == (20.2, True)
    left, right, holds = outcome("up.goodput[6500ms..10s, flow=upload*] > 3mbit")
    assert 1.6 < left < 2.0
    assert (right, holds) == (3.0, False)
    units = {
        "up.goodput > 1mbit": "Mbit/s",
        "latency.p99 < 0.1s": "ms",
        "up.goodput * latency.mean < 1mbit * 1s": "kbit",
        "latency.loss < 1%": "",
        "latency.p99 / latency.median[idle] < 3": "",
        "up.goodput * up.goodput > 1mbit * 1mbit": "(Mbit/s)^2",
    }
    assert {text: Assertion(text).of(record).unit for text in units} == units
    # Nobody downloads, so that there is no figure, and nothing holds.
    assert not Assertion("down.goodput >= 0mbit").of(record).holds
    assert outcome("up.rate.max[0s..2s] > 1gbit")[2]
    # What is divided by nothing is no figure.
    assert not outcome("latency.p99 / latency.loss[idle] > 1ms")[2]
    assert 0.9 < Assertion("up.utilisation[3s..6s] > 90%").of(record).left <= 1.0
    with pytest.raises(UsageError, match=r"the run has no phase `sleep` \(it has: .*load"):
        Assertion("latency.p99[sleep] < 1s").of(record)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "up.goodput[flow=upload*] > 1mbit",
            "`flow=upload*` matches no flow of `up.goodput` (there are: TCP upload BE, TCP upload BK, ",
        ),
        (
            "down.goodput[flow=TCP upload*] > 1mbit",
            "matches no flow of `down.goodput` (there are: TCP download ",
        ),
        (
            "latency.p99[probe=Call] < 1ms",
            "`probe=Call` matches no probe of `latency.p99` (there are: Ping (ms) ",
        ),
        ("latency.p99[lode] < 1ms", "the run has no phase `lode` (it has: idle, load, cooldown)"),
    ],
)
def test_an_assertion_about_nothing_is_refused_before_the_run(text: str, said: str) -> None:
    (one,) = resolve(scenario(test="rrul"))
    with pytest.raises(UsageError) as error:
        Assertion(text).check(one.scenario)
    assert str(error.value).startswith(f"assertion `{text}`: ")
    assert said in str(error.value)


def test_the_assertions_of_the_documentation_are_about_something() -> None:
    page = (CASES.parent.parent / "docs" / "scenarios.md").read_text()
    (block,) = [one for one in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if one.startswith("assert")]
    (one,) = resolve(scenario(test="rrul"))
    for text in tomllib.loads(block)["assert"]:
        Assertion(text).check(one.scenario)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("latency.p99[flow=a] < 1ms", "`flow=a`: `latency.p99` takes probe=NAME"),
        ("up.utilisation[flow=a] < 1", "`up.utilisation` is of the line, not of a probe or flow"),
        ("latency.p98 < 5ms", "unknown figure `latency.p98`"),
        ("latency.p99 < 5parsec", "`5parsec`: unknown unit `parsec`"),
        ("latency.p99", "a comparison .* is missing at its end"),
        ("latency.p99 < ", "a figure or a quantity is missing at its end"),
        ("1 < 2 3", "`3` stands behind its end"),
        ("1 ~ 2", "cannot read `~ 2`"),
        ("(1 < 2", "`\\)` is missing before `<`"),
        ("latency.p99[5..x] < 1ms", "`5`|`x`|time"),
        ("latency.p99 < 1.2.3ms", "`1.2.3ms`: `1.2.3` is not a number"),
        (
            "latency.p99 < 50",
            "`50` is a time without its unit: write `50s`, `50ms` or `50us`, since `latency.p99` is a time",
        ),
        ("0 < latency.min[idle]", r"`0` is a time without its unit: write `0s`, since `latency.min\[idle\]`"),
        ("latency.p99 < latency.median[idle] + 10", "`10` is a time without its unit: write `10s`, `10ms`"),
        ("down.goodput > 12.5", "`12.5` is a rate without its unit: write `12.5mbit`, `12.5kbit`"),
        ("up.goodput + down.goodput > 90", "`90` is a rate without its unit"),
        (
            "up.rate.max > 2 * 10",
            r"`up.rate.max` is a rate, `2 \* 10` is a number: compare, add and subtract",
        ),
        ("latency.p99 < 50%", "`latency.p99` is a time, `50%` is a number"),
        ("latency.p99 < 50mbit", "`latency.p99` is a time, `50mbit` is a rate"),
        ("down.utilisation > 9mbit", "`down.utilisation` is a number, `9mbit` is a rate"),
        ("latency.loss < 5ms", "`latency.loss` is a number, `5ms` is a time"),
        ("latency.p99 * latency.p99 < 5ms", r"`latency.p99 \* latency.p99` is time\^2, `5ms` is a time"),
    ],
)
def test_what_is_no_assertion_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as error:
        Assertion(text)
    assert str(error.value).startswith(f"assertion `{text}`: ")


@pytest.mark.parametrize(
    "text",
    [
        "latency.p99 / latency.median[idle] < 3",
        "latency.loss < 0.01",
        "down.utilisation >= 90%",
        "1 - up.utilisation < 10%",
        "latency.p99 < 2 * latency.median[idle] + 5ms / 2",
        "up.goodput / down.goodput > 0.1 * (1 + 2)",
        "up.goodput * 100ms < down.goodput * latency.p99",
    ],
)
def test_a_ratio_needs_no_unit(text: str) -> None:
    assert Assertion(text).text == text


def test_an_assertion_is_refused_before_a_run_however_it_is_given(tmp_path: Path) -> None:
    words = "assertion `latency.p99 < 50`: `50` is a time without its unit: write `50s`, `50ms` or `50us`"
    with pytest.raises(UsageError, match=re.escape(words)):
        weirlab.run("rrul", assertions=["latency.p99 < 50"], out=tmp_path / "a")
    with pytest.raises(UsageError, match="the run has no phase `lode`"):
        weirlab.run("rrul", assertions=["latency.p99[lode] < 50ms"], out=tmp_path / "a")
    given = ["run", "rrul", "--assert", "latency.p99 < 50", "--out", str(tmp_path / "a")]
    with pytest.raises(UsageError, match=re.escape(words)):
        weir.main(given, standalone_mode=False)
    file = tmp_path / "scenario.toml"
    file.write_text('test = "rrul"\nlink = "vdsl-100-40"\nassert = ["latency.p99 < 50"]\n')
    with pytest.raises(UsageError, match=re.escape(words)):
        weir.main(["run", str(file), "--out", str(tmp_path / "a")], standalone_mode=False)
    assert not (tmp_path / "a").exists()


def test_a_line_that_is_stopped_carries_nothing(tmp_path: Path) -> None:
    changes = [{"at": "3s", "down": True}, {"at": "4s", "rate": "10mbit", "delay": "15ms"}]
    link = LINE | {"up": [LINE["up"][0] | {"changes": changes}]}  # type: ignore[operator]
    (record,) = run("ping", link=link, phases={"idle": "6s"}, out=tmp_path / "records")
    t, rtt = record.latency["t_ns"], record.latency["rtt_ns"]
    during = rtt.filter((t > 3_000_000_000) & (t < 3_900_000_000))
    assert (during > 100_000_000).all()
    assert (rtt.filter(t > 4_100_000_000) < 25_300_000).all()
    assert (rtt.filter(t < 2_900_000_000) < 20_300_000).all()


def test_the_studies_run_what_they_say() -> None:
    (line,) = lines.chosen(["steps down"])
    runs = autorate.runs_of(line, seeds=1)
    assert [one.queue for one in runs] == list(controls.CONTROLS)
    assert len(lines.lines()) == 40
    with pytest.raises(UsageError, match="study `autorate` has no line `moon`"):
        lines.chosen(["moon"])
    runs = cfosspeed.runs_of(cfosspeed.LOADS["up"], seeds=2)
    assert [one.queue for one in runs] == [name for name in cfosspeed.CONTROLS for _ in range(2)]
    assert [one.scenario["probes"][0]["ttl"] for one in runs[::2]] == [3, 4, 4, 4]
    assert [one.name for one in cfosspeed.chosen([])] == ["down", "up", "up-path"]
    assert [one.name for one in cfosspeed.chosen(["up-path"])] == ["up-path"]
    patient = cfosspeed.runs_of(cfosspeed.LOADS["down"], seeds=1)[-1]
    assert patient.queue == cfosspeed.PATIENT
    assert "target 20ms interval 200ms" in str(patient.scenario)


def test_a_delay_that_varies_is_the_lines_own_and_no_queues() -> None:
    """Whoever sends nothing but pings sees it, and the same on each run."""
    for name, least_ms, most_ms in (("sawtooth", 50, 60), ("sine", 35, 40), ("walk", 30, 80)):
        (line,) = lines.chosen([f"{name} up"])
        (record,) = run("ping", link=cast("Any", line.link), phases={"idle": "30s"})
        rtt_ms = record.latency["rtt_ns"].to_numpy() / 1e6
        assert least_ms <= np.ptp(rtt_ms) <= most_ms + 1, name
        assert lines.chosen([f"{name} up"]) == [line]


def test_who_is_ahead_has_both() -> None:
    def row(control: str, delay_ms: float, used: float) -> autorate.Row:
        return autorate.Row(
            line="a line",
            control=control,
            increase_ms=interval([delay_ms]),
            p99_ms=None,
            used=interval([used]),
            noticed_s=None,
            calm_s=None,
            used_again_s=None,
            runs=1,
        )

    def said(ours: tuple[float, float], law: tuple[float, float], told: tuple[float, float]) -> str:
        three = (controls.PING, ours), (controls.LAW, law), (controls.LAW_TOLD, told)
        return autorate.against_the_law([row(control, *figures) for control, figures in three])

    better = said((1, 0.9), (2, 0.9), (1, 0.8))
    assert "at one of its settings, on 0: none. `auto` is ahead of both settings on 1;" in better
    worse = said((3, 0.9), (2, 0.9), (9, 0.1))
    assert "at one of its settings, on 1: `a line`. `auto` is ahead of both settings on 0;" in worse
    for neither in (said((3, 0.9), (2, 0.8), (9, 0.9)), said((2, 0.9), (2, 0.9), (2, 0.9))):
        assert "at one of its settings, on 0: none. `auto` is ahead of both settings on 0;" in neither


def test_the_study_cfosspeed_in_short(tmp_path: Path) -> None:
    up = cfosspeed.LOADS["up"]
    runs = cfosspeed.runs_of(up, seeds=1, load_ns=5_000_000_000)
    records = run_all(runs, world_named("sim"), tmp_path / "records")
    found = {row.control: row for row in cfosspeed.rows(up, {one.label: [one] for one in records})}
    plain, ours = found[controls.NONE], found[controls.PING]
    assert plain.increase_ms is not None
    assert plain.increase_ms.mean > 60
    assert ours.factor.factor is not None
    assert ours.factor.factor > cfosspeed.GOALS["up"]
    assert ours.tamed_s is not None
    assert ours.tamed_s.mean < 1.0
    assert plain.tamed_s is None


def test_charts_of_the_study_cfosspeed_name_shapers_and_not_how_the_router_is_reached(
    tmp_path: Path, drawn: list[set[str]]
) -> None:
    words = ["cfosspeed", "--only", "down", "--idle", "2s", "--load", "3s", "--repeat", "1", "--json"]
    done = CliRunner().invoke(study, [*words, "--out", str(tmp_path / "o")], standalone_mode=False)
    assert done.exception is None
    assert len(drawn) == 3
    for named in drawn:
        assert {"no shaper", "auto, ping mode"} <= named
        assert not any("TTL" in text for text in named)


@pytest.mark.parametrize("name", ["up", "up-path"])
def test_the_upload_of_the_report_has_its_five_figures(name: str, tmp_path: Path) -> None:
    """Idle jitter is the line's; under load a window holds the upload, and a rate or a path varies."""
    load = cfosspeed.LOADS[name]
    runs = cfosspeed.runs_of(load, seeds=1, idle_ns=10_000_000_000)
    wanted = [run for run in runs if run.queue in {controls.NONE, controls.PING}]
    records = run_all(wanted, world_named("sim"), tmp_path / "o")
    by_control = {one.label: [one] for one in records}
    found = {one.name: one for one in cfosspeed.series(load, by_control)}
    idle = {figure: value.mean for figure, value in found[f"{name}, idle"].figures.items() if value}
    assert idle == pytest.approx(dict(zip(cfosspeed.FIVE, cfosspeed.SERIES["idle"], strict=True)), rel=0.1)
    plain = found[f"{name}, no shaper"]
    theirs = dict(zip(cfosspeed.FIVE, cfosspeed.SERIES["up, without"], strict=True))
    assert plain.published == tuple(theirs.values())
    loaded = {figure: value.mean for figure, value in plain.figures.items() if value}
    # Least and greatest are single pings of 300.
    for figure, tolerance in {"mean": 0.01, "median": 0.01, "std": 0.1, "min": 0.03, "max": 0.03}.items():
        assert loaded[figure] == pytest.approx(theirs[figure], rel=tolerance), figure
    judged = cfosspeed.statements(load, by_control, world="sim", looks=(1,))
    # One run has no interval.
    assert [one.seen for one in judged] == [None] * 6
    assert {one.control for one in judged} == {controls.PING}


@pytest.mark.parametrize("queue", ["pfifo_fast", "fq_codel"])
def test_of_a_recorded_line_no_more_is_used_than_there_is(queue: str) -> None:
    """Both are counted over the same boundaries: a line has sent what it may before a sample is taken."""
    (record,) = weirlab.run("tcp_upload", link="lte-att", queue=queue, phases={"load": "30s"})
    one = course(record, "up", 0.5)
    assert np.all(one.used_mbps <= one.could_mbps * (1 + 1e-12))
    assert one.could_mbps == pytest.approx(one.capacity_mbps)
    # Nothing is cut away: but for a packet that is under way at the end all that left the queue was carried.
    (hop,) = (hop for hop in record.manifest.scenario["path"]["up"] if "trace" in hop["rate"])
    _, begun = record.line(f"up/{hop['name']}")
    carried = one.used_mbps.sum() * 0.5e6 / 8
    assert 0 <= begun.sum() - carried <= 1500
    assert carried > 1e6
    line = plot(record, "shaper").axes[-1].lines[0]
    assert np.nanmax(np.asarray(line.get_ydata(), float)) <= 100 * (1 + 1e-12)
