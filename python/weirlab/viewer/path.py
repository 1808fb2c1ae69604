"""The path of a run as a picture: hosts, hops, queues, rates and delays, as SVG within the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab.scenario import time_text
from weirlab.viewer.shell import shown

__all__ = ["path_svg"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weirlab.record import Record


@dataclass(frozen=True)
class _Hop:
    """A hop in words: its name, and lines about it."""

    name: str
    lines: list[str]


@dataclass(frozen=True)
class _Row:
    """Hops one after another, from the left to the right of the picture."""

    title: str
    hops: list[_Hop]
    leftwards: bool


def path_svg(record: Record) -> str:
    """The picture: each way up above its way down, client at the left and servers at the right.

    Routes that share no hop have rows of their own; others are named below all hops.
    """
    scenario = record.manifest.scenario
    servers = [_server(host) for host in scenario.get("hosts", [])][:MAX_HOSTS] or ["server"]
    apart = _are_apart(scenario)
    rows = list(_rows_of_routes(scenario) if apart else _rows(scenario))
    count = max(1, *(len(row.hops) for row in rows))
    lines = max([len(hop.lines) for row in rows for hop in row.hops], default=1)
    high = 30 + 16 * lines
    width, height = 2 * END + count * (HOP + GAP) + GAP, len(rows) * (high + 44) + 8
    parts = [*_end(0, height, ["client"]), *_end(width - END, height, servers)]
    for number, row in enumerate(rows):
        parts += _way(row, (28 + number * (high + 44), high), count)
    routes = [] if apart else list(_routes(scenario))
    for number, line in enumerate(routes):
        parts.append(
            f'<text x="{END + GAP}" y="{height + 12 + 16 * number}" class="quiet">{shown(line)}</text>'
        )
    height += 16 * len(routes) + 4 if routes else 0
    label = shown(". ".join([*(_spoken(row) for row in rows), *routes]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )


def _are_apart(scenario: dict[str, Any]) -> bool:
    """Whether all servers are reached over one of several routes, and no hop is part of two."""
    routes = scenario.get("routes", [])
    hops = [(way, hop) for route in routes for way in ("up", "down") for hop in route[way]]
    led_to = all(host.get("route") is not None for host in scenario.get("hosts", []))
    return len(routes) > 1 and led_to and len(set(hops)) == len(hops)


def _rows(scenario: dict[str, Any]) -> Iterator[_Row]:
    up, down = (_hops(scenario["path"][way]) for way in ("up", "down"))
    yield _Row("up: client to server", up, leftwards=False)
    yield _Row("down: server to client", down[::-1], leftwards=True)


def _rows_of_routes(scenario: dict[str, Any]) -> Iterator[_Row]:
    for number, route in enumerate(scenario["routes"]):
        servers = _servers_by(scenario, number)
        up, down = (_hops([scenario["path"][way][hop] for hop in route[way]]) for way in ("up", "down"))
        yield _Row(f"{route['name']}: up to {servers}", up, leftwards=False)
        yield _Row(f"{route['name']}: down from {servers}", down[::-1], leftwards=True)


def _routes(scenario: dict[str, Any]) -> Iterator[str]:
    """A line for each route: its name, the servers that it leads to, and its hops."""
    for number, route in enumerate(scenario.get("routes", [])):
        ways = [
            f"{way} "
            + (", ".join(str(scenario["path"][way][hop]["name"]) for hop in route[way]) or "directly")
            for way in ("up", "down")
        ]
        yield f"route {route['name']} ({_servers_by(scenario, number)}): {'; '.join(ways)}"


def _servers_by(scenario: dict[str, Any], route: int) -> str:
    """The servers to which that route leads."""
    names = [str(host["name"]) for host in scenario["hosts"] if host.get("route") == route]
    return ", ".join(names) or "no server"


def _hops(hops: Sequence[dict[str, Any]]) -> list[_Hop]:
    return [_Hop(str(hop["name"]), list(_lines(hop))) for hop in hops]


def _lines(hop: dict[str, Any]) -> Iterator[str]:
    yield from _wrapped(str(hop["queue"]))
    rate = hop["rate"]
    if rate == "unlimited":
        yield "no rate limit"
    elif "bps" in rate:
        yield f"{int(rate['bps']) / 1e6:g} Mbit/s"
    elif "packets_per_second" in rate:
        yield f"{int(rate['packets_per_second'])} packets/s"
    else:
        yield f"recorded rate: {rate.get('trace', '?')}"
    delay = time_text(int(hop.get("delay_ns", 0)))
    jitter = int(hop.get("jitter_ns", 0))
    yield f"delay {delay}" + (f", jitter {time_text(jitter)}" if jitter else "")
    if hop.get("marker"):
        yield f"marker {hop['marker']}"
    if hop.get("loss"):
        yield "loses packets on the line"
    if hop.get("changes"):
        yield f"{len(hop['changes'])} changes during the run"
    if hop.get("shaped"):
        yield "rate set by the shaper"


def _wrapped(text: str) -> list[str]:
    """A queue spec in at most three lines."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + len(word) < MAX_LINE_CHARS:
            lines[-1] += f" {word}"
        else:
            lines.append(word[:MAX_LINE_CHARS])
    shown = lines[:3]
    return [*shown[:-1], f"{shown[-1][: MAX_LINE_CHARS - 2]} …"] if len(lines) > 3 else shown


