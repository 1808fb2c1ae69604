"""Running scenarios from Python, and what the command line stands on."""

from __future__ import annotations

import functools
import inspect
import json
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, Protocol

from weirlab.errors import Interrupted, UsageError, WeirWarning, cannot_write
from weirlab.given import path_of, plain
from weirlab.interrupt import heeding
from weirlab.record.configurations import slug
from weirlab.scenario.resolving import remarks, resolve
from weirlab.shown import Shown
from weirlab.worlds import check_all, world_named, world_names
from weirlab.writing import folders_made, remove_empty

__all__ = ["Records", "RunsInterrupted", "Watcher", "kept", "make_empty", "run", "run_all", "run_into"]

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirlab.interrupt import Stop
    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun, ScenarioSpec
    from weirlab.worlds import World


_P = ParamSpec("_P")


class Watcher(Protocol):
    """Hears of the progress of runs, from whatever thread."""

    def advanced(self, number: int, reached_ns: int) -> None:
        """Run `number` has reached that time."""
        ...

    def finished(self, number: int) -> None:
        """Run `number` has ended."""
        ...


class RunsInterrupted(Interrupted):
    """Ctrl-C ended runs that `run` had been asked for.

    Attributes:
        records: records of the runs that there are, those that were cut short among them.
    """

    def __init__(self, message: str, records: Sequence[Record] = ()) -> None:
        """The sentence, and what was measured."""
        super().__init__(message)
        self.records = list(records)


class Records(Shown, list["Record"]):
    """Records in a list that a notebook shows as a table."""

    shown_as = "records"


def _or_a_scenario(run: Callable[_P, list[Record]]) -> Callable[_P, list[Record]]:
    """`run`, which changes of a scenario that it is given no more than what the call names."""
    signature = inspect.signature(run)

    @functools.wraps(run)
    def of_either(*args: _P.args, **named: _P.kwargs) -> list[Record]:
        given = signature.bind(*args, **named).arguments
        from weirlab.scenario.whole import changed, whole_scenario  # noqa: PLC0415 - loads pydantic

        link = given.get("link")
        whole = whole_scenario(plain(given["test"]), None if link is None else _one_or_list(plain(link)))
        if whole is None:
            return run(*args, **named)
        where = {key: given[key] for key in ("world", "datapath", "out") if key in given}
        folder = _place_of(where.get("out"), where.get("world", "sim"))
        words = {key: value for key, value in given.items() if key not in {"test", *where}}
        if "assertions" in words:
            words["assert"] = words.pop("assertions")
        said = {key: _read_as(key, value) for key, value in words.items() if value is not None}
        # An empty list is said too: it takes the place of the scenario's.
        spec = changed(whole, {key: [] if value is None else value for key, value in said.items()})
        return _run_spec(spec, where.get("world", "sim"), where.get("datapath"), folder, frames=2)

    return of_either


