"""Properties of this machine that change packets on their way to servers."""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence


def interfaces(hosts: Sequence[str]) -> list[dict[str, Any]]:
    """The interfaces towards `hosts`, each once and with those to which it leads.

    Of each its name, whether it is wireless (signal, power saving), its offloads. What is not told is None.
    """
    towards: dict[str | None, list[str]] = {}
    for host in hosts:
        for name in dict.fromkeys(_interface(part) for part in host.split(",")):
            towards.setdefault(name, []).append(host)
    return [_described(name) | {"hosts": found} for name, found in towards.items()]


def _described(interface: str | None) -> dict[str, Any]:
    if interface is None:
        return {"interface": None}
    wireless = any(Path(f"/sys/class/net/{interface}/{what}").exists() for what in ("phy80211", "wireless"))
    return {
        "interface": interface,
        "wireless": wireless,
        "power_save": _power_save(interface) if wireless else None,
        "signal_dbm": signal_dbm(_read("/proc/net/wireless"), interface) if wireless else None,
        "offloads": _offloads(interface),
    }


def _interface(host: str) -> str | None:
    name = host if host.count(":") > 1 and "]" not in host else _name_in(host)
    address = _output("getent", "ahosts", name).split(" ", 1)[0].strip()
    if not address:
        return None
    try:
        routes = json.loads(_output("ip", "-json", "route", "get", address) or "[]")
    except json.JSONDecodeError:
        return None
    return str(routes[0]["dev"]) if routes and "dev" in routes[0] else None


def _name_in(host: str) -> str:
    """The name or address of `HOST`, `HOST:PORT` or a URL."""
    try:
        return urlsplit(host if "//" in host else f"//{host}").hostname or host
    except ValueError:
        # Brackets that are no pair: whoever asks for the server says so.
        return host


def _power_save(interface: str) -> bool | None:
    said = _output("iw", "dev", interface, "get", "power_save").strip().lower()
    return said.endswith("on") if said else _power_by_ioctl(interface)


def _power_by_ioctl(interface: str) -> bool | None:
    """Whether an interface saves power, by the kernel's older ioctl (`struct iwreq`, linux/wireless.h)."""
    request = bytearray(struct.pack("16s16x", interface.encode()))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCGIWPOWER, request)
    except OSError:
        return None
    _value, _fixed, disabled, _flags = struct.unpack_from("iBBH", request, 16)
    return not disabled


def signal_dbm(table: str, interface: str) -> float | None:
    """The signal's level of an interface in `/proc/net/wireless`; None if it is not told in dBm."""
    for line in table.splitlines():
        name, _, rest = line.partition(":")
        columns = rest.split()
        # Status, quality, level, noise: a trailing point marks a value that is new.
        if name.strip() == interface and len(columns) > LEVEL:
            level = float(columns[LEVEL])
            return level if level < 0 else None
    return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _offloads(interface: str) -> dict[str, bool] | None:
    said = _output("ethtool", "-k", interface)
    named = {
        "tcp-segmentation-offload": "tso",
        "generic-segmentation-offload": "gso",
        "generic-receive-offload": "gro",
        "large-receive-offload": "lro",
    }
    found = {}
    for line in said.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in named:
            found[named[name.strip()]] = value.strip().startswith("on")
    return found or None


def _output(*words: str) -> str:
    """Output of a program; empty if it is not there, fails or takes too long."""
    if shutil.which(words[0]) is None:
        return ""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


SIOCGIWPOWER = 0x8B2D
"""linux/wireless.h."""

LEVEL = 2
"""Index of the signal's level among the numbers of a line of `/proc/net/wireless`."""
