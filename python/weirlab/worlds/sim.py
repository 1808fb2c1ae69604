"""The simulator: virtual time, the same samples for the same seed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from weirlab import _native
from weirlab.errors import UsageError, WriteError
from weirlab.record import new_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.base import Progress


class SimWorld:
    """The simulator."""

    name = "sim"
    at_once: int | None = None

    def check(self, run: ResolvedRun) -> None:
        """Refuses congestion controls and probes that only live worlds have."""
        try:
            _native.check_simulation(json.dumps(run.scenario))
        except _native.NativeError as error:
            raise UsageError(str(error)) from error

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        """Runs a scenario and writes its record into `folder`; says whether it came to its end."""
        manifest = new_manifest(
            run,
            world=self.name,
            clock="virtual, nanoseconds since the start of the run",
            offloads="none: every packet is simulated by itself",
        )
        try:
            outcome = _native.simulate(json.dumps(manifest), run.traces, folder, progress)
        except _native.InputError as error:
            raise UsageError(str(error)) from error
        except _native.NativeError as error:
            raise WriteError(str(error)) from error
        return outcome["complete"]
