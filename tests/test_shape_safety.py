"""What happens to a shaper that must not strangle a line: each takes half a minute (`make shape-safety`)."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from test_shape import PROBED, in_lab
from weirlab import _native

if TYPE_CHECKING:
    from pathlib import Path

    from test_shape import Weir

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.needs_lab,
    pytest.mark.skipif("WEIR_LONG" not in os.environ, reason="a minute and a half: `make shape-safety`"),
]

RIGHT = {"tables": 1, "queues": 2, "answers": 100}

# A shaper beside four uploads; what its log says.
SHAPED = (
    PROBED
    + """
def status():
    done = subprocess.run([*WEIR, "status", device, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)

def reasons():
    lines = [json.loads(line) for line in open("log") if line.endswith("\\n")]
    return sorted({line["decision"]["reason"] for line in lines if "decision" in line})
"""
)


def log_of(folder: Path) -> str:
    return (folder / "log").read_text()


def test_a_process_that_stood_still_goes_on_as_if_the_machine_had_slept(weir: Weir, tmp_path: Path) -> None:
    [during, why, after], _ = in_lab(
        weir,
        tmp_path,
        SHAPED
        + f"""
load = subprocess.Popen([sys.executable, {str(tmp_path / "upload.py")!r}])
shaper = start("--log", "log")[0]
time.sleep(5)
os.kill(shaper.pid, signal.SIGSTOP)
time.sleep(10)
os.kill(shaper.pid, signal.SIGCONT)
time.sleep(6)
during = state()
subprocess.run([*WEIR, "stop", device], check=True)
shaper.wait(60)
load.kill()
print(json.dumps([during, reasons(), state()]))
""",
    )
    assert during == RIGHT
    assert "resume" in why
    assert after == {"tables": 0, "queues": 0, "answers": 100}
    counts = _native.replay_shaper(log_of(tmp_path), None, lambda _: None)
    assert set(counts) == {counts[0]}, "a replay decides what was decided"


def test_where_nobody_answers_any_more_everything_is_let_through(weir: Weir, tmp_path: Path) -> None:
    [shaped, opened, why, after], _ = in_lab(
        weir,
        tmp_path,
        SHAPED
        + f"""
load = subprocess.Popen([sys.executable, {str(tmp_path / "upload.py")!r}])
shaper = start("--log", "log", "--reflector", "server")[0]
time.sleep(5)
shaped = status()["sides"][0]["rate_bps"]
time.sleep(17)
opened = status()["sides"][0]["rate_bps"]
why = reasons()
after = state()
subprocess.run([*WEIR, "stop", device], check=True)
load.kill()
print(json.dumps([shaped, opened, why, after]))
""",
        # Timestamps of connections are off too: they would tell the delays instead.
        beside="(echo 0 > /proc/sys/net/ipv4/tcp_timestamps; sleep 8; "
        "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all)",
    )
    assert shaped is not None
    assert opened is None
    assert "silence" in why
    assert after == RIGHT


@pytest.mark.skipif(shutil.which("ip") is None, reason="the device is set down and up by iproute2")
def test_a_device_that_goes_down_and_up_is_shaped_on(weir: Weir, tmp_path: Path) -> None:
    [routes, during, why, after], _ = in_lab(
        weir,
        tmp_path,
        SHAPED
        + """
shaper = start("--log", "log")[0]
routes = subprocess.run(["ip", "route", "show", "dev", device], capture_output=True, text=True).stdout
for _ in range(3):
    subprocess.run(["ip", "link", "set", device, "down"], check=True)
    time.sleep(0.5)
    subprocess.run(["ip", "link", "set", device, "up"], check=True)
    for route in routes.splitlines():
        # What the kernel makes by itself is there again already.
        subprocess.run(["ip", "route", "add", *route.split(), "dev", device], capture_output=True)
    time.sleep(0.5)
during = state()
subprocess.run([*WEIR, "stop", device], check=True)
print(json.dumps([routes, during, shaper.wait(60), state()]))
""",
    )
    assert routes
    assert during == RIGHT
    assert why == 0
    assert after == {"tables": 0, "queues": 0, "answers": 100}
