"""`weir-agent shape` as a router has it: the static program alone in an empty root. Real time: short runs."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live import skip_if_late
from test_shape import in_lab

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Weir = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.realtime

PROGRAM = Path(
    os.environ.get("WEIR_AGENT") or Path(__file__).parent.parent / "out" / f"weir-agent-{platform.machine()}"
)
"""The program that `make agent-static` makes, unless another one is named."""

MAX_PROGRAM_BYTES = 8_000_000
MAX_RESIDENT_KIB = 16 * 1024

built = pytest.mark.skipif(
    not PROGRAM.exists(), reason=f"there is no {PROGRAM}: run `make agent-static` first"
)

ALONE = """
import os, shutil
root = pathlib.Path("root")
root.mkdir()
shutil.copy({program!r}, root / "weir-agent")
AGENT = ["/weir-agent"]
SERVER = socket.gethostbyname("server")

def alone(*words, env={{}}, **more):
    # Nothing is there but the program: no library, no /proc, no /sys, no /dev.
    enter = lambda: (os.chroot(root), os.chdir("/"))
    return subprocess.Popen([*AGENT, *words], preexec_fn=enter, env=env, **more)

def run(*words):
    done = alone(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = done.communicate(timeout=60)
    return [done.returncode, out, err]

"""

ROUTER = (
    ALONE
    + """
def median_ms():
    code, out, err = run("ping", SERVER, "--ping", "20ms", "--count", "150")
    rtts = sorted(float(line.split()[1]) for line in out.splitlines()[:-1] if line.endswith(" ms"))
    assert code == 0 and len(rtts) > 100, (code, out[-300:], err)
    return rtts[len(rtts) // 2]

loads = [subprocess.Popen([sys.executable, {upload!r}])]
time.sleep(4)
before = median_ms()
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("\\0weir-manager")
manager.settimeout(60)
told = {{"NOTIFY_SOCKET": "@weir-manager"}}
shaper = alone("shape", device, "--quiet", "--reflector", SERVER, env=told)
ready = manager.recv(100).decode()
time.sleep(6)
after = median_ms()
status = run("shape", "status", device)
metrics = run("shape", "status", device, "--prometheus")
lines = pathlib.Path(f"/proc/{{shaper.pid}}/status").read_text().splitlines()
resident = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
stopped = run("shape", "stop", device)
code = shaper.wait(60)
[load.kill() for load in loads]
print(json.dumps([ready, before, after, status, metrics, resident, stopped, code, state()]))
"""
)

TEST = (
    ALONE
    + """
TIMES = ["--idle", "1s", "--load", "3s", "--json"]
ours = run("test", SERVER, *TIMES)
whole = [*WEIR[:-1], "test", "server", "--no-charts", "--out", "record", *TIMES]
theirs = subprocess.run(whole, capture_output=True, text=True, timeout=60)
print(json.dumps([ours, json.loads(theirs.stdout)]))
"""
)

PROOF = (
    ALONE
    + """
words = ["--prove", "--server", SERVER, "--rounds", "1", "--load", "3s", "--json", "--quiet", "--time", "25s"]
proof = run("shape", device, *words)
print(json.dumps([proof, state()]))
"""
)

SERVE = {"beside": f"{sys.executable} -m weirlab serve --without irtt 2>/dev/null", "port": "8080"}
"""A server at the far end, and where it is when it is there."""


@built
def test_the_program_is_small() -> None:
    head = PROGRAM.read_bytes()[:4]
    assert head == b"\x7fELF"
    assert PROGRAM.stat().st_size <= MAX_PROGRAM_BYTES


@built
@pytest.mark.needs_lab
def test_the_program_alone_in_an_empty_root_tames_a_bloated_line(weir: Weir, tmp_path: Path) -> None:
    script = ROUTER.format(program=str(PROGRAM), upload=str(tmp_path / "upload.py"))
    found, warnings = in_lab(weir, tmp_path, script)
    [ready, before, after, status, metrics, resident, stopped, code, left] = found
    assert ready == "READY=1", "the unit of systemd waits for it"
    assert stopped[0] == code == 0
    assert left == {"tables": 0, "queues": 0, "answers": 100}
    assert status[0] == 0
    assert "probes answered by " in status[1]
    assert 'side="egress"} ' in metrics[1]
    assert resident <= MAX_RESIDENT_KIB
    skip_if_late(warnings)
    assert before > 50
    assert after < before / 3


@built
@pytest.mark.needs_lab
def test_the_program_alone_grades_a_line_as_weir_test_does(weir: Weir, tmp_path: Path) -> None:
    [[code, out, err], theirs], warnings = in_lab(weir, tmp_path, TEST.format(program=str(PROGRAM)), **SERVE)
    assert code == 0, err
    ours = json.loads(out)
    # What it leaves out needs the record: where that lies, which way waits, where, and most of the scores.
    assert set(theirs) - set(ours) == {"out", "location", "one_way"}
    assert set(ours) <= set(theirs)
    [score] = ours["scores"]
    same = next(one for one in theirs["scores"] if one["name"] == score["name"])
    assert set(score) == set(same)
    assert score["formula"] == same["formula"]
    skip_if_late(warnings)
    # A buffer of half a second and more.
    assert {ours["grade"], theirs["grade"]} <= {"D", "F"}
    assert 10 < ours["idle_ms"] < 30
    for figure in ("down_mbps", "up_mbps"):
        assert ours[figure] == pytest.approx(theirs[figure], rel=0.25)


@built
@pytest.mark.needs_lab
def test_the_program_alone_proves_that_it_helps(weir: Weir, tmp_path: Path) -> None:
    [[code, out, err], left], warnings = in_lab(weir, tmp_path, PROOF.format(program=str(PROGRAM)), **SERVE)
    assert left == {"tables": 0, "queues": 0, "answers": 100}
    proof = json.loads(out)
    assert proof.get("before_ms", 0) > 50, (proof, err)
    assert proof["before_mbps"] > 10
    skip_if_late(warnings)
    assert (code, proof["verdict"]) == (0, None), err
    assert proof["factor"]["low"] > 1
    assert proof["after_ms"] < proof["before_ms"]
