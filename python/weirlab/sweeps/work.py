"""One run of a sweep, in whatever process: data in, a row of the store out."""

from __future__ import annotations

import importlib
import json
import math
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab.errors import UsageError, WeirError
from weirlab.record import open_record, pack
from weirlab.stats.pings import ping_figures
from weirlab.stats.summary import direction_of, latency_of
from weirlab.sweeps.columns import REDUCED
from weirlab.sweeps.runs import PLAIN, WORLD, Work, build, unpacked, version
from weirlab.sweeps.samples import ALL, keep_samples
from weirlab.tidy import figures_of
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds import Progress

Row = dict[str, Any]
"""What a run came to, by the names of the columns, without the columns of the axes."""


def begun(key: str, seed: int, work: Work = PLAIN) -> Row:
    """The row of a run of which nothing is known yet but which it is, and who runs it."""
    which = {"run": key, "world": work.place, "kernel": work.kernel or None, "seed": seed}
    return which | {"weir": version(), "build": build()}


def asked_of(run: ResolvedRun) -> Row:
    """What its scenario says that a run is of."""
    return {"test": run.test.name, "link": run.link.name, "queue": run.queue, "cc": run.cc}


def carried_out(  # noqa: PLR0913 - a run and how it is made
    key: str,
    packed: bytes,
    seed: int,
    traces: Mapping[str, str],
    progress: Progress | None = None,
    *,
    work: Work | None = None,
    archive: Path | None = None,
) -> Row:
    """Runs one run and reduces it to its row; a run that fails becomes a row with the reason.

    The figures are made of rows in memory, which no file holds, unless a record is asked for. A run that was
    cut short has none.

    Args:
        key: identity of the run.
        packed: its configuration.
        seed: its seed.
        traces: texts of the recordings that it names, by their names.
        progress: hears of the time of the run that was reached, and ends it by returning False.
        work: how it is made, and what is kept; in the simulator, and the row alone, if None.
        archive: file for its raw samples, which is there afterwards if the run came to its end.
    """
    began_s = _spent_s()
    how = work or PLAIN
    row = begun(key, seed, how)
    try:
        run = unpacked(packed, seed, traces)
        row |= asked_of(run)
        row |= _recorded(run, how, archive, progress) if how.needs_record else _in_memory(run, progress)
    except WeirError as error:
        row["error"] = str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - one run shall not end the others, nor shall a panic of Rust
        row["error"] = f"{type(error).__name__}: {error}"
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return row | {
        "processor_s": _spent_s() - began_s,
        "host": platform.node(),
        "finished_at": finished,
    }


def _spent_s() -> float:
    """Processor time of this process, and of those of its children that have ended, in seconds.

    The work of lab and kernel is that of children.
    """
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _in_memory(run: ResolvedRun, progress: Progress | None) -> Row:
    """What a simulated run came to, without a record."""
    began_s = time.process_time()
    outcome = SimWorld().rows(run, progress)
    said: Row = {
        "simulator_s": time.process_time() - began_s,
        "complete": outcome["complete"],
        "simulated_s": outcome["reached_ns"] / 1e9,
        "events": outcome["events"],
        "packets": outcome["packets"],
    }
    return said | (_figures(SimWorld().held(run, outcome)) if outcome["complete"] else {})


def _recorded(run: ResolvedRun, work: Work, archive: Path | None, progress: Progress | None) -> Row:
    """What a run came to by its record, of which no more stays than what is asked for."""
    with tempfile.TemporaryDirectory(prefix="weir-run-") as place:
        folder = Path(place) / "record"
        began_s = time.process_time()
        complete = work.made_world().run(run, folder, progress)
        spent_s = time.process_time() - began_s
        record = open_record(folder)
        said: Row = {
            # The work of others is another process'.
            "simulator_s": spent_s if work.world == WORLD else None,
            "complete": complete,
            "simulated_s": record.reached_ns / 1e9,
            "events": record.manifest.events,
            "packets": record.manifest.packets,
        }
        if not complete:
            return said
        said |= _figures(record)
        if work.reduction:
            said[REDUCED] = json.dumps(_reduction(work.reduction)(record, run))
        if archive is not None:
            if work.samples != ALL:
                keep_samples(folder, work.samples)
                record = open_record(folder)
            pack(record, archive)
    return said


def _figures(record: Record) -> Row:
    """The figures of a run that came to its end."""
    latency = latency_of(ping_figures(record, of_probes=False))
    found = figures_of(latency, direction_of(record, "down"), direction_of(record, "up"))
    return {
        "warnings": "; ".join(record.manifest.warnings),
        **{name: _finite(value) for name, value in found.items()},
    }


def _reduction(name: str) -> Callable[[Record, ResolvedRun], Any]:
    """The function of that name.

    Raises:
        UsageError: if it is not there.
    """
    module, _, function = name.partition(":")
    try:
        found: Callable[[Record, ResolvedRun], Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"`{name}` is not here, which reduces a record: {error}") from error
    return found


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
