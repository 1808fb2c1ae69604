"""Packets of a simulated run as pcapng: bytes that other programs read, and that agree with the record."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections import Counter
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal, NamedTuple

import pytest

import weirlab
from weirlab.capture import Packets
from weirlab.errors import UsageError, WeirError
from weirlab.export import export
from weirlab.record import open_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirlab.record import Record

SHORT = {"idle": "1s", "load": "2s", "cooldown": "500ms"}


class Packet(NamedTuple):
    """An IP packet of a capture: its interface, its time in ns, its length, and the bytes that were kept."""

    hop: str
    at_ns: int
    length: int
    data: bytes


def blocks(file: Path) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each block; lengths at both ends must agree and lead to the file's end."""
    data, place = file.read_bytes(), 0
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, place + length - 4) == (length,)
        yield kind, data[place + 8 : place + length - 4]
        place += length


def captured(file: Path) -> list[Packet]:
    """The packets of a file."""
    names, found = [], []
    for kind, body in blocks(file):
        if kind == 1:
            assert struct.unpack_from("<H", body) == (1,), "Ethernet"
            _, length = struct.unpack_from("<HH", body, 8)
            names.append(body[12 : 12 + length].decode())
        elif kind == 6:
            interface, high, low, kept, length = struct.unpack_from("<5I", body)
            data = body[20 : 20 + kept]
            assert data[:14] == bytes(12) + {4: b"\x08\x00", 6: b"\x86\xdd"}[data[14] >> 4]
            found.append(Packet(names[interface], high << 32 | low, length - 14, data[14:]))
    return found


def folded(data: bytes) -> int:
    """The sum of 16-bit words in one's complement (RFC 1071): 0xffff of what has its own checksum in it."""
    total: int = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Segment(NamedTuple):
    """Transport of a packet: protocol, addresses with ports, and its bytes."""

    protocol: int
    src: tuple[str, int]
    dst: tuple[str, int]
    data: bytes


def transport(packet: Packet) -> Segment:
    """The transport of a packet, whose lengths and checksums must be right."""
    data = packet.data
    assert len(data) == packet.length
    if data[0] >> 4 == 4:
        assert data[0] & 15 == 5
        assert struct.unpack_from(">H", data, 2) == (packet.length,)
        assert folded(data[:20]) == 0xFFFF
        protocol, addresses, rest = data[9], data[12:20], data[20:]
    else:
        assert struct.unpack_from(">H", data, 4) == (packet.length - 40,)
        protocol, addresses, rest = data[6], data[8:40], data[40:]
    half = len(addresses) // 2
    pseudo = addresses + struct.pack(">II", len(rest), protocol)
    assert folded(rest if protocol == 1 else pseudo + rest) == 0xFFFF
    src, dst = (str(ip_address(one)) for one in (addresses[:half], addresses[half:]))
    ports = struct.unpack_from(">HH", rest) if protocol in (6, 17) else (0, 0)
    return Segment(protocol, (src, ports[0]), (dst, ports[1]), rest)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """RRUL with ECN through a queue that drops and marks."""
    out = tmp_path_factory.mktemp("capture") / "out"
    return weirlab.run("rrul", queue="htb rate 90% pfifo limit 30", phases=SHORT, tcp={"ecn": True}, out=out)[
        0
    ]


def hops_of(record: Record) -> list[str]:
    path = record.manifest.scenario["path"]
    return [f"{way}/{hop['name']}" for way in ("up", "down") for hop in path[way]]


def test_every_packet_that_leaves_a_hop_is_there_with_right_lengths_and_checksums(
    record: Record, tmp_path: Path
) -> None:
    hops = tuple(hops_of(record))
    (file,) = export([record], tmp_path / "all.pcapng", packets=Packets(hops=hops))
    packets = captured(file)
    assert len(packets) == record.manifest.packets
    times = [packet.at_ns for packet in packets]
    assert times == sorted(times)
    protocols = Counter(transport(packet).protocol for packet in packets)
    assert set(protocols) == {1, 6, 17}
    # The same record gives the same bytes.
    export([record], tmp_path / "again.pcapng", packets=Packets(hops=hops))
    assert (tmp_path / "again.pcapng").read_bytes() == file.read_bytes()


