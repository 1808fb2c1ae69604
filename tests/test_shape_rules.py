"""Priority rules of `weir shape`: what files may say, and what becomes of packets in a lab."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import test_shape
from test_shape import in_lab
from test_shape_kernel import QDISCS, TIERS
from weirlab.errors import UsageError
from weirlab.shape import read_rules, rules_text, settings_of, shipped_rules

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    Weir = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.realtime


def test_the_shipped_list_is_whole_and_says_where_its_numbers_are_from() -> None:
    assert shipped_rules() == ["usual"]
    rules = read_rules("usual")
    assert len(rules["rules"]) == 20
    assert {rule["class"] for rule in rules["rules"]} == {"voice", "video", "bulk"}
    assert rules["rules"][0] == {
        "name": "acknowledgements",
        "class": "voice",
        "programs": [],
        "cgroups": [],
        "protocols": [],
        "ports": [],
        "hosts": [],
        "dscps": [],
        "acks": True,
    }
    assert rules_text("usual").count("\nsource = ") == 20
    for use in ("calls", "games", "names", "interactive", "bulk", "background"):
        assert any(rule["name"].startswith(use) for rule in rules["rules"]), use
    assert settings_of("eth0", {"rules": "usual"})["rules"] == rules


def test_what_a_file_says(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        """
mark = true
[[rule]]
name = "mine"
class = "bulk"
protocol = ["tcp", 17]
port = [80, "6881-6889"]
host = ["192.0.2.77/24", "fd00::1"]
dscp = ["af41", 8, "DF", "BK"]
[class.bulk]
up_max = "2mbit"
"""
    )
    assert read_rules(str(file)) == {
        "rules": [
            {
                "name": "mine",
                "class": "bulk",
                "programs": [],
                "cgroups": [],
                "protocols": [6, 17],
                "ports": [[80, 80], [6881, 6889]],
                "hosts": [["192.0.2.0", 24], ["fd00::1", 128]],
                "dscps": [34, 8, 0, 8],
                "acks": False,
            }
        ],
        "caps_bps": [[2_000_000, None, None, None], [None] * 4],
        "mark": True,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[rule]]\nname = "a"\nclass = "bulk"',
            "line 1: rule.0: it holds for every packet: write at least one of",
        ),
        ('[[rule]]\nname = "a"\nclass = "fast"\nport = [1]', "line 3: rule.0.class: `fast`: write 'bulk', "),
        ('[[rule]]\nclass = "bulk"\nport = [1]', "line 1: rule.0.name: this key is missing"),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprot = [1]',
            "line 4: rule.0.prot: unknown key, did you mean `port`? (known: name, class, program,",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nPROTOCOLS = [1]',
            "line 4: rule.0.PROTOCOLS: unknown key, did you mean `protocol`? (known: name, class, program,",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nport = ["9-8"]',
            "rule.0.port.0: `9-8`: write a number",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nhost = ["x"]',
            "rule.0.host.0: `x`: write an address",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprotocol = ["x"]',
            "line 4: rule.0.protocol.0: `x`: write one of",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\ndscp = [64]',
            "rule.0.dscp.0: `64` is no DSCP: write",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprotocol = ["icmp"]\nport = [53]',
            "line 1: rule.0: it holds for no packet, since only those of tcp and udp have ports",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprotocol = ["icmp", 47]\ncgroup = ["user.slice"]',
            "by which `cgroup` goes: add one of these to `protocol`, or leave out `cgroup`",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprotocol = ["udp"]\nacks = true',
            "line 1: rule.0: it holds for no packet, since only tcp has",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprotocol = ["icmp"]\nhost = ["2001:db8::1"]',
            "line 1: rule.0: it holds for no packet, since `icmp` goes between addresses of IPv4",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprotocol = ["icmpv6"]\nhost = ["192.0.2.0/24"]',
            "`host` has only others: write the protocol of the hosts",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprogram = ["curl", "/usr/bin/rsync"]',
            "line 1: rule.0: program `/usr/bin/rsync`: names are compared, and no paths: write `rsync`",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprogram = ["/"]',
            "program `/`: write the name of a program",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprogram = [""]',
            "program ``: write the name of a program, without blanks around",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\nprogram = ["curl "]',
            "program `curl `: write the name of a program, without blanks around",
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\ncgroup = ["/sys/fs/cgroup/system.slice/"]',
            "cgroup `/sys/fs/cgroup/system.slice/`: write the group within the hierarchy, `system.slice`",
        ),
        *(
            (
                f'[[rule]]\nname = "a"\nclass = "bulk"\ncgroup = ["{group}"]',
                f"cgroup `{group}`: all processes are within it: leave it out",
            )
            for group in ("", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/unified/")
        ),
        (
            '[[rule]]\nname = "a"\nclass = "bulk"\ncgroup = ["/sys/fs/cgroup/unified/a/b"]',
            "cgroup `/sys/fs/cgroup/unified/a/b`: write the group within the hierarchy, `a/b`",
        ),
        ('[class.bulk]\nup_max = "1kbit"', "line 2: class.bulk.up_max: `1kbit`: write 100kbit or more"),
        ("[[rule]", "line 1: "),
    ],
)
def test_a_wrong_rule_is_named_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read_rules(str(file))
    assert str(error.value).startswith(str(file))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


RULES = """
mark = true
[[rule]]
name = "this program"
class = "bulk"
program = ["PROGRAM"]
port = [5002]
[[rule]]
name = "that port"
class = "voice"
port = [5003]
[[rule]]
name = "what comes in bursts"
class = "video"
port = [5005]
[class.bulk]
up_max = "1mbit"
[class.video]
down_max = "1mbit"
"""

# Who sends says the code point with which its datagrams come back from a socket that tells it (IP_RECVTOS).
# From one port 9 datagrams of 1250 bytes come back.
TOS = """
import socket, sys, threading
def serve(port):
    near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    near.bind(("", port))
    near.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    while True:
        _, ancillary, _, whence = near.recvmsg(2000, 100)
        for _ in range(9 if port == 5005 else 1):
            near.sendto(bytes([ancillary[0][2][0]]) + bytes(1221 if port == 5005 else 0), whence)
