"""Sweeps from Python: `weirlab.sweep`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weirlab.errors import Interrupted, UsageError, WeirWarning
from weirlab.given import count_of, path_of, text_of
from weirlab.sweeps.cluster import cluster_of
from weirlab.sweeps.plan import Plan, load_plan, plan_of
from weirlab.sweeps.runs import sweep_of
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import carry_out, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


def sweep(  # noqa: PLR0913 - each is one word of the command line
    plan: str | Path | Mapping[str, Any],
    *,
    store: str | Path,
    axes: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    cluster: int | None = None,
    retry: bool = False,
    **more: Any,
) -> pl.LazyFrame:
    """Runs a scenario at all points of a plan, and returns a row for each run.

    What the store has already is not run again, so that a sweep that was interrupted goes on, one that was
    extended does what is new, and one that is done returns at once.

    Args:
        plan: the path of a plan; or a scenario as a file has it, with its axes under `sweep` or in
            `axes`.
        store: the store, which is made if it is not there: a folder, or `s3://BUCKET/NAME`, `gs://BUCKET/NAME`.
        axes: the axes by name: lists of values, or tables such as `{"from": "5ms", "to": "80ms",
            "steps": 5}`.
        jobs: worker processes; 1 for this process alone, None for one a processor.
        scheduler: address of the scheduler of a Dask cluster, such as `tcp://HOST:8786`, which does the runs.
        cluster: worker processes of a Dask cluster that is started here for the sweep. A script that asks for
            one stands below `if __name__ == "__main__"`, as Dask's own do.
        retry: whether runs that failed are done again.
        more: other keys of the table `sweep`, such as `repeat=3` or `where="rate_mbps > 5"`.

    Returns:
        A lazy frame with a row for each run, in the order of the plan: the columns of the axes, which run it
        is, its figures (those of `weirlab.frame`), and where it was done. `.collect()` makes a data frame.
        Python warns (`WeirWarning`) where points are the same as others, where rows are missing since the
        budget is spent, where runs failed, and of points that did not come to the interval of `until`.

    Raises:
        UsageError: all that is wrong with the plan; nothing has run then.
        Interrupted: if it was told to stop; what was done is in the store.
    """
    place = path_of(store, "store", "a store or its URL")
    jobs = count_of(jobs, "jobs", "how many worker processes there are")
    scheduler = text_of(scheduler, "scheduler", "the address of a scheduler, such as tcp://HOST:8786")
    cluster = count_of(cluster, "cluster", "how many worker processes a cluster has")
    asked = sweep_of(_plan(plan, axes, more))
    for text in asked.remarks:
        warnings.warn(text, WeirWarning, stacklevel=2)
    kept = Store.made(store if isinstance(store, str) else place)
    outcome = carry_out(asked, kept, jobs=jobs, cluster=cluster_of(scheduler, cluster, jobs), retry=retry)
    if outcome.interrupted:
        raise Interrupted(f"interrupted: {outcome.left} of {outcome.runs} runs are left to do in `{store}`")
    for text in outcome.remarks:
        warnings.warn(text, WeirWarning, stacklevel=2)
    if outcome.failure is not None:
        again = "; `retry=True` does these again" if outcome.failed_before else ""
        warnings.warn(f"{outcome.failure}: the column `error` says why{again}", WeirWarning, stacklevel=2)
    return rows_of(asked, kept)


def _plan(
    plan: str | Path | Mapping[str, Any], axes: Mapping[str, Any] | None, more: Mapping[str, Any]
) -> Plan:
    if isinstance(plan, Mapping):
        said = plan.get("sweep", {})
        if not isinstance(said, Mapping):
            raise UsageError(f"plan: `sweep` is a table, not `{type(said).__name__}`")
        if axes is not None and not isinstance(axes, Mapping):
            raise UsageError(f"axes: give a dict with a list of values for each, not `{type(axes).__name__}`")
        said = dict(said)
        if axes is not None:
            said["axes"] = {name: _plain(one) for name, one in axes.items()}
        return plan_of({**plan, "sweep": {**said, **more}})
    file = path_of(plan, "plan", "a plan or a scenario")
    if axes is not None or more:
        raise UsageError(f"`{plan}` says its axes itself: give a scenario as a dict to say them in Python")
    return load_plan(file)


def _plain(axis: Any) -> Any:
    """An axis as plain values: arrays of NumPy and columns of Polars become lists."""
    if isinstance(axis, Mapping):
        return {key: _plain(value) for key, value in axis.items()}
    if isinstance(axis, str):
        return axis
    if hasattr(axis, "tolist"):
        return axis.tolist()
    if hasattr(axis, "to_list"):
        return axis.to_list()
    return list(axis) if isinstance(axis, Sequence | range) else axis
