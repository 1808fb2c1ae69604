"""`weir plot`: charts of records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from weirlab import _native
from weirlab.cli.options import OneOf, argument, option
from weirlab.cli.records import readable_runs
from weirlab.errors import UsageError
from weirlab.flent.plots import flent_plots
from weirlab.plots import FORMATS, KINDS, Look, check, draw, format_of
from weirlab.plots.quantity import QUANTITIES
from weirlab.report import charts_of
from weirlab.scenario.units import rate_bps, time_ns
from weirlab.ui import console

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.record import Record


def _help() -> str:
    """The help of the command: every chart with what it shows."""
    width = max(map(len, KINDS))
    charts = "\n".join(f"{name:<{width}}  {known.summary}" for name, known in KINDS.items())
    # \b keeps click from folding the lists.
    return f"Draw charts of records.\n\n\b\n{EXAMPLES}\n\n\b\n{charts}"


class _Kind(click.Choice[str]):
    """A chart; who names a plot of Flent's is told which chart shows the same."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The chart.

        Raises:
            BadParameter: which there are.
        """
        if value not in self.choices:
            self.fail(self._says(value), param, ctx)
        return super().convert(value, param, ctx)

    def _says(self, value: str) -> str:
        """What to write in place of what is no chart."""
        if value in flent_plots():
            return f"`{value}` is a plot of Flent's: {_instead(value)}"
        near = _native.nearest(value, [*flent_plots(), *self.choices])
        if near is None:
            says = f"write one of {', '.join(self.choices)}"
        elif near in self.choices:
            says = f"did you mean `{near}`?"
        else:
            says = f"did you mean Flent's plot `{near}`? For it {_instead(near)}"
        return f"there is no chart `{value}`: {says}"


def _instead(plot: str) -> str:
    """What to write for a plot of Flent's, or why there is nothing like it."""
    found = flent_plots()[plot]
    return f"write {found.options}" if found.charts else found.note


EXAMPLES = """weir plot out
weir plot out/01-default --kind cdf --out cdf.svg"""


@click.command("plot", help=_help())
@argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@option(
    "--kind",
    type=_Kind([*KINDS, "all"]),
    default="all",
    show_default=True,
    help="Which chart; `all` draws what `weir run` draws.",
)
@option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to draw into, by its suffix .png, .svg or .pdf; for `all` a folder. Folders are made.",
)
@option("--title", help="Title in place of the test's.")
@option(
    "--span",
    metavar="FROM..TO",
    help="The part of the time that is drawn, such as 35s..55s.",
)
@option("--ping-axis", metavar="FROM..TO", help="Ends of axes of pings, such as 0ms..200ms.")
@option("--throughput-axis", metavar="FROM..TO", help="Ends of axes of throughput, such as 0mbit..30mbit.")
@option(
    "--ping-scale",
    type=OneOf(["linear", "log"]),
    default="linear",
    show_default=True,
    help="Scale of axes of pings; the label of a logarithmic one says so.",
)
@option(
    "--style",
    type=OneOf(["screen", "paper"]),
    default="screen",
    show_default=True,
    help="`paper`: half a page wide, without heading and table; for PDF and SVG.",
)
@option(
    "--of",
    type=OneOf(["ping", *QUANTITIES]),
    default="ping",
    show_default=True,
    help="What `cdf`, `box`, `bar` and `qq` are of.",
)
@option(
    "--against",
    default="configuration",
    show_default=True,
    metavar="COLUMN",
    help="What `meta` has below: a column of `weir export --out FILE.csv`, `title` or `tags`.",
)
@option(
    "--figure",
    "figures",
    multiple=True,
    metavar="COLUMN",
    help="Figure of `meta`.  [default: loaded_median_ms]",
)
@option(
    "--group", default="", metavar="COLUMN", help="What puts records into groups in `meta`, such as queue."
)
@option("--name", "names", multiple=True, help="Name of a configuration; one for each, in order.")
@option("--colour", "colours", multiple=True, metavar="#RRGGBB", help="Colours in order; others follow.")
@option("--note", "notes", multiple=True, metavar="TIME=TEXT", help="Mark a time: 12s='second upload'.")
@option("--flow", "flows", multiple=True, metavar="PATTERN", help="Only flows of that name, such as '*BE*'.")
@option("--probe", "probes", multiple=True, metavar="PATTERN", help="Only probes of that name.")
@option("--host", "hosts", multiple=True, metavar="PATTERN", help="Only flows and probes of that server.")
def command(  # noqa: PLR0913 - one for each option
    paths: tuple[Path, ...],
    *,
    kind: str,
    out: Path | None,
    title: str | None,
    span: str | None,
    ping_axis: str | None,
    throughput_axis: str | None,
    ping_scale: Literal["linear", "log"],
    style: Literal["screen", "paper"],
    names: tuple[str, ...],
    colours: tuple[str, ...],
    notes: tuple[str, ...],
    flows: tuple[str, ...],
    probes: tuple[str, ...],
    hosts: tuple[str, ...],
    of: str,
    against: str,
    figures: tuple[str, ...],
    group: str,
) -> None:
    """Draws the charts that are asked for."""
    span_s = None if span is None else span_in(span)
    look = Look(
        ping_ms=None if ping_axis is None else _ends("--ping-axis", ping_axis, "0ms..200ms", _milliseconds),
        throughput_mbps=None
        if throughput_axis is None
        else _ends("--throughput-axis", throughput_axis, "0mbit..30mbit", _megabits),
        ping_scale=ping_scale,
        style=style,
        names=names,
        colours=colours,
        notes=[_note(text) for text in notes],
        flows=flows,
        probes=probes,
        hosts=hosts,
        of=of,
        against=against,
        figures=figures,
        group=group,
    )
    if kind == "all":
        _check_folder(out)
        if span_s is not None or look != Look(notes=[]):
            raise UsageError("how a chart looks is set for one kind: name it with --kind")
        check("box", 1, title=title)
    else:
        out = out or Path(f"{kind}.png")
        format_of(out)
        check(kind, KINDS[kind].least, title=title, look=replace(look, span_s=span_s))
    with readable_runs(paths, baseline=kind in AGAINST_THE_FIRST) as records:
        if kind == "all" or out is None:
            drawn = charts_of(records, out or Path("charts"), title=title)
            if not drawn:
                raise UsageError(f"there are no loads or answered pings to draw: {_what_there_is(records)}")
        else:
            check(kind, len(records))
            drawn = [draw(kind, records, out, title=title, span_s=span_s, look=look)]
        for path in drawn:
            console.print(str(path), soft_wrap=True)


