"""Flows of a run, as its scenario tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["FLOW", "rows_of_connections", "rows_of_flows"]


def rows_of_flows(scenario: Mapping[str, Any], ended_ns: Mapping[int, int | None]) -> list[dict[str, Any]]:
    """Name, direction and settings (`FLOW`) of each flow: those of the scenario, then two of each speed test.

    Args:
        scenario: the resolved scenario.
        ended_ns: of each speed test when it ended; None, or absent, of one that did not.

    Raises:
        KeyError: if the scenario does not tell one of them.
        TypeError: if one is of another type.
    """
    rows = [
        {
            "flow": number,
            "name": flow["name"],
            "direction": flow["direction"],
            "dscp": flow["dscp"],
            "protocol": (protocol := _protocol(flow)),
            "congestion_control": None if protocol in WITHOUT_TCP else flow["tcp"]["congestion_control"],
            "ecn": None if protocol in WITHOUT_TCP else _ecn(flow["tcp"]["overrides"]),
            "start_ns": flow["start_ns"],
            "stop_ns": flow["stop_ns"],
        }
        for number, flow in enumerate([*scenario["flows"], *_of_methods(scenario, ended_ns)])
    ]
    return [{name: _of_kind(kind, name, row[name]) for name, kind in FLOW.items()} for row in rows]


def rows_of_connections(
    connections: Sequence[Mapping[str, Any]], spans_ns: Mapping[int, tuple[int, int]], reached_ns: int
) -> list[dict[str, Any]]:
    """The rows of the TCP connections of programs in the lab: both ways of each, the way up first.

    They are named by the ports of both ends, and by the server's address where there are several.

    Args:
        connections: as the manifest lists them.
        spans_ns: of each flow that carried something from when to when.
        reached_ns: when the run ended.

    Raises:
        KeyError: if a connection does not tell an end.
        TypeError: if something is of another type.
    """
    rows = []
    servers = {one["server"].rpartition(":")[0] for one in connections}
    for place, one in enumerate(connections):
        client, server = one["client"].rpartition(":")[2], one["server"]
        other = server if len(servers) > 1 else server.rpartition(":")[2]
        path = f" by {one['path']}" if one.get("path") else ""
        for number, (direction, way, end) in enumerate(WAYS_OF_A_CONNECTION, 2 * place):
            start, stop = spans_ns.get(number, (0, reached_ns))
            row = {
                "flow": number,
                "name": f"port {client} {way} {other}{path}",
                "direction": direction,
                "protocol": "tcp",
                "congestion_control": one.get(f"{end}_congestion_control"),
                "start_ns": start,
                "stop_ns": stop,
            }
            rows.append({name: _of_kind(kind, name, row.get(name)) for name, kind in FLOW.items()})
    return rows


def _of_methods(scenario: Mapping[str, Any], ended_ns: Mapping[int, int | None]) -> Iterator[dict[str, Any]]:
    """Both flows of each speed test, as if the scenario had named them."""
    for number, method in enumerate(scenario.get("methods", [])):
        stop = ended_ns.get(number) or scenario["duration_ns"]
        controls = {
            "down": method["tcp"]["congestion_control"],
            "up": method["client_congestion_control"],
        }
        for direction, control in controls.items():
            yield {
                **method,
                "name": f"{method['name']} {direction}",
                "direction": direction,
                "tcp": {**method["tcp"], "congestion_control": control},
                "stop_ns": stop,
            }


def _protocol(flow: dict[str, Any]) -> str:
    """Protocol of a flow: `tcp` or `udp`; of an application its key in the test."""
    application = flow.get("application")
    if application:
        return str(next(iter(application)))
    return "udp" if flow.get("udp") else "tcp"


def _ecn(overrides: dict[str, Any] | None) -> bool | None:
    """Whether a flow asks for ECN; None if the record does not tell its settings."""
    return None if overrides is None else bool(overrides.get("ecn"))


def _of_kind(kind: type, name: str, value: Any) -> Any:
    """The value `name` of a flow, of that type and within 64 bits; None if it is not known.

    Raises:
        TypeError: if it is another.
    """
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = not isinstance(value, int) or -(2**63) <= value < 2**63
    if value is None or (fits and type(value) is kind):
        return value
    raise TypeError(f"`{name}` of a flow is {value!r}")


WAYS_OF_A_CONNECTION = (("up", "up to", "client"), ("down", "down from", "server"))
"""Direction, how it is called between the ports of client and server, and which end sends."""

WITHOUT_TCP = {"udp", "dns"}
"""Protocols of flows that have no congestion control."""

FLOW: Mapping[str, type] = {
    "flow": int,
    "name": str,
    "direction": str,
    "dscp": int,
    "protocol": str,
    "congestion_control": str,
    "ecn": bool,
    "start_ns": int,
    "stop_ns": int,
}
"""What is told of each flow, and of which type it is where it is known."""
