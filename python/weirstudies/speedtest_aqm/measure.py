"""Running cells: each run's figures are kept soon after it, so that a study goes on where it was cut short.

Those of the simulator stand in the study's store, those of the lab in a file each.
"""

from __future__ import annotations

import json
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import ValidationError

from weirlab.api import run_into
from weirlab.errors import Interrupted, UsageError
from weirlab.sweeps.columns import REDUCED
from weirlab.sweeps.runs import version
from weirlab.worlds import check_all
from weirstudies.running import reduced
from weirstudies.speedtest_aqm import design
from weirstudies.speedtest_aqm.figures import Run, figures, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from weirlab.api import Watcher
    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.sweeps.store import Store
    from weirlab.worlds import Progress, World
    from weirstudies.running import Manner
    from weirstudies.speedtest_aqm.design import Cell, Study

    Found = dict[Cell, list[Run]]
    Watching = Callable[[Sequence[ResolvedRun]], AbstractContextManager[Watcher]]
    Work = Callable[[ResolvedRun, Path, Progress | None], Run | None]


class Keeping:
    """A world whose runs leave figures in place of records.

    Attributes:
        name, at_once: as every world.
    """

    def __init__(self, world: World, work: Work) -> None:
        """Runs go on in `world`; `work` does one with the record's folder and returns its figures."""
        self._world = world
        self._work = work
        self.name = world.name

    @property
    def at_once(self) -> int | None:
        """How many runs may go on at once."""
        return self._world.at_once

    def check(self, run: ResolvedRun) -> None:
        """Refuses what the world cannot do."""
        check_all(self._world, [run])

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        """Runs it and writes its figures to `folder` with `.json` behind; says whether it came to its end."""
        records = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
        try:
            found = self._work(run, records, progress)
        finally:
            shutil.rmtree(records, ignore_errors=True)
        if found is None:
            return False
        write(found, file_of(folder))
        return True


def simulate(wanted: Mapping[Cell, int], how: Manner, *, of: Study) -> Found:
    """The runs of all cells in the simulator: those whose figures are kept, and the others run now.

    Raises:
        Interrupted: if not all came to their ends; those that did are kept.
        WeirError: if one fails.
    """
    runs = [run for cell, count in wanted.items() for run in design.runs_of(cell, of=of, repetitions=count)]
    kept = reduced(runs, "sim", REDUCTION, how, title="Speed tests (sim)")
    found: Found = {}
    for run, one in zip(runs, kept, strict=True):
        found.setdefault(design.cell_named(run.queue), []).append(Run.model_validate(one))
    return found


def figures_of(record: Record, run: ResolvedRun) -> Any:
    """The figures of a simulated run as plain values."""
    return json.loads(figures(record, run, design.cell_named(run.queue)).model_dump_json())


def go_on(  # noqa: PLR0913 - what is run, where and how
    runs: Sequence[ResolvedRun],
    world: World,
    out: Path,
    cells: Mapping[str, Cell],
    *,
    jobs: int | None,
    watching: Watching,
) -> Found:
    """Runs what `out` does not hold yet, and returns all figures by cell."""
    folders = [out / cells[run.queue].folder / f"seed-{run.seed}" for run in runs]
    left = [number for number, folder in enumerate(folders) if kept(runs[number], folder) is None]
    if left:
        todo = [runs[number] for number in left]
        for number in left:
            folders[number].parent.mkdir(parents=True, exist_ok=True)
        with watching(todo) as watcher:
            run_into(todo, world, [folders[number] for number in left], jobs=jobs, watcher=watcher)
    found: Found = {}
    for run, folder in zip(runs, folders, strict=True):
        one = kept(run, folder)
        if one is None:
            raise Interrupted(f"interrupted: the same command goes on with the figures in `{out}`")
        found.setdefault(cells[run.queue], []).append(one)
    return found


def all_simulated(store: Store) -> Found:
    """All figures that this version of Weir simulated, whatever was wanted when they were made."""
    rows = store.collected()
    if REDUCED not in rows.columns:
        return {}
    ours = rows.filter(pl.col(REDUCED).is_not_null() & (pl.col("weir") == version()))
    runs = [Run.model_validate_json(text) for text in ours[REDUCED]]
    found: Found = {}
    for run in sorted(runs, key=lambda one: (one.cell, one.seed)):
        found.setdefault(design.cell_named(run.cell), []).append(run)
    return found


def all_kept(folder: Path) -> Found:
    """All figures in the folder of the lab, whatever was wanted when they were made.

    Raises:
        UsageError: if some are damaged.
    """
    found: Found = {}
    for file in sorted(folder.glob("*/seed-*.json")):
        run = _read(file)
        found.setdefault(design.cell_named(run.cell), []).append(run)
    return found


def everything(how: Manner, of: Study) -> Found:
    """All figures of both worlds, by cell in the order of the usual cells, then of the grid.

    Raises:
        UsageError: if some are damaged.
    """
    sim, lab = all_simulated(how.store), all_kept(how.folder / "lab")
    order = dict.fromkeys([*design.usual_cells(of), *design.all_cells(of), *sim, *lab])
    return {cell: runs for cell in order if (runs := [*sim.get(cell, []), *lab.get(cell, [])])}


def kept(run: ResolvedRun, folder: Path) -> Run | None:
    """The figures of that run; None if it has to be run.

    Raises:
        UsageError: if the figures there are of another run, or damaged.
    """
    file = file_of(folder)
    if not file.exists():
        return None
    found = _read(file)
    if found.key != key_of(run):
        raise UsageError(f"`{file}` holds the figures of another scenario: choose another folder")
    return found


def _read(file: Path) -> Run:
    try:
        return Run.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise UsageError(f"`{file}` is damaged: remove it, and its run is made again") from error


def write(found: Run, file: Path) -> None:
    """Writes figures; a file that is there is whole."""
    part = file.with_suffix(".part")
    part.write_text(found.model_dump_json(), encoding="utf-8")
    part.replace(file)


def file_of(folder: Path) -> Path:
    """Where the figures stand of a run whose record would be in `folder`."""
    return folder.with_name(f"{folder.name}.json")


REDUCTION = f"{__name__}:{figures_of.__name__}"
"""How workers call what makes figures of a record."""
