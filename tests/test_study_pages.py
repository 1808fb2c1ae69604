"""Pages of studies: they quote the statements and rules of the programs that wrote them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from weirstudies.gallery import study as gallery
from weirstudies.speedtest_aqm.rules import RULES, Rule

ROOT = Path(__file__).parent.parent
STUDIES = ROOT / "docs" / "studies"
TRANSCRIPTS = ROOT / "crates" / "rate-control" / "tests" / "transcripts" / "mod.rs"


def words_of(page: str) -> str:
    """A page's text without its line breaks."""
    return " ".join((STUDIES / page).read_text().split())


@pytest.mark.parametrize("name", gallery.NAMES)
def test_the_gallery_quotes_every_statement_and_every_rule_that_was_changed(name: str) -> None:
    experiment = gallery.load(name)
    section = words_of("gallery.md").split(f"## {name}: ")[1].split(" ## ")[0]
    said = [experiment.title, experiment.source, experiment.chosen]
    said += [one.label for one in experiment.configurations]
    for statement in experiment.statements:
        said += [statement.says, statement.undecided or "", statement.changed, statement.note]
        said += [f"By another rule ({other.why})" for other in statement.others]
    assert [one for one in said if " ".join(one.split()) not in section] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda one: one.says[:40])
def test_the_page_on_speed_tests_quotes_every_rule_and_what_changed_of_it(rule: Rule) -> None:
    (row,) = (
        line
        for line in (STUDIES / "speedtest-aqm.md").read_text().splitlines()
        if line.startswith(f"| {rule.says} ({rule.by}) |")
    )
    said = [rule.rule, rule.changed, rule.note, *(f"{why}: **" for why, _ in rule.others)]
    assert [one for one in said if one not in row] == []


@pytest.mark.parametrize("page", ["autorate.md", "cfosspeed.md"])
def test_figures_of_shapers_are_of_the_controller_as_it_is(page: str) -> None:
    # Whoever changes what the controller decides changes its transcripts; the study is then run again, its
    # tables and sentences are written anew, and with them this line.
    now = hashlib.sha256(TRANSCRIPTS.read_bytes()).hexdigest()[:16]
    said = f"<!-- run with the controller whose transcripts have the SHA-256 {now} -->"
    assert said in (STUDIES / page).read_text()
