"""What charts are made of beside Matplotlib's own: pixels, ticks, keys and places of axes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from PIL import Image

from weirlab.plots import Look, caption, table, theme
from weirlab.plots.canvas import canvas_of, measuring
from weirlab.plots.frame import Frame
from weirlab.plots.key import Key
from weirlab.plots.layout import grid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from matplotlib.transforms import BboxBase


@pytest.fixture(autouse=True)
def _as_in_charts() -> Iterator[None]:
    with theme.applied(Look()):
        yield


def chart(height: float = 5.0) -> Figure:
    return theme.framed(("A title", "what was set up", "where from"), "A note.", "Weir 1", height=height)


def inside(inner: BboxBase, outer: BboxBase) -> bool:
    return bool(
        inner.x0 >= outer.x0 - 1
        and inner.x1 <= outer.x1 + 1
        and inner.y0 >= outer.y0 - 1
        and inner.y1 <= outer.y1 + 1
    )


def test_a_file_has_the_pixels_that_were_drawn_and_says_what_it_is() -> None:
    figure = chart()
    figure.add_subplot().plot([0, 1], [1, 3])
    content = canvas_of(figure).png(
        {"Title": "plain", "Description": "10 \N{MICRO SIGN}s \N{RIGHTWARDS ARROW}"}
    )
    image = Image.open(io.BytesIO(content))
    drawn = np.asarray(canvas_of(figure).buffer_rgba())  # type: ignore[no-untyped-call]
    assert image.mode == "RGB"
    assert (np.asarray(image) == drawn[:, :, :3]).all()
    assert (drawn[:, :, 3] == 255).all()
    assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)
    assert image.info["Title"] == "plain"
    assert image.info["Description"] == "10 \N{MICRO SIGN}s \N{RIGHTWARDS ARROW}"


def test_text_stands_where_it_was_measured() -> None:
    """The ink of a line, level or turned, lies in the box that the layout counts with."""
    for turn in (0, 90):
        figure = chart()
        for text in list(figure.texts):
            text.remove()
        text = figure.text(0.4, 0.4, "Ångström, pqj 0.5", size=12, rotation=turn)
        box = text.get_window_extent(measuring(figure))
        canvas_of(figure).draw()  # type: ignore[no-untyped-call]
        drawn = np.asarray(canvas_of(figure).buffer_rgba())[:, :, 0]  # type: ignore[no-untyped-call]
        rows, columns = np.nonzero(drawn < 255)
        assert columns.size
        assert box.x0 - 1 <= columns.min() <= columns.max() <= box.x1 + 1
        low, high = drawn.shape[0] - box.y1, drawn.shape[0] - box.y0
        assert low - 1 <= rows.min() <= rows.max() <= high + 1


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_ticks_are_those_of_matplotlib(scale: str) -> None:
    figure = chart()
    ours, theirs = (figure.add_subplot(1, 2, place, axes_class=of) for place, of in ((1, Frame), (2, Axes)))
    for axes in (ours, theirs):
        axes.set_xlim(0, 70)
        axes.set_yscale(scale)
        axes.set_ylim(2, 3000)
        axes.minorticks_off()
    canvas_of(figure).draw()  # type: ignore[no-untyped-call]
    for mine, other in ((ours.xaxis, theirs.xaxis), (ours.yaxis, theirs.yaxis)):
        low, high = other.get_view_interval()
        seen = [tick for tick in other.get_major_ticks() if low <= tick.get_loc() <= high]
        assert [text.get_text() for text in mine.get_majorticklabels()] == [
            tick.label1.get_text() for tick in seen
        ]
    for both in ("xaxis", "yaxis"):
        mine, other = (getattr(axes, both).get_tightbbox() for axes in (ours, theirs))
        across = 1 if both == "xaxis" else 0
        reach = [axes.bbox.min[across] - box.min[across] for axes, box in ((ours, mine), (theirs, other))]
        assert reach[0] == pytest.approx(reach[1], abs=3)


def test_tick_params_hold() -> None:
    figure = chart()
    axes = figure.add_subplot()
    axes.set_xlim(0, 10)
    axes.tick_params(labelleft=False)
    axes.tick_params(axis="x", labelrotation=45, labelsize=11, length=0)
    axes.grid(visible=False, axis="y")
    assert axes.yaxis.get_majorticklabels() == []
    assert {text.get_fontsize() for text in axes.xaxis.get_majorticklabels()} == {11.0}
    canvas_of(figure).draw()  # type: ignore[no-untyped-call]
    # Upright the word is as high as it was wide.
    axes.set_xticks([5], ["a word of some length"])
    high = {}
    for turned in (0, 90):
        axes.tick_params(axis="x", labelrotation=turned)
        box = axes.xaxis.get_tightbbox(measuring(figure))
        assert box is not None
        high[turned] = box.height
    assert high[90] > 4 * high[0]


def test_labels_of_axes_above_each_other_stand_at_one_place_and_nothing_leaves_the_figure() -> None:
    figure = chart()
    above, below = figure.subplots(2, sharex=True)
    above.set_ylim(0, 1e5)
    below.set_ylim(0, 1)
    above.set_ylabel("large")
    below.set_ylabel("small,\nin two lines")
    below.set_xlabel("Time, s")
    Key(
        above, [Line2D([], [])], ["a line with a name of some length"], title="A title of some length, Mbit/s"
    )
    grid_of(figure).execute(figure)
    canvas_of(figure).draw()  # type: ignore[no-untyped-call]
    boxes = [axes.yaxis.label.get_window_extent() for axes in (above, below)]
    assert boxes[0].x1 == pytest.approx(boxes[1].x1, abs=1.5)
    renderer = measuring(figure)
    for axes in (above, below):
        box = axes.get_tightbbox(renderer)
        assert box is not None
        assert inside(box, figure.bbox)
    title, *_ = (text.get_window_extent(renderer) for text in figure.texts)
    assert above.get_tightbbox(renderer).y1 < title.y0
    assert not above.get_tightbbox(renderer).overlaps(below.get_tightbbox(renderer))


def test_axes_of_a_grid_are_as_large_as_their_ratios_say() -> None:
    figure = chart()
    wide, narrow = figure.subplots(1, 2, width_ratios=(5, 1))
    grid_of(figure).execute(figure)
    assert wide.get_position().width == pytest.approx(5 * narrow.get_position().width)
    assert wide.get_position().height == narrow.get_position().height
    before = [axes.get_position().bounds for axes in (wide, narrow)]
    grid_of(figure).execute(figure)
    assert [axes.get_position().bounds for axes in (wide, narrow)] == before


def test_a_key_has_a_sample_and_words_for_each() -> None:
    figure = chart()
    axes = figure.add_subplot()
    (line,) = axes.plot([0, 1], [0, 1], color="#332288", linestyle="--", marker="s")
    area = axes.fill_between([0, 1], [0, 0], [1, 1], color="#dcdcdc")
    theme.legend_beside(axes, [line, area], ["a line", "an area\nin two lines"], title="Title")
    key = axes.get_legend()
    assert isinstance(key, Key)
    assert [text.get_text() for text in key.get_texts()] == ["a line", "an area\nin two lines"]
    assert key.get_title().get_text() == "Title"
    (sample,) = key.findobj(Line2D)
    assert (sample.get_color(), sample.get_linestyle(), sample.get_marker()) == ("#332288", "--", "s")
    grid_of(figure).execute(figure)
    canvas_of(figure).draw()
    box, renderer = key.get_window_extent(), measuring(figure)
    for text in (*key.get_texts(), key.get_title()):
        assert inside(text.get_window_extent(renderer), box)
    assert box.x0 > axes.bbox.x1
    assert box.x1 < figure.bbox.x1


def test_a_key_of_anything_else_is_refused() -> None:
    figure = chart()
    axes = figure.add_subplot()
    with pytest.raises(TypeError, match="a key of Text"):
        Key(axes, [axes.text(0, 0, "a")], ["a"])


def test_long_names_are_told_apart_by_what_differs() -> None:
    """Titles of Flent's files begin and end alike: what differs stands in the middle."""
    rest = "idle 5 s · throughput every 200 ms · IPv4 · no DSCP · load 140 s"
    path = "qdisc:fq_codel rep:01 rtt:50ms rate:100Mbit/100Mbit cc:cubic (path to testserv-05)"
    names = [
        f"{path} · Voice stream beside RRUL · {rest}",
        f"{path} · Voice stream beside a TCP upload · {rest}",
        f"{path.replace('fq_codel', 'codel')} · Voice stream beside RRUL · {rest}",
        "short",
    ]
    assert caption.told_apart(names) == [
        "qdisc:fq_codel … RRUL …",
        "qdisc:fq_codel\n… a TCP upload …",
        "qdisc:codel … RRUL …",
        "short",
    ]
    lines = ("Cable, 20 Mbit/s down, 8 Mbit/s up", "Fibre, 25 Mbit/s down, 25 Mbit/s up")
    tins = ("diffserv4", "besteffort")
    both = [f"{line} · cake bandwidth 19mbit {one}" for line in lines for one in tins]
    assert caption.told_apart(both) == [
        "Cable, 20 …\n8 … diffserv4",
        "Cable, 20 … 8\n… besteffort",
        "Fibre, 25 …\n25 … diffserv4",
        "Fibre, 25 … 25\n… besteffort",
    ]


