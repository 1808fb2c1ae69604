"""The manual page and the shells' completion scripts, made of the commands themselves.

`python -m weirlab.cli.pages` writes them below `weirlab.data`, from where a wheel installs them.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from weirlab.cli import COMMANDS, weir


def pages() -> dict[str, str]:
    """The text of each file, by its place below the prefix of an installation such as `/usr/local`."""
    scripts = {
        "share/bash-completion/completions/weir": BashComplete,
        "share/zsh/site-functions/_weir": ZshComplete,
        "share/fish/vendor_completions.d/weir.fish": FishComplete,
    }
    found = {
        place: kind.source_template % kind(weir, {}, "weir", "_WEIR_COMPLETE").source_vars()
        for place, kind in scripts.items()
    }
    return {"share/man/man1/weir.1": manual(), **found}


def manual() -> str:
    """The manual page weir(1), in the form of man(7)."""
    context = click.Context(weir, info_name="weir", **weir.context_settings)
    lines = [
        '.TH WEIR 1 "" "Weir" "User Commands"',
        # Lists of choices have no spaces that could be widened to fill a line.
        ".ad l",
        ".SH NAME",
        f"weir \\- {_plain((weir.help or '').splitlines()[0].rstrip('.').lower())}",
        ".SH SYNOPSIS",
        ".B weir",
        "COMMAND [OPTIONS] [ARGUMENTS]",
        ".SH DESCRIPTION",
        *_text(weir.help or ""),
        ".SH OPTIONS",
        *_options(weir, context),
        ".SH COMMANDS",
    ]
    for name, summary in COMMANDS.items():
        command = weir.get_command(context, name)
        if command is not None:
            lines += _section(command, context, name, summary)
    lines += [".SH SEE ALSO", "tc(8), flent(1)"]
    return "\n".join(lines) + "\n"


def _section(command: click.Command, parent: click.Context, name: str, summary: str) -> list[str]:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f".SS {_plain(usage)}", *_text(command.help or summary)]
    if not command.add_help_option:
        lines += [".PP", _plain(f"`{context.command_path} --help` lists its options.")]
    lines += _options(command, context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            one = command.get_command(context, inner)
            if one is not None:
                lines += _section(one, context, inner, one.get_short_help_str())
    return lines


def _options(command: click.Command, context: click.Context) -> list[str]:
    lines = []
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            # A list of choices may be longer than a line: it breaks behind any of them.
            words = _plain(record[0]).replace("|", "|\\:")
            lines += [".TP", f"\\fB{words}\\fR", _plain(" ".join(record[1].split())) or "\\&"]
    return lines


def _text(text: str) -> list[str]:
    """Paragraphs as troff; those that begin with a backspace, click's mark, keep their lines."""
    lines = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        kept = paragraph.startswith("\b")
        words = paragraph.removeprefix("\b").strip("\n").splitlines()
        lines += [".PP", *([".nf"] if kept else []), *map(_plain, words), *([".fi"] if kept else [])]
    return lines


def _plain(text: str) -> str:
    """Text in which nothing is a request or an escape to troff."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return f"\\&{plain}" if plain.startswith(".") else plain


def main() -> None:
    """Writes the files."""
    for place, text in pages().items():
        file = FOLDER / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


FOLDER = Path(__file__).parents[3] / "weirlab.data" / "data"
"""Folder in a checkout from which maturin takes the files of a wheel beside the package."""

if __name__ == "__main__":
    main()
