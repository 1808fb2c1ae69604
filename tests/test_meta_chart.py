"""The chart `meta`: figures of whole runs against what sets the runs apart."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.text import Text

import weirlab
from weirlab.errors import UsageError
from weirlab.plots import Look, plot, theme
from weirlab.record import find_records

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from weirlab.record import Record


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Two lines, two queues, two runs each."""
    place = tmp_path_factory.mktemp("meta")
    return [
        record
        for link in ("cable-20-8", "line-50")
        for record in weirlab.run(
            "tcp_download",
            link=link,
            queue=["pfifo_fast", "htb rate 95% fq_codel"],
            repeat=2,
            phases={"idle": "500ms", "load": "2s", "cooldown": "0s"},
            out=place / link,
        )
    ]


def points(axes: Axes) -> list[list[tuple[float, float]]]:
    """The points of each group."""
    bars = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    return [[(float(x), float(y)) for x, y in np.asarray(one.lines[0].get_xydata())] for one in bars]


def test_points_are_the_means_of_the_figures_of_runs(runs: list[Record]) -> None:
    look = Look(against="down_line_mbps", figures=["loaded_median_ms", "down_goodput_mbps"], group="queue")
    figure = plot(runs, "meta", look=look)
    rows = weirlab.frame(runs)
    for axes, name in zip(figure.axes, look.figures, strict=True):
        wanted = [
            [
                (rate, float(np.mean(rows.filter(queue=queue, down_line_mbps=rate)[name].to_list())))
                for rate in (20.0, 50.0)
            ]
            for queue in rows["queue"].unique(maintain_order=True)
        ]
        for mine, theirs in zip(points(axes), wanted, strict=True):
            assert mine == [pytest.approx(one) for one in theirs]
    assert [axes.get_ylabel() for axes in figure.axes] == ["loaded median, ms", "down goodput, Mbit/s"]
    assert figure.axes[-1].get_xlabel() == "down line, Mbit/s"
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [one.get_text() for one in legend.get_texts()] == ["pfifo_fast", "htb rate 95% fq_codel"]


def test_what_is_no_number_stands_side_by_side(runs: list[Record]) -> None:
    figure = plot(runs, "meta", look=Look(against="link"))
    (one,) = points(figure.axes[0])
    assert [x for x, _ in one] == [0, 1]
    words = [text.get_text() for text in figure.findobj(Text)]
    assert {"cable-20-8", "line-50"} <= set(words)
    by_title = plot(runs, "meta", look=Look(against="title"))
    assert "TCP download" in [text.get_text() for text in by_title.findobj(Text)]


def test_runs_without_tags_are_named_too(runs: list[Record], tmp_path: Path) -> None:
    folder = shutil.copytree(runs[0].path.parent, tmp_path / "runs")
    records = find_records(folder)
    for record in records[1:]:
        record.annotate("", ["kitchen"])
    grouped = plot(records, "meta", look=Look(group="tags", against="queue"))
    legend = grouped.axes[0].get_legend()
    assert legend is not None
    assert [one.get_text() for one in legend.get_texts()] == ["no tags", "kitchen"]
    below = plot(records, "meta", look=Look(against="tags"))
    assert [one.get_text() for one in below.axes[0].get_xticklabels()] == ["no tags", "kitchen"]


def test_tests_of_one_day_have_its_date_and_seconds_have_their_minute(
    runs: list[Record], tmp_path: Path
) -> None:
    tests = []
    for second in (18, 34, 49):
        record = shutil.copytree(runs[0].path, tmp_path / str(second))
        file = record / "manifest.json"
        told = {"world": "net", "started_at": f"2026-11-30T00:55:{second}Z"}
        file.write_text(json.dumps(json.loads(file.read_text()) | told))
        tests.append(weirlab.open_record(record))
    figure = plot(tests, "meta", look=Look(against="started_at"))
    figure.canvas.draw()
    below = figure.axes[-1]
    assert below.get_xlabel() == "started at, UTC, 2026-11-30"
    ticks = [one.get_text() for one in below.get_xticklabels()]
    assert {"00:55:20", "00:55:45"} <= {*ticks}