@_or_a_scenario
def run(  # noqa: PLR0913 - each is one word of a scenario
    test: str | Path | Mapping[str, Any] | ScenarioSpec,
    *,
    link: str | Path | Mapping[str, Any] | Sequence[str | Path | Mapping[str, Any]] = "cable-20-8",
    queue: str | Sequence[str] = "default",
    queue_up: str | Sequence[str] | None = None,
    queue_down: str | Sequence[str] | None = None,
    shaper: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] = "none",
    cc: str | Sequence[str] | None = None,
    world: str = "sim",
    datapath: Literal["userspace", "kernel"] | None = None,
    seed: int = 1,
    repeat: int = 1,
    phases: Mapping[str, str] | None = None,
    parameters: Mapping[str, int] | None = None,
    tcp: Mapping[str, Any] | None = None,
    sampling: Mapping[str, str] | None = None,
    methods: Sequence[Mapping[str, Any]] = (),
    beside: Sequence[Mapping[str, Any]] = (),
    start_jitter: str = "50ms",
    ip: Literal[4, 6] = 4,
    assertions: Sequence[str] = (),
    name: str | None = None,
    note: str = "",
    tags: Sequence[str] = (),
    out: str | Path | None = None,
) -> list[Record]:
    """Runs a test on a link, once for each configuration that is compared and each repetition.

    Or a whole scenario: then what the call names of the other words takes the place of the scenario's own,
    and all that it does not name is the scenario's. Of `phases`, `parameters`, `tcp` and `sampling` single
    keys are replaced.

    Args:
        test: the name of a shipped test, a path to a test file, or a test as a scenario file has it; or a
            scenario: a `ScenarioSpec`, a path to a scenario file, or the keys of one.
        link: the name of a shipped link, a path to a link file, or a link as a scenario file has it; several
            to compare them.
        queue: one queue spec in `tc` syntax, or several to compare; `default` is the link's own.
        queue_up: the same for the upload only, in place of `queue`.
        queue_down: the same for the download only.
        shaper: one shaper, such as `auto`, `auto up 95%` or `fixed up 95% down 95%`, or several to compare.
        cc: congestion control of all loads, such as `bbr`, or several to compare; cubic if None.
        world: where it runs: `sim`, `lab`, `net` or `kernel`.
        datapath: who has the queues and lines in the worlds lab and kernel: `userspace` is Weir, `kernel` is
            their kernel. If None, Weir has them in the lab, and the kernel in the world kernel.
        seed: seed of the first repetition, 0 to 2^63 - 1; each next one takes the next.
        repeat: repetitions of each configuration, 1 to 100000.
        phases: lengths of phases in place of the test's: `{"idle": "5s", "load": "60s", "cooldown": "5s"}`.
        parameters: values of the test's parameters, such as `{"streams": 8}`.
        tcp: TCP of all loads, such as `{"ecn": True, "sack": False}`.
        sampling: how often what is sampled, such as `{"ping": "10ms", "throughput": "100ms"}`.
        methods: speed tests beside those of the test, as a scenario file has them.
        beside: tests that run beside it, such as `[{"test": "rrul", "start": "30s", "length": "60s"}]`;
            all flows and probes then have the names of their tests before their own.
        start_jitter: each load starts up to so much later, drawn from the seed.
        ip: Internet protocol, 4 or 6.
        assertions: what must hold for every run, such as `latency.p99 < latency.median[idle] + 10ms`; kept
            with the scenario, and judged by `weirlab.stats.Assertion(text).of(record)`.
        name: name of the scenario; made of test and link if None.
        note: what to remember of the runs; their records keep it.
        tags: words by which the records are found again.
        out: folder for the records, which must be empty or not exist. If None a temporary one, which is
            removed with the last of the records, at the latest when Python ends; such records cannot be
            handed to another process.

    Returns:
        The records, configuration by configuration, seed by seed.

    Raises:
        UsageError: if a name is unknown, a value cannot be used or an assertion is none; nothing has
            happened then.
        RunsInterrupted: after Ctrl-C. Its `records` are those of the runs that there are; runs under way were
            cut short (`record.manifest.complete` is False) and the others did not start. A second Ctrl-C
            raises KeyboardInterrupt at once.
    """
    folder = _place_of(out, world)
    words = {
        "test": test,
        "link": link,
        "queue": queue,
        "queue_up": queue_up,
        "queue_down": queue_down,
        "shaper": shaper,
        "cc": cc,
        "seed": seed,
        "repeat": repeat,
        "phases": phases,
        "parameters": parameters,
        "tcp": tcp,
        "sampling": sampling,
        "methods": methods,
        "beside": beside,
        "start_jitter": start_jitter,
        "ip": ip,
        "assert": assertions,
        "name": name,
        "note": note,
        "tags": tags,
    }
    from weirlab.scenario.catalogue import check  # noqa: PLC0415 - loads pydantic
    from weirlab.scenario.models import ScenarioSpec  # noqa: PLC0415

    return _run_spec(check(ScenarioSpec, _written(words), "scenario"), world, datapath, folder, frames=3)


def _place_of(out: object, world: object) -> Path | None:
    """The folder for records, if there is one.

    Raises:
        UsageError: if that is no path, or `world` no name of a world.
    """
    folder = None if out is None else path_of(out, "out", "a folder for records")
    if not isinstance(world, str):
        raise UsageError(f"world: {world!r}: write one of {', '.join(world_names())}")
    return folder


def _run_spec(
    spec: ScenarioSpec,
    world: str,
    datapath: Literal["userspace", "kernel"] | None,
    folder: Path | None,
    *,
    frames: int,
) -> list[Record]:
    """Runs a scenario; `frames` is how many functions lie between it and who called `run`."""
    for text in remarks(spec):
        warnings.warn(text, WeirWarning, stacklevel=frames + 1)
    place, runs = world_named(world, datapath), resolve(spec)
    _check_assertions(spec, runs)
    records = Records(_run_kept(runs, place) if folder is None else run_all(runs, place, folder))
    ended = sum(record.manifest.complete for record in records)
    if ended < len(runs):
        raise RunsInterrupted(f"interrupted: {ended} of {len(runs)} runs came to their end", records)
    return records


def _written(words: Mapping[str, object]) -> dict[str, object]:
    """Arguments of `run` as a scenario file has them: without those that say nothing.

    Raises:
        UsageError: if there is no test or no link.
    """
    for key in ("test", "link"):
        if words[key] is None:
            raise UsageError(
                f"{key}: None: give the name of a {key}, the path of its file, or the {key} itself"
            )
    found = {key: _read_as(key, given) for key, given in words.items()}
    return {key: value for key, value in found.items() if value is not None}


