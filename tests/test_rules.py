"""Rules over repetitions: no worse than a baseline, known well enough, and reports for CI systems."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest.mock import Mock

import click
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats as reference

import weirlab
from weirlab.cli import weir as group
from weirlab.cli.verdicts import remove_junit, rules_of, rules_without_baseline
from weirlab.errors import AssertionBroken, Interrupted, UsageError
from weirlab.record import find_records
from weirlab.stats.assertions import Assertion, Figure
from weirlab.stats.repetition import NotWorse, Until
from weirlab.ui.numbers import four_digits

if TYPE_CHECKING:
    from click.testing import Result

    from weirlab.record import Record

BRIEF = {"idle": "500ms", "load": "1s", "cooldown": "0s"}
WORDS = ["--idle", "500ms", "--load", "1s", "--cooldown", "0s", "--no-charts"]


def runs(folder: Path, queue: str, seed: int = 1) -> list[Record]:
    return weirlab.run(
        "tcp_upload", link="cable-20-8", queue=queue, repeat=3, seed=seed, phases=BRIEF, out=folder
    )


@pytest.fixture(scope="module")
def bloated(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return runs(tmp_path_factory.mktemp("rules") / "bloated", "pfifo_fast")


@pytest.fixture(scope="module")
def cured(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return runs(tmp_path_factory.mktemp("rules") / "cured", "htb rate 95% fq_codel", seed=11)


def run(*words: str) -> Result:
    return CliRunner().invoke(group, ["run", "tcp_upload", *WORDS, *words])


def test_a_bound_within_the_margin_is_no_worse(bloated: list[Record], cured: list[Record]) -> None:
    better = NotWorse("latency.p95 not worse than baseline by 2ms").of(cured, bloated)
    assert better.holds
    assert better.worse_by < better.bound < 0
    worse = NotWorse("latency.p95 not worse than baseline by 2ms").of(bloated, cured)
    assert not worse.holds
    assert worse.margin == 2.0
    p95 = Figure("latency.p95")
    ours, theirs = [p95.of(one) for one in bloated], [p95.of(one) for one in cured]
    known = reference.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.90)
    assert worse.bound == pytest.approx(known.high), "a one-sided bound of 95 % ends a two-sided one of 90 %"


def test_the_same_runs_are_no_worse_by_nothing(bloated: list[Record]) -> None:
    same = NotWorse("latency.p95 not worse than baseline by 0ms").of(bloated, bloated)
    assert (same.worse_by, same.bound, same.holds) == (0.0, 0.0, True)


def test_of_rates_less_is_worse_and_a_margin_may_be_a_share(
    bloated: list[Record], cured: list[Record]
) -> None:
    outcome = NotWorse("up.goodput not worse than baseline by 50%").of(cured, bloated)
    mbps = [np.mean([Figure("up.goodput").of(one) for one in side]) for side in (cured, bloated)]
    assert outcome.worse_by == pytest.approx(mbps[1] - mbps[0])
    assert outcome.margin == pytest.approx(mbps[1] / 2)
    assert outcome.holds


@pytest.mark.parametrize(
    ("text", "higher"),
    [
        ("latency.p95", False),
        ("up.goodput", True),
        ("up.rate.mean", True),
        ("up.utilisation", True),
        ("latency.loss[probe=up.mos]", False),
        ("up.goodput / 8mbit", True),
        ("8mbit / up.goodput", False),
        ("10mbit - up.goodput", False),
        ("10mbit - (5mbit - up.goodput)", True),
        ("2 * up.goodput + down.goodput", True),
        ("up.goodput * 1s / 1mbit", True),
        ("up.goodput / latency.p95", True),
        ("latency.p95 / up.goodput", False),
        ("latency.p95 - latency.median[idle]", False),
        ("latency.p95 / latency.median[idle]", False),
        ("latency.median[idle] - latency.p95", True),
        ("2ms + latency.median[idle] - latency.p95", True),
    ],
)
def test_which_is_better_follows_from_how_figures_are_joined(text: str, higher: bool) -> None:
    assert Figure(text).higher_is_better() is higher


@pytest.mark.parametrize(
    "text",
    [
        "up.goodput / down.goodput",
        "up.goodput - down.goodput",
        "latency.p95 * up.goodput",
        "2ms + 3ms",
        "latency.p95 - latency.median",
        "latency.p95[idle] / latency.median[idle]",
    ],
)
def test_a_rule_that_does_not_say_which_is_better_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="more or less of it is better"):
        NotWorse(f"{text} not worse than baseline by 5%")


def test_a_quotient_of_rates_that_falls_is_worse(bloated: list[Record], cured: list[Record]) -> None:
    share = NotWorse("up.goodput / 8mbit not worse than baseline by 5%").of(cured, bloated)
    plain = NotWorse("up.goodput not worse than baseline by 5%").of(cured, bloated)
    assert share.holds == plain.holds
    assert share.worse_by == pytest.approx(plain.worse_by / 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency.p95 not worse than baseline", "write a rule such as"),
        ("latency.p95 not worse than baseline by 2mbit", "is a time"),
        ("latency.nine not worse than baseline by 2ms", "unknown figure"),
        ("latency.p95 ) not worse than baseline by 2ms", "stands behind its end"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        NotWorse(text)


def test_one_run_is_not_enough_for_95_percent(bloated: list[Record]) -> None:
    with pytest.raises(UsageError, match="95 % need two or more"):
        NotWorse("latency.p95 not worse than baseline by 2ms").of(bloated[:1], bloated)


@pytest.mark.parametrize("text", ["latency.p95", "latency.p95 +-0%", "latency.p95 +- 3mbit", "+-5%"])
def test_what_is_no_width_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Until(text)


def test_looks_share_the_5_percent() -> None:
    shares = [0.05 * 6 / (np.pi * look) ** 2 for look in range(1, 100_000)]
    assert sum(shares) == pytest.approx(0.05, rel=1e-4)


def test_each_look_at_the_same_runs_is_more_careful(bloated: list[Record]) -> None:
    until = Until("latency.p95 +-5%")
    widths = [until.half_width(bloated, look)[1] for look in (1, 2, 3)]
    assert widths == sorted(widths)
    assert widths[0] < widths[2]
    assert until.half_width(bloated[:1], 1)[1] == np.inf


def test_a_few_runs_that_are_the_same_say_nothing_yet(bloated: list[Record]) -> None:
    """Without start jitter all runs are one; a figure that is a count may be the same by chance."""
    until = Until("latency.p95 +-5%")
    for count in (3, 5):
        assert until.half_width([bloated[0]] * count, 1)[1] == np.inf
        assert not until.met([bloated[0]] * count, 1)
    assert until.half_width([bloated[0]] * 6, 1)[1] == 0
    assert until.met([bloated[0]] * 6, 1)


def test_runs_repeat_until_the_interval_is_narrow(tmp_path: Path) -> None:
    easy = run("--until", "latency.mean +-60%", "--max-repeat", "8", "--out", str(tmp_path / "a"))
    assert easy.exception is None, easy.stderr
    assert len(find_records(tmp_path / "a")) == 3
    assert re.search(r"after 3 runs: \S+ \+-\S+ ms, as asked", " ".join(easy.stderr.split()))
    words = ["--queue", "pfifo_fast", "--queue", "fq_codel"]
    hard = run("--until", "latency.mean +-0.0001%", "--max-repeat", "4", *words, "--out", str(tmp_path / "b"))
    assert hard.exception is None
    records = find_records(tmp_path / "b")
    assert [one.manifest.seed for one in records] == [1, 2, 3, 4] * 2
    assert "wider than asked after 4" in " ".join(hard.stderr.split())


def test_a_figure_that_no_run_has_is_not_waited_for(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        group,
        ["run", "ping", *WORDS, "--until", "up.goodput +-5%", "--out", str(tmp_path / "a")],
    )
    assert done.exception is None, done.stderr
    assert len(find_records(tmp_path / "a")) == 3
    said = " ".join(done.stderr.split())
    assert "`up.goodput +-5%`: none of 3 runs has that figure" in said
    assert "nan" not in said


def test_a_side_that_is_not_known_is_a_dash_and_null(tmp_path: Path) -> None:
    """NaN is no JSON, and no figure for people."""
    words = ["--assert", "latency.p95 < 10ms", "--assert", "down.goodput > 1mbit"]
    junit = tmp_path / "junit.xml"
    shown = run(*words, "--json", "--out", str(tmp_path / "json"), "--junit", str(junit))
    data, _ = json.JSONDecoder(parse_constant=pytest.fail).raw_decode(shown.stdout)
    ((_, goodput),) = data["assertions"].values()
    assert (goodput["left"], goodput["right"], goodput["holds"]) == (None, 1.0, False)
    assert "left -, right 1 Mbit/s" in junit.read_text()
    table = run(*words, "--out", str(tmp_path / "table")).stdout
    assert "nan" not in table


def test_a_span_behind_the_end_is_refused_before_anything_runs(tmp_path: Path) -> None:
    words = ["--assert", "up.goodput[5s..30s] > 1mbit"]
    done = run(*words, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, UsageError)
    told = "assertion `up.goodput[5s..30s] > 1mbit`: the run ends at 1.5 s: write a span that begins before"
    assert str(done.exception) == told
    assert not (tmp_path / "out").exists()


def test_large_sides_of_an_assertion_are_written_whole() -> None:
    assert [four_digits(one) for one in (9999.4, 9999.6, -123456.0, 0.5, 12.3456)] == [
        *("9999", "10000", "-123456"),
        *("0.5", "12.35"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--until", "latency.p95 +-5%", "--repeat", "3"], "exclude each other"),
        (["--until", "latency.p95 +-5%", "--max-repeat", "2"], "looks after 3"),
        (["--max-repeat", "5"], "write --repeat 5"),
        (["--until", "latency.p95[warm] +-5%"], "no phase `warm`"),
        (["--assert", "latency.p95 not worse than baseline by 1ms"], "there is no baseline"),
    ],
)
def test_words_that_do_not_fit_are_refused_before_anything_runs(
    words: list[str], said: str, tmp_path: Path
) -> None:
    done = run(*words, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_file_of_assertions_a_baseline_and_junit(tmp_path: Path, bloated: list[Record]) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text(
        "# what a change may cost\n"
        "latency.p95 not worse than baseline by 2ms  # of all pings\n\n"
        "up.goodput not worse than baseline by 5%\n"
        "latency.loss < 50%\n"
        "latency.p99 < 1ms\n"
    )
    words = ["--queue", "pfifo_fast", "--repeat", "3", "--assert-file", str(rules)]
    words += ["--baseline", str(bloated[0].path.parent), "--junit", str(tmp_path / "ci/junit.xml")]
    done = run(*words, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, AssertionBroken)
    assert "3 of 8 assertions do not hold" in str(done.exception)
    suite = ET.parse(tmp_path / "ci/junit.xml").getroot()[0]  # noqa: S314 - written a line before
    assert (suite.get("tests"), suite.get("failures")) == ("8", "3")
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {"latency.p99 < 1ms"}
    said = " ".join(done.output.split())
    assert "latency.p95 not worse than baseline by 2ms: holds" in said
    by_name = {case.get("name"): case.findtext("system-out") or "" for case in suite}
    time = r"worse by \S+ ms, with 95 % by no more than \S+ ms; allowed 2 ms"
    assert re.fullmatch(time, by_name["latency.p95 not worse than baseline by 2ms"])
    rate = (
        r"worse by \S+ Mbit/s, with 95 % by no more than \S+ Mbit/s; allowed \S+ Mbit/s, 5 % of the "
        r"baseline's \S+ Mbit/s"
    )
    assert re.fullmatch(rate, by_name["up.goodput not worse than baseline by 5%"])


def test_a_baseline_is_one_configuration_with_repetitions(
    tmp_path: Path, bloated: list[Record], cured: list[Record]
) -> None:
    rule = ["--assert", "latency.p95 not worse than baseline by 2ms"]
    for name, side in (("a", bloated), ("b", cured)):
        shutil.copytree(side[0].path.parent, tmp_path / "both" / name)
    words = ["--repeat", "2", "--out", str(tmp_path / "x")]
    both = run(*rule, "--baseline", str(tmp_path / "both"), *words)
    assert isinstance(both.exception, UsageError)
    assert cured[0].manifest.queue in str(both.exception)
    once = run(
        *rule, "--baseline", str(bloated[0].path.parent), "--repeat", "1", "--out", str(tmp_path / "o")
    )
    assert isinstance(once.exception, UsageError)
    assert "95 % need two repetitions" in str(once.exception)


@pytest.mark.parametrize(
    ("what", "words", "said"),
    [
        ("tcp_download", [], "has the test `tcp_upload`, what is to run `tcp_download`"),
        ("tcp_upload", ["--link", "vdsl-100-40"], "has the link `cable-20-8`, what is to run `vdsl-100-40`"),
        ("tcp_upload", ["--load", "2s"], "has the load of 1 s, what is to run 2 s"),
        ("tcp_upload", ["--world", "lab"], "has the world `sim`, what is to run `lab`"),
    ],
)
def test_a_baseline_of_something_else_is_refused_before_anything_runs(
    what: str, words: list[str], said: str, tmp_path: Path, bloated: list[Record]
) -> None:
    rule = ["--assert", "latency.p95 not worse than baseline by 2ms"]
    before = ["--baseline", str(bloated[0].path.parent), "--repeat", "2", "--out", str(tmp_path / "out")]
    lengths = ["--idle", "500ms", "--cooldown", "0s", *([] if "--load" in words else ["--load", "1s"])]
    done = CliRunner().invoke(group, ["run", what, *lengths, *rule, *before, *words])
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert str(bloated[0].path) in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_baseline_that_was_cut_short_is_refused(tmp_path: Path, bloated: list[Record]) -> None:
    shutil.copytree(bloated[0].path.parent, tmp_path / "before")
    for one in find_records(tmp_path / "before"):
        file = one.path / "manifest.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"complete": False}))
    rule = ["--assert", "latency.p95 not worse than baseline by 2ms", "--repeat", "2"]
    done = run(*rule, "--baseline", str(tmp_path / "before"), "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, UsageError)
    assert "of the baseline was cut short" in str(done.exception)


def test_a_baseline_that_no_rule_compares_with_is_refused(tmp_path: Path, bloated: list[Record]) -> None:
    before = ["--baseline", str(bloated[0].path.parent), "--assert", "latency.p95 < 1s"]
    done = run(*before, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, UsageError)
    assert "no assertion compares with it" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_what_is_called_baseline_in_brackets_is_no_baseline() -> None:
    text = "latency.p95[probe=baseline*] < 5ms"
    rules = rules_of([text], None, None)
    assert ([one.text for one in rules.asserted], rules.compared) == ([text], [])
    assert len(rules_without_baseline([text], [], "batch").asserted) == 1
    with pytest.raises(UsageError, match="there is no baseline"):
        rules_of(["latency.p95[probe=baseline] not worse than baseline by 2ms"], None, None)


def test_a_report_of_an_earlier_run_does_not_stay_when_a_run_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text("<testsuites/>")
    monkeypatch.setattr("weirlab.cli.run_command._carried_out", lambda *_, **__: [])
    done = run("--assert", "latency.p95 < 1s", "--junit", str(junit), "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, Interrupted)
    assert not junit.exists()


def test_a_report_of_an_earlier_run_does_not_stay_when_a_run_is_refused(
    tmp_path: Path, bloated: list[Record]
) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text("<testsuites/>")
    words = ["--baseline", str(bloated[0].path.parent), "--assert", "latency.p95 < 1s"]
    done = run(*words, "--junit", str(junit), "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, UsageError)
    assert not junit.exists()


def test_a_report_goes_to_a_pipe_that_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        done = run("--assert", "latency.p95 < 9s", "--junit", str(pipe), "--out", str(tmp_path / "out"))
        assert done.exception is None
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert b"testsuite" in os.read(reader, 1 << 16)
    finally:
        os.close(reader)


def test_a_report_behind_a_link_or_in_a_folder_that_is_closed_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, link = tmp_path / "report.xml", tmp_path / "link.xml"
    report.write_text("<testsuites/>")
    link.symlink_to(report)
    remove_junit(link)
    assert link.is_symlink()
    assert report.read_text() == ""
    report.write_text("<testsuites/>")
    monkeypatch.setattr(Path, "unlink", Mock(side_effect=OSError(errno.EBUSY, "Device or resource busy")))
    remove_junit(report)
    assert report.read_text() == ""


def test_a_folder_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        remove_junit(tmp_path)
    remove_junit(tmp_path / "none" / "junit.xml")


def test_the_report_of_an_interrupted_run_has_an_error(
    tmp_path: Path, bloated: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    junit = tmp_path / "junit.xml"
    monkeypatch.setattr("weirlab.cli.run_command._carried_out", lambda *_, **__: bloated[:1])
    words = ["--repeat", "3", "--assert", "latency.p95 < 1s", "--junit", str(junit)]
    done = run(*words, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, Interrupted)
    suite = ET.parse(junit).getroot()[0]  # noqa: S314 - written a line before
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "1")
    (error,) = suite.findall("testcase/error")
    assert "interrupted" in (error.get("message") or "")


def test_the_workflow_of_the_examples_uses_options_that_there_are() -> None:
    text = (Path(__file__).parent.parent / "examples/github-actions.yml").read_text()
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    commands = [line.strip() for line in lines if line.strip().startswith("weir run")]
    assert len(commands) == 2
    context = click.Context(group)
    options = {
        name for one in cast("click.Command", group.get_command(context, "run")).params for name in one.opts
    }
    for line in commands:
        assert set(re.findall(r"--[a-z-]+", line)) - {"--no-charts"} <= options
    for rule in re.findall(r"^#     (.+)$", text, re.MULTILINE):
        assert NotWorse(rule).text if "baseline" in rule else Assertion(rule).text


def test_what_was_interrupted_is_not_compared_with_the_baseline(bloated: list[Record]) -> None:
    """One repetition is too few for an interval; that must not hide that the run was interrupted."""
    texts = ["latency.p95 < 1s", "latency.p95 not worse than baseline by 2ms"]
    rules = rules_of(texts, None, bloated[0].path.parent)
    found = rules.verdicts(bloated[:1], whole=False)
    assert [len(found.outcomes[0]), len(found.compared), len(found.each)] == [1, 0, 1]
    assert len(rules.verdicts(bloated, whole=True).compared) == 1


def test_a_file_without_a_link_runs_over_that_of_the_line(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    flow = '[[test.flows]]\nname = "f"\ndirection = "down"\n'
    file.write_text(f'[test]\nname = "t"\ntitle = "t"\n[test.phases]\nload = "1s"\n{flow}')
    words = ["--no-charts", "--out", str(tmp_path / "out")]
    lacks = CliRunner().invoke(group, ["run", str(file), *words])
    assert "link: this key is missing" in str(lacks.exception)
    done = CliRunner().invoke(group, ["run", str(file), "--link", "line-50", *words])
    assert done.exit_code == 0, done.exception
