"""The plan of a batch: scenarios, how often each configuration is run, and in which order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from weirlab import reading
from weirlab.api import folders_of, in_turn
from weirlab.errors import UsageError
from weirlab.forms import Model, check, read_toml
from weirlab.record.configurations import slug
from weirlab.scenario import ScenarioSpec, load_scenario, resolve, time_ns
from weirlab.scenario.catalogue import scenario_of
from weirlab.scenario.resolving import remarks
from weirlab.worlds.base import Datapath, PlannedWorld

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.scenario import ResolvedRun

Order = Literal["shuffled", "alternating", "listed"]


class BatchSpec(Model):
    """The file of a batch.

    Attributes:
        scenario: what is run: tables as a scenario file has them, or `file` with the name of one.
        repeat: runs of each configuration of the scenarios that do not say it themselves.
        order: `shuffled`: in rounds of which each has every configuration once, in an order drawn anew;
            `alternating`: in rounds, every other one backwards; `listed`: each configuration to its end.
        order_seed: seed of the order that is drawn.
        world: where they run.
        datapath: who has the queues and lines of lab and kernel; if None Weir in the lab, else the kernel.
        before: commands that the shell runs on this machine before each run of the lab.
        after: the same after each run, whatever became of it.
        command_limit: time after which such a command is ended, and has failed.
    """

    scenario: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]
    repeat: Annotated[int, Field(ge=1, le=100_000)] = 1
    order: Order = "shuffled"
    order_seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    world: PlannedWorld = "sim"
    datapath: Datapath | None = None
    before: list[str] = Field(default_factory=list, max_length=100)
    after: list[str] = Field(default_factory=list, max_length=100)
    command_limit: str = "60s"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One run of a batch.

    Attributes:
        scenario: name of its scenario in the batch.
        run: what is run.
        folder: where its record stands, below the folder of the batch.
    """

    scenario: str
    run: ResolvedRun
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch that can be carried out, by whomever.

    Attributes:
        name: its name.
        steps: all runs, in the order in which they are to begin.
        assertions: what must hold for every run of each scenario, by its name, in the order of the file.
        remarks: sentences about what scenarios compare in vain.
        spec: what the file says beside the runs.
        command_limit_s: time after which a command has failed, in seconds.
    """

    name: str
    steps: tuple[Step, ...]
    assertions: dict[str, tuple[str, ...]]
    remarks: tuple[str, ...]
    spec: BatchSpec = field(repr=False)
    command_limit_s: float

    @property
    def duration_s(self) -> float:
        """How long all runs take together, in seconds of their own time."""
        return float(sum(step.run.scenario["duration_ns"] for step in self.steps)) / 1e9

    def scenarios(self) -> list[str]:
        """The names of the scenarios, in the order of the file."""
        return list(self.assertions)


def _read(path: Path) -> tuple[dict[str, Any], str]:
    try:
        return read_toml(path, f"`{path}`")
    except UsageError as error:
        try:
            text = reading.read_text(path, reading.MAX_TOML_BYTES)
        except reading.Unreadable:
            raise error from error.__cause__
        if _SECTION_OF_FLENT.search(text):
            raise UsageError(
                f"`{path}` is a batch file of Flent's, which Weir does not read: write a TOML file with "
                'a table `[[scenario]]` for each test in simulator or lab, such as `test = "rrul"` and '
                '`link = "cable-20-8"`, or `weir flent` once for each test to a server'
            ) from error
        raise


_SECTION_OF_FLENT = re.compile(r"^\s*\[(batch|arg|command)::[^\]]*\]", re.IGNORECASE | re.MULTILINE)
"""What begins a section of Flent's batch files, and nothing in TOML."""


def load_batch(path: Path) -> Batch:
    """The batch in that file.

    Raises:
        UsageError: if it cannot be read, or something is wrong with it; nothing has happened then.
    """
    data, text = _read(path)
    spec = check(BatchSpec, data, f"`{path}`", text=text)
    if (spec.before or spec.after) and spec.world != "lab":
        raise UsageError(
            f"`{path}`: before and after are commands around runs of the lab: "
            'write `world = "lab"`, or leave them out'
        )
    if spec.datapath == "kernel" and spec.world == "sim":
        raise UsageError(
            f"`{path}`: datapath `kernel`: the world sim has no kernel in it: "
            'write `world = "lab"` or `world = "kernel"`'
        )
    try:
        limit_s = time_ns(spec.command_limit) / 1e9
    except ValueError as error:
        raise UsageError(f"`{path}`: command_limit: {error}") from error
    if limit_s <= 0:
        raise UsageError(
            f"`{path}`: command_limit `{spec.command_limit}`: write a time above 0, such as `60s`"
        )
    scenarios = [
        _scenario(table, f"`{path}`, scenario {number}", path, spec.repeat)
        for number, table in enumerate(spec.scenario, 1)
    ]
    listed, ranks, assertions = _listed(scenarios)
    steps = tuple(listed[number] for number in _order(spec, ranks))
    return Batch(
        name=path.stem,
        steps=steps,
        assertions=assertions,
        remarks=tuple(f"scenario {n}: {text}" for n, one in enumerate(scenarios, 1) for text in remarks(one)),
        spec=spec,
        command_limit_s=limit_s,
    )


def _listed(scenarios: Sequence[ScenarioSpec]) -> tuple[list[Step], list[int], dict[str, tuple[str, ...]]]:
    """All runs in the order of the file, the repetition of each, counted from 0, and all that is asserted."""
    steps, ranks, assertions = [], [], {}
    for number, scenario in enumerate(scenarios, 1):
        runs = resolve(scenario)
        name = f"{number:02d}-{slug(scenario.name or runs[0].test.name)}"
        assertions[name] = tuple(scenario.assertions)
        seen: Counter[str] = Counter()
        for run, folder in zip(runs, folders_of(runs, Path(name)), strict=True):
            configuration = str(folder.parent if folder.name.startswith("seed-") else folder)
            steps.append(Step(scenario=name, run=run, folder=folder))
            ranks.append(seen[configuration])
            seen[configuration] += 1
    return steps, ranks, assertions


def _scenario(table: dict[str, Any], where: str, batch: Path, repeat: int) -> ScenarioSpec:
    """The scenario of one table, repeated as the batch says if it does not say it itself."""
    file = table.get("file")
    if file is None:
        return scenario_of({"repeat": repeat, **table}, batch, where)
    if not isinstance(file, str) or len(table) > 1:
        others = ", ".join(sorted(set(table) - {"file"}))
        raise UsageError(
            f"{where}: file {file!r}"
            + (
                f" beside {others}: the file says it all: leave the others out"
                if others
                else ": write a name"
            )
        )
    scenario = load_scenario(batch.parent / file)
    said = "repeat" in scenario.model_fields_set
    return scenario if said else scenario.model_copy(update={"repeat": repeat})


def _order(spec: BatchSpec, ranks: Sequence[int]) -> list[int]:
    """The numbers of the runs in the order in which they begin."""
    if spec.order == "listed":
        return list(range(len(ranks)))
    if spec.order == "alternating":
        return in_turn(ranks)
    rng = np.random.default_rng(spec.order_seed)
    rounds = [[n for n, one in enumerate(ranks) if one == rank] for rank in range(max(ranks) + 1)]
    return [int(number) for one in rounds for number in rng.permutation(one)]
