"""Settings of a shaper: words of the command line or of a file, and the native module's settings."""

from __future__ import annotations

import json
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from weirlab import _native, reading
from weirlab.errors import ShapeError, UsageError
from weirlab.forms import Model, check, read_toml
from weirlab.scenario.units import RateWords, SideRate, TimeWords, rate_bps, time_ns
from weirlab.shape.rules import PORT_DIGITS, read_rules


class ShapeWords(Model):
    """Words of a shaper's settings; all are optional.

    Attributes:
        up, down: the way out of the device and into it: `auto`, a rate such as `35mbit` that stays, or `none`
            to leave that way alone.
        up_max, down_max: `auto` never sets a higher rate.
        mode: what matters more to `auto`, short delays or all of the rate.
        queue_up, queue_down: queue set-up of that way, in tc syntax.
        framing: how bytes are counted, a name of `tc-cake(8)`, or `auto` for what the device tells.
        reflectors: whom to probe: `HOST` by ICMP, `udp:HOST[:PORT]` by UDP to a `weir serve`,
            `tcp:HOST:PORT` by how long a TCP connection takes to open.
        backend: who holds packets back.
        auth: file whose first line is the secret that servers among them ask for.
        rules: which class packets belong to: a file, or the name of a shipped list.
        time: ends by itself after so long.
    """

    up: SideRate = "auto"
    down: SideRate = "auto"
    up_max: RateWords | None = None
    down_max: RateWords | None = None
    mode: Literal["ping", "bandwidth"] = "ping"
    queue_up: str = "cake diffserv4 dual-srchost"
    queue_down: str = "cake diffserv4 dual-dsthost"
    framing: str = "auto"
    reflectors: list[str] = Field(default_factory=list)
    auth: str | None = None
    backend: Literal["auto", "kernel", "userspace"] = "auto"
    rules: str | None = None
    time: TimeWords | None = None

    @model_validator(mode="before")
    @classmethod
    def _present_names(cls, written: object) -> object:
        for old, new in RENAMED.items():
            if isinstance(written, dict) and old in written:
                raise ValueError(f"`{old}` has another name now: write `{new}`")
        return written


def read_config(file: Path) -> dict[str, Any]:
    """Reads a shaper's settings from a TOML file: the names of `ShapeWords`.

    Raises:
        UsageError: if it cannot be read, or something else stands in it.
    """
    where = f"config `{file}`"
    data, text = read_toml(file, where)
    check(ShapeWords, data, where, text=text)
    return data


def settings_of(
    device: str, said: dict[str, Any], where: str, log: Path | None = None, *, is_open: bool = False
) -> dict[str, Any]:
    """The settings of the native module, for what was said about the shaper of `device`.

    Args:
        device: the interface.
        said: words of its settings by the names of `ShapeWords`.
        where: what a message calls them.
        log: file for every decision.
        is_open: lets everything pass until it is told to shape.

    Raises:
        UsageError: if something of it cannot be: which, and what is allowed.
        ShapeError: if a name cannot be looked up for now.
    """
    words = check(ShapeWords, said, where)
    try:
        return _settings(device, words, log) | {"open": is_open}
    except _native.NativeError as error:
        raise UsageError(f"{where}: {error}") from error


def _settings(device: str, words: ShapeWords, log: Path | None) -> dict[str, Any]:
    framings = _native.framings()
    if words.framing != "auto" and words.framing not in framings:
        raise UsageError(f"framing `{words.framing}`: write one of {', '.join(['auto', *framings])}")
    sides = {"up": words.up, "down": words.down}
    shaped = {side: said for side, said in sides.items() if said != "none"}
    queues = [
        words.queue_up if "up" in shaped else None,
        words.queue_down if "down" in shaped else None,
    ]
    return {
        "device": device,
        "control": _control(words, shaped),
        "queues": queues,
        "framing": framings[words.framing] if words.framing != "auto" else framing_of(device)["framing"],
        "backend": None if words.backend == "auto" else words.backend,
        "reflectors": [_reflector(reflector) for reflector in words.reflectors],
        "auth": None if words.auth is None else str(Path(words.auth).absolute()),
        "rules": None if words.rules is None else read_rules(words.rules),
        "time_ns": None if words.time is None else time_of("time", words.time),
        "log": None if log is None else str(log.absolute()),
    }


