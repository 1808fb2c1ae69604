"""Whether two sides agree: goals, scatter, and what is said of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import weirlab
from weirlab.cli import weir as group
from weirlab.errors import AssertionBroken, UsageError
from weirlab.record import open_record
from weirlab.report.agreement import COLUMNS, agreement_markdown, agreement_verdict
from weirlab.stats import Goal, agreement, finding, summarise
from weirlab.stats.agreeing import AGREEMENT, FIGURES, figures
from weirlab.stats.experience import EXPERIENCE
from weirlab.ui import RunProgress
from weirlab.worlds.sides import SIDES, sides_named
from weirlab.worlds.sim import SimWorld
from weirstudies.agreement import study

if TYPE_CHECKING:
    from click.testing import Result

    from weirlab.record import Record


PAGE = Path(__file__).parent.parent / "docs/validation.md"

SAMPLE = (
    "20/8 20ms pfifo reno tcp_upload",
    "20/8 80ms pfifo reno tcp_download",
    "20/8 80ms htb+fq_codel cubic tcp_upload",
    "20/8 20ms codel cubic rrul_be",
)
"""Rows of the table that take a few seconds to make again."""


@pytest.mark.parametrize(
    ("goal", "ours", "met"),
    [
        (Goal(share=0.2, amount=5), 12.0, True),
        (Goal(share=0.2, amount=5), 15.1, False),
        (Goal(share=0.2), 11.9, True),
        (Goal(amount=0.02), 10.03, False),
    ],
)
def test_a_goal_is_the_wider_of_share_and_amount(goal: Goal, ours: float, met: bool) -> None:
    assert goal.allows(ours, 10.0) is met


def test_a_difference_is_set_against_the_scatter_of_seeds() -> None:
    goal = Goal(share=0.015)
    found = finding("down_mbps", [10.0, 11.0, 12.0], [11.5, 12.5, 13.5], goal)
    assert (found.met, found.is_scatter) == (False, True)
    # Student's t of four degrees of freedom, 2.776, times the root of 2 / 3.
    assert found.scatter == pytest.approx(2.267, abs=0.001)
    assert not finding("down_mbps", [10.0, 11.0, 12.0], [21.5, 22.5, 23.5], goal).is_scatter
    assert finding("down_mbps", [10.0], [11.5], goal).scatter is None


def test_runs_that_are_all_the_same_add_nothing_to_the_scatter() -> None:
    # Student's t of two degrees of freedom, 4.303, times the root of 1 / 3.
    found = finding("up_jain", [0.1, 0.1, 0.1], [10.0, 11.0, 12.0])
    assert found.scatter == pytest.approx(2.484, abs=0.001)
    assert finding("up_jain", [1.0, 1.0], [0.5, 0.5, 0.5]).scatter == 0.0


def test_a_single_run_may_lie_where_one_more_run_of_the_other_side_would() -> None:
    goal = Goal(share=0.015)
    # Student's t of two degrees of freedom, 4.303, times the root of 1 + 1 / 3.
    found = finding("down_mbps", [10.0, 11.0, 12.0], [15.9], goal)
    assert found.scatter == pytest.approx(4.968, abs=0.001)
    assert found.is_scatter
    assert not finding("down_mbps", [10.0, 11.0, 12.0], [16.0], goal).is_scatter
    assert finding("down_mbps", [15.9], [10.0, 11.0, 12.0], goal).scatter == found.scatter


def test_a_side_agrees_with_itself(rrul: list[Record]) -> None:
    [bloated, _cured] = rrul
    same = agreement("pfifo_fast", ("sim", [bloated]), ("lab", [bloated]))
    network = [name for name in FIGURES if name not in EXPERIENCE]
    assert set(same.findings) == set(network)
    assert same.met
    assert same.agrees
    assert all(found.difference in {0.0, None} for found in same.findings.values())
    assert {name for name, found in same.findings.items() if found.met is not None} == set(AGREEMENT) & set(
        network
    )


def test_another_queue_does_not_agree_and_the_report_says_where(rrul: list[Record]) -> None:
    bloated, cured = rrul
    odd = open_record(bloated.path)
    odd.manifest = replace(odd.manifest, warnings=["the clock drifted"])
    other = agreement("a queue", ("sim", [cured]), ("lab", [odd]))
    assert not other.agrees
    assert other.warnings == ["the clock drifted"]
    median = other.findings["p50_ms"]
    assert (median.met, median.is_scatter) == (False, False)
    assert median.ours < median.reference / 3
    text = agreement_markdown(other)
    assert text.startswith("**a queue**: missed\n\nCaution: the clock drifted.\n")
    assert "| p50 ms | " in text
    assert "| 10% or 1 | missed |" in text
    assert "In 1 configurations that disagree runs were disturbed" in agreement_verdict([other])


def test_figures_that_a_run_does_not_have_are_left_out(tmp_path: Path) -> None:
    [record] = weirlab.run("ping", phases={"load": "1s"}, out=tmp_path / "o")
    found = agreement("ping", ("sim", [record]), ("lab", [record])).findings
    assert set(found) == {"min_ms", "p50_ms", "p95_ms", "p99_ms"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sim,moon", "unknown world `moon` \\(known: sim, kernel-userspace, kernel, kernel-path, lab\\)"),
        ("sim", "--worlds sim: write two or more different ones"),
        ("sim,sim", "--worlds sim,sim: write two or more different ones"),
    ],
)
def test_worlds_that_cannot_be_compared(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sides_named(words)


@pytest.mark.parametrize("name", SAMPLE)
def test_the_page_has_the_simulators_side_of_the_study_as_it_is_now(tmp_path: Path, name: str) -> None:
    """A row of the table of docs/validation.md, of which the lab's half is as old as the page says."""
    [cell] = study.chosen([name])
    found = study.measure(
        [cell], SIDES["sim"], tmp_path, repeat=5, jobs=1, watching=lambda runs: RunProgress(runs, quiet=True)
    )
    runs = [figures(summarise(record)) for record in found[name]]
    lines = PAGE.read_text().splitlines()
    rows = [line.split("|") for line in lines if re.match(r"\| (configuration|\d+/\d+ \d+ms) ", line + " ")]
    [row] = (one for one in rows if one[1].strip() == name)
    printed = {
        heading.strip(): cell.split(" / ")[0].strip(" *~")
        for heading, cell in zip(rows[0], row, strict=True)
        if " / " in cell
    }
    assert set(printed) > {"p50 ms", "p99 ms", "resent"}
    columns = {column.name: column for column in COLUMNS}
    now = {
        heading: f"{mean(run[columns[heading].figure] for run in runs):.{columns[heading].digits}f}"
        for heading in printed
    }
    assert now == printed, "the table is stale: `weir study agreement --markdown` makes it anew"


