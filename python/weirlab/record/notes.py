"""Notes and tags that are written after a run, beside its data, which stays as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from weirlab.errors import RecordError, UsageError
from weirlab.writing import changing, replaced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record.store import Store
    from weirlab.scenario.models import NoteSpec


def keep_notes(store: Store, change: Callable[[], tuple[str, list[str]]]) -> None:
    """Keeps a note and tags for the record in `store`, in place of those that it had.

    Args:
        store: where the record lies.
        change: makes them of those that are there, which nobody else replaces meanwhile: free text of up to
            10000 letters, and up to 100 words, of which one that is given twice is kept once.

    Raises:
        UsageError: if the note is too long, or a tag is no word.
        WriteError: if it cannot be written.
    """
    with changing(store.notes_file.parent):
        note, tags = change()
        kept = _checked({"note": note, "tags": list(dict.fromkeys(tags))}, "note")
        text = json.dumps({"note": kept.note, "tags": kept.tags}, indent=2, ensure_ascii=False) + "\n"
        replaced(store.notes_file, lambda part: part.write_text(text, encoding="utf-8"))


def notes_in(store: Store, path: Path) -> NoteSpec | None:
    """The notes that were kept for the record at `path`; None if there are none.

    Raises:
        RecordError: if they cannot be read.
    """
    content = store.notes()
    if content is None:
        return None
    try:
        return _checked(json.loads(content), store.notes_file.name)
    except (ValueError, RecursionError, UsageError) as error:
        raise RecordError(f"`{path}`: its `{store.notes_file.name}` is damaged") from error


def _checked(written: object, where: str) -> NoteSpec:
    from weirlab.scenario.catalogue import check  # noqa: PLC0415 - most records have no notes
    from weirlab.scenario.models import NoteSpec  # noqa: PLC0415

    return check(NoteSpec, written, where)
