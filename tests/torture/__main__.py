"""`python -m torture`: is clumsy with every command and option for some time, and says what that broke.

Each failure is printed as commands to paste. It ends with exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torture.call import LIMIT_S, Call, failure, prepare
from torture.plans import Command, commands, draw

PROGRAM = [sys.executable, "-m", "weirlab"]


def main() -> int:
    """Runs it; returns the exit code."""
    ask = argparse.ArgumentParser(prog="torture", description=__doc__)
    ask.add_argument("--seconds", type=float, default=300, help="how long")
    ask.add_argument("--seed", type=int, default=None, help="of what is tried; a new one if not given")
    ask.add_argument("--at-once", type=int, default=2, help="calls at once")
    ask.add_argument("--only", default="", help="only calls that begin with these words")
    said = ask.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if said.seed is None else said.seed
    print(f"torture: {said.seconds:g} s of clumsy use with seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="weir-torture-") as top:
        work = Torture(Path(top), seed, said.seconds, said.only)
        with ThreadPoolExecutor(said.at_once) as pool:
            for worker in [pool.submit(work.keep_going) for _ in range(said.at_once)]:
                worker.result()
    print(f"{work.passed} passed, {work.failed} failed (seed {seed})")
    return 1 if work.failed or not work.passed else 0


class Torture:
    """The calls of one seed, made until the time is over."""

    def __init__(self, top: Path, seed: int, seconds: float, only: str) -> None:
        """Prepares: a record to read, and the commands that there are."""
        self.passed = self.failed = 0
        self._top, self._seed, self._only = top, seed, only.split()
        self._record = top / "record"
        self._sound_record()
        self._known: list[Command] = commands(PROGRAM)
        self._number = 0
        self._taking = threading.Lock()
        self._until = time.monotonic() + seconds

    def keep_going(self) -> None:
        """Makes calls until the time is over."""
        while time.monotonic() < self._until:
            with self._taking:
                number = self._number
                self._number += 1
            call = draw(random.Random(f"{self._seed} {number}"), self._known)  # noqa: S311 - what is tried
            if list(call.words[: len(self._only)]) == self._only:
                self._make(number, call)

    def _make(self, number: int, call: Call) -> None:
        folder = self._folder(number)
        prepare(call, folder)
        why = failure(PROGRAM, call, folder)
        subprocess.run(["rm", "-rf", str(folder)], check=False, timeout=LIMIT_S)
        with self._taking:
            if why is None:
                self.passed += 1
                return
            self.failed += 1
            print(f"FAILED (number {number}): {why}\n{call}\n", flush=True)

    def _folder(self, number: int) -> Path:
        """A folder with what hostile words name: two records, a named pipe, and a file that is no folder."""
        folder = self._top / str(number)
        folder.mkdir()
        shutil.copytree(self._record, folder / "rec")
        shutil.copytree(self._record, folder / "other")
        os.mkfifo(folder / "pipe")
        (folder / "full").symlink_to("/dev/full")
        (folder / "locked").touch(mode=0)
        return folder

    def _sound_record(self) -> None:
        words = ["rrul", "--idle", "1s", "--load", "2s", "--cooldown", "1s", "--no-charts"]
        done = subprocess.run(
            [*PROGRAM, "run", *words, "--out", str(self._top / "made")],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"torture: no record can be made: {done.stderr}")
        (made,) = (self._top / "made").iterdir()
        made.rename(self._record)


if __name__ == "__main__":
    sys.exit(main())
