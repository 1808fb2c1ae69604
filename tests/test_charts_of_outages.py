"""Charts and words of runs whose line went down: what was lost is told, and no line is drawn across it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weirlab
from weirlab.plots import phases

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weirlab.record import Record


def outage(start: str, end: str) -> dict[str, Any]:
    """A line of 20 and 8 Mbit/s that carries nothing from `start` to `end`."""

    def hop(rate: str) -> dict[str, Any]:
        changes = [{"at": start, "down": True}, {"at": end, "rate": rate}]
        return {
            "name": "line",
            "queue": "bfifo limit 64kb",
            "rate": rate,
            "delay": "10ms",
            "changes": changes,
        }

    return {"name": "broken", "title": "Broken", "up": [hop("8mbit")], "down": [hop("20mbit")]}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A line that is down for two seconds of its load."""
    return weirlab.run(
        "rrul_be",
        link=outage("2s", "4s"),
        phases={"idle": "1s", "load": "4s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("broken") / "out",
    )[0]


def texts(chart: Figure) -> str:
    """All that stands in a chart."""
    found = chart.findobj(lambda one: hasattr(one, "get_text"))
    return " ".join(text.get_text() for text in found)  # type: ignore[attr-defined]


def test_phases_have_a_gap_where_no_ping_was_answered_and_say_what_was_lost(broken: Record) -> None:
    t_s, middle = phases.medians(broken)
    down = (t_s > 2.2) & (t_s < 3.9)
    assert down.any()
    assert np.isnan(middle[down]).all()
    assert np.isfinite(middle[t_s < 1.9]).all()
    chart = phases.figure([broken], None)
    assert np.isnan(chart.axes[1].lines[1].get_ydata()).any()
    said = texts(chart)
    assert "% lost" in said
    assert "Ticks at the top" in said


def test_phases_without_losses_say_nothing_of_them(rrul: list[Record]) -> None:
    lossless = rrul[1]
    t_s, middle = phases.medians(lossless)
    assert np.isfinite(middle).all()
    assert t_s.size == middle.size