def time_of(name: str, written: str) -> int:
    """A time of a second or more, in nanoseconds.

    Raises:
        UsageError: if it is none.
    """
    try:
        nanoseconds = time_ns(written)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    if nanoseconds < 1_000_000_000:
        raise UsageError(f"{name} {written}: write 1s or more")
    return nanoseconds


def framing_of(device: str) -> dict[str, Any]:
    """How bytes count on a device, and why, as far as the device tells; as on Ethernet if there is none."""
    try:
        found: dict[str, Any] = json.loads(_native.detect_framing(device))
    except _native.NativeError:
        return {"framing": _native.framings()["ethernet"], "why": "there is no such device"}
    return found


def _control(words: ShapeWords, shaped: dict[str, str]) -> dict[str, Any]:
    if not shaped:
        raise UsageError("up `none` and down `none`: nothing would be shaped; leave one of them out")
    bounds = {"up": words.up_max, "down": words.down_max}
    for side, most in bounds.items():
        if most is not None and shaped.get(side) != "auto":
            raise UsageError(
                f"{side} max {most}: it bounds `auto`, and {side} is `{getattr(words, side)}`; leave it out"
            )
    rates = {side: _rate(side, rate) for side, rate in shaped.items() if rate != "auto"}
    if len(rates) < len(shaped):
        limits = {
            f"{NATIVE[side]}_max_bps": _rate(f"{side} max", rate) for side, rate in bounds.items() if rate
        }
        stays = {f"{NATIVE[side]}_bps": bps for side, bps in rates.items()}
        return {"auto": {"mode": words.mode, **stays, **limits}}
    if words.mode != "ping":
        raise UsageError(f"mode {words.mode}: it is `auto`'s, and the rates are set; leave it out")
    return {"fixed": {"egress_bps": rates.get("up"), "ingress_bps": rates.get("down")}}


def _rate(name: str, written: str) -> int:
    try:
        bps = rate_bps(written)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    if bps < MIN_RATE_BPS:
        raise UsageError(f"{name} {written}: write 100kbit or more")
    return bps


def _reflector(written: str) -> dict[str, str]:
    if len(written) > MAX_REFLECTOR_CHARS:
        long = f"reflector `{written[:40]}...` of {len(written)} letters"
        raise UsageError(f"{long}: write {MAX_REFLECTOR_CHARS} at most")
    kind, colon, rest = written.partition(":")
    if kind not in KINDS or not colon:
        return {"icmp": _address(written)}
    host, port = host_and_port(rest) if kind == "udp" else _split(rest)
    address = _address(host)
    return {kind: f"[{address}]:{port}" if ":" in address else f"{address}:{port}"}


def host_and_port(written: str) -> tuple[str, int]:
    """Where a `weir serve` is: `HOST`, `HOST:PORT` or `[IPV6]:PORT`.

    Raises:
        UsageError: if it is none of these.
    """
    bare = written.endswith("]") or ":" not in written or (written.count(":") > 1 and "]" not in written)
    return (written.strip("[]"), SERVE_PORT) if bare else _split(written)


def _split(written: str) -> tuple[str, int]:
    host, _, port = written.rpartition(":")
    number = reading.whole(port, PORT_DIGITS)
    if not host or number is None or not 0 < number < 65536:
        raise UsageError(f"`{written}`: write HOST:PORT with a port from 1 to 65535, IPv6 as [HOST]:PORT")
    return host.strip("[]"), number


def _address(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)[0][4][0])
    except OSError as error:
        if error.errno == socket.EAI_AGAIN:
            # As long as the network is not up yet: not the name is wrong.
            raise ShapeError(f"reflector `{host}`: nobody answers what its address is") from error
        raise UsageError(f"reflector `{host}`: no such host is known") from error


MIN_RATE_BPS = _native.bounds()["min_shaper_rate_bps"]
"""The controller's own least rate: below it a line would be strangled."""

NATIVE = {"up": "egress", "down": "ingress"}
"""Names of the directions in the native module, as the kernel has them for a device."""

RENAMED = {
    "egress": "up",
    "ingress": "down",
    "egress_max": "up_max",
    "ingress_max": "down_max",
    "egress_queue": "queue_up",
    "ingress_queue": "queue_down",
}
"""Former names of keys."""

KINDS = ("udp", "tcp")
SERVE_PORT = 8080
"""Where `weir serve` listens if nothing else is said."""

MAX_REFLECTOR_CHARS = 300
"""Characters of a reflector at most: its name has 253 (RFC 1035), besides a port and a method."""
