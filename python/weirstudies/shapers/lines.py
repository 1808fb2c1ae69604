"""Lines of the study `autorate`: changing, slow and recorded rates, and delays that no queue makes."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weirlab.scenario import LinkSpec, load_link
from weirstudies import choosing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.scenario import Direction


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line that is uploaded or downloaded over.

    Attributes:
        name: its name.
        what: what it is, in a line.
        direction: which way the load goes.
        link: the line itself.
        drop_s, rise_s: when it becomes slower and faster, if at one moment.
        both_loaded: whether the other way is loaded too.
    """

    name: str
    what: str
    direction: Direction
    link: LinkSpec
    drop_s: float | None = None
    rise_s: float | None = None
    both_loaded: bool = False


def lines() -> list[Line]:
    """All lines of the study, downloads first within each kind."""
    kinds: list[Callable[[Direction], list[Line]]] = [
        *(_changing, _dropping, _both, _slow, _foreign, _recorded, _vdsl, _modelled),
    ]
    return [line for kind in kinds for direction in DIRECTIONS for line in kind(direction)]


def chosen(only: Sequence[str]) -> list[Line]:
    """The lines whose names match one of the patterns, all of them if there is none.

    Raises:
        UsageError: if none matches a pattern.
    """
    known = {line.name: line for line in lines()}
    return choosing.chosen(known, only, study="autorate", what="line")


def _changing(direction: Direction) -> list[Line]:
    """80 Mbit/s that fall to 20 at once, or within ten seconds in steps of 250 ms, and rise again."""
    down = [(15_000 + 250 * step, 80_000 - 1_500 * step) for step in range(1, RAMP_STEPS + 1)]
    up = [(30_000 + 250 * step, 20_000 + 1_500 * step) for step in range(1, RAMP_STEPS + 1)]
    ramp = [{"at": f"{at}ms", "rate": f"{kbit}kbit"} for at, kbit in down + up]
    return [
        _dropped(
            "steps", "80 Mbit/s, 20 from 20 s on, 80 from 35 s on", direction, ("80mbit", "20mbit"), 2_000_000
        ),
        _line(
            "ramp",
            "80 Mbit/s, down to 20 within 10 s and up again",
            direction,
            {"rate": "80mbit", "queue": "bfifo limit 2000000", "changes": ramp},
        ),
    ]


def _dropping(direction: Direction) -> list[Line]:
    """Lines that become many times slower at once."""
    return [
        _dropped(
            name, f"{fast} Mbit/s, {slow} from 20 s on, {fast} from 35 s on", direction, rates, 2_500_000
        )
        for name, fast, slow in (("100-to-6", 100, 6), ("100-to-2", 100, 2), ("1000-to-20", 1000, 20))
        for rates in [(f"{fast}mbit", f"{slow}mbit")]
    ]


def _both(direction: Direction) -> list[Line]:
    """A line that is loaded both ways, of which one becomes ten times slower: whose queue is it?"""
    what = f"50 Mbit/s, both ways loaded, {direction} 5 from 20 s on, 50 from 35 s on"
    dropped = _dropped("both-50-to-5", what, direction, ("50mbit", "5mbit"), 1_000_000)
    return [replace(dropped, both_loaded=True)]


def _slow(direction: Direction) -> list[Line]:
    """A buffer too short to be felt, and lines on which a packet alone takes long."""
    adsl = {"down": ("8mbit", 256_000), "up": ("1mbit", 64_000)}[direction]
    return [
        _line(
            "buffer-5ms",
            "50 Mbit/s with 5 ms of buffer",
            direction,
            {"rate": "50mbit", "queue": "bfifo limit 31250"},
        ),
        _line(
            "adsl",
            "ADSL over ATM, 8 Mbit/s down and 1 up, with 256 and 64 KB of buffer",
            direction,
            {"rate": adsl[0], "queue": f"bfifo limit {adsl[1]}", "framing": "atm"},
        ),
        _line(
            "cdma",
            "CDMA2000 1x, 153.6 kbit/s each way, with 64 KB of buffer, 100 ms there and back",
            direction,
            {"rate": "153600bit", "queue": "bfifo limit 64000", "framing": "none", "delay": "50ms"},
        ),
    ]


