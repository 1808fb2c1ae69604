# ruff: noqa: INP001
"""Records what Linux makes of packets, as vectors for `crates/packet`.

As root: `unshare -n python3 record.py`.

Two TUN devices in a network namespace, forwarding between them. `a` takes GSO packets; `b` has no
offloads, so the kernel cuts them. Printed are, for each case, what was written to `a` and what came
out of either.
"""

import fcntl
import os
import platform
import select
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
NEEDS_CSUM, TCPV4, TCPV6, UDP_L4, ECN = 1, 1, 4, 5, 0x80
TCP, UDP = 6, 17
V4 = bytes([10, 0, 0, 1]), bytes([10, 0, 1, 1])
V6 = bytes.fromhex("fd" + "00" * 14 + "02"), bytes.fromhex("fd" + "00" * 6 + "01" + "00" * 7 + "02")
SET_UP = """
addr add 10.0.0.254/24 dev a
addr add 10.0.1.254/24 dev b
addr add fd00::fe/64 dev a nodad
addr add fd00:0:0:1::fe/64 dev b nodad
link set dev lo up
link set dev a up
link set dev b up
"""


def main() -> None:
    """Sets two devices up, and shows what the kernel answers to every case."""
    a, b = device("a"), device("b")
    for line in SET_UP.split("\n"):
        if line:
            subprocess.run(["ip", *line.split()], check=True)
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        Path(f"/proc/sys/net/{name}").write_text("1")
    time.sleep(1)
    release = platform.release().split("-")[0]
    print(f"# Recorded from Linux {release} by record.py: case, direction, bytes; `in` with a virtio header.")
    for name, header, packet in cases():
        for device_ in (a, b):
            drain(device_)
        os.write(a, header + packet)
        print(name, "in", (header + packet).hex())
        for side, device_ in (("back", a), ("out", b)):
            for answer in drain(device_):
                print(name, side, answer.hex())


def cases() -> Iterator[tuple[str, bytes, bytes]]:
    """Name, virtio header, packet."""
    payload = bytes(range(130))
    for name, flags, fragment, ident, tos in [
        ("tcp4", 0x10, 0x4000, 7, 0),
        ("tcp4-psh-fin-cwr", 0x99, 0x4000, 0xFFFF, 0xBA),
        ("tcp4-no-df", 0x18, 0, 65534, 3),
    ]:
        gso = TCPV4 | (ECN if flags & 0x80 else 0)
        packet = ip4(TCP, tcp(flags, payload, V4), fragment, ident, tos)
        yield name, virtio(gso, 52, 50, 20, 16), packet
    yield "tcp4-options", virtio(TCPV4, 60, 50, 28, 16), ip4(TCP, tcp(0x18, payload, V4), options=b"\1" * 8)
    yield "tcp6", virtio(TCPV6 | ECN, 72, 50, 40, 16), ip6(TCP, tcp(0x98, payload, V6), tos=0xBB)
    yield "udp4", virtio(UDP_L4, 28, 51, 20, 6), ip4(UDP, udp(payload, V4))
    yield "udp6", virtio(UDP_L4, 48, 51, 40, 6), ip6(UDP, udp(payload, V6))
    plain = bytes(10)
    long = bytes(range(256)) * 5
    yield "checksum4", virtio(0, 0, 0, 20, 16), ip4(TCP, tcp(0x18, payload[:77], V4))
    yield "checksum6", virtio(0, 0, 0, 40, 6), ip6(UDP, udp(payload[:77], V6))
    yield "expired4", plain, ip4(UDP, udp(payload[:20], V4), tos=0xBA, ttl=1)
    yield "expired4-long", plain, ip4(UDP, udp(long, V4), tos=0x05, ttl=1)
    yield "expired6", plain, ip6(UDP, udp(payload[:20], V6), tos=0xBA, ttl=1)
    yield "expired6-long", plain, ip6(UDP, udp(long, V6), ttl=1)
    yield "expired4-error", plain, ip4(1, icmp(3), ttl=1)
    yield "expired4-echo", plain, ip4(1, icmp(8), ttl=1)
    yield "expired4-later-fragment", plain, ip4(UDP, payload[:24], fragment=3, ttl=1)
    yield "expired4-first-fragment", plain, ip4(UDP, udp(payload[:24], V4), fragment=0x2000, ttl=1)


def device(name: str) -> int:
    """Opens a TUN device whose packets have virtio headers."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
    return file


def drain(device_: int) -> Iterator[bytes]:
    """Packets without their virtio headers, but for the kernel's own (neighbours, multicast)."""
    while select.select([device_], [], [], 0.2)[0]:
        packet = os.read(device_, 70_000)[10:]
        chatter = packet[0] >> 4 == 6 and packet[24] == 0xFF
        if not chatter:
            yield packet


def virtio(gso: int, header: int, size: int, start: int, offset: int) -> bytes:
    """A virtio header that leaves the checksum to the device."""
    return struct.pack("=BBHHHH", NEEDS_CSUM, gso, header, size, start, offset)


def ip4(  # noqa: PLR0913, PLR0917 (fields of the header)
    protocol: int,
    body: bytes,
    fragment: int = 0x4000,
    ident: int = 7,
    tos: int = 0,
    ttl: int = 64,
    options: bytes = b"",
) -> bytes:
    """An IPv4 packet with its header checksum."""
    length = 20 + len(options)
    words = (0x40 | length // 4, tos, length + len(body), ident, fragment, ttl, protocol, 0, *V4)
    header = struct.pack("!BBHHHBBH4s4s", *words) + options
    return header[:10] + struct.pack("!H", ~total(header) & 0xFFFF) + header[12:] + body


def ip6(protocol: int, body: bytes, tos: int = 0, ttl: int = 64) -> bytes:
    """An IPv6 packet."""
    return struct.pack("!IHBB16s16s", 6 << 28 | tos << 20 | 0x12345, len(body), protocol, ttl, *V6) + body


def tcp(flags: int, payload: bytes, addresses: tuple[bytes, bytes]) -> bytes:
    """A TCP segment with its pseudo header's sum."""
    options = bytes([1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 4])
    partial = pseudo(addresses, TCP, 32 + len(payload))
    header = struct.pack("!HHIIBBHHH", 1000, 2000, 0xFFFFFFC0, 2000, 8 << 4, flags, 500, partial, 0)
    return header + options + payload


def udp(payload: bytes, addresses: tuple[bytes, bytes]) -> bytes:
    """A UDP datagram with its pseudo header's sum."""
    length = 8 + len(payload)
    return struct.pack("!HHHH", 1000, 2000, length, pseudo(addresses, UDP, length)) + payload


def icmp(kind: int) -> bytes:
    """An ICMP message that quotes an empty datagram."""
    message = struct.pack("!BBHHH", kind, 0, 0, 77, 3) + ip4(UDP, udp(b"", V4))
    return message[:2] + struct.pack("!H", ~total(message) & 0xFFFF) + message[4:]


def pseudo(addresses: tuple[bytes, bytes], protocol: int, length: int) -> int:
    """The sum of the pseudo header."""
    return total(addresses[0] + addresses[1] + struct.pack("!IHH", length, 0, protocol))


def total(data: bytes) -> int:
    """The one's complement sum."""
    words = struct.unpack(f"!{len(data) // 2}H", data)
    result = sum(words)
    while result >> 16:
        result = (result & 0xFFFF) + (result >> 16)
    return result


main()
