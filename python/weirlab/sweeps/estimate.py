"""What a sweep will take, before it runs: runs, processor time, bytes."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab.errors import WeirError
from weirlab.record import open_record, pack
from weirlab.sweeps.runs import LAB, WORLD, unpacked
from weirlab.sweeps.samples import ALL, keep_samples
from weirlab.sweeps.sweeping import failed_runs, missing_runs
from weirlab.sweeps.work import carried_out
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.sweeps.runs import Run, Sweep
    from weirlab.sweeps.store import Store
    from weirlab.sweeps.work import Row


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What is to be expected of a sweep.

    Attributes:
        points: points of the plan.
        runs: runs of the plan, each counted once.
        missing: those that the store does not have, and that failed if they are done again.
        failed: those that the store has and that failed, unless they are done again.
        simulated_s: simulated time of the missing runs.
        processor_s: processor time of the missing runs; None if no pilot run could be made, and of the lab.
        clock_s: time by the clock of the missing runs in the lab, one after the other, with what each takes
            to start and to end; None if no pilot run could be made, and elsewhere.
        failure: why no pilot run could be made; None if one could, or none is needed.
        bytes: about what the store will grow by: by rows as large as those of its largest part, and by raw
            samples as large in proportion to their time as those of a pilot run, or of its phases.
        budget_s: processor time after which no further run starts; None for no limit.
        at_most: whether there may be fewer runs: repetitions end when intervals are small enough.
    """

    points: int
    runs: int
    missing: int
    failed: int
    simulated_s: float
    processor_s: float | None
    clock_s: float | None
    failure: str | None
    bytes: int
    budget_s: float | None
    at_most: bool

    def as_dict(self) -> dict[str, Any]:
        """The estimate as plain values."""
        return asdict(self)


def estimate(sweep: Sweep, store: Store | None, *, retry: bool = False) -> Estimate:
    """What the runs of `sweep` will take that `store` does not have, with `retry` also those that failed.

    Up to three of them are tried, each for a second at most (the kernel for four, once it has started): one
    whose lines carry little in a run, one in the middle, one whose lines carry much; the only one twice. The
    processor time of a run is taken as a constant part and one in proportion to what its lines can carry. In
    the lab, whose runs take the time that they last, one is started and ended at once: all take as long to
    start and to end.
    """
    missing = missing_runs(sweep, store, retry=retry) if store is not None else list(sweep.runs)
    row_bytes = (None if store is None else store.row_bytes()) or ROW_BYTES
    is_lab = sweep.work.world == LAB
    lasting_s = sum(run.configuration.duration_s for run in missing)
    took = _starting_s(sweep, missing) if is_lab else _processor_s(sweep, missing)
    took_s = None if isinstance(took, str) else took
    return Estimate(
        points=sweep.points,
        runs=len(sweep.runs),
        missing=len(missing),
        failed=0 if store is None or retry else failed_runs(sweep, store),
        simulated_s=lasting_s,
        processor_s=None if is_lab else took_s,
        clock_s=lasting_s + took_s if is_lab and took_s is not None else None,
        failure=took if isinstance(took, str) else None,
        bytes=round(len(missing) * row_bytes + _sample_bytes(sweep, missing)),
        budget_s=None if sweep.plan is None else sweep.plan.budget_s,
        at_most=sweep.plan is not None and sweep.plan.sweep.until is not None,
    )


def _starting_s(sweep: Sweep, missing: Sequence[Run]) -> float | str:
    """Time by the clock that the runs of the lab take to start and to end; why that is not known."""
    if not missing:
        return 0.0
    began_s = time.monotonic()
    row = _pilot(sweep, missing[0], time.monotonic, 0.0)
    took_s = time.monotonic() - began_s
    if "error" in row:
        return str(row["error"])
    return len(missing) * (took_s - float(row["simulated_s"]))


