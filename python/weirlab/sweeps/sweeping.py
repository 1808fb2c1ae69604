"""Carrying out a plan: what is missing in the store is run, and every row is kept soon after its run."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from weirlab.errors import WriteError, counted
from weirlab.interrupt import heeding
from weirlab.sweeps.cluster import Cluster, run_on_cluster
from weirlab.sweeps.columns import FIGURES, IDENTITY, ORIGIN, OWN, REDUCED
from weirlab.sweeps.local import Orders, processors, run_here, run_in_processes
from weirlab.sweeps.runs import build, version
from weirlab.sweeps.samples import ALL
from weirlab.sweeps.store import sample_name
from weirlab.sweeps.until import looks, unsettled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weirlab.sweeps.plan import Plan
    from weirlab.sweeps.runs import Run, Sweep
    from weirlab.sweeps.store import Store
    from weirlab.sweeps.work import Row

__all__ = ["carry_out"]


class Watcher(Protocol):
    """Hears how a sweep goes on."""

    def begun(self, count: int) -> None:
        """So many runs are to be done."""
        ...

    def ended(self, *, failed: bool) -> None:
        """One more run is done."""
        ...


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of carrying out a plan.

    Attributes:
        runs: runs of the plan; those that were wanted until the last look, if it has an `until`.
        kept: those that the store had already.
        done: those that were done now.
        failed: those of `kept` and `done` that failed.
        failed_before: those of `kept` that failed, which are not done again unless that is asked for.
        left: those that were not done: the sweep was interrupted, or its budget spent.
        interrupted: whether it was told to stop.
        other_builds: those of `kept` that another build of the same version did.
        unsettled: points whose interval is larger than `until` asks for after all of their runs; None without
            an `until`, or if runs are left.
        processor_s: processor time of `done`.
        simulator_s: how much of it the simulator took.
    """

    runs: int
    kept: int
    done: int
    failed: int
    failed_before: int
    left: int
    interrupted: bool
    other_builds: int
    unsettled: int | None
    processor_s: float
    simulator_s: float

    @property
    def failure(self) -> str | None:
        """How many runs failed, in words, and when; None if none did."""
        if not self.failed:
            return None
        before = f", {self.failed_before} of them in an earlier call" if self.failed_before else ""
        return f"{self.failed} of {counted(self.kept + self.done, 'run')} failed{before}"

    @property
    def remarks(self) -> Iterator[str]:
        """What else who reads the rows must know of them, in sentences."""
        if self.other_builds:
            kept = counted(self.other_builds, "row")
            yield f"{kept} that were there are of another build of this version of Weir"
        if self.unsettled:
            yield (
                f"{counted(self.unsettled, 'point')} did not come to the interval that `until` asks for: "
                "raise its `most`, or read them as less certain than the others"
            )
        if self.left and not self.interrupted:
            left = counted(self.left, "run")
            yield f"the budget is spent, what ran has ended: {left} left; the same command goes on"


def carry_out(  # noqa: PLR0913 - each is one word of the command line
    sweep: Sweep,
    store: Store,
    *,
    jobs: int | None = None,
    cluster: Cluster | None = None,
    retry: bool = False,
    watcher: Watcher | None = None,
) -> Outcome:
    """Runs what the store does not have of a sweep.

    Args:
        sweep: the runs of a plan.
        store: where the rows are kept.
        jobs: worker processes; 1 for this process alone, None for one a processor.
        cluster: the cluster that does it, in place of `jobs`; None for this machine.
        retry: whether runs that failed are done again.
        watcher: hears how it goes on.

    Raises:
        UsageError: if a cluster is asked for that there is not, or whose workers have another Weir.
        WriteError: if the store cannot be written.
        WeirError: if no worker process can be started.
    """
    plan = sweep.plan
    axes = {} if plan is None else axis_columns(plan)
    if plan is not None:
        store.keep_plan(kept_of(plan))
    keeper = _Keeper(store, axes, None if plan is None else plan.budget_s, watcher)
    wanted = kept = other_builds = failed_before = left = 0
    with heeding() as stop:
        orders = Orders(
            runs=(),
            traces=sweep.traces,
            told=keeper.told,
            stop=stop,
            run_limit_s=RUN_LIMIT_S if plan is None else plan.run_limit_s,
            work=sweep.work,
            keep=lambda run, archive: store.keep_samples(run.key, sweep.work.samples, archive),
        )
        for runs in looks(sweep, store):
            missing, there = _missing(replace(sweep, runs=tuple(runs)), store, axes, retry=retry)
            wanted, kept = wanted + len(runs), kept + there.runs
            other_builds, failed_before = other_builds + there.other_builds, failed_before + there.failed
            before = keeper.done
            if watcher is not None:
                watcher.begun(before + len(missing))
            try:
                _run(replace(orders, runs=missing), jobs, cluster)
            finally:
                keeper.flush()
            left = len(missing) - (keeper.done - before)
            if left or keeper.spent:
                break
    store.write_manifest()
    return Outcome(
        runs=wanted,
        kept=kept,
        done=keeper.done,
        failed=keeper.failed + failed_before,
        failed_before=failed_before,
        left=left,
        interrupted=left > 0 and not keeper.spent,
        other_builds=other_builds,
        unsettled=None if left or keeper.spent else unsettled(sweep, store),
        processor_s=keeper.processor_s,
        simulator_s=keeper.simulator_s,
    )


