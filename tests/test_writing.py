"""Files that are there as a whole or not at all, also after the machine has lost its power."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weirlab import writing
from weirlab.errors import WriteError
from weirlab.sweeps.store import Store
from weirlab.writing import all_replaced, replaced

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is done to files and folders, in order: the step and the name of what it is done to."""
    found: list[tuple[str, str]] = []
    really_sync, really_rename, really_unlink = os.fsync, Path.replace, Path.unlink

    def sync(descriptor: int) -> None:
        found.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        really_sync(descriptor)

    def rename(self: Path, target: Path) -> Path:
        found.append(("rename", self.name))
        return really_rename(self, target)

    def unlink(self: Path, *, missing_ok: bool = False) -> None:
        found.append(("unlink", self.name))
        really_unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", rename)
    monkeypatch.setattr(Path, "unlink", unlink)
    return found


def test_content_is_on_the_disk_before_the_rename_and_the_rename_before_the_return(
    tmp_path: Path, steps: list[tuple[str, str]]
) -> None:
    target = tmp_path / "new" / "folder" / "file.txt"
    replaced(target, lambda part: part.write_text("all of it"))
    part = next(name for step, name in steps if step == "rename")
    assert steps[: steps.index(("rename", part)) + 2] == [
        ("sync", tmp_path.name),
        ("sync", "new"),
        ("sync", part),
        ("rename", part),
        ("sync", "folder"),
    ]
    assert target.read_text() == "all of it"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("ended", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), ValueError("a fault")])
@pytest.mark.parametrize("times", [0, 1])
def test_what_ends_early_leaves_nothing_also_if_it_is_told_to_end_meanwhile(
    ended: BaseException, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an error in the midst of Polars Python tells once more, at the next function that is called."""
    left, really_remove = times, writing._remove

    def remove(files: Sequence[Path], folders: Sequence[Path]) -> None:
        nonlocal left
        if left:
            left -= 1
            raise KeyboardInterrupt
        really_remove(files, folders)

    def write(part: Path) -> None:
        part.write_text("half of it")
        raise ended

    monkeypatch.setattr(writing, "_remove", remove)
    told = WriteError if isinstance(ended, OSError) else type(ended)
    target = tmp_path / "new" / "folder" / "file.txt"
    with pytest.raises(KeyboardInterrupt if times else told):
        replaced(target, write)
    assert not list(tmp_path.iterdir())
    left = times
    first = target.with_name("first.txt")
    with pytest.raises(KeyboardInterrupt if times else told):
        all_replaced({first: lambda part: part.write_text("all of it"), target: write})
    assert not list(tmp_path.iterdir())


def test_parts_are_unlinked_only_when_the_joined_one_is_on_the_disk(
    tmp_path: Path, steps: list[tuple[str, str]]
) -> None:
    store = Store.made(tmp_path / "store")
    assert ("sync", "store") in steps[-2:]
    for key in ("a", "b"):
        store.append([{"run": key}], {})
    parts = [part.removeprefix("runs/") for part in store.parts()]
    steps.clear()
    store.compact()
    assert ("sync", "runs") in steps[: min(steps.index(("unlink", part)) for part in parts)]


def test_content_that_does_not_reach_the_disk_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, f"descriptor {descriptor}")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(WriteError, match=r"file\.txt` cannot be written"):
        replaced(target, lambda part: part.write_text("new"))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
