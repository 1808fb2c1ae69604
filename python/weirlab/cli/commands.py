"""Groups of commands: a name that there is not is told with the nearest one, and summaries are not cut."""

from __future__ import annotations

import click

from weirlab import _native

__all__ = ["MAX_SUMMARY_CHARS", "Commands"]


class Commands(click.Group):
    """A group of commands, whose help has whole summaries."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named.

        Raises:
            click.UsageError: if there is none of that name.
        """
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = _native.nearest(name, self.list_commands(ctx))
            rest = f"did you mean `{near}`?" if near else f"`{ctx.command_path} --help` lists all"
            ctx.fail(f"there is no command `{name}`: {rest}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes names and summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(self.summaries(ctx))

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Each command, and the first sentence of its help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [(name, one.get_short_help_str(limit=MAX_SUMMARY_CHARS)) for name, one in found if one]


MAX_SUMMARY_CHARS = 200
"""Characters of what a command says of itself, more than any says: none is cut."""
