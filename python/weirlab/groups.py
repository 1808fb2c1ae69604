"""Commands of the user's with all processes that they start."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, Any, cast

__all__ = ["Group"]


class Group:
    """A command of the shell and all that it starts, which end with this process, whatever ends that.

    Its number stays taken until `end` or `let_go`, so that no other's group is ever meant by it.
    """

    def __init__(self, command: str, **how: Any) -> None:
        """Starts the command, to which nothing is typed; `how` goes to `subprocess.Popen`."""
        words = ["/bin/sh", "-c", GUARDED, "sh", command]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True, **how)

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
        # The guard may have been killed with the others.
        with suppress(BrokenPipeError), cast("IO[bytes]", self._process.stdin) as guard:
            guard.write(b"over\n")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_S)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


LOOK_EVERY_S = 0.02
"""How often it is looked whether a command that is to end has ended."""

LAST_S = 2.0
"""How long a killed process may take to end: one that is within the kernel ends later."""

# What kills this process cannot be heard by it, so that one of the group waits for the end of a pipe. It is
# there before the command is, and no child of the command, which may wait for all that it has.
GUARDED = """
exec 3<&0 </dev/null
( (
    trap '' HUP INT TERM
    read word || { kill -s TERM 0; sleep 2; kill -s KILL 0; }
) <&3 3<&- >/dev/null 2>&1 & ) || exit
exec /bin/sh -c "$1" 3<&-
"""
"""Runs a command, and ends its group once its standard input ends without a word."""