def test_streams_of_tcp_are_whole_and_acknowledged_by_bytes(record: Record, tmp_path: Path) -> None:
    (file,) = export([record], tmp_path / "tcp.pcapng")
    sent: dict[tuple[tuple[str, int], tuple[str, int]], list[tuple[int, int]]] = {}
    acks: dict[tuple[tuple[str, int], tuple[str, int]], int] = {}
    options: set[int] = set()
    for packet in captured(file):
        protocol, src, dst, data = transport(packet)
        if protocol != 6:
            continue
        seq, ack = struct.unpack_from(">II", data, 4)
        header, flags = (data[12] >> 4) * 4, data[13]
        end = seq + len(data) - header + (flags >> 1 & 1)
        if end > seq:
            sent.setdefault((src, dst), []).append((seq, end))
        highest = max((stop for _, stop in sent.get((dst, src), [])), default=0)
        if flags & 0x10:
            # What is acknowledged has left the queue before.
            assert ack <= highest
            acks[src, dst] = max(ack, acks.get((src, dst), 0))
        place = 20
        while place < header:
            kind = data[place]
            options.add(kind)
            length = 1 if kind < 2 else data[place + 1]
            if kind == 5:
                edges = struct.unpack_from(f">{(length - 2) // 4}I", data, place + 2)
                assert all(low < high <= highest for low, high in zip(edges[::2], edges[1::2], strict=True))
            place += length
        assert place == header
    # Of SYNs and behind losses: no operation, MSS, window scale, SACK permitted, SACK, timestamps.
    assert options == {1, 2, 3, 4, 5, 8}
    assert len(sent) == 16
    for (src, dst), ranges in sent.items():
        reached = 0
        for seq, end in sorted(ranges):
            assert seq <= reached, "a gap in what was sent"
            reached = max(reached, end)
        assert acks[dst, src] <= reached
    # What was delivered is acknowledged but for the last acknowledgements, which may be dropped or under way.
    for number, delivered in enumerate(record.flows["delivered_bytes"]):
        of_flow = [ack - 1 for (src, dst), ack in acks.items() if 10_000 + number in (src[1], dst[1])]
        assert 0.9 * delivered <= max(of_flow) <= delivered
    assert record.flows["delivered_bytes"].sum() > 1_000_000


def time_to_live(packet: Packet) -> int:
    """TTL or hop limit of a packet."""
    return packet.data[8 if packet.data[0] >> 4 == 4 else 7]


@pytest.mark.parametrize("ip", [4, 6])
def test_each_router_takes_one_off_the_time_to_live(tmp_path: Path, ip: Literal[4, 6]) -> None:
    """That of echoes, too, in both directions: the first hop sees what the sender sent."""
    (made,) = weirlab.run("rrul", ip=ip, phases=SHORT, out=tmp_path / "out")
    (file,) = export([made], tmp_path / "all.pcapng", packets=Packets(hops=tuple(hops_of(made)), snap_len=80))
    seen: dict[tuple[str, int], set[int]] = {}
    for packet in captured(file):
        protocol = packet.data[9 if ip == 4 else 6]
        seen.setdefault((packet.hop, protocol), set()).add(time_to_live(packet))
    path = made.manifest.scenario["path"]
    assert min(len(path["up"]), len(path["down"])) > 1
    assert seen == {
        (f"{way}/{hop['name']}", protocol): {64 - place}
        for way in ("up", "down")
        for place, hop in enumerate(path[way])
        for protocol in (1 if ip == 4 else 58, 6, 17)
    }


def test_what_a_router_answers_passes_the_routers_between_it_and_the_client(tmp_path: Path) -> None:
    """From two and three routers away on a path of three hops they enter at the last and the second hop."""
    hops = [{"name": name, "delay": "1ms"} for name in "abc"]
    probes = [{"name": f"router {ttl}", "kind": "udp_ttl", "ttl": ttl} for ttl in (2, 3)]
    (made,) = weirlab.run(
        {"name": "routers", "title": "Routers", "phases": {"idle": "1s"}, "probes": probes},
        link={"name": "three", "title": "Three hops", "up": hops, "down": hops},
        out=tmp_path / "out",
    )
    (file,) = export([made], tmp_path / "all.pcapng", packets=Packets(hops=tuple(hops_of(made))))
    seen: dict[tuple[str, str, int], set[int]] = {}
    for packet in captured(file):
        protocol, src, _, _ = transport(packet)
        sender = "client" if protocol == 17 else src[0]
        seen.setdefault((packet.hop, sender, protocol), set()).add(time_to_live(packet))
    assert seen == {
        ("up/a", "client", 17): {2, 3},
        ("up/b", "client", 17): {2},
        ("down/b", "10.2.0.3", 1): {64},
        ("down/c", "10.2.0.3", 1): {63},
        ("down/c", "10.2.0.2", 1): {64},
    }


