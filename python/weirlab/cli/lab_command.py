"""`weir lab`: any program on an emulated line."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab.cli import completion
from weirlab.cli.notes import note_options, noted
from weirlab.cli.options import Whole, option, renamed
from weirlab.cli.scenario_words import DEFAULT_LINK
from weirlab.errors import UsageError
from weirlab.lab.client import ask
from weirlab.record import new_manifest
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.scenario.catalogue import check
from weirlab.ui import note
from weirlab.worlds.lab import CLOCK, OFFLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirlab.lab.client import View


def _line_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say on which line a program runs."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        option(
            "--link",
            shell_complete=completion.links,
            default=DEFAULT_LINK,
            show_default=True,
            help="Link, by name or .toml file.",
        ),
        option(
            "--queue",
            shell_complete=completion.queues,
            default="default",
            metavar="TC",
            help="Queue spec, in tc syntax.",
        ),
        option(
            "--queue-up",
            shell_complete=completion.queues,
            metavar="TC",
            help="Queue for the upload direction only.",
        ),
        option(
            "--queue-down",
            shell_complete=completion.queues,
            metavar="TC",
            help="Queue for the download direction only.",
        ),
        option("--seed", type=Whole(min=0), default=1, help="Seed of losses and jitter."),
        option("--ip", type=click.Choice(["4", "6"]), default="4", help="Internet protocol."),
        option("--server-command", metavar="SHELL", help="What runs at the server meanwhile."),
        option("--out", type=click.Path(path_type=Path), help="Folder for the queues' record."),
        option(
            "--pcap", type=click.Path(path_type=Path), help="File for the packets that arrive, as pcapng."
        ),
        option(
            "--device",
            type=click.Choice(["auto", "tun", "veth"]),
            default="auto",
            show_default=True,
            help="What packets leave and enter the kernel through.",
        ),
        renamed("--record", "--out"),
        option("--live", is_flag=True, help="Show what the queues do, on standard error."),
    ]
    for one in reversed(options):
        command = one(command)
    return note_options(command)


@click.group("lab")
def command() -> None:
    """Run any program at the client's end of an emulated line; the other end is called `server`."""


@command.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_line_options
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(program: tuple[str, ...], **words: Any) -> None:
    """Run PROGRAM on the line; its streams and exit code are passed through.

    \b
    weir lab exec --link lte-verizon --queue fq_codel --server-command 'iperf3 -s' -- iperf3 -c server
    weir lab exec --link vdsl-100-40 -- ping -c 5 server
    """  # noqa: D301 - \b keeps click from folding the examples
    sys.exit(_run(list(program), words))


@command.command("shell")
@_line_options
def shell(**words: Any) -> None:
    """Open a shell at the client's end of the line."""
    note("this shell is behind the line; the other end is called `server`; leave it with `exit`")
    sys.exit(_run([os.environ.get("SHELL", "/bin/sh")], words))


def _run(program: list[str], words: dict[str, Any]) -> int:
    if shutil.which(program[0]) is None:
        raise UsageError(f"`{program[0]}` is no program that can be found")
    record, pcap = words["out"], words["pcap"]
    if pcap is not None and pcap.exists():
        raise UsageError(f"`{pcap}` exists: choose another file for the packets")
    if pcap is not None and not pcap.absolute().parent.is_dir():
        raise UsageError(f"`{pcap.parent}` is no folder: choose another file for the packets")
    run = noted(resolve(_spec(words))[0], words)
    manifest = new_manifest(
        run,
        world="lab",
        clock=CLOCK,
        offloads=OFFLOADS,
    )
    answer = ask(
        {
            "do": "exec",
            "scenario": run.scenario,
            "traces": dict(run.traces),
            "seed": run.seed,
            "program": program,
            "server_command": words["server_command"],
            "device": None if words["device"] == "auto" else words["device"],
            "capture": str(pcap.absolute()) if pcap else None,
            "record": {"folder": str(record.absolute()), "manifest": manifest} if record else None,
        },
        _live_view() if words["live"] else None,
    )
    for warning in answer["warnings"]:
        note(f"warning: {warning}")
    code: int = answer["exit_code"]
    return code


def _spec(words: dict[str, Any]) -> ScenarioSpec:
    """A scenario without loads and probes, as long as a program may take."""
    test = {"name": "exec", "title": "A program on the line", "phases": {"load": "86400s"}}
    said = {
        "test": test,
        "link": words["link"],
        "queue": [words["queue"]],
        "queue_up": words["queue_up"],
        "queue_down": words["queue_down"],
        "seed": words["seed"],
        "ip": int(words["ip"]),
    }
    return check(ScenarioSpec, said, "command line")


def _live_view() -> Callable[[View], bool]:
    """Shows the busiest queue of each direction in one line of standard error, about twice a second."""
    before = 0

    def show(view: View) -> bool:
        nonlocal before
        seconds = (view["t_ns"] - before) / 1e9
        before = view["t_ns"]
        parts = []
        for direction in ("down", "up"):
            queues = {name: q for name, q in view["queues"].items() if name.startswith(direction + "/")}
            if queues and seconds > 0:
                name, queue = max(queues.items(), key=lambda item: item[1]["backlog_bytes"])
                rate = min(q["wire_bytes"] for q in queues.values()) * 8 / seconds / 1e6
                lost = sum(q["dropped"] for q in queues.values())
                marked = sum(q["marked"] for q in queues.values())
                parts.append(
                    f"{direction} {rate:.1f} Mbit/s, {queue['backlog_packets']} packets wait in {name}, "
                    f"{lost} dropped, {marked} marked"
                )
        click.echo(f"{view['t_ns'] / 1e9:8.1f} s  " + "; ".join(parts), err=True)
        return True

    return show
