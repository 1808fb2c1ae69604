"""A sweep as one file that can be cited: plans, versions, what ran where, and every row with its scenario.

The file is gzip of JSON, a line a thing: what it is of, plans, recordings in pieces, configurations, rows,
and last the SHA-256 of all lines before. It is read line by line, so that memory does not grow with it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import platform
import sys
import zlib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab import _native
from weirlab.errors import RecordError, UsageError
from weirlab.reading import MAX_TRACE_BYTES
from weirlab.scenario.recordings import without_folders
from weirlab.sweeps.plan import plan_of
from weirlab.sweeps.runs import WORLD, build, sweep_of, version
from weirlab.writing import replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from weirlab.sweeps.runs import Run, Sweep
    from weirlab.sweeps.store import Store

Line = dict[str, Any]
"""A line of a bundle. Its first key says what it is: `kind`, `plan`, `trace`, `configuration`, `row` or
`sha256`."""


def write_bundle(store: Store, target: Path) -> Line:
    """Writes the rows of a store that this version of Weir's simulator made by its plans as a bundle.

    Args:
        store: the store.
        target: the file.

    Returns:
        The first line of the bundle, with `left_out`: how many rows of the store are not in it, since another
        version or another world made them or no plan of the store asks for them.

    Raises:
        UsageError: if nothing is there, the store has no row that can be bundled, or one of its plans cannot
            be read here any more, as where a recording that it names is gone.
        WriteError: if it cannot be written.
    """
    if target.exists():
        raise UsageError(f"`{target}` is there already: choose another name")
    plans = [
        plan
        for plan in store.kept_plans()
        if plan["weir"] == version() and plan["plan"]["sweep"].get("world", WORLD) == WORLD
    ]
    runs: dict[str, Run] = {}
    traces: dict[str, str] = {}
    # One plan may lie at several places, on several machines: of these those count that are here.
    said = list({json.dumps(plan["plan"], sort_keys=True): plan["plan"] for plan in plans}.values())
    for number, one in enumerate(said, 1):
        files = [plan.get("file") for plan in plans if plan["plan"] == one]
        sweeps = _read_here(one, files, f"plan {number} of {len(said)} of `{store.name}`")
        runs |= {run.key: run for sweep in sweeps for run in sweep.runs}
        traces |= {digest: text for sweep in sweeps for digest, text in sweep.traces.items()}
    found = store.collected()
    rows = found.filter(pl.col("run").is_in(list(runs))).sort("run")
    if rows.is_empty():
        raise UsageError(
            f"`{store.name}` has no rows of its plans by the simulator of Weir {version()}, and a bundle has "
            "no others: run a plan in the world sim first"
        )
    head = _head(rows, len(said))
    with_rows = {key: runs[key] for key in rows["run"]}
    used = {digest for run in with_rows.values() for digest in run.configuration.traces.values()}
    lines = _lines(head, said, {digest: traces[digest] for digest in sorted(used)}, with_rows, rows)
    replaced(target, lambda path: _write(path, lines))
    return {**head, "left_out": found.height - rows.height}


def _read_here(plan: Line, files: Iterable[str | None], name: str) -> list[Sweep]:
    """The runs of a plan with what lies beside each of these files.

    Raises:
        UsageError: if it can be read with none of them.
    """
    found, why = [], None
    for file in files:
        try:
            found.append(sweep_of(plan_of(plan, file)))
        except UsageError as error:
            why = error
    if not found:
        raise UsageError(f"{name} cannot be read here any more: {why}") from why
    return found


def _head(rows: pl.DataFrame, plans: int) -> Line:
    return {
        "kind": KIND,
        "format": FORMAT,
        "weir": version(),
        "build": build(),
        "native_sha256": hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest(),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "packages": packages(),
        "plans": plans,
        "rows": rows.height,
        "failed": rows["error"].is_not_null().sum(),
    }


def packages() -> dict[str, dict[str, str]]:
    """The packages that Weir needs, as they are installed here: version, and digest of the list of files.

    That list (`RECORD`) has the digest of every file of a package, so that its own stands for all of them.
    """
    found: dict[str, dict[str, str]] = {}
    left = ["weirlab"]
    while left:
        name = left.pop()
        try:
            one = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        said = one.metadata["Name"].lower().replace("_", "-").replace(".", "-")
        if said in found:
            continue
        files = one.read_text("RECORD") or ""
        found[said] = {"version": one.version, "sha256": hashlib.sha256(files.encode()).hexdigest()}
        # Of an extra and of another platform where it is installed; a package that is missing is passed over.
        left += [_bare(need) for need in one.requires or [] if "extra ==" not in need]
    return dict(sorted(found.items()))


def _bare(need: str) -> str:
    """The name of a package in a requirement such as `numpy>=2.2; python_version > '3.10'`."""
    end = next((n for n, sign in enumerate(need) if not (sign.isalnum() or sign in "-_.")), len(need))
    return need[:end]


def _lines(
    head: Line, plans: list[Line], traces: dict[str, str], runs: dict[str, Run], rows: pl.DataFrame
) -> Iterator[Line]:
    yield head
    yield from ({"plan": plan} for plan in plans)
    for digest, text in traces.items():
        pieces = range(0, max(1, len(text)), PIECE_CHARS)
        yield from ({"trace": digest, "text": text[start : start + PIECE_CHARS]} for start in pieces)
    numbers: dict[int, int] = {}
    for run in runs.values():
        if id(run.configuration) not in numbers:
            numbers[id(run.configuration)] = len(numbers)
            said, traces = without_folders(
                json.loads(zlib.decompress(run.configuration.packed)), run.configuration.traces
            )
            yield {"configuration": numbers[id(run.configuration)], **said, "traces": traces}
    for row in rows.iter_rows(named=True):
        said = {name: value for name, value in row.items() if value is not None}
        yield {"row": said, "of": numbers[id(runs[row["run"]].configuration)]}


def _write(path: Path, lines: Iterable[Line]) -> None:
    digest = hashlib.sha256()
    # Without name and time of the file: the same bundle is the same bytes.
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        for line in lines:
            text = (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode()
            if len(text) > MAX_LINE_BYTES or ("row" in line and len(text) > MAX_ROW_BYTES):
                raise UsageError(f"a {next(iter(line))} of {len(text)} bytes is too long for a bundle")
            digest.update(text)
            packed.write(text)
        packed.write((json.dumps({"sha256": digest.hexdigest()}) + "\n").encode())


def lines_of(file: BinaryIO, name: str) -> Iterator[tuple[Line, int]]:
    """The lines of a bundle and their lengths in bytes, the first and the last apart, checked on the way.

    What is read is whole only when the last of them has been taken.

    Args:
        file: the file, read from its beginning.
        name: what a message calls it.

    Raises:
        RecordError: if it is no bundle, one of another version, truncated, or not as it was written.
    """
    file.seek(0)
    digest = hashlib.sha256()
    begun = False
    with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
        while text := _line(unpacked, name):
            line = _read(text, name)
            if not begun:
                check_head(line, name)
                begun = True
            elif "sha256" in line:
                if line["sha256"] != digest.hexdigest():
                    raise RecordError(f"`{name}` is not as it was written: its SHA-256 is another")
                if _line(unpacked, name):
                    raise RecordError(f"`{name}` is not as it was written: something follows its end")
                return
            else:
                yield line, len(text)
            digest.update(text)
    if not begun:
        raise RecordError(f"`{name}` is no bundle of Weir: it is empty")
    raise RecordError(f"`{name}` is truncated: its last line is missing")


def head_of(file: BinaryIO, name: str) -> Line:
    """The first line of a bundle.

    Raises:
        RecordError: if it is none of this version of Weir.
    """
    file.seek(0)
    with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
        text = _line(unpacked, name)
    if not text:
        raise RecordError(f"`{name}` is no bundle of Weir: it is empty")
    head = _read(text, name)
    check_head(head, name)
    return head


def check_head(head: Line, name: str) -> None:
    """Refuses what is no bundle, and one of another version of its format or of Weir."""
    if head.get("kind") != KIND:
        raise RecordError(f"`{name}` is no bundle of Weir: its first line does not say so")
    if head.get("format") != FORMAT:
        raise RecordError(f"`{name}` has format {head.get('format')}; this version of Weir reads {FORMAT}")
    if head.get("weir") != version():
        raise RecordError(
            f"`{name}` was made by Weir {head.get('weir')}, this is {version()}: install that version to "
            "check it"
        )


def _line(unpacked: gzip.GzipFile, name: str) -> bytes:
    try:
        text = unpacked.readline(MAX_LINE_BYTES + 1)
    except gzip.BadGzipFile as error:
        raise RecordError(f"`{name}` is no bundle of Weir, or damaged: {error}") from error
    except EOFError as error:
        raise RecordError(f"`{name}` is truncated: it ends in the middle") from error
    except zlib.error as error:
        raise RecordError(f"`{name}` is damaged: {error}") from error
    if len(text) > MAX_LINE_BYTES:
        raise RecordError(f"`{name}` has a line of more than {MAX_LINE_BYTES >> 20} MiB, which no bundle has")
    return text


def _read(text: bytes, name: str) -> Line:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"`{name}` is no bundle of Weir, or damaged: a line is no JSON") from error
    if not isinstance(found, dict):
        raise RecordError(f"`{name}` is no bundle of Weir, or damaged: a line is no object")
    return found


KIND = "weir bundle"
"""What the first line says that the file is."""

FORMAT = 1
"""Version of the format of bundles."""

MAX_LINE_BYTES = 4 << 20
"""Bytes of a line: a plan of 10 000 values takes less, and 4 million signs of a recording are in pieces."""

MAX_ROW_BYTES = 64 << 10
"""Bytes of a row's line, of which a sample holds thousands; a row of today has 2 kB."""

PIECE_CHARS = 1 << 19
"""Signs of a recording in a line."""

MAX_TEXT_CHARS = MAX_TRACE_BYTES
"""Signs of a recording."""
