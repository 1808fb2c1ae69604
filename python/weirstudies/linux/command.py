"""`weir study linux`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weirlab.ui import console, note
from weirstudies.command import (
    by_label,
    cluster_options,
    is_quiet,
    only_option,
    out_option,
    print_json,
    printing_options,
    repeat_option,
)
from weirstudies.linux import study
from weirstudies.linux.tables import by_shape, markdown, study_table, verdict
from weirstudies.running import manner, records_of

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    "linux",
    short_help="The simulator beside real Linux 6.12: its own TCP and queues, the same configurations.",
)
@repeat_option("as Linux: 10, of a parking lot 5")
@only_option("Only experiments of this pattern, such as A_codel or 'A_westwood*'.")
@out_option("Folder to keep the records in; it goes on with what is there.  [default: none]")
@cluster_options
@printing_options
def command(  # noqa: PLR0913 - one word each on the command line
    *,
    repeat: int | None,
    only: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    cluster: int | None,
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
        for run in study.runs_of(
            experiment, reference.families[experiment.family], seeds=repeat or experiment.seeds
        )
    ]
    with manner(out, jobs=jobs, scheduler=scheduler, cluster=cluster, quiet=quiet) as how:
        records = by_label(records_of(runs, "sim", how, title="Beside Linux"))
        results = [
            study.result(one, reference.families[one.family], records.get(one.name, []))
            for one in experiments
        ]
    if as_json:
        print_json([one.as_dict() for one in results])
    elif as_markdown:
        click.echo("\n\n".join(map(markdown, by_shape(results))))
    else:
        for part in by_shape(results):
            console.print(study_table(part, kernel=reference.kernel))
        console.print(verdict(results))
        if out is not None:
            note(f"records in {out}")
