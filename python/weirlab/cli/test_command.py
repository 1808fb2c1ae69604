"""`weir test`: measures the path to a server and grades it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from weirlab.api import make_empty
from weirlab.cli.notes import note_options, noted
from weirlab.cli.options import Whole, option
from weirlab.cli.scenario_words import secret_of
from weirlab.errors import Interrupted, NetError, RecordError, UsageError
from weirlab.net.methods import (
    METHODS,
    has_figures,
    hint,
    host_of,
    kept_run,
    less,
    run_alone,
    run_beside,
    run_method,
    url_of,
)
from weirlab.net.plan import Planned, TestPlan, plan_test
from weirlab.net.quality import warnings_of, warnings_of_method
from weirlab.plots import draw
from weirlab.record import open_record
from weirlab.report.location import location_table
from weirlab.report.methods import method_table
from weirlab.report.scores import advice, formulas, score_table
from weirlab.scores import measured, score_all, verdict, verdict_of_pings
from weirlab.scores.locate import locate
from weirlab.stats.one_way import one_way
from weirlab.ui import RunProgress, console, note, waiting, warn
from weirlab.worlds.net import NetWorld

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.scores import Measured, Truth
    from weirlab.scores.speed_test import Verdict


@click.command("test")
@click.argument("host")
@option("--idle", metavar="TIME", default="4s", show_default=True, help="Length of the phase without load.")
@option("--load", metavar="TIME", default="8s", show_default=True, help="Length of each phase with load.")
@option("--ping", metavar="TIME", default="10ms", show_default=True, help="Time between two pings.")
@option("--most-flows", type=Whole(1, 24), default=16, show_default=True, help="Each way.")
@option(
    "--cc",
    metavar="NAME",
    default="cubic",
    show_default=True,
    help="Congestion control of all loads; `default` for each machine's own.",
)
@option("--locate", is_flag=True, help="Ask the first routers too: where do pings begin to wait?")
@option("--method", type=click.Choice(METHODS), help="Run a foreign speed test; HOST may be a URL.")
@option("--truth", is_flag=True, help="With --method: our own pings to the same host beside it.")
@option("--no-verify", is_flag=True, help="With --method or https://: believe any certificate.")
@option("--seed", type=Whole(min=0), default=1, help="Seed of when pings begin.")
@option(
    "--auth",
    type=click.Path(path_type=Path),
    help="File with the server's secret.",
)
@option("--out", type=click.Path(path_type=Path), help="Folder for the record and its chart.")
@note_options
@option("--charts/--no-charts", default=True, show_default=True, help="Draw charts.")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    host: str,
    *,
    auth: Path | None,
    out: Path | None,
    charts: bool,
    as_json: bool,
    method: str | None,
    truth: bool,
    no_verify: bool,
    **words: Any,
) -> None:
    """Measure the path to HOST, on which `weir serve` runs, and grade it.

    \b
    weir test 192.0.2.1
    weir test example.net:8080 --out my-line
    weir test https://server:8080 --method rpm --no-verify --truth

    Pings go all the time: first without load, then beside downloads, uploads and both at once, each as many
    flows as fill the line. The record stays in the folder given by --out; `weir show`, `compare` and `plot`
    read it. A server that speaks only HTTP is measured with what it has, and what is missing is said.
    """  # noqa: D301 - \b keeps click from folding the examples
    if method is not None:
        _check_words(method, truth=truth)
        url, secret = url_of(method, host, tls=auth is not None), secret_of(auth)
        beside = NetWorld(host_of(url), secret) if truth else None
        run = noted(kept_run(host_of(url)), words)
        folder = _foreign(
            method, url, secret, beside, run=run, out=out, verify=not no_verify, as_json=as_json
        )
        _tell_kept(folder, ("ping", "cdf") if truth and charts else (), quiet=as_json)
        return
    if truth or (no_verify and not host.startswith("https://")):
        raise UsageError("--truth and --no-verify belong to a foreign test: give --method too")
    plan = plan_test(host, TestPlan.of(words))
    plan = replace(plan, run=noted(plan.run, words))
    secret = secret_of(auth)
    instead = less(host, secret)
    if instead is not None:
        verify, why = not no_verify, instead.why
        run = noted(kept_run(host_of(instead.url)), words)
        kept = _foreign(
            "http",
            instead.url,
            secret,
            None,
            run=run,
            out=out,
            verify=verify,
            as_json=as_json,
            instead_of=why,
        )
        _tell_kept(kept, (), quiet=as_json)
        return
    world = NetWorld(host, secret)
    folder = _make_folder(out)
    cut_short = _measure(world, plan, folder, quiet=as_json)
    record = open_record(folder)
    drawn = _charts(record, folder / "charts") if charts and cut_short is None else []
    _tell(record, folder, as_json=as_json)
    if drawn and not as_json:
        note(f"record in {folder}, {len(drawn)} charts in {folder / 'charts'}")
    if cut_short is not None:
        raise cut_short


def _make_folder(out: Path | None) -> Path:
    """The empty folder for the record: `out`, or one of the present time that nobody else has."""
    if out is not None:
        make_empty(out)
        return out
    name = f"weir-test-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = Path(name), 1
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            folder = Path(f"{name}-{number}")
        except OSError as error:
            raise UsageError(f"`{folder}` cannot take a record: {error.strerror}") from error
        else:
            return folder


def _measure(world: NetWorld, plan: Planned, folder: Path, *, quiet: bool) -> Interrupted | NetError | None:
    """Measures into `folder`, and returns what cut it short if there is something to show nevertheless.

    Raises:
        NetError: if there is not.
    """
    kept = f"the figures are those of what was measured until then, kept in {folder}"
    with RunProgress([plan.run], quiet=quiet) as bar:

        def progress(reached_ns: int) -> bool:
            bar.advanced(0, reached_ns)
            return True

        try:
            complete = world.measure(plan.run, folder, progress, ramp=plan.ramp, said=plan.said)
        except KeyboardInterrupt:
            complete = False
        except NetError as error:
            if not _has_figures(folder):
                raise
            return NetError(f"{error}; {kept}")
    return None if complete else Interrupted(f"interrupted: {kept}")


def _has_figures(folder: Path) -> bool:
    try:
        return measured(open_record(folder)) is not None
    except RecordError:
        return False


def _check_words(method: str, *, truth: bool) -> None:
    """Refuses what a foreign test would pass over."""
    context = click.get_current_context()
    own = ["idle", "load", "ping", "most_flows", "cc", "locate", "seed"]
    for name in own if truth else [*own, "charts"]:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            why = "goes with --truth" if name == "charts" else "is for Weir's own test"
            raise UsageError(
                f"--{name.replace('_', '-')} {why}: `{method}` runs as its official client does; leave it out"
            )


def _foreign(  # noqa: PLR0913 - words of the command line
    method: str,
    url: str,
    secret: str | None,
    beside: NetWorld | None,
    *,
    run: ResolvedRun,
    out: Path | None,
    verify: bool,
    as_json: bool,
    instead_of: str | None = None,
) -> Path:
    """Runs a foreign test, with our own pings to the server of `beside`, and returns the record's folder.

    `instead_of` says why Weir's own test does not run.
    """
    seen = None
    folder = _make_folder(out)
    if instead_of is not None and not as_json:
        note(f"{instead_of}; what HTTP shows of the path follows")
    with waiting(f"{method} of {url}", quiet=as_json):

        def work() -> dict[str, Any]:
            return run_method(method, url, secret, verify=verify, progress=None)

        try:
            if beside is None:
                result = run_alone(run, folder, work)
            else:
                result, seen = run_beside(beside, run, folder, work)
        finally:
            # Nothing is left of a test that measured nothing.
            if not any(folder.iterdir()):
                folder.rmdir()
    failures = result["failures"]
    other = hint(url, result, verify=verify) if instead_of is not None else ""
    if not failures or has_figures(result):
        if as_json:
            _print_method(result, seen, folder, instead_of and instead_of + other)
        else:
            _tell_method(result, seen)
            if other:
                note(other.removeprefix("; "))
        other = ""
    if failures:
        more = "; --no-verify believes any" if "certificate" in failures[0] and verify else other
        raise NetError(f"{method} of `{url}`: {failures[0]}{more}")
    return folder


def _print_method(result: dict[str, Any], seen: Truth | None, folder: Path, instead_of: str | None) -> None:
    """Prints what a foreign test showed and what it means, as JSON."""
    pings = _verdict_of_truth(seen)
    said = {
        "out": str(folder),
        "result": result,
        "truth": asdict(seen) if seen else None,
        "verdict": asdict(verdict(result)),
        "verdict_of_pings": asdict(pings) if pings else None,
        "warnings": warnings_of_method(result),
        "instead_of": instead_of,
    }
    click.echo(json.dumps(said, indent=2))


def _tell_method(result: dict[str, Any], seen: Truth | None) -> None:
    """Tells what a foreign test showed and what it means."""
    for text in warnings_of_method(result):
        warn(text)
    console.print(method_table(result, seen))
    for one in (verdict(result), _verdict_of_truth(seen)):
        if one is not None:
            console.print(one.says)


def _verdict_of_truth(seen: Truth | None) -> Verdict | None:
    """Meaning of Weir's own pings beside a foreign test."""
    return verdict_of_pings(seen.during.mean - seen.idle.mean) if seen is not None else None


