"""`weir note`: a note and tags for records that are there."""

from __future__ import annotations

from pathlib import Path

import click

from weirlab.cli.notes import checked
from weirlab.cli.options import argument, option
from weirlab.cli.records import readable, told
from weirlab.errors import UsageError
from weirlab.ui import console


@click.command("note")
@argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option("--note", "text", metavar="TEXT", help="What to remember, in place of the note that is there.")
@option("--no-note", "without", is_flag=True, help="Take the note away.")
@option("--tag", "tags", multiple=True, metavar="NAME", help="A word to add; may be repeated.")
@option("--untag", "removed", multiple=True, metavar="NAME", help="A word to take away; may be repeated.")
def command(
    paths: tuple[Path, ...],
    *,
    text: str | None,
    without: bool,
    tags: tuple[str, ...],
    removed: tuple[str, ...],
) -> None:
    """Keep a note and tags for records, or print those that they have.

    \b
    weir note out/01-fq-codel --note 'with the new router' --tag router --tag kitchen
    weir note out/01-fq-codel --untag kitchen
    weir note out

    RECORD is the folder of a record, a .weir file, or a folder with records below it. What is noted stands in
    a file of its own, notes.json in the folder or NAME.weir.notes.json beside the archive: the record itself
    stays as it was measured. `weir show`, `weir report` and `weir ui` show it.
    """  # noqa: D301 - \b keeps click from folding the examples
    if text is not None and without:
        raise UsageError("--note and --no-note: leave one of them out")
    both = sorted({*tags} & {*removed})
    if both:
        raise UsageError(f"--tag {both[0]} and --untag {both[0]}: leave one of them out")
    checked(text or "", tags)

    def changed(note: str, kept: list[str]) -> tuple[str, list[str]]:
        return "" if without else text or note, [*(one for one in kept if one not in removed), *tags]

    with readable(paths, "noted") as records:
        for record in records:
            manifest = record.manifest
            for name in removed:
                if name not in manifest.tags:
                    raise UsageError(
                        f"--untag {name}: `{record.path}` has no such tag{_known(manifest.tags)}"
                    )
        for record in records:
            if text is not None or without or tags or removed:
                record.note_more(changed)
            console.print(f"{record.path}: {told(record) or 'nothing noted'}", markup=False, soft_wrap=True)


def _known(tags: list[str]) -> str:
    return f" (it has: {', '.join(tags)})" if tags else ""