def _read_as(key: str, given: object) -> object:
    """An argument of `run` as a scenario has it."""
    given = plain(given)
    return READ_AS[key](given) if key in READ_AS else given


def _list(given: object) -> object:
    """Returns one value or several as a list; anything else as it is, for the check to refuse."""
    if isinstance(given, str | Mapping):
        return [given]
    return _one_or_list(given)


def _list_or_nothing(given: object) -> object:
    return _list(given) or None


def _one_or_list(given: object) -> object:
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else given


def _check_assertions(spec: ScenarioSpec, runs: Sequence[ResolvedRun]) -> None:
    """Refuses what cannot be asserted of all the runs."""
    if not spec.assertions:
        return
    from weirlab.stats.assertions import Assertion  # noqa: PLC0415 - most scenarios assert nothing

    for text in spec.assertions:
        asserted = Assertion(text)
        for one in runs:
            asserted.check(one.scenario)


def _run_kept(runs: Sequence[ResolvedRun], world: World) -> list[Record]:
    """Runs all of `runs` with records in a temporary folder, which is removed with the last of them."""
    temporary = _Temporary()
    records = run_all(runs, world, temporary.path)
    for record in records:
        record.keep_alive(temporary)
    return records


class _Temporary:
    """A temporary folder that is removed with this object, at the latest when this process of Python ends.

    A process that was forked from this one has it only borrowed.
    """

    def __init__(self) -> None:
        # Processes of a pool end without what `atexit` and `weakref.finalize` have for that: this has both.
        # Below 0 it comes when the processes that this one forked have been waited for.
        from multiprocessing.util import Finalize  # noqa: PLC0415 - most runs are kept elsewhere

        self.path = Path(tempfile.mkdtemp(prefix="weir-"))
        self._removal = Finalize(
            self, shutil.rmtree, args=(self.path,), kwargs={"ignore_errors": True}, exitpriority=-100
        )

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled with a record: another process would find the folder removed.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "a record in a temporary folder, which goes with this process, cannot be handed to another one: "
            'run it with `out="FOLDER"`'
        )

    def __deepcopy__(self, known: dict[int, object]) -> _Temporary:
        """The folder itself: copies of a record share it."""
        return self


def run_all(  # noqa: PLR0913 - what is run, where, and what goes on beside it
    runs: Sequence[ResolvedRun],
    world: World,
    out: Path,
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Record]:
    """Runs all of `runs` in `world`, several at once, with records below the folder `out`.

    They run in rounds: every configuration with the first seed, then backwards with the next one, and so on.
    What drifts while they run, such as the load of a machine, is no difference between configurations then.
    Ctrl-C ends the runs early: what was measured stays, and what did not start does not. A second one raises
    KeyboardInterrupt at once, and ends the command `weir`.

    Args:
        runs: what is run.
        world: where.
        out: the folder, which must be empty or not exist.
        jobs: how many run at once; None for as many as there are processors.
        watcher: hears of their progress.
        meanwhile: what this thread does beside them, such as to load modules that are needed when they have
            ended. A live world is best left alone.

    Returns:
        The records, in the order of `runs`; after Ctrl-C those that there are.
    """
    check_all(world, runs)
    new = make_empty(out)
    seeds = sorted({one.seed for one in runs})
    order = in_turn([seeds.index(one.seed) for one in runs])
    try:
        folders = folders_of(runs, out)
        return _carry_out(runs, world, folders, order, jobs=jobs, watcher=watcher, meanwhile=meanwhile)
    finally:
        remove_empty(new)