def test_along_the_time_at_which_they_started_tests_have_their_distance(
    runs: list[Record], tmp_path: Path
) -> None:
    """A month of tests of a line: one that was left out is a gap, and no step."""
    tests = []
    for day in (1, 2, 5):
        shutil.copytree(runs[0].path, tmp_path / str(day))
        file = tmp_path / str(day) / "manifest.json"
        told = {"world": "net", "started_at": f"2026-11-0{day}T06:00:00Z"}
        file.write_text(json.dumps(json.loads(file.read_text()) | told))
        tests.append(weirlab.open_record(tmp_path / str(day)))
    figure = plot(tests, "meta", look=Look(against="started_at"))
    (one,) = points(figure.axes[0])
    first = one[0][0]
    assert [x - first for x, _ in one] == [0, 1, 4]
    shown = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=first)
    assert shown.isoformat() == "2026-11-01T06:00:00+00:00"
    assert figure.axes[-1].get_xlabel() == "started at, UTC, 2026"
    noted = plot(tests[:1], "meta", look=Look(against="started_at", group="note"))
    legend = noted.axes[0].get_legend()
    assert legend is not None
    assert [one.get_text() for one in legend.get_texts()] == ["no note"]
    timed = plot(tests, "meta", look=Look(against="note", group="started_at"))
    legend = timed.axes[0].get_legend()
    assert legend is not None
    assert "2026-11-01 06:00:00" in [one.get_text() for one in legend.get_texts()]
    with pytest.raises(UsageError, match="--figure started_at: these records have"):
        plot(tests, "meta", look=Look(against="started_at", figures=["started_at"]))


@pytest.mark.parametrize(
    ("kind", "look", "said"),
    [
        ("meta", Look(against="x"), "--against x: these records have configuration, test, link"),
        ("meta", Look(figures=["queue"]), "--figure queue: these records have seed, "),
        ("meta", Look(group="x"), "--group x: these records have"),
        ("meta", Look(figures=["up_goodput_mbps"]), "--figure up_goodput_mbps: "),
        ("meta", Look(names=["a"]), "names: chart `meta` has the values of columns"),
        ("cdf", Look(group="queue"), "only chart `meta` has them, not `cdf`"),
    ],
)
def test_what_does_not_fit_is_refused(runs: list[Record], kind: str, look: Look, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plot(runs, kind, look=look)


@pytest.mark.parametrize("count", [40, 200])
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_many_texts_below_stand_upright_and_apart(
    count: int, style: Literal["screen", "paper"], runs: list[Record], tmp_path: Path
) -> None:
    for number in range(count):
        made = tmp_path / f"{number:03d}"
        shutil.copytree(runs[0].path, made)
        manifest = json.loads((made / "manifest.json").read_text())
        title = f"a title of many words, number {number}"
        (made / "manifest.json").write_text(json.dumps(manifest | {"title": title, "seed": number}))
    figure = plot(find_records(tmp_path), "meta", look=Look(against="title", style=style))
    assert isinstance(figure, theme.Chart)
    with theme.applied(Look(style=style)):
        theme.render(figure, "png")
    (axes,) = figure.axes
    assert axes.get_position().height * figure.get_figheight() > 0.8, "the panel keeps its room"
    pixels = axes.transData.transform([(at, 0.0) for at in axes.get_xticks()])[:, 0]
    words = [text.get_text() for text in axes.xaxis.get_majorticklabels()]
    assert np.diff(pixels).min() >= (6.5 if style == "paper" else 8.0) / 72 * figure.dpi
    assert words[0] == "a title of many words, number 0"
    assert not any("\n" in one for one in words)
    step = int(np.diff(axes.get_xticks())[0])
    assert (step > 1) == (len(words) < count)
    # Lines of the note are written from the last to the first.
    note = figure.note or " ".join(text.get_text() for text in reversed(figure.texts))
    assert (f"Of {count} texts below one in {step} is written." in note) == (step > 1)
