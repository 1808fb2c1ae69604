"""Carries a batch out on this machine: what its folder does not have yet, with commands around each run."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.api import kept, run_into
from weirlab.errors import LabError, UsageError, cannot_write
from weirlab.groups import Group
from weirlab.record import open_record
from weirlab.record.differences import place_name, world_name
from weirlab.worlds import check_all, world_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from weirlab.api import Watcher
    from weirlab.batches.plan import Batch, Step
    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds import World
    from weirlab.worlds.base import Progress


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of a batch.

    Attributes:
        records: the whole records by the names of their scenarios, in the order of the file.
        there: number of runs that were there before.
        done: number of runs that were made.
        left: number of runs that are still to be made.
    """

    records: dict[str, list[Record]]
    there: int
    done: int
    left: int


def missing(batch: Batch, out: Path) -> list[Step]:
    """The runs that `out` does not have, in their order.

    What is there of runs that were cut short is taken away.

    Raises:
        UsageError: if the record of another run, or of one elsewhere, stands where one of them belongs.
    """
    place = world_named(batch.spec.world, batch.spec.datapath)
    # The same run has the same scenario in every world.
    here = place_name(place.name, batch.spec.datapath)
    steps = []
    for step in batch.steps:
        record = kept(step.run, out / step.folder)
        if record is None:
            steps.append(step)
        elif world_name(record) != here:
            raise UsageError(
                f"`{record.path}` holds a record of {world_name(record)}, and the batch is of {here}: "
                "choose another folder"
            )
    return steps


def carry_out(  # noqa: PLR0913 - what is run, where, and who hears of it
    batch: Batch,
    out: Path,
    steps: Sequence[Step],
    *,
    jobs: int | None,
    watcher: Watcher | None,
    world: World | None = None,
) -> Outcome:
    """Makes the runs `steps` of `batch` with their records below `out`.

    Ctrl-C ends the batch early: what was measured stays, and the same call goes on with what is left.

    Args:
        batch: what they are of.
        out: its folder.
        steps: the runs.
        jobs: how many run at once; None for as many as the world allows.
        watcher: hears of their progress.
        world: the world that the batch names, of whoever has asked it already; None to have one made.

    Raises:
        UsageError: if the world cannot do what a run asks for; nothing has happened then.
        LabError: if a command before or after a run fails; the runs that have ended are kept.
    """
    place = _Surrounded(batch, out, world or world_named(batch.spec.world, batch.spec.datapath))
    runs, folders = [step.run for step in steps], [out / step.folder for step in steps]
    done = run_into(runs, place, folders, jobs=jobs, watcher=watcher)
    whole = sum(record.manifest.complete for record in done)
    records: dict[str, list[Record]] = {name: [] for name in batch.scenarios()}
    for step in sorted(batch.steps, key=lambda one: one.folder):
        if (out / step.folder / "manifest.json").exists():
            record = open_record(out / step.folder)
            if record.manifest.complete:
                records[step.scenario].append(record)
    there = len(batch.steps) - len(steps)
    return Outcome(records=records, there=there, done=whole, left=len(steps) - whole)


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Holds the folder of a batch while it is worked on, so that no run is made twice.

    Raises:
        UsageError: if another process works on it, or it cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / LOCK).open("w")
    except OSError as error:
        raise cannot_write(f"`{out}` cannot take records", error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"`{out}`: another process works on this batch: wait for it, or end it"
            ) from error
        yield


class _Surrounded:
    """A world with commands before and after each run."""

    def __init__(self, batch: Batch, out: Path, inner: World) -> None:
        self._inner = inner
        self._batch, self._out = batch, out
        self.name = self._inner.name

    @property
    def at_once(self) -> int | None:
        return self._inner.at_once

    def check(self, run: ResolvedRun) -> None:
        check_all(self._inner, [run])

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        spec = self._batch.spec
        wanted = (lambda: True) if progress is None else (lambda: progress(0))
        try:
            if not self._commands("before", spec.before, run, folder, wanted):
                return False
            return self._inner.run(run, folder, progress)
        finally:
            # They tidy up behind a run that was ended, too.
            self._commands("after", spec.after, run, folder, lambda: True)

    def _commands(
        self, when: str, commands: Sequence[str], run: ResolvedRun, folder: Path, wanted: Callable[[], bool]
    ) -> bool:
        """Runs commands one after another; their output goes to a file of the batch's folder.

        Returns:
            Whether all are done: one that is no longer `wanted` is ended.

        Raises:
            LabError: if one fails, or takes too long and is ended.
        """
        about = {
            "WEIR_RECORD": str(folder),
            "WEIR_TEST": run.test.name,
            "WEIR_LINK": run.link.name,
            "WEIR_QUEUE": run.queue,
            "WEIR_SEED": str(run.seed),
            "WEIR_WHEN": when,
        }
        said = f"; its output is in {self._out / LOG}"
        place = folder.relative_to(self._out)
        for command in commands:
            with (self._out / LOG).open("ab") as log:
                log.write(f"== {when} {place}: {command}\n".encode())
                log.flush()
                group = Group(command, stdout=log, stderr=log, env=os.environ | about)
            limit_s = self._batch.command_limit_s
            until_s = time.monotonic() + limit_s
            while (code := group.code()) is None:
                time.sleep(LOOK_EVERY_S)
                if not wanted():
                    group.end(COMMAND_PATIENCE_S)
                    return False
                if time.monotonic() >= until_s:
                    group.end(0)
                    late = f"was ended after {limit_s:g} s (command_limit){said}"
                    raise LabError(f"{when} `{place}`: `{command}` {late}")
            group.let_go()
            if code != 0:
                raise LabError(f"{when} `{place}`: `{command}` ended with {code}{said}")
        return True


LOCK = ".lock"
"""The file by which processes know of each other."""

LOG = "commands.log"
"""Output of the commands around runs."""

LOOK_EVERY_S = 0.02
"""How often it is looked whether a command is still wanted."""

COMMAND_PATIENCE_S = 2.0
"""Between asking a command to end and killing it."""
