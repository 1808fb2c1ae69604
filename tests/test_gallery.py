"""The gallery: its data, its figures exactly, and the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from altered import changed
from weirlab import _native
from weirlab.cli.study_command import command
from weirlab.errors import UsageError
from weirstudies.gallery import study as gallery
from weirstudies.gallery.figures import FIGURES

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


SECOND = 1_000_000_000
SHORT = {"idle": "1s", "load": "3s", "cooldown": "0s"}


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Four downloads for three seconds."""
    out = tmp_path_factory.mktemp("gallery") / "out"
    (record,) = weirlab.run("tcp_ndown", link="line-50", out=out, phases=SHORT)
    return record


def senders(retransmits: dict[int, list[int]], windows: dict[int, list[int]] | None = None) -> pl.DataFrame:
    """Samples of senders every 100 ms from 1 s on, with a round trip of 150 ms."""
    rows: list[dict[str, Any]] = [
        {
            "t_ns": SECOND + step * SECOND // 10,
            "flow": flow,
            "retransmits": count,
            "srtt_ns": 150_000_000,
            "cwnd_segments": (windows or {}).get(flow, [10] * len(counts))[step],
        }
        for flow, counts in retransmits.items()
        for step, count in enumerate(counts)
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize("name", gallery.NAMES)
def test_every_experiment_is_whole_and_its_configurations_resolve(name: str) -> None:
    experiment = gallery.load(name)
    assert experiment.name == name
    runs = gallery.runs_of(experiment, repeat=1)
    assert [run.queue for run in runs] == [one.label for one in experiment.configurations]
    for run in runs:
        _native.check_simulation(json.dumps(run.scenario))
    for column in experiment.columns.values():
        assert column.figure in FIGURES
    assert name in gallery.names()


def test_flows_that_lose_within_a_round_trip_lose_in_one_event(downloads: Record) -> None:
    synchronised = FIGURES["synchronised"]
    # Flows 0 and 1 lose at 1.1 and 1.2 s, flow 2 alone at 1.5 s: events of two and of one of four flows.
    losses = {0: [0, 1, 1, 1, 1, 1], 1: [0, 0, 2, 2, 2, 2], 2: [0, 0, 0, 0, 0, 1], 3: [0] * 6}
    record = changed(downloads, tcp=senders(losses))
    assert synchronised(record, "down", "") == pytest.approx((2 * 2 + 1 * 1) / 3 / 4)
    assert synchronised(changed(downloads, tcp=senders({0: [0] * 6})), "down", "") is None


def test_windows_that_change_together_correlate(downloads: Record) -> None:
    correlation = FIGURES["window_correlation"]
    saw = [10 + step % 5 for step in range(25)]
    against = [20 - step % 5 for step in range(25)]
    none = [0] * 25
    together = senders({0: none, 1: none}, {0: saw, 1: [2 * window for window in saw]})
    assert correlation(changed(downloads, tcp=together), "down", "") == pytest.approx(1.0)
    apart = senders({0: none, 1: none}, {0: saw, 1: against})
    assert correlation(changed(downloads, tcp=apart), "down", "") == pytest.approx(-1.0)
    still = senders({0: none, 1: none}, {0: [5] * 25, 1: saw})
    assert correlation(changed(downloads, tcp=still), "down", "") is None


def test_shares_add_up_and_are_even_where_flows_are_alike(downloads: Record) -> None:
    share, jain, goodput = (FIGURES[name] for name in ("share", "jain", "goodput_mbps"))
    assert share(downloads, "down", "") == pytest.approx(1.0)
    one = share(downloads, "down", "TCP download::1")
    assert one is not None
    assert 0 < one < 1
    assert goodput(downloads, "up", "") is None
    fair = jain(downloads, "down", "")
    assert fair is not None
    assert 0.25 <= fair <= 1


def test_the_time_until_a_test_has_its_share_and_until_it_is_given_back(tmp_path: Path) -> None:
    flows = [
        {"name": "first", "direction": "down", "start": "1s", "stop": "11s"},
        {"name": "second", "direction": "down", "start": "3s", "stop": "7s"},
    ]
    test = {
        "name": "two",
        "title": "Two",
        "phases": {"idle": "1s", "load": "10s", "cooldown": "0s"},
        "flows": flows,
    }
    (record,) = weirlab.run(test, link="line-50", out=tmp_path / "o", start_jitter="0s")
    interval = record.manifest.scenario["sampling"]["throughput_ns"]

    def bytes_of(flow: int, second: float) -> int:
        if flow == 1:
            return 100 if 4.95 < second <= 7 else 0
        return 100 if 4.95 < second <= 9.05 else 200

    steps = range(1, 11 * SECOND // interval + 1)
    rows = [
        {
            "t_ns": step * interval,
            "flow": flow,
            "bytes": bytes_of(flow, step * interval / SECOND),
            "wire_bytes": 0,
        }
        for flow in (0, 1)
        for step in steps
    ]
    made = changed(record, throughput=pl.DataFrame(rows))
    # Rates are those over the second before. The second flow has 100 of 200 from 4.9 s on and 80 % of its
    # share at 5.7 s. The first has 200 from 9.0 s on; over 9 to 11 s its mean is 177.5, of which it has 80 %
    # at 9.5 s.
    takes = FIGURES["takes_share_s"](made, "down", "second")
    gives = FIGURES["gives_back_s"](made, "down", "second")
    assert takes == pytest.approx(2.7)
    assert gives == pytest.approx(2.5)


def test_fairness_is_that_of_the_span_in_which_all_run(tmp_path: Path) -> None:
    """Two equal flows of which one runs for half of the time: unfair over all of it, fair while both run."""
    flows = [
        {"name": "first", "direction": "down", "start": "1s", "stop": "11s"},
        {"name": "second", "direction": "down", "start": "6s", "stop": "11s"},
    ]
    phases = {"idle": "1s", "load": "10s", "cooldown": "0s"}
    test = {"name": "two", "title": "Two", "phases": phases, "flows": flows}
    (record,) = weirlab.run(test, link="line-50", out=tmp_path / "o", start_jitter="0s")
    rows = [
        {"t_ns": step * SECOND // 10, "flow": flow, "bytes": 1000, "wire_bytes": 0}
        for flow, begin in ((0, 10), (1, 60))
        for step in range(begin + 1, 111)
    ]
    made = changed(record, throughput=pl.DataFrame(rows))
    assert FIGURES["jain_together"](made, "down", "") == pytest.approx(1.0)
    # 100 and 50 times the bytes: 150^2 / (2 * 12500).
    assert FIGURES["jain_of_bytes"](made, "down", "") == pytest.approx(0.9)
    assert FIGURES["variability"](made, "down", "first") == pytest.approx(0.0)


def test_shares_of_pings_count_the_idle_line_and_losses(downloads: Record) -> None:
    trips = pl.DataFrame({"rtt_ns": [14_000_000, 15_000_000, 21_000_000, None]})
    record = changed(downloads, latency=trips)
    found = [FIGURES[f"within_{ms}_ms"](record, "down", "") for ms in (15, 20, 50)]
    assert found == [0.25, 0.5, 0.75]


def test_rules_that_were_changed_are_shown_beside_those_that_count() -> None:
    experiment = gallery.load("global-sync")
    [red] = [one for one in experiment.statements if one.says.endswith("less of it with RED")]
    assert [one.below for one in red.when] == [0.7, 0.5]
    [loosened] = red.others
    assert [one.below for one in loosened.when] == [1.0, 1.0]
    forms = gallery.load("tcp-forms")
    [bbr] = [one for one in forms.statements if "BBR alone" in one.says]
    assert [one.of for one in bbr.when] == ["bbr alone"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"figure": "speed"}, "unknown figure `speed`"),
        ({"of": "nobody"}, "there is no configuration `nobody`"),
        ({"above": None}, "give `above`, `below` or both"),
        ({"above": None, "below": 1.1}, "condition on `jain`: no value can break it"),
    ],
)
def test_a_bad_condition_is_refused(change: dict[str, Any], says: str) -> None:
    written = gallery.load("fios").model_dump()
    condition = {"figure": "jain", "of": "after", "above": 0.9} | change
    written["statements"] = [{"says": "x", "when": [condition]}]
    with pytest.raises(ValueError, match=says):
        gallery.Experiment.model_validate(written)


