"""The lab's process: programs on a line, and that nothing stays behind, whatever ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from live import FOREVER_S, PATIENCE_S, skip_if_late
from weirlab.cli.lab_command import _live_view
from weirlab.errors import LabError
from weirlab.lab.client import QueueView, ask
from weirlab.scenario import ScenarioSpec, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

WEIR = [sys.executable, "-m", "weirlab"]


def weir(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs `weir` to its end."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*WEIR, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **more
    )
    return done


pytestmark = [pytest.mark.realtime, pytest.mark.needs_lab]


def test_streams_and_exit_code_pass_through() -> None:
    done = weir(
        "lab", "exec", "--", "sh", "-c", "read word; echo got $word; echo oops >&2; exit 7", input="in\n"
    )
    assert (done.returncode, done.stdout) == (7, "got in\n")
    assert "oops" in done.stderr


def test_a_program_that_a_signal_ends_is_told_so() -> None:
    done = weir("lab", "exec", "--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == 128 + signal.SIGKILL


PING = """
import socket, time
near = socket.socket(socket.AF_INET{six}, socket.SOCK_DGRAM)
near.settimeout(60)
times = []
for number in range(20):
    start = time.monotonic()
    near.sendto(b"%d" % number, ("server", 7777))
    assert near.recv(100) == b"%d" % number
    times.append(time.monotonic() - start)
print(sorted(times)[10] * 1e3)
"""

ECHO = """
import socket
far = socket.socket(socket.AF_INET{six}, socket.SOCK_DGRAM)
far.bind(("", 7777))
while True:
    far.sendto(*far.recvfrom(100))
"""


@pytest.mark.parametrize("device", ["auto", "veth"])
@pytest.mark.parametrize("ip", [4, 6])
def test_the_server_is_reached_by_name_over_the_line(ip: int, device: str, tmp_path: Path) -> None:
    six = "6" if ip == 6 else ""
    (tmp_path / "ping.py").write_text(PING.format(six=six))
    (tmp_path / "echo.py").write_text(ECHO.format(six=six))
    link = tmp_path / "line.toml"
    link.write_text(
        'name = "line"\ntitle = "Line"\n'
        '[[up]]\nname = "line"\nrate = "10mbit"\ndelay = "15ms"\n'
        '[[down]]\nname = "line"\nrate = "10mbit"\ndelay = "5ms"\n'
    )
    echo = f"exec {sys.executable} {tmp_path / 'echo.py'}"
    ping = [sys.executable, str(tmp_path / "ping.py")]
    words = ("--link", str(link), "--ip", str(ip), "--device", device, "--server-command", echo)
    done = weir("lab", "exec", *words, "--", *ping)
    assert done.returncode == 0, done.stderr
    # Never shorter than the line; how much longer is up to how busy the machine is.
    assert float(done.stdout) >= 20.0
    skip_if_late(done.stderr)
    assert float(done.stdout) < 60.0


ASK_NOBODY = """
import errno, socket, sys
for address in sys.argv[1:]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.socket(family, socket.SOCK_DGRAM).connect((address, 53))
    except OSError as error:
        print(errno.errorcode[error.errno])
    else:
        print("goes somewhere")
