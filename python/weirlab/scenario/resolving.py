"""From what was written to what a world runs.

The compiled part (`crates/scenario`) looks names up, fills defaults in and converts to base units. The result
is the JSON that worlds take (`crates/scenario/src/scenario.rs`) and that the manifest of a record keeps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from weirlab import _native
from weirlab.scenario.files import Files, FilesBelow, told
from weirlab.scenario.plain import queue_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.scenario.base import Spec
    from weirlab.scenario.models import LinkSpec, ScenarioSpec, TestSpec
    from weirlab.scenario.plain import Direction

SpecT = TypeVar("SpecT", bound="Spec")


@dataclass(frozen=True)
class Part(Generic[SpecT]):
    """A test or a link as it was resolved. Its model is made when it is asked for: who runs it needs none.

    Attributes:
        words: all its keys, as people write them; the manifest of a record has them.
        model: makes the model.
    """

    words: dict[str, Any]
    model: Callable[[], SpecT] = field(repr=False, compare=False)

    @cached_property
    def spec(self) -> SpecT:
        """The model."""
        return self.model()

    @staticmethod
    def of(spec: SpecT) -> Part[SpecT]:
        """The part that a model tells."""
        return Part(spec.model_dump(mode="json"), partial(_same, spec))


def _same(spec: SpecT) -> SpecT:
    return spec


def _test(said: dict[str, Any]) -> TestSpec:
    from weirlab.scenario.models import TestSpec  # noqa: PLC0415 - loads pydantic

    return TestSpec.known(said)


def _link(said: dict[str, Any]) -> LinkSpec:
    from weirlab.scenario.models import LinkSpec  # noqa: PLC0415 - loads pydantic

    return LinkSpec.known(said)


@dataclass(frozen=True, kw_only=True)
class ResolvedRun:
    """One run, ready for a world.

    Attributes:
        test_part: the test.
        link_part: the link.
        queue: the queue spec as the user wrote it, `default` for the link's own.
        seed: the run's seed.
        scenario: the resolved scenario, in the form that worlds take.
        traces: texts of the recordings that it and its alternatives name.
        cc: the congestion control that the scenario names to be compared, if it does.
        words: the words of a scenario file that make this run of its test and link, but for the seed; None if
            it was not made of one.
        note, tags: what the user says of the run.
    """

    test_part: Part[TestSpec]
    link_part: Part[LinkSpec]
    queue: str
    seed: int
    scenario: dict[str, Any]
    traces: Mapping[str, str]
    cc: str | None = None
    words: dict[str, Any] | None = None
    note: str = ""
    tags: tuple[str, ...] = ()

    @property
    def test(self) -> TestSpec:
        """The test."""
        return self.test_part.spec

    @property
    def link(self) -> LinkSpec:
        """The link."""
        return self.link_part.spec

    @property
    def configuration(self) -> str:
        """Title of the run on a chart, in one line."""
        return f"{self.link_part.words['title']}; {queue_words(self.queue)}"


def resolve(spec: ScenarioSpec | Mapping[str, Any], *, below: Path | None = None) -> list[ResolvedRun]:
    """All runs of a scenario: for each configuration as many as it says, each with the next seed.

    Args:
        spec: the scenario, or its keys as a scenario file has them.
        below: the folder below which files that it names must lie; None lets it name any.

    Raises:
        UsageError: if a name is unknown or a value cannot be used; nothing has happened then.
    """
    files = Files() if below is None else FilesBelow(below)
    resolved = told(lambda: _native.resolve_scenario(spec, files))
    test = Part(resolved.test_words, partial(_test, resolved.test))
    if isinstance(spec, Mapping):
        note, tags = spec.get("note", ""), spec.get("tags", ())
    else:
        note, tags = spec.note, spec.tags
    runs = []
    for configuration in resolved.configurations:
        link = Part(configuration.link_words, partial(_link, configuration.link))
        scenario = json.loads(configuration.scenario)
        runs += [
            ResolvedRun(
                test_part=test,
                link_part=link,
                queue=configuration.queue,
                seed=seed,
                scenario=scenario,
                traces=files.traces,
                cc=configuration.cc,
                words=configuration.words,
                note=note,
                tags=tuple(tags),
            )
            for seed in resolved.seeds
        ]
    return runs


def remarks(spec: ScenarioSpec | Mapping[str, Any]) -> list[str]:
    """Sentences about what a scenario compares in vain: given more than once, or taken by nothing."""
    return told(lambda: _native.remarks(spec, Files()))


def line_rate(link: LinkSpec, direction: Direction) -> int | None:
    """The link's rate in one direction, in bit/s: its slowest hop; None if a recording sets it."""
    return told(lambda: _native.line_rate(link, direction))


def mean_rate(link: LinkSpec, direction: Direction) -> int | None:
    """The link's rate in one direction, in bit/s: of its slowest hop, of recordings on average."""
    return told(lambda: _native.mean_rate(link, direction, Files()))


MAX_SEED = _native.bounds()["max_seed"]