def _run(orders: Orders, jobs: int | None, cluster: Cluster | None) -> None:
    """Runs all of the orders where it is asked for."""
    if not orders.runs:
        return
    if cluster is not None:
        run_on_cluster(orders, cluster)
    elif jobs == 1 or len(orders.runs) == 1 or orders.work.made_world().at_once == 1:
        # The lab has this machine for itself.
        run_here(orders)
    else:
        run_in_processes(orders, jobs=jobs or processors())


def rows_of(sweep: Sweep, store: Store) -> pl.LazyFrame:
    """The rows of a plan that the store has, in the order of the plan, as a lazy frame."""
    keys = pl.LazyFrame({"run": [run.key for run in sweep.runs]})
    rows = keys.join(store.scan(), on="run", how="inner", maintain_order="left")
    axes = {} if sweep.plan is None else axis_columns(sweep.plan)
    first = [*axes, *(name for name in IDENTITY if name not in axes)]
    reduced = [REDUCED] if sweep.work.reduction and REDUCED in rows.collect_schema() else []
    return rows.select(*first, *FIGURES, *reduced, *ORIGIN)


def axis_columns(plan: Plan) -> dict[str, Any]:
    """The columns of the axes of a plan, with their types."""
    types = {"text": pl.String, "boolean": pl.Boolean, "integer": pl.Int64}
    return {axis.column: types.get(axis.kind, pl.Float64) for axis in plan.axes}


def missing_runs(sweep: Sweep, store: Store, *, retry: bool = False) -> list[Run]:
    """The runs of a sweep that the store does not have."""
    known = _with_samples(sweep, store, store.done(["run", "error"], retry=retry))
    return [run for run in sweep.runs if run.key not in known]


def _with_samples(sweep: Sweep, store: Store, there: pl.DataFrame) -> set[str]:
    """The keys of these rows, without those of which raw samples are asked for and not there.

    Runs that failed have none.
    """
    phases = sweep.work.samples
    if not phases:
        return set(there["run"])
    names = store.samples()
    return {
        key
        for key, error in there.select("run", "error").iter_rows()
        if error is not None or {sample_name(key, phases), sample_name(key, ALL)} & names
    }


def failed_runs(sweep: Sweep, store: Store) -> int:
    """How many runs of a sweep failed of those that the store has."""
    there = store.done(["run", "error"], retry=False).filter(pl.col("error").is_not_null())
    failed = set(there["run"])
    return sum(run.key in failed for run in sweep.runs)


def kept_of(plan: Plan) -> dict[str, Any]:
    """What a store keeps of a plan: as it is written, and where, if it names files."""
    sweep = plan.sweep.model_dump(mode="json", by_alias=True, exclude_unset=True)
    kept = {"weir": version(), "plan": {**plan.written, "sweep": sweep}}
    if plan.file is None or not plan.names_files:
        return kept
    return kept | {"file": str(Path(plan.file).absolute())}


@dataclass(frozen=True, kw_only=True)
class _There:
    """How many runs the store has, and how many of these another build did and failed."""

    runs: int
    other_builds: int
    failed: int


