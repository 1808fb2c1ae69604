"""The words of the command line that say what is run: the same for every command that runs scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab import _native, reading
from weirlab.cli import completion
from weirlab.cli.options import MAX_NUMBER_DIGITS, Whole, option
from weirlab.errors import UsageError
from weirlab.scenario import ScenarioSpec
from weirlab.scenario.catalogue import check, scenario_in
from weirlab.scenario.resolve import MAX_SEED

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_LINK = "cable-20-8"


def scenario_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which scenario is run; `spec_of` makes one of them."""
    for one in reversed(
        [
            option(
                "--link",
                "links",
                multiple=True,
                shell_complete=completion.links,
                help="Link, by name or .toml file; repeat to compare several, each with each queue.  "
                f"[default: {DEFAULT_LINK}]",
            ),
            option(
                "--queue",
                "queues",
                multiple=True,
                metavar="TC",
                shell_complete=completion.queues,
                help="Queue set-up in tc syntax, such as 'htb rate 95% fq_codel'; repeat to compare several, "
                "the first is the baseline. `default` is the link's own.",
            ),
            option(
                "--queue-up",
                multiple=True,
                metavar="TC",
                shell_complete=completion.queues,
                help="Queue for the upload direction only; repeat to compare.",
            ),
            option(
                "--queue-down",
                multiple=True,
                metavar="TC",
                shell_complete=completion.queues,
                help="Queue for the download direction only; repeat to compare.",
            ),
            option(
                "--shaper",
                "shapers",
                multiple=True,
                metavar="WORDS",
                help="Shaper at the client's end of the line: `auto`, `auto mode bandwidth`, `auto up 95%`, "
                "`fixed up 95% down 95%`, `none`; repeat to compare. The queue is then the shaper's.",
            ),
            option("--seed", type=Whole(0, MAX_SEED), help="Seed of the first run.  [default: 1]"),
            option("--set", "settings", multiple=True, metavar="NAME=N", help="A parameter of the test."),
            option("--idle", metavar="TIME", help="Length of the idle phase, such as 5s."),
            option("--load", metavar="TIME", help="Length of the load phase."),
            option("--cooldown", metavar="TIME", help="Length of the phase after the load."),
            option("--ping", metavar="TIME", help="Time between two pings of a train.  [default: 10ms]"),
            option(
                "--cc",
                "ccs",
                multiple=True,
                shell_complete=completion.congestion_controls,
                metavar="NAME",
                help="Congestion control of all loads; repeat to compare.  [default: cubic]",
            ),
            option("--ip", type=click.Choice(["4", "6"]), help="Internet protocol.  [default: 4]"),
            option("--ecn/--no-ecn", default=None, help="ECN of all loads.  [default: off]"),
            option("--sack/--no-sack", default=None, help="SACK of all loads.  [default: on]"),
        ]
    ):
        command = one(command)
    return command


def spec_of(what: str, words: dict[str, Any], *, link: dict[str, Any] | None = None) -> ScenarioSpec:
    """The scenario in the file `what`, or the test of that name, with what was given on the line.

    Args:
        what: file or name.
        words: what was given on the line.
        link: what takes the place of any link, which the scenario then need not name.
    """
    base: dict[str, Any] = {"test": what, "link": link or DEFAULT_LINK}
    if what.endswith(".toml") and (scenario := scenario_in(Path(what), link=link)) is not None:
        base = scenario.written()
    return check(ScenarioSpec, base | _from_line(base, words), "command line", names=OPTIONS)


def secret_of(file: Path | None) -> str | None:
    """The secret of a server in a file."""
    if file is None:
        return None
    try:
        return _native.read_secret(file)
    except _native.InputError as error:
        raise UsageError(str(error)) from error


def _from_line(base: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """Options of the command line as keys of a scenario."""
    said: dict[str, Any] = {key: words[key] for key in ("seed", "repeat") if words[key] is not None}
    if words["ip"] is not None:
        said["ip"] = int(words["ip"])
    said |= {key: list(words[name]) for key, name in COMPARED.items() if words[name]}
    phases = {name: words[name] for name in ("idle", "load", "cooldown") if words[name] is not None}
    if phases:
        said["phases"] = base.get("phases", {}) | phases
    if words["settings"]:
        said["parameters"] = base.get("parameters", {}) | _parameters(words["settings"])
    tcp = {
        key: value
        for key, value in (
            ("ecn", words["ecn"]),
            ("sack", words["sack"]),
        )
        if value is not None
    }
    if tcp or words["ccs"]:
        said["tcp"] = base.get("tcp", {}) | tcp
        if words["ccs"]:
            said["tcp"].pop("congestion_control", None)
    if words["ping"] is not None:
        said["sampling"] = base.get("sampling", {}) | {"ping": words["ping"]}
    return said


OPTIONS = {
    **{f"phases.{name}": f"--{name}" for name in ("idle", "load", "cooldown")},
    **{name: f"--{name}" for name in ("seed", "repeat", "ip")},
    "sampling.ping": "--ping",
}
"""Names of scenario keys on the command line."""

COMPARED = {
    "link": "links",
    "queue": "queues",
    "queue_up": "queue_up",
    "queue_down": "queue_down",
    "shaper": "shapers",
    "cc": "ccs",
}
"""Keys of a scenario that take several values to compare, and what the options are called in Python."""


def _parameters(settings: tuple[str, ...]) -> dict[str, int]:
    values: dict[str, int] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        number = reading.whole(value, MAX_NUMBER_DIGITS)
        if not equals or number is None:
            raise UsageError(f"--set {setting}: write NAME=NUMBER, such as streams=8")
        if name in values:
            raise UsageError(f"--set {name} is given twice, as `{values[name]}` and `{value}`: write it once")
        values[name] = number
    return values
