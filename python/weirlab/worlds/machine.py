"""What this machine does to packets on their way to a server, as far as it says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def machine(host: str) -> dict[str, Any]:
    """The interface towards `host`: its name, whether it is wireless and saves power, its offloads.

    What the machine does not tell is None.
    """
    interface = _interface(host)
    if interface is None:
        return {"interface": None}
    wireless = Path(f"/sys/class/net/{interface}/wireless").exists()
    return {
        "interface": interface,
        "wireless": wireless,
        "power_save": _power_save(interface) if wireless else None,
        "offloads": _offloads(interface),
    }


def _interface(host: str) -> str | None:
    name = urlsplit(host if "//" in host else f"//{host}").hostname or host
    address = _output("getent", "ahosts", name).split(" ", 1)[0].strip()
    if not address:
        return None
    try:
        routes = json.loads(_output("ip", "-json", "route", "get", address) or "[]")
    except json.JSONDecodeError:
        return None
    return str(routes[0]["dev"]) if routes and "dev" in routes[0] else None


def _power_save(interface: str) -> bool | None:
    said = _output("iw", "dev", interface, "get", "power_save").strip().lower()
    return said.endswith("on") if said else None


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
    """What a program says; empty if it is not there, fails or takes too long."""
    if shutil.which(words[0]) is None:
        return ""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