def _missing(sweep: Sweep, store: Store, axes: Mapping[str, Any], *, retry: bool) -> tuple[list[Run], _There]:
    """The runs that the store does not have, and those that it has.

    Rows that have no columns of these axes yet are written again with them.
    """
    there = store.done(["run", "error", "build", *axes], retry=retry)
    there = there.filter(pl.col("run").is_in(_with_samples(sweep, store, there)))
    asked = pl.DataFrame(
        {
            "run": [run.key for run in sweep.runs],
            **{name: [run.configuration.columns[name] for run in sweep.runs] for name in axes},
        },
        schema={"run": pl.String, **axes},
        strict=False,
    )
    have = asked.join(there, on="run", how="inner", suffix=_THERE)
    unlike = [pl.lit(value=False), *(_unlike(name, there.schema) for name in axes)]
    _widen(store, have.filter(pl.any_horizontal(unlike)).select("run", *axes), axes)
    known = set(have["run"])
    missing = [run for run in sweep.runs if run.key not in known]
    return missing, _There(
        runs=have.height,
        other_builds=have.filter(pl.col("build").ne_missing(build())).height,
        failed=have.height - have["error"].null_count(),
    )


def _unlike(name: str, there: Mapping[str, Any]) -> pl.Expr:
    """Whether a row that is there has another value in the column of an axis than the plan."""
    if name not in there:
        return pl.col(name).is_not_null()
    # Parts of other plans may have the column as texts, in which the plan's values then stand too.
    asked = pl.col(name).cast(there[name], strict=False)
    return asked.ne_missing(pl.col(name + _THERE)) | (asked.is_null() & pl.col(name).is_not_null())


def _widen(store: Store, asked: pl.DataFrame, axes: Mapping[str, Any]) -> None:
    """Writes the rows of these runs again, with these columns of axes."""
    if asked.is_empty():
        return
    rows = store.collected().drop(*axes, strict=False).join(asked, on="run", how="inner")
    others = {name: kind for name, kind in rows.schema.items() if name not in OWN and name not in axes}
    for part in rows.iter_slices(PART_ROWS):
        store.append(part.to_dicts(), {**others, **axes})


class _Keeper:
    """Collects rows and writes them into the store, a part at most a few seconds behind its first row."""

    def __init__(
        self, store: Store, axes: Mapping[str, Any], budget_s: float | None, watcher: Watcher | None
    ) -> None:
        self.done = self.failed = 0
        self.processor_s = self.simulator_s = 0.0
        self.spent = False
        self._store, self._axes, self._budget_s, self._watcher = store, axes, budget_s, watcher
        self._rows: list[Row] = []
        self._writing = threading.Lock()
        self._timer: threading.Timer | None = None

    def told(self, run: Run, row: Row) -> bool:
        """A run has ended: notes it, and says whether the budget allows further ones to start."""
        with self._writing:
            self._rows.append(row | run.configuration.columns)
            if self._timer is None:
                self._timer = threading.Timer(PART_EVERY_S, self._tick)
                self._timer.daemon = True
                self._timer.start()
        self.done += 1
        self.failed += "error" in row
        self.processor_s += row.get("processor_s", 0.0)
        self.simulator_s += row.get("simulator_s") or 0.0
        if self._watcher is not None:
            self._watcher.ended(failed="error" in row)
        self.spent = self._budget_s is not None and self.processor_s >= self._budget_s
        if len(self._rows) >= PART_ROWS:
            self.flush()
        return not self.spent

    def flush(self) -> None:
        """Writes what was collected; what cannot be written stays collected.

        Raises:
            WriteError: if the disk is full or broken.
        """
        with self._writing:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._store.append(self._rows, self._axes)
            self._rows = []

    def _tick(self) -> None:
        """Writes what was collected; what cannot be written now is tried again with the rows that follow."""
        with suppress(WriteError):
            self.flush()


RUN_LIMIT_S = 3600.0
"""Time of a run by the clock, in seconds, of studies and checks, as plans have it where they say nothing."""

PART_ROWS = 5000
"""Rows of a part at most, before the store is compacted."""

PART_EVERY_S = 5.0
"""How long a row waits at most for its part: what a machine that loses its power loses."""

_THERE = "\x00there"
"""End of the names of columns that the store has."""
