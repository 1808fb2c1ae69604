"""`weir study agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.report.agreement import agreement_verdict
from weirlab.ui import RunProgress, console, note, warn
from weirlab.worlds import SIDES
from weirstudies.agreement import study
from weirstudies.agreement.tables import matrix_markdown, matrix_table
from weirstudies.command import (
    is_quiet,
    lab_repeat_option,
    only_option,
    out_option,
    print_json,
    printing_options,
    repeat_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.scenario import ResolvedRun
    from weirlab.worlds import Side


@click.command(
    "agreement",
    short_help="The simulator beside the lab: 72 configurations of links, queues and TCPs, in real time.",
)
@repeat_option("5, in the simulator")
@lab_repeat_option
@only_option("Only configurations of this pattern, such as '20/8 20ms *'.")
@out_option("Folder of the records; it goes on with what is there.  [default: weir-agreement]")
@printing_options
def command(  # noqa: PLR0913 - one word each on the command line
    *,
    repeat: int | None,
    lab_repeat: int | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Hold the simulator against the lab: 72 configurations of links, queues and TCPs, in real time.

    \b
    weir study agreement --only '20/8 20ms * cubic *'
    """  # noqa: D301 - \b keeps click from folding the examples
    quiet = is_quiet(as_json=as_json, as_markdown=as_markdown)
    out = out or Path("weir-agreement")
    wanted = study.chosen(only)
    sim, lab = SIDES["sim"], SIDES["lab"]
    found = {}
    for side, runs in ((sim, repeat or sim.runs(1)), (lab, lab_repeat or 1)):

        def watching(todo: Sequence[ResolvedRun], side: Side = side) -> RunProgress:
            return RunProgress(todo, title=f"Agreement ({side.name})", quiet=quiet)

        found[side.name] = study.measure(wanted, side, out, repeat=runs, jobs=jobs, watching=watching)
    results = study.agreements(wanted, (sim, found["sim"]), (lab, found["lab"]))
    if as_json:
        print_json([one.as_dict() for one in results])
    elif as_markdown:
        click.echo(matrix_markdown(results))
    else:
        for text in dict.fromkeys(f"{one.name}: {text}" for one in results for text in one.warnings):
            warn(text)
        console.print(matrix_table(results))
        console.print(agreement_verdict(results))
        note(f"records in {out}")
