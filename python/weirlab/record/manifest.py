"""The manifest: under which circumstances a record came about."""

from __future__ import annotations

import os
import platform
import time
from importlib import metadata
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from weirlab import _native
from weirlab.record.tables import NEWEST

if TYPE_CHECKING:
    from weirlab.scenario import ResolvedRun

SCHEMA = max(3, NEWEST)
"""Version of the record's format.

1 had no `tables`, `note`, `tags`; up to 2 some keys had other names (`upgraded`); a later one may have more
columns.
"""


class Written(BaseModel):
    """Counts and digest of a table's part files.

    Attributes:
        parts: number of part files.
        rows: rows in all of them.
        sha256: SHA-256 over the bytes of all part files in their order, in hexadecimal.
    """

    model_config = ConfigDict(frozen=True)

    parts: int
    rows: int
    sha256: str


class Imported(BaseModel):
    """The file of another tool that a record was made of.

    Attributes:
        tool: the tool that measured, such as `Flent`.
        tool_version: its version; None if the file does not tell it.
        format: version of the file's format.
        test: the tool's name of the test.
        file: the file's name.
        t0_ns: time 0 of the file in times of the record.
        losses_unknown: numbers of the probes of which the file does not tell what was lost, such as means
            over intervals.
        left_out: why the record does not hold a series of the file, by its name.
        metadata, series: what the file says of itself, and of each series.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    tool: str
    tool_version: str | None
    format: int
    test: str
    file: str
    t0_ns: int = 0
    losses_unknown: list[int] = []
    left_out: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    series: dict[str, dict[str, Any]] = {}


class Manifest(BaseModel):
    """The manifest of a record.

    Attributes:
        schema_version: version of the record's format.
        complete: whether the run came to its end.
        world: which world made it.
        seed: seed of the run; None of an imported one.
        queue: the queue spec as the user wrote it.
        title: the test's title.
        configuration: link and queue, for people.
        link: the link as resolved, with its source.
        test: the test as resolved.
        scenario: what the world was given.
        versions: of Weir, Python and the random number generator.
        host: name, kernel, processor of the machine.
        clock: what the times in the tables count.
        started_at: when the run started, UTC.
        offloads: what the machine joined or split behind the record's back.
        warnings: why the run should not be trusted, if anything.
        reached_ns: time of the run that was reached; None while it runs.
        events, packets: what it took.
        datapath: who had the queues and lines, `userspace` or `kernel`; the lab only.
        device: how packets left and entered the kernel; live worlds only.
        emulator: how well a live data path did its work, over the whole run.
        tables: what was written of each table that has a row; None of a run that was killed, and in format 1.
        note: what the user wrote of the run.
        tags: words of the user's by which runs are found again.
        routers: numbers of the probes that routers on the way answer, and not the other end (`--locate`).
        probes_apart: numbers of the probes that are no pings, such as fetches of web pages beside pings.
        imported: which file of another tool it was made of; None of a run of Weir's own.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    schema_version: int
    complete: bool
    world: str
    seed: int | None
    queue: str
    title: str
    configuration: str
    link: dict[str, Any]
    test: dict[str, Any]
    scenario: dict[str, Any]
    versions: dict[str, str]
    host: dict[str, str]
    clock: str
    started_at: str
    offloads: str
    warnings: list[str]
    reached_ns: int | None = None
    events: int | None = None
    packets: int | None = None
    datapath: str | None = None
    device: str | None = None
    emulator: dict[str, float] | None = None
    tables: dict[str, Written] | None = None
    note: str = ""
    tags: list[str] = []
    routers: list[int] = []
    probes_apart: list[int] = []
    imported: Imported | None = None


def new_manifest(run: ResolvedRun, *, world: str, clock: str, offloads: str) -> dict[str, Any]:
    """The manifest of a run that starts."""
    return {
        "schema_version": SCHEMA,
        "world": world,
        "seed": run.seed,
        "queue": run.queue,
        "title": run.test.title,
        "configuration": run.configuration,
        "link": run.link.model_dump(mode="json"),
        "test": run.test.model_dump(mode="json"),
        "scenario": run.scenario,
        "versions": {
            "weir": metadata.version("weirlab"),
            "python": platform.python_version(),
            "rng": _native.rng_name(),
        },
        "host": {
            "name": platform.node(),
            "kernel": f"{platform.system()} {platform.release()}",
            "machine": platform.machine(),
            "processors": str(os.cpu_count()),
        },
        "clock": clock,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "offloads": offloads,
        "warnings": [],
        "note": run.note,
        "tags": list(run.tags),
    }