def _what_there_is(records: Sequence[Record]) -> str:
    """What else records without loads and pings can be drawn as, or what tells of them."""
    from weirlab.plots.queues import has_work  # noqa: PLC0415 - loads Matplotlib

    found = []
    if any(has_work(one) for one in records):
        found.append("`--kind queues` draws what waits in queues")
    if any(one.has_rows("tcp") for one in records):
        found.append("`--kind tcp` what senders of TCP do")
    if any(one.has_rows("method") for one in records):
        found.append("what a speed test showed `weir show` tells")
    return ", ".join(found) or "`weir show` tells what is known of them"


def _check_folder(out: Path | None) -> None:
    """Refuses the name of a file where several charts are drawn."""
    if out is not None and out.suffix.lower().removeprefix(".") in FORMATS:
        raise UsageError(
            f"--out {out}: without --kind several charts are drawn into a folder; for one chart say which, "
            f"such as --kind box --out {out}"
        )


def span_in(text: str) -> tuple[float, float]:
    """The seconds of `35s..55s`.

    Raises:
        UsageError: if it is no span.
    """
    return _ends("--span", text, "35s..55s", _seconds)


def _ends(option_name: str, text: str, example: str, value_of: Callable[[str], float]) -> tuple[float, float]:
    """Both ends of a range such as `35s..55s`."""
    first, dots, last = text.partition("..")
    if not dots:
        raise UsageError(f"{option_name} {text}: write where it begins and ends, such as {example}")
    try:
        return value_of(first), value_of(last)
    except ValueError as error:
        raise UsageError(f"{option_name} {text}: {error}") from error


def _note(text: str) -> tuple[float, str]:
    """Time in seconds and words of `12s=second upload`."""
    at, equals, words = text.partition("=")
    if not equals:
        raise UsageError(f"--note {text}: write a time and what happened then, such as 12s='second upload'")
    try:
        return _seconds(at), words
    except ValueError as error:
        raise UsageError(f"--note {text}: {error}") from error


def _seconds(text: str) -> float:
    return time_ns(text) / 1e9


def _milliseconds(text: str) -> float:
    return time_ns(text) / 1e6


def _megabits(text: str) -> float:
    return rate_bps(text) / 1e6


AGAINST_THE_FIRST = ("qq", "overlay")
"""Kinds of charts that hold records against the first one."""
