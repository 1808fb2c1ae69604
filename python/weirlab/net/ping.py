"""Pings to any host (`weir ping`): what is asked for, what has come of it, and where every sample goes."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from array import array
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from weirlab import _native
from weirlab.errors import NetError, UsageError, WriteError, cannot_write
from weirlab.scenario.units import time_ns, time_text
from weirlab.stats import Distribution, describe, quantile
from weirlab.writing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

    Row = tuple[int, int, int | None, int, str | None, tuple[int, int] | None]

__all__ = ["METHODS", "PingPlan", "PingTarget", "SampleFile", "Samples", "plan_ping", "send_pings"]

METHODS = ("icmp", "udp", "tcp", "weir")
"""Protocol of pings: ICMP echo, UDP, the first half of a TCP handshake, or UDP echo of a `weir serve`."""

FORMATS = ("csv", "jsonl", "parquet")
"""Of files with every sample, by suffix."""


@dataclass(frozen=True, kw_only=True)
class PingPlan:
    """Pings that are asked for.

    Attributes:
        method: one of `METHODS`.
        port: port of the host; None for ICMP.
        ip: Internet protocol, 4 or 6; None takes the name's first address.
        payload_bytes: bytes behind the headers of ICMP or UDP.
        dscp: DSCP of all packets, as a number.
        ttl: time to live or hop limit; None is the system's own.
        period_ns: time between two pings.
        count: how many are sent; None until they are stopped.
        timeout_ns: a ping that is not answered for so long is lost.
    """

    method: str
    port: int | None
    ip: Literal[4, 6] | None
    payload_bytes: int
    dscp: int
    ttl: int | None
    period_ns: int
    count: int | None
    timeout_ns: int

    @property
    def words(self) -> str:
        """The pings in words: `UDP to port 33434, TTL 3, 0 bytes, every 200ms`."""
        named = {
            "icmp": "ICMP echo",
            "udp": "UDP",
            "tcp": "TCP handshake",
            "weir": "UDP echo of `weir serve`",
        }
        parts = [named[self.method] + (f" to port {self.port}" if self.port is not None else "")]
        if self.ttl is not None:
            parts.append(f"TTL {self.ttl}")
        if self.method != "tcp":
            parts.append(f"{self.payload_bytes} bytes")
        return ", ".join([*parts, f"every {time_text(self.period_ns)}"])


@dataclass(frozen=True)
class PingTarget:
    """A host that is pinged.

    Attributes:
        name: as the user wrote it.
        address: its address.
        scope: number of the interface of a link-local IPv6 address, else 0.
    """

    name: str
    address: str
    scope: int

    def __str__(self) -> str:
        """Name and address, each once."""
        return self.name if self.name == self.address else f"{self.name} ({self.address})"

    @classmethod
    def find(cls, name: str, ip: Literal[4, 6] | None) -> PingTarget:
        """The host of that name.

        Raises:
            UsageError: if it is no name, or has no such address.
        """
        try:
            host = name if _has_port(name) else _native.host_in(name)
        except _native.InputError as error:
            raise UsageError(f"host {error}") from error
        family = {None: socket.AF_UNSPEC, 4: socket.AF_INET, 6: socket.AF_INET6}[ip]
        try:
            found = socket.getaddrinfo(host, None, family, socket.SOCK_DGRAM)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or "it is no name of a host"
            wanted = f" over IPv{ip}" if ip else ""
            hint = ": write its port with --port" if _has_port(name) else ""
            raise UsageError(f"host `{name}`{wanted}: {why.lower()}{hint}") from error
        place = found[0][4]
        scope = int(place[3]) if len(place) > 3 else 0
        return cls(host, str(place[0]).partition("%")[0], scope)


def plan_ping(words: dict[str, Any]) -> PingPlan:
    """The pings that the words of the command line ask for.

    Raises:
        UsageError: if a value cannot be read, or words do not fit together.
    """
    method = words["method"]
    for name, of, why in (
        ("port", ("udp", "tcp", "weir"), "ICMP has no ports"),
        ("payload", ("icmp", "udp", "weir"), "a handshake carries nothing"),
        ("ttl", ("icmp", "udp"), "routers that answer are heard with --method icmp and udp only"),
        ("auth", ("weir",), "only `weir serve` asks for a secret"),
    ):
        if words[name] is not None and method not in of:
            raise UsageError(f"--{name} {words[name]}: {why}: leave it out, or write --method {of[-1]}")
    period = _time("ping", words["ping"], MIN_PERIOD_NS, MAX_TIME_NS)
    count = words["count"]
    if words["length"] is not None:
        length = _time("for", words["length"], 1, MAX_LENGTH_NS)
        count = min(count or MAX_COUNT, -(-length // period))
    try:
        dscp = _native.parse_dscp(words["dscp"])
    except _native.NativeError as error:
        raise UsageError(f"--dscp: {error}") from error
    return PingPlan(
        method=method,
        port=words["port"] or PORTS[method],
        ip=None if words["ip"] is None else (4 if words["ip"] == "4" else 6),
        payload_bytes=PAYLOADS[method] if words["payload"] is None else words["payload"],
        dscp=dscp,
        ttl=words["ttl"],
        period_ns=period,
        count=count,
        timeout_ns=_time("timeout", words["timeout"], MIN_PERIOD_NS, MAX_TIME_NS),
    )


class Samples:
    """Every ping that was answered or is lost, as it is told."""

    def __init__(self) -> None:
        """None yet."""
        self._columns = {name: array("q") for name in ("seq", "t_ns", "rtt_ns", "timer_error_ns")}
        self._sum_ns = 0
        self.sent = 0
        self.lost = 0
        self.last_ns: int | None = None
        self.answered_by: Counter[str] = Counter()
        self.refused: Counter[int] = Counter()

    def add(self, rows: Sequence[Row]) -> None:
        """Takes pings that were answered or lost."""
        seq, t_ns, rtt_ns, late_ns = self._columns.values()
        for t, number, rtt, late, by, icmp in rows:
            seq.append(number)
            t_ns.append(t)
            rtt_ns.append(-1 if rtt is None else rtt)
            late_ns.append(late)
            self.sent += 1
            if rtt is None:
                self.lost += 1
                continue
            self._sum_ns += rtt
            self.last_ns = rtt
            if icmp is not None:
                self.answered_by[f"{by or 'a router'} ({icmp_words(icmp)})"] += 1

    @property
    def answered(self) -> int:
        """How many were answered."""
        return self.sent - self.lost

    @property
    def mean_ms(self) -> float | None:
        """Mean round trip of those that were answered."""
        return self._sum_ns / self.answered / 1e6 if self.answered else None

    @property
    def loss_rate(self) -> float | None:
        """Share of those that were sent that was lost."""
        return self.lost / self.sent if self.sent else None

    @property
    def distribution(self) -> Distribution | None:
        """The figures of the round trips in milliseconds; None if none was answered."""
        return describe(self.rtt_ms[np.isfinite(self.rtt_ms)])

    @property
    def t_s(self) -> NDArray[np.float64]:
        """When each was sent, in seconds since the first was due, in the order of sending."""
        return self._ordered("t_ns") / 1e9

    @property
    def rtt_ms(self) -> NDArray[np.float64]:
        """Round trip of each in milliseconds, in the order of sending; NaN if it is lost."""
        found = self._ordered("rtt_ns") / 1e6
        found[found < 0] = np.nan
        return found

    @property
    def lateness_ns(self) -> float | None:
        """How late pings were sent: the 99th percentile; None without any."""
        return quantile(self._numbers("timer_error_ns"), 0.99)

    def figures(self) -> dict[str, Any]:
        """The statistics, as `--json` prints them."""
        found = self.distribution
        return {
            "sent": self.sent,
            "answered": self.answered,
            "lost": self.lost,
            "loss_rate": self.loss_rate,
            "rtt_ms": asdict(found) if found else None,
            "answered_by": dict(self.answered_by.most_common()),
            "refused": {os.strerror(number): count for number, count in self.refused.most_common()},
        }

    def _ordered(self, name: str) -> NDArray[np.int64]:
        return self._numbers(name)[np.argsort(self._numbers("seq"), kind="stable")]

    def _numbers(self, name: str) -> NDArray[np.int64]:
        return np.array(self._columns[name], dtype=np.int64)


class _Sink(Protocol):
    """A file that takes samples in the order of sending."""

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Takes some."""

    def close(self) -> None:
        """There are no more."""


