"""Hostile bytes at the ports of a server: random ones, and messages of its protocols with something changed.

`assault` starts a server of its own, feeds it, and asks whether it is well afterwards and ends as it should.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from torture.call import LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class BrokenError(Exception):
    """The server did not withstand: what it did instead."""


@dataclass
class Server:
    """A server at work.

    Attributes:
        process: it.
        address, irtt: where it listens, TCP and UDP, and for irtt.
        told: the lines of its log.
    """

    process: subprocess.Popen[str]
    address: tuple[str, int]
    irtt: tuple[str, int]
    told: list[str] = field(default_factory=list)


def assault(program: Sequence[str], seed: int, seconds: float) -> int:
    """Feeds a server that `program` starts for so long, and returns how many messages it got.

    Args:
        program: what starts a `weir serve`; the ports are added.
        seed: of all that is sent: the same messages in the same order.
        seconds: how long.

    Raises:
        BrokenError: if it ended, panicked, does not answer `/healthz` with 200 and `ok`, or does not exit
            with 0.
    """
    chance = random.Random(seed)  # noqa: S311 - it draws what is tried
    with _serving([*program, "--listen", "127.0.0.1:0", "--irtt-port", "0", "--json"]) as server:
        until = time.monotonic() + seconds
        count = 0
        while count == 0 or time.monotonic() < until:
            message = _message(chance)
            way = chance.choice((_over_tcp, _over_tcp, _over_udp))
            # It may refuse whatever it likes: what counts is what it is like afterwards.
            with suppress(OSError):
                way(chance, server, message)
            count += 1
            if server.process.poll() is not None:
                raise BrokenError(
                    f"it ended with {server.process.returncode} at message {count}: {message!r}"
                )
        _check_health(server)
        server.process.send_signal(signal.SIGTERM)
        try:
            code = server.process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise BrokenError(f"it has not ended {LIMIT_S} s after SIGTERM") from None
    if code:
        raise BrokenError(f"it ended with {code} after SIGTERM")
    panics = [line for line in server.told if "panicked at" in line]
    if panics:
        raise BrokenError(f"a panic: {panics[0][:200]}")
    return count


@contextmanager
def _serving(command: Sequence[str]) -> Iterator[Server]:
    """The server that `command` starts, once it listens; it is gone afterwards, whatever happens."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        reader = None
        try:
            said: dict[str, str] = {}
            while not {"address", "irtt"} <= said.keys():
                line = process.stderr.readline()
                if not line:
                    raise BrokenError("it ended before it listened")
                said |= json.loads(line)
            server = Server(process, _pair(said["address"]), _pair(said["irtt"]))
            # A pipe that nobody reads would hold it up.
            reader = threading.Thread(target=server.told.extend, args=(process.stderr,))
            reader.start()
            yield server
        finally:
            process.kill()
            if reader is not None:
                reader.join(LIMIT_S)


def _check_health(server: Server) -> None:
    """Asks how it is until it is well: connections of before may still fill what an address may have.

    Raises:
        BrokenError: if it is not in time.
    """
    until = time.monotonic() + LIMIT_S
    said = "nothing"
    while time.monotonic() < until:
        connection = HTTPConnection(*server.address, timeout=LIMIT_S)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            said = f"{answer.status} {answer.read()!r}"
            if answer.status == 200 and b'"status":"ok"' in said.encode():
                return
        except (OSError, HTTPException) as error:
            said = repr(error)
        finally:
            connection.close()
        time.sleep(0.2)
    raise BrokenError(f"/healthz says {said[:300]}")


def _over_tcp(chance: random.Random, server: Server, message: bytes) -> None:
    """Sends it in some pieces, reads a little or nothing, and goes: properly, or with a reset."""
    with socket.create_connection(server.address, timeout=READ_S) as near:
        cuts = sorted(chance.randrange(len(message) + 1) for _ in range(chance.randrange(3)))
        for start, end in zip([0, *cuts], [*cuts, len(message)], strict=True):
            near.sendall(message[start:end])
        if chance.random() < 0.5:
            with suppress(TimeoutError):
                near.recv(1 << 16)
        if chance.random() < 0.3:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _over_udp(chance: random.Random, server: Server, message: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near:
        near.sendto(message[:MAX_DATAGRAM_BYTES], chance.choice((server.address, server.irtt)))


def _message(chance: random.Random) -> bytes:
    """Random bytes, or a message of one of the protocols with some bytes changed, cut or repeated."""
    if chance.random() < 0.2:
        return chance.randbytes(chance.choice((0, 1, 10, 100, 1000, 20_000)))
    message = bytearray(chance.choice(_MESSAGES))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(message) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            message[at:at] = chance.choice(_ODD)
        elif kind == 1:
            message[at : at + chance.randrange(1, 20)] = chance.randbytes(chance.randrange(20))
        elif kind == 2:
            del message[at:]
        else:
            message[at:at] = message[:at] * chance.randrange(1, 50)
    return bytes(message[:MAX_MESSAGE_BYTES])


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _known_messages() -> list[bytes]:
    """Heads of requests, upgrades with frames behind them, lines, and what the fuzz targets' corpus has."""
    paths = [
        *("/", "/healthz", "/metrics", "/empty", "/weir/v1", "/ndt/v7/download", "/ndt/v7/upload"),
        *("/__down?bytes=100", "/__up", "/backend/garbage?ckSize=1", "/upload", "/.well-known/nq"),
    ]
    methods = ("GET", "POST", "PUT", "TRACE", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    heads = [f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n" for method in methods for path in paths]
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    upgrade += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    spoken = {"/weir/v1": "weir.v1", "/ndt/v7/upload": "net.measurementlab.ndt.v7"}
    upgrades = [
        f"GET {path} HTTP/1.1\r\nHost: x\r\n{upgrade}Sec-WebSocket-Protocol: {name}\r\n\r\n"
        for path, name in spoken.items()
    ]
    framed = [one.encode() + b"\x82\xfe\xff\xff\0\0\0\0" + b"x" * 200 for one in upgrades]
    framed += [one.encode() + b'\x81\x8e\0\0\0\0{"hello":null}' for one in upgrades]
    sized = [
        f"POST /__up HTTP/1.1\r\nHost: x\r\nContent-Length: {n}\r\n\r\nx".encode() for n in (1, 10**19, -1)
    ]
    lines = [b"HI\n", b"PING 1\n", b"DOWNLOAD 100000\n", b"UPLOAD 99999999999 0\n", b"\x16\x03\x01\x02\0\x01"]
    folders = (
        CORPUS / name for name in ("serve_heads", "serve_frames", "protocol_datagrams", "protocol_words")
    )
    kept = [path.read_bytes() for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    return [*(head.encode() for head in heads), *framed, *sized, *lines, *kept]


CORPUS = Path(__file__).parent.parent.parent / "fuzz" / "corpus"
READ_S = 0.2
"""How long an answer is waited for: some requests rightly have none."""

MAX_MESSAGE_BYTES = 200_000
MAX_DATAGRAM_BYTES = 65_507
"""What fits into a UDP datagram over IPv4."""

_MESSAGES = _known_messages()
_ODD = (b"\0", b"\r\n", b"\r\n\r\n", b"\xff" * 9, b"%00", b"..", b": ", b" ", b"18446744073709551616", b"-1")
