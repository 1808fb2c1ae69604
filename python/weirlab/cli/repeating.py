"""Repetitions until a figure is known well enough (`weir run --until`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.api import folders_of, make_empty, run_into
from weirlab.errors import UsageError
from weirlab.record.configurations import configurations
from weirlab.ui import RunProgress
from weirlab.worlds import check_all

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.stats.repetition import Until
    from weirlab.worlds import World


def run_until(  # noqa: PLR0913 - what is run, where, and how often
    runs: list[ResolvedRun], world: World, out: Path, until: Until, *, jobs: int | None, quiet: bool
) -> list[Record]:
    """Repeats all configurations in turn until the interval of each is as narrow as asked.

    Args:
        runs: all that may be run: every configuration with every seed.
        world: where they run.
        out: folder of the records, which is empty.
        until: what is asked.
        jobs: how many run at once.
        quiet: whether nothing is said.

    Returns:
        The records of all repetitions that were run, in the order of `runs`.
    """
    for one in runs:
        until.check(one.scenario)
    check_all(world, runs)
    make_empty(out)
    folders = folders_of(runs, out)
    seeds = list(dict.fromkeys(one.seed for one in runs))
    records: list[Record] = []
    for count, seed in enumerate(seeds, 1):
        chosen = [number for number, one in enumerate(runs) if one.seed == seed]
        if count % 2 == 0:
            # Backwards in every other round, as without --until.
            chosen.reverse()
        batch = [runs[number] for number in chosen]
        with RunProgress(batch, title=f"repetition {count} of {len(seeds)} at most", quiet=quiet) as progress:
            done = run_into(batch, world, [folders[number] for number in chosen], jobs=jobs, watcher=progress)
        records += done
        if len(done) < len(batch) or not all(one.manifest.complete for one in done):
            break
        if count < MIN_LOOK:
            continue
        groups = configurations(records)
        look = count - MIN_LOOK + 1
        if all(until.met(one.records, look) or until.is_unknown(one.records) for one in groups):
            break
    if not quiet:
        _tell(records, until, len(seeds))
    order = {folder: number for number, folder in enumerate(folders)}
    return sorted(records, key=lambda record: order[record.path])


def _tell(records: list[Record], until: Until, most: int) -> None:
    """How well the figure of each configuration is known."""
    from weirlab.ui import note  # noqa: PLC0415 - loads Rich, which no run waits for

    for group in configurations(records):
        count = len(group.records)
        if count < MIN_LOOK:
            continue
        if until.is_unknown(group.records):
            note(f"{group.name}: `{until.text}`: none of {count} runs has that figure")
            continue
        look = count - MIN_LOOK + 1
        mean, half = until.half_width(group.records, look)
        met = until.met(group.records, look)
        state = "as asked" if met else f"wider than asked after {most}"
        interval = f"{mean:.4g} +-{half:.2g} {until.unit}".rstrip()
        note(f"{group.name}: `{until.text}` after {count} runs: {interval}, {state}")


def repeats(until: str | None, most: int | None, repeat: int | None) -> int | None:
    """How many repetitions there are, or at most with --until; None if nothing is said.

    Raises:
        UsageError: if options exclude each other, or there are too few repetitions for an interval.
    """
    if until is None:
        if most is not None:
            raise UsageError(f"--max-repeat {most}: it bounds --until; write --repeat {most}")
        return repeat
    if repeat is not None:
        raise UsageError("--until and --repeat exclude each other: --max-repeat N bounds --until")
    most = DEFAULT_MOST if most is None else most
    if most < MIN_LOOK:
        raise UsageError(
            f"--max-repeat {most}: --until looks after {MIN_LOOK} repetitions for the first time"
        )
    return most


MIN_LOOK = 3
"""Repetitions before the first look: the interval of two is too wide for anything."""

DEFAULT_MOST = 30
"""Repetitions at most, if nothing is said."""
