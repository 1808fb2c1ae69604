"""Notes of the user on a run: `--note` and `--tag`, which go into the record's manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weirlab.cli.options import option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.scenario import ResolvedRun
    from weirlab.scenario.models import NoteSpec


def note_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which a run is found again."""
    for one in (
        option(
            "--tag", "tags", multiple=True, metavar="NAME", help="A word for the record; may be repeated."
        ),
        option("--note", metavar="TEXT", help="What to remember of the run, for the record."),
    ):
        command = one(command)
    return command


def noted(run: ResolvedRun, words: dict[str, Any]) -> ResolvedRun:
    """`run` with what was said of it.

    Raises:
        UsageError: if the note is too long, or a tag is no word.
    """
    if not words["note"] and not words["tags"]:
        return run
    said = checked(words["note"] or "", words["tags"])
    return replace(run, note=said.note or run.note, tags=(*run.tags, *said.tags))


def checked(text: str, tags: Sequence[str]) -> NoteSpec:
    """The note and the tags that the options say.

    Raises:
        UsageError: if the note is too long, or a tag is no word.
    """
    from weirlab.scenario.catalogue import check  # noqa: PLC0415 - loads pydantic
    from weirlab.scenario.models import NoteSpec  # noqa: PLC0415

    names = {"note": "--note", "tags": "--tag"} | {f"tags.{place}": "--tag" for place in range(len(tags))}
    return check(NoteSpec, {"note": text, "tags": list(tags)}, "command line", names=names)
