"""The scripts that set up, build and clear away, with programs in place of those that they call."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def programs(folder: Path, **scripts: str) -> dict[str, str]:
    """An environment in which these programs come before others of their names; a `_` stands for a `-`."""
    for name, script in scripts.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def project(folder: Path, *files: str) -> Path:
    """A folder with these files of ours alone, for scripts that go to the root of their own."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    return folder


@pytest.mark.parametrize(("machine", "target"), [("armv7l", ""), ("x86_64", "x86_64-unknown-linux-musl")])
def test_a_target_that_rust_does_not_know_is_not_built_for(tmp_path: Path, machine: str, target: str) -> None:
    """Where the kernel calls a machine otherwise than Rust does, the machine's C library is taken."""
    here = project(tmp_path, "tools/agent.sh")
    environment = programs(
        here / "bin",
        uname=f"echo {machine}",
        rustc=f'[ "$4" = x86_64-unknown-linux-musl ] && echo "{here}"',
        cargo=f'echo "$@" >"{here}/asked"',
        strip="",
        musl_gcc="",
    )
    done = subprocess.run(
        [here / "tools/agent.sh"], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert (here / "asked").read_text().partition("--target ")[2].strip() == target
    assert ("so the program needs this machine's C library" in done.stderr) == (target == "")
