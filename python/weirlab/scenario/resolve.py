"""From what was written to what a world runs: names looked up, defaults filled in, base units.

The result is the JSON that the compiled part takes (crate `weir-world`, `scenario.rs`) and that the
manifest of a record keeps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from weirlab import _native
from weirlab.errors import UsageError
from weirlab.scenario.catalogue import load_link, load_test, load_trace
from weirlab.scenario.models import CLIENT, HopSpec, TcpSpec
from weirlab.scenario.shapers import (
    NO_SHAPER,
    SHAPER_QUEUE,
    read_shaper,
    reflector_hosts,
    resolve_shaper,
    shaper_name,
)
from weirlab.scenario.units import MAX_FLOWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weirlab.scenario.models import (
        ChangeSpec,
        Direction,
        FlowSpec,
        FramingSpec,
        LinkSpec,
        MethodSpec,
        ProbeSpec,
        ScenarioSpec,
        ShaperSpec,
        TestSpec,
        TunnelSpec,
    )


@dataclass(frozen=True, kw_only=True)
class ResolvedRun:
    """One run, ready for a world.

    Attributes:
        test: the test.
        link: the link.
        queue: the queue set-up as the user wrote it, `default` for the link's own.
        seed: the run's seed.
        scenario: the resolved scenario, in the form that worlds take.
        traces: texts of the recordings that it and its alternatives name.
        cc: the congestion control that the scenario names to be compared, if it does.
        note, tags: what the user says of the run.
    """

    test: TestSpec
    link: LinkSpec
    queue: str
    seed: int
    scenario: dict[str, Any]
    traces: Mapping[str, str]
    cc: str | None = None
    note: str = ""
    tags: tuple[str, ...] = ()

    @property
    def set_up(self) -> str:
        """Title of the run on a chart, in one line."""
        queue = "the link's own queue" if self.queue == DEFAULT_QUEUE else self.queue
        return f"{self.link.title}; {queue}"


DEFAULT_QUEUE = "default"


def resolve(spec: ScenarioSpec) -> list[ResolvedRun]:
    """All runs of a scenario: for each set-up as many as it says, each with the next seed.

    Raises:
        UsageError: if a name is unknown or a value cannot be used; nothing has happened then.
    """
    test = load_test(spec.test) if isinstance(spec.test, str) else spec.test
    links = [load_link(one) if isinstance(one, str) else one for one in _once(spec.link)]
    test = _with_phases(test, spec)
    if spec.seed + spec.repeat > MAX_SEED + 1:
        raise UsageError(
            f"seed {spec.seed}, repeat {spec.repeat}: the last seed would be above {MAX_SEED} (2^63 - 1): "
            f"write a seed of {MAX_SEED + 1 - spec.repeat} or less"
        )
    named = {hop.trace for link in links for hop in [*link.up, *link.down] if hop.trace}
    traces = {name: load_trace(name) for name in named}
    for name, trace in traces.items():
        _checked(name, trace)
    runs = []
    for set_up in _set_ups(spec, links):
        scenario = _scenario(spec, test, set_up)
        try:
            _native.check_scenario(json.dumps(scenario))
        except _native.NativeError as error:
            raise UsageError(str(error)) from error
        runs += [
            ResolvedRun(
                test=test,
                link=set_up.link,
                queue=set_up.label,
                seed=spec.seed + number,
                scenario=scenario,
                traces=traces,
                cc=set_up.cc,
                note=spec.note,
                tags=tuple(spec.tags),
            )
            for number in range(spec.repeat)
        ]
    return runs


def given_again(spec: ScenarioSpec) -> list[str]:
    """Sentences about set-ups that are given more than once. Each counts once."""
    of = {"link": spec.link, "queue": spec.queue, "queue_up": spec.queue_up, "queue_down": spec.queue_down}
    found = []
    for name, written in (of | {"shaper": spec.shaper, "cc": spec.cc}).items():
        words = [_words(one) for one in _several(written)]
        again = dict.fromkeys(one for one in words if words.count(one) > 1)
        found += [f"{name} `{one}` is given {words.count(one)} times: it counts once" for one in again]
    return found


@dataclass(frozen=True, kw_only=True)
class _SetUp:
    """One of those that a scenario compares.

    Attributes:
        link: the link.
        shaper: the shaper as written.
        queue: the queue set-ups, upwards and downwards.
        label: what the user wrote as shaper, if one, and as queue, for both directions.
        cc: congestion control of all loads, if one was named to be compared.
    """

    link: LinkSpec
    shaper: str | ShaperSpec
    queue: tuple[str, str]
    label: str
    cc: str | None


def _set_ups(spec: ScenarioSpec, links: Sequence[LinkSpec]) -> Iterator[_SetUp]:
    """Every link with every shaper, every queue set-up, and every congestion control."""
    ups, downs = _once(spec.queue_up), _once(spec.queue_down)
    # Where both directions have their own there is no direction left for the others.
    queues = [DEFAULT_QUEUE] if ups and downs else _once(spec.queue)
    of = product(links, _once(spec.shaper), queues, ups or [None], downs or [None], _once(spec.cc) or [None])
    for link, shaper, queue, up, down, cc in of:
        own = queue if up is None and down is None else f"up {up or queue}, down {down or queue}"
        label = own
        if shaper != NO_SHAPER:
            inner = "" if own == DEFAULT_QUEUE else f", {own}"
            label = f"shaper {shaper_name(shaper)}{inner}"
        yield _SetUp(link=link, shaper=shaper, queue=(up or queue, down or queue), label=label, cc=cc)


def _once(written: Any) -> list[Any]:
    """The set-ups as written, each once; adjacent spaces count as one."""
    return list({_words(one): one for one in reversed(_several(written))}.values())[::-1]


def _several(written: Any) -> list[Any]:
    if written is None:
        return []
    return written if isinstance(written, list) else [written]


def _words(written: object) -> str:
    if isinstance(written, BaseModel):
        return written.model_dump_json()
    return " ".join(str(written).split())


def line_rate(link: LinkSpec, direction: Direction) -> int | None:
    """The link's rate in one direction, in bit/s: its slowest hop; None if a recording sets it."""
    hops = link.up if direction == "up" else link.down
    if any(hop.trace for hop in hops):
        return None
    return min((hop.rate for hop in hops if hop.rate is not None), default=None)


