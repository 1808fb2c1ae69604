"""`weir test`: measures the path to a server and grades it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from weirlab.api import make_empty
from weirlab.cli.notes import note_options, noted
from weirlab.cli.options import OneOf, Whole, argument, option, renamed
from weirlab.cli.scenario_words import secret_of
from weirlab.cli.speed_test import SpeedTest, measure_speed
from weirlab.errors import Interrupted, NetError, RecordError, UsageError
from weirlab.net.methods import METHODS, Less, host_of, kept_run, offered, url_of
from weirlab.net.plan import Planned, TestPlan, fitted, plan_test
from weirlab.net.quality import kept_warnings
from weirlab.plots import draw
from weirlab.record import open_record
from weirlab.record.places import CHARTS
from weirlab.report import cut_short
from weirlab.report.location import location_table
from weirlab.report.scores import advice, formulas, score_table
from weirlab.scores import measured, score_all
from weirlab.scores.locate import locate
from weirlab.stats.one_way import one_way
from weirlab.ui import RunProgress, console, note, warn
from weirlab.worlds.net import NetWorld

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.scores import Measured
    from weirlab.scores.locate import Location


@click.command("test")
@argument("host")
@option("--idle", metavar="TIME", default="4s", show_default=True, help="Length of the phase without load.")
@option("--load", metavar="TIME", default="8s", show_default=True, help="Length of each phase with load.")
@option("--ping", metavar="TIME", default="10ms", show_default=True, help="Time between two pings.")
@option("--max-flows", type=Whole(1, 24), default=16, show_default=True, help="Each way.")
@option(
    "--cc",
    metavar="NAME",
    default="cubic",
    show_default=True,
    help="Congestion control of all loads; `default` for each machine's own.",
)
@option("--locate", is_flag=True, help="Ask the first routers too: where do pings begin to wait?")
@option("--method", type=OneOf(METHODS), help="Run a foreign speed test; HOST may be a URL.")
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
@renamed("--most-flows", "--max-flows")
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
    asked = Asked(host, secret_of(auth), out, charts=charts, as_json=as_json, verify=not no_verify)
    if method is not None:
        test = _speed_test(asked, method, url_of(method, host, tls=auth is not None), words)
        beside = NetWorld(host_of(test.url), asked.secret) if truth else None
        _by_method(asked, replace(test, beside=beside))
        return
    if truth or (no_verify and not host.startswith("https://")):
        raise UsageError("--truth and --no-verify belong to a foreign test: give --method too")
    plan = TestPlan.of(words)
    # Wrong words are refused before anybody is asked.
    noted(plan_test(host, plan).run, words)
    found = offered(host, asked.secret)
    if isinstance(found, Less):
        test = _speed_test(asked, "http", found.url, words)
        _by_method(asked, replace(test, instead_of=found.why))
        return
    source = click.get_current_context().get_parameter_source("load")
    fitting, said = fitted(plan, found, is_load_given=source is ParameterSource.COMMANDLINE)
    if said is not None and not as_json:
        note(said)
    planned = plan_test(host, fitting)
    _own(asked, replace(planned, run=noted(planned.run, words)))


@dataclass(frozen=True)
class Asked:
    """Options of the command, for every kind of test.

    Attributes:
        host: the server as the user named it.
        secret: what it asks for; None if nothing.
        out: folder for the record; None for one that is named after the time.
        charts: whether charts are drawn.
        as_json: whether figures come as JSON, and nothing else.
        verify: whether a certificate has to be right.
    """

    host: str
    secret: str | None
    out: Path | None
    charts: bool
    as_json: bool
    verify: bool


def _own(asked: Asked, plan: Planned) -> None:
    """Weir's own test."""
    world = NetWorld(asked.host, asked.secret)
    folder = _make_folder(asked.out)
    ended_by = _measure(world, plan, folder, quiet=asked.as_json)
    record = open_record(folder)
    figures = measured(record)
    place = None
    if figures is not None:
        place = locate(record, figures)
        record = kept_warnings(record, figures, place)
    charts = ("phases", "cdf") if asked.charts and ended_by is None else ()
    drawn = _draw(record, charts, folder / CHARTS)
    if figures is None:
        why = f"too little was measured for any figure: see `weir show {folder}`"
        raise Interrupted(f"interrupted: {why}") if ended_by else RecordError(f"`{folder}`: {why}")
    _tell(record, figures, place, folder, as_json=asked.as_json)
    if drawn:
        _tell_kept(folder, drawn, quiet=asked.as_json)
    if ended_by is not None:
        raise ended_by


def _speed_test(asked: Asked, method: str, url: str, words: dict[str, Any]) -> SpeedTest:
    """A speed test of somebody else's, without pings of our own."""
    run = noted(kept_run(host_of(url)), words)
    return SpeedTest(method=method, url=url, secret=asked.secret, verify=asked.verify, run=run)


def _by_method(asked: Asked, test: SpeedTest) -> None:
    """Runs a speed test of somebody else's; charts show our own pings, if there are any."""
    folder = _make_folder(asked.out)
    measure_speed(test, folder, as_json=asked.as_json)
    charts = ("ping", "cdf") if test.beside is not None and asked.charts else ()
    drawn = _draw(open_record(folder), charts, folder / CHARTS)
    _tell_kept(folder, drawn, quiet=asked.as_json)


def _draw(record: Record, kinds: tuple[str, ...], folder: Path) -> list[Path]:
    """Draws charts of a record into a folder."""
    return [draw(kind, [record], folder / f"{kind}.png") for kind in kinds]


def _tell_kept(folder: Path, drawn: list[Path], *, quiet: bool) -> None:
    """Says where the record and its charts are."""
    if not quiet:
        note(f"record in {folder}" + (f", {len(drawn)} charts in {folder / 'charts'}" if drawn else ""))


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
    own = ["idle", "load", "ping", "max_flows", "cc", "locate", "seed"]
    for name in own if truth else [*own, "charts"]:
        is_said = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        # `--no-charts` asks for no more than these tests have.
        if is_said and not (name == "charts" and not context.params[name]):
            why = "goes with --truth" if name == "charts" else "is for Weir's own test"
            raise UsageError(
                f"--{name.replace('_', '-')} {why}: `{method}` runs as its official client does; leave it out"
            )


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


def _tell(record: Record, figures: Measured, place: Location | None, folder: Path, *, as_json: bool) -> None:
    scores = score_all(record, figures)
    cautions = [one for one in (*record.manifest.warnings, cut_short(record)) if one is not None]
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
