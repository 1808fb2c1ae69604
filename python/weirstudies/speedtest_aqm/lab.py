"""Cells in the lab: `weir serve` behind the line, the test before it (`client`), over this machine's TCP.

The client pings the server meanwhile, in a flow of its own; the queues' samples and what the kernels tell of
the connections come from the lab. Cross traffic goes to a server of its own (`cross`).
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import LabError, NetError
from weirlab.lab.client import ask
from weirlab.record import new_manifest, open_record
from weirlab.scenario import ScenarioSpec, check, resolve, time_text
from weirlab.worlds import world_named
from weirlab.worlds.lab import CLOCK, OFFLOADS
from weirstudies.speedtest_aqm import client, cross, design
from weirstudies.speedtest_aqm.figures import LOADED, WAYS, Run, Seen, key_of
from weirstudies.speedtest_aqm.measure import Keeping, go_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from weirlab.lab.client import View
    from weirlab.record import Record
    from weirlab.scenario import Direction, ResolvedRun
    from weirlab.worlds import Progress
    from weirstudies.speedtest_aqm.design import Cell, Study
    from weirstudies.speedtest_aqm.measure import Found, Watching


def experiment(wanted: Mapping[Cell, int], out: Path, *, of: Study, watching: Watching) -> Found:
    """The runs of all cells in the lab: those whose figures `out` holds, and the others run now.

    Raises:
        Interrupted: if not all came to their ends; those that did are kept.
        UsageError: if `out` holds figures of other scenarios.
    """
    cells = {cell.name: cell for cell in wanted}

    def work(run: ResolvedRun, folder: Path, progress: Progress | None) -> Run | None:
        cell = cells[run.queue]
        found = None
        for attempt in range(ATTEMPTS):
            found = _measure(run, cell, of, folder / str(attempt), progress)
            if found is None or found.disturbed is None:
                break
        return found

    runs = [run for cell, count in wanted.items() for run in runs_of(cell, of=of, repetitions=count)]
    return go_on(runs, Keeping(world_named("lab"), work), out / "lab", cells, jobs=1, watching=watching)


def runs_of(cell: Cell, *, of: Study, repetitions: int) -> list[ResolvedRun]:
    """The runs of a cell: the line, and time enough for what goes over it."""
    length = of.method_named(cell.method).longest + design.LEAD_NS + AROUND_NS
    spec = check(
        ScenarioSpec,
        {
            "test": {
                "name": "speedtest-aqm",
                "title": f"{cell.method} beneath {cell.queue}, in the lab",
                "phases": {"load": time_text(length)},
            },
            "link": design.link(cell),
            "queue": [design.queue_words(cell, of)],
            "repeat": repetitions,
        },
        f"study `speedtest-aqm`, `{cell.name}`",
    )
    return [dataclasses.replace(run, queue=cell.name) for run in resolve(spec)]


def _measure(run: ResolvedRun, cell: Cell, of: Study, folder: Path, progress: Progress | None) -> Run | None:
    """The figures of a run, made in the lab with records in `folder`; None if it was to end early."""
    folder.mkdir(parents=True)
    answer = _run_test(run, cell, of, folder, progress)
    if answer is None:
        return None
    if answer["exit_code"] != 0:
        raise NetError(f"`{cell.name}` in the lab: {_error(folder)}")
    said: client.Said = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    line, pings = open_record(folder / "line"), open_record(folder / "pings")
    beside = open_record(folder / "cross") if cell.cross != "none" else None
    check_senders(cell, of, line)
    seen = seen_of(cell, line, pings)
    programs_late_ms = (pings.pings["timer_error_ns"].quantile(0.9) or 0.0) / 1e6
    began_ns = said["began_ns"] + _lag_ns(line, pings)
    return Run(
        key=key_of(run),
        cell=cell.name,
        seed=run.seed,
        world="lab",
        result=said["result"],
        seconds=_loaded_s(seen, cell),
        idle_ms=_idle_ms(seen, began_ns) if cell.cross == "none" else None,
        ways=seen.ways(),
        late_ms=round(answer["quality"]["late_p99_ns"] / 1e6, 3),
        programs_late_ms=round(programs_late_ms, 3),
        disturbed=disturbed(answer["quality"], programs_late_ms)
        or (at_another_age(began_ns + _lag_ns(beside, line)) if beside else None),
        warnings=[*answer["warnings"], *pings.manifest.warnings],
    )


def _run_test(
    run: ResolvedRun, cell: Cell, of: Study, folder: Path, progress: Progress | None
) -> dict[str, Any] | None:
    """Runs the test and what goes on beside it; None if `progress` wanted an end."""
    goes_on = True

    def on_view(view: View) -> bool:
        nonlocal goes_on
        goes_on = progress is None or progress(min(view["t_ns"], run.scenario["duration_ns"]))
        return goes_on

    manifest = new_manifest(run, world="lab", clock=CLOCK, offloads=OFFLOADS)
    answer = ask(
        {
            "do": "exec",
            "scenario": run.scenario,
            "traces": {},
            "seed": run.seed,
            "program": ["sh", "-c", before(cell, of, folder)],
            "server_command": behind(cell, of),
            "device": None,
            "capture": None,
            "record": {"folder": str((folder / "line").absolute()), "manifest": manifest},
        },
        on_view,
    )
    return answer if goes_on else None


def _loaded_s(seen: Seen, cell: Cell) -> float:
    """How long the method loaded the line, in seconds."""
    first, last = seen.first_loaded_ns(), seen.last_loaded_ns()
    if first is None or last is None:
        raise LabError(f"`{cell.name}`: the method never had {LOADED:.0%} of the line's rate")
    return round((last - first) / 1e9, 3)


def _idle_ms(seen: Seen, began_ns: int) -> float | None:
    """Median round trip before the test began; None without pings until then."""
    idle = seen.pings.filter(pl.col("t_ns") < began_ns)
    median = idle["rtt_ns"].drop_nulls().median()
    return round(median / 1e6, 4) if isinstance(median, float) else None


def behind(cell: Cell, of: Study) -> str:
    """Programs behind the line: a server for the test, and one for the cross traffic."""
    beside = (
        f"{_weir()} serve --listen {CROSS_PORT} --without irtt --max-duration 300s "
        f"--max-echo-rate {MAX_ECHOES} >/dev/null 2>&1 & "
        if cell.cross != "none"
        else ""
    )
    return f"{_sends_with(of.method_named(cell.method).cc)}{beside}exec {_weir()} serve >/dev/null 2>&1"


def before(cell: Cell, of: Study, folder: Path) -> str:
    """Programs in front of the line: cross traffic if there is some, then the test."""
    said, errors, pings, beside = (
        shlex.quote(str((folder / name).absolute())) for name in ("said.json", "errors", "pings", "cross")
    )
    # Weir's own test asks for a congestion control itself.
    words = _sends_with(cell.client_cc or of.method_named(cell.method).client_cc)
    test = f"{_python()} -m {client.__name__} {shlex.quote(cell.name)} server {pings}"
    if cell.cross == "none":
        return f"exec 2>{errors}; {words}{_when_listening(SERVER_PORT)}exec {test} >{said}"
    # It has to share the line when the test begins, and until that ends.
    return (
        f"exec 2>{errors}; {words}{_when_listening(SERVER_PORT, CROSS_PORT)}"
        f"{_python()} -m {cross.__name__} {shlex.quote(cell.name)} server:{CROSS_PORT} {beside} & cross=$!; "
        f"{test} {beside} >{said} && kill -0 $cross"
    )


def _when_listening(*ports: int) -> str:
    words = " ".join(str(port) for port in ports)
    return f"{_python()} -c {shlex.quote(WAITING)} {words} && "


def _sends_with(name: str) -> str:
    """Makes it the congestion control of who does not ask for one: else it would be this machine's.

    By the route, since only the first namespace of a machine may choose any as the usual one
    (`tcp_set_default_congestion_control` in net/ipv4/tcp_cong.c).
    """
    return f"ip route replace {NETWORK} dev {DEVICE} proto kernel scope link congctl {name} && "


def check_senders(cell: Cell, of: Study, line: Record) -> None:
    """Looks with what the kernels sent, the test's connections and those beside it.

    Raises:
        LabError: if one was sent with another congestion control than the cell's.
    """
    method, beside = of.method_named(cell.method), of.cross_named(cell.cross)
    wanted = {"client": cell.client_cc or method.client_cc, "server": method.cc}
    for _, one in _connections(line, SERVER_PORT):
        for end, name in wanted.items():
            _check_sender(cell, one, end, name)
    if beside.cc is None:
        return
    connections = dict(_connections(line, CROSS_PORT))
    for way, flows in _flows(line, CROSS_PORT).items():
        # What its two ends tell each other goes over a connection that carries little.
        carried = line.throughput.filter(pl.col("flow").is_in(flows)).group_by("flow").agg(pl.sum("bytes"))
        for flow in carried.top_k(beside.flows, by="bytes")["flow"]:
            _check_sender(cell, connections[flow // 2], SENDERS[way], beside.cc)


def _check_sender(cell: Cell, connection: Mapping[str, Any], end: str, wanted: str) -> None:
    told = connection[f"{end}_congestion_control"]
    if told not in {None, wanted}:
        port = connection["server"].rpartition(":")[2]
        raise LabError(
            f"`{cell.name}`: the {end} of a connection to port {port} sent with {told} in place of {wanted}"
        )


def _weir() -> str:
    return f"{_python()} -m weirlab"


def _python() -> str:
    return shlex.quote(sys.executable)


def _error(folder: Path) -> str:
    lines = (folder / "errors").read_text(encoding="utf-8").strip().splitlines()
    return lines[-1] if lines else "the client failed without a word"


def seen_of(cell: Cell, line: Record, pings: Record) -> Seen:
    """Both records on the line's clock. Connections are told apart by the server's port."""
    step = line.interval_ns("throughput")
    flows = _flows(line, SERVER_PORT)
    # A request for next to nothing is a sample of the other flows' time, on whatever connection it goes.
    least = LOADING * cell.rate_mbps * 1e6 / 8 * step / 1e9
    moved = line.throughput.filter(pl.col("bytes") >= least).select("t_ns", "flow")
    senders = line.tcp.join(moved, on=("t_ns", "flow"), how="semi")
    loading = set(moved["flow"])
    beside = _flows(line, CROSS_PORT)
    return Seen(
        cell=cell,
        step=step,
        flows=flows,
        cross={way: [one for one in beside[way] if one in loading] for way in WAYS},
        throughput=line.throughput,
        queue=line.queue,
        pings=pings.pings.with_columns(t_ns=pl.col("t_ns") + _lag_ns(line, pings)),
        samples=pings.pings.clear(),
        senders={way: senders.filter(pl.col("flow").is_in(flows[way])) for way in WAYS},
    )


def _flows(line: Record, port: int) -> dict[Direction, Sequence[int]]:
    """The flows of connections to that port of the server: up, then down, of each."""
    places = [place for place, _ in _connections(line, port)]
    return {"up": [2 * place for place in places], "down": [2 * place + 1 for place in places]}


def _connections(line: Record, port: int) -> list[tuple[int, dict[str, Any]]]:
    """The connections to that port of the server, with their places among all."""
    known: list[dict[str, Any]] | None = line.manifest.extra["connections"]
    if known is None:
        raise LabError(f"the kernel does not tell of its connections: {line.manifest.warnings[-1]}")
    return [(place, one) for place, one in enumerate(known) if int(one["server"].rpartition(":")[2]) == port]


def _lag_ns(line: Record, other: Record) -> int:
    """How much later `line`'s clock says the same moment: both count from points of this machine's."""
    zeros = [one.manifest.extra["monotonic_zero_ns"] for one in (other, line)]
    return int(zeros[0] - zeros[1])


def disturbed(quality: Mapping[str, Any], programs_late_ms: float) -> str | None:
    """Why the machine spoiled a run; None if it did not.

    The lab warns from 1 ms on. Here a run counts while what is late stays small beside the round trip:
    packets that leave the emulator, and programs, whose requests show a wait for the processor as latency.
    """
    late_ms = quality["late_p99_ns"] / 1e6
    if late_ms > MAX_LATENESS_MS:
        return f"1 % of packets left {late_ms:.1f} ms or more too late"
    lost = quality["overrun"] + quality["refused"]
    if lost:
        return f"{lost} packets were lost in front of the emulator"
    if programs_late_ms > MAX_LATENESS_MS:
        return f"a tenth of the pings were sent {programs_late_ms:.1f} ms or more too late"
    return None


def at_another_age(age_ns: int) -> str | None:
    """Why what ran beside a run was not as old as in the simulator when the test began; None if it was."""
    if abs(age_ns - design.LEAD_NS) <= AGE_OFF_NS:
        return None
    return (
        f"the test began {age_ns / 1e9:.1f} s after the cross traffic, in place of {design.LEAD_NS / 1e9:g} s"
    )


AROUND_NS = 25_000_000_000
"""Time around a method's own, in nanoseconds: no run takes longer as a rule."""

ATTEMPTS = 3
"""How often a run is made that the machine disturbs."""

MAX_LATENESS_MS = 5.0
"""A quarter of the empty round trip of 20 ms."""

AGE_OFF_NS = 500_000_000
"""Cross traffic of BBR's changes its ways every 10 s; half a second is little beside that."""

LOADING = 0.001
"""Share of the rate from which on a connection carries load: at 100 Mbit/s 1250 bytes in 100 ms."""

SENDERS: dict[Direction, str] = {"up": "client", "down": "server"}
"""The end that sends."""

NETWORK = "10.0.0.0/8"
DEVICE = "weir0"
"""Of both ends of the lab, whose only route it is."""

SERVER_PORT = 8080
"""Port of `weir serve` by default."""
CROSS_PORT = 8081
WAITING = """\
import socket, sys, time
for port in sys.argv[1:]:
    for _ in range(300):
        try:
            socket.create_connection(("server", int(port)), 1).close()
            break
        except OSError:
            time.sleep(0.1)
    else:
        sys.exit(f"no server listens at port {port}")
"""
MAX_ECHOES = 50_000
"""UDP streams of half of 200 Mbit/s are 9000 packets a second."""
