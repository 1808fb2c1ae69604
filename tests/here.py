"""The command `weir` within the process of the tests, for what needs no process of its own."""

from __future__ import annotations

import io
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from typing import TYPE_CHECKING
from unittest.mock import patch

from weirlab.cli import main

if TYPE_CHECKING:
    from pathlib import Path


def weir_here(folder: Path, *words: str) -> CompletedProcess[str]:
    """Runs the command `weir` in `folder`, to its end, without a process of its own.

    A short command spends most of its time on imports, which this process has done. Signals, streams of the
    system and imports need a process: `live.weir_in`. An error that `weir` does not know is raised here.
    """
    out, err = _Stream(), _Stream()
    with (
        chdir(folder),
        patch.object(sys, "argv", ["weir", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
        else:
            raise AssertionError("`weir` ended without an exit code")
    assert code is None or isinstance(code, int), code
    return CompletedProcess(["weir", *words], code or 0, out.text(), err.text())


class _Stream(io.TextIOWrapper):
    """Standard output or error, as a pipe is: bytes, and no terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        """All that was written."""
        self.seek(0)
        return self.read()
