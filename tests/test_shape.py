"""`weir shape` on the device of a lab: nothing configured, whatever ends it. Real time: short runs."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console

from live import FOREVER_S, PATIENCE_S, skip_if_late, together, weir_in
from weirlab import _native
from weirlab.cli import shape_command
from weirlab.cli.shape_display import Display
from weirlab.errors import UsageError
from weirlab.shape import load, metrics_of, settings_of
from weirlab.shape.load import LineLoad
from weirlab.shape.proving import proof_of, step
from weirlab.shape.running import tell_service_manager
from weirlab.shape.view import line_of, table_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.realtime

SERVER = """
import socket, sys, threading, time
# What runs beside this has to be there first.
for port in sys.argv[1:]:
    while socket.socket().connect_ex(("server", int(port))) != 0:
        time.sleep(0.05)
def serve(near):
    try:
        if near.recv(1) == b"d":
            while True:
                near.sendall(bytes(65536))
        while near.recv(65536):
            pass
    except OSError:
        pass
server = socket.create_server(("", 5001), backlog=50)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""

UPLOAD = """
import socket, threading, time
def load():
    far = socket.create_connection(("server", 5001))
    far.sendall(b"u")
    while True:
        far.sendall(bytes(65536))
for _ in range(4):
    threading.Thread(target=load, daemon=True).start()
time.sleep(60)
"""

# What a program sees of the kernel: tables of nf_tables (a dump of NFT_MSG_GETTABLE), and queues to programs.
LOOK = """
import json, os, pathlib, signal, socket, struct, subprocess, sys, time
WEIR = [sys.executable, "-m", "weirlab", "shape"]
[device] = (name for _, name in socket.if_nameindex() if name != "lo")

def tables():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as near:
        near.bind((0, 0))
        near.send(struct.pack("=IHHIIBBH", 20, 10 << 8 | 1, 0x301, 1, 0, 0, 0, 0))
        said = b""
        while True:
            part = near.recv(65536)
            said += part
            if struct.unpack("=H", part[4:6])[0] == 3:
                return said.count(b"weir-shape-")

def queues():
    text = pathlib.Path(f"/proc/{os.getpid()}/net/netfilter/nfnetlink_queue").read_text()
    return len(text.splitlines())

def start(*words, **how):
    shaper = subprocess.Popen([*WEIR, device, "--quiet", *words], **how)
    while shaper.poll() is None:
        done = subprocess.run([*WEIR, "status", device, "--json"], capture_output=True, text=True)
        if done.returncode == 0 and "sides" in done.stdout:
            return shaper, json.loads(done.stdout)
        time.sleep(0.05)
    raise SystemExit(f"the shaper ended with code {shaper.returncode}")

def answers():
    near = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    near.settimeout(60)
    near.connect(("server", 5001))
    near.sendall(b"d")
    return len(near.recv(100, socket.MSG_WAITALL))

def state():
    return {"tables": tables(), "queues": queues(), "answers": answers()}
"""


