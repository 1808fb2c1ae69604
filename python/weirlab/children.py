"""What the processes that Weir begins have in common.

Nothing is loaded here but what Python itself has.
"""

from __future__ import annotations

import signal

__all__ = ["ONE_THREAD", "how_it_ended"]

ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of processes that share the processors by themselves: each works in one thread."""


def how_it_ended(code: int) -> str:
    """The return code of a process in words: the signal that ended it, or its exit code."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
