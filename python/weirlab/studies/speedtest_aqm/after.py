"""A test beside cross traffic of a given age: `python -m weirlab.studies.speedtest_aqm.after FOLDER WORD...`.

Runs `weir WORD...` so that its loads begin when those that FOLDER records are as old as in the simulator.
What a test gets beside BBR depends on that, for BBR looks for the shortest round trip every 10 s. How long a
program takes to start depends on the machine, and is over before the wait.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

from weirlab import cli
from weirlab.net.methods import IDLE_S
from weirlab.studies.speedtest_aqm import design


def main() -> None:
    """Waits, and is `weir` from then on."""
    folder, *words = sys.argv[1:]
    importlib.import_module("weirlab.cli.test_command")
    begin_s = zero_s(Path(folder)) + design.LEAD_NS / 1e9 - IDLE_S - SET_UP_S
    time.sleep(max(0.0, begin_s - time.monotonic()))
    sys.argv[1:] = words
    cli.main()


def zero_s(folder: Path) -> float:
    """When the loads that `folder` records begin, on the machine's monotonic clock."""
    until = time.monotonic() + MAX_START_S
    while time.monotonic() < until:
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            return float(manifest["monotonic_zero_ns"]) / 1e9
        except (FileNotFoundError, KeyError):
            time.sleep(0.01)
    sys.exit(f"no cross traffic began within {MAX_START_S} s")


SET_UP_S = 1.0
"""What a test takes to be let in by its server, some round trips of the line, before its first ping: 0.7 s
where a queue for each flow keeps them short, 1.3 s beneath four bandwidth-delay products."""
MAX_START_S = 20
"""A machine under load starts programs in a few."""

if __name__ == "__main__":
    main()
