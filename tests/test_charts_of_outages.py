"""Charts and words of runs whose line went down: what was lost is told, and no line is drawn across it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weirlab
from weirlab.errors import UsageError
from weirlab.plots import phases, plot
from weirlab.report import increase_line, latency_table
from weirlab.report.tables import story
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

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


def note(chart: Figure) -> str:
    """What stands below a chart, whose lines are written from the last one on."""
    return " ".join(text.get_text() for text in reversed(chart.texts))


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


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A line that is down from the beginning to the end."""
    return weirlab.run(
        "rrul_be",
        link=outage("0s", "60s"),
        phases={"idle": "1s", "load": "2s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("silent") / "out",
    )[0]


def test_a_sentence_tells_that_many_pings_were_lost(
    broken: Record, silent: Record, rrul: list[Record]
) -> None:
    share = summarise(broken).latency.loss_rate
    assert share is not None
    assert story(weirlab.compare(broken)).plain.endswith(f" Of the pings under load {share:.1%} were lost.")
    assert story(weirlab.compare(silent)).plain.endswith(
        "no ping was answered during the load. Of the pings under load 100.0% were lost. "
        "Of the pings in the phase `idle` 100.0% were lost."
    )
    assert "lost" not in story(weirlab.compare(rrul[1])).plain


def test_probes_of_which_all_pings_were_lost_are_in_the_table(silent: Record) -> None:
    summary = summarise(silent)
    table = latency_table(summary)
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == [*summary.probes, "all"]
    assert cells[-1] == ["0"] * len(cells[0])
    sent = summary.latency.sent
    assert increase_line(summary.latency) == f"{sent} of {sent} pings lost."


@pytest.mark.parametrize("kind", ["three-plot", "totals", "box", "bar"])
def test_charts_without_an_answered_ping_say_so(kind: str, silent: Record, broken: Record) -> None:
    sent = summarise(silent).latency.sent
    assert f"all {sent} were lost." in note(plot(silent, kind))
    assert "was answered" not in note(plot(broken, kind))
    if kind != "three-plot":
        assert "In 1 of 2 runs no ping under load was answered." in note(plot([broken, silent], kind))


def test_phases_say_where_no_ping_was_answered(silent: Record, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no answered ping in its idle phase"):
        plot(silent, "phases")
    (late,) = weirlab.run(
        "rrul_be",
        link=outage("1s", "60s"),
        phases={"idle": "1s", "load": "2s", "cooldown": "0s"},
        out=tmp_path / "out",
    )
    with pytest.raises(UsageError, match="has no answered ping in its phases with load"):
        plot(late, "phases")
