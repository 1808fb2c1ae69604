"""What happens to a shaper that must not strangle a line. `make shape-safety` stops it for longer."""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from live import together, weir_in
from test_shape import PROBED, in_lab
from weirlab import _native

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

pytestmark = [pytest.mark.realtime, pytest.mark.needs_lab]

RIGHT = {"tables": 1, "queues": 22, "answers": 100}
NOTHING_LEFT = {"tables": 0, "queues": 0, "answers": 100}
STOP_S = 40 if "WEIR_LONG" in os.environ else 8
"""How long a shaper is stopped."""

# A shaper beside four uploads and a download; what its log says.
SHAPED = (
    PROBED
    + """
import threading

def status():
    done = subprocess.run([*WEIR, "status", device, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)

def decisions():
    lines = [json.loads(line) for line in open("log") if line.endswith("\\n")]
    return [line["decision"] for line in lines if "decision" in line]

def reasons():
    return sorted({one["reason"] for one in decisions()})

def guards():
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            # Nobody here waits for one whose shaper has gone.
            words = (folder / "stat").read_text().split()
            if words[1] == "(weir-guard)" and words[2] != "Z":
                found.append(int(folder.name))
        except OSError:
            pass
    return found

def until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return held

class Download:
    "A connection of the user's, open since before anything happened: bytes that have come."
    def __init__(self):
        self.bytes = 0
        threading.Thread(target=self._receive, daemon=True).start()
    def _receive(self):
        near = socket.create_connection(("server", 5001))
        near.sendall(b"d")
        while part := near.recv(65536):
            self.bytes += len(part)

class Flood:
    "Datagrams to nobody, more than the line carries: no answer to them tells anything."
    def __init__(self):
        self.ended = threading.Event()
        threading.Thread(target=self._send, daemon=True).start()
    def _send(self):
        near, there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), (socket.gethostbyname("server"), 9)
        while not self.ended.wait(0.01):
            for _ in range(25):
                near.sendto(bytes(1200), there)

def upload():
    return subprocess.Popen([sys.executable, "upload.py"])
"""
)

STOPPED = f"""
# It sees the idle line first, and holds a rate when it is stopped: what it goes on with is then told.
shaper = start("--log", "log")[0]
time.sleep(1)
load, download = upload(), Download()
assert until(lambda: status()["sides"][0]["rate_bps"] is not None), "no rate is held"
os.kill(shaper.pid, signal.SIGSTOP)
opened = until(lambda: tables() == 0, 10)
time.sleep(2)
had = download.bytes
fresh = [answers() for _ in range(5)]
time.sleep({STOP_S} - 4)
moved = download.bytes - had
os.kill(shaper.pid, signal.SIGCONT)
held = until(lambda: tables() == 1)
time.sleep(3)
during, said = state(), status()["warnings"]
subprocess.run([*WEIR, "stop", device], check=True)
code = shaper.wait(60)
load.kill()
print(json.dumps([opened, fresh, moved, held, during, said, reasons(), code, state(), guards()]))
"""

SILENT = """
def rate():
    return status()["sides"][0]["rate_bps"]
def given_up():
    silent = [one for one in decisions() if one["reason"] == "silence" and one["side"] == "up"]
    return any(one["rate_bps"] is None for one in silent)
shaper = start("--log", "log", "--reflector", "server")[0]
# It has seen the idle line first: a queue that is there from the start is taken for the line.
load = Flood()
shaped = until(lambda: rate() is not None)
open("mute", "w").close()
# For half a second at least; answers to the load itself end it.
opened = until(given_up, 60)
why = reasons()
after = state()
subprocess.run([*WEIR, "stop", device], check=True)
load.ended.set()
print(json.dumps([shaped, opened, why, after]))
"""

DOWN_AND_UP = """
shaper = start("--log", "log")[0]
routes = subprocess.run(["ip", "route", "show", "dev", device], capture_output=True, text=True).stdout
told = []
for lasts_s in (0.5, 0.5, 8):
    subprocess.run(["ip", "link", "set", device, "down"], check=True)
    time.sleep(lasts_s)
    view = status()
    told = [view["warnings"], view["trouble"]]
    subprocess.run(["ip", "link", "set", device, "up"], check=True)
    for route in routes.splitlines():
        # What the kernel makes by itself is there again already.
        subprocess.run(["ip", "route", "add", *route.split(), "dev", device], capture_output=True)
    time.sleep(0.5)
during = state()
calm = until(lambda: not [one for one in status()["warnings"] if "is down" in one])
subprocess.run([*WEIR, "stop", device], check=True)
print(json.dumps([routes, during, shaper.wait(60), state(), told, calm]))
"""

