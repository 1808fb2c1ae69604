"""The study `agreement`: the simulator beside the lab, over links, queues, congestion controls and tests.

A cell is one of each. It runs with several seeds in the simulator and once or more in the lab, which takes
the cell's length in real time; so records are kept, and a study that was interrupted goes on where it was.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from weirlab.api import kept, run_into
from weirlab.errors import Interrupted
from weirlab.scenario import LinkSpec, ResolvedRun, ScenarioSpec, resolve, time_text
from weirlab.stats import Agreement, agreement
from weirstudies import choosing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from weirlab.api import Watcher
    from weirlab.record import Record
    from weirlab.worlds import Side


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One configuration.

    Attributes:
        down_mbps, up_mbps: rates of the line.
        rtt_ms: round trip of the empty path.
        queue: the queue in front of the line, both ways.
        congestion_control: that of all loads.
        test: the test's name.
    """

    down_mbps: int
    up_mbps: int
    rtt_ms: int
    queue: str
    congestion_control: str
    test: str

    @property
    def name(self) -> str:
        """Name of the experiment, by which it can be chosen."""
        line = f"{self.down_mbps}/{self.up_mbps} {self.rtt_ms}ms"
        return f"{line} {QUEUES[self.queue]} {self.congestion_control} {self.test}"

    @property
    def folder(self) -> str:
        """The folder of its records."""
        return self.name.replace("/", "-").replace(" ", "_")


def cells() -> list[Cell]:
    """All cells."""
    return [
        Cell(
            down_mbps=down,
            up_mbps=up,
            rtt_ms=rtt,
            queue=queue,
            congestion_control=congestion_control,
            test=test,
        )
        for (down, up), rtt, congestion_control, queue, test in product(
            RATES, RTTS, CONGESTION_CONTROLS, QUEUES, TESTS
        )
    ]


def chosen(only: Sequence[str]) -> list[Cell]:
    """The cells whose names match one of the patterns, all of them if there is none.

    Raises:
        UsageError: if none matches a pattern.
    """
    known = {cell.name: cell for cell in cells()}
    return choosing.chosen(known, only, study="agreement", what="cell")


def runs_of(cell: Cell, *, repeat: int, load_ns: int | None = None) -> list[ResolvedRun]:
    """The runs of a cell, one a seed; the record's label is the cell's name."""
    spec = ScenarioSpec(
        test=cell.test,
        link=_link(cell),
        queue=[cell.queue],
        repeat=repeat,
        phases={"idle": time_text(IDLE_NS), "load": time_text(load_ns or LOAD_NS), "cooldown": "0s"},
        tcp={"congestion_control": cell.congestion_control},
    )
    return [dataclasses.replace(run, queue=cell.name) for run in resolve(spec)]


def measure(  # noqa: PLR0913 - what was said on the line
    wanted: Sequence[Cell],
    side: Side,
    out: Path,
    *,
    repeat: int,
    jobs: int | None,
    watching: Callable[[Sequence[ResolvedRun]], AbstractContextManager[Watcher]],
    load_ns: int | None = None,
) -> dict[str, list[Record]]:
    """The records of all cells on a side, by the cell's name: those that `out` holds, and the others run now.

    Raises:
        Interrupted: if not all came to their ends; those that did are kept.
    """
    runs = [run for cell in wanted for run in runs_of(cell, repeat=repeat, load_ns=load_ns)]
    folders = [
        out / cell.folder / side.name / f"seed-{1 + number}" for cell in wanted for number in range(repeat)
    ]
    records = [kept(run, folder) for run, folder in zip(runs, folders, strict=True)]
    left = [number for number, record in enumerate(records) if record is None]
    if left:
        todo = [runs[number] for number in left]
        with watching(todo) as watcher:
            made = run_into(
                todo, side.world(), [folders[number] for number in left], jobs=jobs, watcher=watcher
            )
        if len(made) < len(left) or not all(record.manifest.complete for record in made):
            raise Interrupted(f"interrupted: the same command goes on with the records in `{out}`")
        for number, new in zip(left, made, strict=True):
            records[number] = new
    found: dict[str, list[Record]] = {}
    for run, record in zip(runs, records, strict=True):
        if record is not None:
            found.setdefault(run.queue, []).append(record)
    return found


def agreements(
    wanted: Sequence[Cell],
    ours: tuple[Side, dict[str, list[Record]]],
    theirs: tuple[Side, dict[str, list[Record]]],
) -> list[Agreement]:
    """Agreement of two sides in each cell; the second is the reference."""
    (side, records), (reference, reference_records) = ours, theirs
    return [
        agreement(cell.name, (side.name, records[cell.name]), (reference.name, reference_records[cell.name]))
        for cell in wanted
    ]


def _link(cell: Cell) -> LinkSpec:
    """A line with the queue right in front of it, both ways."""

    def hop(mbps: int) -> dict[str, object]:
        return {
            "name": "router",
            "place": "queue",
            "rate": f"{mbps}mbit",
            "framing": "ethernet",
            "delay": f"{cell.rtt_ms / 2:g}ms",
        }

    return LinkSpec.model_validate(
        {
            "name": "agreement-study",
            "title": f"{cell.down_mbps}/{cell.up_mbps} Mbit/s, {cell.rtt_ms} ms",
            "up": [hop(cell.up_mbps)],
            "down": [hop(cell.down_mbps)],
        }
    )


RATES = ((20, 8), (100, 40))
"""Mbit/s down and up: those of the shipped cable and VDSL lines."""

RTTS = (20, 80)
"""Milliseconds: a server in the same country, and one on another continent."""

QUEUES = {"pfifo": "pfifo", "htb rate 95% fq_codel": "htb+fq_codel", "codel": "codel"}
"""No management, per-flow management below a shaper, and one queue that is managed."""

CONGESTION_CONTROLS = ("cubic", "reno")
TESTS = ("tcp_download", "tcp_upload", "rrul_be")

IDLE_NS = 1_000_000_000
LOAD_NS = 10_000_000_000
"""Long enough for slow start, its losses and what follows; the study then takes a quarter of an hour."""
