"""Panels of lines over time: legends that fit however many lines there are, and points that stand alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import weirlab
from weirlab.plots import Look, applications, panels, theme
from weirlab.plots.canvas import canvas_of, measuring
from weirlab.plots.panels import Line, Panel, Things
from weirlab.plots.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from weirlab.record import Record


@pytest.fixture(autouse=True)
def _as_in_charts() -> Iterator[None]:
    with theme.applied(Look()):
        yield


def lines(count: int) -> list[Line]:
    t_s = np.array([0.5, 1.0, 1.5])
    return [
        Line(name=f"flow {number}", style=style, t_s=t_s, values=np.full(3, float(number)))
        for number, style in enumerate(theme.styles(count))
    ]


def drawn(record: Record, shown: Sequence[Panel], *, averaged: bool = True) -> Figure:
    things = Things(name="flows", averaged=averaged)
    chart = panels.draw([record], None, "A note.", shown, things=things, scope=Scope([record]))
    canvas_of(chart).draw()  # type: ignore[no-untyped-call]
    return chart


@pytest.mark.parametrize("count", [1, 14, 24, 25, 200])
@pytest.mark.parametrize("number", [2, 4])
def test_panels_stay_as_high_as_they_are_and_the_legend_is_in_the_picture(
    count: int, number: int, rrul: list[Record]
) -> None:
    chart = drawn(rrul[0], [Panel(label=f"Panel {one}", lines=lines(count)) for one in range(number)])
    for axes in chart.axes:
        assert axes.bbox.height / chart.dpi > 1.0
        assert axes.bbox.y0 > 0
    legend = chart.axes[0].get_legend()
    assert legend is not None
    box = legend.get_window_extent(measuring(chart))
    assert box.y0 > 0
    assert box.x1 <= chart.bbox.x1 + 1
    words = [text.get_text() for text in legend.get_texts()]
    assert len(words) == (count if count <= panels.MAX_NAMED else 2)


def test_more_lines_than_can_be_told_apart_are_grey_around_their_average(rrul: list[Record]) -> None:
    (axes,) = drawn(rrul[0], [Panel(label="One", lines=lines(30))]).axes
    legend = axes.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {"each of 30 flows", "average"}
    assert [float(value) for value in axes.lines[-1].get_ydata()] == [14.5] * 3  # type: ignore[union-attr, arg-type]
    (alone,) = drawn(rrul[0], [Panel(label="One", lines=lines(30))], averaged=False).axes
    legend = alone.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["each of 30 flows"]


def test_the_average_is_of_all_lines_though_each_has_times_of_its_own(rrul: list[Record]) -> None:
    styles = theme.styles(30)
    scattered = [
        Line(
            name=f"{number}",
            style=styles[number],
            t_s=np.arange(1.0, 4.0) + 1e-4 * number,
            values=np.full(3, float(number)),
        )
        for number in range(30)
    ]
    (axes,) = drawn(rrul[0], [Panel(label="One", lines=scattered)]).axes
    assert [float(value) for value in axes.lines[-1].get_ydata()] == [14.5] * 3  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("count", [1, 30])
def test_a_point_without_a_neighbour_is_seen(count: int, rrul: list[Record]) -> None:
    nothing = float("nan")
    values = np.array([1.0, nothing, 2.0, 3.0, nothing, 4.0])
    some = [
        Line(name=f"{number}", style=theme.styles(count)[number], t_s=np.arange(6.0), values=values)
        for number in range(count)
    ]
    (axes,) = drawn(rrul[0], [Panel(label="One", lines=some)], averaged=False).axes
    (dots, *_) = [line for line in axes.lines if line.get_marker() == "o"]
    assert list(dots.get_xdata()) == [0, 5]  # type: ignore[arg-type]


def test_bitrates_are_steps_and_pages_that_did_not_come_are_told(tmp_path: Path) -> None:
    (record,) = weirlab.run(
        "household", link="cable-20-8", phases={"idle": "0s", "load": "9s"}, out=tmp_path / "out"
    )
    (web,) = record.flow_names.filter(pl.col("protocol") == "web")["flow"]
    assert record.transfers.filter((pl.col("outcome") == "done") & (pl.col("flow") == web)).height == 1
    chart = applications.figure([record], None)
    of = {axes.get_ylabel(): axes for axes in chart.axes}
    assert of["Bitrate, Mbit/s"].lines[0].get_drawstyle() == "steps-post"
    assert of["Buffer, s"].lines[0].get_drawstyle() == "default"
    assert any(line.get_marker() == "o" for line in of["Page load time, s"].lines)
    assert any("Not drawn: " in text.get_text() for text in chart.texts)
