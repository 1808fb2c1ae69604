"""`weir lab`: any program on an emulated line."""

from __future__ import annotations

import math
import os
import shutil
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.cli.commands import Commands
from weirlab.cli.lab_lines import line_options, resolved
from weirlab.cli.notes import note_options, noted
from weirlab.cli.options import OneOf, Whole, argument, elsewhere, option, renamed
from weirlab.errors import Interrupted, UsageError
from weirlab.lab.client import ask
from weirlab.lab.control import change, opened
from weirlab.record import new_manifest
from weirlab.ui import note
from weirlab.worlds.lab import CLOCK, OFFLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirlab.lab.client import QueueView, View
    from weirlab.scenario import ResolvedRun


def _line_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say on which line a program runs."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        *line_options(),
        option("--seed", type=Whole(min=0), default=1, help="Seed of losses and jitter."),
        option("--ip", type=OneOf(["4", "6"]), default="4", help="Internet protocol."),
        option("--server-command", metavar="SHELL", help="What runs at the server meanwhile."),
        option("--out", type=click.Path(path_type=Path), help="Folder for the queues' record."),
        option(
            "--pcap", type=click.Path(path_type=Path), help="File for the packets that arrive, as pcapng."
        ),
        option(
            "--device",
            type=OneOf(["auto", "tun", "veth"]),
            default="auto",
            show_default=True,
            help="What packets leave and enter the kernel through.",
        ),
        renamed("--record", "--out"),
        elsewhere(
            "--datapath",
            "programs run over the userspace data path; `weir run --world lab` has the kernel's, too",
        ),
        option("--live", is_flag=True, help="Show what the queues do, on standard error."),
        option(
            "--control",
            type=click.Path(path_type=Path),
            metavar="SOCKET",
            help="Unix socket at which `weir lab set` changes the line meanwhile.",
        ),
    ]
    for one in reversed(options):
        command = one(command)
    return note_options(command)


@click.group("lab", cls=Commands)
def command() -> None:
    """Run any program at the client's end of an emulated line; the other end is called `server`."""


@command.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_line_options
@argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(program: tuple[str, ...], **words: Any) -> None:
    """Run PROGRAM on the line; its streams and exit code are passed through.

    \b
    weir lab exec --link lte-verizon --queue fq_codel --server-command 'iperf3 -s' -- iperf3 -c server
    weir lab exec --link vdsl-100-40 -- ping -c 5 server
    weir lab exec --path wifi=wifi-n --path lte=lte-verizon --queue lte=fq_codel -- PROGRAM
    """  # noqa: D301 - \b keeps click from folding the examples
    sys.exit(_run(list(program), words))


@command.command("shell")
@_line_options
def shell(**words: Any) -> None:
    """Open a shell at the client's end of the line.

    \b
    weir lab shell --link cable-20-8 --queue fq_codel
    """  # noqa: D301 - \b keeps click from folding the examples
    note("this shell is behind the line; the other end is called `server`; leave it with `exit`")
    sys.exit(_run([os.environ.get("SHELL", "/bin/sh")], words))


@command.command("set", short_help="Change the lines of a lab while its program runs.")
@argument("socket", type=click.Path(path_type=Path))
@argument("words", metavar="HOP CHANGE...", nargs=-1, required=True)
def set_(socket: Path, words: tuple[str, ...]) -> None:
    """Change the lines of the lab that was started with `--control SOCKET`, at once and all together.

    HOP is a direction and the name of a hop of the link; what is to change there follows it: `rate`, `delay`
    (one way), `loss` in percent, or `down` for a line that carries nothing until it is given a rate. Where
    the client has several paths (`--path`), the path stands before the hop: `down/PATH/cmts`.

    \b
    weir lab exec --link cable-20-8 --control line.sock -- PROGRAM &
    weir lab set line.sock down/cmts rate=5mbit delay=40ms loss=1%
    weir lab set line.sock up/modem down down/cmts down
    """  # noqa: D301 - \b keeps click from folding the examples
    click.echo(f"changed at {change(socket, _changes(words)):.3f} s of the run")


