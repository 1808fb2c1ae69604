"""Files that are there as a whole or not at all, also after a loss of power."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weirlab.errors import WriteError
from weirlab.writing import replaced


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file"
    steps: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def synced(held: int) -> None:
        steps.append(Path(f"/proc/self/fd/{held}").readlink().suffix or "folder")
        fsync(held)

    def renamed(part: Path, to: Path) -> Path:
        steps.append("renamed")
        return rename(part, to)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    replaced(target, lambda path: path.write_text("whole"))
    assert target.read_text() == "whole"
    assert steps == [".part", "renamed", "folder"]


def test_what_cannot_be_brought_to_the_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    target = tmp_path / "file"
    target.write_text("old")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(WriteError):
        replaced(target, lambda path: path.write_text("new"))
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
