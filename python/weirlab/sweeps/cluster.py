"""The runs of a sweep on a Dask cluster: batches of a second or two each, sent as data.

What a worker is sent is a resolved scenario with its seed, and the name of the function that runs it. Dask
repeats what a worker did that died; a worker of another version or build of Weir is refused.
"""

from __future__ import annotations

import math
import re
import time
import uuid
import zlib
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from weirlab.children import ONE_THREAD
from weirlab.errors import UsageError, WeirError
from weirlab.sweeps.local import archives, failed, handed_over, late
from weirlab.sweeps.runs import LAB, PLAIN, Work, build, version, work_of
from weirlab.sweeps.work import carried_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from distributed import Client, Future, LocalCluster

    from weirlab.interrupt import Stop
    from weirlab.sweeps.local import Orders
    from weirlab.sweeps.runs import Run
    from weirlab.sweeps.work import Row

__all__ = ["Cluster", "cluster_of"]


@dataclass(frozen=True)
class Cluster:
    """A cluster of Dask.

    Attributes:
        scheduler: address of its scheduler, such as `tcp://HOST:8786`; None to start a cluster here.
        workers: worker processes of a cluster that is started here.
    """

    scheduler: str | None = None
    workers: int = 1


def cluster_of(scheduler: str | None, workers: int | None, jobs: int | None) -> Cluster | None:
    """The cluster that is asked for; None for this machine without one.

    Raises:
        UsageError: if several are asked for, or the address can be no scheduler's.
    """
    asked = {"scheduler": scheduler, "cluster": workers, "jobs": jobs}
    several = [name for name, value in asked.items() if value is not None]
    if len(several) > 1:
        raise UsageError(f"{' and '.join(several)} exclude each other: write one of them")
    if scheduler is None and workers is None:
        return None
    if scheduler is not None:
        address = _ADDRESS.fullmatch(scheduler)
        if address is None or not 0 < int(address["port"]) < 2**16:
            raise UsageError(f"scheduler `{scheduler}`: write the address as in tcp://HOST:8786 or HOST:8786")
    return Cluster(scheduler, workers or 1)


def run_on_cluster(orders: Orders, cluster: Cluster) -> None:
    """Runs all runs on the workers that a cluster has at the time, until it is told to stop.

    A batch that Dask gives up, because several workers died on it, is taken apart; a run that was alone in
    one becomes a row with that reason. A cluster of this machine that has lost all its workers is started
    anew, since Dask replaces those that die and not those that end; on another cluster they are waited for.
    So is a scheduler that goes away: what it had under way is sent again to the one that answers there next.

    Raises:
        UsageError: if Dask is missing, the scheduler does not answer, or a worker is of another version.
        WeirError: if the scheduler goes away for good, or workers of this machine end again and again.
    """
    if orders.work.world == LAB and cluster.scheduler is None:
        raise UsageError("cluster: the lab runs once a machine; leave it out, or name a scheduler")
    batches = _Batches(orders, patience_s=PATIENCE_S if cluster.scheduler is None else math.inf)
    in_vain, away = 0, False
    while not batches.are_done():
        had = batches.done
        try:
            with _connected(cluster, orders.stop, away=away) as client:
                away = True
                _check_versions(client)
                _check_labs(client, orders.work)
                batches.carry_out(client)
        except _Gone as error:
            if orders.stop.told:
                return
            raise WeirError(
                f"the scheduler of the cluster is gone: what was done is kept: {error}"
            ) from error
        except _NotStarted as error:
            if in_vain + 1 == MAX_IN_VAIN:
                raise WeirError(
                    f"a cluster cannot be started here: {error}; a script asks for one below "
                    '`if __name__ == "__main__":`'
                ) from error
        in_vain = 0 if batches.done > had else in_vain + 1
        if in_vain == MAX_IN_VAIN and cluster.scheduler is None and not batches.are_done():
            raise WeirError(f"all workers of the cluster ended {in_vain} times: what was done is kept")


def batch_carried_out(
    batch: list[dict[str, Any]],
    texts: dict[str, bytes],
    of: tuple[str, str],
    run_limit_s: float,
    work: dict[str, Any] | None = None,
) -> tuple[list[Row], float]:
    """Runs a batch in a worker; called there by its name. Returns its rows, and the seconds that it took.

    Args:
        batch: the runs: `run`, `packed`, `seed` and `traces` of each.
        texts: packed texts of their recordings, by digest.
        of: version and build of Weir that asks.
        run_limit_s: time by the clock in seconds after which a run that has not ended counts as failed.
        work: how the runs are made, as plain values. Raw samples stand in a row under `SAMPLES`, as bytes.

    Raises:
        OtherVersion: if this worker has another one.
        UsageError: if it has not the world.
    """
    if of != (version(), build()):
        raise OtherVersion(*of, version(), build())
    known = {digest: zlib.decompress(text).decode() for digest, text in texts.items()}
    began_s = time.monotonic()
    how = PLAIN if work is None else work_of(work)
    # One without it would have errors sooner than others figures, and so take most of the runs.
    how.made_world()
    with archives() as folder:
        rows = [_row_there(one, known, run_limit_s, how, folder / one["run"]) for one in batch]
    return rows, time.monotonic() - began_s


