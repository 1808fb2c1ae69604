"""The command `weir`.

Only what a command needs is imported, when it runs: `weir --help` answers at once.
"""

from __future__ import annotations

import importlib
import signal
import sys
from importlib import metadata

import click

from weirlab.cli.options import sentence

COMMANDS = {
    "run": "Run a test or scenario and show what came of it.",
    "test": "Measure the path to a server and grade it.",
    "show": "Show what stands in records.",
    "compare": "Set records beside each other: before and after.",
    "plot": "Draw charts of records.",
    "export": "Write records as .weir files, CSV or Parquet.",
    "lab": "Run any program on an emulated line.",
    "serve": "Answer measurements: Weir's own, and those of other speed tests.",
    "shape": "Shape a network interface: low latency under load, without being told rates.",
    "validate": "Run a scenario in several worlds and say where they agree.",
    "conformance": "Hold queue disciplines against recordings of real Linux.",
    "study": "Hold the simulator against a real Linux, and against the lab.",
    "list": "List the tests, links, queues and markers that there are.",
    "doctor": "Say what this machine can do.",
}
"""The commands and what they do, in the order of the help."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"weirlab.cli.{cmd_name}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes names and summaries without importing any of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(metadata.version("weirlab"), prog_name="weir")
def weir() -> None:
    """Measure, emulate, simulate and cure latency under load.

    \b
    weir run rrul --link cable-20-8 --queue pfifo_fast --queue 'htb rate 95% fq_codel'

    Exit codes: 0 done, 1 failed, 2 wrong input, 3 unreadable record, 130 interrupted.
    """  # noqa: D301 - \b keeps click from folding the example


def main() -> None:
    """Runs the command line; errors become one sentence and an exit code."""
    from weirlab.ascii import replace_what_cannot_be_written  # noqa: PLC0415 - as below
    from weirlab.errors import WeirError  # noqa: PLC0415 - not needed for the help

    replace_what_cannot_be_written()
    # Whoever asks a run to end gets what was measured until then, as with Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        weir(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        sys.exit(2)
    except click.ClickException as error:
        click.echo(f"weir: {sentence(error)}", err=True)
        sys.exit(2)
    except WeirError as error:
        click.echo(f"weir: {error}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("weir: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        sys.stderr.close()
        sys.exit(0)
