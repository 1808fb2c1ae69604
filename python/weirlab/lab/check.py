"""Whether this machine lets a lab run, found out by trying it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from weirlab.errors import LabError
from weirlab.lab.client import ask
from weirlab.record import new_manifest, open_record
from weirlab.scenario import ScenarioSpec, resolve


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Result of a trial whether this machine can make a lab.

    Attributes:
        refusal: why there is no lab here, in one sentence; None if there is one.
        device: how packets leave and enter the kernel; empty without a lab.
        why: why it is that device.
    """

    refusal: str | None
    device: str = ""
    why: str = ""


def try_lab() -> Trial:
    """Runs a program that does nothing in a lab, which takes about half a second."""
    test = {"name": "try", "title": "A program that does nothing", "phases": {"load": "1s"}}
    [run] = resolve(ScenarioSpec.model_validate({"test": test, "link": "cable-20-8"}))
    with tempfile.TemporaryDirectory(prefix="weir-lab-") as folder:
        record = Path(folder) / "record"
        request = {
            "do": "exec",
            "scenario": run.scenario,
            "traces": dict(run.traces),
            "seed": run.seed,
            "program": ["true"],
            "server_command": None,
            "capture": None,
            "record": {
                "folder": str(record),
                "manifest": new_manifest(run, world="lab", clock="monotonic", offloads=""),
            },
        }
        try:
            answer = ask(request)
        except LabError as error:
            return Trial(refusal=str(error))
        if answer["exit_code"] != 0:
            return Trial(refusal=f"`true` ended with code {answer['exit_code']} in the lab")
        device = open_record(record).manifest.device or "a device of unknown kind"
    return Trial(refusal=None, device=device, why=_why(device))


def _why(device: str) -> str:
    """Why packets pass through that device."""
    if device == "tun":
        return f"{TUN} can be opened"
    if not TUN.exists():
        return f"there is no {TUN}"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} may not be opened by this user"
    return f"the kernel gave no device for {TUN}"


TUN = Path("/dev/net/tun")
