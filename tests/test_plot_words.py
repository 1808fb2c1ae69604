"""What charts say, and how they tell lines apart: ticks, labels, names, headings, numbers, colours."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

import weirlab
from weirlab.cli import show_command
from weirlab.plots import (
    axes,
    bar,
    box,
    caption,
    measure,
    plot,
    theme,
)
from weirlab.record import Record, open_record
from weirlab.record.configurations import run_names

if TYPE_CHECKING:
    from pathlib import Path


def test_ticks_as_one_says_them() -> None:
    assert axes.log_ticks(13, 420, 9) == [20, 50, 100, 200]
    assert axes.log_ticks(13, 5500, 6) == [30, 100, 300, 1000, 3000]
    assert axes.log_ticks(0.5, 5e6, 9) == [1, 10, 100, 1000, 1e4, 1e5, 1e6]


def test_labels_move_apart() -> None:
    assert axes.spread([0.5, 0.2], 0.1) == [0.5, 0.2]
    assert axes.spread([0.5, 0.5], 0.1) == pytest.approx([0.5, 0.6])
    assert axes.spread([1.2, 0.98, 0.97], 0.1) == pytest.approx([1.0, 0.9, 0.8])
    assert axes.spread([0.5] * 3, 0.7) == pytest.approx([0.0, 0.5, 1.0])


def test_single_peaks_do_not_set_the_axis() -> None:
    flat = np.full(1000, 4.0)
    assert axes.without_peaks([flat], flat) == (4, 4)
    peak = np.where(np.arange(1000) == 500, 40.0, 4.0)
    assert axes.without_peaks([flat, peak], flat) == (5, 40)
    assert axes.without_peaks([peak], peak) == (40, 40)


def test_names_say_what_differs(rrul: list[Record], idle: Record) -> None:
    assert run_names(rrul) == ["pfifo_fast", "htb rate 95% fq_codel"]
    assert run_names([rrul[0]]) == ["pfifo_fast"]
    assert run_names([rrul[0]] * 2) == ["pfifo_fast (1)", "pfifo_fast (2)"]
    again = open_record(rrul[0].path)
    again.manifest = replace(again.manifest, seed=2)
    assert run_names([rrul[0], again]) == ["pfifo_fast · seed 1", "pfifo_fast · seed 2"]
    live = open_record(rrul[0].path)
    live.manifest = replace(live.manifest, world="netns")
    assert run_names([rrul[0], live]) == ["world sim", "world netns"]
    title = "Realtime Response Under Load"
    assert run_names([rrul[0], idle]) == [
        f"pfifo_fast · {title} · idle 1 s",
        "the link's own queue · Ping without load · idle 2 s",
    ]


def test_what_was_asked_of_tcp_stands_in_the_heading_of_a_single_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that are compared by it have otherwise the same words above them."""
    asked: dict[str, Any] = {"queue": "fq_codel", "phases": {"idle": "1s", "load": "1s"}}
    third = {"congestion_control": "reno", "ecn": True}
    plain, *others = [
        *weirlab.run("tcp_upload", out=tmp_path / "a", **asked),
        *weirlab.run("tcp_upload", cc=["cubic", "bbr"], out=tmp_path / "b", **asked),
        *weirlab.run("tcp_upload", tcp=third, out=tmp_path / "c", **asked),
    ]
    line = caption.configuration_line([plain])
    assert line.endswith("; fq_codel")
    said = [f"{line}; cubic", f"{line}; bbr", f"{line}; reno, ECN"]
    assert [caption.configuration_line([record]) for record in others] == said
    assert caption.configuration_line(others) == f"{line}; 3 configurations"
    for record, words in zip(others, said, strict=True):
        assert words in str(record._repr_html_())
        show_command._show(record)
        assert words in " ".join(capsys.readouterr().out.split())


def test_of_many_boxes_and_bars_none_has_colour_and_hatching_of_another(tmp_path: Path) -> None:
    controls = ["cubic", "reno", "bbr", "westwood", "ledbat", "lp", "dctcp", "cdg"]
    records = weirlab.run(
        "tcp_upload", cc=controls, phases={"idle": "500ms", "load": "1s"}, out=tmp_path / "out"
    )
    for chart in (box.figure(records, None), bar.figure(records, None)):
        for panel in chart.axes:
            areas = [(one.get_facecolor(), one.get_hatch() or "") for one in panel.patches]
            assert len(areas) == len(set(areas)) == len(controls)
            assert [hatch for _, hatch in areas[:6]] == [""] * 6