def _changes(words: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The changes by hop, as a lab takes them."""
    changes: dict[str, dict[str, Any]] = {}
    hop: dict[str, Any] | None = None
    of = ""
    for word in words:
        key, equals, value = word.partition("=")
        if word.startswith(("up/", "down/")):
            hop, of = changes.setdefault(word, {}), word
        elif key not in CHANGES or bool(equals) == (key == "down"):
            raise UsageError(
                f"`{word}`: write a hop such as `down/modem`, or one of {', '.join(CHANGES.values())}"
            )
        elif hop is None:
            raise UsageError(f"`{word}`: write the hop in front of it, such as `down/modem`")
        elif key in hop:
            raise UsageError(f"`{word}`: `{key}` of this hop is given twice")
        else:
            hop[key] = True if key == "down" else _loss(value, of) if key == "loss" else value
    idle = next((name for name, told in changes.items() if not told), None)
    if idle is not None:
        raise UsageError(f"`{idle}`: write behind it what changes there: {', '.join(CHANGES.values())}")
    return changes


def _loss(written: str, hop: str) -> dict[str, Any]:
    """Losses one by one at `hop`, of a share that is written in percent."""
    share = math.nan
    with suppress(ValueError):
        share = float(written.removesuffix("%")) / 100
    if not written.endswith("%") or not 0 <= share <= 1:
        raise UsageError(f"{hop}: loss: `{written}`: write a share from 0% to 100%, such as `1%`")
    return {"model": "random", "probability": share}


CHANGES = {"rate": "`rate=5mbit`", "delay": "`delay=40ms`", "loss": "`loss=1%`", "down": "`down`"}
"""What can change of a line, and how it is written."""


def _run(program: list[str], words: dict[str, Any]) -> int:
    _check_program(program[0])
    record, pcap = words["out"], words["pcap"]
    if record is not None and record.exists() and not record.is_dir():
        raise UsageError(f"`{record}` is no folder: choose another one for the record")
    if record is not None and record.is_dir() and any(record.iterdir()):
        raise UsageError(f"`{record}` is not empty: choose another folder for the record")
    if pcap is not None and pcap.exists():
        raise UsageError(f"`{pcap}` exists: choose another file for the packets")
    if pcap is not None and not pcap.absolute().parent.is_dir():
        raise UsageError(f"`{pcap.parent}` is no folder: choose another file for the packets")
    for name, said in (("--note", words["note"]), ("--tag", words["tags"])):
        if said and record is None:
            raise UsageError(f"{name}: a record keeps it, and none is written: give --out FOLDER too")
    run = noted(resolved(words), words)
    manifest = new_manifest(
        run,
        world="lab",
        clock=CLOCK,
        offloads=OFFLOADS,
    )
    request = {
        "do": "exec",
        "scenario": run.scenario,
        "traces": dict(run.traces),
        "seed": run.seed,
        "program": program,
        "server_command": words["server_command"],
        "device": None if words["device"] == "auto" else words["device"],
        "capture": str(pcap.absolute()) if pcap else None,
        "record": {"folder": str(record.absolute()), "manifest": manifest} if record else None,
    }
    with opened(words["control"]) if words["control"] else nullcontext() as control:
        answer = ask(request, _live_view(_paths(run)) if words["live"] else None, control)
    for warning in answer["warnings"]:
        note(f"warning: {warning}")
    code: int | None = answer["exit_code"]
    if code is None:
        raise Interrupted(f"interrupted before `{program[0]}` was started")
    return code


def _check_program(name: str) -> None:
    """Refuses what cannot be run."""
    there = shutil.which(name, os.F_OK)
    # To look into a pipe would wait for who writes into it.
    if there is not None and not Path(there).is_file():
        raise UsageError(f"`{there}` is no regular file, and no program")
    program = shutil.which(name)
    if program is None:
        if there is not None:
            raise UsageError(f"`{there}` is not executable: `chmod +x` makes it so")
        raise UsageError(f"`{name}` is no program that can be found")
    with suppress(OSError), Path(program).open("rb") as file:
        first = file.readline(MAX_INTERPRETER_BYTES)
        words = first.removeprefix(b"#!").split()
        if first.startswith(b"#!") and words and not Path(os.fsdecode(words[0])).exists():
            raise UsageError(f"`{program}`: its interpreter `{os.fsdecode(words[0])}` is not there")


MAX_INTERPRETER_BYTES = 256
"""How much of a script's first line counts (BINPRM_BUF_SIZE of linux/binfmts.h)."""


def _paths(run: ResolvedRun) -> list[str]:
    """The names of the client's paths; none of one path."""
    return [route["name"] for route in run.scenario.get("routes", [])]


def _live_view(paths: list[str]) -> Callable[[View], bool]:
    """Shows the busiest queue of each direction in one line of standard error, about twice a second.

    A client with several `paths` has a direction on each.
    """
    lines = [f"{direction}/{path}" for path in paths for direction in ("down", "up")] or ["down", "up"]

    def show(view: View) -> bool:
        parts = []
        for line in lines:
            queues = {name: queue for name, queue in view["queues"].items() if name.startswith(f"{line}/")}
            # Those that were not sampled meanwhile have nothing to tell.
            if queues and all(queue["span_ns"] > 0 for queue in queues.values()):
                parts.append(f"{line} {_shown(queues)}")
        click.echo(f"{view['t_ns'] / 1e9:8.1f} s  " + "; ".join(parts), err=True)
        return True

    return show


def _shown(queues: dict[str, QueueView]) -> str:
    """What the queues of a line have done since the last view, in words."""
    name, busiest = max(queues.items(), key=lambda item: item[1]["backlog_bytes"])
    rate = min(queue["wire_bytes"] * 8 / queue["span_ns"] for queue in queues.values()) * 1e3
    lost = sum(queue["dropped"] for queue in queues.values())
    marked = sum(queue["marked"] for queue in queues.values())
    return (
        f"{rate:.1f} Mbit/s, {busiest['backlog_packets']} packets wait in {name}, "
        f"{lost} dropped, {marked} marked"
    )
