"""The lab: the real TCP of this machine's kernel, in real time, in namespaces of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import LabError, UsageError
from weirlab.lab.client import ask
from weirlab.record import new_manifest

__all__ = ["CLOCK", "OFFLOADS", "LabWorld", "manifest_of", "run_in_lab"]

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.lab.client import OwnKernel, View
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.base import Datapath, Progress

CLOCK = "monotonic, nanoseconds since the start of the run"
OFFLOADS = "GSO packets are segmented before they meet a queue and coalesced behind the line"
KERNEL_OFFLOADS = "none: packets meet the kernel's queues one by one"


class LabWorld:
    """The lab.

    Attributes:
        datapath: who has the queues and lines; with `kernel` they are this machine's queue disciplines.
    """

    name = "lab"
    at_once: int | None = 1

    def __init__(self, datapath: Datapath = "userspace") -> None:
        """The lab with that data path."""
        self.datapath = datapath

    def check(self, run: ResolvedRun) -> None:
        """Refuses what this machine's kernel does not have.

        Those are congestion controls, settings and, with the kernel's data path, queue disciplines, which
        are made once to see.
        """
        try:
            _native.check_lab(json.dumps(run.scenario))
        except _native.NativeError as error:
            raise UsageError(str(error)) from error
        if self.datapath == "kernel":
            try:
                ask({"do": "check_kernel_path", "scenario": run.scenario})
            except LabError as error:
                raise UsageError(str(error)) from error

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        """Runs a scenario and writes its record into `folder`; says whether it came to its end."""
        return run_in_lab(run, manifest_of(run, self.name, CLOCK, self.datapath), folder, progress)


def manifest_of(run: ResolvedRun, world: str, clock: str, datapath: Datapath) -> dict[str, Any]:
    """The manifest of a run that starts in a lab."""
    offloads = KERNEL_OFFLOADS if datapath == "kernel" else OFFLOADS
    return new_manifest(run, world=world, clock=clock, offloads=offloads) | {"datapath": datapath}


def run_in_lab(
    run: ResolvedRun,
    manifest: dict[str, Any],
    folder: Path,
    progress: Progress | None,
    kernel: OwnKernel | None = None,
) -> bool:
    """Runs a scenario in a lab, under `kernel` or else this machine's; says whether it came to its end.

    Raises:
        LabError: what the lab could not do, in one sentence.
    """

    def on_view(view: View) -> bool:
        return progress is None or progress(view["t_ns"])

    request = {
        "do": "run",
        "traces": dict(run.traces),
        "datapath": manifest["datapath"],
        "device": None,
        "capture": None,
        "record": {"folder": str(folder.absolute()), "manifest": manifest},
    }
    return bool(ask(request, on_view, kernel=kernel)["complete"])
