"""The test of a cell in the lab: `python -m weirstudies.speedtest_aqm.client CELL SERVER FOLDER [CROSS]`.

Runs the cell's method against `weir serve` on SERVER, with pings beside it whose record goes into FOLDER, and
prints what came of it as JSON (`Said`).

CROSS is the folder that cross traffic is recorded in. With it the test begins to load when those loads are as
old as in the simulator. What a test gets beside BBR depends on that, for BBR looks for the shortest round
trip every 10 s. How long a program takes to start depends on the machine, and is over before the wait.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from weirlab.errors import NetError, WeirError
from weirlab.net.methods import IDLE_S, host_of, kept_run, run_beside, run_method, url_of
from weirlab.net.plan import TestPlan, plan_test
from weirlab.record import open_record
from weirlab.scores import measured
from weirlab.worlds.net import NetWorld
from weirstudies.speedtest_aqm import design

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import MethodResult


class Said(TypedDict):
    """Outcome of a test.

    Attributes:
        result: what the method reports; Weir's own with the names that it has in the simulator.
        began_ns: when it began to load, on the clock of the pings' record.
    """

    result: dict[str, Any]
    began_ns: int


def main(words: Sequence[str]) -> int:
    """Runs it, and returns the exit code."""
    name, server, folder, *crosses = words
    try:
        for cross in crosses:
            begin_s = zero_s(Path(cross)) + design.LEAD_NS / 1e9 - IDLE_S - SET_UP_S
            time.sleep(max(0.0, begin_s - time.monotonic()))
        cell = design.cell_named(name)
        said = own(server, Path(folder)) if cell.method == design.OWN else foreign(cell, server, Path(folder))
    except WeirError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(said))
    return 0


def own(server: str, folder: Path) -> Said:
    """Weir's own test, as `weir test` runs it, with the phases of the study.

    Raises:
        NetError: if the server goes away, or too little was measured.
    """
    load = f"{design.OWN_LOAD_NS / 1e9:g}s"
    words = TestPlan(idle=f"{IDLE_S}s", load=load, ping="10ms", max_flows=16, cc="cubic", seed=1)
    plan = plan_test(server, words)
    NetWorld(server).measure(plan.run, folder, None, ramp=plan.ramp, said=plan.said)
    record = open_record(folder)
    figures, idle = measured(record), record.phase("idle")
    if figures is None or idle is None:
        raise NetError(f"server `{server}`: too little was measured")
    loaded = {name: one.latency.median for name, one in figures.loaded.items()}
    result = {
        "method": design.OWN,
        "download_mbps": figures.down_mbps,
        "upload_mbps": figures.up_mbps,
        "down_loaded_ms": loaded.get("download"),
        "up_loaded_ms": loaded.get("upload"),
    }
    return {"result": result, "began_ns": idle[1]}


def foreign(cell: design.Cell, server: str, folder: Path) -> Said:
    """A foreign test, with pings to the server beside it.

    Raises:
        NetError: if it does not come to its end, or no ping came back.
    """
    url = url_of(cell.method, server)
    host = host_of(url)

    def work() -> MethodResult:
        return run_method(cell.method, url, None, verify=False, progress=None)

    result, seen = run_beside(NetWorld(host), kept_run(host), folder, work)
    if result["failures"]:
        raise NetError(f"{cell.method} of `{url}`: {result['failures'][0]}")
    if seen is None:
        raise NetError(f"{cell.method} of `{url}`: no ping came back")
    return {"result": dict(result), "began_ns": round(seen.began_s * 1e9)}


def zero_s(folder: Path) -> float:
    """When the loads that `folder` records begin, on the machine's monotonic clock.

    Raises:
        NetError: if none do.
    """
    until = time.monotonic() + MAX_START_S
    while time.monotonic() < until:
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            return float(manifest["monotonic_zero_ns"]) / 1e9
        except (FileNotFoundError, KeyError):
            time.sleep(0.01)
    raise NetError(f"no cross traffic began within {MAX_START_S} s")


SET_UP_S = 1.0
"""Time that a test takes to be let in by its server, some round trips of the line, before its first ping:
0.7 s where a queue for each flow keeps them short, 1.3 s beneath four bandwidth-delay products."""
MAX_START_S = 20
"""A machine under load starts programs in a few."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
