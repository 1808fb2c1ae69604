"""Options of `weir shape start`, and the shaper's settings that they and a file make together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from weirlab import _native
from weirlab.cli import completion
from weirlab.cli.options import OneOf, Share, Whole, option, other_name, renamed
from weirlab.cli.scenario_words import secret_of
from weirlab.errors import NetError, UsageError
from weirlab.shape import read_config, settings_of
from weirlab.shape.settings import host_and_port

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """Options of `weir shape start`, as they were given: None or empty where they were not.

    The fields are named as the options are. What `IN_FILES` has too may stand in the file `config`.
    """

    config: Path | None
    up: str | None
    down: str | None
    up_max: str | None
    down_max: str | None
    mode: str | None
    queue_up: str | None
    queue_down: str | None
    framing: str | None
    reflectors: tuple[str, ...]
    auth: str | None
    backend: str | None
    rules: str | None
    state: str | None
    time: str | None
    log: Path | None
    dry_run: bool
    quiet: bool
    prove: bool
    run: str | None
    server: str | None
    rounds: int
    load: str
    max_cost: float
    as_json: bool


def start_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of `weir shape start`; `StartOptions` takes them."""
    for one in reversed([*_settings_options(), *_ways_to_run(), *_proof_options(), *_former_names()]):
        command = one(command)
    return command


def read_settings(device: str, options: StartOptions) -> dict[str, Any]:
    """The settings of the shaper of `device`: those of the file, those of the command line before them.

    Raises:
        UsageError: if something of them cannot be, or if options do not go together.
        NetError: if the server of a proof is not found, does not answer, or would not help.
        ShapeError: if a name cannot be looked up for now.
    """
    _check_proving(options)
    # Looked up first: it is probed too, and where its name is not known it is told of as a server.
    server = None if options.server is None else _find_server(options.server)
    named = {name: getattr(options, name) for name in IN_FILES}
    given = {name: value for name, value in named.items() if value is not None}
    if options.reflectors:
        given["reflectors"] = list(options.reflectors)
    elif options.server is not None:
        in_file = {} if options.config is None else read_config(options.config)
        given["reflectors"] = in_file.get("reflectors", [f"udp:{options.server}"])
    settings = settings_of(device, given, options.config, log=options.log, is_open=options.prove)
    _check_server(server, settings)
    return settings


def address_of(server: str) -> str:
    """Host and port of a `weir serve`, as an authority of a URL has them."""
    host, port = host_and_port(server)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check_proving(options: StartOptions) -> None:
    """Refuses what only a proof takes, where none is wanted."""
    if options.prove:
        return
    if options.server is not None:
        raise UsageError("--server goes with --prove; to probe a `weir serve` write --reflector udp:HOST")
    context = click.get_current_context()
    for name in ("run", "rounds", "load", "max_cost"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name.replace('_', '-')} goes with --prove: give that too, or leave it out")


def _find_server(server: str) -> _native.Server:
    try:
        return _native.find_server(address_of(server))
    except _native.NativeError as error:
        raise NetError(str(error)) from error


def _check_server(server: _native.Server | None, settings: dict[str, Any]) -> None:
    """Refuses a server that is not there or would not help, before anything is changed."""
    auth = settings["auth"]
    secret = None if auth is None else secret_of(Path(auth))
    if server is None:
        if auth is not None and not any("udp" in one for one in settings["reflectors"]):
            raise UsageError(
                f"auth `{auth}`: only a `weir serve` asks for a secret, and none is named: write "
                "--reflector udp:HOST, or leave it out"
            )
        return
    try:
        why, _ = _native.offer(server, secret)
    except _native.NativeError as error:
        raise NetError(str(error)) from error
    if why is not None:
        raise NetError(why)