def _server(host: dict[str, Any]) -> str:
    delay = int(host.get("delay_ns", 0))
    return f"{str(host['name'])[:14]}" + (f" +{time_text(delay)}" if delay else "")


def _end(x: int, height: int, names: Sequence[str]) -> Iterator[str]:
    yield f'<rect x="{x + 1}" y="20" width="{END - 2}" height="{height - 28}" rx="6"/>'
    for number, name in enumerate(names):
        y = height / 2 + 16 * (number - (len(names) - 1) / 2)
        yield f'<text x="{x + END / 2}" y="{y:.0f}" text-anchor="middle">{shown(name)}</text>'


def _way(row: _Row, place: tuple[int, int], count: int) -> Iterator[str]:
    """The hops of a way in a row; `place` is its top and height, `count` the hops there is room for."""
    y, high = place
    end = END + count * (HOP + GAP) + GAP
    middle = y + 14 + high // 2
    title = row.title[: count * (MAX_LINE_CHARS + 3)]
    yield f'<text x="{END + GAP}" y="{y + 6}" class="quiet">{shown(title)}</text>'
    yield f'<line x1="{END}" x2="{end}" y1="{middle}" y2="{middle}"/>'
    tip, back = (END, END + 8) if row.leftwards else (end, end - 8)
    yield f'<polyline points="{back},{middle - 5} {tip},{middle} {back},{middle + 5}"/>'
    first = END + GAP + (count - len(row.hops)) * (HOP + GAP) // 2
    for number, hop in enumerate(row.hops):
        x = first + number * (HOP + GAP)
        yield f'<rect x="{x}" y="{y + 14}" width="{HOP}" height="{high}" rx="4"/>'
        yield f'<text x="{x + 10}" y="{y + 33}" font-weight="600">{shown(hop.name[:MAX_LINE_CHARS])}</text>'
        for at, line in enumerate(hop.lines):
            yield f'<text x="{x + 10}" y="{y + 50 + 16 * at}" class="quiet">{shown(line)}</text>'


def _spoken(row: _Row) -> str:
    hops = row.hops[::-1] if row.leftwards else row.hops
    return f"{row.title}: " + (
        "; then ".join(f"{hop.name}: {', '.join(hop.lines)}" for hop in hops) or "as it is"
    )


END, HOP, GAP = 96, 208, 26
"""Widths in pixels of a host, of a hop, and of what lies between two."""

MAX_LINE_CHARS = 31
"""Characters that fit a hop's box."""

MAX_HOSTS = 6
"""Servers that are named; more would not fit beside the two ways."""
