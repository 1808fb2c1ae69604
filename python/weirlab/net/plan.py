"""The plan of `weir test`: idle, download, upload, then both at once, with pings throughout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weirlab._native import Ramp, RampPhase
from weirlab.errors import UsageError
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.scenario.catalogue import check
from weirlab.scenario.units import time_ns

__all__ = ["Planned", "TestPlan", "plan_test"]

if TYPE_CHECKING:
    from weirlab.scenario import ResolvedRun


@dataclass(frozen=True, kw_only=True)
class TestPlan:
    """Settings of a test that the user may choose.

    Attributes:
        idle, load: lengths of the phase without load and of each with it, such as `4s`.
        ping: time between two pings.
        max_flows: flows at most, each way.
        cc: congestion control of all loads; `default` for each machine's own.
        seed: seed of when pings begin.
        locate: whether the first routers are asked too.
    """

    __test__ = False  # not a test of ours: keeps pytest from collecting it

    idle: str
    load: str
    ping: str
    max_flows: int
    cc: str
    seed: int
    locate: bool = False

    @classmethod
    def of(cls, words: dict[str, Any]) -> TestPlan:
        """A plan made of the words of the command line."""
        return cls(**{name: words[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Planned:
    """A test, ready for the world net.

    Attributes:
        run: phases and probes.
        ramp: in which phases flows are added until the line is full.
        said: what else the manifest says.
    """

    run: ResolvedRun
    ramp: Ramp
    said: dict[str, Any]


def plan_test(host: str, plan: TestPlan) -> Planned:
    """The test of the path to `host`.

    Raises:
        UsageError: if a length cannot be read, or is too short.
    """
    idle, load = _time("idle", plan.idle), _time("load", plan.load)
    if load < MIN_LOAD_NS:
        raise UsageError(f"load {plan.load}: write 3s or more, since a line takes time to fill")
    if idle < MIN_IDLE_NS:
        raise UsageError(f"idle {plan.idle}: write 1s or more")
    if _time("ping", plan.ping) > MAX_PING_NS:
        raise UsageError(f"ping {plan.ping}: write 200ms or less")
    written = {
        "test": {
            "name": "test",
            "title": "Test of the path to a server",
            "summary": "idle, download, upload, both at once; UDP pings throughout",
            "phases": {"idle": plan.idle, "load": plan.load},
            "probes": [{"name": "UDP", "kind": "udp"}],
        },
        "link": {"name": "path", "title": f"path to {host}"},
        "seed": plan.seed,
        "sampling": {"ping": plan.ping},
    }
    run = resolve(check(ScenarioSpec, written, "command line"))[0]
    phases = _phases(idle, load)
    duration = phases[-1]["end_ns"] + COOLDOWN_NS
    probes = [{**probe, "stop_ns": duration} for probe in run.scenario["probes"]]
    if plan.locate:
        period = time_ns(PERIOD)
        probes += [
            {**probes[0], "name": f"router {ttl}", "kind": "udp_ttl", "ttl": ttl, "period_ns": period}
            for ttl in range(1, ROUTERS + 1)
        ]
    scenario = {**run.scenario, "phases": phases, "duration_ns": duration, "probes": probes}
    ramp = Ramp(
        (
            RampPhase("download", down=True, up=False),
            RampPhase("upload", down=False, up=True),
            RampPhase("load", down=True, up=True),
        ),
        max_flows=plan.max_flows,
        interval_ns=INTERVAL_NS,
        congestion=None if plan.cc == MACHINES_OWN else plan.cc,
    )
    return Planned(replace(run, scenario=scenario), ramp, {"routers": list(range(1, len(probes)))})


def _phases(idle: int, load: int) -> list[dict[str, Any]]:
    phases, now = [], 0
    for name, length in (("idle", idle), ("download", load), ("upload", load), ("load", load)):
        phases.append({"name": name, "start_ns": now, "end_ns": now + length})
        # A full buffer of two seconds has to run empty before something else is measured.
        now += length + (GAP_NS if name != "idle" else 0)
    return phases


def _time(name: str, text: str) -> int:
    try:
        nanoseconds = time_ns(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    if nanoseconds <= 0:
        raise UsageError(f"{name} {text}: write a time above 0, such as 4s")
    return nanoseconds


MACHINES_OWN = "default"
MIN_IDLE_NS = 1_000_000_000
MIN_LOAD_NS = 3_000_000_000
MAX_PING_NS = 200_000_000
"""Five within the shortest idle phase."""
INTERVAL_NS = 500_000_000
"""Between two looks whether the line is full."""
GAP_NS = 2_000_000_000
COOLDOWN_NS = 500_000_000
"""Pause at the end, so that the last pings of the load are answered."""

ROUTERS = 6
"""Routers that are asked: the home's, the access line's and the provider's first."""

PERIOD = "100ms"
"""Between two probes of one router: Linux answers a sender once a second after a burst of 6
(`net.ipv4.icmp_ratelimit`), others ten times."""