class SampleFile:
    """A file with every sample, in the order of sending: CSV, JSON lines or Parquet by its suffix.

    CSV and JSON lines grow while pings are sent; Parquet is written at the end.
    """

    def __init__(self, path: Path) -> None:
        """A new file.

        Raises:
            UsageError: if its suffix is none of those, if it is there already, or cannot be made there.
            WriteError: if the disk is full or read-only.
        """
        suffix = path.suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            raise UsageError(f"--out {path}: name a file that ends in .csv, .jsonl or .parquet")
        self.path = path
        self._waiting: dict[int, dict[str, Any]] = {}
        self._next = 0
        self._sink: _Sink = _Parquet(path) if suffix == "parquet" else _Lines(path, suffix)

    def add(self, rows: Sequence[Row], unix_zero_ns: int) -> None:
        """Takes pings that were answered or lost; `unix_zero_ns` is the time of day at time 0.

        Raises:
            WriteError: if they cannot be written.
        """
        for t, number, rtt, late, by, icmp in rows:
            self._waiting[number] = {
                "seq": number,
                "t_ns": t,
                "unix_ns": unix_zero_ns + t,
                "rtt_ns": rtt,
                "timer_error_ns": late,
                "answered_by": by,
                "icmp_type": icmp[0] if icmp else None,
                "icmp_code": icmp[1] if icmp else None,
            }
        ready = []
        while self._next in self._waiting:
            ready.append(self._waiting.pop(self._next))
            self._next += 1
        self._sink.write(ready)

    def close(self) -> None:
        """Writes what still waits for an earlier ping, and ends the file.

        Raises:
            WriteError: if it cannot be written.
        """
        self._sink.write([self._waiting[number] for number in sorted(self._waiting)])
        self._waiting.clear()
        self._sink.close()


