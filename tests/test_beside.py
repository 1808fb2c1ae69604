"""Tests that run beside the first: `--beside`, `[[beside]]` and `weirlab.run(beside=...)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weirlab
from weirlab.plots import three_plot
from weirlab.plots.caption import number
from weirlab.report import flow_table
from weirlab.stats import summarise
from weirlab.stats.assertions import Assertion
from weirlab.viewer.words import record_says

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

SHORT = ("--idle", "1s", "--load", "6s", "--cooldown", "1s", "--no-charts", "--out", "out")


def test_a_test_beside_another_runs_in_its_own_time(weir_here: Weir, tmp_path: Path) -> None:
    done = weir_here("run", "tcp_download", "--beside", "tcp_download@2s+3s", *SHORT)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "out").iterdir()
    record = weirlab.open_record(path)
    first, second = "tcp_download 1 TCP download", "tcp_download 2 TCP download"
    down = summarise(record).down
    assert down is not None
    assert list(down.per_flow_mbps) == [first, second]
    # A flow that runs for half of the load has less over all of it, and the same in each place of that name.
    assert down.goodput_mbps == pytest.approx(sum(down.per_flow_mbps.values()))
    assert down.per_flow_running_mbps[second] > 1.5 * down.per_flow_mbps[second]
    asserted = Assertion(f"down.goodput[flow={second}] > 0mbit").of(record)
    assert asserted.left == pytest.approx(down.per_flow_mbps[second])
    table = flow_table(summarise(record))
    assert [column.header for column in table.columns] == ["flow", "goodput Mbit/s", "while it runs"]
    both = [f"{rates[second]:.3f}" for rates in (down.per_flow_mbps, down.per_flow_running_mbps)]
    assert [list(column.cells)[1] for column in table.columns] == [second, *both]
    rows = record.throughput.join(record.flow_names, on="flow").filter(name=second)
    carried = rows.filter(rows["bytes"] > 0)["t_ns"] / 1e9
    assert carried.min() == pytest.approx(3.1, abs=0.3)
    assert carried.max() == pytest.approx(6.1, abs=0.5)


def test_what_is_told_of_a_flow_beside_its_curve_is_of_when_it_runs(tmp_path: Path) -> None:
    phases = {"idle": "0s", "load": "8s", "cooldown": "0s"}
    runs = {
        name: weirlab.run(
            {"name": "many", "title": "Many", "phases": {"load": "1s"}, "flows": flows(count)},
            link="line-50",
            queue="fq_codel",
            phases=phases,
            out=tmp_path / name,
        )[0]
        for name, count in (("few", 1), ("groups", 8))
    }
    for name, record in runs.items():
        down = summarise(record).down
        assert down is not None
        assert down.goodput_mbps is not None
        late = [mbps for flow, mbps in down.per_flow_running_mbps.items() if "late" in flow]
        assert min(late) > 2 * max(mbps for flow, mbps in down.per_flow_mbps.items() if "late" in flow)
        legend = three_plot.figure([record], title=None).axes[0].get_legend()
        assert legend is not None
        words = [text.get_text() for text in legend.get_texts()]
        least, most = number(min(late)), number(max(late))
        assert (f"late: 8 flows, {least} to {most}" if name == "groups" else f"late  {least}") in words
        assert words[0] == f"average of those that run; all: {number(down.goodput_mbps)}"
        every = down.per_flow_running_mbps.values()
        told = f", from {number(min(every))} to {number(max(every))} each while it runs"
        assert told in record_says(record)["down"]


def flows(count: int) -> list[dict[str, object]]:
    """Downloads, of which as many again run for a quarter of the load."""
    return [
        {"name": "first", "direction": "down", "count": count},
        {"name": "late", "direction": "down", "count": count, "start": "2s", "stop": "4s"},
    ]


def test_one_scenario_file_line_and_call_is_the_same_run(tmp_path: Path, weir_here: Weir) -> None:
    entry = {"test": "tcp_upload", "start": "2s", "length": "3s"}
    said = {"link": "line-50", "phases": {"idle": "0s", "load": "6s", "cooldown": "0s"}}
    (called,) = weirlab.run("rrul", beside=[entry], **said)  # type: ignore[arg-type]
    (tmp_path / "s.toml").write_text(
        "test = 'rrul'\nlink = 'line-50'\nphases = { idle = '0s', load = '6s', cooldown = '0s' }\n"
        "[[beside]]\ntest = 'tcp_upload'\nstart = '2s'\nlength = '3s'\n"
    )
    assert weir_here("run", "s.toml", "--no-charts", "--out", "file").returncode == 0
    line = ("--beside", "tcp_upload@2s+3s", "--link", "line-50", "--idle", "0s", "--load", "6s")
    done = weir_here("run", "rrul", *line, "--cooldown", "0s", "--no-charts", "--out", "line")
    assert done.returncode == 0, done.stderr
    for folder in ("file", "line"):
        (path,) = (tmp_path / folder).iterdir()
        record = weirlab.open_record(path)
        assert record.manifest.scenario == called.manifest.scenario
        assert record.latency.equals(called.latency)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("rrul@1+2s", "--beside rrul@1+2s: `1` is a time without its unit: write `1s`, `1ms` or `1us`"),
        ("rrul@1s+", "--beside rrul@1s+: write TEST, TEST@START or TEST@START+LENGTH, such as rrul@30s+60s"),
        ("@1s", "--beside @1s: write TEST, TEST@START or TEST@START+LENGTH, such as rrul@30s+60s"),
        (
            "rrul@9s",
            (
                "beside `rrul 2`: it starts 9 s after the load of the first test, which lasts 6 s: "
                "write an earlier start"
            ),
        ),
    ],
)
def test_what_cannot_run_beside_is_refused_in_a_sentence(weir_here: Weir, words: str, says: str) -> None:
    done = weir_here("run", "rrul", "--beside", words, *SHORT)
    assert (done.returncode, done.stderr.strip()) == (2, f"weir: {says}")
