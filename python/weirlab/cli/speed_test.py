"""Speed tests of others, as `weir test` runs them: measured, kept as a record, and told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from weirlab.errors import NetError
from weirlab.net.methods import has_figures, hint, run_alone, run_beside, run_method
from weirlab.net.quality import warnings_of_method
from weirlab.report.methods import method_table
from weirlab.scores import verdict, verdict_of_truth
from weirlab.ui import console, note, waiting, warn

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import MethodResult
    from weirlab.scenario import ResolvedRun
    from weirlab.scores import Truth
    from weirlab.worlds.net import NetWorld


@dataclass(frozen=True, kw_only=True)
class SpeedTest:
    """A speed test that is to be run.

    Attributes:
        method: its name.
        url: the server's.
        secret: what goes with every request; None if the server asks for nothing.
        verify: whether its certificate has to be right.
        run: the scenario of the record.
        beside: the server to which our own pings go meanwhile; None for none.
        instead_of: why Weir's own test does not run; None if nobody wanted it.
    """

    method: str
    url: str
    secret: str | None
    verify: bool
    run: ResolvedRun
    beside: NetWorld | None = None
    instead_of: str | None = None


def measure_speed(test: SpeedTest, folder: Path, *, as_json: bool) -> None:
    """Runs a speed test, and tells what it showed; its record goes into the empty folder.

    Raises:
        NetError: if it failed; what it measured until then has been told.
        UsageError: if it cannot be run so.
    """
    if test.instead_of is not None and not as_json:
        note(f"{test.instead_of}; what HTTP shows of the path follows")
    result, seen = _run(test, folder, as_json=as_json)
    other = "" if test.instead_of is None else hint(test.url, result, verify=test.verify)
    failures = result["failures"]
    if failures and not has_figures(result):
        raise _failed(test, failures[0], other)
    if as_json:
        _print(test, result, seen, folder, other)
    else:
        _tell(result, seen, other)
    if failures:
        raise _failed(test, failures[0], "")


def _run(test: SpeedTest, folder: Path, *, as_json: bool) -> tuple[MethodResult, Truth | None]:
    """Result of a test, and what our own pings saw if there were any; the record goes into the folder."""

    def work() -> MethodResult:
        return run_method(test.method, test.url, test.secret, verify=test.verify, progress=None)

    with waiting(f"{test.method} of {test.url}", quiet=as_json):
        try:
            if test.beside is None:
                return run_alone(test.run, folder, work), None
            return run_beside(test.beside, test.run, folder, work)
        finally:
            # Nothing is left of a test that measured nothing.
            if not any(folder.iterdir()):
                folder.rmdir()


def _failed(test: SpeedTest, why: str, other: str) -> NetError:
    more = "; --no-verify believes any" if "certificate" in why and test.verify else other
    return NetError(f"{test.method} of `{test.url}`: {why}{more}")


def _print(test: SpeedTest, result: MethodResult, seen: Truth | None, folder: Path, other: str) -> None:
    """Prints what a speed test showed and what it means, as JSON."""
    pings = verdict_of_truth(seen)
    said = {
        "out": str(folder),
        "result": result,
        "truth": asdict(seen) if seen else None,
        "verdict": asdict(verdict(result)),
        "verdict_of_pings": asdict(pings) if pings else None,
        "warnings": warnings_of_method(result),
        "instead_of": test.instead_of and test.instead_of + other,
    }
    click.echo(json.dumps(said, indent=2))


def _tell(result: MethodResult, seen: Truth | None, other: str) -> None:
    """Tells what a speed test showed and what it means."""
    for text in warnings_of_method(result):
        warn(text)
    console.print(method_table(result, seen))
    for one in (verdict(result), verdict_of_truth(seen)):
        if one is not None:
            console.print(one.says)
    if other:
        note(other.removeprefix("; "))
