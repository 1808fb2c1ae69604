"""Runs the Rust tests as `cargo test` does, but two programs of tests beside each other.

    python3 tools/rust_tests.py --config tools/tests.toml --profile quick --workspace --locked

The words are those of `cargo test`, which runs one program after another, so that a processor stands still
while tests wait for clocks and sockets. Here one lane runs the programs that wait, as `cargo test` does.
Another runs those that compute, one test at a time, so that what keeps times has a processor too. What failed
is shown whole, and all programs are run to their ends. Tests in documentation come last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent

WAITING = {"agent", "client", "lab", "linux", "serve", "shape", "sockets"}
"""Crates whose tests wait for clocks, sockets and devices: the two lanes take about as long."""


@dataclass(frozen=True)
class Program:
    """A program of tests.

    Attributes:
        crate: the folder of its crate, where cargo runs it.
        source: its first source file, below the root.
        file: the program.
    """

    crate: Path
    source: str
    file: str


def main(words: list[str]) -> int:
    """Compiles and runs all tests; the exit code is 0 only if every one passed."""
    programs = list(compiled(words))
    if not programs:
        print("tools/rust_tests.py: cargo names no program of tests, so nothing was tested", file=sys.stderr)
        return 1
    lanes = {True: ThreadPoolExecutor(1), False: ThreadPoolExecutor(1)}
    passed = {}
    for one in programs:
        waits = one.crate.name in WAITING
        passed[one] = lanes[waits].submit(passes, one, *([] if waits else ["--test-threads=1"]))
    try:
        failed = [one.source for one, result in passed.items() if not result.result()]
    finally:
        # Whoever interrupts this waits for no program that has not begun.
        for lane in lanes.values():
            lane.shutdown(cancel_futures=True)
    for name in failed:
        print(f"FAILED: Rust tests in {name}; see above")
    documented = subprocess.run(["cargo", "test", "--doc", "--quiet", *words], check=False).returncode
    return 1 if failed or documented else 0


def compiled(words: list[str]) -> Iterator[Program]:
    """Compiles the programs of tests, and names them; ends the script where that fails."""
    command = ["cargo", "test", "--no-run", "--quiet", "--message-format=json-render-diagnostics", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    for message in map(json.loads, done.stdout.splitlines()):
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            source = Path(message["target"]["src_path"]).relative_to(ROOT).as_posix()
            yield Program(Path(message["manifest_path"]).parent, source, message["executable"])


def passes(program: Program, *words: str) -> bool:
    """Runs a program where cargo would, and says at once how it ended: whole if it failed."""
    done = subprocess.run(
        [program.file, "--quiet", *words],
        cwd=program.crate,
        env=os.environ | {"CARGO_MANIFEST_DIR": str(program.crate)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    result = next((line for line in done.stdout.splitlines() if line.startswith("test result: ")), None)
    good = done.returncode == 0 and result is not None
    # In one piece: the other lane writes too.
    print(f"{program.source}: {result}" if good else f"{program.source}:\n{done.stdout}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
