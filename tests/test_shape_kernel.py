"""`weir shape --backend kernel` on the device of a lab: its queues, and what was there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import test_shape
from test_shape import in_lab, in_labs

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path
    from subprocess import CompletedProcess

    Weir = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.realtime

# Queue disciplines by rtnetlink: those of all devices, and one that somebody has put there before.
QDISCS = """
import fcntl
ROOT, INGRESS = 0xffffffff, 0xfffffff1
INDEX = socket.if_nametoindex(device)

def attributes(data):
    while data:
        length, kind = struct.unpack("=HH", data[:4])
        yield kind & 0x3fff, data[4:length]
        data = data[(length + 3) & ~3:]

def attribute(kind, value):
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)

def ask(kind, flags, index=0, handle=0, parent=0, rest=b"", info=0):
    body = struct.pack("=IIIII", 0, index, handle, parent, info) + rest
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as near:
        near.bind((0, 0))
        near.send(struct.pack("=IHHII", 16 + len(body), kind, flags | 1, 1, 0) + body)
        answers = []
        while True:
            part = near.recv(65536)
            while part:
                length, kind = struct.unpack("=IH", part[:6])
                if kind == 2:
                    assert part[16:20] == bytes(4), struct.unpack("=i", part[16:20])
                if kind in (2, 3):
                    return answers
                answers.append(part[16:length])
                part = part[length:]

def dump(kind, index):
    found = []
    for body in ask(kind, 0x300, index):
        _, whose, handle, parent, _ = struct.unpack("=IIIII", body[:20])
        made_of = {kind: value for kind, value in attributes(body[20:])}
        if whose == index:
            options = made_of.get(2, b"")
            if made_of[1] == b"htb\\0" and kind == 38:
                options = options[:24]
            found.append([made_of[1].decode().strip("\\0"), hex(handle), hex(parent), options.hex()])
    return found

def qdiscs():
    return {name: [dump(38, index), dump(42, index)] for index, name in socket.if_nameindex() if name != "lo"}

def put(request, kind, handle, parent, options):
    rest = attribute(1, kind + b"\\0") + attribute(2, options)
    ask(request, 0x4 | 0x400 | 0x100, INDEX, handle, parent, rest)

def put_a_tree():
    put(36, b"htb", 5 << 16, ROOT, attribute(2, struct.pack("=IIIII", 3, 10, 1, 0, 0)))
    rate = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, 12_500_000)
    buckets = struct.pack("=IIIII", 20000, 20000, 3000, 0, 0)
    put(40, b"htb", 5 << 16 | 1, 5 << 16, attribute(1, rate + rate + buckets))
    put(36, b"pfifo", 6 << 16, 5 << 16 | 1, struct.pack("=I", 77))

WORDS = ["--backend", "kernel", "--queue-up", "pfifo limit 30", "--queue-down", "pfifo limit 40"]
RATES = ["--up", "4mbit", "--down", "5mbit"]

def settle(wanted):
    for _ in range(1000):
        if qdiscs() == wanted:
            break
        time.sleep(0.02)
    return qdiscs()
"""


def ended_by(end: str) -> str:
    """A script: the queues before a shaper, with it, and after that signal ends it, and its exit code."""
    return f"""{QDISCS}
put_a_tree()
before = qdiscs()
shaper, view = start(*WORDS, *RATES)
time.sleep(0.3)
during = qdiscs()
os.kill(view["pid"], signal.SIG{end})
code = shaper.wait(60)
print(json.dumps([before, during, code, settle(before), answers()]))
"""


FILTERED = f"""{QDISCS}
put_a_tree()
every = attribute(5, bytes([1, 0, 1]) + bytes(29))
every = attribute(1, b"u32\\0") + attribute(2, attribute(1, struct.pack("=I", 5 << 16 | 1)) + every)
ask(44, 0x604, INDEX, 0, 5 << 16, every, 1 << 16 | 0x300)
before = qdiscs()
done = subprocess.run([*WEIR, device, *WORDS, "--time", "1s"], capture_output=True, text=True)
print(json.dumps([done.returncode, done.stderr, qdiscs() == before]))
"""

GONE = r"""
import glob

