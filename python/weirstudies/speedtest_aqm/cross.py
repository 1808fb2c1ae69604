"""Cross traffic in the lab: `python -m weirstudies.speedtest_aqm.cross CELL HOST FOLDER`.

The loads of a cell over the path to HOST, where `weir serve` runs, until they are ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

from weirlab.errors import WeirError
from weirlab.scenario import ResolvedRun, ScenarioSpec, check, resolve, time_text
from weirlab.worlds.net import NetWorld, without_path
from weirstudies.speedtest_aqm import design


def main() -> int:
    """Runs it, and returns the exit code."""
    name, host, folder = sys.argv[1:]
    try:
        run = run_of(design.cell_named(name), design.study())
        NetWorld(host).run(without_path(run, host), Path(folder), None)
    except WeirError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def run_of(cell: design.Cell, of: design.Study) -> ResolvedRun:
    """Cross traffic beside the method: for as long as that may take, and the time before it."""
    length = lasts_ns(cell, of)
    spec = check(
        ScenarioSpec,
        {
            "test": {
                "name": "cross",
                "title": of.cross_named(cell.cross).says,
                "phases": {"load": time_text(length)},
                "flows": list(design.cross_flows(cell, of, length)),
                "probes": list(design.cross_streams(cell, of, length)),
            },
            "link": {"name": "path", "title": "path"},
        },
        f"study `speedtest-aqm`, `{cell.name}`",
    )
    return resolve(spec)[0]


def lasts_ns(cell: design.Cell, of: design.Study) -> int:
    """Longer than the method, with all that is around it in the lab, may take."""
    return of.method_named(cell.method).longest + design.LEAD_NS + MARGIN_NS


MARGIN_NS = 60_000_000_000
"""Programs that start, on a busy machine late, the time without load, and the load both ways with which
Weir's own test ends."""

if __name__ == "__main__":
    sys.exit(main())
