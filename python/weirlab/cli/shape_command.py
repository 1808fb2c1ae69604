"""`weir shape`: a shaper on a real interface.

The options of `start` and what they say stand in `shape_settings`, what is shown in `shape_display`, and
`--prove` in `shape_proof`.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab import _native, reading
from weirlab.cli import completion
from weirlab.cli.commands import Commands
from weirlab.cli.options import OneOf, argument, option
from weirlab.cli.shape_display import Display, show_dry_run
from weirlab.cli.shape_settings import StartOptions, read_settings, start_options
from weirlab.errors import UsageError
from weirlab.shape import metrics_of, read_rules, rules_text, running, table_of
from weirlab.shape.view import probed_in
from weirlab.ui import console, note

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from weirlab.shape import ShaperView
    from weirlab.shape.view import Wanted


class _StartUnlessNamed(Commands):
    """A group of which a word that is none of its commands is the device to start at."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`start`, unless another command is named."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["start", *args])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Its commands, and the devices to start at."""
        return [*super().shell_complete(ctx, incomplete), *completion.devices(ctx, None, incomplete)]


@click.group(
    "shape",
    cls=_StartUnlessNamed,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def command() -> None:
    """Shape a network interface: `weir shape eth0`. Keeps latency low under load, without being told rates.

    \b
    weir shape eth0                         until Ctrl-C; `weir shape start --help` has the options
    weir shape eth0 --prove --server HOST   measure without and with it, print the factor
    weir shape status eth0

    What was there before is there again when it ends, however it does.
    """  # noqa: D301 - \b keeps click from folding the examples


@command.command("start")
@argument("device", metavar="IFACE", shell_complete=completion.devices)
@start_options
def start(device: str, **given: Any) -> None:
    """Shape IFACE until Ctrl-C, `weir shape stop IFACE`, or the time is over.

    \b
    weir shape start eth0
    weir shape start eth0 --up 35mbit --rules usual
    """  # noqa: D301 - \b keeps click from folding the examples
    options = StartOptions(**given)
    settings = read_settings(device, options)
    proof = None
    if options.prove:
        # It needs numpy and polars, which a shaper at work on a router does not.
        from weirlab.cli import shape_proof  # noqa: PLC0415

        proof = partial(shape_proof.prove, settings, options, shape_proof.prover_of(settings, options))
    choice = running.choose(settings)
    if options.dry_run:
        show_dry_run(settings, choice, as_json=options.as_json)
        return
    note(f"backend {choice['backend']}: {choice['why']}")
    if choice["beginning"]:
        note(choice["beginning"])
    if proof is None:
        _shape(settings, options)
    else:
        proof()


def _shape(settings: dict[str, Any], options: StartOptions) -> None:
    """Shapes until it is ended, and shows it meanwhile."""
    display = Display(quiet=options.quiet)

    def show(view: ShaperView) -> Wanted:
        display.show(view)
        return "continue"

    decisions, unkept = running.shape(settings, show)
    display.close()
    if unkept is not None:
        note(f"warning: {unkept}")
    if options.as_json:
        click.echo(json.dumps({"decisions": decisions}))
    note(f"{settings['device']} is as it was")


@command.command("status")
@argument("device", metavar="IFACE", shell_complete=completion.devices)
@option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@option("--prometheus", is_flag=True, help="Print metrics as Prometheus reads them, nothing else.")
def status(device: str, *, as_json: bool, prometheus: bool) -> None:
    """Say what the shaper of IFACE does.

    \b
    weir shape status eth0
    """  # noqa: D301 - \b keeps click from folding the examples
    if as_json and prometheus:
        raise UsageError("--json and --prometheus exclude each other: write one of them")
    text = running.status(device)
    if as_json:
        click.echo(text or "{}")
    elif prometheus:
        click.echo(metrics_of(running.view_in(text)) if text else "", nl=False)
    elif text:
        view = running.view_in(text)
        console.print(table_of(view))
        console.print(f"process {view['pid']}; probes answered by {probed_in(view)}")


@command.command("stop")
@argument("device", metavar="IFACE", shell_complete=completion.devices)
def stop(device: str) -> None:
    """End the shaper of IFACE, which restores what was there.

    \b
    weir shape stop eth0
    """  # noqa: D301 - \b keeps click from folding the examples
    running.stop(device)


@command.command("replay")
@argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@option("--mode", type=OneOf(["ping", "bandwidth"]), help="What `auto` would have done so instead.")
@option("--json", "as_json", is_flag=True, help="Print the decisions as lines of JSON.")
def replay(log: Path, *, mode: str | None, as_json: bool) -> None:
    """Run the controller over what went into it, and show what it would have done.

    \b
    weir shape start eth0 --log shaper.jsonl
    weir shape replay shaper.jsonl --mode bandwidth
    """  # noqa: D301 - \b keeps click from folding the examples

    def show(line: str) -> None:
        click.echo(line if as_json else _native.shaper_decision_line(line))

    try:
        text = reading.read_bytes(log, reading.MAX_RECORDING_BYTES).decode("utf-8", "replace")
    except reading.Unreadable as error:
        raise UsageError(f"log `{log}` cannot be read: {error}") from error
    try:
        logged, made, same = running.replay(text, mode, show)
    except UsageError as error:
        raise UsageError(f"log `{log}`: {error}") from error
    note(f"{made} decisions; the log has {logged}, of which {same} are the same")


@command.command("rules")
@argument("name", metavar="[LIST]", default="usual", shell_complete=completion.rules)
def rules(name: str) -> None:
    """Print a list of priority rules, `usual` by default: save it, change it, and give it to --rules.

    \b
    weir shape rules > rules.toml
    """  # noqa: D301 - \b keeps click from folding the examples
    read_rules(name)
    click.echo(rules_text(name), nl=False)
