"""A lab in a kernel of its own, in virtual time: `python -m weirlab.lab.guest_machine FD KERNEL SEED`.

The kernel is user-mode Linux: a process. Its root is this machine's file system, which it may only read, so
that this very Python runs in it (`weirlab.lab.guest`). This process starts it, and hands on between it and
the socket of that number, over which it is asked and answers as `weirlab.lab.process` does. When the other
end of the socket is gone, however it went, the kernel is ended and its folder removed; should this process
itself be killed, the kernel dies with it.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab.interrupt import REQUESTS
from weirlab.lab.guest import RECORD, REQUEST, STOP

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> int:
    """Does what is asked, and returns the exit code."""
    kernel, seed = sys.argv[2:4]
    with socket.socket(fileno=int(sys.argv[1])) as parent:
        parent.set_inheritable(False)
        with tempfile.TemporaryDirectory(prefix="weir-kernel-") as folder:
            ending = _Ending(Path(folder))
            said = _said(Path(folder), kernel, seed, parent, ending)
        # The last word comes when all is cleared away.
        with suppress(OSError):
            parent.sendall(json.dumps(said).encode() + b"\n")
    return 0 if "answer" in said else 1


class _Ending:
    """Requests to end, which the guest hears of by a file at its next view, so that it closes the record."""

    def __init__(self, folder: Path) -> None:
        """Listens for the signals that ask for the end, but those that are ignored."""
        self._file = folder / STOP
        self.asked = False
        self.deadline_s = float("inf")
        for number in REQUESTS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._hear)
        # They were held back until somebody heard them.
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def _hear(self, _number: int, _frame: object) -> None:
        if not self.asked:
            self.asked = True
            self.within(PATIENCE_S)
            self._file.touch()

    def within(self, seconds: float) -> None:
        """The guest is to end within that time, by the clock."""
        self.deadline_s = min(self.deadline_s, time.monotonic() + seconds)


def _said(folder: Path, kernel: str, seed: str, parent: socket.socket, ending: _Ending) -> dict[str, Any]:
    """What came of the request that stands in `parent`: an answer or an error."""
    try:
        with parent.makefile("r", encoding="utf-8") as lines:
            _share(folder, json.loads(lines.readline()))
        with _started(folder, kernel, seed) as process:
            return _talk(process, parent, ending)
    except OSError as error:
        return {"error": f"the kernel cannot be started: `{error.filename}`: {error.strerror}"}


def _share(folder: Path, request: dict[str, Any]) -> None:
    """Puts into `folder` what the guest needs: its first program, and the request with its own names."""
    record = request.get("record")
    if record is not None:
        Path(record["folder"]).mkdir(parents=True, exist_ok=True)
        (folder / "record").symlink_to(record["folder"])
        request = {**request, "virtual_time": True, "record": {**record, "folder": RECORD}}
    (folder / REQUEST).write_text(json.dumps(request), encoding="utf-8")
    python = f"{shlex.quote(sys.executable)} -P -m weirlab.lab.guest"
    shown = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"}
    if path := os.environ.get("PYTHONPATH"):
        shown["PYTHONPATH"] = os.pathsep.join(str(Path(one).absolute()) for one in path.split(os.pathsep))
    init = folder / "init"
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in shown.items())
    init.write_text(f"#!/bin/sh\n{exports}cd /proc/self/cwd\n{python}\nexec {python} off\n", encoding="utf-8")
    init.chmod(0o700)


@contextmanager
def _started(folder: Path, kernel: str, seed: str) -> Iterator[subprocess.Popen[bytes]]:
    """The kernel while it runs; in the end what is left of it is killed."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "setarch", "--addr-no-randomize", kernel, *ARGUMENTS],
        cwd=folder,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "TMPDIR": _memory_folder(),
            "UML_SEED": seed,
            # User-mode Linux does not know the host's restartable sequences.
            "GLIBC_TUNABLES": "glibc.pthread.rseq=0",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Ctrl-C reaches this process alone.
        start_new_session=True,
    )
    try:
        if process.stdout is not None:
            # A guest that waited for a reader would do so in virtual time.
            with suppress(OSError):
                fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _memory_folder() -> str:
    """Where the guest's memory is, a file that has no name: in memory if that has room and runs programs."""
    shared = "/dev/shm"  # noqa: S108 - the file is opened anew, and unlinked at once
    try:
        found = os.statvfs(shared)
    except OSError:
        return tempfile.gettempdir()
    fits = found.f_bavail * found.f_frsize >= NEEDED_BYTES
    if fits and not found.f_flag & os.ST_NOEXEC and os.access(shared, os.W_OK | os.X_OK):
        return shared
    return tempfile.gettempdir()


