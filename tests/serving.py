"""Servers at work for tests: `weir serve` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from live import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

WEIR = [sys.executable, "-m", "weirlab"]
RATE_MBIT = 50
"""A server lets so much pass: a result above it would be wrong, and several at once leave a machine idle."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server at work: its process and where it listens."""

    process: subprocess.Popen[str]
    address: str
    irtt: str | None


@contextmanager
def serving(*words: str) -> Iterator[Server]:
    """A server on free ports of the loopback address."""
    command = [*WEIR, "serve", "--listen", "127.0.0.1:0", "--irtt-port", "0", "--json", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        told: dict[str, str] = {}
        while not {"address", "irtt"} <= told.keys():
            line = process.stderr.readline()
            assert line, "the server ended"
            told |= json.loads(line)
        yield Server(process=process, address=told["address"], irtt=told["irtt"])
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def fetch(address: str, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        # Closed also where the server resets the connection behind its answer, in the midst of what is read.
        with error:
            return error.code, error.read()
