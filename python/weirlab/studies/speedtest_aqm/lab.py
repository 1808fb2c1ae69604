"""Cells in the lab: `weir serve` behind the line, `weir test --method` before it, over this machine's TCP.

The client pings the server meanwhile (`--truth`), in a flow of its own; the queues' samples come from the
lab. Round trips of the load's own packets are not to be had there.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import LabError, NetError
from weirlab.lab.client import ask
from weirlab.net.methods import IDLE_S, url_of
from weirlab.record import new_manifest, open_record
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.scenario.catalogue import check
from weirlab.studies.speedtest_aqm import design
from weirlab.studies.speedtest_aqm.figures import LOADED, WAYS, Run, Way, key_of, spread, waits_ms
from weirlab.studies.speedtest_aqm.measure import Keeping, go_on
from weirlab.worlds import world_named
from weirlab.worlds.lab import CLOCK, OFFLOADS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from weirlab.lab.client import View
    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.scenario.models import Direction
    from weirlab.studies.speedtest_aqm.design import Cell, Study
    from weirlab.studies.speedtest_aqm.measure import Found, Watching
    from weirlab.worlds import Progress


def experiment(wanted: Mapping[Cell, int], out: Path, *, of: Study, watching: Watching) -> Found:
    """The runs of all cells in the lab: those whose figures `out` holds, and the others run now.

    Raises:
        Interrupted: if not all came to their ends; those that did are kept.
        UsageError: if `out` holds figures of other scenarios.
    """
    cells = {cell.name: cell for cell in wanted}

    def work(run: ResolvedRun, folder: Path, progress: Progress | None) -> Run | None:
        return _measure(run, cells[run.queue], folder, progress)

    runs = [run for cell, count in wanted.items() for run in runs_of(cell, of=of, repetitions=count)]
    return go_on(runs, Keeping(world_named("lab"), work), out / "lab", cells, jobs=1, watching=watching)


def runs_of(cell: Cell, *, of: Study, repetitions: int) -> list[ResolvedRun]:
    """The runs of a cell: the line, and time enough for the method."""
    longest = of.method_named(cell.method).longest + IDLE_S * 1_000_000_000
    spec = check(
        ScenarioSpec,
        {
            "test": {
                "name": "speedtest-aqm",
                "title": f"{cell.method} beneath {cell.queue}, in the lab",
                "phases": {"load": longest},
            },
            "link": design.link(cell),
            "queue": [design.queue_words(cell, of)],
            "repeat": repetitions,
        },
        f"study `speedtest-aqm`, `{cell.name}`",
    )
    return [dataclasses.replace(run, queue=cell.name) for run in resolve(spec)]


def _measure(run: ResolvedRun, cell: Cell, folder: Path, progress: Progress | None) -> Run | None:
    folder.mkdir(parents=True)
    goes_on = True

    def on_view(view: View) -> bool:
        nonlocal goes_on
        goes_on = progress is None or progress(min(view["t_ns"], run.scenario["duration_ns"]))
        return goes_on

    manifest = new_manifest(run, world="lab", clock=CLOCK, offloads=OFFLOADS)
    answer = ask(
        {
            "do": "exec",
            "scenario": run.scenario,
            "traces": {},
            "seed": run.seed,
            "program": ["sh", "-c", _client(cell, folder)],
            "server_command": f"{_weir()} serve >/dev/null 2>&1",
            "device": None,
            "capture": None,
            "record": {"folder": str((folder / "line").absolute()), "manifest": manifest},
        },
        on_view,
    )
    if not goes_on:
        return None
    if answer["exit_code"] != 0:
        raise NetError(f"`{cell.name}` in the lab: {_error(folder)}")
    said = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    if said["truth"] is None:
        raise NetError(f"`{cell.name}` in the lab: no ping came back")
    return _figures(run, cell, said, folder, answer["warnings"])


def _weir() -> str:
    return f"{shlex.quote(sys.executable)} -m weirlab"


def _client(cell: Cell, folder: Path) -> str:
    said, errors, pings = (
        shlex.quote(str((folder / name).absolute())) for name in ("said.json", "errors", "pings")
    )
    return (
        f"exec {_weir()} test {url_of(cell.method, 'server')} --method {cell.method} --no-verify --truth "
        f"--json --out {pings} "
        f">{said} 2>{errors}"
    )


def _error(folder: Path) -> str:
    lines = (folder / "errors").read_text(encoding="utf-8").strip().splitlines()
    return lines[-1] if lines else "the client failed without a word"


def _figures(run: ResolvedRun, cell: Cell, said: dict[str, Any], folder: Path, warnings: list[str]) -> Run:
    line, pings = open_record(folder / "line"), open_record(folder / "pings")
    step = line.manifest.scenario["sampling"]["queue_ns"]
    rates = _rates(line, step)
    least = LOADED * cell.rate_mbps
    loaded = {way: {number for number, mbps in one.items() if mbps >= least} for way, one in rates.items()}
    every = sorted(loaded["down"] | loaded["up"])
    if not every:
        raise LabError(f"`{cell.name}`: the line never carried {LOADED:.0%} of its rate")
    # The clocks of both records begin apart; when the load began is what both know.
    began_ns = round(said["truth"]["began_s"] * 1e9)
    lag = every[0] * step - began_ns
    ways: dict[Direction, Way] = {}
    for way in WAYS:
        # A download's acknowledgements load the other direction too.
        bins = sorted(number for number in loaded[way] if _carries(rates, way, number))
        found = _way(line, pings, cell, bins, [rates[way][number] for number in bins], (step, lag))
        if found:
            ways[way] = found
    idle = pings.latency.filter(pl.col("t_ns") < began_ns)["rtt_ns"].drop_nulls().median()
    return Run(
        key=key_of(run),
        cell=cell.name,
        seed=run.seed,
        world="lab",
        result=said["result"],
        seconds=round((every[-1] + 1 - every[0]) * step / 1e9, 3),
        idle_ms=round(idle / 1e6, 4) if isinstance(idle, float) else None,
        ways=ways,
        warnings=[*warnings, *pings.manifest.warnings],
    )


def _rates(line: Record, step: int) -> dict[Direction, dict[int, float]]:
    """What the router carried each way in each interval, Mbit/s."""
    rows = line.queue.filter(pl.col("class") == "")
    return {
        way: {
            t_ns // step - 1: wire * 8e3 / step
            for t_ns, wire in rows.filter(pl.col("queue") == f"{way}/{design.ROUTER}")
            .select("t_ns", "wire_bytes")
            .iter_rows()
        }
        for way in WAYS
    }


def _carries(rates: Mapping[Direction, Mapping[int, float]], way: Direction, number: int) -> bool:
    """Whether that direction carries the data of that interval, and not its acknowledgements."""
    other = rates["up" if way == "down" else "down"].get(number, 0.0)
    return other < ACKNOWLEDGING * rates[way][number]


def _way(  # noqa: PLR0913, PLR0917 - both records and what is taken of them
    line: Record, pings: Record, cell: Cell, bins: list[int], mbps: list[float], at: tuple[int, int]
) -> Way | None:
    if not bins:
        return None
    step, lag = at
    rates = spread(pl.Series(mbps).to_numpy())
    assert rates is not None  # noqa: S101 - there are bins
    sent_in = ((pl.col("t_ns") + lag) // step).is_in(bins)
    ended_in = (pl.col("t_ns") // step - 1).is_in(bins)
    return Way(
        loaded_s=round(len(bins) * step / 1e9, 3),
        mbps=rates.mean,
        cross_mbps=None,
        rates=rates,
        own=None,
        srtt=None,
        other=spread(pings.latency.filter(sent_in)["rtt_ns"].drop_nulls().to_numpy() / 1e6),
        queue=spread(cell.rtt_ms + waits_ms(line.queue.filter(ended_in))),
    )


ACKNOWLEDGING = 0.25
"""An acknowledgement for each packet of 1538 bytes on the line is 0.06 of it; beside a load of its own a
direction is near 1."""