def _talk(process: subprocess.Popen[bytes], parent: socket.socket, ending: _Ending) -> dict[str, Any]:
    """Hands views on until the guest has ended, and returns its answer or an error."""
    last: dict[str, Any] | None = None
    view = '{"view": {"t_ns": 0, "queues": {}}}'
    others: deque[str] = deque(maxlen=TAIL_LINES)
    for line in _lines(process, parent, ending):
        said = _ours(line)
        if said is None:
            others.extend([line] if line else [])
        elif "view" not in said:
            last = said
            ending.within(OFF_S)
        else:
            view = line
        if last is None and (said is not None or not line):
            # Without news the last view once more: it asks whether to go on.
            parent.sendall(view.encode() + b"\n")
    if last is not None:
        return last
    if ending.asked and process.poll() is None:
        return {"error": f"the kernel did not end within {PATIENCE_S:.0f} s of being asked to"}
    tail = " / ".join(others) or "it said nothing"
    return {"error": f"the kernel ended without an answer, with code {_code(process)}: {tail}"}


def _code(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code of a kernel that says no more; None if it goes on all the same."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(OFF_S)
    return None


def _ours(line: str) -> dict[str, Any] | None:
    """What the guest says in a line of its console; None if the line is the kernel's."""
    if not line.startswith(('{"view": ', '{"answer": ', '{"error": ')):
        return None
    try:
        said: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    return said


def _lines(process: subprocess.Popen[bytes], parent: socket.socket, ending: _Ending) -> Iterator[str]:
    """The lines of the guest's console, and an empty one whenever there was none for a while.

    They end with the guest, and when it has not ended in time.

    Raises:
        BrokenPipeError: when the other end of `parent` is gone.
    """
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    held = b""
    while time.monotonic() < ending.deadline_s:
        ready, _, _ = select.select([process.stdout.fileno(), parent.fileno()], [], [], LISTEN_EVERY_S)
        if parent.fileno() in ready:
            raise BrokenPipeError("who asked is gone: nothing more is asked of a guest")
        if not ready:
            if process.poll() is not None:
                return
            yield ""
            continue
        read = os.read(process.stdout.fileno(), PIPE_BYTES)
        if not read:
            return
        *whole, held = (held + read).split(b"\n")
        for line in whole:
            if text := line.decode(errors="replace").strip():
                yield text


ARGUMENTS = (
    "mem=2G",
    "root=/dev/root",
    "rootfstype=hostfs",
    "rootflags=/",
    "ro",
    # In its working folder, by a name that is the same in all runs: random numbers depend on these words.
    "init=/proc/self/cwd/init",
    "quiet",
    "panic=-1",
    "con=null",
    "con0=null,fd:1",
    "time-travel=inf-cpu",
    "time-travel-start=1700000000000000000",
)
"""The kernel's command line. With less memory Linux lowers `tcp_rmem`; what is unused costs nothing."""

NEEDED_BYTES = 1 << 30
"""What the guest's memory may come to, with the files that it has read."""
PIPE_BYTES = 1 << 20
"""More than a guest says in hours; the most that a pipe holds for any user."""
LISTEN_EVERY_S = 1.0
"""How long without news until the last view is shown again."""
PATIENCE_S = 60.0
"""How long by the clock a guest may take from a request to end to its answer: views take some seconds."""
OFF_S = 10.0
"""How long by the clock it may take from its answer to being switched off."""
TAIL_LINES = 3
"""How many of the kernel's last lines an error shows."""


if __name__ == "__main__":
    sys.exit(main())
