"""`weir run`: runs a test or scenario and shows what came of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.api import run_all
from weirlab.errors import Interrupted, UsageError
from weirlab.report import charts_of, comparison_table, story
from weirlab.scenario import ScenarioSpec, load_scenario, resolve
from weirlab.scenario.catalogue import check
from weirlab.stats import compare
from weirlab.ui import RunProgress, console, note
from weirlab.worlds import world_named, world_names

if TYPE_CHECKING:
    from weirlab.record import Record

DEFAULT_LINK = "cable-20-8"


@click.command("run")
@click.argument("what", metavar="SCENARIO|TEST")
@click.option("--link", help=f"Link, by name or .toml file.  [default: {DEFAULT_LINK}]")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="TC",
    help="Queue set-up in tc syntax, such as 'htb rate 95% fq_codel'; repeat to compare several, the "
    "first is the baseline. `default` is the link's own.",
)
@click.option("--queue-up", metavar="TC", help="Queue for the upload direction only.")
@click.option("--queue-down", metavar="TC", help="Queue for the download direction only.")
@click.option("--world", type=click.Choice(world_names()), default="sim", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the first run.  [default: 1]")
@click.option("--repeat", type=click.IntRange(min=1), help="Runs of each set-up, each its own seed.")
@click.option("--set", "settings", multiple=True, metavar="NAME=N", help="A parameter of the test.")
@click.option("--idle", metavar="TIME", help="Length of the idle phase, such as 5s.")
@click.option("--load", metavar="TIME", help="Length of the load phase.")
@click.option("--cooldown", metavar="TIME", help="Length of the phase after the load.")
@click.option("--ping", metavar="TIME", help="Time between two pings of a train.  [default: 10ms]")
@click.option("--cc", metavar="NAME", help="Congestion control of all loads.  [default: cubic]")
@click.option("--ecn/--no-ecn", default=None, help="ECN of all loads.  [default: off]")
@click.option("--sack/--no-sack", default=None, help="SACK of all loads.  [default: on]")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for records and charts.")
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at once.  [default: all processors]")
@click.option("--charts/--no-charts", default=True, show_default=True, help="Draw charts.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    what: str,
    *,
    out: Path | None,
    jobs: int | None,
    charts: bool,
    as_json: bool,
    world: str,
    **words: Any,
) -> None:
    """Run a test (`weir list tests`) or a scenario file, once for each queue set-up.

    \b
    weir run rrul --link cable-20-8 --queue pfifo_fast --queue 'htb rate 95% fq_codel'
    weir run tcp_upload --link vdsl-100-40 --queue default --queue 'htb rate 95% fq_codel' --repeat 10
    weir run my-scenario.toml --out results

    The records stay in the folder given by --out; `weir show`, `compare` and `plot` read them.
    """  # noqa: D301 - \b keeps click from folding the examples
    runs = resolve(_spec(what, words))
    folder = out or Path(f"weir-{runs[0].test.name}-{time.strftime('%Y%m%d-%H%M%S')}")
    with RunProgress(runs, quiet=as_json) as progress:
        records = run_all(runs, world_named(world), folder, jobs=jobs, watcher=progress)
    if not records:
        raise Interrupted("interrupted before anything was measured")
    comparisons = compare(records)
    if as_json:
        figures = [comparison.as_dict() for comparison in comparisons]
        click.echo(json.dumps({"out": str(folder), "set_ups": figures}, indent=2))
    else:
        console.print(comparison_table(records, comparisons, width=console.width))
        console.print(story(comparisons))
    if charts:
        drawn = charts_of(records, folder / "charts", quiet=as_json)
        if not as_json:
            note(f"{len(records)} records in {folder}, {len(drawn)} charts in {folder / 'charts'}")
    elif not as_json:
        note(f"{len(records)} records in {folder}")
    _say_if_cut_short(records, expected=len(runs))


def _say_if_cut_short(records: list[Record], *, expected: int) -> None:
    if len(records) < expected or not all(record.manifest.complete for record in records):
        raise Interrupted("interrupted: the figures are those of what was measured until then")


def _spec(what: str, words: dict[str, Any]) -> ScenarioSpec:
    """The scenario in the file `what`, or the test of that name, with what was given on the line."""
    if what.endswith(".toml") and _is_scenario(Path(what)):
        base = load_scenario(Path(what)).model_dump(exclude_unset=True, by_alias=True)
    else:
        base = {"test": what, "link": DEFAULT_LINK}
    return check(ScenarioSpec, base | _from_line(base, words), "command line")


def _is_scenario(path: Path) -> bool:
    """Whether a file is a scenario: a test file has no key `test`."""
    import tomllib  # noqa: PLC0415 - only for files

    try:
        return "test" in tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"`{path}` is not TOML: {error}") from error


def _from_line(base: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """What was said on the command line, as keys of a scenario."""
    said: dict[str, Any] = {
        key: words[key]
        for key in ("link", "queue_up", "queue_down", "seed", "repeat")
        if words[key] is not None
    }
    if words["queues"]:
        said["queue"] = list(words["queues"])
    phases = {name: words[name] for name in ("idle", "load", "cooldown") if words[name] is not None}
    if phases:
        said["phases"] = base.get("phases", {}) | phases
    if words["settings"]:
        said["parameters"] = base.get("parameters", {}) | _parameters(words["settings"])
    tcp = {
        key: value
        for key, value in (
            ("congestion_control", words["cc"]),
            ("ecn", words["ecn"]),
            ("sack", words["sack"]),
        )
        if value is not None
    }
    if tcp:
        said["tcp"] = base.get("tcp", {}) | tcp
    if words["ping"] is not None:
        said["sampling"] = base.get("sampling", {}) | {"ping": words["ping"]}
    return said


def _parameters(settings: tuple[str, ...]) -> dict[str, int]:
    values = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not value.lstrip("-").isdigit():
            raise UsageError(f"--set {setting}: write NAME=NUMBER, such as streams=8")
        values[name] = int(value)
    return values