# Nothing is at the shaper's end, and then at its guard's: one of them is killed after the other.
KILLED = """
shaper = start("--log", "log")[0]
[first] = guards()
os.kill(first, signal.SIGKILL)
another = until(lambda: tables() == 1 and guards() not in ([], [first]))
during = state()
said = until(lambda: status()["warnings"] != []) and status()["warnings"]
os.kill(shaper.pid, signal.SIGKILL)
code = shaper.wait(60)
cleared = until(lambda: guards() == [] and tables() == 0)
print(json.dumps([another, during, said, code, cleared, state()]))
"""

# A guard that stands still itself is in nobody's way.
GUARD_STOPPED = """
shaper = start()[0]
[guard] = guards()
os.kill(guard, signal.SIGSTOP)
during = state()
subprocess.run([*WEIR, "stop", device], check=True)
print(json.dumps([during, shaper.wait(60), state(), guards()]))
"""

# A terminal that is halted (^S), and one who asks meanwhile.
HALTED = """
import pty, termios
near, terminal = pty.openpty()
def drain():
    while os.read(near, 65536):
        pass
threading.Thread(target=drain, daemon=True).start()
shaper = subprocess.Popen([*WEIR, device], stdin=terminal, stdout=terminal, stderr=terminal)
def says():
    done = subprocess.run([*WEIR, "status", device, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout).get("t_ns") if done.returncode == 0 else None
begun = until(says)
termios.tcflow(terminal, termios.TCOOFF)
time.sleep(2)
before = says()
goes_on = before is not None and until(lambda: (says() or 0) > before, 10)
stopped = subprocess.run([*WEIR, "stop", device], capture_output=True, text=True)
after = state()
termios.tcflow(terminal, termios.TCOON)
print(json.dumps([bool(begun), goes_on, stopped.returncode, stopped.stderr, after, shaper.wait(60)]))
"""

# No more files for the shaper, and no room for its log.
STARVED = """
import resource
shaper = start("--log", "log")[0]
resource.prlimit(shaper.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
files = resource.prlimit(shaper.pid, resource.RLIMIT_NOFILE)
resource.prlimit(shaper.pid, resource.RLIMIT_NOFILE, (3, files[1]))
time.sleep(3)
resource.prlimit(shaper.pid, resource.RLIMIT_NOFILE, files)
full = until(lambda: [line for line in status()["warnings"] if "cannot be written" in line])
said, during = status()["warnings"], state()
subprocess.run([*WEIR, "stop", device], check=True)
print(json.dumps([full, said, during, shaper.wait(60), state()]))
"""

# A port of a bridge, in a file of settings or not; the words of a file that cannot be.
REFUSED = """
def said(*words):
    done = subprocess.run([*WEIR, *words], capture_output=True, text=True)
    return [done.returncode, done.stderr]
for words in ("br7 type bridge", "port7 type veth peer name other7"):
    subprocess.run(["ip", "link", "add", *words.split()], check=True)
subprocess.run(["ip", "link", "set", "port7", "master", "br7"], check=True)
port = [said("port7", "--dry-run", *words) for words in ([], ["--backend", "userspace"])]
pathlib.Path("settings.toml").write_text('reflectors = ["no-such..host"]')
print(json.dumps([port, said("br7", "--dry-run"), said(device, "--config", "settings.toml")]))
"""

# Timestamps of connections are off too: they would tell the delays instead.
MUTE = "(while [ ! -e {folder}/mute ]; do sleep 0.2; done; echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all)"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Any]]:
    """Each script on a line of its own, all at once: what it printed, and its folder."""

    def run(name: str, script: str, folder: Path) -> tuple[Any, Path]:
        beside = MUTE.format(folder=folder) if name == "silent" else "true"
        printed, _ = in_lab(partial(weir_in, folder), folder, SHAPED + script, beside)
        return printed, folder

    scripts = {"stopped": STOPPED, "silent": SILENT, "killed": KILLED, "guard stopped": GUARD_STOPPED}
    scripts |= {"halted": HALTED, "starved": STARVED}
    if shutil.which("ip") is not None:
        scripts |= {"down and up": DOWN_AND_UP, "refused": REFUSED}
    return together(
        {
            name: partial(run, name, script, tmp_path_factory.mktemp("line"))
            for name, script in scripts.items()
        }
    )