def _settings_options() -> list[Callable[[Any], Any]]:
    """The options that a file may have too."""
    queue = partial(option, shell_complete=completion.queues, metavar="TC")
    return [
        option(
            "--config", type=click.Path(dir_okay=False, path_type=Path), help="TOML file with any of these."
        ),
        option(
            "--up", metavar="RATE", help="Out of IFACE: `auto` (the default), a rate that stays, or `none`."
        ),
        option("--down", metavar="RATE", help="Likewise, into IFACE."),
        option("--up-max", metavar="RATE", help="`auto` never sets a higher rate."),
        option("--down-max", metavar="RATE", help="Likewise, into IFACE."),
        option("--mode", type=OneOf(["ping", "bandwidth"]), help="What matters more; ping by default."),
        queue("--queue-up", help="Queue out of IFACE, in tc syntax; cake by default."),
        queue("--queue-down", help="Likewise, into IFACE."),
        option("--framing", metavar="NAME", help="How bytes are counted; by default as the device tells."),
        option(
            "--reflector",
            "reflectors",
            multiple=True,
            metavar="WHOM",
            help="Whom to probe: HOST, udp:HOST[:PORT] (a `weir serve`), tcp:HOST:PORT.",
        ),
        option("--auth", metavar="FILE", help="File with the secret that the `weir serve` asks for."),
        option("--backend", type=OneOf(["auto", "kernel", "userspace"]), help="Who holds packets back."),
        option(
            "--rules",
            shell_complete=completion.rules,
            metavar="FILE",
            help="Priority rules: a file, or `usual` for the shipped list.",
        ),
        option(
            "--state",
            metavar="FILE",
            help="Where what is learned of the line is kept: a file, `none`, or `auto` for the usual place.",
        ),
        option("--time", metavar="TIME", help="End by itself, such as after `1800s`."),
    ]


def _ways_to_run() -> list[Callable[[Any], Any]]:
    return [
        option("--log", type=click.Path(dir_okay=False, path_type=Path), help="File for every decision."),
        option("--dry-run", is_flag=True, help="Say what would be done, and change nothing."),
        option("--quiet", is_flag=True, help="Show nothing while it goes on."),
    ]


def _proof_options() -> list[Callable[[Any], Any]]:
    return [
        option(
            "--prove",
            is_flag=True,
            help="Measure without and with it, print the factor, undo it if it is none.",
        ),
        option(
            "--run", metavar="SHELL", help="With --prove: a command that loads the line until it is ended."
        ),
        option(
            "--server",
            metavar="HOST",
            help="With --prove: a `weir serve` to load the line with, and to probe unless --reflector "
            "says whom.",
        ),
        option("--rounds", type=Whole(1, 20), default=3, show_default=True, help="With --prove."),
        option(
            "--load",
            metavar="TIME",
            callback=_no_program,
            default="5s",
            show_default=True,
            help="With --prove: how long each stage is measured.",
        ),
        option(
            "--max-cost",
            type=Share(),
            default=0.1,
            show_default=True,
            help="With --prove: of throughput.",
        ),
        option("--json", "as_json", is_flag=True, help="Print JSON, nothing else."),
    ]


def _no_program(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Refuses a program, which was the option's meaning before it was a time's."""
    if not value[0].isdigit():
        raise other_name(f"--load `{value}`", "--run", "; --load takes a time, such as `5s`")
    return value


def _former_names() -> list[Callable[[Any], Any]]:
    return [renamed(old, new) for old, new in FORMER_NAMES.items()]


IN_FILES = (
    "up",
    "down",
    "up_max",
    "down_max",
    "mode",
    "queue_up",
    "queue_down",
    "framing",
    "auth",
    "backend",
    "rules",
    "state",
    "time",
)
"""The options that a file may have too, under these names; and it may have `reflectors`."""

FORMER_NAMES = {
    "--egress": "--up",
    "--ingress": "--down",
    "--egress-max": "--up-max",
    "--ingress-max": "--down-max",
    "--egress-queue": "--queue-up",
    "--ingress-queue": "--queue-down",
    "--measure": "--load",
    "--most-cost": "--max-cost",
}
"""Former names of options."""
