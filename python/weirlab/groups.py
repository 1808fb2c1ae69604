"""Commands of the user's with all processes that they start."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Group"]


class Group:
    """A command and all processes that it starts, which end with this process, whatever ends that.

    Its number stays taken until `end` or `let_go`, so that no other's group is ever meant by it.
    """

    def __init__(self, command: Sequence[str], **how: Any) -> None:
        """Starts the command, to which nothing is typed; `how` goes to `subprocess.Popen`."""
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **how)
        try:
            # What kills this process cannot be heard by it: another one waits for the end of a pipe.
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "sh", str(self._process.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            # Without its guard, as where no process is left, nothing of it may go on.
            self._signal(signal.SIGKILL)
            self._wait()
            raise

    def code(self) -> int | None:
        """The exit code of the command itself, below 0 for a signal; None while it runs."""
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def end(self, patience_s: float) -> None:
        """Ends all of it: asks, and kills what is left once the command has ended, or after `patience_s`.

        What runs as another user cannot be ended, and is left to itself.
        """
        self._signal(signal.SIGTERM)
        until_s = time.monotonic() + patience_s
        while self.code() is None and time.monotonic() < until_s:
            time.sleep(LOOK_EVERY_S)
        self._signal(signal.SIGKILL)
        self.let_go()

    def let_go(self) -> None:
        """Leaves what still runs of it to itself."""
        self._guard.communicate(b"over\n")
        self._wait()

    def _wait(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_S)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


LOOK_EVERY_S = 0.02
"""How often it is looked whether a command that is to end has ended."""

LAST_S = 2.0
"""How long a killed process may take to end: one that is within the kernel ends later."""

GUARD = 'read word; [ -n "$word" ] || { kill -s TERM -- "-$1"; sleep 2; kill -s KILL -- "-$1"; }'
"""Ends a group, by its number, once nobody can write to it any more and nothing was written."""
