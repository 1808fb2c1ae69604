"""Checking a bundle: a random sample of its runs is run again, and each held against its row to the bit."""

from __future__ import annotations

import json
import random
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab import reading
from weirlab.errors import RecordError
from weirlab.interrupt import heeding
from weirlab.scenario.recordings import digest_of
from weirlab.sweeps.bundle import MAX_ROW_BYTES, MAX_TEXT_CHARS, head_of, lines_of, packages
from weirlab.sweeps.columns import FIGURES, table
from weirlab.sweeps.local import Orders, processors, run_here, run_in_processes
from weirlab.sweeps.runs import Configuration, Run, build, identity, unpacked
from weirlab.sweeps.sweeping import RUN_LIMIT_S

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from weirlab.sweeps.bundle import Line
    from weirlab.sweeps.work import Row


MAX_SAMPLE = 10_000
"""Runs of a sample: their rows are in memory."""


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A run of a bundle that was run again.

    Attributes:
        run: its identity.
        seed: its seed.
        differing: the columns in which it came to something else; none if it is identical to the bit.
        error: why it could not be run here; None if it could.
    """

    run: str
    seed: int
    differing: tuple[str, ...]
    error: str | None

    @property
    def identical(self) -> bool:
        """Whether all of its figures are the same to the bit."""
        return self.error is None and not self.differing


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What came of checking a bundle.

    Attributes:
        rows: rows of the bundle.
        failed: those that failed when it was made, which are not run again.
        repeated: the sample, by identity.
        interrupted: whether it was told to stop before the sample was done.
        same_build: whether the same build of Weir is here.
        other_packages: packages that are here in another version, with both.
    """

    rows: int
    failed: int
    repeated: tuple[Repeated, ...]
    interrupted: bool
    same_build: bool
    other_packages: dict[str, tuple[str, str]]


def check_bundle(
    path: Path,
    *,
    sample: int,
    jobs: int | None = None,
    run_limit_s: float = RUN_LIMIT_S,
    chance: random.Random | None = None,
) -> Checked:
    """Runs a random sample of a bundle again.

    Args:
        path: the bundle.
        sample: how many of its runs; all if it has fewer.
        jobs: worker processes; 1 for this process alone, None for one a processor.
        run_limit_s: time by the clock in seconds after which a run that has not ended is given up.
        chance: what the sample is drawn with; what nobody can foresee if None.

    Raises:
        RecordError: if it is no bundle, one of another version, truncated, or was tampered with.
    """
    try:
        file = reading.opened(path)
    except reading.Unreadable as error:
        raise RecordError(f"`{path}` cannot be read: {error}") from error
    with file:
        head = head_of(file, str(path))
        rows, failed, chosen = _sampled(file, str(path), sample, chance or random.SystemRandom())
        if rows != head.get("rows"):
            raise RecordError(f"`{path}` has {rows} rows, not {head.get('rows')} as its first line says")
        runs, texts = _runs_of(file, str(path), chosen)
    again, interrupted = _again(runs, texts, jobs, run_limit_s)
    repeated = [_held(row, again[row["run"]]) for row, _ in chosen if row["run"] in again]
    return Checked(
        rows=rows,
        failed=failed,
        repeated=tuple(sorted(repeated, key=lambda one: one.run)),
        interrupted=interrupted,
        same_build=head.get("build") == build(),
        other_packages=_others(head),
    )


def _sampled(
    file: BinaryIO, name: str, sample: int, chance: random.Random
) -> tuple[int, int, list[tuple[Row, int]]]:
    """Numbers of rows and of those that failed, and a sample of the others with the numbers behind `of`.

    Each row is as likely to be in it as the next (Vitter's algorithm R), whatever their number is.
    """
    rows = failed = 0
    chosen: list[tuple[Row, int]] = []
    for line, length in lines_of(file, name):
        if "row" not in line:
            continue
        rows += 1
        row, of = line["row"], line.get("of")
        if not isinstance(row, dict) or not isinstance(of, int) or length > MAX_ROW_BYTES:
            raise RecordError(f"`{name}` is damaged: row {rows} is none of a sweep")
        if "error" in row:
            failed += 1
        elif len(chosen) < sample:
            chosen.append((row, of))
        elif (place := chance.randrange(rows - failed)) < sample:
            chosen[place] = row, of
    return rows, failed, chosen


