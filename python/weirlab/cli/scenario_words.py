"""The words of the command line that say what is run: the same for every command that runs scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab import _native
from weirlab.errors import UsageError
from weirlab.scenario import ScenarioSpec
from weirlab.scenario.catalogue import check, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_LINK = "cable-20-8"


def scenario_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which scenario is run; `spec_of` makes one of them."""
    for option in reversed(
        [
            click.option("--link", help=f"Link, by name or .toml file.  [default: {DEFAULT_LINK}]"),
            click.option(
                "--queue",
                "queues",
                multiple=True,
                metavar="TC",
                help="Queue set-up in tc syntax, such as 'htb rate 95% fq_codel'; repeat to compare several, "
                "the first is the baseline. `default` is the link's own.",
            ),
            click.option("--queue-up", metavar="TC", help="Queue for the upload direction only."),
            click.option("--queue-down", metavar="TC", help="Queue for the download direction only."),
            click.option(
                "--shaper",
                "shapers",
                multiple=True,
                metavar="WORDS",
                help="Shaper at the client's end of the line: `auto`, `auto mode bandwidth`, `auto up 95%`, "
                "`fixed up 95% down 95%`, `none`; repeat to compare. The queue is then the shaper's.",
            ),
            click.option("--seed", type=click.IntRange(min=0), help="Seed of the first run.  [default: 1]"),
            click.option(
                "--set", "settings", multiple=True, metavar="NAME=N", help="A parameter of the test."
            ),
            click.option("--idle", metavar="TIME", help="Length of the idle phase, such as 5s."),
            click.option("--load", metavar="TIME", help="Length of the load phase."),
            click.option("--cooldown", metavar="TIME", help="Length of the phase after the load."),
            click.option(
                "--ping", metavar="TIME", help="Time between two pings of a train.  [default: 10ms]"
            ),
            click.option("--cc", metavar="NAME", help="Congestion control of all loads.  [default: cubic]"),
            click.option("--ecn/--no-ecn", default=None, help="ECN of all loads.  [default: off]"),
            click.option("--sack/--no-sack", default=None, help="SACK of all loads.  [default: on]"),
        ]
    ):
        command = option(command)
    return command


def spec_of(what: str, words: dict[str, Any]) -> ScenarioSpec:
    """The scenario in the file `what`, or the test of that name, with what was given on the line."""
    base: dict[str, Any] = {"test": what, "link": DEFAULT_LINK}
    if what.endswith(".toml"):
        written = read_toml(Path(what), f"`{what}`")
        # A test file has no key `test`.
        if "test" in written:
            check(ScenarioSpec, written, what)
            base = written
    return check(ScenarioSpec, base | _from_line(base, words), "command line")


def secret_of(file: Path | None) -> str | None:
    """The secret of a server in a file."""
    if file is None:
        return None
    try:
        return _native.read_secret(file)
    except _native.InputError as error:
        raise UsageError(str(error)) from error


def _from_line(base: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """What was said on the command line, as keys of a scenario."""
    said: dict[str, Any] = {
        key: words[key]
        for key in ("link", "queue_up", "queue_down", "seed", "repeat")
        if words[key] is not None
    }
    if words["queues"]:
        said["queue"] = list(words["queues"])
    if words["shapers"]:
        said["shaper"] = list(words["shapers"])
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
