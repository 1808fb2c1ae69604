"""`weir run`: runs a test or scenario and shows what came of it."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.api import run_all
from weirlab.cli import completion
from weirlab.cli.notes import note_options, noted
from weirlab.cli.options import OneOf, Whole, argument, elsewhere, option
from weirlab.cli.repeating import repeats, run_until
from weirlab.cli.scenario_words import naming_options, scenario_options, secret_of, written
from weirlab.cli.verdicts import remove_junit, rules_of
from weirlab.errors import Interrupted, UsageError
from weirlab.loading import in_one_thread, uncollected
from weirlab.scenario.resolving import remarks, resolve
from weirlab.ui import RunProgress
from weirlab.worlds import datapaths, world_named, world_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.stats.repetition import Until
    from weirlab.worlds import Datapath, World


@click.command("run")
@argument("what", metavar="SCENARIO|TEST", shell_complete=completion.tests)
@scenario_options
@note_options
@option("--world", type=OneOf(world_names()), default="sim", show_default=True)
@option(
    "--datapath",
    type=OneOf(datapaths()),
    help="Who has the queues and lines of the worlds lab and kernel: Weir or the kernel's own disciplines.  "
    "[default: userspace, in the world kernel kernel]",
)
@option(
    "--host",
    "hosts",
    multiple=True,
    help="Server of the world net, on which `weir serve` runs: a name or address, or one of IPv4 and one of "
    "IPv6 with a comma between. Of a test with several servers once for each, in its order.",
)
@option(
    "--auth",
    type=click.Path(path_type=Path),
    help="File with the secret of the servers that ask for one.",
)
@elsewhere(
    "--path",
    "a scenario has one path; a client with several is a lab for programs: `weir lab exec --path NAME=LINK`",
)
@option("--repeat", type=Whole(min=1), help="Runs of each configuration, each its own seed.")
@option("--out", type=click.Path(path_type=Path), help="Folder for records and charts.")
@option("--jobs", type=Whole(min=1), help="Runs at once.  [default: all processors]")
@option(
    "--assert",
    "assertions",
    multiple=True,
    metavar="ASSERTION",
    help="What must hold for every run, beside what the scenario asserts; exit code 1 if not. Such as "
    "'latency.p99 < latency.median[idle] + 10ms'.",
)
@option(
    "--assert-file",
    type=click.Path(path_type=Path),
    help="File of assertions, one a line; what stands behind # is a remark.",
)
@option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Records of an earlier run, for assertions such as 'latency.p95 not worse than baseline by 2ms'.",
)
@option(
    "--junit", type=click.Path(path_type=Path), help="Also write what became of the assertions as JUnit XML."
)
@option(
    "--until",
    metavar="FIGURE+-WIDTH",
    help="Repeat until the 95 % interval of each configuration is that narrow, such as 'latency.p95 +-5%'.",
)
@option("--max-repeat", type=Whole(min=1), help="Repetitions at most, with --until.  [default: 30]")
@option("--charts/--no-charts", default=True, show_default=True, help="Draw charts.")
@option(
    "--open", "show", is_flag=True, help="Also write report.html into the folder and open it in a browser."
)
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    what: str,
    *,
    out: Path | None,
    jobs: int | None,
    charts: bool,
    show: bool,
    as_json: bool,
    world: str,
    datapath: Datapath | None,
    assertions: tuple[str, ...],
    assert_file: Path | None,
    baseline: Path | None,
    junit: Path | None,
    until: str | None,
    max_repeat: int | None,
    hosts: tuple[str, ...],
    auth: Path | None,
    **words: Any,
) -> None:
    """Run a test (`weir list tests`) or a scenario file, once for each configuration that is compared.

    \b
    weir run rrul --link cable-20-8 --queue pfifo_fast --queue 'htb rate 95% fq_codel'
    weir run tcp_upload --link vdsl-100-40 --queue default --queue 'htb rate 95% fq_codel' --repeat 10
    weir run my-scenario.toml --out results

    The records stay in the folder given by --out; `weir show`, `compare` and `plot` read them.
    """  # noqa: D301 - \b keeps click from folding the examples
    if junit is not None:
        remove_junit(junit)
    ip = None if words["ip"] is None or world != "net" else int(words["ip"])
    place = world_named(world, datapath, hosts=hosts, secret=secret_of(auth), ip=ip)
    words["repeat"] = repeats(until, max_repeat, words["repeat"])
    wish = None if until is None else _wish(until)
    scenario = _scenario(what, words, hosts)
    rules = rules_of([*scenario.get("assert", ()), *assertions], assert_file, baseline)
    runs = [noted(one, words) for one in _runs(scenario, words)]
    rules.check(runs, world)
    folder = out or Path(f"weir-{runs[0].test_part.words['name']}-{time.strftime('%Y%m%d-%H%M%S')}")
    records = _carried_out(runs, place, folder, wish, jobs=jobs, quiet=as_json)
    whole = _is_whole(records, len(records) if wish else len(runs))
    verdicts = rules.verdicts(records, whole=whole)
    shown = _what_shows()
    shown.show(records, verdicts, folder, charts=charts, as_json=as_json)
    if show:
        shown.open_page(records, folder)
    early = "interrupted: the figures are those of what was measured until then"
    shown.judge(verdicts, junit, None if whole else Interrupted(early))


def _what_shows() -> ModuleType:
    """The module that shows what came of runs; no run waits for what it needs."""
    with uncollected():
        return import_module("weirlab.cli.run_shown")


def _wish(until: str) -> Until:
    from weirlab.stats.repetition import Until  # noqa: PLC0415 - only with --until

    return Until(until)


def _carried_out(  # noqa: PLR0913 - what is run, where, and how often
    runs: list[ResolvedRun], place: World, folder: Path, wish: Until | None, *, jobs: int | None, quiet: bool
) -> list[Record]:
    if wish is not None:
        return run_until(runs, place, folder, wish, jobs=jobs, quiet=quiet)
    with RunProgress(runs, quiet=quiet) as progress:
        # What is measured on a real clock is not disturbed.
        if place.name != "sim":
            return run_all(runs, place, folder, jobs=jobs, watcher=progress)
        with in_one_thread():
            return run_all(runs, place, folder, jobs=jobs, watcher=progress, meanwhile=_what_shows)


def _is_whole(records: list[Record], expected: int) -> bool:
    """Whether there are so many records, all of them of runs that came to their end."""
    if not records:
        raise Interrupted("interrupted before anything was measured")
    return len(records) == expected and all(record.manifest.complete for record in records)


def _scenario(what: str, words: dict[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """The scenario as its keys; over a real path it has no link of its own."""
    if not hosts:
        return written(what, words)
    if words["links"]:
        there = ", ".join(hosts)
        raise UsageError(f"link `{words['links'][0]}`: the world net measures the path to `{there}` as it is")
    from weirlab.worlds.net import path_to  # noqa: PLC0415 - only over a real path

    return written(what, words, link=path_to(*hosts))


def _runs(scenario: Mapping[str, Any], words: dict[str, Any]) -> list[ResolvedRun]:
    """The runs; says what is compared in vain."""
    for text in remarks(scenario):
        from weirlab.ui import note  # noqa: PLC0415 - loads Rich, which no run waits for

        note(text)
    with naming_options(words):
        return resolve(scenario)