def _processor_s(sweep: Sweep, missing: Sequence[Run]) -> float | str:
    """The processor time of runs; why that is not known."""
    if not missing:
        return 0.0
    by_volume = sorted(missing, key=lambda run: run.configuration.volume_bits)
    places = list(dict.fromkeys(int(share * (len(by_volume) - 1)) for share in (0.5, 0.1, 0.9)))
    if len(places) == 1:
        places *= 2
    found = [_tried(sweep, by_volume[place]) for place in places]
    tried = [one for one in found if isinstance(one, _Tried)]
    if not tried:
        return next(one for one in found if isinstance(one, str))
    # The first one pays for what a process loads once, which is no part of a run.
    constant_s = min(one.constant_s for one in tried)
    of_bit_s = sum(one.world_s for one in tried) / sum(one.volume_bits for one in tried)
    volume_bits = sum(run.configuration.volume_bits for run in missing)
    return len(missing) * constant_s + of_bit_s * volume_bits


def _sample_bytes(sweep: Sweep, missing: Sequence[Run]) -> float:
    """About the bytes of the raw samples that are kept, by those of a simulated pilot run; 0 if it fails."""
    phases = sweep.work.samples
    if not phases or not missing:
        return 0.0
    run = missing[len(missing) // 2]
    texts = {name: sweep.traces[digest] for name, digest in run.configuration.traces.items()}
    resolved = unpacked(run.configuration.packed, run.seed, texts)
    ends_s = time.process_time() + PILOT_S
    with tempfile.TemporaryDirectory(prefix="weir-pilot-") as place:
        folder = Path(place) / "record"
        try:
            whole = SimWorld().run(resolved, folder, lambda _: time.process_time() < ends_s)
            if whole and phases != ALL:
                keep_samples(folder, phases)
            record = open_record(folder)
            pack(record, Path(place) / "record.weir")
        except WeirError:
            return 0.0
        size = (Path(place) / "record.weir").stat().st_size
        of_second = size / max(record.reached_ns / 1e9, 1e-3)
    whole_s = resolved.scenario["duration_ns"] / 1e9
    if whole or phases == ALL:
        of_run = of_second * whole_s
    else:
        kept = [one for one in resolved.scenario["phases"] if one["name"] in phases]
        of_run = of_second * sum(one["end_ns"] - one["start_ns"] for one in kept) / 1e9
    of_all_s = sum(one.configuration.duration_s for one in missing)
    return float(of_run * of_all_s / whole_s)


@dataclass(frozen=True)
class _Tried:
    """A pilot run: its processor time outside and within the world, and what its lines could carry."""

    constant_s: float
    world_s: float
    volume_bits: float


def _tried(sweep: Sweep, run: Run) -> _Tried | str:
    """A pilot run; why it tells nothing."""
    is_sim = sweep.work.world == WORLD
    # What another kernel has spent is known when it has ended.
    clock, most_s = (time.process_time, PILOT_S) if is_sim else (time.monotonic, KERNEL_PILOT_S)
    row = _pilot(sweep, run, clock, most_s)
    if "error" in row:
        return str(row["error"])
    if not row["simulated_s"]:
        return f"nothing was simulated within {most_s:g} s"
    share = row["simulated_s"] / run.configuration.duration_s
    world_s = row["simulator_s"] if is_sim else row["processor_s"]
    return _Tried(row["processor_s"] - world_s, world_s, run.configuration.volume_bits * share)


def _pilot(sweep: Sweep, run: Run, clock: Callable[[], float], most_s: float) -> Row:
    """The row of a run that is ended `most_s` after it was first heard of: starting takes none of that."""
    texts = {name: sweep.traces[digest] for name, digest in run.configuration.traces.items()}
    first_s: float | None = None

    def goes_on(_: int) -> bool:
        nonlocal first_s
        first_s = clock() if first_s is None else first_s
        return clock() - first_s < most_s

    return carried_out(
        run.key,
        run.configuration.packed,
        run.seed,
        texts,
        goes_on,
        work=None if sweep.work.world == WORLD else replace(sweep.work, samples=(), reduction=""),
    )


PILOT_S = 1.0
"""Processor time of a pilot run in the simulator."""

KERNEL_PILOT_S = 4.0
"""Time by the clock of a pilot run in the world kernel, once that kernel has started."""

ROW_BYTES = 450
"""About the bytes of a row in a part of thousands, for a store that has no large part yet."""