def mean_rate(link: LinkSpec, direction: Direction) -> int | None:
    """The link's rate in one direction, in bit/s: of its slowest hop, of recordings on average."""
    hops = link.up if direction == "up" else link.down
    rates = [_trace_rate(hop.trace) if hop.trace else hop.rate for hop in hops]
    return min((rate for rate in rates if rate is not None), default=None)


def _trace_rate(trace: str) -> int:
    packets, period_ms = _checked(trace, load_trace(trace))
    return round(packets * 1500 * 8e3 / period_ms)


def _checked(name: str, trace: str) -> tuple[int, int]:
    """Packets and milliseconds of the text of a recording."""
    try:
        return _native.check_trace(name, trace)
    except _native.NativeError as error:
        raise UsageError(str(error)) from error


def _scenario(spec: ScenarioSpec, test: TestSpec, set_up: _SetUp) -> dict[str, Any]:
    link, shaper = set_up.link, read_shaper(set_up.shaper)
    tcp = TcpSpec(congestion_control=set_up.cc).over(spec.tcp)
    phases, duration = _phases(test)
    ends = _Ends.of(test)
    parameters = _parameters(spec, test)
    load = next((phase for phase in phases if phase["name"] == "load"), None)
    window = (load["start_ns"], load["end_ns"]) if load else (0, duration)
    return {
        "name": test.name,
        "duration_ns": duration,
        "phases": phases,
        "path": {
            "up": _hops(link, "up", shaper, set_up.queue[0]),
            "down": _hops(link, "down", shaper, set_up.queue[1]),
        },
        "hosts": [
            *({"name": host.name, "delay_ns": host.delay} for host in test.hosts),
            *(reflector_hosts(shaper) if shaper else []),
        ],
        "tunnels": [_tunnel(tunnel, ends) for tunnel in test.tunnels],
        "flows": [
            flow for flow_spec in test.flows for flow in _flows(flow_spec, tcp, ends, parameters, window)
        ],
        "probes": [_probe(probe, spec, ends, duration) for probe in test.probes],
        "methods": [_method(method, tcp, ends, window) for method in [*test.methods, *spec.methods]],
        "shaper": shaper and resolve_shaper(shaper, len(test.hosts), lambda way: mean_rate(link, way)),
        "start_jitter_ns": spec.start_jitter,
        "sampling": {
            "throughput_ns": spec.sampling.throughput,
            "tcp_ns": spec.sampling.tcp,
            "queue_ns": spec.sampling.queue,
        },
        "ip_version": str(spec.ip),
        "mtu_bytes": link.mtu,
    }


