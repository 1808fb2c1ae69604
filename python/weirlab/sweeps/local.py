"""The runs of a sweep on this machine: one worker process a processor, each with one run at a time."""

from __future__ import annotations

import base64
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from weirlab.children import ONE_THREAD, how_it_ended
from weirlab.errors import WeirError
from weirlab.scenario.units import time_text
from weirlab.sweeps.runs import PLAIN, Work, build, unpacked, version
from weirlab.sweeps.work import asked_of, begun, carried_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from weirlab.interrupt import Stop
    from weirlab.sweeps.runs import Run
    from weirlab.sweeps.work import Row


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What is to be run, and who hears of it.

    Attributes:
        runs: the runs.
        traces: texts of all recordings, by their digests.
        told: hears of each run that has ended; says whether further ones may start.
        stop: whether all that runs shall end at once.
        run_limit_s: time by the clock in seconds after which a run that has not ended counts as failed.
        work: how the runs are made.
        keep: takes the file with a run's raw samples before its row is told, if `work` asks for samples; from
            whatever thread, and the file is removed afterwards.
    """

    runs: Sequence[Run]
    traces: Mapping[str, str]
    told: Callable[[Run, Row], bool]
    stop: Stop
    run_limit_s: float
    work: Work = PLAIN
    keep: Callable[[Run, Path], object] | None = None

    def failed(self, run: Run, reason: str) -> Row:
        """The row of a run of these of which nothing came but that reason."""
        return failed(run.key, run.configuration.packed, run.seed, reason, self.work)


def run_here(orders: Orders) -> None:
    """Runs all runs in this process, one after the other, until it is told to stop.

    A run that is cut short by a stop is told of nobody.
    """
    with archives() as folder:
        for run in orders.runs:
            if orders.stop.told:
                return
            row = _row_here(orders, run, folder / f"{run.key}.weir")
            if not row.get("complete") and "error" not in row:
                if orders.stop.told:
                    return
                row = orders.failed(run, late(orders.run_limit_s))
            handed_over(orders, run, folder)
            if not orders.told(run, row):
                return


@contextmanager
def archives() -> Iterator[Path]:
    """A folder for files with raw samples on their way to the store; it goes with the `with` block."""
    with tempfile.TemporaryDirectory(prefix="weir-samples-") as folder:
        yield Path(folder)


def handed_over(orders: Orders, run: Run, folder: Path) -> None:
    """Gives the raw samples of a run to who keeps them, if there are some in `folder`."""
    archive = folder / f"{run.key}.weir"
    if orders.keep is not None and archive.exists():
        orders.keep(run, archive)
        archive.unlink()


def _row_here(orders: Orders, run: Run, archive: Path) -> Row:
    """The row of a run in this process, which it cuts short if told to stop, or if it takes too long."""
    texts = {name: orders.traces[digest] for name, digest in run.configuration.traces.items()}
    ends_s = time.monotonic() + orders.run_limit_s
    return carried_out(
        run.key,
        run.configuration.packed,
        run.seed,
        texts,
        lambda _: not orders.stop.told and time.monotonic() < ends_s,
        work=orders.work,
        archive=archive if orders.work.samples else None,
    )


def run_in_processes(orders: Orders, *, jobs: int) -> None:
    """Runs all runs in `jobs` worker processes, until it is told to stop.

    A worker that dies is replaced, and its run is done again; one on which `MAX_DEATHS` workers died becomes
    a row with that reason. A worker whose run does not end in time is ended, and the run becomes a row with
    that reason.

    Raises:
        WeirError: if no worker can be started.
    """
    with archives() as folder:
        crew = _Crew(orders, folder)
        threads = [
            threading.Thread(target=crew.serve, name=f"worker {number}", daemon=True)
            for number in range(min(jobs, len(orders.runs)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(LISTEN_EVERY_S)
                    if orders.stop.told:
                        crew.end()
                    else:
                        crew.end_late()
        finally:
            orders.stop.told = orders.stop.told or any(thread.is_alive() for thread in threads)
            crew.end()
            for thread in threads:
                # A second Ctrl-C may come before all have begun.
                if thread.is_alive():
                    thread.join()
    if crew.failure is not None:
        raise crew.failure


class _Crew:
    """What the threads share, one for each worker process."""

    def __init__(self, orders: Orders, folder: Path) -> None:
        self.failure: BaseException | None = None
        self._orders, self._stop, self._folder = orders, orders.stop, folder
        self._left = deque(orders.runs)
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()

    def serve(self) -> None:
        """Gives runs to one worker after the other until none is left."""
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self.failure = self.failure or error
            self._stop.told = True

    def end(self) -> None:
        """Ends all workers at once."""
        with self._lock:
            for worker in self._workers:
                worker.kill()

    def end_late(self) -> None:
        """Ends the workers whose run has taken longer than it may."""
        with self._lock:
            for worker in self._workers:
                worker.end_if_late()

    def _serve(self) -> None:
        deaths = 0
        run = self._next()
        while run is not None:
            with self._lock:
                if self._stop.told:
                    return
                worker = _Worker(self._orders.work, self._folder)
                self._workers.add(worker)
            try:
                while run is not None:
                    row = worker.answer(run, self._orders.traces, self._orders.run_limit_s)
                    if row is None:
                        break
                    deaths = 0
                    handed_over(self._orders, run, self._folder)
                    self._tell(run, row)
                    run = self._next()
            finally:
                with self._lock:
                    self._workers.discard(worker)
                reason = worker.end()
            if run is None or self._stop.told:
                continue
            deaths += 1
            if worker.late:
                self._tell_failed(run, late(self._orders.run_limit_s))
            elif deaths == MAX_DEATHS:
                self._tell_failed(run, _DIED.format(MAX_DEATHS, reason))
            else:
                continue
            deaths, run = 0, self._next()

    def _next(self) -> Run | None:
        with self._lock:
            return self._left.popleft() if self._left and not self._stop.told else None

    def _tell_failed(self, run: Run, reason: str) -> None:
        self._tell(run, self._orders.failed(run, reason))

    def _tell(self, run: Run, row: Row) -> None:
        with self._lock:
            if not self._orders.told(run, row):
                self._left.clear()


class _Worker:
    """A worker process."""

    def __init__(self, work: Work, folder: Path) -> None:
        """Starts one.

        Args:
            work: how its runs are made.
            folder: where it leaves raw samples.
        """
        self._work, self._folder = work, folder
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        # What of a run is under way there: who is ended at once does not clear up.
        self._scratch = tempfile.TemporaryDirectory(prefix="weir-worker-", ignore_cleanup_errors=True)
        self._known: set[str] = set()
        self._process = subprocess.Popen(
            [*WORKER, self._scratch.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            encoding="utf-8",
            # Ctrl-C is for the parent, which says what becomes of its workers.
            process_group=0,
            env=os.environ | ONE_THREAD,
        )
        self._greeted = False
        self._ends_s = math.inf
        self._ending = threading.Lock()
        self.late = False

    def answer(self, run: Run, traces: Mapping[str, str], limit_s: float) -> Row | None:
        """The row of a run; None if the worker has died, or was ended because it took longer than `limit_s`.

        Raises:
            WeirError: if it has never worked, or is of another version.
        """
        self._ends_s = time.monotonic() + limit_s
        row = self._answer(run, traces)
        with self._ending:
            self._ends_s = math.inf
            if row is not None:
                # Time was up just behind the answer: this run was in time, and the next finds no worker.
                self.late = False
        return row

    def _answer(self, run: Run, traces: Mapping[str, str]) -> Row | None:
        if not self._greeted:
            self._greet()
        texts = {
            digest: traces[digest]
            for digest in run.configuration.traces.values()
            if digest not in self._known
        }
        self._known |= set(texts)
        asked = {
            "run": run.key,
            "packed": base64.b64encode(run.configuration.packed).decode(),
            "seed": run.seed,
            "traces": dict(run.configuration.traces),
            "texts": texts,
            "work": asdict(self._work),
            "archive": str(self._folder / f"{run.key}.weir") if self._work.samples else None,
        }
        said = self._exchange(json.dumps(asked) + "\n")
        return None if said is None else dict(said)

    def _greet(self) -> None:
        hello = self._exchange("")
        if hello is None:
            if self._process.wait() < 0:
                # Somebody ended it before it said a word: its run is done again like any other.
                self._greeted = True
                return
            raise WeirError(f"a worker process cannot start: {self._reason()}")
        self._greeted = True
        if (hello["weir"], hello["build"]) != (version(), build()):
            raise WeirError(
                f"a worker process runs Weir {hello['weir']} (build {hello['build']}), this one {version()} "
                f"(build {build()}): install one of them anew"
            )

    def _exchange(self, line: str) -> dict[str, Any] | None:
        """What the worker says to a line; None if it has died."""
        pipes = self._process.stdin, self._process.stdout
        if pipes[0] is None or pipes[1] is None:
            return None
        try:
            pipes[0].write(line)
            pipes[0].flush()
            said = pipes[1].readline()
        except (OSError, ValueError):
            return None
        return json.loads(said) if said.endswith("\n") else None

    def end_if_late(self) -> None:
        """Ends the process if its run has taken longer than it may."""
        with self._ending:
            if time.monotonic() >= self._ends_s:
                self.late = True
                self.kill()

    def kill(self) -> None:
        """Ends the process at once."""
        self._process.kill()

    def end(self) -> str:
        """Ends the process and says what became of it."""
        for pipe in (self._process.stdin, self._process.stdout):
            # What a dead worker was to be told is of no use any more.
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        reason = self._reason()
        self._said.close()
        self._scratch.cleanup()
        return reason

    def _reason(self) -> str:
        ended = how_it_ended(self._process.returncode)
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - MAX_TOLD_BYTES))
        last = self._said.read().decode(errors="replace").strip().splitlines()
        return f"{ended}: {last[-1]}" if last else ended


def failed(key: str, packed: bytes, seed: int, reason: str, work: Work) -> Row:
    """The row of a run of which nothing came but that reason."""
    return begun(key, seed, work) | asked_of(unpacked(packed, seed, {})) | {"error": reason}


def late(limit_s: float) -> str:
    """The reason of a run that did not end in time."""
    return f"it did not end within {time_text(round(limit_s * 1e9))}: `sweep.run_limit` is the time of a run"


_DIED = "{} worker processes ended while they ran it, the last one with {}"

WORKER = [sys.executable, "-m", "weirlab.sweeps.worker"]
"""The command of a worker process, without the folder for its temporary files."""

MAX_DEATHS = 3
"""Workers that may die on one run before it counts as failed."""

MAX_TOLD_BYTES = 4096
"""Of what a dead worker wrote on its error output."""

GRACE_S = 5.0
"""Time in which a worker whose input has ended ends itself."""

LISTEN_EVERY_S = 0.2
"""How often the thread that waits looks up."""
