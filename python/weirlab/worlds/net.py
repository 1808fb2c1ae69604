"""The world net: the real path to a server elsewhere that speaks Weir's own protocol (`weir serve`)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import NetError, UsageError
from weirlab.record import new_manifest
from weirlab.scenario.plain import DEFAULT_QUEUE
from weirlab.worlds.machine import machine

__all__ = ["CLOCK", "OFFLOADS", "NetWorld", "path_to", "without_path"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirlab._native import Ramp, SpeedTest
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.base import Progress

CLOCK = "monotonic of the client, nanoseconds since the start of the run; server_* on the server's own clock"
OFFLOADS = "whatever the two machines do"


class NetWorld:
    """The path to one server.

    Attributes:
        host: the server, as the user wrote it.
        secret: what it asks for, if it does.
    """

    name = "net"
    at_once: int | None = 1

    def __init__(self, host: str | None, secret: str | None = None) -> None:
        """The path to that server.

        Raises:
            UsageError: if there is none.
        """
        if not host:
            raise UsageError("the world net needs a server: give --host HOST, on which `weir serve` runs")
        self.host = host
        self.secret = secret

    def check(self, run: ResolvedRun) -> None:
        """Refuses links and queues: the path is as it is. The server refuses the rest when it is asked."""
        for method in run.scenario["methods"][:1]:
            raise UsageError(
                f"method `{method['name']}`: the world net drives none within a scenario: run "
                f"`weir test --method {method['kind']}`, or the scenario in the world `sim`"
            )
        if run.scenario["path"]["up"] or run.scenario["path"]["down"]:
            raise UsageError(
                f"link `{run.link.name}`: the world net measures the path to `{self.host}` as it is: "
                "leave the link out"
            )
        if run.queue != DEFAULT_QUEUE:
            raise UsageError(
                f"queue `{run.queue}`: the world net measures the queues that are there: leave it out"
            )

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        """Runs a scenario and writes its record into `folder`; says whether it came to its end."""
        return self.measure(run, folder, progress, ramp=None)

    def measure(  # noqa: PLR0913 - what is measured, where it goes, and what is asked meanwhile
        self,
        run: ResolvedRun,
        folder: Path,
        progress: Progress | None,
        *,
        ramp: Ramp | None,
        said: dict[str, Any] | None = None,
        speed_test: Callable[[], SpeedTest | None] | None = None,
    ) -> bool:
        """Runs a scenario and writes its record into `folder`; says whether it came to its end.

        `ramp` adds flows until the line is full, and `said` goes into the manifest.

        `speed_test` is asked at the end for a foreign speed test that ran meanwhile, for the record.

        Raises:
            NetError: if the server cannot be reached, refuses, or goes away.
        """
        manifest = new_manifest(run, world=self.name, clock=CLOCK, offloads=OFFLOADS)
        manifest |= {"configuration": run.link.title, "machine": machine(self.host), **(said or {})}
        try:
            return _native.measure(
                json.dumps(manifest),
                folder,
                progress,
                host=self.host,
                secret=self.secret,
                ramp=ramp,
                speed_test=speed_test,
            )
        except _native.NativeError as error:
            raise NetError(str(error)) from error


def path_to(host: str) -> dict[str, Any]:
    """In place of a link the path to `host`, of which nothing is known beforehand."""
    return {"name": "path", "title": f"path to {host}"}


def without_path(run: ResolvedRun, host: str) -> ResolvedRun:
    """`run`, which was resolved on some link, on the path to `host`."""
    link = run.link.model_copy(update={**path_to(host), "up": [], "down": []})
    return replace(run, link=link, scenario={**run.scenario, "path": {"up": [], "down": []}})
