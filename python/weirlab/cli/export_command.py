"""`weir export`: records for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.capture import Packets
from weirlab.cli.options import OneOf, Whole, argument, option
from weirlab.cli.records import readable
from weirlab.errors import UsageError, of_several
from weirlab.export import FORMATS, NAMES, export, planned
from weirlab.flent.exporting import NotOfFlent, check_exportable
from weirlab.ui import console, waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.errors import WeirError
    from weirlab.record import Record


@click.command("export")
@argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write, by its suffix .weir, .flent.gz, .pcapng, .csv, .jsonl or .parquet; or a folder, "
    "with --format.",
)
@option("--format", "form", type=OneOf(FORMATS), help="Format of the files in a folder.")
@option("--flent", is_flag=True, help="The same as --format flent.")
@option(
    "--table",
    type=OneOf(NAMES),
    help="Which table as CSV, JSON lines or Parquet.  [default: runs; into a folder all that have a row]",
)
@option(
    "--hop",
    "hops",
    multiple=True,
    metavar="HOP",
    help="Hop at which packets are captured, such as up/modem.  [default: the slowest of each direction]",
)
@option(
    "--arrivals",
    is_flag=True,
    help="Capture packets as they arrive at the hop, those included that its queue drops, and not as they "
    "leave it.",
)
@option("--title", help="TITLE of a file for Flent.  [default: link and queue, or as it was imported]")
@option("--snaplen", type=Whole(min=1), help="Bytes to keep of each packet.  [default: all]")
def command(  # noqa: PLR0913 - one word each on the command line
    paths: tuple[Path, ...],
    *,
    out: Path,
    form: str | None,
    flent: bool,
    table: str | None,
    hops: tuple[str, ...],
    arrivals: bool,
    title: str | None,
    snaplen: int | None,
) -> None:
    """Write records for other programs: as .weir files, for Flent, for Wireshark, or as tidy tables.

    \b
    weir export out/01-fq-codel --out run.weir
    weir export out/01-fq-codel --out run.pcapng --hop up/modem
    weir export out --out figures.csv
    weir export out --out pings.parquet --table latency
    weir export out --out tables --format csv
    weir export out --out for-flent --flent

    A .weir file is the whole record in one file; `weir show`, `compare` and `plot` read it. A
    .flent.gz file is of Flent's format, version 4, for Flent itself: records of its tests can be written. A
    .pcapng file has the packets of a simulated run, which is made once more for that. The tables
    `runs`, `probes` and `flows` have figures, a row a run, probe or flow; round trips of a run are of the
    probes of which its increase is. All others have the samples, with the names of probes and flows. What is
    there already is never replaced.
    """  # noqa: D301 - \b keeps click from folding the examples
    if flent and form not in (None, "flent"):
        raise UsageError(f"--flent and --format {form}: leave one of them out")
    form = "flent" if flent else form
    wanted = Packets(hops=hops, arrivals=arrivals, snap_len=snaplen)
    packets = None if wanted == Packets() else wanted
    kind, alone = planned(out, form, table, packets, title=title)
    with readable(paths, "exported") as records:
        chosen, errors = _for_flent(records) if kind == "flent" and not alone else (records, [])
        with waiting(f"writing {out}", quiet=False):
            written = export(chosen, out, form, table, packets, title=title)
        for path in written:
            console.print(str(path), soft_wrap=True)
        if errors:
            count = f"{len(errors)} of {len(records)}"
            raise of_several(errors, f"{count} records cannot be written for Flent; the others are")


def _for_flent(records: Sequence[Record]) -> tuple[Sequence[Record], Sequence[WeirError]]:
    """Those that Flent has a test for, and why the others are none; that is told, in a line for each kind.

    Raises:
        UsageError: if it has none for any of them.
    """
    kept: list[Record] = []
    errors: list[NotOfFlent] = []
    for record in records:
        try:
            check_exportable(record)
            kept.append(record)
        except NotOfFlent as error:
            errors.append(error)
    if not kept and errors:
        raise errors[0]
    for why in dict.fromkeys(one.why for one in errors):
        paths = [f"`{one.path}`" for one in errors if one.why == why]
        rest = len(paths) - MAX_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        click.echo(f"weir: {why}: {', '.join(paths[:MAX_NAMED])}{more}", err=True)
    return kept, errors


MAX_NAMED = 3
"""More records of one fault are counted, not named."""
