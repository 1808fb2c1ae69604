"""The world net to several servers at once, and over both Internet protocols, on a line of the lab."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from click.testing import CliRunner

from live import PATIENCE_S, skip_if_late, together
from serving import serving
from weirlab.cli import weir as group
from weirlab.lab.client import ask
from weirlab.record import find_records
from weirlab.scenario import ScenarioSpec, resolve

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from click.testing import Result

    from weirlab.record import Record

pytestmark = [pytest.mark.realtime, pytest.mark.needs_lab]

HOP = {"name": "line", "rate": "20mbit", "delay": "5ms", "queue": "fq_codel"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
DELAYS_MS = (0, 20, 50, 90)
"""How far each server stands behind the line, one way."""
ROUND_TRIPS_MS = tuple(2 * (5 + delay) for delay in DELAYS_MS)

WEIR = shlex.join([sys.executable, "-m", "weirlab"])


@dataclass(frozen=True)
class Ran:
    """What a command at the client's end of the line left behind."""

    folder: Path
    code: int
    said: str
    warnings: str

    def record(self) -> Record:
        (record,) = find_records(self.folder / "o")
        return record


def over_a_line(folder: Path, listens: list[str], words: str, *, meanwhile: str = "") -> Ran:
    """Runs `weir` with `words` at the client, once there is a server at each of `listens`.

    Args:
        folder: where it runs.
        listens: the address of each server, or more than one; they stand as far away as `DELAYS_MS` says.
        words: those of the command.
        meanwhile: what the client's shell does while that runs. `$run` is its process, and
            `pidN` the file with the number of server N's.
    """
    hosts = [{"name": f"host{n}", "delay": f"{delay}ms"} for n, delay in enumerate(DELAYS_MS, 1)]
    # The lab has addresses of the protocols that something uses.
    probes = [{"name": f"IPv{ip}", "kind": "icmp", "ip": ip, "host": "host1"} for ip in (4, 6)]
    test = {"name": "exec", "title": "A program", "phases": {"load": "86400s"}, "hosts": hosts}
    spec = ScenarioSpec.model_validate({"test": test | {"probes": probes}, "link": LINK})
    at = [" ".join(f"--listen {one}" for one in addresses.split()) for addresses in listens]
    servers = "".join(
        f"{WEIR} serve --json --without irtt {words} >serve{n} 2>&1 & echo $! >pid{n}; "
        for n, words in enumerate(at)
    )
    up = "".join(f"until grep -q address serve{n}; do sleep 0.1; done; " for n in range(len(listens)))
    script = (
        f"cd {shlex.quote(str(folder))}; {up}{WEIR} {words} >out 2>err & run=$!; "
        f"{meanwhile} wait $run; echo $? >code"
    )
    answer = ask(
        {
            "do": "exec",
            "scenario": resolve(spec)[0].scenario,
            "traces": {},
            "seed": 1,
            "program": ["timeout", str(PATIENCE_S), "sh", "-c", script],
            "server_command": f"cd {shlex.quote(str(folder))}; {servers} wait",
            "device": None,
            "capture": None,
            "record": None,
        }
    )
    code, said = (folder / "code").read_text(), (folder / "err").read_text()
    return Ran(folder, int(code), said, " ".join(answer["warnings"]))


FOUR = [f"10.1.0.{number}:8080" for number in range(1, 5)]
HOSTS = " ".join(f"--host {address.removesuffix(':8080')}" for address in FOUR)
SHORT = "--world net --no-charts --out o --idle 2s --cooldown 1s"
KILL_THE_THIRD = "until find o -name '*.parquet' 2>no | grep -q .; do sleep 0.1; done; kill -9 $(cat pid2);"
"""Once there is something in the record."""

