"""`weir study`: a subcommand for each study, by the entry points `weir.studies` of what is installed."""

from __future__ import annotations

import json
from importlib import metadata

import click

from weirlab.cli.commands import MAX_SUMMARY_CHARS, Commands
from weirlab.cli.options import option
from weirlab.errors import UsageError
from weirlab.ui import Table, console


class _Studies(Commands):
    """A group whose commands are entry points, each imported when it is called or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the studies that are installed."""
        del ctx
        return sorted(_installed())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that study, imported now; None if there is none.

        Raises:
            UsageError: if it cannot be imported.
        """
        del ctx
        place = _installed().get(cmd_name)
        if place is None:
            return None
        try:
            found = place.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(f"study `{cmd_name}` cannot be loaded from `{place.value}`: {error}") from error
        if not isinstance(found, click.Command):
            raise UsageError(f"study `{cmd_name}`: `{place.value}` is no command of click")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The study that is named.

        Raises:
            UsageError: if there is none of that name.
        """
        known = self.list_commands(ctx)
        if args[0] not in known:
            there = ", ".join(known) or "none is installed: install Weir anew"
            raise UsageError(f"unknown study `{args[0]}` (known: {there})")
        return super().resolve_command(ctx, args)


@click.group("study", cls=_Studies, invoke_without_command=True)
@option("--list", "as_list", is_flag=True, help="List the studies, as without a STUDY.")
@option("--json", "as_json", is_flag=True, help="List them as JSON, nothing else.")
@click.pass_context
def command(context: click.Context, *, as_list: bool, as_json: bool) -> None:
    """Run a study; without its name, list them. Each has options of its own: `weir study linux --help`.

    \b
    weir study linux --only A_codel --repeat 1
    weir study thesis --repeat 20 --out thesis
    weir study agreement --only '20/8 20ms * cubic *'
    weir study speedtest-aqm --out speedtest
    weir study all --out gallery
    """  # noqa: D301 - \b keeps click from folding the examples
    if context.invoked_subcommand is None:
        _list(context, as_json=as_json)
    elif as_list:
        raise UsageError(f"--list: leave `{context.invoked_subcommand}` out, and the studies are listed")
    elif as_json:
        raise UsageError(f"--json: write it after `{context.invoked_subcommand}`, whose figures it prints")


def _installed() -> dict[str, metadata.EntryPoint]:
    """Where each study's command is, by the study's name."""
    return {place.name: place for place in metadata.entry_points(group=GROUP)}


def _list(context: click.Context, *, as_json: bool) -> None:
    studies = {name: _asks(context, name) for name in _installed()}
    if as_json:
        shown = [{"name": name, "summary": studies[name]} for name in sorted(studies)]
        click.echo(json.dumps(shown, indent=2))
        return
    table = Table(title="Studies (`weir study NAME` runs one)")
    table.add_column("name", no_wrap=True)
    table.add_column("what it asks")
    for name in sorted(studies):
        table.add_row(name, studies[name])
    console.print(table)


def _asks(context: click.Context, name: str) -> str:
    """The question of a study, in a line."""
    found = command.get_command(context, name)
    return found.get_short_help_str(limit=MAX_SUMMARY_CHARS) if found is not None else ""


GROUP = "weir.studies"
"""The entry points: a study's name, and the `click.Command` that runs it."""
