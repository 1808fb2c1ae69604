"""`weir conformance`: recordings of real Linux held against our disciplines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from weirlab.cli.conformance_command import command
from weirlab.errors import UsageError
from weirlab.ui import console

RECORDINGS = Path(__file__).parent.parent / "vectors" / "linux-6.12"


def run(*words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("codel-default-htb10", "pfifo-htb10-l20-steady"):
        shutil.copy(RECORDINGS / f"{name}.json", tmp_path)
    return tmp_path


def test_a_folder_of_recordings_is_judged_line_by_line(folder: Path) -> None:
    result = run(folder, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["counts"] == {"exact": 2}
    assert found["recordings"][0] == {
        "name": "codel-default-htb10",
        "verdict": "exact",
        "remark": "1800 packets",
    }
    said = run(folder).stdout.splitlines()
    assert said[0].strip() == "2 recordings: 2 exact, 0 agrees, 0 excepted, 0 fails"
    assert said[2].split() == ["verdict", "recording", "remark"]
    assert said[4].split() == ["exact", "codel-default-htb10", "1800", "packets"]
    assert max(len(line) for line in said) <= 80


def test_on_a_narrow_terminal_each_recording_is_a_paragraph(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_width", 40)
    lines = [line.rstrip() for line in run(folder).stdout.splitlines()]
    at = lines.index("exact")
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["recording", "codel-default-htb10"],
        ["remark", "1800", "packets"],
    ]


def test_a_recording_that_is_not_met_fails_unless_it_is_excepted(folder: Path) -> None:
    path = folder / "codel-default-htb10.json"
    path.write_text(path.read_text().replace("handle 10: codel", "handle 10: codel target 1ms"))
    result = run(folder, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["counts"] == {"exact": 1, "fails": 1}

    (folder / "exceptions.json").write_text('{"codel-default-htb10": "another target, for this test"}')
    result = run(folder, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["recordings"][0]["remark"] == "another target, for this test"


def test_an_exception_that_is_not_needed_fails(folder: Path) -> None:
    (folder / "exceptions.json").write_text('{"codel-default-htb10": "no reason"}')
    result = run(folder)
    assert result.exit_code == 1
    assert "it agrees, and yet" in result.stdout


def test_what_is_no_recording_is_a_line_that_fails(folder: Path) -> None:
    (folder / "other.json").write_text("{}")
    (folder / "unknown.json").write_text(
        (folder / "codel-default-htb10.json").read_text().replace("handle 10: codel", "handle 10: hhf")
    )
    result = run(folder, "--json")
    assert result.exit_code == 1
    remarks = {line["name"]: line["remark"] for line in json.loads(result.stdout)["recordings"]}
    assert remarks["other"].startswith("this is no recording of a discipline: missing field")
    assert "hhf" in remarks["unknown"]


@pytest.mark.parametrize(
    ("text", "says"),
    [("[]", "names and reasons"), ("{", "cannot be read"), ('{"lost": "why"}', "excepts `lost`")],
)
def test_a_bad_exceptions_file_is_refused(folder: Path, text: str, says: str) -> None:
    (folder / "exceptions.json").write_text(text)
    result = run(folder)
    assert isinstance(result.exception, UsageError)
    assert says in str(result.exception)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    said = str(run(tmp_path).exception)
    assert "has no recordings" in said
    told = next(word for word in said.replace(",", " ").split() if word.endswith(".md"))
    assert "One JSON object per file" in (RECORDINGS.parent.parent / told).read_text(), (
        f"{told} does not tell the format"
    )
