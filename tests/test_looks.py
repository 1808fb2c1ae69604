"""What users set of a chart: axes, names, colours, notes, flows and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

import weirlab
from weirlab.errors import UsageError
from weirlab.plots import KINDS, Look, draw, plot
from weirlab.plots.selected import selected
from weirlab.stats import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from weirlab.record import Record


PHASES = {"idle": "500ms", "load": "2s", "cooldown": "0s"}


def texts(figure: Figure) -> list[str]:
    return [one.get_text() for one in figure.findobj(Text)]


def read(figure: Figure) -> str:
    """Heading and footer, from top to bottom: long sentences stand in several lines."""
    lines = sorted(figure.texts, key=lambda one: (-one.get_position()[1], one.get_position()[0]))
    return " ".join(one.get_text() for one in lines)


def axes_of(figure: Figure, quantity: str) -> list[tuple[float, float]]:
    """The ends of all axes whose label begins with `quantity`."""
    found = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_label_text().startswith(quantity):
                low, high = axis.get_view_interval()
                found.append((float(low), float(high)))
    return found


def some(kind: str, records: Sequence[Record]) -> list[Record]:
    return list(records[: KINDS[kind].most])


@pytest.mark.parametrize("kind", sorted(name for name, kind in KINDS.items() if "ping" in kind.axes))
def test_pings_have_the_ends_and_the_scale_that_were_asked_for(kind: str, rrul: list[Record]) -> None:
    if kind == "phases":
        pytest.skip("a chart of `weir test` only")
    if kind == "bar":
        assert axes_of(plot(rrul, kind, look=Look(ping_ms=(0, 131))), "Mean ping") == [(0, 131)]
        return
    label = {"qq": "Ping of", "meta": "loaded median, ms"}.get(kind, "Ping, ms")
    figure = plot(some(kind, rrul), kind, look=Look(ping_ms=(7, 131), ping_scale="log"))
    assert set(axes_of(figure, label)) == {(7, 131)}
    scales = {
        axis.get_scale()
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if axis.get_label_text().startswith(label)
    }
    assert scales == {"log"}
    assert any("log scale" in text for text in texts(figure))
    assert "what lies beyond is not drawn" in read(figure)
    linear = plot(some(kind, rrul), kind, look=Look(ping_scale="linear"))
    assert all(axes.get_xscale() == axes.get_yscale() == "linear" for axes in linear.axes)


def test_limits_leave_the_scale_alone(rrul: list[Record]) -> None:
    """An axis is logarithmic only where that is asked for, however far its values range."""
    figure = plot(rrul, "cdf", look=Look(ping_ms=(1, 1000)))
    assert figure.axes[0].get_xscale() == "linear"
    assert axes_of(figure, "Ping, ms") == [(1, 1000)]


@pytest.mark.parametrize("kind", ["three-plot", "ping", "overlay", "windows"])
def test_a_span_of_time_and_notes_in_it(kind: str, rrul: list[Record]) -> None:
    look = Look(notes=[(1.5, "inside"), (2.9, "outside")])
    figure = plot(some(kind, rrul), kind, span_s=(1, 2), look=look)
    assert set(axes_of(figure, "Time")) == {(1, 2)}
    assert texts(figure).count("inside") == 1
    assert "outside" not in texts(figure)
    assert "Drawn from 1 s to 2 s" in read(figure)


@pytest.mark.parametrize("kind", ["three-plot", "ping", "overlay", "windows"])
def test_a_note_behind_the_end_of_all_runs_is_refused(kind: str, rrul: list[Record]) -> None:
    with pytest.raises(UsageError, match=r"note `late` at 1000 s: the run ends at \d"):
        plot(some(kind, rrul), kind, look=Look(notes=[(1000.0, "late")]))


def test_names_and_colours(rrul: list[Record]) -> None:
    look = Look(names=["before", "after"], colours=["#123456"])
    for kind in ("cdf", "box", "bar", "ellipse", "overlay", "ping"):
        words = texts(plot(rrul, kind, look=look))
        assert {"before", "after"} <= set(words), kind
    lines = [line.get_color() for line in plot(rrul, "cdf", look=look).axes[0].lines]
    assert "#123456" in lines


def test_names_that_nothing_would_have_are_refused(rrul: list[Record]) -> None:
    with pytest.raises(UsageError, match="of one record chart `cdf` has a curve for each of its parts"):
        plot(rrul[0], "cdf", look=Look(names=["a", "b", "c"]))
    with pytest.raises(UsageError, match="1 name for 2 configurations: name each"):
        plot(rrul, "cdf", look=Look(names=["a"]))


def test_only_some_flows_and_probes(rrul: list[Record]) -> None:
    record = rrul[0]
    figure = plot(record, "three-plot", look=Look(flows=["TCP download *"], probes=["*ICMP"]))
    words = texts(figure)
    assert not any(text.startswith("Upload") for text in words)
    assert "Only flows TCP download *. Only probes *ICMP." in read(figure)
    mean = summarise(record).probes["Ping (ms) ICMP"]
    assert mean is not None
    assert any(text.startswith(f"ICMP  {mean.mean:.3g} (idle") for text in words), words
    # The record itself is as it was.
    assert record.flow_names["direction"].n_unique() == 2


def test_only_the_flows_and_probes_of_one_host(tmp_path: Path) -> None:
    record = weirlab.run("rtt_fair4be", phases=PHASES, out=tmp_path / "out")[0]
    scenario = record.manifest.scenario
    far = scenario["hosts"][-1]["name"]
    last = len(scenario["hosts"]) - 1
    assert last >= 3
    view = selected(record, [], [], [far])
    theirs = [flow["name"] for flow in scenario["flows"] if flow["host"] == last]
    assert view.flow_names["name"].to_list() == theirs
    probes = [number for number, one in enumerate(scenario["probes"]) if one["host"] == last]
    assert view.latency["probe"].unique().sort().to_list() == probes
    assert f"Only of host {far}." in read(plot(record, "three-plot", look=Look(hosts=[far])))
    with pytest.raises(UsageError, match=f"--host x: `.*` has no such host .there are: .*`{far}`"):
        plot(record, "cdf", look=Look(hosts=["x"]))
    # Patterns of names choose among them.
    assert selected(record, ["*download*"], [], [far]).flow_names["direction"].to_list() == ["down"]


@pytest.mark.parametrize(
    ("kind", "look", "said"),
    [
        ("cdf", {"flows": ["x"]}, "--flow x: `.*` has no such flow .there are: `TCP upload BE`, "),
        ("cdf", {"names": ["x"]}, "1 name for 2 configurations"),
        ("three-plot", {"names": ["x"]}, "chart `three-plot` is of one run"),
        (
            "cdf",
            {"notes": [(1, "x")]},
            "notes: chart `cdf` has no axis of time; these have one: `three-plot`",
        ),
        ("bar", {"ping_scale": "log"}, "the length of a bar tells its value from 0 on a linear axis only"),
        ("bar", {"throughput_mbps": (2, 9)}, "the length of a bar tells its value from 0"),
        ("windows", {"ping_ms": (1, 2)}, "chart `windows` has no axis of ping"),
        ("cdf", {"throughput_mbps": (1, 2)}, "chart `cdf` has no axis of throughput"),
    ],
)
def test_what_does_not_fit_is_refused(
    rrul: list[Record], tmp_path: Path, kind: str, look: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        draw(kind, some(kind, rrul), tmp_path / "chart.png", look=Look(**look))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("look", "said"),
    [
        ({"ping_ms": (5, 5)}, "axis of pings from 5 to 5 ms: it must begin at 0 or later and end after that"),
        ({"throughput_mbps": (-1, 5)}, "axis of throughput from -1 to 5 Mbit/s"),
        ({"ping_ms": (0, 5), "ping_scale": "log"}, "a logarithmic axis begins above 0"),
        ({"colours": ["red"]}, "colour `red`: write red, green and blue as in #1b9e77"),
        ({"notes": [(1, " ")]}, "note ` ` at 1 s"),
    ],
)
def test_looks_that_cannot_be(look: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Look(**look)


def test_a_look_does_not_stay(rrul: list[Record]) -> None:
    with_it = plot(rrul, "cdf", look=Look(names=["before", "after"], colours=["#123456"]))
    without = plot(rrul, "cdf")
    assert "before" in texts(with_it)
    assert "before" not in texts(without)


PAPER = sorted(KINDS)


def for_paper(kind: str, records: Sequence[Record], tested: Record, **look: Any) -> tuple[list[Record], Look]:
    """Records that a chart is drawn of, and the look: charts of one run have no names of configurations."""
    if kind in {"udp", "applications"}:
        records = [tested]
    chosen = some(kind, records)
    if KINDS[kind].most != 1 and kind != "meta":
        look["names"] = look.get("names", [])[: len(chosen)]
    else:
        look.pop("names", None)
    return chosen, Look(style="paper", **look)


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A run with voice streams and applications."""
    return weirlab.run("rrul_spec", phases=PHASES, out=tmp_path_factory.mktemp("tested") / "out")[0]


