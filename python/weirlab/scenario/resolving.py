"""From what was written to what a world runs.

The compiled part (`crates/scenario`) looks names up, fills defaults in and converts to base units. The result
is the JSON that worlds take (`crates/scenario/src/scenario.rs`) and that the manifest of a record keeps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.scenario.catalogue import Files, FilesBelow, told
from weirlab.scenario.models import LinkSpec, TestSpec
from weirlab.scenario.plain import DEFAULT_QUEUE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from weirlab.scenario.models import ScenarioSpec
    from weirlab.scenario.plain import Direction


@dataclass(frozen=True, kw_only=True)
class ResolvedRun:
    """One run, ready for a world.

    Attributes:
        test: the test.
        link: the link.
        queue: the queue spec as the user wrote it, `default` for the link's own.
        seed: the run's seed.
        scenario: the resolved scenario, in the form that worlds take.
        traces: texts of the recordings that it and its alternatives name.
        cc: the congestion control that the scenario names to be compared, if it does.
        note, tags: what the user says of the run.
    """

    test: TestSpec
    link: LinkSpec
    queue: str
    seed: int
    scenario: dict[str, Any]
    traces: Mapping[str, str]
    cc: str | None = None
    note: str = ""
    tags: tuple[str, ...] = ()

    @property
    def configuration(self) -> str:
        """Title of the run on a chart, in one line."""
        queue = "the link's own queue" if self.queue == DEFAULT_QUEUE else self.queue
        return f"{self.link.title}; {queue}"


def resolve(spec: ScenarioSpec, *, below: Path | None = None) -> list[ResolvedRun]:
    """All runs of a scenario: for each configuration as many as it says, each with the next seed.

    Args:
        spec: the scenario.
        below: the folder below which files that it names must lie; None lets it name any.

    Raises:
        UsageError: if a name is unknown or a value cannot be used; nothing has happened then.
    """
    files = Files() if below is None else FilesBelow(below)
    resolved = told(lambda: _native.resolve_scenario(spec, files))
    test = TestSpec.known(resolved.test)
    runs = []
    for configuration in resolved.configurations:
        link, scenario = LinkSpec.known(configuration.link), json.loads(configuration.scenario)
        runs += [
            ResolvedRun(
                test=test,
                link=link,
                queue=configuration.queue,
                seed=seed,
                scenario=scenario,
                traces=files.traces,
                cc=configuration.cc,
                note=spec.note,
                tags=tuple(spec.tags),
            )
            for seed in resolved.seeds
        ]
    return runs


def given_again(spec: ScenarioSpec) -> list[str]:
    """Sentences about configurations that are given more than once. Each counts once."""
    return told(lambda: _native.given_again(spec))


def line_rate(link: LinkSpec, direction: Direction) -> int | None:
    """The link's rate in one direction, in bit/s: its slowest hop; None if a recording sets it."""
    return told(lambda: _native.line_rate(link, direction))


def mean_rate(link: LinkSpec, direction: Direction) -> int | None:
    """The link's rate in one direction, in bit/s: of its slowest hop, of recordings on average."""
    return told(lambda: _native.mean_rate(link, direction, Files()))


MAX_SEED = _native.bounds()["max_seed"]