def ip(words):
    subprocess.run(["ip", *words.split()], check=True)

UP = ["--up", "10mbit", "--down", "none", "--queue-up", "pfifo"]
DOWN = ["--up", "none", "--down", "10mbit", "--queue-down", "pfifo"]
MADE = "link add gone0 type veth peer name gone1\nlink set gone0 up\nlink set gone1 up\n"

def batch(words):
    subprocess.run(["ip", "-batch", "-"], input=words, text=True, check=True)

def shaped(backend="kernel", ways=UP):
    batch(MADE)
    words = [*WEIR, "gone0", "--quiet", *ways]
    shaper = subprocess.Popen([*words, "--backend", backend], stderr=subprocess.PIPE, text=True)
    while subprocess.run([*WEIR, "status", "gone0"], capture_output=True).returncode:
        assert shaper.poll() is None
        time.sleep(0.1)
    return shaper

def records():
    return glob.glob(f"/run/weir/shape/gone0-*-{os.stat('/proc/self/ns/net').st_ino}")

shaper = shaped()
ip("link del gone0")
said = shaper.communicate(timeout=60)[1]
shaper = shaped()
kept = records()
shaper.kill()
shaper.communicate()
for _ in range(500):
    if not records():
        break
    time.sleep(0.02)
left = records()
ip("link del gone0")
renamed = []
for backend in ("kernel", "userspace"):
    shaper = shaped(backend)
    ip("link set gone0 down")
    ip("link set gone0 name new0")
    renamed.append([shaper.communicate(timeout=60)[1], shaper.returncode])
    ip("link del new0")
recreated = []
for ways in (UP, DOWN):
    shaper = shaped("kernel", ways)
    batch("link del gone0\n" + MADE)
    recreated.append([shaper.communicate(timeout=60)[1], shaper.returncode])
    ip("link del gone0")
# One of whose packets the rules know by its name is shaped on: it is seen that it has no carrier.
shaper = shaped("userspace")
batch("link del gone0\n" + MADE + "link set gone1 down\n")
for _ in range(600):
    view = subprocess.run([*WEIR, "status", "gone0", "--json"], capture_output=True, text=True).stdout
    if "the device is down" in view:
        break
    time.sleep(0.05)
shaper.terminate()
shaped_on = ["the device is down" in view, shaper.communicate(timeout=60)[1], shaper.returncode]
print(json.dumps([said, kept, left, renamed, recreated, shaped_on]))
"""


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Any]]:
    """Scripts in which no time is measured, each in a lab of its own, all at once."""
    scripts = {"KILL": ended_by("KILL"), "TERM": ended_by("TERM"), "filtered": FILTERED, "gone": GONE}
    return in_labs(tmp_path_factory, scripts)


@pytest.mark.needs_lab
@pytest.mark.parametrize("end", ["KILL", "TERM"])
def test_the_kernels_queues_come_and_what_was_there_comes_back(
    unhurried: dict[str, Future[Any]], end: str
) -> None:
    [before, during, code, after, answers], _ = unhurried[end].result()
    device = "weir0"
    assert [it[0] for it in before[device][0]] == ["htb", "pfifo"]
    assert after == before
    assert list(after) == [device]
    assert code == (-9 if end == "KILL" else 0)
    assert answers == 100
    [ifb] = set(during) - {device}
    assert [it[:3] for it in during[device][0]] == [
        ["htb", "0x77650000", "0xffffffff"],
        ["pfifo", during[device][0][1][1], "0x77650001"],
        ["ingress", "0xffff0000", "0xfffffff1"],
    ]
    limits = {name: [it[3] for it in during[name][0] if it[0] == "pfifo"] for name in (device, ifb)}
    assert limits == {device: [(30).to_bytes(4, "little").hex()], ifb: [(40).to_bytes(4, "little").hex()]}
    rates = {name: int.from_bytes(bytes.fromhex(during[name][1][0][3])[12:16], "little") for name in limits}
    assert rates == {device: 4_000_000 // 8, ifb: 5_000_000 // 8}


@pytest.mark.needs_lab
def test_packets_wait_in_the_kernels_queue_and_the_controller_sees_it(weir: Weir, tmp_path: Path) -> None:
    [view, most, deaf, healed], _ = in_lab(
        weir,
        tmp_path,
        f"""{QDISCS}