"""


@pytest.mark.parametrize(
    ("words", "addresses"),
    [
        # As of a machine's name server.
        ((), ("10.255.255.53", "10.0.0.2", "10.1.0.2", "192.0.2.1")),
        (("--device", "veth"), ("10.255.255.53",)),
        (("--ip", "6"), ("fd00::53", "2001:db8::1")),
        (("--path", "a=cable-20-8", "--path", "b=cable-20-8"), ("10.255.255.53", "10.1.0.3")),
    ],
)
def test_what_belongs_to_no_host_of_the_lab_is_out_of_reach(
    words: tuple[str, ...], addresses: tuple[str, ...]
) -> None:
    done = weir("lab", "exec", *words, "--", sys.executable, "-c", ASK_NOBODY, *addresses)
    assert done.stdout.split() == ["ENETUNREACH"] * len(addresses), done.stderr


def test_a_record_and_a_capture_are_kept(tmp_path: Path) -> None:
    link = tmp_path / "line.toml"
    link.write_text(
        'name = "line"\ntitle = "Line"\n[[up]]\nname = "line"\nrate = "10mbit"\n'
        '[[down]]\nname = "line"\nrate = "10mbit"\n'
    )
    code = (
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x' * 1000, ('server', 9))"
    )
    record, capture = tmp_path / "record", tmp_path / "packets.pcapng"
    words = ("--link", str(link), "--out", str(record), "--pcap", str(capture))
    done = weir("lab", "exec", *words, "--", sys.executable, "-c", f"{code}; import time; time.sleep(1)")
    assert done.returncode == 0, done.stderr
    kept = weirlab.open_record(record)
    assert kept.manifest.complete
    assert kept.manifest.world == "lab"
    up = kept.queue.filter(kept.queue["queue"] == "up/line")
    assert up["departed_bytes"].sum() >= 1000 + 28 + 14
    bytes_ = capture.read_bytes()
    assert bytes_[:4] == b"\x0a\x0d\x0d\x0a"
    # Two routers lie before the server: one in front of the line and one behind it.
    time_to_live = bytes_[bytes_.index(b"x" * 1000) - 28 + 8]
    assert time_to_live == 64 - 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--", "no-such-program"), "`no-such-program` is no program that can be found"),
        (("--queue", "fq_kodel", "--", "true"), "unknown queue discipline `fq_kodel`"),
        (("--link", "no-such-link", "--", "true"), "unknown link `no-such-link`"),
        (("--pcap", "/no/such/folder/x", "--", "true"), "`/no/such/folder` is no folder"),
        (
            ("--server-command", "exit 3", "--", "true"),
            "the server's command `exit 3` ended at once, with code 3",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words: tuple[str, ...], message: str) -> None:
    done = weir("lab", "exec", *words)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_live_rate_is_that_of_the_time_in_which_its_bytes_were_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """20 Mbit/s: views come between samples, so that one has more of them than another."""
    show = _live_view([])
    for t_ns, samples in ((605_000_000, 6), (1_105_000_000, 5), (1_610_000_000, 6)):
        queue = QueueView(
            span_ns=samples * 100_000_000,
            wire_bytes=samples * 250_000,
            backlog_packets=3,
            backlog_bytes=4500,
            dropped=0,
            marked=0,
        )
        assert show({"t_ns": t_ns, "queues": {"down/line": queue}})
    assert capsys.readouterr().err.count("down 20.0 Mbit/s, 3 packets wait in down/line") == 3


def test_a_program_that_cannot_be_run_is_told_as_what_it_is(tmp_path: Path) -> None:
    plain, orphan = tmp_path / "plain", tmp_path / "orphan"
    plain.write_text("#!/bin/sh\n")
    orphan.write_text("#!/no/such/shell -e\n")
    orphan.chmod(0o700)
    os.mkfifo(tmp_path / "pipe", 0o700)
    for program, said in (
        (plain, "is not executable: `chmod +x` makes it so"),
        (tmp_path, "is no program that can be found"),
        (tmp_path / "pipe", "is no regular file, and no program"),
        (orphan, ": its interpreter `/no/such/shell` is not there"),
    ):
        done = weir("lab", "exec", "--", str(program))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"`{program}`" in done.stderr
        assert said in done.stderr


def test_a_record_never_goes_where_something_is(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    for place, said in (
        (tmp_path, "is not empty: choose another folder for the record"),
        (tmp_path / "there", "is no folder: choose another one for the record"),
    ):
        done = weir("lab", "exec", "--out", str(place), "--", "true")
        assert (done.returncode, done.stderr) == (2, f"weir: `{place}` {said}\n")


def test_a_congestion_control_that_the_kernel_lacks_is_refused_before_the_start(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = weir("run", "tcp_download", "--world", "lab", "--cc", "nothing", "--out", str(out))
    assert done.returncode == 2
    assert "congestion control `nothing`: this kernel has " in done.stderr
    assert not list(out.rglob("manifest.json"))


def marked() -> list[int]:
    """The processes of this test that are still there: they carry its mark in their environment."""
    mark = f"WEIR_TEST_MARK={os.getpid()}".encode()
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
        except OSError:
            continue
    return found


def until(true: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Waits until something is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def start(*words: str) -> subprocess.Popen[str]:
    """Starts `weir` in a process group of its own, marked."""
    return subprocess.Popen(
        [*WEIR, *words],
        env=os.environ | {"WEIR_TEST_MARK": str(os.getpid())},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_terminal_that_goes_ends_nothing_under_nohup() -> None:
    """SIGHUP is ignored from the start, and reaches every process of the lab."""
    running = subprocess.Popen(
        ["nohup", *WEIR, "lab", "exec", "--", "sh", "-c", "echo started; read word; echo got $word"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "started\n"
    os.killpg(running.pid, signal.SIGHUP)
    output, errors = running.communicate("it\n", timeout=PATIENCE_S)
    assert (running.returncode, output) == (0, "got it\n"), errors


@pytest.mark.parametrize(
    ("number", "reach"),
    [
        # Ctrl-C reaches the whole group.
        (signal.SIGINT, os.killpg),
        (signal.SIGINT, os.kill),
        (signal.SIGTERM, os.kill),
        (signal.SIGHUP, os.kill),
    ],
)
def test_a_run_that_is_asked_to_end_keeps_its_record_and_leaves_nothing(
    number: signal.Signals, reach: Callable[[int, int], None], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    running = start(
        "run", "tcp_download", "--world", "lab", "--load", "50s", "--out", str(out), "--no-charts"
    )
    until(lambda: any(out.rglob("latency/part-*.parquet")))
    reach(running.pid, number)
    output, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, (output, errors)
    until(lambda: not marked())
    (manifest,) = out.rglob("manifest.json")
    kept = weirlab.open_record(manifest.parent)
    assert not kept.manifest.complete
    assert kept.manifest.reached_ns is not None
    assert kept.latency.height > 0


def test_after_a_kill_nothing_remains_and_the_record_is_readable(tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = start(
        "run", "tcp_download", "--world", "lab", "--load", "50s", "--out", str(out), "--no-charts"
    )
    until(lambda: any(out.rglob("latency/part-*.parquet")))
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    until(lambda: not marked())
    (manifest,) = out.rglob("manifest.json")
    kept = weirlab.open_record(manifest.parent)
    assert not kept.manifest.complete
    assert kept.latency.height > 0


@pytest.mark.parametrize("lines", [(), ("--path", "wifi=cable-20-8", "--path", "lte=lte-verizon")])
def test_after_a_kill_the_programs_of_a_lab_are_gone_too(lines: tuple[str, ...]) -> None:
    tree = f"sleep {FOREVER_S} & sleep {FOREVER_S} & echo started; wait"
    server = f"{sys.executable} -m http.server & sleep {FOREVER_S}"
    running = start("lab", "exec", *lines, "--server-command", server, "--", "sh", "-c", tree)
    assert running.stdout is not None
    assert running.stdout.readline() == "started\n"
    assert len(marked()) >= 7
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    until(lambda: not marked())


def test_two_labs_at_once_do_not_meet(tmp_path: Path) -> None:
    outs = [tmp_path / "a", tmp_path / "b"]
    words = (
        "tcp_upload",
        "--world",
        "lab",
        "--idle",
        "0.5s",
        "--load",
        "2s",
        "--cooldown",
        "0.5s",
        "--no-charts",
    )
    running = [start("run", *words, "--out", str(out)) for out in outs]
    for one in running:
        _, errors = one.communicate(timeout=PATIENCE_S)
        assert one.returncode == 0, errors
    for out in outs:
        (manifest,) = out.rglob("manifest.json")
        assert weirlab.open_record(manifest.parent).flows["delivered_bytes"].sum() > 500_000


def test_a_lab_that_cannot_be_made_says_why() -> None:
    spec = ScenarioSpec.model_validate({"test": "ping", "link": "cable-20-8"})
    run = resolve(spec)[0]
    request = {
        "do": "exec",
        "scenario": json.loads(json.dumps(run.scenario)),
        "traces": {},
        "seed": 1,
        "program": ["/"],
        "server_command": None,
        "device": None,
        "capture": None,
        "record": None,
    }
    with pytest.raises(LabError, match="cannot run `/`"):
        ask(request)
