"""The command `weir`.

Only what a command needs is imported, when it runs: `weir --help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from weirlab import _native, drawers, interrupt
from weirlab.cli.commands import Commands
from weirlab.cli.wording import sentence as sentence_of
from weirlab.ending import INTERRUPTED
from weirlab.loading import in_one_thread, uncollected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMANDS = {
    "run": "Run a test or scenario and show what came of it.",
    "batch": "Run the scenarios of a file, configurations in turn, and keep the records.",
    "sweep": "Run a scenario at many points, and keep what came of it in a store.",
    "query": "Ask the store of a sweep in SQL.",
    "bundle": "Write a sweep as one file that can be cited, or check one.",
    "test": "Measure the path to a server and grade it.",
    "ping": "Ping any host: round trips to the microsecond.",
    "show": "Show what stands in records.",
    "compare": "Set records beside each other: before and after.",
    "plot": "Draw charts of records.",
    "note": "Keep a note and tags for records.",
    "report": "Write records as one page for a browser.",
    "ui": "Show records and start runs in a browser, on this machine only.",
    "export": "Write records as .weir files, for Flent, as pcapng, CSV, JSON lines or Parquet.",
    "import": "Make records of data files of Flent.",
    "flent": "Run a test of Flent's, with Flent's options.",
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


class ReaderGone(Exception):
    """Whoever read our output has seen enough. Click takes a BrokenPipeError for a failure."""


@contextmanager
def _noticing_who_is_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class LazyGroup(Commands):
    """A group whose commands are imported when they are called."""

    @_noticing_who_is_gone()
    def make_context(self, *words: Any, **more: Any) -> click.Context:
        """Reads the line; help and version are printed here."""
        return super().make_context(*words, **more)

    @_noticing_who_is_gone()
    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        with in_one_thread(), uncollected():
            module = importlib.import_module(f"weirlab.cli.{cmd_name}_command")
        command: click.Command = module.command
        interrupt.started()
        return command

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Names and summaries, without importing any of them."""
        del ctx
        return list(COMMANDS.items())


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(_native.version(), prog_name="weir")
def weir() -> None:
    """Measure, emulate, simulate and cure latency under load.

    \b
    weir run rrul --link cable-20-8 --queue pfifo_fast --queue 'htb rate 95% fq_codel'

    Exit codes: 0 done, 1 failed, 2 wrong input, 3 unreadable record, 130 interrupted.
    """  # noqa: D301 - \b keeps click from folding the example


def main() -> None:
    """Runs the command line; errors become one sentence and an exit code."""
    from weirlab.ascii import replace_what_cannot_be_written  # noqa: PLC0415 - not needed by Python's users

    replace_what_cannot_be_written()
    code = _exit_code()
    for stream in (sys.stdout, sys.stderr):
        _close(stream)
    sys.exit(code)


def _exit_code() -> int | str | None:
    """Does what the line says and tells what went wrong; returns the exit code."""
    from weirlab.errors import WeirError, sentence  # noqa: PLC0415 - not needed for the help

    try:
        code = _carry_out()
        if sys.stdout is not None:
            sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        return 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        return 2
    except click.ClickException as error:
        message, code = sentence_of(error), 2
    except WeirError as error:
        message, code = str(error), error.exit_code
    except (click.Abort, KeyboardInterrupt):
        message, code = "interrupted", INTERRUPTED
    except (OSError, MemoryError, UnicodeEncodeError) as error:
        message, code = _refused(error)
    else:
        return code
    with suppress(OSError):
        click.echo(f"weir: {sentence(message)}", err=True)
    return code


def _carry_out() -> int | str | None:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _telling_once(warnings.showwarning)
            weir(standalone_mode=False)
    except SystemExit as end:
        return end.code
    finally:
        drawers.end_begun()
    return 0


def _telling_once(others: Callable[..., None]) -> Callable[..., None]:
    """What tells a person of a warning of Weir's, and `others` of any other."""
    told: set[str] = set()

    def tell(message: Warning | str, category: type[Warning], *more: Any, **most: Any) -> None:
        from weirlab.errors import WeirWarning  # noqa: PLC0415 - few lines warn
        from weirlab.ui.terminal import warn  # noqa: PLC0415

        if not issubclass(category, WeirWarning):
            others(message, category, *more, **most)
        elif str(message) not in told:
            told.add(str(message))
            warn(str(message))

    return tell


def _refused(error: OSError | MemoryError | UnicodeEncodeError) -> tuple[str, int]:
    """A failure of the machine or of Python in a sentence, and the exit code."""
    if isinstance(error, MemoryError):
        return "there is not enough memory", 1
    if isinstance(error, UnicodeEncodeError):
        # Bytes of the command line that are no UTF-8 become lone surrogates.
        return f"`{error.object}`: this is not UTF-8, which only the name of a file need not be", 2
    return f"{_failed(error)}: {error.strerror or error}", 1


def _failed(error: OSError) -> str:
    """The file that could not be read or written."""
    if error.filename is not None:
        return f"`{error.filename}`"
    # Of a stream or file that was open already.
    return "output cannot be written" if error.errno in NO_ROOM else "the machine refused something"


def _close(stream: TextIO | None) -> None:
    """Writes out what waits; what cannot be written is dropped, or Python would tell of it at its end."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
