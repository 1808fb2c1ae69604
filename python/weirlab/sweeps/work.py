"""One run of a sweep, in whatever process: data in, a row of the store out."""

from __future__ import annotations

import math
import platform
import time
from typing import TYPE_CHECKING, Any

from weirlab.errors import WeirError
from weirlab.stats.pings import ping_figures
from weirlab.stats.summary import direction_of, latency_of
from weirlab.sweeps.runs import WORLD, build, unpacked, version
from weirlab.tidy import figures_of
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirlab.worlds import Progress

Row = dict[str, Any]
"""What a run came to, by the names of the columns, without the columns of the axes."""


def begun(key: str, seed: int) -> Row:
    """The row of a run of which nothing is known yet but which it is, and who runs it."""
    return {"run": key, "world": WORLD, "seed": seed, "weir": version(), "build": build()}


def carried_out(
    key: str, packed: bytes, seed: int, traces: Mapping[str, str], progress: Progress | None = None
) -> Row:
    """Runs one run and reduces it to its row; a run that fails becomes a row with the reason.

    The figures are made of rows in memory, which no file holds. A run that was cut short has none.

    Args:
        key: identity of the run.
        packed: its configuration.
        seed: its seed.
        traces: texts of the recordings that it names, by their names.
        progress: hears of the time of the run that was reached, and ends it by returning False.
    """
    began_s = time.process_time()
    row = begun(key, seed)
    try:
        run = unpacked(packed, seed, traces)
        row |= {"test": run.test.name, "link": run.link.name, "queue": run.queue, "cc": run.cc}
        unpacked_s = time.process_time()
        outcome = SimWorld().rows(run, progress)
        said: Row = {
            "simulator_s": time.process_time() - unpacked_s,
            "complete": outcome["complete"],
            "simulated_s": outcome["reached_ns"] / 1e9,
            "events": outcome["events"],
            "packets": outcome["packets"],
        }
        if outcome["complete"]:
            record = SimWorld().held(run, outcome)
            said["warnings"] = "; ".join(record.manifest.warnings)
            latency = latency_of(ping_figures(record))
            found = figures_of(latency, direction_of(record, "down"), direction_of(record, "up"))
            said |= {name: _finite(value) for name, value in found.items()}
        row |= said
    except WeirError as error:
        row["error"] = str(error)
    except Exception as error:  # noqa: BLE001 - one run shall not end the others; the row says what happened
        row["error"] = f"{type(error).__name__}: {error}"
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return row | {
        "processor_s": time.process_time() - began_s,
        "host": platform.node(),
        "finished_at": finished,
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
