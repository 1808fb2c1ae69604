"""`weir doctor`: what this machine can do."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.text import Text

from weirlab.api import run_all
from weirlab.cli.options import option
from weirlab.errors import UsageError
from weirlab.lab.check import try_lab
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.ui import console
from weirlab.ui.table import Table
from weirlab.worlds import world_named


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: what was looked at.
        good: whether it is as it should be; None of what is not there and need not be.
        found: what was found, and what to do if it is not good.
    """

    what: str
    good: bool | None
    found: str


@click.command("doctor")
@option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(*, as_json: bool) -> None:
    """Say what this machine can do, by trying it; exit code 1 if something is not as it should be.

    \b
    weir doctor
    """  # noqa: D301 - \b keeps click from folding the examples
    findings = [_machine(), _memory(), _disk(), _simulator(), _lab(), _kernel()]
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        table = Table(box=None)
        for finding in findings:
            table.add_row(finding.what, Text(*MARKS[finding.good]), finding.found)
        console.print(table)
    if any(finding.good is False for finding in findings):
        raise SystemExit(1)


def _machine() -> Finding:
    processors = len(os.sched_getaffinity(0))
    kernel = f"{platform.system()} {platform.release()} on {platform.machine()}"
    return Finding(
        what="machine",
        good=platform.system() == "Linux",
        found=f"{kernel}, Python {platform.python_version()}, {processors} processors to use",
    )


def _memory() -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    good = total >= NEEDED_MEMORY_GIB
    found = f"{total:.1f} GiB of memory"
    return Finding(
        what="memory",
        good=good,
        found=found if good else f"{found}: runs of thousands of flows need {NEEDED_MEMORY_GIB} GiB",
    )


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    good = free >= NEEDED_DISK_GIB
    found = f"{free:.1f} GiB free here"
    return Finding(
        what="disk",
        good=good,
        found=found if good else f"{found}: a minute of RRUL takes about 2 MiB; free some space",
    )


def _simulator() -> Finding:
    """Runs RRUL for five simulated seconds."""
    spec = ScenarioSpec(
        test="rrul",
        link="cable-20-8",
        queue=["fq_codel"],
        phases={"idle": "1s", "load": "3s", "cooldown": "1s"},
    )
    with tempfile.TemporaryDirectory(prefix="weir-doctor-") as folder:
        started = time.monotonic()
        [record] = run_all(resolve(spec), world_named("sim"), Path(folder) / "run")
        took = time.monotonic() - started
        packets = record.manifest.packets or 0
    return Finding(
        what="simulator",
        good=record.manifest.complete,
        found=f"5 s of RRUL in {took:.2f} s, {packets} packets through queues",
    )


def _lab() -> Finding:
    """Runs a program that does nothing in a lab."""
    trial = try_lab()
    if trial.refusal is not None:
        return Finding(what="lab", good=False, found=f"{trial.refusal}; the simulator works without")
    return Finding(what="lab", good=True, found=f"runs, on {trial.device}: {trial.why}")


def _kernel() -> Finding:
    """Looks for the kernel of the world kernel. Without one all else works: most machines have none."""
    from weirlab.worlds.kernel import found_kernel, release_of, usual_places  # noqa: PLC0415 - only this needs it

    try:
        image = found_kernel()
    except UsageError as error:
        wrong = "WEIR_KERNEL" in os.environ or any(place.is_file() for place in usual_places())
        return Finding(what="world kernel", good=False if wrong else None, found=str(error))
    return Finding(what="world kernel", good=True, found=f"Linux {release_of(image)}, `{image}`")


MARKS = {True: ("good", "green"), False: ("not good", "red"), None: ("not there", "dim")}
"""Word and style of what was found of each thing."""

NEEDED_MEMORY_GIB = 2
NEEDED_DISK_GIB = 1