@dataclass(frozen=True)
class _Ends:
    """Numbers of the machines at both ends of the path, and of the tunnels between them, by name."""

    hosts: Mapping[str, int]
    stations: Mapping[str, int]
    tunnels: Mapping[str, tuple[int, str]]

    @classmethod
    def of(cls, test: TestSpec) -> _Ends:
        of_flows = (flow.station for flow in test.flows)
        of_tunnels = (tunnel.station for tunnel in test.tunnels)
        stations = dict.fromkeys([CLIENT, *of_flows, *of_tunnels])
        return cls(
            hosts={host.name: number for number, host in enumerate(test.hosts)},
            stations={name: number for number, name in enumerate(stations)},
            tunnels={tunnel.name: (number, tunnel.host) for number, tunnel in enumerate(test.tunnels)},
        )

    def host(self, of: str, host: str) -> int:
        if host not in self.hosts:
            raise UsageError(f"`{of}`: unknown host `{host}` (known: {', '.join(self.hosts)})")
        return self.hosts[host]

    def path(self, one: FlowSpec | ProbeSpec | MethodSpec) -> dict[str, int | None]:
        """To which server it goes, and through which tunnel; where a tunnel ends need not be said again."""
        if one.tunnel is None:
            return {"host": self.host(one.name, one.host), "tunnel": None}
        if one.tunnel not in self.tunnels:
            known = ", ".join(self.tunnels) or "the test has none"
            raise UsageError(f"`{one.name}`: unknown tunnel `{one.tunnel}` (known: {known})")
        number, end = self.tunnels[one.tunnel]
        host = one.host if "host" in one.model_fields_set else end
        return {"host": self.host(one.name, host), "tunnel": number}


def _tunnel(tunnel: TunnelSpec, ends: _Ends) -> dict[str, Any]:
    return {
        "name": tunnel.name,
        "kind": tunnel.kind,
        "host": ends.host(tunnel.name, tunnel.host),
        "station": ends.stations[tunnel.station],
        "on_first_hop": tunnel.on_first_hop,
    }


def _with_phases(test: TestSpec, spec: ScenarioSpec) -> TestSpec:
    phases = test.phases.model_copy(update={str(name): length for name, length in spec.phases.items()})
    if phases.idle + phases.load + phases.cooldown == 0:
        raise UsageError("the test lasts no time: give one of idle, load, cooldown a length")
    return test.model_copy(update={"phases": phases})


def _phases(test: TestSpec) -> tuple[list[dict[str, Any]], int]:
    phases = []
    now = 0
    for name, length in (
        ("idle", test.phases.idle),
        ("load", test.phases.load),
        ("cooldown", test.phases.cooldown),
    ):
        if length > 0:
            phases.append({"name": name, "start_ns": now, "end_ns": now + length})
            now += length
    return phases, now


def _parameters(spec: ScenarioSpec, test: TestSpec) -> dict[str, int]:
    for name in spec.parameters:
        if name not in test.parameters:
            known = ", ".join(test.parameters) or "it has none"
            raise UsageError(f"test `{test.name}` has no parameter `{name}` (known: {known})")
    values = {}
    for name, parameter in test.parameters.items():
        value = spec.parameters.get(name, parameter.default)
        if not parameter.minimum <= value <= parameter.maximum:
            raise UsageError(
                f"parameter `{name}` is {value}: write a number from {parameter.minimum} to "
                f"{parameter.maximum} ({parameter.meaning})"
            )
        values[name] = value
    return values


def _hops(
    link: LinkSpec, direction: Direction, shaper: ShaperSpec | None, queue: str
) -> list[dict[str, Any]]:
    hops = link.up if direction == "up" else link.down
    reference = line_rate(link, direction)
    if shaper is None or direction not in shaper.directions:
        return [_hop(hop, queue, reference) for hop in hops]
    # The queue is the shaper's, at the client's end of the path; the rest of the path is as it was.
    inner = SHAPER_QUEUE if queue == DEFAULT_QUEUE else queue
    shaped = HopSpec(name="shaper", queue=inner, framing=shaper.framing)
    own = _hop(shaped, DEFAULT_QUEUE, reference) | {"shaped": True}
    others = [_hop(hop, DEFAULT_QUEUE, reference) for hop in hops]
    return [own, *others] if direction == "up" else [*others, own]


def _hop(hop: HopSpec, queue: str, reference: int | None) -> dict[str, Any]:
    users = hop.place == "queue" and queue != DEFAULT_QUEUE
    rate: str | dict[str, Any] = "unlimited"
    if hop.rate is not None:
        rate = {"bps": hop.rate}
    elif hop.trace is not None:
        rate = {"trace": hop.trace}
    return {
        "name": hop.name,
        "marker": hop.marker,
        "queue": queue if users else hop.queue,
        "rate": rate,
        "framing": _framing(hop.framing),
        "delay_ns": hop.delay,
        "jitter_ns": hop.jitter,
        "loss": hop.loss.model_dump() if hop.loss else None,
        "reorder": hop.reorder.model_dump() if hop.reorder else None,
        "duplicate": hop.duplicate,
        "tx_queue_len": hop.txqueuelen,
        "reference_rate_bps": reference,
        "changes": [
            change for one in sorted(hop.changes, key=lambda one: one.at) for change in _changes(one)
        ],
        "shaped": False,
    }


