"""The runs of studies, carried out as a sweep: in processes or on a cluster, each kept when it has ended.

A study says its runs itself. What it makes of them stands in the store `runs.sweep` of its folder, from which
the same command goes on after an interruption, wherever it runs then.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import Interrupted, WeirError
from weirlab.sweeps.cluster import cluster_of
from weirlab.sweeps.columns import REDUCED
from weirlab.sweeps.runs import Work, study_key, sweep_of_runs
from weirlab.sweeps.samples import ALL
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import carry_out
from weirlab.ui import CountProgress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.sweeps.cluster import Cluster
    from weirlab.sweeps.runs import Sweep


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How the runs of a study are carried out.

    Attributes:
        folder: where what comes of them is kept.
        goes_on: whether that stays, so that the same command goes on with it.
        jobs: worker processes; None for one a processor.
        cluster: the cluster that does them, in place of `jobs`.
        quiet: whether nothing is shown meanwhile.
    """

    folder: Path
    goes_on: bool = False
    jobs: int | None = None
    cluster: Cluster | None = None
    quiet: bool = False

    @property
    def store(self) -> Store:
        """The store, made if it is not there."""
        return Store.made(self.folder / STORE)


@contextmanager
def manner(
    out: Path | None, *, jobs: int | None, scheduler: str | None, cluster: int | None, quiet: bool
) -> Iterator[Manner]:
    """How the options of a command ask for it; without `out` in a temporary folder that goes with the study.

    Raises:
        UsageError: if options exclude each other.
    """
    many = cluster_of(scheduler, cluster, jobs)
    if out is not None:
        yield Manner(folder=out, goes_on=True, jobs=jobs, cluster=many, quiet=quiet)
        return
    with tempfile.TemporaryDirectory(prefix="weir-study-") as folder:
        yield Manner(folder=Path(folder), jobs=jobs, cluster=many, quiet=quiet)


def records_of(
    runs: Sequence[ResolvedRun], world: str, how: Manner, *, title: str | None = None
) -> list[Record]:
    """The records of all of `runs`, in their order: those that are kept, and the others made now.

    Raises:
        Interrupted: if not all came to their ends.
        WeirError: if one fails.
    """
    work = Work(world=world, samples=ALL)
    store = _carried_out(runs, work, how, title)
    return [store.record(study_key(run, work)) for run in runs]


def reduced(
    runs: Sequence[ResolvedRun], world: str, reduction: str, how: Manner, *, title: str | None = None
) -> list[Any]:
    """What `reduction` makes of the record of each of `runs`, in their order; records are not kept.

    Args:
        runs: the runs.
        world: where they run.
        reduction: `MODULE:FUNCTION`, which makes plain values of a record and its run.
        how: how they are carried out.
        title: what the line of progress says; the test's title if None.

    Raises:
        Interrupted: if not all came to their ends.
        WeirError: if one fails.
    """
    work = Work(world=world, reduction=reduction)
    rows = _carried_out(runs, work, how, title).collected()
    by_key = dict(rows.select("run", REDUCED).iter_rows()) if runs else {}
    return [json.loads(by_key[study_key(run, work)]) for run in runs]


def _carried_out(runs: Sequence[ResolvedRun], work: Work, how: Manner, title: str | None) -> Store:
    """The store in which all of `runs` are."""
    store = how.store
    if not runs:
        return store
    sweep = sweep_of_runs(runs, work)
    with CountProgress(title or runs[0].test.title, quiet=how.quiet) as progress:
        # What failed for a reason that is gone meanwhile is done again.
        outcome = carry_out(sweep, store, jobs=how.jobs, cluster=how.cluster, retry=True, watcher=progress)
    if outcome.interrupted:
        on = f"the same command goes on with what is in `{how.folder}`"
        raise Interrupted(f"interrupted: {on if how.goes_on else 'with --out the same command would go on'}")
    if outcome.failed:
        raise WeirError(f"{outcome.failed} of {outcome.done} runs failed: {_first_failure(sweep, store)}")
    return store


def _first_failure(sweep: Sweep, store: Store) -> str:
    failed = store.collected().filter(pl.col("error").is_not_null())
    said = failed.select("run", "queue", "error").iter_rows()
    errors = {key: f"`{name}`: {error}" for key, name, error in said}
    return next(errors[run.key] for run in sweep.runs if run.key in errors)


STORE = "runs.sweep"
"""The store in a study's folder."""
