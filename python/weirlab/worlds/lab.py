"""The lab: the real TCP of this machine's kernel, in real time, in namespaces of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from weirlab import _native
from weirlab.errors import UsageError
from weirlab.lab.client import ask
from weirlab.record import new_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.lab.client import View
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.base import Progress

CLOCK = "monotonic, nanoseconds since the start of the run"
OFFLOADS = "super-packets are cut before they meet a queue and joined behind the line"


class LabWorld:
    """The lab."""

    name = "lab"
    at_once: int | None = 1

    def check(self, run: ResolvedRun) -> None:
        """Refuses congestion controls and settings that this machine's kernel does not have."""
        try:
            _native.check_lab(json.dumps(run.scenario))
        except _native.NativeError as error:
            raise UsageError(str(error)) from error

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        """Runs a scenario and writes its record into `folder`; says whether it came to its end."""
        manifest = new_manifest(run, world=self.name, clock=CLOCK, offloads=OFFLOADS)

        def on_view(view: View) -> bool:
            return progress is None or progress(view["t_ns"])

        request = {
            "do": "run",
            "traces": dict(run.traces),
            "device": None,
            "capture": None,
            "record": {"folder": str(folder.absolute()), "manifest": manifest},
        }
        return bool(ask(request, on_view)["complete"])