def _changes(change: ChangeSpec) -> list[dict[str, Any]]:
    what: list[str | dict[str, int]] = []
    if change.down:
        what.append("down")
    if change.rate is not None:
        what.append({"rate_bps": change.rate})
    if change.delay is not None:
        what.append({"delay_ns": change.delay})
    return [{"at_ns": change.at, "to": to} for to in what]


def _framing(framing: str | FramingSpec) -> dict[str, Any]:
    if isinstance(framing, str):
        return {**_native.framings()[framing]}
    return {
        "overhead_bytes": framing.overhead,
        "minimum_bytes": framing.minimum,
        "cells": framing.cells,
    }


def _flows(
    flow: FlowSpec,
    tcp: TcpSpec,
    ends: _Ends,
    parameters: Mapping[str, int],
    window: tuple[int, int],
) -> list[dict[str, Any]]:
    count = flow.count
    if isinstance(count, str):
        if count not in parameters:
            raise UsageError(f"flow `{flow.name}`: `count` names no parameter of the test: {count}")
        count = parameters[count]
        if not 1 <= count <= MAX_FLOWS:
            raise UsageError(
                f"flow `{flow.name}`: parameter `{flow.count}` is {count}: write a number from 1 to "
                f"{MAX_FLOWS}"
            )
    start, stop = window
    return [
        {
            "name": flow.name if flow.count == 1 else f"{flow.name}::{number + 1}",
            "direction": flow.direction,
            **ends.path(flow),
            "station": ends.stations[flow.station],
            "opened_by": flow.opened_by,
            "dscp": flow.dscp,
            "tcp": _tcp(flow.tcp.over(tcp)),
            "start_ns": start if flow.start is None else flow.start,
            "stop_ns": stop if flow.stop is None else flow.stop,
            "bytes": flow.bytes,
        }
        for number in range(count)
    ]


def _tcp(tcp: TcpSpec) -> dict[str, Any]:
    return {
        "profile": tcp.profile or "linux",
        "congestion_control": tcp.congestion_control or "cubic",
        "overrides": {
            "timestamps": tcp.timestamps,
            "sack": tcp.sack,
            "ecn": tcp.ecn,
            "pacing": tcp.pacing,
            "bursts": tcp.bursts,
            "delayed_ack": tcp.delayed_ack,
            "initial_window": tcp.initial_window,
            "receive_window_bytes": tcp.receive_window,
            "rto_min_ns": tcp.rto_min,
        },
    }


def _probe(probe: ProbeSpec, spec: ScenarioSpec, ends: _Ends, duration: int) -> dict[str, Any]:
    payload = probe.payload
    if payload is None:
        payload = DEFAULT_PAYLOAD[probe.kind]
    return {
        "name": probe.name,
        "kind": probe.kind,
        **ends.path(probe),
        "dscp": probe.dscp,
        "payload_bytes": payload,
        "period_ns": spec.sampling.ping if probe.period is None else probe.period,
        "start_ns": probe.start or 0,
        "stop_ns": duration if probe.stop is None else probe.stop,
        "ttl": probe.ttl,
    }


def _method(method: MethodSpec, all_tcp: TcpSpec, ends: _Ends, window: tuple[int, int]) -> dict[str, Any]:
    tcp = _tcp(method.tcp.over(all_tcp))
    asked_for = METHOD_CONGESTION_CONTROL.get(method.kind, tcp["congestion_control"])
    return {
        "name": method.name,
        "kind": method.kind,
        **ends.path(method),
        "dscp": method.dscp,
        "tls": method.tls,
        "tcp": {**tcp, "congestion_control": method.cc or asked_for},
        "client_congestion_control": method.client_cc or tcp["congestion_control"],
        "start_ns": window[0] if method.start is None else method.start,
    }


MAX_SEED = 2**63 - 1

METHOD_CONGESTION_CONTROL = {"ndt7": "bbr"}
"""Congestion control that servers set on their sockets: m-lab/ndt-server, package `bbr`."""

DEFAULT_PAYLOAD = {"icmp": 56, "udp": 60, "udp_ttl": 60, "tcp": 60}
"""Bytes of payload: what `ping` sends, and the least that irtt sends with its statistics."""
