"""The README's figures: those that its own main job gives."""

from __future__ import annotations

import re
import shlex
from fnmatch import filter as filter_names
from itertools import takewhile
from pathlib import Path

import pytest

import weirlab
from weirlab import _native
from weirlab.scenario import shipped_tests

ROOT = Path(__file__).parent.parent


def test_the_readme_quotes_what_the_demo_measures(tmp_path: Path) -> None:
    said = re.search(
        r"from `make demo`: the plain router lets pings wait (\d+) ms longer under load;"
        r"\s+a shaper\s+at 95 % of the line with fq_codel beneath, (\d+) ms",
        " ".join((ROOT / "README.md").read_text().split()),
    )
    assert said
    demo = (ROOT / "tools" / "demo.sh").read_text().replace("\\\n", " ")
    (line,) = (line for line in demo.splitlines() if "run rrul --link cable-20-8" in line)
    words = shlex.split(line)
    queues = [words[at + 1] for at, word in enumerate(words) if word == "--queue"]
    assert queues == ["pfifo_fast", "fq_codel", "htb rate 95% fq_codel"]
    records = weirlab.run("rrul", link="cable-20-8", queue=queues, out=tmp_path / "demo")
    plain, _, shaped = weirlab.compare(records)
    assert plain.increase_ms is not None
    assert shaped.increase_ms is not None
    found = [plain.increase_ms.mean, shaped.increase_ms.mean]
    assert [f"{mean:.0f}" for mean in found] == list(said.groups())


STUDIES = {
    "gallery": "| statement |  | rule",
    "speedtest-aqm": "| who says what |",
    "thesis": "| the thesis says | here |",
    "cfosspeed": "| statement | verdict |",
}
"""How the table of statements of each study's page begins; the verdict stands in its second column."""


@pytest.mark.parametrize("study", STUDIES)
def test_the_readme_counts_the_verdicts_of_the_studies_pages(study: str) -> None:
    lines = iter((ROOT / f"docs/studies/{study}.md").read_text().splitlines())
    verdicts: list[str] = []
    for line in lines:
        if line.startswith(STUDIES[study]):
            rows = takewhile(lambda row: row.startswith("|"), lines)
            verdicts += [row.split(" | ")[1].strip("* ") for row in list(rows)[1:]]
    assert {"seen", "not seen"} <= set(verdicts) <= {"seen", "not seen", "undecided"}
    (row,) = _rows(f"`{study}`")
    counts = [len(verdicts), *(verdicts.count(word) for word in ("seen", "not seen", "undecided"))]
    assert [cell.strip() for cell in row.split("|")[2:6]] == [str(count) for count in counts]


NAMED = {
    "queues, with `tc` syntax": [one["name"] for one in _native.disciplines() if not one["preset"]],
    "TCP": [one["name"] for one in _native.congestion_controls()],
    # `page` is its page for browsers, `metrics` are for those who run it.
    "the server": [one["name"] for one in _native.services() if one["name"] not in {"page", "metrics"}],
}
"""What rows of the README name, by how each begins."""


@pytest.mark.parametrize("row", NAMED)
def test_the_readme_names_what_the_registries_have(row: str) -> None:
    (line,) = _rows(row)
    words = {word.lower() for word in re.findall(r"[\w-]+", line)}
    assert [name for name in NAMED[row] if name.lower() not in words] == []


def test_the_readme_names_no_queue_that_is_not_there() -> None:
    (line,) = _rows("queues, with `tc` syntax")
    listed = re.split(r"[(;]", line.split("|")[2].replace("; from papers ", ", "))[0]
    names = [one.strip().removesuffix(" policing") for one in listed.split(",")]
    assert set(names) == set(NAMED["queues, with `tc` syntax"])


def test_the_readme_has_a_word_for_each_test_and_none_for_others() -> None:
    (line,) = _rows("tests as data")
    words = re.findall(r"`([\w*]+)`", line)
    assert re.findall(r"\d+", line)[0] == str(len(shipped_tests()))
    assert [word for word in words if not filter_names(shipped_tests(), word)] == []
    assert set(shipped_tests()) == {name for word in words for name in filter_names(shipped_tests(), word)}


def _rows(begin: str) -> list[str]:
    return [one for one in (ROOT / "README.md").read_text().splitlines() if one.startswith(f"| {begin}")]
