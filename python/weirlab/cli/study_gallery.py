"""`weir study NAME` for the experiments of the gallery, and `weir study all`."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.api import run_all
from weirlab.errors import Interrupted
from weirlab.plots import KINDS, draw
from weirlab.record import set_ups
from weirlab.report import gallery as report
from weirlab.stats import load_window_ns
from weirlab.studies import gallery
from weirlab.ui import RunProgress, console, note
from weirlab.worlds import world_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record


def run(  # noqa: PLR0913 - what was said on the line
    names: Sequence[str],
    *,
    world: str,
    repeat: int | None,
    jobs: int | None,
    out: Path | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Runs experiments of the gallery and prints what came of them; charts and a page go to `out`."""
    experiments = [gallery.load(name) for name in names]
    outcomes, sections = [], ["# Experiments of others, repeated\n"]
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-study-")))
        for experiment in experiments:
            records = _records(
                experiment, world, repeat, jobs, folder / experiment.name, quiet=as_json or as_markdown
            )
            one = gallery.outcome(experiment, records, world=world)
            outcomes.append(one)
            charts = _charts(experiment, records, out / experiment.name) if out else []
            sections.append(report.markdown(one, [chart.relative_to(folder) for chart in charts]) + "\n")
            if not as_json and not as_markdown:
                console.print(report.figures_table(one))
                console.print(report.statements_table(one))
    if as_json:
        click.echo(json.dumps([one.as_dict() for one in outcomes], indent=2))
    elif as_markdown:
        click.echo("\n".join(sections))
    else:
        console.print(report.verdict(outcomes))
    if out:
        (out / "gallery.md").write_text("\n".join(sections), encoding="utf-8")
        note(f"records, charts and gallery.md in {out}")


def _records(  # noqa: PLR0913 - what was said on the line
    experiment: gallery.Experiment,
    world: str,
    repeat: int | None,
    jobs: int | None,
    folder: Path,
    *,
    quiet: bool,
) -> list[Record]:
    runs = gallery.runs_of(experiment, repeat=repeat)
    with RunProgress(runs, title=experiment.title, quiet=quiet) as progress:
        records = run_all(runs, world_named(world), folder / "records", jobs=jobs, watcher=progress)
    if len(records) < len(runs) or not all(record.manifest.complete for record in records):
        raise Interrupted("interrupted: a study is only worth something as a whole")
    return records


def _charts(experiment: gallery.Experiment, records: Sequence[Record], folder: Path) -> list[Path]:
    """The experiment's charts: of all records, or of the first run of each set-up where a chart takes few."""
    drawn = []
    firsts = [one.records[0] for one in set_ups(records)]
    for kind in experiment.charts:
        most = KINDS[kind].most
        if most == 1:
            for number, record in enumerate(firsts, start=1):
                target = folder / f"{kind}-{number}.png"
                drawn.append(draw(kind, [record], target, title=experiment.title, whole=records))
            continue
        chosen = firsts if kind in ONE_RUN_EACH else list(records)
        span = _middle(chosen[0]) if kind == "windows" else None
        target = folder / f"{kind}.png"
        drawn.append(draw(kind, chosen, target, title=experiment.title, whole=records, span_s=span))
    return drawn


def _middle(record: Record) -> tuple[float, float]:
    """The seconds of a run in which the windows of its flows are drawn: from the middle of the load on."""
    start, end = load_window_ns(record)
    middle = (start + end) / 2e9
    return middle, min(middle + WINDOWS_S, end / 1e9)


WINDOWS_S = 20.0
"""Windows of many flows over a whole minute are a thicket."""

ONE_RUN_EACH = frozenset({"ping", "windows"})
"""Charts that draw a row for each record."""
