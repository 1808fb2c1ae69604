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
        old_note: what a single record had when the form showed it.
        added, removed: tags.
    """

    records: list[Record]
    note: str | None
    old_note: str
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
            UsageError: if the note is too long, a tag is no word, or a note has changed meanwhile that this
                changes too.
            WriteError: if it cannot be written.
        """
        for record in self.records:
            record.note_more(self._changed)

    def check(self, there: str) -> None:
        """Checks that a record's note, which is `there`, is still the one that the form showed.

        Raises:
            UsageError: if it has changed meanwhile, and this changes it too.
        """
        if self.note is not None and len(self.records) == 1 and there not in {self.note, self.old_note}:
            raise UsageError(f"the note has changed meanwhile, to `{there}`: open this page anew")

    def _changed(self, note: str, tags: list[str]) -> tuple[str, list[str]]:
        self.check(note)
        kept = [tag for tag in tags if tag not in self.removed]
        return note if self.note is None else self.note, [*kept, *self.added]


def noting(form: Mapping[str, Any], library: Library) -> Noting:
    """Reads a form: `note` and `tags` as they are now, `old_note` and `old_tags` as it showed them at first.

    Only what was changed in the form changes in a record: somebody else may have noted more meanwhile. Of
    several records it shows none, so that the old ones are empty.

    Raises:
        UsageError: if the form is none, a record none of the list's, or a note has changed meanwhile that the
            form changes too.
    """
    places, note, old_note = form.get("records"), form.get("note"), form.get("old_note")
    tags, old_tags = form.get("tags"), form.get("old_tags")
    if (
        not isinstance(places, list)
        or not isinstance(note, str)
        or not isinstance(old_note, str)
        or not isinstance(tags, list)
        or not isinstance(old_tags, list)
        or not all(isinstance(one, str) for one in [*places, *tags, *old_tags])
    ):
        raise UsageError("the form needs `records`, `note`, `tags`, `old_note` and `old_tags`")
    records = library.opened(places)
    wanted = Noting(
        records,
        None if note == old_note else note,
        old_note,
        [one for one in tags if one not in old_tags],
        [one for one in old_tags if one not in tags],
    )
    wanted.check(records[0].manifest.note)
    return wanted