class _Lines:
    """A line a sample."""

    def __init__(self, path: Path, form: str) -> None:
        self._path = path
        self._is_csv = form == "csv"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("x", encoding="utf-8")
        except FileExistsError as error:
            raise _exists(path) from error
        except (OSError, ValueError) as error:
            raise _cannot_write(path, error) from error
        if self._is_csv:
            self._put(",".join(COLUMNS) + "\n")

    def write(self, rows: list[dict[str, Any]]) -> None:
        if self._is_csv:
            lines = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in rows]
        else:
            lines = [json.dumps(row) for row in rows]
        self._put("".join(f"{line}\n" for line in lines))

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def _put(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self._path, error) from error


class _Parquet:
    """A table, written in one piece at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Refused now, and not after an hour.
            path.open("xb").close()
        except FileExistsError as error:
            raise _exists(path) from error
        except (OSError, ValueError) as error:
            raise _cannot_write(path, error) from error

    def write(self, rows: list[dict[str, Any]]) -> None:
        self._rows += rows
        if len(self._rows) >= FRAME_ROWS:
            self._pack()

    def close(self) -> None:
        import polars as pl  # noqa: PLC0415 - other files and figures need none

        from weirlab.record.parts import packed  # noqa: PLC0415 - loads it too

        self._pack()
        content = packed(pl.concat(self._frames))
        try:
            replaced(self._path, lambda part: part.write_bytes(content))
        except BaseException:
            self._path.unlink(missing_ok=True)
            raise

    def _pack(self) -> None:
        import polars as pl  # noqa: PLC0415 - other files and figures need none

        self._frames.append(pl.DataFrame(self._rows, schema=COLUMNS))
        self._rows = []


def send_pings(
    target: PingTarget,
    plan: PingPlan,
    told: Callable[[list[Row], list[int], int], bool],
    secret: str | None = None,
) -> None:
    """Sends pings until they are over, or `told` returns false.

    `told` is called a few times a second with the pings that were answered or lost since, with error numbers
    of why some were, and with the time of day at time 0, in nanoseconds since 1970.

    Raises:
        UsageError: if pings like that cannot be sent at all.
        NetError: if they end before their time.
    """
    unix_zero_ns: int | None = None

    def on(zero_ns: int, rows: list[Row], refused: list[int]) -> bool:
        nonlocal unix_zero_ns
        if unix_zero_ns is None:
            unix_zero_ns = time.time_ns() - time.monotonic_ns() + zero_ns
        return told(rows, refused, unix_zero_ns)

    try:
        _native.ping(
            on,
            address=target.address,
            scope=target.scope,
            port=plan.port or 0,
            method=plan.method,
            secret=secret,
            payload_bytes=plan.payload_bytes,
            dscp=plan.dscp,
            ttl=plan.ttl,
            period_ns=plan.period_ns,
            count=plan.count,
            timeout_ns=plan.timeout_ns,
        )
    except _native.NativeError as error:
        if unix_zero_ns is None:
            raise UsageError(str(error)) from error
        raise NetError(str(error)) from error


def icmp_words(icmp: tuple[int, int]) -> str:
    """An ICMP error in the words of its RFC."""
    return ICMP_ERRORS.get(icmp, f"ICMP type {icmp[0]} code {icmp[1]}")


def _time(name: str, text: str, least: int, most: int) -> int:
    try:
        found = time_ns(text)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from error
    if not least <= found <= most:
        raise UsageError(f"--{name} {text}: write {time_text(least)} to {time_text(most)}")
    return found


def _has_port(name: str) -> bool:
    host, colon, port = name.rpartition(":")
    # Without brackets several colons are those of an IPv6 address.
    is_address = ":" in host and not (host.startswith("[") and host.endswith("]"))
    return bool(colon and port.isdecimal() and host) and not is_address


def _exists(path: Path) -> UsageError:
    return UsageError(f"--out {path}: it is there already: choose another name, or take it away first")


def _cannot_write(path: Path, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno != errno.EINTR:
        return cannot_write(f"--out {path}", error)
    return WriteError(f"--out {path}: {error}")


PORTS: dict[str, int | None] = {"icmp": None, "udp": 33_434, "tcp": 443, "weir": 8_080}
"""That of traceroute, where nothing listens; that of HTTPS; that of `weir serve`."""

PAYLOADS = {"icmp": 56, "udp": 60, "tcp": 0, "weir": 60}
"""Bytes, as in scenarios."""

MIN_PERIOD_NS = _native.bounds()["min_ping_period_ns"]
MAX_TIME_NS = 3_600 * 10**9
MAX_LENGTH_NS = 365 * 24 * MAX_TIME_NS
MAX_COUNT = _native.bounds()["max_pings"]
MAX_PAYLOAD_BYTES = _native.bounds()["max_ping_payload_bytes"]

MAX_LATENESS_NS = 2_000_000
"""Pings of which one in a hundred left later than this say that the machine was busy."""

FRAME_ROWS = 10_000
"""Rows that are kept as Python's objects before they are packed."""

COLUMNS: dict[str, type] = {
    "seq": int,
    "t_ns": int,
    "unix_ns": int,
    "rtt_ns": int,
    "timer_error_ns": int,
    "answered_by": str,
    "icmp_type": int,
    "icmp_code": int,
}
"""Of a file with samples."""

ICMP_ERRORS = {
    (11, 0): "time exceeded",
    (3, 3): "port unreachable",
    (3, 0): "time exceeded",
    (1, 4): "port unreachable",
}
"""Of IPv4 (RFC 792) and IPv6 (RFC 4443): the types of the two do not meet among those that count."""
