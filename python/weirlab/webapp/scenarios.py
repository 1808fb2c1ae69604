"""Scenario files below the folder: listed, read, checked while they are edited, kept, and run."""

from __future__ import annotations

import hashlib
import re
import shlex
from typing import TYPE_CHECKING, Any

from weirlab import reading
from weirlab.errors import UsageError
from weirlab.scenario import read_scenario, resolve
from weirlab.webapp.runs import MAX_RUNS, too_many, worlds
from weirlab.writing import replaced

__all__ = ["FIRST", "Scenarios", "mark_of"]

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Scenarios:
    """The scenario files below `folder`."""

    def __init__(self, folder: Path) -> None:
        """Reads nothing yet."""
        self.folder = folder

    def files(self) -> list[str]:
        """Where TOML files lie below the folder, sorted; of very many the first."""
        found = sorted(
            file.relative_to(self.folder).as_posix()
            for file in self.folder.rglob("*.toml")
            if file.is_file() and not file.is_symlink()
        )
        return found[:MAX_FILES]

    def text(self, place: str) -> str:
        """The text of a file of the list.

        Raises:
            UsageError: if it is none of the list, or cannot be read.
        """
        if place not in self.files():
            raise UsageError(f"`{place}`: there is no such file in `{self.folder}`")
        try:
            return reading.read_text(self.folder / place, reading.MAX_TOML_BYTES)
        except reading.Unreadable as error:
            raise UsageError(f"`{place}` cannot be read: {error}") from error

    def command(self, form: Mapping[str, Any], out: str | None) -> tuple[str, int]:
        """The command that runs what is written, once it is kept, and how many records that makes.

        Args:
            form: `file`, `text` and `world`.
            out: the folder for records; None for that of the command itself.

        Raises:
            UsageError: all that is wrong with it.
        """
        text, world = _text(form), form.get("world", "sim")
        known = worlds()
        if world not in known:
            raise UsageError(f"world `{world}`: choose one of {', '.join(known)}")
        # A text that is written before it has a name is told first what is wrong with itself.
        file, unnamed = self.folder / "scenario.toml", None
        try:
            file = self._file(form)
        except UsageError as error:
            unnamed = error
        place = None if unnamed is None else "the scenario"
        # Files that it names are opened only where records and scenarios lie anyway.
        runs = resolve(read_scenario(text, file, place=place, below=self.folder), below=self.folder)
        if unnamed is not None:
            raise unnamed
        if len(runs) > MAX_RUNS:
            raise too_many(len(runs))
        line = ["weir", "run", str(file), *(() if world == "sim" else ("--world", str(world)))]
        return shlex.join([*line, *(() if out is None else ("--out", out)), "--no-charts"]), len(runs)

    def keep(self, form: Mapping[str, Any]) -> str:
        """Writes what was edited into its file; gives its mark, by which the next version is known.

        Args:
            form: `file`, `text`, and `mark` of the version that was edited; empty for a new file.

        Raises:
            UsageError: if the name is none for a scenario, or the file is not the one that was edited.
            WriteError: if it cannot be written.
        """
        file, text = self._file(form), _text(form)
        place = file.relative_to(self.folder).as_posix()
        there = self.text(place) if file.exists() else None
        if file.is_symlink() or (there is None) != (form.get("mark") == ""):
            what = "is there already: choose another name" if there is not None else "is no longer there"
            raise UsageError(f"`{place}` {what}")
        if there is not None and mark_of(there) != form.get("mark"):
            raise UsageError(f"`{place}` was changed by somebody else since it was opened: open it anew")

        def write(part: Path) -> None:
            ends = "\n" if there is None else _ends_in(file.read_bytes())
            part.write_text(text, encoding="utf-8", newline=ends)

        replaced(file, write)
        return mark_of(text)

    def _file(self, form: Mapping[str, Any]) -> Path:
        place = str(form.get("file", ""))
        if not place:
            raise UsageError("give the file a name that ends in .toml, such as my-line.toml")
        if place not in self.files() and not NAME.fullmatch(place):
            raise UsageError(
                f"file `{place[:80]}`: write a name of letters, digits, `-`, `_` and `.` that ends in .toml"
            )
        return self.folder / place


def mark_of(text: str) -> str:
    """By which a version of a file is known."""
    return hashlib.sha256(text.encode()).hexdigest()


def _ends_in(content: bytes) -> str:
    """How most lines of a file end, which pages do not tell."""
    return "\r\n" if 2 * content.count(b"\r\n") > content.count(b"\n") else "\n"


def _text(form: Mapping[str, Any]) -> str:
    text = form.get("text")
    if not isinstance(text, str):
        raise UsageError("the form has no `text`")
    return text if not text or text.endswith("\n") else f"{text}\n"


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}\.toml", re.ASCII)
"""A new file, which lies in the folder itself."""

MAX_FILES = 500
"""More nobody looks through; the others are edited elsewhere."""

FIRST = """\
# What is run, and how: the keys are explained below.
test = "rrul"
link = "cable-20-8"
queue = ["default", "htb rate 95% fq_codel"]

[phases]
idle = "2s"
load = "10s"
cooldown = "2s"
"""
"""What a new scenario begins as: a bloated line and its cure, in seconds."""