def test_names_that_fit_are_as_they_are_and_no_two_are_the_same() -> None:
    assert caption.told_apart(["fq_codel", "cake"]) == ["fq_codel", "cake"]
    assert caption.told_apart(["x" * 40, "fq"]) == ["xxxxxxxxxx … xxxxxxxxxx", "fq"]
    alike = ["a" * 60 + "1" + "b" * 60, "a" * 60 + "2" + "b" * 60]
    assert len(set(caption.told_apart(alike))) == 2


def test_rows_that_look_the_same_are_told() -> None:
    def rows(count: int) -> list[table.Row]:
        return [
            table.Row({"color": style.colour, "linestyle": style.dash}, "name", [])
            for style in theme.styles(count)
        ]

    assert not table.alike(rows(30))
    assert table.alike(rows(31)) == table.alike(rows(100)) == " Rows 30 apart look the same."


def test_names_in_a_line_are_cut_and_no_two_are_the_same() -> None:
    assert caption.in_a_line(["BE", "BK"]) == ["BE", "BK"]
    said = caption.in_a_line([f"{'F' * 190}{number}" for number in range(4)])
    assert said == [f"{'F' * 12} … {'F' * 11}{number}" for number in range(4)]
    assert len(set(caption.in_a_line(["a" * 60 + one + "b" * 60 for one in "12"]))) == 2


def test_no_number_has_an_exponent() -> None:
    values = (2.64e-06, -2e-05, 0.000143, -0.0007, 0.00123, 0.0, 1234.5)
    said = ["0.000", "0.000", "0.000", "-0.001", "0.00123", "0", "1234"]
    assert [caption.number(value) for value in values] == said
