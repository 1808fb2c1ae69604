"""The kernel: TCP and queues of a real Linux, in virtual time; the same samples for the same seed."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.errors import LabError, UsageError
from weirlab.lab.client import OwnKernel, ask
from weirlab.worlds.lab import manifest_of, run_in_lab

__all__ = ["CLOCK", "KernelWorld", "build_of", "found_kernel", "release_of"]

if TYPE_CHECKING:
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.base import Datapath, Progress

CLOCK = "virtual, nanoseconds since the start of the run"


class KernelWorld:
    """The lab within a Linux of its own, whose clock stands still while anything is computed.

    Attributes:
        datapath: who has the queues and lines; with `kernel` they are that Linux' queue disciplines.
    """

    name = "kernel"
    at_once: int | None = None

    def __init__(self, datapath: Datapath = "kernel") -> None:
        """The world with that data path."""
        self.datapath = datapath

    def check(self, run: ResolvedRun) -> None:
        """Refuses what that kernel says it does not have, and everything where there is no such kernel."""
        if run.scenario.get("shaper") is not None:
            raise UsageError(
                "shaper: the world kernel has no NFQUEUE, over which a shaper gets its packets: "
                "run it in the world sim or lab"
            )
        kernel = OwnKernel(image=found_kernel(), seed=run.seed)
        try:
            ask({"do": "check", "datapath": self.datapath, "scenario": run.scenario}, kernel=kernel)
        except LabError as error:
            raise UsageError(str(error)) from error

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        """Runs a scenario and writes its record into `folder`; says whether it came to its end."""
        image = found_kernel()
        manifest = manifest_of(run, self.name, CLOCK, self.datapath)
        manifest["kernel"] = {"release": release_of(image), "sha256": _digest(image, _mark(image))}
        kernel = OwnKernel(image=image, seed=run.seed)
        return run_in_lab(run, manifest, folder, progress, kernel)


def found_kernel() -> Path:
    """The kernel that runs as a process here: of WEIR_KERNEL, the checkout or the user's own folder.

    Raises:
        UsageError: if there is none, or the file is no such kernel.
    """
    named = os.environ.get("WEIR_KERNEL")
    places = [Path(named).absolute()] if named else usual_places()
    for place in places:
        if place.is_file():
            release_of(place)
            return place
    if named:
        raise UsageError(
            f"WEIR_KERNEL: there is no file `{named}`: name a kernel that `make kernel` has built"
        )
    raise UsageError(
        f"the world kernel needs a kernel, and there is no `{places[-1]}`: build it with `make kernel` in "
        "Weir's source, or set WEIR_KERNEL to the path of one"
    )


def usual_places() -> list[Path]:
    """Where a kernel is looked for if none is named."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    return [CHECKOUT / "target/kernel/linux", data / "weir/linux"]


def release_of(image: Path) -> str:
    """The release of a kernel, such as `6.12.117`.

    Raises:
        UsageError: if the file is no user-mode Linux that travels in time.
    """
    release = _release(image, _mark(image))
    if release is None:
        raise UsageError(
            f"`{image}` is no user-mode Linux with time travel (CONFIG_UML_TIME_TRAVEL_SUPPORT): "
            "build one with `make kernel`"
        )
    return release


def build_of(image: Path) -> str:
    """The release of a kernel and the first digits of its SHA-256, such as `6.12.117 3f2a91c04d1e`.

    Kernels of one release may have other patches and other settings.

    Raises:
        UsageError: if the file is no user-mode Linux that travels in time.
    """
    return f"{release_of(image)} {_digest(image, _mark(image))[:BUILD_DIGITS]}"


def _mark(image: Path) -> tuple[int, ...]:
    """By what it is known that a file is still the same; nothing of one that is not there."""
    try:
        found = image.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@cache
def _release(image: Path, mark: tuple[int, ...]) -> str | None:
    """The release of a kernel; None of what is none. A file is run once for this, whatever it is."""
    del mark
    try:
        done = subprocess.run(
            [image, "--showconfig"], capture_output=True, text=True, errors="replace", timeout=10, check=False
        )
        said = done.stdout
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    found = re.search(r"^# Linux/um (\S+) Kernel Configuration$", said, re.MULTILINE)
    return None if found is None or "CONFIG_UML_TIME_TRAVEL_SUPPORT=y\n" not in said else found[1]


@cache
def _digest(image: Path, mark: tuple[int, ...]) -> str:
    del mark
    with image.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


BUILD_DIGITS = 12
"""Of a digest: two builds of a machine are told apart, and a column of a table is not filled by it."""

CHECKOUT = Path(__file__).parents[3]
"""Weir's source, where it runs from there."""