before = qdiscs()
shaper, view = start(*WORDS, *RATES)
load = subprocess.Popen([sys.executable, {str(tmp_path / "upload.py")!r}])
download = "import socket; near = socket.create_connection(('server', 5001)); near.sendall(b'd')"
download = subprocess.Popen([sys.executable, "-c", download + "\\nwhile True: near.recv(65536)"])
most = [0, 0]
for _ in range(40):
    view = json.loads(subprocess.run([*WEIR, "status", device, "--json"], capture_output=True).stdout)
    waiting = [side["counts"]["backlog_packets"] for side in view["sides"]]
    most = [max(both) for both in zip(most, waiting)]
    if all(most) and all(side["counts"]["bytes"] > 100_000 for side in view["sides"]):
        break
load.kill()
download.kill()

# Both the shaper and its guard are killed: the next start heals what they left.
guards = [int(it) for it in os.listdir("/proc") if it.isdigit() and int(it) != os.getpid()]
guards = [it for it in guards if pathlib.Path(f"/proc/{{it}}/comm").read_text() == "weir-guard\\n"]
assert len(guards) == 1, guards
os.kill(guards[0], signal.SIGKILL)
os.kill(view["pid"], signal.SIGKILL)
shaper.wait(60)
deaf = qdiscs() == before
subprocess.run([*WEIR, device, *WORDS, *RATES, "--quiet", "--time", "1s"], check=True)
print(json.dumps([view, most, deaf, settle(before) == before]))
""",
    )
    egress, ingress = view["sides"]
    assert egress["rate_bps"] == 4_000_000
    assert ingress["rate_bps"] == 5_000_000
    assert 0 < most[0] <= 30
    assert 0 < most[1] <= 40
    assert not deaf
    assert healed


@pytest.mark.needs_lab
def test_what_could_not_be_put_back_is_left_alone(unhurried: dict[str, Future[Any]]) -> None:
    [code, said, same], _ = unhurried["filtered"].result()
    assert code == 1
    assert "its queue discipline `htb` has filters, so that it could not be put back" in said
    assert same


# Datagrams come back as they went, code point and all.
ECHO = """
import socket
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.bind(("", 5002))
near.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
while True:
    data, said, _, whence = near.recvmsg(2000, 100)
    near.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, said[0][2][0])
    near.sendto(data, whence)
"""

# What the disciplines beneath our classes have counted, by the number of the class.
TIERS = """
def tiers(name):
    found = {}
    for body in ask(38, 0x300):
        _, index, _, parent, _ = struct.unpack("=IIIII", body[:20])
        if index == socket.if_nametoindex(name) and parent >> 16 == 0x7765:
            [basic] = [value for kind, value in attributes(dict(attributes(body[20:]))[7]) if kind == 1]
            found[parent & 0xffff] = struct.unpack("=QI", basic[:12])[1]
    return [found[number] for number in sorted(found)]

def both_tiers():
    [ifb] = [name for _, name in socket.if_nameindex() if name.startswith("weirifb")]
    return [tiers(device), tiers(ifb)]
"""


@pytest.mark.needs_lab
def test_code_points_have_tiers_and_each_its_share(
    weir: Weir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_shape, "SERVER", ECHO)
    [rates, before, after, six, same], _ = in_lab(
        weir,
        tmp_path,
        f"""{QDISCS}{TIERS}