def test_heading_and_lines_below(rrul: list[Record], idle: Record) -> None:
    assert caption.heading(rrul) == "Realtime Response Under Load"
    assert caption.heading([*rrul, idle]) == "Realtime Response Under Load / Ping without load"
    cable = "Cable, 20 Mbit/s down, 8 Mbit/s up"
    assert caption.configuration_line(rrul[:1]) == f"{cable}; pfifo_fast"
    assert caption.configuration_line(rrul) == f"{cable}; 2 configurations"
    assert caption.origin_line(rrul) == "world sim · 2 runs · seed 1"
    assert caption.when(rrul) == "during the load"
    assert caption.when([idle]) == "over the whole run"
    odd = open_record(rrul[0].path)
    odd.manifest = replace(odd.manifest, seed=9, warnings=["the clock drifted"])
    told = "world sim · 2 runs · seeds 1, 9 · caution: the clock drifted"
    assert caption.origin_line([rrul[0], odd]) == told


def test_short_names() -> None:
    assert caption.short_names(["TCP upload BE", "TCP upload BK"]) == ["BE", "BK"]
    assert caption.short_names(["TCP download::1", "TCP download::10"]) == ["1", "10"]
    assert caption.short_names(["Ping (ms) ICMP", "Ping (ms) UDP BE"]) == ["ICMP", "UDP BE"]
    assert caption.short_names(["TCP download"]) == ["TCP download"]
    assert caption.short_names(["same", "same"]) == ["same", "same"]


def test_numbers_for_people() -> None:
    numbers = [0, 0.00231, 4.444, 9.996, 14.13, 99.96, 275.2, 1351.3]
    wanted = ["0", "0.00231", "4.44", "10.0", "14.1", "100", "275", "1351"]
    assert [caption.number(one) for one in numbers] == wanted
    shares = [0.00005, 0.00092, 0.22, 0.9951, 1.0]
    assert [caption.per_cent(one) for one in shares] == [
        "< 0.01 %",
        "0.092 %",
        "22 %",
        "99.51 %",
        "100 %",
    ]


def test_text_is_broken_where_it_must_be() -> None:
    assert measure.wrapped("one two", 10, 9) == ["one two"]
    assert measure.wrapped("one two", 0.4, 9) == ["one", "two"]
    lines = measure.wrapped("x" * 100, 1.0, 9)
    assert "".join(lines) == "x" * 100
    assert max(measure.width_of(line, 9) for line in lines) <= 1.0


@pytest.mark.parametrize("weight", ["normal", "bold"])
@pytest.mark.parametrize(
    "letters", ["AVTy. ", "jfi/Wl1 ", "abcdefghijklmnopqrstuvwxyz0123456789,;%     ", "µ±·→é "]
)
def test_no_line_is_wider_than_its_letters(letters: str, weight: str) -> None:
    random = Random(letters)  # noqa: S311 - the same texts in each run
    for length in range(1, 120):
        text = "".join(random.choices(letters, k=length)).strip() or "x"
        width = measure.width_of(text, 8.5, weight=weight)
        font = FontProperties(family="DejaVu Sans", size=8.5, weight=weight)
        set_as_a_line = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72
        assert set_as_a_line / 1.02 <= width <= 1.2 * set_as_a_line


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 12, 30])
def test_nothing_is_told_apart_by_colour_alone(count: int) -> None:
    styles = theme.styles(count)
    assert len({(style.colour, style.dash) for style in styles}) == count
    few = styles[:5]
    assert len({style.dash for style in few}) == len({style.marker for style in few}) == len(few)


def test_colours_go_from_dark_to_light() -> None:
    weights = np.array([0.2126, 0.7152, 0.0722])
    shades = [
        float(weights @ [(int(colour[at : at + 2], 16) / 255) ** 2.2 for at in (1, 3, 5)])
        for colour in theme.COLOURS
    ]
    assert shades == sorted(shades)


def test_runs_in_one_chart_have_phases_only_where_all_have_the_same(
    rrul: list[Record], longer: Record
) -> None:
    """Under the name of another run's phase a run would stand as it is in none."""
    for others, are_named in ((rrul[1], True), (longer, False)):
        for kind in ("overlay", "totals"):
            axes = plot([rrul[0], others], kind).axes
            words = {text.get_text() for one in axes for text in one.texts}
            assert ({"idle", "load", "cooldown"} <= words) == are_named, kind
