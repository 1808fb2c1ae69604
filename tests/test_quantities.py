"""Charts of something else than pings: `--of`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.text import Text

import weirlab
from weirlab.errors import UsageError
from weirlab.plots import KINDS, Look, draw, plot
from weirlab.plots.quantity import QUANTITIES
from weirlab.stats import load_window_ns, summarise, totals_mbps
from weirlab.stats.udp import udp_summaries

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from weirlab.record import Record

OF = sorted(name for name, kind in KINDS.items() if kind.of)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Voice beside load in both directions, under two queues, two runs each."""
    return weirlab.run(
        "voip-rrul",
        queue=["pfifo_fast", "htb rate 95% fq_codel"],
        repeat=2,
        phases={"idle": "500ms", "load": "4s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("calls") / "out",
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Small web pages and lookups beside an upload, under two queues, two runs each."""
    web = {"document": 5000, "objects": 3, "object": 5000, "every": "500ms"}
    flows = [
        {"name": "page", "direction": "down", "web": web},
        {"name": "names", "direction": "down", "dns": {}},
        {"name": "TCP upload", "direction": "up"},
    ]
    return weirlab.run(
        {"name": "pages", "title": "Pages", "phases": {"idle": "1s", "load": "4s"}, "flows": flows},
        queue=["pfifo_fast", "htb rate 95% fq_codel"],
        repeat=2,
        out=tmp_path_factory.mktemp("pages") / "out",
    )


def texts(figure: Figure) -> list[str]:
    return [one.get_text() for one in figure.findobj(Text)]


@pytest.mark.parametrize("of", sorted(QUANTITIES))
@pytest.mark.parametrize("kind", OF)
def test_each_chart_can_be_of_each(
    kind: str, of: str, calls: list[Record], pages: list[Record], tmp_path: Path
) -> None:
    records = pages if of in {"page-load", "dns"} else calls
    figure = plot(records, kind, look=Look(of=of))
    words = " ".join(texts(figure)).replace("\n", " ")
    assert QUANTITIES[of].label.split(",")[0] in words
    assert "ping" not in words.lower()
    assert draw(kind, records[:1], tmp_path / "one.svg", look=Look(of=of)).stat().st_size > 1000


def test_values_are_those_of_the_statistics(calls: list[Record]) -> None:
    record = calls[0]
    down = summarise(record).down
    assert down is not None
    assert QUANTITIES["download"].of(record).mean() == pytest.approx(down.goodput_mbps, rel=1e-6)
    voice = {name: one for name, one in udp_summaries(record).items() if one.voice}
    assert len(voice) == 2
    scores = QUANTITIES["mos"].by_part(record)
    # A score a second, and those of the load alone.
    assert {name: values.size for name, values in scores.items()} == dict.fromkeys(voice, 4)
    assert QUANTITIES["mos"].pooled(calls[2:]).mean() > QUANTITIES["mos"].pooled(calls[:2]).mean() + 0.5
    jitter = QUANTITIES["voice-jitter"].by_part(record)
    assert {name: values.mean() for name, values in jitter.items()} == pytest.approx(
        {name: one.jitter_ms for name, one in voice.items()}
    )
    delays = QUANTITIES["voice-delay"].by_part(record)
    for name, values in QUANTITIES["voice-induced-delay"].by_part(record).items():
        number = record.flow_names.filter(name=name)["flow"][0]
        least = float(record.udp.filter(flow=number)["delay_mean_ns"].min()) / 1e6  # type: ignore[arg-type]
        np.testing.assert_allclose(values, delays[name] - least)
        assert values.min() >= 0
    start, end = load_window_ns(record)
    rows = record.tcp.filter((record.tcp["t_ns"] > start) & (record.tcp["t_ns"] <= end))
    assert np.sort(QUANTITIES["tcp-rtt"].of(record)).tolist() == pytest.approx(
        (rows["srtt_ns"].drop_nulls().sort() / 1e6).to_list()
    )


def test_a_table_has_the_quantiles_of_the_bad_end(calls: list[Record]) -> None:
    assert {"p5, Mbit/s", "p1, Mbit/s"} <= set(texts(plot(calls, "cdf", look=Look(of="download"))))
    assert {"p95, ms", "p99, ms"} <= set(texts(plot(calls, "cdf", look=Look(of="tcp-rtt"))))
    words = texts(plot(calls[:1], "cdf", look=Look(of="upload")))
    p5 = np.percentile(totals_mbps(calls[0], "up")["mbps"].to_numpy(), 5)
    assert f"{p5:#.3g}" in words


def test_axes_are_those_of_the_quantity(calls: list[Record]) -> None:
    axes = plot(calls, "cdf", look=Look(of="tcp-rtt", ping_ms=(0, 50))).axes[0]
    assert axes.get_xlim() == (0, 50)
    axes = plot(calls, "box", look=Look(of="download", throughput_mbps=(0, 9))).axes[0]
    assert axes.get_xlim() == (0, 9)
    axes = plot(calls, "cdf", look=Look(of="mos")).axes[0]
    assert axes.get_xlim() == (1, 4.6)


@pytest.mark.parametrize(
    ("kind", "look", "said"),
    [
        (
            "ping",
            Look(of="mos"),
            "of mos: chart `ping` has its own quantities; these can be of others: `cdf`",
        ),
        ("cdf", Look(of="x"), "of `x`: write one of ping, download"),
        ("cdf", Look(of="mos", ping_ms=(0, 9)), "limits of pings: chart `cdf` of mos has no axis of ping"),
        (
            "cdf",
            Look(of="download", ping_scale="log"),
            "a scale of pings: chart `cdf` of download has no axis",
        ),
    ],
)
def test_what_does_not_fit_is_refused(calls: list[Record], kind: str, look: Look, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plot(calls, kind, look=look)


def test_a_record_without_calls_is_refused(rrul: list[Record]) -> None:
    with pytest.raises(UsageError, match="has no scores of seconds of voice streams to draw"):
        plot(rrul, "cdf", look=Look(of="mos"))