def in_lab(weir: Weir, folder: Path, script: str, beside: str = "true", port: str = "") -> Any:
    """What a script at the client's end of a bloated line prints, as JSON, and the lab's warnings.

    `beside` is a shell command that the server runs beside its own, `port` the one that it opens.
    """
    (folder / "server.py").write_text(SERVER)
    (folder / "upload.py").write_text(UPLOAD)
    (folder / "script.py").write_text(LOOK + script)
    server = f"{beside} & exec {sys.executable} {folder / 'server.py'} {port}"
    words = ("lab", "exec", "--link", "cable-20-8", "--server-command", server, "--", sys.executable)
    done = weir(*words, str(folder / "script.py"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def in_labs(folders: pytest.TempPathFactory, scripts: dict[str, str]) -> dict[str, Future[Any]]:
    """`in_lab` of each script, by its name, all at once: for what measures no time."""

    def run(script: str, folder: Path) -> Any:
        return in_lab(partial(weir_in, folder), folder, script)

    return together({name: partial(run, script, folders.mktemp("lab")) for name, script in scripts.items()})


@pytest.mark.quiet
@pytest.mark.needs_lab
def test_a_bloated_line_is_tamed_with_nothing_configured_and_proved(weir: Weir, tmp_path: Path) -> None:
    [told, after], warnings = in_lab(
        weir,
        tmp_path,
        f"""
load = f"exec {{sys.executable}} {tmp_path / "upload.py"}"
words = ["--prove", "--run", load, "--rounds", "1", "--load", "4s", "--json", "--quiet", "--log", "log"]
shaper = subprocess.Popen([*WEIR, device, *words], stdout=subprocess.PIPE, text=True)
told = ""
while not told.endswith("\\n}}\\n") and (line := shaper.stdout.readline()):
    told += line
subprocess.run([*WEIR, "stop", device])
shaper.wait(60)
print(json.dumps([json.loads(told or "null"), state()]))
""",
    )
    assert after == {"tables": 0, "queues": 0, "answers": 100}
    counts = _native.replay_shaper((tmp_path / "log").read_text(), None, lambda _: None)
    assert counts[0] > 10
    assert set(counts) == {counts[0]}, "a replay decides what was decided"
    assert told is not None
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    turns = [place for place, line in enumerate(lines) if "suspended" in line]
    # Not yet at the start, where it is known by the settings.
    assert [lines[place]["suspended"] for place in turns] == [False, True, False][
        : 2 + (told["verdict"] is None)
    ]
    skip_if_late(warnings)
    rates = [
        line["decision"]["rate_bps"]
        for line in lines[turns[-1] :]
        if line.get("decision", {}).get("side") == "up"
    ]
    # It goes on at what it knew before the line was idle; of a proof that fails it does not go on.
    assert told["verdict"] is not None or rates[0] == pytest.approx(8e6, rel=0.25)
    assert told["before_ms"] > 30
    # A loaded line may even answer sooner than an idle one, whose processors sleep: then there is no factor.
    assert told["after_ms"] < told["before_ms"] / 5
    assert told["factor"]["factor"] is None or told["factor"]["factor"] > 5
    assert told["cost"] < 0.2


# What the controller was told by probes, and what it made of both ways.
PROBED = """
def probed():
    lines = [json.loads(line) for line in open("log")][1:]
    delays = [line["delay"] for line in lines if "delay" in line and line["delay"]["source"] < 1 << 16]
    decided = [line["decision"] for line in lines if "decision" in line]
    rates = [[one["rate_bps"] for one in decided if one["side"] == side] for side in ("up", "down")]
    ways = [delay["one_way"] for delay in delays if delay["one_way"]]
    return [len(delays), min((delay["rtt"] for delay in delays), default=0), len(ways), rates]
"""


def probed_by(kind: str, words: str, serve: str, folder: Path) -> Any:
    (folder / "secret").write_text("correct horse\n")
    (folder / "download.py").write_text(UPLOAD.replace('b"u"', 'b"d"').replace(SENDS, RECEIVES))
    return in_lab(
        partial(weir_in, folder),
        folder,
        PROBED
        + f"""
shaper, view = start("--reflector", "{kind}", "--log", "log", *"{words}".split())
time.sleep(1)
loads = [{str(folder / "upload.py")!r}, *([{str(folder / "download.py")!r}] if {bool(words)} else [])]
loads = [subprocess.Popen([sys.executable, load]) for load in loads]
time.sleep(5)
done = subprocess.run([*WEIR, "status", device, "--json"], capture_output=True, text=True)
subprocess.run([*WEIR, "stop", device], check=True)
shaper.wait(60)
[load.kill() for load in loads]
print(json.dumps([probed(), json.loads(done.stdout)["reflectors"]]))
""",
        beside=f"echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all; {sys.executable} -m weirlab serve {serve}",
        port="8080",
    )


SENDS = """        far.sendall(bytes(65536))"""
RECEIVES = """        far.recv(65536)"""
KINDS = {
    "udp:server": ("", ""),
    "tcp:server:5001": ("", ""),
    "udp:server:8080": ("--up 5mbit --down auto --auth secret", "--auth secret"),
}
"""Whom to ask; how a shaper is started, both ways loaded if it is told anything; how its server is."""


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Any]]:
    """Shapers on two lines at once."""
    folders = {kind: tmp_path_factory.mktemp(kind[:3]) for kind in KINDS}
    return together(
        {kind: partial(probed_by, kind, *KINDS[kind], folder) for kind, folder in folders.items()}
    )


