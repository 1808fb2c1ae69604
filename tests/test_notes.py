"""Notes and tags that are kept for records later: they are found again, and the record stays as it was."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from weirlab import writing
from weirlab.cli import weir as group
from weirlab.errors import RecordError, UsageError, WeirError, WriteError
from weirlab.record import open_record, pack
from weirlab.record.configurations import distinct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record import Record

    Weir = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(rrul: list[Record], tmp_path: Path) -> Path:
    return shutil.copytree(rrul[0].path, tmp_path / "one")


@pytest.fixture
def archive(rrul: list[Record], tmp_path: Path) -> Path:
    pack(rrul[1], tmp_path / "two.weir")
    return tmp_path / "two.weir"


def digest(path: Path) -> dict[str, str]:
    """The digest of every file at or below `path`, notes left out."""
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    return {
        str(one): hashlib.sha256(one.read_bytes()).hexdigest() for one in files if one.name != "notes.json"
    }


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_notes_are_found_again_and_the_record_stays_as_it_was(
    kind: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(kind)
    before = digest(path)
    record = open_record(path)
    record.annotate("with the new router\nand its cable", ["router", "kitchen", "router"])
    assert record.manifest.note == "with the new router\nand its cable"
    again = open_record(path)
    again.check()
    assert (again.manifest.note, again.manifest.tags) == (record.manifest.note, ["router", "kitchen"])
    assert digest(path) == before
    again.annotate("", [])
    assert (open_record(path).manifest.note, open_record(path).manifest.tags) == ("", [])


def test_an_archive_brings_notes_along_and_what_is_noted_beside_it_counts(
    folder: Path, tmp_path: Path
) -> None:
    open_record(folder).annotate("first", ["one"])
    pack(open_record(folder), tmp_path / "packed.weir")
    packed = open_record(tmp_path / "packed.weir")
    assert (packed.manifest.note, packed.manifest.tags) == ("first", ["one"])
    packed.annotate("second", [])
    assert open_record(tmp_path / "packed.weir").manifest.note == "second"


def test_a_copy_with_another_note_is_still_the_same_run(folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text()) | {"world": "netns"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    copy = open_record(shutil.copytree(folder, tmp_path / "copy"))
    copy.annotate("a copy", ["copied"])
    assert len(distinct([open_record(folder), copy])) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "its `notes.json` is damaged"),
        ("[]", "its `notes.json` is damaged"),
        ('{"note": 5}', "its `notes.json` is damaged"),
        ('{"note": "x", "tags": ["two words"]}', "its `notes.json` is damaged"),
        ("[" * 100_000, "its `notes.json` is damaged"),
        (" " * 2_000_000, "`notes.json` has 2000000 bytes"),
    ],
)
def test_damaged_notes_are_told(folder: Path, content: str, says: str) -> None:
    (folder / "notes.json").write_text(content)
    with pytest.raises(RecordError, match=says):
        open_record(folder)


def test_notes_of_strangers_lead_nowhere(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"note": "secret"}')
    (folder / "notes.json").symlink_to(secret)
    with pytest.raises(RecordError, match="is a symbolic link"):
        open_record(folder)
    (folder / "notes.json").unlink()
    record = open_record(folder)
    (folder / "notes.json").symlink_to(secret)
    record.annotate("mine", [])
    assert secret.read_text() == '{"note": "secret"}'
    assert not (folder / "notes.json").is_symlink()


@pytest.mark.parametrize(("note", "tags"), [("x" * 10_001, []), ("", ["two words"]), ("", ["x", ""])])
def test_what_is_no_note_is_refused_and_nothing_is_written(folder: Path, note: str, tags: list[str]) -> None:
    with pytest.raises(UsageError):
        open_record(folder).annotate(note, tags)
    assert not (folder / "notes.json").exists()


def test_the_command_adds_takes_away_and_prints(folder: Path, weir_here: Weir) -> None:
    done = weir_here("note", str(folder), "--note", "warm [b]", "--tag", "a", "--tag", "b")
    assert (done.returncode, done.stdout) == (0, f"{folder}: warm [b] [a, b]\n")
    assert (
        weir_here("note", str(folder), "--untag", "a", "--tag", "c").stdout == f"{folder}: warm [b] [b, c]\n"
    )
    assert "warm [b] [b, c]" in weir_here("show", str(folder)).stdout
    refused = weir_here("note", str(folder), "--untag", "a")
    assert refused.returncode == 2
    assert refused.stderr == f"weir: --untag a: `{folder}` has no such tag (it has: b, c)\n"
    assert weir_here("note", str(folder), "--note", "x", "--no-note").returncode == 2
    assert weir_here("note", str(folder), "--tag", "b", "--untag", "b").returncode == 2
    done = weir_here("note", str(folder), "--no-note", "--untag", "b", "--untag", "c")
    assert done.stdout == f"{folder}: nothing noted\n"


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_who_notes_at_the_same_time_loses_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    rounds, words = 20, "abc"
    program = """
import sys, time
from weirlab.record import open_record
path, word, began, rounds = sys.argv[1:]
record = open_record(path)
time.sleep(max(0, float(began) - time.monotonic()))
for number in range(int(rounds)):
    record.note_more(lambda note, tags: (note + ".", [*tags, f"{word}{number}"]))
"""
    began = str(time.monotonic() + 1)
    several = [
        subprocess.Popen([sys.executable, "-c", program, str(path), word, began, str(rounds)])
        for word in words
    ]
    assert [one.wait(60) for one in several] == [0] * len(words)
    kept = open_record(path).manifest
    assert sorted(kept.tags) == sorted(f"{word}{n}" for word in words for n in range(rounds))
    assert kept.note == "." * len(kept.tags)


def test_where_no_folder_can_be_locked_notes_are_kept_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = Mock(side_effect=OSError(errno.EBADF, "Bad file descriptor"))
    monkeypatch.setattr("fcntl.flock", refuse)
    open_record(folder).note_more(lambda note, tags: (note, [*tags, "nfs"]))
    assert open_record(folder).manifest.tags == ["nfs"]
    refuse.assert_called_once()


def test_a_folder_that_another_program_holds_locked_is_not_waited_for_without_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LOCK_WAIT_S", 0.05)
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(WriteError, match=r"has been locked by another program for 0\.05 s"):
            open_record(folder).annotate("x", [])
    finally:
        os.close(held)
    open_record(folder).annotate("x", [])
    assert open_record(folder).manifest.note == "x"


def test_a_record_that_is_gone_is_noted_nowhere(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    shutil.copytree(folder, there)
    record = open_record(there)
    shutil.rmtree(there)
    with pytest.raises(WeirError, match="cannot be written: No such file or directory"):
        record.annotate("x", [])
    assert not there.exists()


@pytest.mark.parametrize("command", [("exec", "--", "true"), ("shell",)])
@pytest.mark.parametrize("words", [("--note", "x"), ("--tag", "y")])
def test_a_lab_without_a_record_refuses_what_only_a_record_keeps(
    command: tuple[str, ...], words: tuple[str, str]
) -> None:
    done = CliRunner().invoke(group, ["lab", command[0], *words, *command[1:]])
    assert isinstance(done.exception, UsageError)
    said = f"{words[0]}: a record keeps it, and none is written: give --out FOLDER too"
    assert str(done.exception) == said
