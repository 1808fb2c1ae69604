"""Shapers of this machine as another program shows them: which there are, and what each says of itself."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TypedDict

from weirlab.shape.running import status, view_in
from weirlab.shape.view import COLUMNS, SIDES, probed_in, rows_of, title_of, words_of


class Side(TypedDict):
    """A side in numbers; `rate_mbps` is None while everything passes."""

    name: str
    rate_mbps: float | None
    load_mbps: float


class Seen(TypedDict):
    """A view of a shaper as it is shown: the terminal's table, and the numbers of its charts.

    `t_s` is since its start; `delay_ms` the median of the round trips since its last view, None without one.
    """

    pid: int
    t_s: float
    title: str
    headings: list[str]
    rows: list[list[str]]
    sides: list[Side]
    delay_ms: float | None
    remarks: list[str]
    probed: str


def shaped() -> list[str]:
    """The devices of this network namespace at whose control socket somebody listens, in order.

    Anybody on this machine may: what `seen` says of it shows whether it is a shaper.
    """
    lines = [line.split(maxsplit=7) for line in SOCKETS.read_bytes().split(b"\n")[1:]]
    listening = {words[7] for words in lines if len(words) == 8 and words[3] == ACCEPTS}
    devices = [name for _, name in socket.if_nameindex()]
    return sorted(name for name in devices if b"@weir-shape-" + name.encode() in listening)


def seen(device: str) -> Seen | None:
    """What the shaper of a device says; None if it has shown nothing yet. It has some seconds to answer.

    Raises:
        ShapeError: if none shapes it, if it does not answer, or with something that is no view: anybody on
            this machine may listen there.
    """
    text = status(device)
    if not text:
        return None
    view = view_in(text)
    words = words_of(view)
    return {
        "pid": view["pid"],
        "t_s": view["t_ns"] / 1e9,
        "title": title_of(view),
        "headings": [one.heading.replace("\n", " ") for one in COLUMNS],
        "rows": rows_of(view),
        "sides": [
            {
                "name": name,
                "rate_mbps": None if side["rate_bps"] is None else side["rate_bps"] / 1e6,
                "load_mbps": side["load_bps"] / 1e6,
            }
            for name, side in zip(SIDES, view["sides"], strict=True)
            if side is not None
        ],
        "delay_ms": None if words.delay_ns is None else words.delay_ns / 1e6,
        "remarks": words.remarks,
        "probed": probed_in(view),
    }


SOCKETS = Path("/proc/net/unix")
"""The sockets of this network namespace, a line each: proc_pid_net(5)."""

ACCEPTS = b"00010000"
"""Flags of a socket that listens: `__SO_ACCEPTCON` of the kernel."""
