"""`weir study linux`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weirlab.ui import console, note
from weirstudies.command import (
    by_label,
    carry_out,
    is_quiet,
    kept_in,
    only_option,
    out_option,
    print_json,
    printing_options,
    repeat_option,
)
from weirstudies.linux import study
from weirstudies.linux.tables import markdown, study_table, verdict

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    "linux",
    short_help="The simulator beside real Linux 6.12: its own TCP and queues, the same configurations.",
)
@repeat_option("10")
@only_option("Only this experiment, such as A_codel.")
@out_option("Folder to keep the records in.  [default: none]")
@printing_options
def command(  # noqa: PLR0913 - one word each on the command line
    *,
    repeat: int | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Hold the simulator against real Linux 6.12: its own TCP and queues, the same configurations.

    \b
    weir study linux
    weir study linux --only A_codel --repeat 1
    """  # noqa: D301 - \b keeps click from folding the examples
    quiet = is_quiet(as_json=as_json, as_markdown=as_markdown)
    reference = study.reference()
    experiments = study.chosen(only, of=reference)
    runs = [
        run
        for experiment in experiments
        if not study.missing(experiment)
        for run in study.runs_of(experiment, reference.families[experiment.family], seeds=repeat or 10)
    ]
    with kept_in(out) as folder:
        records = by_label(carry_out(runs, "sim", folder, jobs=jobs, quiet=quiet))
        results = [
            study.result(one, reference.families[one.family], records.get(one.name, []))
            for one in experiments
        ]
    if as_json:
        print_json([one.as_dict() for one in results])
    elif as_markdown:
        click.echo(markdown(results))
    else:
        console.print(study_table(results, kernel=reference.kernel))
        console.print(verdict(results))
        if out is not None:
            note(f"records in {out}")