def test_arrivals_have_what_the_queue_drops(record: Record, tmp_path: Path) -> None:
    hop = hops_of(record)[0]
    export([record], tmp_path / "in.pcapng", packets=Packets(hops=(hop,), arrivals=True))
    export([record], tmp_path / "out.pcapng", packets=Packets(hops=(hop,)))
    arrived, left = captured(tmp_path / "in.pcapng"), captured(tmp_path / "out.pcapng")
    dropped = record.flows.filter(record.flows["direction"] == "up")["dropped_packets"].sum()
    assert dropped > 0
    assert len(arrived) - len(left) >= dropped
    # What the client sends comes here first: all of its echoes, numbered from 0.
    echoes = [transport(packet).data for packet in arrived if transport(packet).protocol == 1]
    numbers = [struct.unpack_from(">H", echo, 6)[0] for echo in echoes if echo[0] == 8]
    probe = record.probe_names.index("Ping (ms) ICMP")
    assert numbers == list(range(record.latency.filter(record.latency["probe"] == probe).height))


def test_of_long_packets_only_the_beginning_is_kept_if_that_is_asked(record: Record, tmp_path: Path) -> None:
    export([record], tmp_path / "short.pcapng", packets=Packets(snap_len=60))
    export([record], tmp_path / "whole.pcapng")
    short, whole = captured(tmp_path / "short.pcapng"), captured(tmp_path / "whole.pcapng")
    assert [one.data for one in short] == [one.data[:60] for one in whole]
    assert [one.length for one in short] == [one.length for one in whole]
    assert [packet.hop.partition("/")[0] for packet in whole].count("up") > 0


@pytest.mark.parametrize(
    "words", [{"ip": 6}, {"test": "voip-rrul"}, {"test": "rrul_spec"}, {"test": "dns"}, {"shaper": "auto"}]
)
def test_packets_of_other_kinds_have_right_checksums_too(words: dict[str, object], tmp_path: Path) -> None:
    made = weirlab.run(**{"test": "rrul_be", "phases": SHORT, "out": tmp_path / "out", **words})  # type: ignore[arg-type]
    (file,) = export(made, tmp_path / "run.pcapng")
    assert len({transport(packet)[1:3] for packet in captured(file)}) > 8


def test_a_speed_test_opens_connections_that_are_whole(tmp_path: Path) -> None:
    made = weirlab.run(
        "ping",
        methods=[{"name": "ndt7", "kind": "ndt7", "start": "1s"}],
        phases={"load": "6s"},
        out=tmp_path / "out",
    )
    (file,) = export(made, tmp_path / "run.pcapng")
    segments = [transport(packet) for packet in captured(file)]
    assert any(one.protocol == 6 and one.data[13] & 2 for one in segments)


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not there")
def test_tcpdump_reads_all_packets_of_both_interfaces(record: Record, tmp_path: Path) -> None:
    (file,) = export([record], tmp_path / "run.pcapng")
    packets = captured(file)
    assert {packet.hop.split("/")[0] for packet in packets} == {"up", "down"}
    done = subprocess.run(
        ["tcpdump", "-nqtr", str(file)], check=True, capture_output=True, text=True, timeout=120
    )
    assert "Ethernet" in done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("IP ")]) == len(packets)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not there")
def test_tshark_finds_nothing_wrong(record: Record, tmp_path: Path) -> None:
    (file,) = export([record], tmp_path / "run.pcapng")
    check = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
    wrong = (
        "_ws.malformed or ip.checksum.status == 0 or tcp.checksum.status == 0 or udp.checksum.status == 0 or "
        "icmp.checksum.status == 0 or tcp.analysis.ack_lost_segment"
    )
    found = subprocess.run(
        ["tshark", "-r", file, *check, "-Y", wrong], check=True, capture_output=True, text=True, timeout=120
    )
    assert found.stdout == ""


def test_what_has_no_packets_is_refused_in_one_sentence(record: Record, tmp_path: Path) -> None:
    target = tmp_path / "run.pcapng"
    with pytest.raises(UsageError, match=r"there is no hop `up/nowhere` \(there are: up/"):
        export([record], target, packets=Packets(hops=("up/nowhere",)))
    with pytest.raises(UsageError, match=r"only a \.pcapng file has packets"):
        export([record], tmp_path / "run.csv", packets=Packets(arrivals=True))
    for key, value, says in (
        ("world", "lab", "weir lab exec --pcap FILE"),
        ("world", "net", "use tcpdump"),
        ("complete", False, "cut short"),
        ("events", 1, "make the run anew"),
    ):
        other = open_record(record.path)
        object.__setattr__(other.manifest, key, value)
        with pytest.raises(WeirError, match=says):
            export([other], target)
    assert list(tmp_path.iterdir()) == []