def run_into(
    runs: Sequence[ResolvedRun],
    world: World,
    folders: Sequence[Path],
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> list[Record]:
    """Runs all of `runs` in `world`, several at once, with the record of each in its folder of `folders`.

    They begin in their order. None of the folders may exist. Ctrl-C ends the runs early, as it does those of
    `run_all`.

    Returns:
        The records, in the order of `runs`; after Ctrl-C those that there are.
    """
    check_all(world, runs)
    return _carry_out(runs, world, folders, range(len(runs)), jobs=jobs, watcher=watcher)


def in_turn(ranks: Sequence[int]) -> list[int]:
    """The numbers of runs in rounds, every other one backwards (A B, B A, A B): a steady drift cancels out.

    Args:
        ranks: of each run, which repetition of its configuration it is, from 0.
    """
    rounds = [[number for number, one in enumerate(ranks) if one == rank] for rank in sorted(set(ranks))]
    return [number for turn, one in enumerate(rounds) for number in (one[::-1] if turn % 2 else one)]


def _carry_out(  # noqa: PLR0913 - what is run, where, and in which order
    runs: Sequence[ResolvedRun],
    world: World,
    folders: Sequence[Path],
    order: Sequence[int],
    *,
    jobs: int | None,
    watcher: Watcher | None,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Record]:
    workers = world.at_once or jobs or len(os.sched_getaffinity(0))
    with heeding() as stop:

        def one_run(number: int) -> None:
            def progress(reached_ns: int) -> bool:
                if watcher:
                    watcher.advanced(number, reached_ns)
                return not stop.told

            try:
                world.run(runs[number], folders[number], progress)
            except BaseException:
                _remove_unbegun(folders[number])
                raise
            if watcher:
                watcher.finished(number)

        _in_threads(one_run, order, workers, stop, meanwhile)
    from weirlab.record import open_record  # noqa: PLC0415 - NumPy, which no run waits for

    return [open_record(folder) for folder in folders if (folder / "manifest.json").exists()]


def _remove_unbegun(folder: Path) -> None:
    """Removes the record of a run that failed before anything was measured: it has a manifest and no rows."""
    if not any(folder.rglob("*.parquet")):
        shutil.rmtree(folder, ignore_errors=True)


def _in_threads(
    work: Callable[[int], None],
    order: Sequence[int],
    workers: int,
    stop: Stop,
    meanwhile: Callable[[], object],
) -> None:
    """Does `work` for each number of `order`, several at once, until it is told to stop or one fails.

    They begin in that order, and `meanwhile` is done beside them.

    No executor: what waits for one holds locks of its threads, and a signal would leave them held.
    """
    numbers, taking = iter(order), threading.Lock()
    failures: list[BaseException] = []

    def keep_working() -> None:
        while not stop.told:
            with taking:
                number = next(numbers, None)
            if number is None:
                return
            try:
                work(number)
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                failures.append(error)
                stop.told = True

    threads = [
        threading.Thread(target=keep_working, name=f"run {n}") for n in range(min(workers, len(order)))
    ]
    try:
        for thread in threads:
            thread.start()
        meanwhile()
        for thread in threads:
            while thread.is_alive():
                thread.join(LISTEN_EVERY_S)
    except BaseException:
        stop.told = True
        raise
    if failures:
        raise failures[0]


def make_empty(out: Path) -> list[Path]:
    """Makes the folder for records, and returns which folders were made for it, the innermost first.

    Raises:
        UsageError: if something stands in it, or it cannot be made there.
        WriteError: if the disk is full or read-only.
    """
    try:
        new = folders_made(out)
        occupied = any(out.iterdir())
    except OSError as error:
        raise cannot_write(f"`{out}` cannot take records", error) from error
    if occupied:
        raise UsageError(f"`{out}` is not empty: choose another folder for the records")
    return new


def kept(run: ResolvedRun, folder: Path) -> Record | None:
    """The whole record of that run which stands in `folder`; None if it has to be run.

    What stands there of a run that was cut short is taken away.

    Raises:
        UsageError: if the record there is of another run: it is not ours to take away.
    """
    if not (folder / "manifest.json").exists():
        return None
    from weirlab.record import open_record  # noqa: PLC0415 - NumPy, which no run waits for

    record = open_record(folder)
    manifest = record.manifest
    if (manifest.seed, manifest.scenario) != (run.seed, json.loads(json.dumps(run.scenario))):
        raise UsageError(f"`{folder}` holds the record of another scenario: choose another folder")
    if manifest.complete:
        return record
    shutil.rmtree(folder)
    return None


def folders_of(runs: Sequence[ResolvedRun], out: Path) -> list[Path]:
    """A folder for each run: by what is compared and, where a configuration is repeated, by seed."""
    links = [json.dumps(run.link_part.words) for run in runs]
    keys = [(link, run.queue, run.cc) for link, run in zip(links, runs, strict=True)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys), 1)}
    repeated = len(runs) > len(numbers)
    several_links, several_ccs = len(set(links)) > 1, len({run.cc for run in runs}) > 1
    folders = []
    for key, one in zip(keys, runs, strict=True):
        words = [one.link_part.words["name"]] if several_links else []
        words += [one.queue] + ([one.cc] if several_ccs and one.cc is not None else [])
        folder = out / f"{numbers[key]:02d}-{'-'.join(slug(word) for word in words)}"
        folders.append(folder / f"seed-{one.seed}" if repeated else folder)
    return folders


READ_AS: dict[str, Callable[[object], object]] = {
    "link": _one_or_list,
    "queue": _one_or_list,
    "queue_up": _one_or_list,
    "queue_down": _one_or_list,
    "shaper": _one_or_list,
    "cc": _one_or_list,
    "methods": _list_or_nothing,
    "beside": _list_or_nothing,
    "assert": _list_or_nothing,
    "tags": _list,
}
"""How arguments of `run` that take one value or several are written in a scenario."""

LISTEN_EVERY_S = 0.2
"""How often the thread that waits looks up: a wait without end hears no signal on some systems."""
