"""The runs of a plan: each point resolved, each run with its identity and what a worker needs for it."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import UsageError, counted
from weirlab.forms.faults import Fault
from weirlab.record.differences import place_name
from weirlab.scenario import LinkSpec, ResolvedRun, ScenarioSpec, TestSpec, mean_rate, resolve
from weirlab.scenario.catalogue import check
from weirlab.scenario.recordings import digest_of, without_folders
from weirlab.scenario.resolving import Part
from weirlab.sweeps.design import points
from weirlab.sweeps.samples import ALL
from weirlab.sweeps.written import NoPlace, Shipped, opened, placed, with_paths
from weirlab.worlds import check_all, world_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weirlab.sweeps.design import Point
    from weirlab.sweeps.plan import Plan
    from weirlab.worlds import Datapath, World

__all__ = ["Sweep", "Work", "study_key", "sweep_of_runs", "version"]

WORLD = "sim"
"""The world in which sweeps run that name no other."""

LAB = "lab"
"""The world whose runs have a machine for themselves, and take the time that they last.

The name of Dask's resource, too, of which a worker has 1 that may run it."""

KERNEL = "kernel"
"""The world whose runs depend on which kernel there is."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """How each run is made, and what is kept of it beside its row: plain values, which travel to workers.

    Attributes:
        world: in which world it runs, `sim`, `lab` or `kernel`.
        datapath: who has the queues and lines there; None for who usually has them.
        kernel: release and build of the kernel of the world kernel, such as `6.12.117 3f2a91c04d1e`; empty in
            other worlds.
        samples: phases of which raw samples are kept, as a record; `all` alone for the whole record, nothing
            for none.
        reduction: `MODULE:FUNCTION` that makes more figures of a record and its run, as plain values, which
            stand as JSON in the row's column `reduced`; empty for none.
    """

    world: str = WORLD
    datapath: Datapath | None = None
    kernel: str = ""
    samples: tuple[str, ...] = ()
    reduction: str = ""

    @property
    def needs_record(self) -> bool:
        """Whether a run must write its record: else its rows are in memory alone."""
        return bool(self.world != WORLD or self.samples or self.reduction)

    @property
    def place(self) -> str:
        """The world, and in it who has the queues where that is not the usual one."""
        return place_name(self.world, self.datapath).removeprefix("world ")

    def made_world(self) -> World:
        """The world.

        Raises:
            UsageError: if it has no such data path, or the kernel here is another.
        """
        if self.world == KERNEL and (here := kernel_build()) != self.kernel:
            raise UsageError(f"the kernel of the world kernel here is {here}, and {self.kernel} is asked for")
        return world_named(self.world, self.datapath)


PLAIN = Work()
"""In the simulator, and the row alone."""


def work_of(said: Mapping[str, Any]) -> Work:
    """What `dataclasses.asdict` made plain values of."""
    return Work(**{**said, "samples": tuple(said["samples"])})


def kernel_build() -> str:
    """Release and build of the kernel that the world kernel has here.

    Raises:
        UsageError: if there is none.
    """
    from weirlab.worlds.kernel import build_of, found_kernel  # noqa: PLC0415 - of that world alone

    return build_of(found_kernel())


@dataclass(frozen=True)
class Configuration:
    """A point, resolved: what is the same in all of its repetitions.

    Attributes:
        packed: test, link, queue, congestion control and resolved scenario, as packed JSON.
        traces: digests of the recordings that it names, by their names.
        columns: what stands in the columns of the axes.
        duration_s: simulated time of a run.
    """

    packed: bytes
    traces: Mapping[str, str]
    columns: dict[str, Any]
    duration_s: float

    @cached_property
    def volume_bits(self) -> float:
        """What its lines can carry in a run, of which the processor time is estimated."""
        return self.duration_s * _rate_bps(LinkSpec.known(json.loads(zlib.decompress(self.packed))["link"]))


@dataclass(frozen=True)
class Run:
    """One run of a sweep.

    Attributes:
        key: its identity: the digest of the resolved scenario, the seed and the simulator's version.
        configuration: the point that it is of.
        seed: its seed.
    """

    key: str
    configuration: Configuration
    seed: int


@dataclass(frozen=True)
class Sweep:
    """All runs of a plan, or of a study.

    Attributes:
        plan: the plan; None of a study, which says its runs itself.
        runs: its runs: the first repetitions of all points, then the second ones. Each run stands there once,
            with the first point that asks for it.
        points: number of points.
        traces: texts of all recordings, by their digests.
        work: how each run is made, and what is kept of it.
        drawn_again: how many points its design drew that it had drawn before: they are points once.
    """

    plan: Plan | None
    runs: tuple[Run, ...]
    points: int
    traces: Mapping[str, str]
    work: Work = PLAIN
    drawn_again: int = 0

    @property
    def remarks(self) -> Iterator[str]:
        """Why it has fewer points or runs than its plan seems to ask for, in sentences."""
        if self.plan is None:
            return
        drawn = self.plan.sweep.points
        if self.drawn_again and drawn is not None:
            yield (
                f"{self.drawn_again} of {drawn} points that the design `{self.plan.sweep.design}` drew are "
                f"the same as others, which run once: {drawn - self.drawn_again} are left; axes with more "
                "values, such as ranges, have more points"
            )
        if len(self.runs) < self.points * self.plan.most_repeats:
            # Such as those of an axis `cc` of a test without loads.
            same = self.points - len(self.runs) // self.plan.most_repeats
            points = counted(same, "point")
            yield f"{points} of {self.points} come to the same scenario as another: it runs once"


def sweep_of(plan: Plan) -> Sweep:
    """All runs of a plan, looked up and checked: nothing has run yet.

    Raises:
        UsageError: all points that cannot be run, each kind of fault once.
    """
    work = _work(plan)
    asker = _Asker(plan, work)
    found = points(plan)
    chosen, columns = found.points, found.columns
    if len(chosen) * plan.most_repeats > MAX_RUNS:
        says = f"{len(chosen)} points x {plan.most_repeats}: a sweep has {MAX_RUNS} runs at most"
        raise plan.refusal([Fault(("sweep", "repeat"), says)])
    failures: dict[str, list[Point]] = {}
    usable: list[Point] = []
    rounds: list[dict[str, Run]] = [{} for _ in range(plan.most_repeats)]
    traces: dict[str, str] = {}
    shipped: Shipped = {}
    for point, shown in zip(chosen, columns.iter_rows(named=True), strict=True):
        try:
            resolved = _resolved(plan, point, shipped)
            is_usable = asker.check(point, resolved[0])
        except (UsageError, NoPlace) as error:
            says = str(error).removeprefix(plan.place).lstrip(":, ")
            failures.setdefault(says, []).append(point)
            continue
        if is_usable:
            usable.append(point)
        configuration = _configuration(resolved[0], shown, traces)
        for one_round, one in zip(rounds, resolved, strict=True):
            key = identity(one, configuration.traces, work)
            one_round.setdefault(key, Run(key, configuration, one.seed))
    if failures:
        raise plan.refusal([_fault(plan, says, bad, usable) for says, bad in failures.items()])
    runs: dict[str, Run] = {}
    for one_round in rounds:
        for key, run in one_round.items():
            runs.setdefault(key, run)
    return Sweep(plan, tuple(runs.values()), len(chosen), traces, work, drawn_again=found.again)


def _work(plan: Plan) -> Work:
    """How the runs of a plan are made.

    Raises:
        UsageError: if the kernel that they need is not here.
    """
    spec = plan.sweep
    return Work(
        world=spec.world,
        datapath=spec.datapath,
        kernel=kernel_build() if spec.world == KERNEL else "",
        samples=plan.samples,
    )


class _Asker:
    """Asks the world of a plan whether it can run a point.

    The simulator says it in a millisecond, of every point. Others start a namespace or a kernel for it, and
    are asked about the first point, and each one with a word (a queue, a congestion control, a link) that no
    point before it had; what only they know of the numbers of another is found when it runs.
    """

    def __init__(self, plan: Plan, work: Work) -> None:
        """Nothing is asked yet.

        Raises:
            UsageError: if that world has no such data path.
        """
        try:
            self._world = work.made_world()
        except UsageError as error:
            raise plan.refusal([Fault(("sweep", "datapath"), str(error))]) from error
        self._asks_all = work.world == WORLD
        self._words = [number for number, axis in enumerate(plan.axes) if axis.kind == "text"]
        self._asked: set[tuple[int, str]] = set()
        self._refused: set[tuple[int, str]] = set()

    def check(self, point: Point, run: ResolvedRun) -> bool:
        """Refuses a point that the world cannot run; says whether each of its words is known to be usable.

        Raises:
            UsageError: if the world refuses it.
        """
        if self._asks_all:
            self._world.check(run)
            return True
        words = {(-1, ""), *((number, repr(point[number])) for number in self._words)}
        if words <= self._asked:
            return not words & self._refused
        self._asked |= words
        self._refused |= words
        self._world.check(run)
        self._refused -= words
        return True


def sweep_of_runs(runs: Sequence[ResolvedRun], work: Work) -> Sweep:
    """Runs that a study says itself, as a sweep: each in its place, known by its name, too.

    What a study calls its configurations stands in their records and rows, so that two of one scenario and
    different names are two runs.

    Raises:
        UsageError: if one cannot be run in the world of `work`.
    """
    world = work.made_world()
    traces: dict[str, str] = {}
    found: dict[str, Run] = {}
    check_all(world, runs)
    for one in runs:
        key = study_key(one, work)
        found.setdefault(key, Run(key, _configuration(one, {}, traces), one.seed))
    return Sweep(None, tuple(found.values()), len({(one.queue, one.cc) for one in runs}), traces, work)


def study_key(run: ResolvedRun, work: Work) -> str:
    """The identity of a run of a study, which its name is a part of."""
    digests = {name: digest_of(text) for name, text in run.traces.items()}
    return identity(run, digests, work, name=run.queue)


def _configuration(run: ResolvedRun, columns: dict[str, Any], traces: dict[str, str]) -> Configuration:
    """The configuration of a run; texts of its recordings are added to `traces`."""
    digests = {name: digest_of(text) for name, text in run.traces.items()}
    traces |= {digests[name]: text for name, text in run.traces.items()}
    return Configuration(_packed(run), digests, columns, run.scenario["duration_ns"] / 1e9)


def identity(
    run: ResolvedRun, traces: Mapping[str, str], work: Work | None = None, *, name: str | None = None
) -> str:
    """The digest by which a run is known: 32 hexadecimal digits.

    It covers the resolved scenario, the digests of the recordings that it names, the seed, the world and the
    version of Weir. Names, titles, notes, tags and the folders of recordings change nothing of a run, and are
    no part of it: but for the name and the reduction of a study's runs, of which the row depends.

    Args:
        run: the run.
        traces: digests of the recordings that it names, by their names.
        work: how it is made.
        name: what a study calls it.
    """
    how = work or PLAIN
    scenario, digests = without_folders(run.scenario, traces)
    said: dict[str, Any] = {
        "scenario": scenario,
        "traces": digests,
        "seed": run.seed,
        "world": how.place,
        "weir": version(),
    }
    if how.kernel:
        said["kernel"] = how.kernel
    if how.reduction:
        said["reduction"] = how.reduction
    if name is not None:
        said["name"] = name
    return digest_of(json.dumps(said, sort_keys=True, separators=(",", ":")))


@cache
def version() -> str:
    """The version of Weir."""
    return _native.version()


@cache
def build() -> str:
    """The first digits of the digest of compiled part and modules: which build of a version this is."""
    native = Path(_native.__file__)
    return _build_of(native, native.parent)


def _build_of(native: Path, package: Path) -> str:
    digest = hashlib.sha256(native.read_bytes())
    for file in sorted(package.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def unpacked(packed: bytes, seed: int, traces: Mapping[str, str]) -> ResolvedRun:
    """The run that was packed into a configuration, with that seed and the texts of its recordings."""
    return replace(_unpacked(packed), seed=seed, traces=traces)


@lru_cache(maxsize=256)
def _unpacked(packed: bytes) -> ResolvedRun:
    """The run that was packed, without seed and recordings: repetitions of a point differ in these alone."""
    said = json.loads(zlib.decompress(packed))
    return ResolvedRun(
        test_part=Part.of(TestSpec.known(said["test"])),
        link_part=Part.of(LinkSpec.known(said["link"])),
        queue=said["queue"],
        cc=said["cc"],
        words=said["words"],
        scenario=said["scenario"],
        seed=0,
        traces={},
    )


def _packed(run: ResolvedRun) -> bytes:
    said = {
        "test": run.test.model_dump(by_alias=True),
        "link": run.link.model_dump(by_alias=True),
        "queue": run.queue,
        "cc": run.cc,
        "words": run.words,
        "scenario": run.scenario,
    }
    return zlib.compress(json.dumps(said).encode(), 1)


def scenario_at(plan: Plan, point: Point, shipped: Shipped) -> dict[str, Any]:
    """The scenario of a point, as it would be written.

    Args:
        plan: the plan.
        point: a value of each axis.
        shipped: tests and links that were looked up for other points of the plan.

    Raises:
        NoPlace: if the key of an axis leads nowhere.
        UsageError: if its value is a file that lies nowhere.
    """
    values = [
        (key, value if plan.file is None else with_paths(key, value, plan.file))
        for axis, value in zip(plan.axes, point, strict=True)
        for key in axis.keys
    ]
    scenario = plan.scenario | {key: value for key, value in values if "." not in key}
    inner = [(key, value) for key, value in values if "." in key]
    scenario = opened(scenario, [key for key, _ in inner], shipped)
    for key, value in sorted(inner, key=lambda one: one[0].count(".")):
        scenario = placed(scenario, key, value)
    return scenario | {"repeat": plan.most_repeats}


def _resolved(plan: Plan, point: Point, shipped: Shipped) -> list[ResolvedRun]:
    names = {key: f"sweep.axes.{axis.name}" for axis in plan.axes for key in axis.keys}
    spec = check(ScenarioSpec, scenario_at(plan, point, shipped), plan.place, names=names)
    runs = resolve(spec)
    if len(runs) != plan.most_repeats:
        configurations = len(runs) // plan.most_repeats
        raise UsageError(
            f"the scenario compares {configurations} configurations: write lists of links, queues, shapers "
            "and congestion controls as axes"
        )
    there = [phase["name"] for phase in runs[0].scenario["phases"]]
    for name in plan.samples:
        if name not in there and plan.samples != ALL:
            raise UsageError(f"sweep.samples: no phase `{name}` (known: {', '.join(there)}, or `all`)")
    return runs


def _fault(plan: Plan, says: str, bad: Sequence[Point], usable: Sequence[Point]) -> Fault:
    """What is wrong with the points `bad`, told at a value that they all have and no usable one has."""
    for number, axis in enumerate(plan.axes):
        value = bad[0][number]
        alike = all(_same(one[number], value) for one in bad)
        if not alike or any(_same(one[number], value) for one in usable):
            continue
        name = f"sweep.axes.{axis.name}"
        if len(axis.values) != 1 or says.startswith(name):
            if says.startswith(name):
                says = says.removeprefix(name).lstrip("0123456789.").lstrip(": ")
            return Fault(_place(plan, axis.name, value), says)
    varied = [
        f"{axis.name} = {value}"
        for axis, value in zip(plan.axes, bad[0], strict=True)
        if len(axis.values) != 1
    ]
    at = f"{', '.join(varied)}: " if 0 < len(varied) < MAX_NAMED_AXES else ""
    return Fault(("sweep", "axes"), f"{at}{says}")


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _place(plan: Plan, name: str, value: Any) -> tuple[str | int, ...]:
    """Where in the file a value of an axis stands."""
    values = plan.sweep.axes[name].values
    if values is None:
        return ("sweep", "axes", name)
    return ("sweep", "axes", name, next(n for n, one in enumerate(values) if _same(one, value)))


def _rate_bps(link: LinkSpec) -> int:
    """Rates of both directions together."""
    up, down = mean_rate(link, "up"), mean_rate(link, "down")
    return (up or DEFAULT_RATE_BPS) + (down or DEFAULT_RATE_BPS)


MAX_RUNS = 1_000_000
"""Runs of a sweep."""

MAX_NAMED_AXES = 7
"""Axes whose values a message names."""

DEFAULT_RATE_BPS = 1_000_000_000
"""What a line without a rate counts as in the guess of processor time."""
