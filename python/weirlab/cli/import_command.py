"""`weir import`: data files of other tools as records."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import click

from weirlab.cli.options import argument, option
from weirlab.errors import UsageError, WeirError, of_several
from weirlab.flent import import_flent
from weirlab.record import Record, pack
from weirlab.ui import console, warn
from weirlab.writing import replaced


@click.command("import")
@argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where the record goes: a folder, or a .weir file; of several files a folder for all of them.  "
    "[default: the file's name without its suffix]",
)
def command(files: tuple[Path, ...], *, out: Path | None) -> None:
    """Make records of data files of Flent.

    \b
    weir import rrul-2026-06-16T093000.000000.before.flent.gz --out before
    weir import archive/*.flent.gz --out archive-records
    weir compare archive-records

    Format versions 1 to 4 are read, packed by gzip or bzip2 or plain. `weir show`, `compare`, `plot` and
    `export` take the record. What the file does not tell is unknown in the record, never 0.
    """  # noqa: D301 - \b keeps click from folding the examples
    targets = _targets(files, out)
    errors: list[WeirError] = []
    for file, target in zip(files, targets, strict=True):
        try:
            _import(file, target)
        except WeirError as error:
            errors.append(error)
            if len(files) > 1:
                which = "" if f"`{file}`" in str(error) else f"`{file}`: "
                click.echo(f"weir: {which}{error}", err=True)
    if len(files) == 1 and errors:
        raise errors[0]
    if errors:
        others = "; the others are" if len(errors) < len(files) else ""
        raise of_several(errors, f"{len(errors)} of {len(files)} files cannot be imported{others}")


def _targets(files: tuple[Path, ...], out: Path | None) -> list[Path]:
    """Where the record of each file goes.

    Raises:
        UsageError: if two would go to one place, something is there already, or one is a folder.
    """
    for file in files:
        if file.is_dir():
            raise UsageError(f"`{file}` is a folder: name the files in it that are to be imported")
    names = [re.sub(r"(\.flent|\.flnt|\.json)?(\.gz|\.bz2)?$", "", file.name) or file.name for file in files]
    if len(files) == 1:
        targets = [out or Path(names[0])]
    elif out is not None and out.suffix == ".weir":
        raise UsageError(f"--out {out}: a .weir file holds one record, not {len(files)}: name a folder")
    else:
        targets = [(out or Path()) / name for name in names]
    for place, target in enumerate(targets):
        if target in targets[:place]:
            raise UsageError(f"two files would become `{target}`: import them apart, each with its own --out")
        if target.exists():
            raise UsageError(f"`{target}` exists: choose another name with --out, or take it away first")
    return targets


def _import(file: Path, target: Path) -> None:
    if target.suffix == ".weir":
        with tempfile.TemporaryDirectory() as place:
            record = import_flent(file, Path(place) / "record")
            replaced(target, lambda part: pack(record, part))
            _tell(record, target)
    else:
        _tell(import_flent(file, target), target)


def _tell(record: Record, target: Path) -> None:
    console.print(str(target), soft_wrap=True)
    manifest = record.manifest
    left_out = manifest.imported.left_out if manifest.imported else {}
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    for reason, names in reasons.items():
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        warn(f"left out: {', '.join(names[:MAX_NAMED])}{more}: {reason}")


MAX_NAMED = 4
"""Series that are named in one line."""