for port in (5002, 5003, 5004, 5005):
    threading.Thread(target=serve, args=(port,)).start()
"""


@pytest.mark.quiet
@pytest.mark.needs_lab
def test_classes_by_program_and_port_reach_the_wire_and_have_their_own_rates(
    weir: Weir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_shape, "SERVER", TOS)
    program = "weir-rules-test"
    (tmp_path / "rules.toml").write_text(RULES.replace("PROGRAM", program))
    [marks, came, burst], _ = in_lab(
        weir,
        tmp_path,
        f"""
pathlib.Path("/proc/self/comm").write_text({program!r})
WORDS = ["--backend", "userspace", "--rules", {str(tmp_path / "rules.toml")!r}]
WORDS += ["--up", "6mbit", "--down", "6mbit"]
shaper, view = start(*WORDS)
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.settimeout(20)
def mark(port):
    near.sendto(b"?", ("server", port))
    return near.recv(10)[0] >> 2
first = [mark(port) for port in (5004, 5003, 5002)]
# By now it is known whose socket that is.
for _ in range(1000):
    if mark(5002) != 0:
        break
    time.sleep(0.02)
marks = [first[0], first[1], mark(5002)]
# 9 datagrams of 1250 bytes at 1 Mbit/s, the first at once: 80 ms, too few for CoDel; at 6 Mbit/s 13 ms.
began = time.monotonic()
for _ in range(9):
    near.sendto(bytes(1222), ("server", 5002))
came = []
for _ in range(9):
    near.recv(10)
    came.append(time.monotonic() - began)
# As many come, of a class that has a greatest rate on that way.
near.sendto(b"?", ("server", 5005))
burst = []
for _ in range(9):
    near.recv(2000)
    burst.append(time.monotonic())
shaper.terminate()
shaper.wait(timeout=60)
print(json.dumps([marks, came, burst]))
""",
    )
    assert marks == [0, 46, 8]
    assert came[-1] > 0.075, "no sooner than the class' rate lets them"
    assert burst[-1] - burst[0] > 0.075, "the same on the way in"


CGROUP_RULES = """
mark = true
[[rule]]
name = "a group"
class = "voice"
cgroup = ["GROUP"]
port = [5002]
"""

TIERED = ["--queue-up", "htb diffserv4 pfifo limit 50", "--queue-down", "htb diffserv4 pfifo limit 50"]


@pytest.mark.needs_lab
@pytest.mark.parametrize(("backend", "queues"), [("userspace", []), ("kernel", TIERED)])
def test_a_group_of_processes_has_its_class(
    weir: Weir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, queues: list[str]
) -> None:
    monkeypatch.setattr(test_shape, "SERVER", TOS)
    # Groups are the machine's: another run of the suite may have one of the same name.
    group = f"weir-{os.getpid()}-{tmp_path.name}"
    (tmp_path / "rules.toml").write_text(CGROUP_RULES.replace("GROUP", group))
    (tmp_path / "groups").mkdir()
    found, _ = in_lab(
        weir,
        tmp_path,
        f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
groups = pathlib.Path({str(tmp_path / "groups")!r})
ours = groups / {group!r}
CLONE_NEWCGROUP = 0x02000000
try:
    if libc.unshare(CLONE_NEWCGROUP) or libc.mount(b"none", bytes(groups), b"cgroup2", 0, None):
        raise OSError(ctypes.get_errno(), "cgroup2")
    ours.mkdir()
except OSError as error:
    print(json.dumps(str(error)))
    raise SystemExit(0)
shaper = subprocess.Popen([*WEIR, device, "--quiet", "--backend", {backend!r}, "--up", "6mbit",
                           "--down", "6mbit", "--rules", {str(tmp_path / "rules.toml")!r}, *{queues!r}])
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.settimeout(1)
def mark(port):
    near.sendto(b"?", ("server", port))
    return near.recv(10)[0] >> 2
def seen(wanted):
    for _ in range(100):
        found = mark(5002)
        if found == wanted:
            break
        time.sleep(0.05)
    return found
try:
    for _ in range(200):
        if b"sides" in subprocess.run([*WEIR, "status", device, "--json"], capture_output=True).stdout:
            break
        time.sleep(0.05)
    outside = mark(5002)
    (ours / "cgroup.procs").write_text("0")
    found = [outside, seen(46), mark(5003)]
    (groups / "cgroup.procs").write_text("0")
    found.append(seen(0))
finally:
    shaper.terminate()
    shaper.wait(timeout=60)
    (groups / "cgroup.procs").write_text("0")
    ours.rmdir()
print(json.dumps(found))
""",
    )
    if isinstance(found, str):
        pytest.skip(f"no groups of version 2 can be made here: {found}")
    # Before, within, to another port, and after.
    assert found == [0, 46, 0, 0]