def _row_there(
    one: Mapping[str, Any], texts: Mapping[str, str], run_limit_s: float, work: Work, archive: Path
) -> Row:
    """The row of a run in a worker, which cuts it short if it takes too long."""
    ends_s = time.monotonic() + run_limit_s
    row = carried_out(
        one["run"],
        one["packed"],
        one["seed"],
        {name: texts[digest] for name, digest in one["traces"].items()},
        lambda _: time.monotonic() < ends_s,
        work=work,
        archive=archive if work.samples else None,
    )
    if archive.exists():
        row[SAMPLES] = archive.read_bytes()
        archive.unlink()
    ended = row.get("complete") or "error" in row
    return row if ended else failed(one["run"], one["packed"], one["seed"], late(run_limit_s), work)


def versions() -> tuple[str, str]:
    """Version and build of Weir of a worker."""
    return version(), build()


class OtherVersion(Exception):
    """A worker has another version or build of Weir than who asks: both of who asks, both of the worker."""


class _Batches:
    """The runs that are left, and the batches under way."""

    def __init__(self, orders: Orders, patience_s: float) -> None:
        """All runs are left.

        Args:
            orders: what is to be done.
            patience_s: how long a cluster may be without a worker.
        """
        self._orders, self._stop, self._patience_s = orders, orders.stop, patience_s
        self._left = deque(orders.runs)
        self._alone: deque[Run] = deque()
        self._texts = {digest: zlib.compress(text.encode(), 1) for digest, text in orders.traces.items()}
        self._under_way: dict[Future[tuple[list[Row], float]], list[Run]] = {}
        self.done, self._spent_s, self._enough = 0, 0.0, False
        self._asked_s, self._unknown = time.monotonic(), frozenset[str]()

    def are_done(self) -> bool:
        """Whether nothing is left to do."""
        return self._stop.told or not (self._left or self._alone or self._under_way)

    def carry_out(self, client: Client) -> None:
        """Sends batches and takes their rows until none is left, or no worker or no scheduler is there."""
        seen_s = time.monotonic()
        try:
            while not self.are_done():
                threads = _threads(client)
                if threads is None:
                    return
                seen_s = time.monotonic() if threads else seen_s
                if time.monotonic() - seen_s > self._patience_s:
                    return
                self._send(client, AHEAD * max(1, threads))
                for future in self._ended():
                    if self._taken(future, self._under_way[future]):
                        del self._under_way[future]
                for future in self._forgotten(client):
                    self._send_again(self._under_way.pop(future))
        finally:
            # A scheduler that is gone has forgotten them.
            with suppress(OSError, TimeoutError, RuntimeError):
                client.cancel(list(self._under_way))
            for batch in self._under_way.values():
                self._left.extendleft(reversed(batch))
            self._under_way.clear()

    def _send(self, client: Client, wanted: int) -> None:
        """Sends so many batches that `wanted` are under way."""
        while len(self._under_way) < wanted and (self._left or self._alone):
            batch = [self._alone.popleft()] if self._alone else self._next()
            digests = {digest for run in batch for digest in run.configuration.traces.values()}
            future = client.submit(
                batch_carried_out,
                [_as_data(run) for run in batch],
                {digest: self._texts[digest] for digest in digests},
                versions(),
                self._orders.run_limit_s,
                asdict(self._orders.work),
                # One lab a machine: a worker says with `--resources lab=1` that it may run it.
                resources={LAB: 1} if self._orders.work.world == LAB else None,
                key=f"weir-sweep-{uuid.uuid4().hex}",
                pure=False,
            )
            self._under_way[future] = batch

    def _next(self) -> list[Run]:
        """The next batch: as many runs as take a second or two by what runs have taken so far."""
        mean_s = self._spent_s / self.done if self.done else BATCH_S
        most = max(1, len(self._left) // (4 * AHEAD))
        largest = MAX_BATCH_SAMPLES if self._orders.work.samples else MAX_BATCH
        count = min(max(1, round(BATCH_S / max(mean_s, 1e-4))), largest, most)
        return [self._left.popleft() for _ in range(count)]

    def _ended(self) -> list[Future[tuple[list[Row], float]]]:
        """The batches that are no longer under way; waits for one, but not for long."""
        from distributed import wait  # noqa: PLC0415 - optional

        try:
            wait(list(self._under_way), timeout=LISTEN_EVERY_S, return_when="FIRST_COMPLETED")
        except TimeoutError:
            return []
        except Exception as error:
            # A batch that the scheduler forgot when it was started again: its status says so below.
            if type(error).__name__ not in {
                "CancelledError",
                "FutureCancelledError",
                "FuturesCancelledError",
            }:
                raise
        return [one for one in self._under_way if one.status != "pending"]

    def _forgotten(self, client: Client) -> list[Future[tuple[list[Row], float]]]:
        """The batches that the scheduler says it has never heard of, twice in a row.

        What is sent while a scheduler is started again may reach neither the old one nor the new one; who
        asked for it is told nothing. Twice, because a question may overtake what was sent before it.
        """
        if time.monotonic() - self._asked_s < ASK_EVERY_S:
            return []
        self._asked_s = time.monotonic()
        try:
            states = client.sync(
                client.scheduler.get_task_status,
                keys=[one.key for one in self._under_way],
                callback_timeout=CONNECT_S,
            )
        except (OSError, TimeoutError, RuntimeError):
            return []
        before, self._unknown = self._unknown, frozenset(key for key in states if states[key] is None)
        return [one for one in self._under_way if one.key in before & self._unknown]

    def _taken(self, future: Future[tuple[list[Row], float]], batch: list[Run]) -> bool:
        """Takes the rows of a batch, or what became of it; says whether it is no longer under way.

        A worker keeps the rows of a batch until they are fetched. If it has died meanwhile, Dask does the
        batch again behind all others: who waited for it would leave their rows to the next worker's death.
        """
        if future.status == "finished":
            try:
                rows, took_s = future.result(timeout=FETCH_S)
            except TimeoutError:
                return False
            except Exception:
                # It was computed when it was looked at, and has been lost or given up since.
                if future.status == "finished":
                    raise
                return False
            self._spent_s += took_s
            for run, row in zip(batch, rows, strict=True):
                self.done += 1
                self._keep(run, row.pop(SAMPLES, None))
                self._tell(run, row)
        else:
            self._give_back(future, batch)
        return True

    def _give_back(self, future: Future[tuple[list[Row], float]], batch: list[Run]) -> None:
        """A batch of which no rows come: it is sent again, taken apart, or kept as failed."""
        if future.status in {"cancelled", "lost"}:
            self._send_again(batch)
            return
        error = future.exception()
        if isinstance(error, OtherVersion):
            raise _refusal(error.args[:2], error.args[2:])
        if isinstance(error, UsageError):
            raise UsageError(f"a worker cannot run it: {error}") from error
        if isinstance(error, ImportError):
            raise UsageError(f"a worker has no Weir that can run sweeps: {error}")
        if self._enough:
            return
        if len(batch) > 1:
            self._alone.extend(batch)
        else:
            reason = f"the cluster gave it up: {type(error).__name__}: {error}"
            self._tell(batch[0], self._orders.failed(batch[0], reason))

    def _send_again(self, batch: list[Run]) -> None:
        if not self._enough:
            self._left.extendleft(reversed(batch))

    def _keep(self, run: Run, samples: bytes | None) -> None:
        """Keeps the raw samples of a run, if it has some."""
        if samples is not None:
            with archives() as folder:
                (folder / f"{run.key}.weir").write_bytes(samples)
                handed_over(self._orders, run, folder)

    def _tell(self, run: Run, row: Row) -> None:
        if not self._orders.told(run, row):
            # What was sent ends; nothing more is sent.
            self._enough = True
            self._left.clear()
            self._alone.clear()


def _threads(client: Client) -> int | None:
    """Threads of all workers that are there; None if the scheduler does not answer."""
    try:
        return sum(client.nthreads().values()) if client.status == "running" else None
    except (OSError, TimeoutError, RuntimeError):
        return None


def _as_data(run: Run) -> dict[str, Any]:
    return {
        "run": run.key,
        "packed": run.configuration.packed,
        "seed": run.seed,
        "traces": dict(run.configuration.traces),
    }


@contextmanager
def _connected(cluster: Cluster, stop: Stop, *, away: bool) -> Iterator[Client]:
    """A client of the cluster, which is started and ended here if it has no address.

    Args:
        cluster: the cluster.
        stop: whether nobody waits for it any more.
        away: whether its scheduler was there already, so that it is waited for longer.

    Raises:
        UsageError: if Dask is missing, or no scheduler answers.
        _Gone: if the scheduler that was there does not come back.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - optional
    except ImportError as error:
        raise UsageError("a cluster needs Dask: `pip install 'weirlab[dask]'`") from error
    if cluster.scheduler is None:
        with (
            _started_here(cluster.workers) as here,
            Client(here) as client,
        ):
            yield client
        return
    with _reached(cluster.scheduler, stop, away=away) as client:
        yield client


def _reached(scheduler: str, stop: Stop, *, away: bool) -> Client:
    """A client of the scheduler at that address."""
    from distributed import Client  # noqa: PLC0415 - optional

    ends_s = time.monotonic() + (RETURN_S if away else 0)
    while True:
        try:
            return Client(scheduler, timeout=CONNECT_S)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            # A TypeError is how Dask says that TLS has no certificates in its settings.
            said = f"no scheduler answers there: {' '.join(str(error).split())}"
            if not away:
                raise UsageError(f"scheduler `{scheduler}`: {said}") from error
            if stop.told or time.monotonic() > ends_s:
                raise _Gone(f"`{scheduler}`: {said}") from error


def _started_here(workers: int) -> LocalCluster:
    """A cluster of so many processes of this machine.

    Raises:
        _NotStarted: if one of them ended before it had started.
    """
    from distributed import LocalCluster  # noqa: PLC0415 - optional

    try:
        return LocalCluster(
            n_workers=workers,
            processes=True,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            env=dict(ONE_THREAD),
        )
    except RuntimeError as error:
        raise _NotStarted(*error.args) from error


class _Gone(Exception):
    """The scheduler that was there does not come back."""


class _NotStarted(Exception):
    """A worker of a cluster of this machine ended before it had started."""


def _check_versions(client: Client) -> None:
    """Refuses workers that have no Weir, or another one. Those that come later say it with their first batch.

    Raises:
        UsageError: if there is such a worker.
    """
    found = client.run(versions, on_error="return")
    for address, said in found.items():
        if isinstance(said, ImportError):
            raise UsageError(f"worker `{address}` has no Weir that can run sweeps: {said}")
        # Any other error is of a worker that is on its way out.
        if not isinstance(said, BaseException) and tuple(said) != versions():
            raise _refusal(versions(), tuple(said), worker=address)


def _check_labs(client: Client, work: Work) -> None:
    """Refuses a cluster of which no worker may run the lab, if that is asked for.

    Raises:
        UsageError: if there are workers, and none has the resource.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"].values() if work.world == LAB else ()
    if workers and not any(one.get("resources", {}).get(LAB) for one in workers):
        raise UsageError(
            "no worker of the cluster may run the lab: start one a machine with `--resources lab=1`"
        )


def _refusal(ours: tuple[str, ...], theirs: tuple[str, ...], worker: str = "") -> UsageError:
    which = f"worker `{worker}`" if worker else "a worker"
    return UsageError(
        f"{which} has Weir {theirs[0]} (build {theirs[1]}), this machine {ours[0]} (build {ours[1]}): "
        "install the same on all"
    )


AHEAD = 2
"""Batches a worker thread has under way: one that runs and one that waits."""

BATCH_S = 1.5
"""Time of a batch by the clock: the scheduler takes some milliseconds for each; a worker that dies loses it.

Processor time would make batches too long for machines that others use, too."""

MAX_BATCH = 200
"""Runs of a batch, of which a worker that dies loses all."""

MAX_BATCH_SAMPLES = 4
"""Runs of a batch with raw samples, of some megabytes each, which a message holds in memory."""

SAMPLES = "\x00samples"
"""Where the raw samples of a run stand in its row on the way back."""

FETCH_S = 1.0
"""How long is waited for the rows of a batch that has ended."""

LISTEN_EVERY_S = 0.5
"""How long is waited for a batch at a time."""

ASK_EVERY_S = 5.0
"""How often a scheduler is asked whether it knows what was sent to it."""

CONNECT_S = 10
"""How long is waited for a scheduler."""

RETURN_S = 300.0
"""How long a scheduler is waited for that was there: one that is started again by its system."""

PATIENCE_S = 10.0
"""How long a cluster of this machine may be without a worker: Dask starts one in a second or two."""

MAX_IN_VAIN = 3
"""How often such a cluster is started without a single run that ends."""

_ADDRESS = re.compile(
    r"((tcp|tls|ws|wss)://)?([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]):(?P<port>[0-9]{1,5})"
)
"""Address of a scheduler as Dask reads it."""
