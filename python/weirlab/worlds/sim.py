"""The simulator: virtual time, the same samples for the same seed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import UsageError, WriteError
from weirlab.record import new_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab._native import OutcomeRows
    from weirlab.record import HeldRecord
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
        try:
            outcome = _native.simulate(json.dumps(self._manifest(run)), run.traces, folder, progress)
        except _native.InputError as error:
            raise UsageError(str(error)) from error
        except _native.NativeError as error:
            raise WriteError(str(error)) from error
        return outcome["complete"]

    def rows(self, run: ResolvedRun, progress: Progress | None) -> OutcomeRows:
        """Runs a scenario and keeps its rows in memory: the samples that `run` would write, without a record.

        Raises:
            UsageError: if it cannot be simulated.
        """
        try:
            return _native.simulate_rows(json.dumps(run.scenario), run.seed, run.traces, progress)
        except _native.InputError as error:
            raise UsageError(str(error)) from error

    def held(self, run: ResolvedRun, outcome: OutcomeRows) -> HeldRecord:
        """The rows of a run as a record in memory."""
        from weirlab.record import HeldRecord, Manifest  # noqa: PLC0415 - who writes records needs no NumPy

        said = self._manifest(run) | {
            key: outcome[key] for key in ("complete", "reached_ns", "events", "packets")
        }
        return HeldRecord(Manifest(**said), outcome["tables"], run.traces)

    def _manifest(self, run: ResolvedRun) -> dict[str, Any]:
        return new_manifest(
            run,
            world=self.name,
            clock="virtual, nanoseconds since the start of the run",
            offloads="none: every packet is simulated by itself",
        )