@pytest.mark.needs_lab
@pytest.mark.parametrize("kind", KINDS)
def test_where_icmp_is_blocked_a_server_or_any_tcp_port_tells_the_delays(
    probed: dict[str, Future[Any]], kind: str
) -> None:
    [[count, least_ns, ways, rates], known], warnings = probed[kind].result()
    assert len(known) == 1, "one answers, and no ping of ours does"
    assert count > 20
    # The line's own 14 ms, and what the measurement cannot add to: a delay is never too short.
    assert least_ns >= 14_000_000
    assert ways == (count if kind.startswith("udp") else 0)
    egress, ingress = rates
    if kind == "udp:server:8080":
        assert set(egress) == {5_000_000}, "a way that was set stays"
        egress = ingress
    skip_if_late(warnings)
    assert egress[-1] is not None, "the load made a queue, which was seen"


ENDS = ("KILL", "TERM", "INT", "stop")


def ended_by(end: str) -> str:
    """A script: the state before a shaper, its view, the state with it, its exit code, the state after it.

    And what it printed.
    """
    how = f'os.kill(view["pid"], signal.SIG{end})'
    if end == "stop":
        how = 'subprocess.run([*WEIR, "stop", device], check=True)'
    return f"""
before = state()
with (pathlib.Path(__file__).parent / "told").open("w+") as told:
    shaper, view = start("--json", stdout=told)
during = state()
{how}
code = shaper.wait(60)
# The guard of one that was killed takes the table away: it has the 2 s that docs/shape.md promises.
until = time.monotonic() + 2
while tables() and time.monotonic() < until:
    time.sleep(0.01)
print(json.dumps([before, view, during, code, state(), pathlib.Path(told.name).read_text()]))
"""


TWO_SHAPERS = """
shaper, view = start()
refused = subprocess.run([*WEIR, device, "--time", "1s"], capture_output=True, text=True).stderr
os.kill(view["pid"], signal.SIGKILL)
shaper.wait(60)
done = subprocess.run([*WEIR, device, "--time", "1s", "--quiet"], capture_output=True, text=True)
print(json.dumps([refused, done.returncode]))
"""

LEARNED = """
here = pathlib.Path(__file__).parent
state, log = here / "deep" / "state.json", here / "second.jsonl"
load = subprocess.Popen([sys.executable, here / "upload.py"])
subprocess.run([*WEIR, device, "--time", "15s", "--quiet", "--state", state], check=True)
load.kill()
load.wait()
kept = json.loads(state.read_text())
words = [*WEIR, device, "--time", "1s", "--quiet", "--state", state, "--log", log]
said = subprocess.run(words, check=True, capture_output=True, text=True).stderr
decided = [json.loads(line).get("decision") for line in log.read_text().splitlines()]
starts = [one for one in decided if one and one["reason"] == "start"]
print(json.dumps([kept, said, starts]))
"""

