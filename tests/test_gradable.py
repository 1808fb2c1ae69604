"""Which runs have a grade: those whose line was full to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from weirlab.plots import plot
from weirlab.stats import summarise
from weirlab.viewer import grade_of

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

HOP = {"name": "line", "rate": "10mbit", "delay": "10ms", "queue": "pfifo limit 300"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
PINGS = [{"name": "ping", "kind": "icmp", "period": "20ms"}]
UPLOAD = {"name": "load", "direction": "up"}


def run(out: Path, *flows: dict[str, Any]) -> Record:
    """A test with pings and these flows, on a line of 10 Mbit/s."""
    phases = {"idle": "2s", "load": "20s"}
    test = {"name": "t", "title": "t", "phases": phases, "flows": list(flows), "probes": PINGS}
    (record,) = weirlab.run(test, link=LINK, out=out)
    return record


@pytest.mark.parametrize(
    ("flows", "letter"),
    [
        ([UPLOAD], "D"),
        ([], None),
        ([{**UPLOAD, "start": "3s", "stop": "8s"}], None),
        # A call takes next to nothing of the line.
        ([{"name": "call", "direction": "up", "voice": {}}], None),
        # One after the other they fill the load.
        ([{**UPLOAD, "stop": "12s"}, {**UPLOAD, "name": "later", "start": "12s"}], "D"),
        # The line was never idle.
        ([{**UPLOAD, "start": "0s"}], None),
    ],
)
def test_a_line_that_was_not_full_all_along_has_no_grade(
    tmp_path: Path, flows: list[dict[str, Any]], letter: str | None
) -> None:
    record = run(tmp_path / "run", *flows)
    grade = grade_of(record)
    assert (grade and grade.letter) == letter
    if summarise(record).latency.increase_mean_ms is not None and flows:
        words = [text.get_text() for axes in plot(record, "phases").axes for text in axes.texts]
        assert any(" ms: " in text for text in words) == (letter is not None), words


def test_pings_beside_a_load_are_none_of_an_idle_line(tmp_path: Path) -> None:
    latency = summarise(run(tmp_path / "run", {**UPLOAD, "start": "0s"})).latency
    assert (latency.idle, latency.increase_mean_ms) == (None, None)
    assert latency.loaded is not None