def _runs_of(file: BinaryIO, name: str, chosen: list[tuple[Row, int]]) -> tuple[list[Run], dict[str, str]]:
    """The runs of a sample, and the texts of their recordings by digest."""
    wanted: dict[int, list[Row]] = {}
    for row, of in chosen:
        wanted.setdefault(of, []).append(row)
    texts: dict[str, list[str]] = {}
    lengths: dict[str, int] = {}
    needed = _recordings(file, name, set(wanted))
    runs: list[Run] = []
    for line, _ in lines_of(file, name):
        if line.get("trace") in needed:
            digest, text = line["trace"], str(line.get("text"))
            texts.setdefault(digest, []).append(text)
            lengths[digest] = lengths.get(digest, 0) + len(text)
            if lengths[digest] > MAX_TEXT_CHARS:
                raise RecordError(f"`{name}` has a recording of more than {MAX_TEXT_CHARS >> 20} MiB")
        elif line.get("configuration") in wanted and "row" not in line:
            runs += [_run(line, row, name) for row in wanted[line["configuration"]]]
    whole = {digest: "".join(pieces) for digest, pieces in texts.items()}
    if len(runs) != len(chosen) or any(digest_of(text) != digest for digest, text in whole.items()):
        raise RecordError(f"`{name}` is damaged: a configuration or a recording is missing or another")
    if missing := needed - set(whole):
        raise RecordError(f"`{name}` is damaged: the recording {min(missing)} is missing")
    return runs, whole


def _recordings(file: BinaryIO, name: str, wanted: set[int]) -> set[str]:
    """Digests of the recordings that these configurations name."""
    found: set[str] = set()
    for line, _ in lines_of(file, name):
        if line.get("configuration") in wanted and isinstance(line.get("traces"), dict):
            found |= {str(digest) for digest in line["traces"].values()}
    return found


def _run(line: Line, row: Row, name: str) -> Run:
    """A run of a configuration, if its identity is that of its row."""
    said: Line = {key: line.get(key) for key in ("test", "link", "queue", "cc", "words", "scenario")}
    traces: dict[str, str] = line.get("traces") or {}
    try:
        packed = zlib.compress(json.dumps(said).encode(), 1)
        seed = row["seed"]
        key = identity(unpacked(packed, seed, {}), traces)
        duration_s = said["scenario"]["duration_ns"] / 1e9
    except Exception as error:
        raise RecordError(f"`{name}` is damaged: configuration {line['configuration']} is none") from error
    if key != row.get("run"):
        raise RecordError(f"`{name}` was changed: run `{row.get('run')}` is not that of its configuration")
    return Run(key, Configuration(packed, traces, {}, duration_s), seed)


def _again(
    runs: list[Run], texts: dict[str, str], jobs: int | None, run_limit_s: float
) -> tuple[dict[str, Row], bool]:
    """The rows that these runs come to here, and whether it was told to stop before all were done."""
    again: dict[str, Row] = {}

    def told(run: Run, row: Row) -> bool:
        again[run.key] = row
        return True

    with heeding() as stop:
        orders = Orders(runs=runs, traces=texts, told=told, stop=stop, run_limit_s=run_limit_s)
        if jobs == 1 or len(runs) < 2:
            run_here(orders)
        else:
            run_in_processes(orders, jobs=jobs or processors())
    return again, len(again) < len({run.key for run in runs})


def _held(row: Row, again: Row) -> Repeated:
    """A row of the bundle against what the same run came to here."""
    if "error" in again:
        return Repeated(run=row["run"], seed=row["seed"], differing=(), error=again["error"])
    ours = table([again], {}).row(0, named=True)
    differing = tuple(name for name in FIGURES if _bits(ours[name]) != _bits(row.get(name)))
    return Repeated(run=row["run"], seed=row["seed"], differing=differing, error=None)


def _bits(value: Any) -> Any:
    """A value that equals another only if they are the same to the bit: -0.0 is not 0.0, and 1 not 1.0."""
    return (float, struct.pack("<d", value)) if isinstance(value, float) else (type(value), value)


def _others(head: Line) -> dict[str, tuple[str, str]]:
    there = head.get("packages")
    if not isinstance(there, dict):
        return {}
    here = packages()
    versions = {name: str(one.get("version")) for name, one in there.items() if isinstance(one, dict)}
    return {
        name: (versions[name], here[name]["version"])
        for name in sorted(versions)
        if name in here and here[name]["version"] != versions[name]
    }