KERNEL_RULES = """
mark = true
[[rule]]
name = "this program"
class = "bulk"
program = ["PROGRAM"]
port = [5002]
[[rule]]
name = "those ports"
class = "voice"
protocol = ["udp"]
port = ["5003-5003", 6000]
[[rule]]
name = "a host's"
class = "video"
host = ["10.1.0.0/24"]
dscp = ["AF11", "AF12"]
[[rule]]
name = "acknowledgements"
class = "voice"
acks = true
[class.bulk]
up_max = "1mbit"
"""

DOWNLOAD = """
server = socket.create_server(("", 5006))
while True:
    far, _ = server.accept()
    far.sendall(bytes(200_000))
    far.close()
"""


@pytest.mark.needs_lab
def test_the_kernel_gives_packets_their_classes_on_both_ways(
    weir: Weir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_shape, "SERVER", TOS + DOWNLOAD)
    program = "weir-rules-test"
    (tmp_path / "rules.toml").write_text(KERNEL_RULES.replace("PROGRAM", program))
    [marks, ports, acks, rates, same, left], _ = in_lab(
        weir,
        tmp_path,
        f"""{QDISCS}{TIERS}
pathlib.Path("/proc/self/comm").write_text({program!r})
before = qdiscs()
WORDS = ["--backend", "kernel", "--rules", {str(tmp_path / "rules.toml")!r}, "--queue-up",
         "htb diffserv4 pfifo limit 100", "--queue-down", "htb diffserv4 pfifo limit 100"]
shaper, view = start(*WORDS, "--up", "6mbit", "--down", "6mbit")
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.settimeout(2)
def mark(port, point=0):
    near.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, point << 2)
    near.sendto(b"?", ("server", port))
    return near.recv(10)[0] >> 2
for _ in range(100):
    if mark(5002) == 8:
        break
    time.sleep(0.05)
counted = [both_tiers()]
marks = []
for port, point in ((5002, 0), (5003, 0), (5004, 0), (5004, 10), (5004, 18), (5003, 10)):
    marks.append(mark(port, point))
    counted.append(both_tiers())
ports = [[[late - early for late, early in zip(*ways)] for ways in zip(after, before)]
         for before, after in zip(counted, counted[1:])]
far = socket.create_connection(("server", 5006))
while far.recv(65536):
    pass
acks = [[late - early for late, early in zip(*ways)] for ways in zip(both_tiers(), counted[-1])]
ceilings = [int.from_bytes(bytes.fromhex(it[3])[24:28], "little") for it in qdiscs()[device][1]]
during = tables()
shaper.terminate()
shaper.wait(10)
print(json.dumps([marks, ports, acks, sorted(ceilings), settle(before) == before, [during, tables()]]))
""",
    )
    # A code point that no rule is about stays; that of a class is written.
    assert marks == [8, 46, 0, 24, 18, 46]
    bulk, rest, video, voice = range(4)
    for [out, back], goes, comes in zip(
        ports, (bulk, voice, rest, video, video, voice), (bulk, voice, rest, rest, rest, voice), strict=True
    ):
        assert out[goes] >= 1
        assert sum(out[tier] for tier in (bulk, video, voice) if tier != goes) == 0
        assert back[comes] >= 1
        assert sum(back[tier] for tier in (bulk, video, voice) if tier != comes) == 0
    [out, back] = acks
    assert out[voice] > 20
    # What opens and what ends a connection is no acknowledgement, and neither is data.
    assert 0 < out[rest] <= 5
    assert back[rest] > 100
    assert rates == [125_000, 750_000, 750_000, 750_000, 750_000]
    assert same
    assert left == [2, 0]
