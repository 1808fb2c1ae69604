"""Commands of the user's with all processes that they start."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Group"]


class Group:
    """A command and all processes that it starts, which end with this process, whatever ends that.

    Attributes:
        process: the command's own process.
    """

    def __init__(self, command: Sequence[str], **how: Any) -> None:
        """Starts the command; `how` goes to `subprocess.Popen`."""
        self.process = subprocess.Popen(command, start_new_session=True, **how)
        # What kills this process cannot be heard by it: another one waits for the end of a pipe.
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sh", str(self.process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self, patience_s: float) -> None:
        """Ends all of it: asks, and kills what is left once the command has ended, or after `patience_s`."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        self._signal(signal.SIGKILL)
        self.process.wait()
        self.let_go()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def let_go(self) -> None:
        """Leaves what still runs of it to itself."""
        with suppress(BrokenPipeError):
            self._guard.communicate(b"over\n")


GUARD = 'read word; [ -n "$word" ] || { kill -s TERM -- "-$1"; sleep 2; kill -s KILL -- "-$1"; }'
"""Ends a group, by its number, once nobody can write to it any more and nothing was written."""
