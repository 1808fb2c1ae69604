"""The world net: the real paths to servers elsewhere that speak Weir's own protocol (`weir serve`)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import NetError, UsageError
from weirlab.record import new_manifest
from weirlab.worlds.machine import interfaces

__all__ = ["CLOCK", "OFFLOADS", "NetWorld", "check_hosts", "path_to", "without_path"]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from weirlab._native import Ramp, SpeedTest
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds.base import Progress

CLOCK = "monotonic of the client, nanoseconds since the start of the run; server_* on the server's own clock"
OFFLOADS = "whatever the two machines do"


class NetWorld:
    """The paths to the servers of a scenario.

    Attributes:
        hosts: the servers in the order of the scenario's, as the user wrote them.
        secret: what those ask for that ask for one.
        ip: Internet protocol, 4 or 6, of loads and probes that do not say theirs; None for IPv6 where the
            scenario says so, or else what the system prefers for each server.
    """

    name = "net"
    at_once: int | None = 1

    def __init__(self, hosts: str | Sequence[str], secret: str | None = None, ip: int | None = None) -> None:
        """The path to one server, or those to several.

        Each is a name or an address, with or without a port, or one of IPv4 and one of IPv6 with a comma.

        Raises:
            UsageError: if there is none.
        """
        self.hosts = [hosts] if isinstance(hosts, str) else list(hosts)
        if not self.hosts or not all(self.hosts):
            raise UsageError("the world net needs a server: give --host HOST, on which `weir serve` runs")
        self.secret = secret
        self.ip = ip

    def check(self, run: ResolvedRun) -> None:
        """Refuses links: the path is as it is. The servers refuse the rest when they are asked."""
        names = [host["name"] for host in run.scenario["hosts"]]
        check_hosts(run.test.name, names, self.hosts, option="--host")
        for method in run.scenario["methods"][:1]:
            raise UsageError(
                f"method `{method['name']}`: the world net drives none within a scenario: run "
                f"`weir test --method {method['kind']}`, or the scenario in the world `sim`"
            )
        there = ", ".join(self.hosts)
        if run.scenario["path"]["up"] or run.scenario["path"]["down"]:
            raise UsageError(
                f"link `{run.link.name}`: the world net measures the path to `{there}` as it is: "
                "leave the link out"
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
            UsageError: if a server cannot be called so, or what is asked for cannot be measured with it.
            NetError: if a server cannot be reached, refuses, or goes away.
        """
        manifest = new_manifest(run, world=self.name, clock=CLOCK, offloads=OFFLOADS)
        manifest |= {"configuration": run.link.title, "interfaces": interfaces(self.hosts), **(said or {})}
        try:
            return _native.measure(
                json.dumps(manifest),
                folder,
                progress,
                hosts=self.hosts,
                secret=self.secret,
                ip=self.ip,
                ramp=ramp,
                speed_test=speed_test,
            )
        except _native.InputError as error:
            raise UsageError(str(error)) from error
        except _native.NativeError as error:
            raise NetError(str(error)) from error


def check_hosts(test: str, names: Sequence[str], hosts: Sequence[str], *, option: str) -> None:
    """Refuses too few or too many `hosts` for a test whose servers are called `names`; `option` gives one.

    Raises:
        UsageError: if their numbers differ.
    """
    if len(names) == len(hosts):
        return
    wanted = f"{len(names)} servers ({', '.join(names)})" if len(names) > 1 else "one server"
    given = "one is" if len(hosts) == 1 else f"{len(hosts)} are"
    order = "once for each, in that order" if len(names) > 1 else "once"
    raise UsageError(
        f"test `{test}` has {wanted}, and {given} given ({', '.join(hosts)}): give {option} {order}"
    )


def path_to(*hosts: str) -> dict[str, Any]:
    """In place of a link the path to `hosts`, of which nothing is known beforehand."""
    return {"name": "path", "title": f"path to {', '.join(hosts)}"}


def without_path(run: ResolvedRun, host: str) -> ResolvedRun:
    """`run`, which was resolved on some link, on the path to `host`."""
    from weirlab.scenario.resolving import Part  # noqa: PLC0415 - only for this

    link = run.link.model_copy(update={**path_to(host), "up": [], "down": []})
    return replace(run, link_part=Part.of(link), scenario={**run.scenario, "path": {"up": [], "down": []}})