Runs = dict[str, "Future[Ran]"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Flows to four servers, IPv4 beside IPv6 to one, and a server that is killed: three lines at once."""
    folder = {name: tmp_path_factory.mktemp(name) for name in ("fair", "both", "killed")}
    to_both = "run rrul46 --host 10.1.0.1,fd00:0:0:1::1"
    return together(
        {
            "fair": partial(over_a_line, folder["fair"], FOUR, f"run rtt_fair {HOSTS} {SHORT} --load 5s"),
            "both": partial(
                over_a_line,
                folder["both"],
                ["10.1.0.1:8080 [fd00:0:0:1::1]:8080"],
                f"{to_both} {SHORT} --load 4s",
            ),
            "killed": partial(
                over_a_line,
                folder["killed"],
                FOUR,
                f"run rtt_fair {HOSTS} {SHORT} --load 90s",
                meanwhile=KILL_THE_THIRD,
            ),
        }
    )


def test_pings_and_flows_go_to_the_server_that_each_names(runs: Runs) -> None:
    """How far each is, its round trips tell."""
    ran = runs["fair"].result()
    assert ran.code == 0, ran.said
    record = ran.record()
    assert record.manifest.complete
    assert (record.flows["delivered_bytes"] > 0).all()
    scenario = record.manifest.scenario
    told = [(one["host"], one["address"]) for one in record.manifest.extra["servers"]]
    assert told == [(host["name"], FOUR[number]) for number, host in enumerate(scenario["hosts"])]
    skip_if_late(ran.warnings)
    shortest = dict(record.latency.group_by("probe").agg(pl.min("rtt_ns")).iter_rows())
    for number, probe in enumerate(scenario["probes"]):
        rtt_ms = shortest[number] / 1e6
        nearest = min(ROUND_TRIPS_MS, key=lambda one: abs(one - rtt_ms))
        assert nearest == ROUND_TRIPS_MS[probe["host"]], f"{probe['name']}: {rtt_ms:.1f} ms"
    smoothed = dict(record.tcp.group_by("flow").agg(pl.min("srtt_ns")).iter_rows())
    assert len(smoothed) == len(scenario["flows"])
    for number, flow in enumerate(scenario["flows"]):
        own = ROUND_TRIPS_MS[flow["host"]]
        assert smoothed[number] / 1e6 >= own * 0.99, flow["name"]
    assert {flow["host"] for flow in scenario["flows"]} == {0, 1, 2, 3}


def test_both_protocols_are_measured_at_once(runs: Runs) -> None:
    ran = runs["both"].result()
    assert ran.code == 0, ran.said
    record = ran.record()
    scenario = record.manifest.scenario
    addresses = [one["address"] for one in record.manifest.extra["servers"]]
    assert addresses == ["10.1.0.1:8080", "[fd00:0:0:1::1]:8080"]
    answered = record.latency.filter(pl.col("rtt_ns").is_not_null())
    assert set(answered["probe"]) == set(range(len(scenario["probes"])))
    assert (record.flows["delivered_bytes"] > 0).all()
    headers = {"4": 20, "6": 40}
    for number, flow in enumerate(scenario["flows"]):
        rows = record.throughput.filter(pl.col("flow") == number)
        # Full segments: 1500 bytes on the wire, of which TCP with its timestamps has 32.
        share = int(rows["bytes"].sum()) / int(rows["wire_bytes"].sum())
        header = headers[flow["ip_version"]] + 32
        assert share == pytest.approx(1 - header / 1500, abs=0.002), flow["name"]


def test_a_server_that_is_killed_ends_the_run_by_its_name(runs: Runs) -> None:
    ran = runs["killed"].result()
    assert ran.code == 1, ran.said
    last = ran.said.strip().splitlines()[-1]
    assert last.startswith("weir: "), ran.said
    assert "server `10.1.0.3:8080`" in " ".join(ran.said.split())
    assert "Traceback" not in ran.said
    record = ran.record()
    assert not record.manifest.complete
    assert record.latency.height > 0
    left = [path.name for path in (ran.folder / "o").rglob("*") if path.name.startswith(".")]
    assert left == [], "nothing is half-written"


TWO = """
[test]
name = "two"
title = "Two servers"
phases = { idle = "1s", load = "1s", cooldown = "0s" }
hosts = [{ name = "near" }, { name = "far" }]
flows = [{ name = "up", direction = "up", host = "far" }]
probes = [{ name = "near", kind = "udp", host = "near" }, { name = "far", kind = "udp", host = "far" }]
"""


def run_two(folder: Path, *hosts: str, more: tuple[str, ...] = ()) -> Result:
    (folder / "two.toml").write_text(TWO)
    out = folder / f"o{sum(one.is_dir() for one in folder.iterdir())}"
    words = ["run", str(folder / "two.toml"), "--world", "net", "--no-charts", "--out", str(out)]
    words += [word for host in hosts for word in ("--host", host)]
    return CliRunner().invoke(group, [*words, *more])


def refusal(done: Result, folder: Path) -> str:
    """The sentence of a run that was refused, of which there is no whole record."""
    assert done.exception is not None, done.output
    assert not list(folder.glob("o*/**/*.parquet")), "nothing was measured"
    return str(done.exception)


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (("a",), "test `two` has 2 servers (near, far), and one is given (a): give --host once for each"),
        (("a", "b", "c"), "and 3 are given (a, b, c): give --host once for each, in that order"),
        (("127.0.0.1,", "127.0.0.2"), "server `127.0.0.1,`: write HOST, HOST:PORT or [IPV6]:PORT"),
        (("127.0.0.1", ",,"), "server `,,`: write HOST, HOST:PORT or [IPV6]:PORT"),
        (("127.0.0.1,127.0.0.3", "127.0.0.2"), "both have an IPv4 address"),
        (("127.0.0.1", "127.0.0.1:8080"), "is given for `near` and again for `far`"),
        (("127.0.0.1", ""), "--host: its value is empty"),
    ],
)
def test_servers_that_cannot_be_meant_are_refused(tmp_path: Path, hosts: tuple[str, ...], said: str) -> None:
    assert said in refusal(run_two(tmp_path, *hosts), tmp_path)


def test_one_of_two_servers_that_will_not_do_is_named(tmp_path: Path) -> None:
    secret, wrong = tmp_path / "secret", tmp_path / "wrong"
    secret.write_text("correct horse battery")
    wrong.write_text("wrong horse battery")
    with serving() as near, serving("--auth", str(secret)) as far:
        six = refusal(run_two(tmp_path, near.address, far.address, more=("--ip", "6")), tmp_path)
        assert six == f"probe `near` asks for IPv6: server `{near.address}` has no such address"
        deaf = refusal(run_two(tmp_path, near.address, "127.0.0.1:1"), tmp_path)
        hint = "start `weir serve` or `weir-agent serve` there, or name the port where it listens"
        assert deaf == f"server `127.0.0.1:1`: connection refused; {hint}"
        for more in ((), ("--auth", str(wrong))):
            said = refusal(run_two(tmp_path, near.address, far.address, more=more), tmp_path)
            assert said.startswith(f"server `{far.address}`"), said
        done = run_two(tmp_path, near.address, far.address, more=("--auth", str(secret), "--json"))
    assert done.exception is None, done.output
    assert json.loads(done.stdout)
