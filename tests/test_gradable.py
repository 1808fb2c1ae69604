"""Which runs have a grade: those whose line was full to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weirlab
from weirlab.errors import UsageError
from weirlab.plots import plot
from weirlab.report import latency_table, story
from weirlab.scores import measured, score_all
from weirlab.scores.rrul import summary as rrul_summary
from weirlab.stats import compare, idle_pings, summarise
from weirlab.stats.assertions import Assertion, Figure
from weirlab.stats.pings import pings_within
from weirlab.viewer import grade_of
from weirlab.viewer.words import summary_of

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

HOP = {"name": "line", "rate": "10mbit", "delay": "10ms", "queue": "pfifo limit 300"}
LINK: dict[str, Any] = {"name": "plain", "title": "a plain line", "up": [HOP], "down": [HOP]}
PINGS = [{"name": "ping", "kind": "icmp", "period": "20ms"}]
UPLOAD = {"name": "load", "direction": "up"}


def run(out: Path, *flows: dict[str, Any]) -> Record:
    """A test with pings and these flows, on a line of 10 Mbit/s."""
    phases = {"idle": "2s", "load": "20s"}
    test = {"name": "t", "title": "t", "phases": phases, "flows": list(flows), "probes": PINGS}
    (record,) = weirlab.run(test, link=LINK, out=out)
    return record


@pytest.mark.parametrize(
    ("flows", "letter"),
    [
        ([UPLOAD], "D"),
        ([], None),
        ([{**UPLOAD, "start": "3s", "stop": "8s"}], None),
        # A call takes next to nothing of the line.
        ([{"name": "call", "direction": "up", "voice": {}}], None),
        # One after the other they fill the load.
        ([{**UPLOAD, "stop": "12s"}, {**UPLOAD, "name": "later", "start": "12s"}], "D"),
        # The line was never idle.
        ([{**UPLOAD, "start": "0s"}], None),
    ],
)
def test_a_line_that_was_not_full_all_along_has_no_grade(
    tmp_path: Path, flows: list[dict[str, Any]], letter: str | None
) -> None:
    record = run(tmp_path / "run", *flows)
    grade = grade_of(record)
    assert (grade and grade.letter) == letter
    if summarise(record).latency.increase_mean_ms is not None and flows:
        words = [text.get_text() for axes in plot(record, "phases").axes for text in axes.texts]
        assert any(" ms: " in text for text in words) == (letter is not None), words


@pytest.mark.parametrize(("period", "graded"), [("100ms", True), ("125ms", False)])
def test_few_pings_are_no_grade(tmp_path: Path, period: str, graded: bool) -> None:
    """Of 20 and of 16 without load."""
    test = {
        "name": "t",
        "title": "t",
        "phases": {"idle": "2s", "load": "20s"},
        "flows": [UPLOAD],
        "probes": [{"name": "ping", "kind": "icmp", "period": period}],
    }
    (record,) = weirlab.run(test, link=LINK, out=tmp_path / "run")
    assert (grade_of(record) is not None) == graded
    assert summarise(record).latency.increase_mean_ms is not None


PAGES = {"name": "pages", "direction": "down", "web": {}}
FILM = {"name": "film", "direction": "down", "video": {}}
FLOOD = {"name": "flood", "direction": "up", "udp": {"rate": "5mbit"}}


@pytest.mark.parametrize(
    "early", [PAGES, FILM, {**FLOOD, "start": "0s"}, {**UPLOAD, "name": "old", "start": "0s"}]
)
def test_where_anything_loads_the_line_before_the_load_nothing_is_idle(
    tmp_path: Path, early: dict[str, Any]
) -> None:
    record = run(tmp_path / "run", early, UPLOAD)
    found = summarise(record)
    assert (found.latency.idle, found.latency.increase_mean_ms) == (None, None)
    assert grade_of(record) is None
    said = (
        f"`{early['name']}` loads the line in the phase `idle` already: pings there are not those of an idle "
        "line, and there is no increase to tell."
    )
    assert found.idle_remark == said
    assert said in story(compare([record])).plain
    assert said in summary_of(record)


@pytest.mark.parametrize(
    "early",
    [
        {"name": "call", "direction": "up", "voice": {}},
        {"name": "names", "direction": "down", "dns": {}},
        {"name": "game", "direction": "up", "udp": {"rate": "100kbit"}, "start": "0s"},
    ],
)
def test_beside_a_call_a_line_is_idle(tmp_path: Path, early: dict[str, Any]) -> None:
    record = run(tmp_path / "run", early, UPLOAD)
    found = summarise(record)
    assert found.latency.idle is not None
    assert (found.latency.idle.count, found.idle_remark) == (100, None)
    assert grade_of(record) is not None


@pytest.mark.parametrize(("start", "count"), [("1s", 50), ("1500ms", 75), ("999ms", None)])
def test_idle_pings_are_those_before_the_first_load(tmp_path: Path, start: str, count: int | None) -> None:
    early = {**FILM, "start": start}
    found = summarise(run(tmp_path / "run", {**FILM, "name": "later"} | {"start": "1900ms"}, early, UPLOAD))
    assert (found.latency.idle and found.latency.idle.count) == count
    assert found.idle_remark is not None
    assert found.idle_remark.startswith("`film` and 1 other load the line in the phase `idle`")
    if count is not None and found.latency.idle is not None:
        assert found.latency.idle.max - found.latency.idle.min < 0.1
        assert found.idle_remark.endswith(f"idle pings are those before {float(count) / 50:g} s.")


SLOW = {"name": "slow", "rate": "64kbit", "delay": "300ms", "queue": "bfifo limit 20000"}


def of_a_slow_line(out: Path, *flows: dict[str, Any], period: str = "5ms", **queue: Any) -> list[Record]:
    """Runs of pings and an upload on a line of 64 kbit/s, of which a ping each 5 ms takes more than all."""
    test = {"name": "t", "title": "t", "phases": {"idle": "5s", "load": "10s"}, "flows": [UPLOAD, *flows]}
    probes = [{**PINGS[0], "period": period}]
    link = {"name": "slow", "title": "slow", "up": [{**SLOW, "place": "queue"}], "down": [HOP]}
    return weirlab.run({**test, "probes": probes}, link=link, out=out, **queue)


def test_pings_that_fill_a_line_themselves_are_told(tmp_path: Path) -> None:
    """84 bytes each 5 ms are 134 kbit/s: an idle round trip of 0.3 s is told as far more."""
    (record,) = of_a_slow_line(tmp_path / "run")
    found = summarise(record)
    assert found.latency.idle is not None
    assert found.latency.idle.max > 700
    assert found.idle_use is not None
    assert (found.idle_use.line, found.idle_use.flows) == ("up/slow", False)
    assert found.idle_use.share > 0.99
    said = (
        "Pings take 100% of what the line `up/slow` carries in the phase `idle` already: round trips there "
        "may hold the wait behind other pings, and less is told than what the load adds."
    )
    assert said in found.remarks
    assert said in story(compare([record])).plain
    assert said in summary_of(record)


def test_what_runs_beside_such_pings_is_told_and_of_several_runs_the_most(tmp_path: Path) -> None:
    call = {"name": "call", "direction": "up", "voice": {}}
    queues = ["bfifo limit 20000", "htb rate 95% fq_codel"]
    records = of_a_slow_line(tmp_path / "run", call, period="20ms", queue=queues)
    shares = {record: summarise(record).idle_use for record in records}
    assert all(one is not None and one.flows for one in shares.values())
    told = story(compare(records)).plain
    assert told.count("in the phase `idle` already") == 1
    assert "Pings, and what runs beside them, take " in told


def test_pings_that_leave_most_of_a_line_free_are_not_mentioned(tmp_path: Path) -> None:
    (record,) = of_a_slow_line(tmp_path / "run", period="100ms")
    found = summarise(record)
    assert (found.idle_use, found.remarks) == (None, [])
    assert (found.latency.idle_sent, found.latency.idle_lost) == (50, 0)


def test_idle_pings_that_were_lost_are_told(tmp_path: Path) -> None:
    queues = ["bfifo limit 500", "bfifo limit 100000"]
    records = of_a_slow_line(tmp_path / "run", period="4ms", queue=queues)
    few, many = (summarise(record).latency for record in records)
    assert (many.idle_sent, many.idle_lost) == (1250, 0)
    assert few.idle_lost is not None
    share = few.idle_lost / few.idle_sent
    assert share == pytest.approx(1 - 64 / 168, abs=0.02)
    said = f"Of the pings in the phase `idle` {share:.1%} were lost."
    assert said in summarise(records[0]).remarks
    assert said in story(compare(records[:1])).plain
    assert (
        f"Pings lost in the phase `idle`: {share:.1%} with `bfifo limit 500`."
        in story(compare(records)).plain
    )


def test_pings_beside_a_load_are_none_of_an_idle_line(tmp_path: Path) -> None:
    latency = summarise(run(tmp_path / "run", {**UPLOAD, "start": "0s"})).latency
    assert (latency.idle, latency.increase_mean_ms) == (None, None)
    assert latency.loaded is not None


def test_a_row_and_its_increase_are_of_the_same_probes(tmp_path: Path) -> None:
    """Probes that start during the load have no idle pings: what an increase is told with is of others."""
    late = [{**PINGS[0], "name": name, "start": "12s"} for name in ("late", "later")]
    phases = {"idle": "2s", "load": "20s"}
    test = {"name": "t", "title": "t", "phases": phases, "flows": [UPLOAD], "probes": [*PINGS, *late]}
    (record,) = weirlab.run(test, link=LINK, out=tmp_path / "run")
    found = summarise(record)
    latency = found.latency
    assert latency.compared is not None
    assert latency.loaded is not None
    (pings,) = [pings for name, pings in found.probes.items() if name == "ping"]
    assert latency.compared.loaded == pings
    assert latency.compared.idle == latency.idle
    assert abs(latency.loaded.mean - latency.compared.loaded.mean) > 5
    both = latency.compared.loaded.mean - latency.compared.idle.mean
    assert latency.increase_mean_ms == pytest.approx(both, abs=1e-9)

    (row,) = compare([record])
    assert row.idle_ms is not None
    assert row.loaded_ms is not None
    assert row.increase_ms is not None
    assert row.loaded_ms.mean - row.idle_ms.mean == pytest.approx(row.increase_ms.mean, abs=1e-9)
    said = (
        "`late` and 1 other probe have no pings of the idle line: the increase, and pings before and under "
        "load beside it, are of the other probes."
    )
    assert found.compared_remark == said
    assert story([row]).plain.endswith(said)
    card = summary_of(record)
    before, under = latency.compared.idle.mean, latency.compared.loaded.mean
    assert f"A ping took {before:.1f} ms before the load and {under:.1f} ms under load (mean)." in card
    assert f"Of all probes together a ping took {latency.loaded.mean:.1f} ms under load." in card
    assert card[-1] == said
    rows = [list(column.cells) for column in latency_table(found).columns][:2]
    means = dict(zip(*rows, strict=True))
    assert means["all"] == f"{latency.loaded.mean:.2f}"
    assert means["with idle pings"] == means["ping"] == f"{under:.2f}"


def test_where_all_probes_have_idle_pings_nothing_is_said(tmp_path: Path) -> None:
    found = summarise(run(tmp_path / "run", UPLOAD))
    assert found.latency.compared is not None
    assert (found.latency.compared.idle, found.latency.compared.loaded) == found.latency.told
    assert (found.latency.idle, found.latency.loaded) == found.latency.told
    assert found.remarks == []


FAR: dict[str, Any] = {
    "name": "t",
    "title": "t",
    "phases": {"idle": "2s", "load": "20s"},
    "hosts": [{"name": "near"}, {"name": "far", "delay": "200ms"}],
    "flows": [{**UPLOAD, "host": "near"}],
}


def near_and_far(out: Path, **more: Any) -> Record:
    """A test with a probe to a host nearby, and one with `more` to a host that is 200 ms away."""
    near = {**PINGS[0], "host": "near"}
    (record,) = weirlab.run(
        {**FAR, "probes": [near, {**near, "name": "far", "host": "far", **more}]}, link=LINK, out=out
    )
    return record


def test_the_increase_of_a_phase_is_of_probes_that_have_idle_pings(tmp_path: Path) -> None:
    """Chart and scores of phases have the grade that tables and pages have."""
    record = near_and_far(tmp_path / "run", start="4s")
    figures = measured(record)
    assert figures is not None
    one = figures.loaded["load"]
    (near,) = pings_within(record, (one.start_ns, one.end_ns), [0])
    assert one.latency == near.distribution
    assert one.increase_ms == one.latency.mean - figures.idle.mean
    assert one.pings.sent > 1.5 * near.sent, "losses are of all probes"
    grade = grade_of(record)
    assert grade is not None
    assert grade.letter == score_all(record, figures).grade == "D"
    words = [text.get_text() for axes in plot(record, "phases").axes for text in axes.texts]
    assert any(word.startswith(f"+{one.increase_ms:.0f} ms: D") for word in words)


def test_round_trips_of_a_row_are_of_the_probes_of_its_increase(tmp_path: Path) -> None:
    record = near_and_far(tmp_path / "run", start="4s")
    latency = summarise(record).latency
    idle, loaded = latency.told
    assert idle is not None
    assert loaded is not None
    assert latency.loaded is not None
    (row,) = weirlab.frame(record).to_dicts()
    assert (row["idle_mean_ms"], row["loaded_p95_ms"]) == (idle.mean, loaded.p95)
    assert row["loaded_mean_ms"] - row["idle_mean_ms"] == pytest.approx(row["increase_mean_ms"], abs=1e-9)
    assert row["pings_sent"] == latency.sent
    (rrul,) = rrul_summary(record)
    assert rrul["parts"]["ping_mean_ms"] == round(loaded.mean, 3)
    # Rules compare records by it as `weir compare` does; an assertion is of all pings of what it names.
    for text, of_compared, of_all in (
        ("latency.p95", loaded.p95, latency.loaded.p95),
        ("latency.mean[idle]", idle.mean, idle.mean),
        ("latency.p95[2s..22s]", latency.loaded.p95, latency.loaded.p95),
    ):
        assert Figure(text).of(record) == pytest.approx(of_compared, abs=1e-9)
        assert Assertion(f"{text} < 1s").of(record).left == pytest.approx(of_all, abs=1e-9)
    assert loaded.p95 < latency.loaded.p95 - 50
    losses = Figure("latency.loss").of(record)
    assert losses == latency.loss_rate


def test_each_ping_of_a_phase_counts_from_its_own_probe(tmp_path: Path) -> None:
    """That a far probe has a greater share of the pings under load is no increase."""
    record = near_and_far(tmp_path / "run", period="100ms", start="1s")
    figures = measured(record)
    assert figures is not None
    one = figures.loaded["load"]
    under = pings_within(record, (one.start_ns, one.end_ns), [0], [1])
    before = [idle_pings([record], probe=probe).rtt_ms.mean() for probe in (0, 1)]
    more = [pings.rtt_ms - mean for pings, mean in zip(under, before, strict=True)]
    assert one.increase_ms == pytest.approx(float(np.concatenate(more).mean()), abs=1e-9)
    assert abs(one.increase_ms - (one.latency.mean - figures.idle.mean)) > 5


def test_phases_of_different_probes_have_no_figures(tmp_path: Path) -> None:
    """The chart says so, where a probe ends before the load begins and another starts in it."""
    pings = [
        {**PINGS[0], "host": "near", "stop": "2s"},
        {**PINGS[0], "name": "far", "host": "far", "start": "4s"},
    ]
    (record,) = weirlab.run({**FAR, "probes": pings}, link=LINK, out=tmp_path / "run")
    assert measured(record) is None
    with pytest.raises(UsageError, match="has no probe of which pings were answered both in its idle phase"):
        plot(record, "phases")