BACKENDS = """
def say(*words):
    done = subprocess.run([*WEIR, *words], capture_output=True, text=True)
    return [done.returncode, done.stdout, done.stderr]
dry = say(device, "--dry-run", "--json")
subprocess.run(["ip", "link", "property", "add", "dev", device, "altname", "other0"], check=True)
said = [dry, say("nosuch0"), say("other0"), device, say(device, "--backend", "kernel"), state()]
said.append(say("lo", "--dry-run"))
subprocess.run(["ip", "link", "set", device, "down"], check=True)
print(json.dumps([*said, say(device, "--dry-run", "--json")]))
"""


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Any]]:
    """Scripts in which no time is measured, each in a lab of its own, all at once."""
    scripts = {end: ended_by(end) for end in ENDS} | {"two shapers": TWO_SHAPERS, "backends": BACKENDS}
    return in_labs(tmp_path_factory, scripts)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a shaper learned of a line, in a lab alone: on a machine that is busy it measures too much."""
    return in_labs(tmp_path_factory, {"learned": LEARNED})["learned"].result()


@pytest.mark.needs_lab
@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_it_the_old_state_is_back(unhurried: dict[str, Future[Any]], end: str) -> None:
    [before, view, during, code, after, told], _ = unhurried[end].result()
    assert before == after == {"tables": 0, "queues": 0, "answers": 100}
    assert during == {"tables": 1, "queues": 22, "answers": 100}
    assert code == (-9 if end == "KILL" else 0)
    assert end == "KILL" or json.loads(told)["decisions"] >= 2
    assert [side["state"] for side in view["sides"]] == ["idle", "idle"]


@pytest.mark.needs_lab
def test_one_shaper_a_device_and_a_killed_one_is_no_obstacle(unhurried: dict[str, Future[Any]]) -> None:
    [refused, again], _ = unhurried["two shapers"].result()
    assert "is being shaped already" in refused
    assert again == 0


@pytest.mark.quiet
@pytest.mark.needs_lab
def test_what_was_learned_is_there_after_a_restart(learned: Any) -> None:
    [kept, said, starts], _ = learned
    # The line carries 8 Mbit/s up. Nothing was loaded down.
    assert 6e6 < kept["up_bps"] < 9e6
    assert kept["down_bps"] is None
    assert f"up {kept['up_bps'] / 1e6:.2f} Mbit/s" in said
    rates = {one["side"]: one["rate_bps"] for one in starts}
    assert rates == {"up": pytest.approx(kept["up_bps"] * 0.97, rel=0.02), "down": None}


@pytest.mark.needs_lab
def test_it_says_which_backend_and_why_and_refuses_in_one_sentence(
    unhurried: dict[str, Future[Any]],
) -> None:
    [dry, missing, other, device, kernel, after, loopback, down], _ = unhurried["backends"].result()
    chosen = json.loads(dry[1])
    assert chosen["backend"] == "userspace"
    assert "the backend `kernel` cannot be used: " in chosen["why"]
    assert chosen["warnings"] == []
    assert loopback[0] == 0
    assert "warning: `lo` is the loopback device" in " ".join(loopback[2].split())
    assert ["is down" in one for one in json.loads(down[1])["warnings"]] == [True]
    assert missing[0] == 2
    assert "there is no device `nosuch0`" in missing[2]
    # Rules of packets and /sys know a device by its own name alone.
    assert other[0] in {1, 2}
    assert f"`other0` is another name of the device `{device}`: write `{device}`" in other[2]
    assert kernel[0] == 1
    assert kernel[2].startswith("weir: the backend `kernel` cannot be used: ")
    assert after == {"tables": 0, "queues": 0, "answers": 100}


def test_words_become_settings_and_wrong_ones_are_named() -> None:
    settings = settings_of("eth0", {})
    assert settings["control"] == {"auto": {"mode": "ping"}}
    assert settings["queues"] == ["cake diffserv4 dual-srchost", "cake diffserv4 dual-dsthost"]
    said = {
        "up": "8mbit",
        "down": "none",
        "reflectors": ["10.0.0.1", "udp:[fd00::1]:2112"],
        "time": "2s",
    }
    settings = settings_of("eth0", said)
    assert settings["control"] == {"fixed": {"egress_bps": 8_000_000, "ingress_bps": None}}
    assert settings["queues"][1] is None
    assert settings["reflectors"] == [{"icmp": "10.0.0.1"}, {"udp": "[fd00::1]:2112"}]
    assert settings["time_ns"] == 2_000_000_000
    said = {"up": "8mbit", "down_max": "50mbit", "mode": "bandwidth", "auth": "/etc/secret"}
    settings = settings_of("eth0", said)
    rates = {"egress_bps": 8_000_000, "ingress_max_bps": 50_000_000}
    assert settings["control"] == {"auto": {"mode": "bandwidth", **rates}}
    assert settings["auth"] == "/etc/secret"
    said = {"reflectors": ["udp:10.0.0.1", "udp:[fd00::1]", "tcp:10.0.0.1:443", "[fd00::1]"]}
    assert settings_of("eth0", said)["reflectors"] == [
        {"udp": "10.0.0.1:8080"},
        {"udp": "[fd00::1]:8080"},
        {"tcp": "10.0.0.1:443"},
        {"icmp": "fd00::1"},
    ]
    assert "state" not in settings, "the tests' environment names no place"
    assert settings_of("eth0", {"state": "/x"})["state"] == "/x"
    refused: list[tuple[dict[str, Any], str]] = [
        ({"framing": "x"}, "framing: `x`: write one of auto, none, "),
        ({"reflectors": ["udp:10.0.0.1:99999"]}, "a port from 1 to 65535"),
        ({"reflectors": ["udp:h:" + "5" * 250]}, "a port from 1 to 65535"),
        ({"reflectors": ["tcp:10.0.0.1"]}, "a port from 1 to 65535"),
        ({"reflectors": ["a" * 64 + ".invalid"]}, "no host can be called so"),
        ({"reflectors": ["udp:a..b"]}, "no host can be called so"),
        ({"reflectors": ["fe80::1%lo"]}, "more than one link's"),
        ({"reflectors": ["::"]}, "no single host's"),
        ({"reflectors": ["tcp:[ff02::1]:80"]}, "no single host's"),
        ({"reflectors": ["255.255.255.255"]}, "no single host's"),
        ({"up_max": "fast"}, "fast"),
        ({"colour": "red"}, "colour"),
        ({"state": ""}, "write a file, `none` or `auto`"),
        ({"state": "/"}, "state `/`: it is a folder, and no regular file; name another"),
        ({"state": __file__}, "it is a file of something else; name another"),
    ]
    for wrong, named in refused:
        with pytest.raises(UsageError, match=named):
            settings_of("eth0", wrong)


def led(rates_mbps: tuple[float, float], *, own_traffic: bool = False) -> _native.Proof | str:
    """What comes of a line that carries so much without and with the shaper, with 60 and 15 ms, 10 idle."""
    prover = _native.Prover(rounds=1, measure_ns=2 * 10**9, max_cost=0.1, own_traffic=own_traffic)
    now, wanted, shaped = 0, [], False
    while not prover.has_ended:
        idle = prover.is_past_load
        rtt_ms, rate = (10, 0.01) if idle else (15, rates_mbps[1]) if shaped else (60, rates_mbps[0])
        side = {"load_bps": int(rate * 1e6), "rate_bps": 9_000_000 if shaped else None}
        view: Any = {
            "t_ns": now,
            "delays": [(now, rtt_ms * 10**6, 0)],
            "sides": [side, None],
            "late_ns": 6 * 10**6,
        }
        wanted.append(step(prover, view))
        shaped = wanted[-1] == "shape" or (shaped and wanted[-1] == "continue")
        now += 200_000_000
    assert [word for word in wanted if word != "continue"] == ["open", "shape", *["open"] * (2 - own_traffic)]
    return proof_of(prover)


def test_python_leads_the_prover_of_both_programs() -> None:
    """What it makes of views is tested where it is: crates/shape/src/prove."""
    proof = led((10, 9.5))
    assert isinstance(proof, dict)
    assert proof["verdict"] is None
    figures = json.loads(proof["figures"])
    assert figures["before_ms"] == pytest.approx(50)
    assert figures["after_ms"] == pytest.approx(5)
    assert figures["factor"]["factor"] == pytest.approx(10)
    assert proof["lines"][1] == "increase under load  50.0 ms without it, 5.0 ms with it"
    assert proof["remark"] == "this machine is busy: the shaper itself was up to 6 ms late"
    costly = led((10, 5))
    assert isinstance(costly, dict)
    assert costly["verdict"] == (
        "throughput fell by 50.0%, and 10.0% is allowed; on the way up that is what was sent, of which the "
        "line may have dropped a part"
    )


def test_why_there_is_no_proof_names_what_can_load_the_line() -> None:
    assert str(led((0.01, 0.01))).endswith("; `--run` takes a command that loads it")
    own = str(led((0.5, 0.5), own_traffic=True))
    assert "your own traffic was 0.50 Mbit/s" in own
    assert own.endswith("or a command that loads the line with `--run`")


def refused(*_: object) -> None:
    raise PermissionError


def assert_ends(one: LineLoad) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while one._group.code() is None:
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_a_load_that_fails_is_told_and_what_it_left_behind_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failed = LineLoad("exit 3")
    assert_ends(failed)
    assert failed.failure() == "the load `exit 3` ended by itself, with code 3"
    number = failed._group._process.pid
    assert Path(f"/proc/{number}").exists(), "its number is taken, so that no other is ended by it"
    with monkeypatch.context() as patched:
        # As of a load that runs as root by `sudo`.
        patched.setattr(os, "killpg", refused)
        failed.end()
    assert not Path(f"/proc/{number}").exists()
    assert failed.failure() is None
    monkeypatch.setattr(load, "LOAD_PATIENCE_S", 0.2)
    left = tmp_path / "left"
    behind = LineLoad(f"sleep {FOREVER_S} & echo $! > {left}")
    assert_ends(behind)
    assert behind.failure() is None
    behind.end()
    deaf = tmp_path / "deaf"
    stubborn = LineLoad(f"trap '' TERM; touch {deaf}; while :; do sleep 0.05; done")
    while not deaf.exists():
        time.sleep(0.01)
    stubborn.end()
    assert stubborn._group._process.returncode == -signal.SIGKILL
    # Nobody may have collected it yet, but it runs no more.
    state = Path(f"/proc/{left.read_text().strip()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("begun", ["", "begin = subprocess.Popen; subprocess.Popen = at_once"])
def test_a_load_ends_with_who_began_it_whatever_ends_that(begun: str, tmp_path: Path) -> None:
    """Also if that ends before it has seen that the load began."""
    left = tmp_path / "left"
    command = f"sleep {FOREVER_S} & echo $! >{left}.new; mv {left}.new {left}; wait"
    program = (
        "import subprocess, time; from weirlab.shape.load import LineLoad\n"
        f"def at_once(*args, **how): return begin(*args, **how), time.sleep({FOREVER_S})\n"
        f"{begun}\n"
        f"load = LineLoad({command!r})\n"
        f"time.sleep({FOREVER_S})"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    while not left.exists() and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.wait(timeout=PATIENCE_S)
    state = Path(f"/proc/{left.read_text().strip()}/stat")
    until_s = time.monotonic() + PATIENCE_S
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until_s, "it runs for ever"
        time.sleep(0.05)


def test_the_view_fits_a_terminal_of_80_columns() -> None:
    counts = {"backlog_packets": 1234, "sojourn_ns": 12_345_678, "dropped": 123_456, "marked": 123_456}
    side = {"rate_bps": 998_760_000, "load_bps": 998_760_000, "counts": counts, "unit": "ms"}
    sides = [
        {**side, "state": "backing_off", "reason": "clear", "value": 1280.0},
        {**side, "state": "stalled", "reason": "overdue", "value": 300.0, "rate_bps": None},
    ]
    view: Any = {"t_ns": 8_000_000_000, "device": "eth0", "sides": sides, "delays": [], "late_ns": 0}
    terminal = Console(width=80, file=io.StringIO())
    terminal.print(table_of(view | {"trouble": None, "warnings": []}))
    said = cast("io.StringIO", terminal.file).getvalue()
    for whole in ("998.76 998.76 backing off", "open 998.76 stalled", "1234  12.3  123456 123456"):
        assert whole in said
    assert "Mbit/s Mbit/s state" in said
    assert [line.split()[0] for line in said.splitlines() if "998.76" in line] == ["up", "down"]
    line = line_of(view | {"trouble": None, "warnings": []})
    assert "; up 998.76 Mbit/s, " in line
    assert "; down open, " in line
    assert "gress" not in said + line, "the options say up and down"
    assert max(len(line.rstrip()) for line in said.splitlines()) <= 80


def test_metrics_are_what_prometheus_reads() -> None:
    counts = {
        "bytes": 7,
        "departed_bytes": 7,
        "backlog_packets": 0,
        "backlog_bytes": 0,
        "dropped": 2,
        "marked": 1,
    }
    side = {"rate_bps": None, "load_bps": 5, "state": "idle", "reason": "", "value": 0.0, "unit": ""}
    egress = {**side, "rate_bps": 8_000_000, "counts": {**counts, "sojourn_ns": None}}
    view: Any = {"t_ns": 1, "pid": 2, "device": "eth0", "open": False, "sides": [egress, None], "missed": 3}
    view |= {"late_ns": 2_000_000, "trouble": None, "warnings": []}
    text = metrics_of(view | {"delays": [(0, 15_000_000, 0)], "reflectors": []})
    values = [line for line in text.splitlines() if not line.startswith("#")]
    assert values == [
        'weir_shape_rate_bps{device="eth0",side="egress"} 8000000',
        'weir_shape_load_bps{device="eth0",side="egress"} 5',
        'weir_shape_bytes_total{device="eth0",side="egress"} 7',
        'weir_shape_backlog_bytes{device="eth0",side="egress"} 0',
        'weir_shape_dropped_packets_total{device="eth0",side="egress"} 2',
        'weir_shape_marked_packets_total{device="eth0",side="egress"} 1',
        'weir_shape_delay_seconds{device="eth0"} 0.015',
        'weir_shape_late_seconds{device="eth0"} 0.002',
        'weir_shape_missed_packets_total{device="eth0"} 3',
        'weir_shape_warnings{device="eth0"} 0',
    ]
    silent = metrics_of(view | {"sides": [None, None], "delays": [], "reflectors": []})
    assert [line for line in silent.splitlines() if not line.startswith("#")] == values[-3:]


def test_a_reader_that_is_gone_ends_no_shaper(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        monkeypatch.setattr(sys, "stderr", gone)
        display = Display(quiet=False)
        view: Any = {"t_ns": 0, "device": "eth0", "sides": [None, None], "delays": [], "warnings": []}
        for second in range(3):
            display.show(view | {"t_ns": second * 10**9})
        display.close()
        monkeypatch.undo()
        # What was not written goes nowhere else.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, writing)
        os.close(nowhere)


def test_what_could_not_be_kept_is_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "cannot keep what was learned in `/ro/s.json`: Read-only file system"
    monkeypatch.setattr(_native, "shape", lambda *_: (7, why))
    options = SimpleNamespace(quiet=True, as_json=True)
    shape_command._shape({"device": "eth9"}, cast("Any", options))
    said = capsys.readouterr()
    assert said.out == '{"decisions": 7}\n'
    assert said.err.splitlines() == [f"warning: {why}", "eth9 is as it was"]


def test_a_service_manager_is_told_that_it_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As systemd takes it: a datagram to a socket with a file, or in the abstract namespace."""
    for where, name in ((str(tmp_path / "n"), str(tmp_path / "n")), (f"@{tmp_path}", f"\0{tmp_path}")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as near:
            near.bind(name)
            monkeypatch.setenv("NOTIFY_SOCKET", where)
            tell_service_manager("READY=1")
            assert near.recv(100, socket.MSG_DONTWAIT) == b"READY=1"
    monkeypatch.delenv("NOTIFY_SOCKET")
    tell_service_manager("READY=1")


@pytest.mark.parametrize("where", ["none/there", "", f"/{'long' * 40}"])
def test_a_service_manager_that_cannot_be_told_ends_no_shaper(
    where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", where)
    tell_service_manager("READY=1")
    said = capsys.readouterr().err
    assert said.startswith("warning: the service manager cannot be told that it shapes: "), said