def _tell_kept(folder: Path, charts: tuple[str, ...], *, quiet: bool) -> None:
    """Draws charts of a foreign test's record, and says where all of it is."""
    record = open_record(folder)
    drawn = [draw(kind, [record], folder / "charts" / f"{kind}.png") for kind in charts]
    if not quiet:
        note(f"record in {folder}" + (f", {len(drawn)} charts in {folder / 'charts'}" if drawn else ""))


def _ways(record: Record, figures: Measured) -> dict[str, Any] | None:
    """The delay of each way beyond its least, by phase; None without stamps of the server."""
    ways = one_way(record)
    if ways is None:
        return None
    spans = {
        name: (ways.t_ns >= one.start_ns) & (ways.t_ns < one.end_ns) for name, one in figures.loaded.items()
    }
    return {
        "bound_ms": ways.bound_ms,
        "drift_ppm": ways.drift_ppm,
        "offset_ms": ways.offset_ms,
        "offset_bound_ms": ways.offset_bound_ms,
        "up_ms": {name: float(ways.up_ms[inside].mean()) for name, inside in spans.items() if inside.any()},
        "down_ms": {
            name: float(ways.down_ms[inside].mean()) for name, inside in spans.items() if inside.any()
        },
    }


def _charts(record: Record, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [draw(kind, [record], folder / f"{kind}.png") for kind in ("phases", "cdf")]


def _tell(record: Record, folder: Path, *, as_json: bool) -> None:
    figures = measured(record)
    if figures is None:
        raise RecordError(f"`{folder}`: too little was measured for any score: see `weir show {folder}`")
    scores = score_all(record, figures)
    place = locate(record, figures)
    cautions = [*record.manifest.warnings, *warnings_of(record, figures, place)]
    if as_json:
        said = {
            "out": str(folder),
            "grade": scores.grade,
            "down_mbps": figures.down_mbps,
            "up_mbps": figures.up_mbps,
            "idle_ms": figures.idle.median,
            "loaded_ms": {name: one.latency.median for name, one in figures.loaded.items()},
            "location": asdict(place) if place else None,
            "one_way": _ways(record, figures),
            "scores": scores.as_dict(),
            "warnings": cautions,
        }
        click.echo(json.dumps(said, indent=2))
        return
    for text in cautions:
        warn(text)
    console.print(score_table(record, figures, scores))
    if place is not None:
        console.print(location_table(place))
    for line in formulas(record, scores):
        console.print(line)
    for line in advice(figures, scores):
        console.print(line)