def test_the_command_says_what_was_seen(tmp_path: Path) -> None:
    out = tmp_path / "o"
    words = ["fios", "--repeat", "2", "--out", str(out), "--json"]
    result = CliRunner().invoke(command, words, standalone_mode=False)
    assert result.exception is None
    [found] = json.loads(result.stdout)
    assert {"before", "after"} < set(found["rows"])
    [rate, latency] = found["statements"]
    assert (rate["seen"], latency["seen"]) == (False, True)
    [condition] = rate["conditions"]
    assert condition["low"] < condition["value"] < condition["high"] < condition["above"]
    assert condition["repetitions"] == 2
    assert condition["paired"]
    assert (out / "fios" / "overlay.png").stat().st_size > 10_000
    page = (out / "gallery.md").read_text()
    assert "(fios/overlay.png)" in page
    assert "one seventh" in page


def test_charts_call_configurations_as_tables_do(tmp_path: Path, drawn: list[set[str]]) -> None:
    words = ["ipv6-ipv4", "--repeat", "1", "--out", str(tmp_path / "o"), "--json"]
    result = CliRunner().invoke(command, words, standalone_mode=False)
    assert result.exception is None
    [found] = json.loads(result.stdout)
    assert len(drawn) == 2
    for named in drawn:
        assert named >= set(found["rows"])
        assert not any(text.startswith("IPv4 \N{MIDDLE DOT}") for text in named)


def test_what_the_command_does_not_know_is_refused() -> None:
    unknown = CliRunner().invoke(command, ["nothing"], standalone_mode=False).exception
    assert isinstance(unknown, UsageError)
    assert "unknown study `nothing`" in str(unknown)
    foreign = CliRunner().invoke(command, ["linux", "--world", "lab"], standalone_mode=False).exception
    assert isinstance(foreign, click.NoSuchOption)
    assert foreign.option_name == "--world"
