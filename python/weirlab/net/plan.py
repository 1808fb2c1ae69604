"""The plan of `weir test`: idle, download, upload, then both at once, with pings throughout."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from weirlab import _native
from weirlab.errors import NetError, UsageError
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.scenario.catalogue import check

__all__ = ["Limits", "Planned", "TestPlan", "fitted", "plan_test"]

if TYPE_CHECKING:
    from weirlab._native import Ramp
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


class Limits(NamedTuple):
    """What a server holds Weir's own test to.

    Attributes:
        server: its name and port.
        load_ns: how long a load may last.
        congestion: the congestion controls that its loads may have.
    """

    server: str
    load_ns: int
    congestion: list[str]


def fitted(plan: TestPlan, limits: Limits, *, is_load_given: bool) -> tuple[TestPlan, str | None]:
    """`plan` within the limits of a server, and a sentence if its loads are shorter for it.

    They are made shorter only where the user did not ask for their length.

    Raises:
        UsageError: if the server allows no test with what was asked for.
        NetError: if it allows none at all.
    """
    try:
        load, said = _native.fit_test(plan.load, plan.cc, limits, is_load_given)
    except _native.InputError as error:
        raise UsageError(str(error)) from error
    except _native.NativeError as error:
        raise NetError(str(error)) from error
    return replace(plan, load=load), said


def plan_test(host: str, plan: TestPlan) -> Planned:
    """The test of the path to `host`.

    Raises:
        UsageError: if a length cannot be read, or is too short.
    """
    try:
        planned, ramp = _native.plan_test(
            idle=plan.idle,
            load=plan.load,
            ping=plan.ping,
            max_flows=plan.max_flows,
            cc=plan.cc,
            locate=plan.locate,
        )
    except _native.InputError as error:
        raise UsageError(str(error)) from error
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
    scenario = json.loads(planned)
    routers = list(range(1, len(scenario["probes"])))
    asked = {name: value for name, value in asdict(plan).items() if name not in {"seed", "locate"}}
    return Planned(replace(run, scenario=scenario), ramp, {"routers": routers, "plan": asked})