@pytest.mark.parametrize("kind", PAPER)
def test_a_column_of_a_paper(kind: str, rrul: list[Record], tested: Record, tmp_path: Path) -> None:
    records, look = for_paper(kind, rrul, tested, names=["drop-tail", "fq_codel"])
    figure = plot(records, kind, look=look)
    assert figure.get_figwidth() == 3.5
    assert figure.get_figheight() <= 9
    # Journals take 7 points and more; nothing but what stands at the axes and in the legend is left.
    assert min(float(one.get_fontsize()) for one in figure.findobj(Text) if one.get_text()) >= 7
    words = texts(figure)
    if look.names:
        assert any("fq_codel" in text for text in words)
    assert not any("Realtime" in text or "Weir" in text for text in words)
    picture = draw(kind, records, tmp_path / "chart.png", look=look).read_bytes()
    assert int.from_bytes(picture[16:20], "big") == 3.5 * 300
    assert b"Description" in picture
    content = draw(kind, records, tmp_path / "chart.pdf", look=look).read_bytes()
    assert b"/Type3" not in content
    assert b"/CIDFontType2" in content


@pytest.mark.parametrize("kind", PAPER)
def test_nothing_in_a_column_is_cut_off(
    kind: str, rrul: list[Record], tested: Record, tmp_path: Path
) -> None:
    """The outermost pixels are white."""
    more = {"ping_ms": (0, 400)} if "ping" in KINDS[kind].axes else {}
    records, look = for_paper(
        kind, rrul, tested, names=["the queue of the modem as it comes", "fq_codel"], **more
    )
    pixels = imread(draw(kind, records, tmp_path / "chart.png", look=look))[..., :3]
    edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert edges.min() == 1.0