def test_a_stopped_process_does_not_stop_the_users_traffic(lines: dict[str, Future[Any]]) -> None:
    [opened, fresh, moved, held, during, said, why, code, after, guards], folder = lines["stopped"].result()
    assert opened, "the guard opens the line"
    assert fresh == [100] * 5, "new connections are answered"
    assert moved > 1_000_000, "a connection that was open goes on"
    assert held, "the guard holds the line again"
    assert during == RIGHT
    assert [line for line in said if "stood still" in line]
    assert "stood still" in (folder / "log").read_text()
    assert "resume" in why
    assert (code, after, guards) == (0, NOTHING_LEFT, [])
    counts = _native.replay_shaper((folder / "log").read_text(), None, lambda _: None)
    assert set(counts) == {counts[0]}, "a replay decides what was decided"


def test_a_guard_that_was_killed_is_replaced_and_clears_away_after_its_shaper(
    lines: dict[str, Future[Any]],
) -> None:
    [another, during, said, code, cleared, after], _ = lines["killed"].result()
    assert another, "another guard holds the line"
    assert during == RIGHT
    assert [line for line in said if "guard" in line]
    assert code == -9
    assert cleared, "the guard ends with its shaper"
    assert after == NOTHING_LEFT


def test_a_guard_that_stands_still_is_in_nobodys_way(lines: dict[str, Future[Any]]) -> None:
    [during, code, after, guards], _ = lines["guard stopped"].result()
    assert during == RIGHT
    assert (code, after, guards) == (0, NOTHING_LEFT, [])


def test_where_nobody_answers_any_more_everything_is_let_through(lines: dict[str, Future[Any]]) -> None:
    [shaped, opened, why, after], _ = lines["silent"].result()
    assert shaped, "the load made a queue, which was seen"
    assert opened
    assert "silence" in why
    assert after == RIGHT


@pytest.mark.skipif(shutil.which("ip") is None, reason="the device is set down and up by iproute2")
def test_a_device_that_goes_down_and_up_is_shaped_on(lines: dict[str, Future[Any]]) -> None:
    [routes, during, code, after, told, calm], _ = lines["down and up"].result()
    # Of whom nobody answers only the device is to blame.
    down = "the device is down, or has no link to its other end: nothing passes until it has"
    assert told == [[down], None]
    assert calm, "it is told as long as it lasts"
    assert routes
    assert during == RIGHT
    assert code == 0
    assert after == NOTHING_LEFT


def test_a_halted_terminal_halts_neither_status_nor_stop(lines: dict[str, Future[Any]]) -> None:
    [begun, goes_on, stopped, why, after, code], _ = lines["halted"].result()
    assert begun
    assert goes_on, "the view that `status` shows is a new one each time"
    assert (stopped, why) == (0, "")
    assert after == NOTHING_LEFT
    assert code == 0


def test_no_files_and_a_full_disk_are_told_and_end_nothing(lines: dict[str, Future[Any]]) -> None:
    [full, said, during, code, after], _ = lines["starved"].result()
    assert full, "the log that ends is told"
    assert [line for line in said if "too many open files" in line or "EMFILE" in line]
    assert during == RIGHT
    assert (code, after) == (0, NOTHING_LEFT)


@pytest.mark.skipif(shutil.which("ip") is None, reason="the bridge is made by iproute2")
def test_a_port_of_a_bridge_and_a_wrong_name_are_refused_in_a_sentence(lines: dict[str, Future[Any]]) -> None:
    [ports, bridge, file], _ = lines["refused"].result()
    for code, said in ports:
        assert code == 2
        assert "`port7` is a port of `br7`" in said
        assert said.count("\n") == 1
    assert bridge[0] == 0
    assert bridge[1].startswith("warning: the device is down, or has no link")
    assert bridge[1].count("warning: ") == 1
    assert file == [
        2,
        "weir: reflector `no-such..host`: no host can be called so: write parts of 1 to 63 letters\n",
    ]
