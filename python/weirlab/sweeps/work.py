"""One run of a sweep, in whatever process: data in, a row of the store out."""

from __future__ import annotations

import math
import platform
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab.errors import WeirError
from weirlab.record import open_record
from weirlab.sweeps.runs import WORLD, build, unpacked, version
from weirlab.tidy import figures
from weirlab.worlds import world_named

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
        with tempfile.TemporaryDirectory(prefix="weir-sweep-") as folder:
            place = Path(folder) / "record"
            world_named(WORLD).run(run, place, progress)
            simulated_s = time.process_time()
            record = open_record(place)
            manifest = record.manifest
            row |= {
                "complete": manifest.complete,
                "simulated_s": (manifest.reached_ns or 0) / 1e9,
                "events": manifest.events,
                "packets": manifest.packets,
                "warnings": "; ".join(manifest.warnings),
                **{name: _finite(value) for name, value in figures(record).items()},
                "simulator_s": simulated_s - began_s,
            }
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
