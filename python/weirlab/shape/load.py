"""Load on the line during a proof: a command of the user's, or flows to and from a `weir serve`."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weirlab.groups import Group

if TYPE_CHECKING:
    from collections.abc import Iterator


class LineLoad:
    """A command that loads the line, and all processes that it started."""

    def __init__(self, command: str, **how: Any) -> None:
        """Starts the command of the shell; `how` goes to `subprocess.Popen`."""
        self._group = Group(command, stdout=subprocess.DEVNULL, **how)
        self._command = command
        self._wanted = True

    def failure(self) -> str | None:
        """Why it does not load the line, if it ended by itself and says that it failed."""
        code = self._group.code() if self._wanted else None
        return f"the load `{self._command}` ended by itself, with code {code}" if code else None

    def end(self) -> None:
        """Ends it, with what it left in the background; what does not heed that is killed."""
        if self._wanted:
            self._wanted = False
            self._group.end(LOAD_PATIENCE_S)


@contextmanager
def load_by_command(command: str) -> Iterator[LineLoad]:
    """Loads the line by a command of the shell, which is ended at the end."""
    load = LineLoad(command)
    try:
        yield load
    finally:
        load.end()


@contextmanager
def load_from_server(server: str, auth: str | None, total_s: float) -> Iterator[LineLoad]:
    """Loads the line with four downloads and four uploads of a `weir serve`, again and again.

    Args:
        server: its host and port.
        auth: file with its secret; None if it asks for none.
        total_s: how long the load is wanted. A server bounds how long a flow may take, so that a long load is
            several.
    """
    words = [sys.executable, "-m", "weirlab", "run", "rrul_be", "--world", "net", "--host", server]
    words += [] if auth is None else ["--auth", auth]
    once = [*words, "--idle", "0s", "--load", f"{min(total_s + 2, MAX_LOAD_S):g}s", "--no-charts"]
    # Records of what the line carried for us are of no use to anybody.
    with tempfile.TemporaryDirectory(prefix="weir-load-") as folder:
        load = LineLoad(f"while {shlex.join(once)}; do :; done", stderr=subprocess.DEVNULL, cwd=folder)
        try:
            yield load
        finally:
            load.end()


MAX_LOAD_S = 100.0
"""Below what `weir serve` allows a flow if nothing else is said."""
LOAD_PATIENCE_S = 2.0
"""Between asking a load to end and killing it."""
