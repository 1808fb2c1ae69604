"""`weir study NAME` for each experiment of the gallery, and `weir study all`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from weirlab.plots import KINDS, Look, draw
from weirlab.record import configurations
from weirlab.stats import load_window_ns
from weirlab.ui import console, note
from weirstudies.command import (
    cluster_options,
    is_quiet,
    out_option,
    print_json,
    printing_options,
    repeat_option,
    world_option,
)
from weirstudies.gallery import page, study
from weirstudies.gallery.outcome import outcome
from weirstudies.judge import LOOKS
from weirstudies.running import manner, records_of
from weirstudies.statements import verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirlab.record import Record
    from weirstudies.gallery.outcome import Outcome
    from weirstudies.running import Manner


def _command(name: str, names: Sequence[str], summary: str) -> click.Command:
    """The command that runs the experiments of those names."""

    @click.command(name, short_help=summary, help=_help(name, summary))
    @world_option
    @repeat_option("5, 10, 20: until all statements are decided")
    @out_option("Folder for records, charts and a page; it goes on with what is there.  [default: none]")
    @cluster_options
    @printing_options
    def command(  # noqa: PLR0913 - one word each on the command line
        *,
        world: str,
        repeat: int | None,
        out: Path | None,
        jobs: int | None,
        scheduler: str | None,
        cluster: int | None,
        as_json: bool,
        as_markdown: bool,
    ) -> None:
        quiet = is_quiet(as_json=as_json, as_markdown=as_markdown)
        outcomes, sections = [], ["# Experiments of others, repeated\n"]
        with manner(out, jobs=jobs, scheduler=scheduler, cluster=cluster, quiet=quiet) as how:
            for experiment in (study.load(one) for one in names):
                one, records = _until_decided(
                    experiment,
                    world,
                    (repeat,) if repeat else LOOKS,
                    replace(how, folder=how.folder / experiment.name),
                )
                outcomes.append(one)
                charts = _charts(experiment, records, out / experiment.name) if out else []
                sections.append(
                    page.markdown(one, [chart.relative_to(how.folder) for chart in charts]) + "\n"
                )
                if not quiet:
                    console.print(page.figures_table(one))
                    console.print(page.statements_table(one))
        if as_json:
            print_json([one.as_dict() for one in outcomes])
        elif as_markdown:
            click.echo("\n".join(sections))
        else:
            console.print(verdict([judged.seen for one in outcomes for judged in one.judged]))
        if out:
            (out / "gallery.md").write_text("\n".join(sections), encoding="utf-8")
            note(f"records, charts and gallery.md in {out}")

    return command


def _until_decided(
    experiment: study.Experiment, world: str, looks: Sequence[int], how: Manner
) -> tuple[Outcome, list[Record]]:
    """Runs configurations until their statements are decided, at most as often as the last look says."""
    records: list[Record] = []
    labels: set[str] = {one.label for one in experiment.configurations}
    found = outcome(experiment, records, world=world, looks=looks)
    for count in looks:
        wanted = [
            run
            for run in study.runs_of(experiment, repeat=count, labels=labels)
            if (run.queue, run.seed) not in {(one.label, one.manifest.seed) for one in records}
        ]
        records += records_of(wanted, world, how, title=experiment.title)
        found = outcome(experiment, records, world=world, looks=looks)
        labels = found.wanting
        if not labels:
            break
    return found, records


def _help(name: str, summary: str) -> str:
    return f"{summary}\n\n\b\nweir study {name} --out {name}"


def _charts(experiment: study.Experiment, records: Sequence[Record], folder: Path) -> list[Path]:
    """Charts of all records, or of the first run of each configuration where a chart takes few.

    Configurations are called as tables and statements call them.
    """
    drawn = []
    labels = [one.label for one in experiment.configurations if one.drawn]
    records = [record for label in labels for record in records if record.label == label]
    look = Look(names=list(dict.fromkeys(record.label for record in records)))
    firsts = [one.records[0] for one in configurations(records)]
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
        title = experiment.title
        drawn.append(draw(kind, chosen, target, title=title, whole=records, span_s=span, look=look))
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

ALL = "The whole gallery of published experiments, one after the other."

everything = _command("all", study.NAMES, ALL)

_COMMANDS = {name: _command(name, [name], summary) for name, summary in study.names().items()}
"""A command for each file of the gallery."""


def __getattr__(name: str) -> click.Command:
    """The command of an experiment: an entry point writes `_` where its name has `-`."""
    found = _COMMANDS.get(name.replace("_", "-"))
    if found is None:
        raise AttributeError(f"the gallery has no experiment `{name}` (known: {', '.join(study.NAMES)})")
    return found
