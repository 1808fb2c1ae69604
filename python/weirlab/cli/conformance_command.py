"""`weir conformance`: queue disciplines held against recordings of real Linux."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.progress import track
from rich.text import Text

from weirlab import _native, reading
from weirlab.cli.options import argument, option
from weirlab.errors import UsageError, counted
from weirlab.report.tables import LOOK
from weirlab.ui import console
from weirlab.ui.table import Table
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Line:
    """The outcome of one recording: its name, a verdict of `VERDICTS`, and a remark."""

    name: str
    verdict: str
    remark: str


@click.command("conformance")
@argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(folder: Path, *, as_json: bool) -> None:
    """Replay recordings of real Linux queue disciplines through ours, a row of a table each.

    \b
    weir conformance vectors/linux-6.12

    An exact recording must agree packet by packet: order, drops, marks, times within 3 ns. Of one that
    depends on random numbers no test may tell 60 runs of ours from those of Linux, at a significance of
    0.001: what each flow and class got, lost and waited, and the share dropped, the share marked and the mean
    delay of other seeds.
    The file `exceptions.json` in DIR holds the names of recordings that differ on purpose, each with its
    reason.

    Exit code 1 if a recording is not met.
    """  # noqa: D301 - \b keeps click from folding the examples
    files = sorted(path for path in folder.glob("*.json") if path.name != EXCEPTIONS)
    if not files:
        raise UsageError(f"{folder} has no recordings: files NAME.json, whose format {FORMAT} tells")
    exceptions = _exceptions(folder / EXCEPTIONS)
    lines = [
        _judge(path, exceptions)
        for path in track(files, "Replaying recordings", console=messages, transient=True, disable=as_json)
    ]
    unused = exceptions.keys() - {path.stem for path in files}
    if unused:
        raise UsageError(f"{folder / EXCEPTIONS} excepts `{min(unused)}`, of which there is no recording")
    counts = Counter(line.verdict for line in lines)
    if as_json:
        click.echo(json.dumps({"counts": counts, "recordings": [asdict(line) for line in lines]}, indent=2))
    else:
        console.print(verdict_table(lines))
    if counts[FAILS]:
        raise SystemExit(1)


def _exceptions(path: Path) -> Mapping[str, str]:
    if not path.exists():
        return {}
    try:
        reasons = json.loads(reading.read_text(path, reading.MAX_TOML_BYTES))
    except (reading.Unreadable, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(reasons, dict) or not all(isinstance(reason, str) for reason in reasons.values()):
        raise UsageError(f"{path} must be a JSON object of names and reasons")
    return reasons


def _judge(path: Path, exceptions: Mapping[str, str]) -> Line:
    try:
        _, verdict, remark = _native.conformance(reading.read_text(path, reading.MAX_RECORDING_BYTES))
    except (reading.Unreadable, _native.NativeError) as error:
        verdict, remark = FAILS, str(error)
    if path.stem in exceptions:
        if verdict == FAILS:
            verdict, remark = EXCEPTED, exceptions[path.stem]
        else:
            verdict, remark = FAILS, f"it agrees, and yet {EXCEPTIONS} excepts it"
    return Line(path.stem, verdict, remark)


def verdict_table(lines: Sequence[Line]) -> Table:
    """The verdicts: how many there are of each, and that of each recording."""
    counts = Counter(line.verdict for line in lines)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    table = Table(title=f"{counted(len(lines), 'recording')}: {said}", title_justify="left", **LOOK)
    table.add_column("verdict", no_wrap=True)
    table.add_column("recording", overflow="fold")
    table.add_column("remark", overflow="fold")
    for line in lines:
        table.add_row(Text(line.verdict, style=STYLES.get(line.verdict, "")), line.name, line.remark)
    return table


EXCEPTIONS: Final = "exceptions.json"
EXCEPTED: Final = "excepted"
FAILS: Final = "fails"
VERDICTS: Final = ("exact", "agrees", EXCEPTED, FAILS)
STYLES: Final = {"exact": "green", "agrees": "green", FAILS: "bold red"}

FORMAT: Final = "vectors/linux-6.12/README.md"
"""Where the format of a recording stands, in the source."""
