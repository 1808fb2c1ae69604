"""The lab's process in a guest: `python -m weirlab.lab.guest`, under a kernel of its own.

`weirlab.lab.guest_machine` has started that kernel. The working folder is the one that the guest shares with
its host: the request is its file `request.json`, views of the run and the answer go to the console, a line of
JSON each, and a file `stop` ends the run at the next view.
`python -m weirlab.lab.guest off` switches the guest off.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from weirlab import _native

__all__ = ["RECORD", "REQUEST", "STOP"]

REQUEST = "request.json"
"""The file with the request, in the shared folder."""
STOP = "stop"
"""The file whose presence ends the run, in the shared folder."""
RECORD = "/dev/weir-record"
"""Where the guest has the folder of the record, the only one of its host's that it may write to."""


def main() -> int:
    """Does what is asked, and returns the exit code."""
    if sys.argv[1:] == ["off"]:
        return _off()
    request = json.loads(Path(REQUEST).read_text(encoding="utf-8"))
    try:
        _mount(keeps="record" in request)
        _become_owner()
        print(f'{{"answer": {_answer(request)}}}', flush=True)
    except (_native.NativeError, OSError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    return 0


def _answer(request: dict[str, Any]) -> str:
    """What comes of a request: one of the lab's, or `check`, by which the lab looks at this kernel."""
    if request["do"] != "check":
        return _native.lab(json.dumps(request), _show)
    scenario = request["scenario"]
    _native.check_lab(json.dumps(scenario))
    if request["datapath"] == "kernel":
        return _native.lab(json.dumps({"do": "check_kernel_path", "scenario": scenario}), _show)
    return "{}"


def _show(view: str) -> bool:
    print(f'{{"view": {view}}}', flush=True)
    return not Path(STOP).exists()


def _mount(*, keeps: bool) -> None:
    """Mounts what the lab needs: the root of the guest is its host's, and may only be read."""
    for kind, place in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")):
        _mounted(kind, place, "")
    if keeps:
        Path(RECORD).mkdir()
        _mounted("hostfs", RECORD, "/proc/self/cwd/record")


def _mounted(kind: str, place: str, data: str) -> None:
    # Not by `mount(8)`, which splits what hostfs takes as a path.
    if _libc().mount(b"none", place.encode(), kind.encode(), 0, data.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {kind} in the guest: {os.strerror(number)}", place)


def _become_owner() -> None:
    """Goes on as the user who runs Weir: in its namespaces the lab may write to what is that user's own."""
    owner = Path.cwd().stat()
    if owner.st_uid == os.getuid():
        return
    # What only root may raise, the lab then finds raised.
    resource.setrlimit(resource.RLIMIT_NICE, (MAX_NICE, MAX_NICE))
    resource.setrlimit(resource.RLIMIT_RTPRIO, (MAX_RTPRIO, MAX_RTPRIO))
    os.setgroups([])
    os.setgid(owner.st_gid)
    os.setuid(owner.st_uid)
    # Who has changed its user may else not write to its own files in /proc, as the lab does.
    _libc().prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def _off() -> int:
    os.sync()
    return int(_libc().reboot(POWER_OFF))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


MAX_NICE, MAX_RTPRIO = 40, 99
"""getrlimit(2)."""
PR_SET_DUMPABLE = 4
"""linux/prctl.h."""
POWER_OFF = 0x4321FEDC
"""LINUX_REBOOT_CMD_POWER_OFF of linux/reboot.h."""


if __name__ == "__main__":
    sys.exit(main())