before = qdiscs()
words = ["--queue-up", "htb diffserv4 pfifo limit 30", "--queue-down", "htb diffserv4 pfifo limit 40"]
shaper, view = start("--backend", "kernel", *RATES, *words)
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.settimeout(2)
first = both_tiers()
# LE, CS1; EF; AF13; AF41, AF42, CS2.
for point in (1, 8, 46, 14, 34, 36, 16):
    near.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, point << 2)
    near.sendto(bytes(100), ("server", 5002))
    near.recv(2000)
then = both_tiers()
# IPv6, of which the line here knows nothing, goes as far as the queue.
far = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
address = socket.inet_pton(socket.AF_INET6, "fd77::1")
fcntl.ioctl(far, 0x8916, address + struct.pack("=Ii", 64, INDEX))
for point in (46, 40, 26, 8):
    far.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, point << 2)
    far.sendto(bytes(100), ("fd77::2", 5002))
last = tiers(device)
rates = [[*it[1:3], int.from_bytes(bytes.fromhex(it[3])[12:16], "little")] for it in qdiscs()[device][1]]
shaper.terminate()
shaper.wait(10)
print(json.dumps([rates, first, then, last, settle(before) == before]))
""",
    )
    assert same
    whole = 4_000_000 // 8
    shares = {hex(0x77650000 + number): whole // parts for number, parts in enumerate((16, 16, 2, 4), 1)}
    assert {handle: rate for handle, _, rate in rates} == {"0x77650010": whole, **shares}
    assert {above for handle, above, _ in rates if handle in shares} == {"0x77650010"}
    for side in range(2):
        counted = [late - early for late, early in zip(after[side], before[side], strict=True)]
        # Whatever else there is, such as a look for neighbours, has no code point.
        assert [counted[tier] for tier in (0, 2, 3)] == [2, 3, 1]
        assert counted[1] >= 1
    assert [six[tier] - after[0][tier] for tier in (0, 2, 3)] == [1, 1, 2]


@pytest.mark.needs_lab
def test_a_device_that_has_gone_is_told_as_gone(unhurried: dict[str, Future[Any]]) -> None:
    [said, *_], _ = unhurried["gone"].result()
    assert "the device `gone0` has gone" in said


@pytest.mark.needs_lab
def test_a_device_that_was_renamed_is_told_as_renamed(unhurried: dict[str, Future[Any]]) -> None:
    [*_, renamed, _, _], _ = unhurried["gone"].result()
    for said, code in renamed:
        assert said.splitlines()[-1] == (
            "weir: the device `gone0` is called `new0` now: begin again with `new0`"
        )
        assert code == 1


@pytest.mark.needs_lab
def test_a_device_that_was_made_anew_ends_its_shaper_whichever_way_is_shaped(
    unhurried: dict[str, Future[Any]],
) -> None:
    """Where only what comes is shaped, the queue is on another device, which stays."""
    [*_, recreated, _], _ = unhurried["gone"].result()
    for said, code in recreated:
        # Who looks before the next one is there sees none.
        assert said.splitlines()[-1] in {
            "weir: the device `gone0` has gone",
            "weir: the device `gone0` has gone and come again as another",
        }
        assert code == 1


@pytest.mark.needs_lab
def test_a_device_that_was_made_anew_is_shaped_on_in_userspace_and_looked_at(
    unhurried: dict[str, Future[Any]],
) -> None:
    [*_, (is_seen, said, code)], _ = unhurried["gone"].result()
    assert (is_seen, code) == (True, 0), said


@pytest.mark.needs_lab
def test_the_guard_of_a_killed_shaper_leaves_no_record(unhurried: dict[str, Future[Any]]) -> None:
    [_, kept, left, *_], _ = unhurried["gone"].result()
    assert len(kept) <= 1, "none where nobody may write below /run"
    assert left == []
