"""One call of the command, and whether it went as docs/cli.md says, whatever it was given."""

from __future__ import annotations

import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

CODES = {0, 1, 2, 3, 130}
"""Exit codes that docs/cli.md names."""

PATIENCE_S = 60
"""After that many seconds a call is told to end."""

LIMIT_S = 120
"""How long a call may take then. What hangs, hangs longer; a busy machine takes half a minute for a start."""

MAX_MEMORY_BYTES = 3 << 30
"""Bytes of a process: the greatest study takes a tenth."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call to be made.

    Attributes:
        words: what is passed, behind the name of the command.
        interrupts_s: when Ctrl-C is pressed.
        output, errors: files instead of pipes.
        setting: what was done to the folder before, as shell commands.
        program: text of a Python program that is called instead of `weir`.
    """

    words: tuple[str, ...]
    interrupts_s: tuple[float, ...] = ()
    output: str | None = None
    errors: str | None = None
    setting: tuple[str, ...] = ()
    program: str | None = None

    def __str__(self) -> str:
        """The call as something to paste."""
        called = f"python -c {shlex.quote(self.program)}" if self.program else "weir"
        line = " ".join([called, *(_pasteable(word) for word in self.words)])
        if self.output:
            line += f" >{self.output}"
        if self.errors:
            line += f" 2>{self.errors}"
        if self.interrupts_s:
            line += "  # Ctrl-C after " + ", ".join(f"{at:.2f} s" for at in self.interrupts_s)
        return "\n".join([*self.setting, line])


def prepare(call: Call, folder: Path) -> None:
    """Does to a folder what the call's setting says."""
    if call.setting:
        # One word of a command has 128 KB at most, and a file that is written here may have more.
        script = "\n".join(call.setting).encode()
        subprocess.run(
            ["bash", "-s"], input=script, cwd=folder, check=False, timeout=LIMIT_S, capture_output=True
        )


def failure(program: list[str], call: Call, folder: Path) -> str | None:
    """Makes the call in `folder`; what is wrong with how it ended, None if nothing."""
    with ExitStack() as closing:
        streams = [
            closing.enter_context(Path(name).open("wb")) if name else subprocess.PIPE
            for name in (call.output, call.errors)
        ]
        try:
            process = subprocess.Popen(
                [
                    *([sys.executable, "-c", call.program] if call.program else program),
                    *(os.fsencode(word) for word in call.words),
                ],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
                preexec_fn=_limit,  # noqa: PLW1509 - it calls the kernel only
                start_new_session=True,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
            )
        except (ValueError, OSError):
            # No program at all can be passed this.
            return None
        return _judged(process, call)


def _judged(process: subprocess.Popen[bytes], call: Call) -> str | None:
    """Waits for the end, with the signals of the call; what is wrong with it.

    What takes long is asked to end, as whoever waits for it would: it may take long, but not go on then.
    """
    started = time.monotonic()
    for at in (*call.interrupts_s, PATIENCE_S, PATIENCE_S + 2):
        try:
            process.wait(timeout=max(0.0, started + at - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
    try:
        output, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)
        return f"it has not ended {LIMIT_S} s after Ctrl-C"
    told = ((output or b"") + (errors or b"")).decode("utf-8", "replace").strip()
    interrupted = bool(call.interrupts_s) or time.monotonic() > started + PATIENCE_S
    if interrupted and _before_ours(process.returncode, told):
        return None
    return _wrong(process.returncode, told, len(errors or b""), heard=not (call.output or call.errors))


def _wrong(code: int, told: str, length: int, *, heard: bool) -> str | None:
    """What is wrong with an exit code and what was told, if it was `heard` in full."""
    traces = [told.index(mark) for mark in TRACES if mark in told]
    if traces:
        return "a traceback: " + told[min(traces) :][:MAX_TRACE]
    if "panicked at" in told:
        return "a panic: " + told[told.index("panicked at") :][:200]
    if code not in CODES:
        return f"exit code {code}: {told[-200:]}"
    if code in {1, 2, 3} and heard and not told:
        return f"exit code {code} without a word"
    return f"{length} bytes of errors" if length > MAX_STDERR_BYTES else None


TRACES = ("Traceback (most recent call last)", "Exception ignored")
MAX_TRACE = 4_000
"""Of a traceback this much is told: enough to find the place."""


def _before_ours(code: int, told: str) -> bool:
    """Whether Ctrl-C came while Python itself was starting, or read who we are."""
    if code == -signal.SIGINT:
        return True
    frames = re.findall(r'File "([^"]+)"', told)
    return "KeyboardInterrupt" in told and not any("/weirlab/cli/" in frame for frame in frames)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def _pasteable(word: str) -> str:
    repeated = re.fullmatch(r"(.{1,40}?)\1{20,}(.{0,40})", word, re.DOTALL)
    if repeated:
        unit, rest = repeated[1], repeated[2]
        count = (len(word) - len(rest)) // len(unit)
        return f'"$(python3 -c {shlex.quote(f"print({unit!r} * {count} + {rest!r})")})"'
    if not word.isprintable():
        return f"$'{word.encode('unicode_escape').decode('ascii')}'"
    return shlex.quote(word)


MAX_STDERR_BYTES = 200_000
"""Bytes of errors: longer than the help of all commands together."""