def _foreign(direction: Direction) -> list[Line]:
    """40 Mbit/s with 100 ms of buffer, and a delay that varies for reasons of its own."""
    hop = {"rate": "40mbit", "queue": "bfifo limit 500000"}
    shapes: list[tuple[str, str, list[dict[str, str]]]] = [
        ("sawtooth", "a delay that rises by 60 ms within 2 s, and falls at once", _delays(_sawtooth, 50)),
        ("sine", "a delay that swings by 40 ms once a second", _delays(_sine, 50)),
        ("walk", "a delay that wanders between 0 and 80 ms", _walk()),
    ]
    found = [
        _line(name, f"40 Mbit/s with {what}", direction, hop | {"changes": changes})
        for name, what, changes in shapes
    ]
    orbit = [{"at": f"{at}s", "delay": f"{delay}ms"} for at, delay in ((15, 32), (30, 18), (45, 38))]
    what = "40 Mbit/s by satellites in low orbit: another path every 15 s, up to 8 ms more or less on each"
    return [*found, _line("orbit", what, direction, hop | {"jitter": "8ms", "changes": orbit})]


def _recorded(direction: Direction) -> list[Line]:
    return [_shipped(name, name, direction) for name in ("lte-verizon", "lte-tmobile", "lte-att")]


def _vdsl(direction: Direction) -> list[Line]:
    return [_shipped("vdsl", "vdsl-100-40", direction, "VDSL with the modem's own buffers")]


def _modelled(direction: Direction) -> list[Line]:
    """Lines whose media are modelled: what is used counts against the best path's rate, or the air's."""
    return [_shipped(name, name, direction) for name in ("docsis-31", "starlink", "wifi-n")]


def _shipped(name: str, preset: str, direction: Direction, what: str | None = None) -> Line:
    link = load_link(preset)
    return Line(name=f"{name} {direction}", what=what or link.title, direction=direction, link=link)


def _dropped(name: str, what: str, direction: Direction, rates: tuple[str, str], buffer_bytes: int) -> Line:
    """A line with the first rate, the second between `DROP_S` and `RISE_S`."""
    fast, slow = rates
    changes = [{"at": f"{DROP_S}s", "rate": slow}, {"at": f"{RISE_S}s", "rate": fast}]
    hop = {"rate": fast, "queue": f"bfifo limit {buffer_bytes}", "changes": changes}
    return _line(name, what, direction, hop, times_s=(DROP_S, RISE_S))


def _line(
    name: str,
    what: str,
    direction: Direction,
    hop: dict[str, Any],
    *,
    times_s: tuple[float | None, float | None] = (None, None),
) -> Line:
    """A line with this hop both ways, 20 ms long there and back by default; only the loaded way changes."""

    def end(way: Direction) -> dict[str, Any]:
        said = {"name": NAMES[way], "framing": "docsis", "delay": "10ms"} | hop
        return (
            said if way == direction else {key: said[key] for key in said if key not in ("changes", "jitter")}
        )

    written = {"name": f"{name}-{direction}", "title": what, "up": [end("up")], "down": [end("down")]}
    link = LinkSpec.model_validate(written)
    drop_s, rise_s = times_s
    return Line(
        name=f"{name} {direction}", what=what, direction=direction, link=link, drop_s=drop_s, rise_s=rise_s
    )


def _delays(shape: Callable[[float], float], step_ms: int) -> list[dict[str, str]]:
    """Changes of the delay, 10 ms and what `shape` adds (ms) at a time (s)."""
    return [
        {"at": f"{at}ms", "delay": f"{10 + shape(at / 1000):.3f}ms"} for at in range(step_ms, END_MS, step_ms)
    ]


def _sawtooth(at_s: float) -> float:
    return 60 * (at_s / 2 % 1)


def _sine(at_s: float) -> float:
    return 20 - 20 * math.cos(2 * math.pi * at_s)


def _walk() -> list[dict[str, str]]:
    """Up to 8 ms more or less each 100 ms, the same on every run."""
    steps = random.Random(1)  # noqa: S311 - no secret depends on it
    extra_ms, changes = 40.0, []
    for at in range(100, END_MS, 100):
        extra_ms = min(max(extra_ms + steps.uniform(-8, 8), 0.0), 80.0)
        changes.append({"at": f"{at}ms", "delay": f"{10 + extra_ms:.3f}ms"})
    return changes


DIRECTIONS: tuple[Direction, ...] = ("down", "up")
NAMES: dict[Direction, str] = {"down": "headend", "up": "modem"}
DROP_S = 20
RISE_S = 35
RAMP_STEPS = 40
END_MS = 60_000
"""The length of a run: 5 s idle, 55 s of load."""