def test_what_a_scenario_asserts_is_judged_in_all_worlds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is judged matters here, and not the lab.
    monkeypatch.setitem(SIDES, "lab", replace(SIDES["lab"], world=SimWorld))
    file = tmp_path / "s.toml"
    words = ["validate", str(file), "--worlds", "sim,lab", "--no-charts"]
    monkeypatch.chdir(tmp_path)
    folders = (f"out-{number}" for number in range(9))

    def validated(rule: str, *more: str) -> Result:
        phases = '{ idle = "0s", load = "500ms", cooldown = "0s" }'
        text = f'test = "tcp_upload"\nlink = "cable-20-8"\nphases = {phases}\nassert = ["{rule}"]\n'
        file.write_text(text)
        return CliRunner().invoke(group, [*words, *more, "--out", next(folders)])

    done = validated("latency.p99 < 1us", "--json")
    assert isinstance(done.exception, AssertionBroken)
    assert str(done.exception) == "6 of 6 assertions do not hold"
    said = json.loads(done.stdout)["assertions"]
    assert len(said) == 6
    assert not any(one["holds"] for outcomes in said.values() for one in outcomes)
    done = validated("latency.p99 < 100s", "--markdown")
    assert (done.exit_code, done.stdout.count("| `latency.p99 < 100s` | ")) == (0, 6)
    assert done.stdout.count("| lab · ") == 1
    done = validated("latency.p99 < 100s")
    assert (done.exit_code, done.stdout.count("holds")) == (0, 6)
    done = validated("latency.p95 not worse than baseline by 2ms")
    assert isinstance(done.exception, UsageError)
    assert "`weir validate` takes no baseline" in str(done.exception)
