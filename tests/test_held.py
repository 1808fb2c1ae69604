"""Rows of a run in memory are those of its record, and so are the figures of them, to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from weirlab.record import open_record
from weirlab.record.held import COLUMNS, HeldRecord, _order
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import counted
from weirlab.stats.pings import ping_figures
from weirlab.stats.summary import direction_of, latency_of
from weirlab.tidy import figures, figures_of
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirlab.record.round_trips import RoundTrips

PHASES = {"idle": "1s", "load": "3s", "cooldown": "500ms"}

RUNS = {
    "rrul": {"test": "rrul", "phases": PHASES},
    "rrul with losses": {"test": "rrul", "phases": PHASES, "queue": ["fq_codel"]},
    "no load": {"test": "ping"},
    "no idle phase": {"test": "tcp_upload", "phases": {**PHASES, "idle": "0s"}},
    "UDP": {"test": "voip-rrul", "phases": PHASES},
    "fair": {"test": "rtt_fair4be", "phases": PHASES, "queue": ["cake"]},
}


@pytest.mark.parametrize("said", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("link", ["cable-20-8", "lte-att"])
def test_what_is_held_is_what_is_written(said: dict[str, object], link: str, tmp_path: Path) -> None:
    run = resolve(ScenarioSpec.model_validate({"link": link, **said}))[0]
    world = SimWorld()
    assert world.run(run, tmp_path / "record", None)
    written = open_record(tmp_path / "record")
    outcome = world.rows(run, None)
    held = world.held(run, outcome)

    assert outcome["complete"]
    for name in ("reached_ns", "events", "packets", "warnings"):
        assert getattr(held.manifest, name) == getattr(written.manifest, name)
    for table, columns in COLUMNS.items():
        theirs = getattr(written, table)
        ours = getattr(held, table)
        assert set(columns) <= set(ours.columns) or theirs.is_empty()
        assert_frame_equal(ours, theirs.select(ours.columns), check_exact=True)

    of_held = figures_of(latency_of(ping_figures(held)), direction_of(held, "down"), direction_of(held, "up"))
    assert repr(of_held) == repr(figures(written))


def test_round_trips_that_are_held_are_chosen_once_and_long_ones_read_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = resolve(ScenarioSpec.model_validate({"link": "cable-20-8", "test": "rrul", "phases": PHASES}))[0]
    held = SimWorld().held(run, SimWorld().rows(run, None))
    read: list[int] = []
    really = HeldRecord.round_trip_chunks

    def chunks(record: HeldRecord) -> Iterator[RoundTrips]:
        read.append(1)
        yield from really(record)

    monkeypatch.setattr(HeldRecord, "round_trip_chunks", chunks)
    once = ping_figures(held)
    assert len(read) == 1
    monkeypatch.setattr(HeldRecord, "is_long", lambda *_: True)
    monkeypatch.setattr(counted, "MOST_HELD", 0)
    assert ping_figures(held) == once
    assert len(read) == 2
    monkeypatch.setattr(counted, "MOST_KEPT", 0)
    assert ping_figures(held) == once
    assert len(read) == 4


def test_a_run_that_is_ended_early_is_held_up_to_there() -> None:
    run = resolve(
        ScenarioSpec.model_validate(
            {"test": "rrul", "link": "cable-20-8", "phases": {**PHASES, "load": "900s"}}
        )
    )[0]
    outcome = SimWorld().rows(run, lambda _: False)
    assert not outcome["complete"]
    assert 0 < outcome["reached_ns"] < 900e9


@pytest.mark.parametrize("latest", [10**9, 2**61, 2**63 - 1])
@pytest.mark.parametrize("least", [-1, 0])
def test_rows_are_ordered_by_time_and_where_it_is_equal_by_number(latest: int, least: int) -> None:
    rng = np.random.default_rng(4)
    time = rng.integers(0, latest, 500, endpoint=True)
    time[::3] = time[0]
    number = rng.integers(least, 4, time.size)
    assert _order(time, number).tolist() == np.lexsort((number, time)).tolist()
