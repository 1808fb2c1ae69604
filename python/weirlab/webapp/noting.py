"""Notes and tags from a form: what is kept, and the command that does it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab.errors import UsageError

__all__ = ["Noting", "noting"]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirlab.record import Record
    from weirlab.webapp.library import Library


@dataclass(frozen=True)
class Noting:
    """Note and tags that a form gives to records.

    Attributes:
        records: the records.
        note: the note in place of theirs; None leaves them as they are.
        added, removed: tags.
    """

    records: list[Record]
    note: str | None
    added: list[str]
    removed: list[str]

    @property
    def command(self) -> str:
        """The command that does it; of nothing that changes the one that prints what is there."""
        words = ["weir", "note", *(str(one.path) for one in self.records)]
        if self.note is not None:
            words += ["--note", self.note] if self.note else ["--no-note"]
        for option, tags in (("--tag", self.added), ("--untag", self.removed)):
            for tag in tags:
                words += [option, tag]
        return shlex.join(words)

    def keep(self) -> None:
        """Keeps it.

        Raises:
            UsageError: if the note is too long, or a tag is no word.
            WriteError: if it cannot be written.
        """
        for record in self.records:
            old = record.manifest
            tags = [tag for tag in old.tags if tag not in self.removed]
            record.annotate(old.note if self.note is None else self.note, [*tags, *self.added])


def noting(form: Mapping[str, Any], library: Library) -> Noting:
    """Reads a form: its note and tags are those of one record, or are added to those of several.

    Raises:
        UsageError: if the form is none, or a record none of the list's.
    """
    places, note, tags = form.get("records"), form.get("note"), form.get("tags")
    if (
        not isinstance(places, list)
        or not isinstance(note, str)
        or not isinstance(tags, list)
        or not all(isinstance(one, str) for one in [*places, *tags])
    ):
        raise UsageError("the form needs `records`, `note` and `tags`")
    records = library.opened(places)
    if len(records) > 1:
        return Noting(records, note or None, tags, [])
    old = records[0].manifest
    return Noting(
        records,
        None if note == old.note else note,
        [one for one in tags if one not in old.tags],
        [one for one in old.tags if one not in tags],
    )
