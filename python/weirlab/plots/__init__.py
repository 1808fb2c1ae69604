"""Charts of records, as PNG, SVG or PDF. Each says in small print what was done to the samples.

What draws is loaded only when something is drawn: `weir --help` shall not wait for Matplotlib.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from weirlab.arguments import records_of
from weirlab.errors import UsageError
from weirlab.given import path_of, span_of, text_of
from weirlab.loading import without_lament
from weirlab.plots.look import Look
from weirlab.writing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from weirlab.record import Record

__all__ = ["KINDS", "Kind", "Look", "draw", "plot", "save"]


@dataclass(frozen=True)
class Kind:
    """A kind of chart.

    Attributes:
        name: what it is asked for by.
        summary: what it shows, in a line.
        least, most: how many records it takes; `most` is None if there is no limit.
        axes: the quantities on its axes of which the user may set the ends: `time`, `ping`, `throughput`.
        of: whether it can be of something else than pings (`--of`).
    """

    name: str
    summary: str
    least: int
    most: int | None
    axes: tuple[str, ...] = ()
    of: bool = False

    @property
    def takes(self) -> str:
        """The number of records that it takes, in words."""
        if self.least == self.most:
            return "exactly 1 record" if self.least == 1 else f"exactly {self.least} records"
        return f"{self.least} or more records"


OVER_TIME, PINGS, BOTH = ("time", "ping", "throughput"), ("time", "ping"), ("ping", "throughput")

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("three-plot", "download, upload and latency over time", 1, 1, OVER_TIME),
            Kind(
                "phases", "throughput and pings over the phases of a test, with its grades", 1, 1, OVER_TIME
            ),
            Kind(
                "cdf",
                "which share of the pings took at most how long",
                1,
                None,
                ("ping",),
                of=True,
            ),
            Kind(
                "box",
                "spread of download, upload and latency of each configuration",
                1,
                None,
                BOTH,
                of=True,
            ),
            Kind(
                "bar",
                "means of throughput, latency and fairness of each configuration",
                1,
                None,
                BOTH,
                of=True,
            ),
            Kind(
                "qq",
                "quantiles of pings against those of the first configuration",
                1,
                None,
                ("ping",),
                of=True,
            ),
            Kind(
                "ellipse",
                "throughput against ping of each configuration: better is up and left",
                1,
                None,
                BOTH,
            ),
            Kind("ping", "ping over time, run above run, with averages", 1, None, PINGS),
            Kind("windows", "congestion window of each flow over time, run above run", 1, None, ("time",)),
            Kind("totals", "throughput and ping of several configurations over time", 1, None, OVER_TIME),
            Kind(
                "tcp",
                "round trip, pacing and delivery rate of TCP senders over time",
                1,
                1,
                ("time", "throughput"),
            ),
            Kind("queues", "backlog, sojourn time and drops of queues over time", 1, 1, ("time",)),
            Kind(
                "udp",
                "delay, jitter and loss of UDP flows over time, and scores of voice streams",
                1,
                1,
                ("time",),
            ),
            Kind(
                "applications",
                "how long pages and names took over time, and the bitrate and buffer of videos",
                1,
                1,
                ("time",),
            ),
            Kind(
                "shaper",
                "a shaper's rate, ping and use of the line over time, of several runs",
                1,
                None,
                OVER_TIME,
            ),
            Kind("meta", "figures of runs against what sets the runs apart, in groups", 1, None, BOTH),
            Kind(
                "overlay",
                "ping over time of several configurations in one chart: before and after",
                2,
                None,
                PINGS,
            ),
        )
    }
)
"""All kinds of charts, by name. A kind is drawn by the function `figure` of the module of its name."""

FORMATS = ("png", "svg", "pdf")


def plot(
    records: Record | Sequence[Record],
    kind: str,
    *,
    title: str | None = None,
    span_s: tuple[float, float] | None = None,
    look: Look | None = None,
) -> Figure:
    """Draws a chart as a Matplotlib figure, which a notebook shows as it is.

    Args:
        records: a record, or several in the order in which they are drawn.
        kind: one of `KINDS`.
        title: heading in place of the test's title.
        span_s: first and last second that are drawn, such as `(35, 55)`, of kinds with a time axis.
        look: what is set in place of what Weir chooses: axes, names, colours, notes, which flows and probes.

    Returns:
        A figure of 10 inches in width; `figure.savefig("chart.png")` writes it, `draw` does with Weir's own
        settings of fonts.

    Raises:
        UsageError: if kind or number of records do not fit, or if a record lacks what the chart shows.
    """
    chosen, look = records_of(records, "plot"), _look_of(look, span_s)
    check(kind, len(chosen), title=title, look=look)
    without_lament()
    from weirlab.plots import theme  # noqa: PLC0415 - loads Matplotlib

    with theme.applied(look):
        return _figure(kind, chosen, title, None, look)


def draw(  # noqa: PLR0913 - what is drawn, where to, and how
    kind: str,
    records: Record | Sequence[Record],
    target: str | Path,
    *,
    title: str | None = None,
    whole: Sequence[Record] | None = None,
    span_s: tuple[float, float] | None = None,
    look: Look | None = None,
) -> Path:
    """Draws a chart into the file `target`, in the format that its suffix names.

    Args:
        kind: one of `KINDS`.
        records: what is drawn, in this order.
        target: the file; one that is there is replaced, and only by a finished chart. Its folder is made.
        title: heading in place of the test's title.
        whole: all records, if `records` are a part of them: a configuration then has the same colour in all
            charts, and the chart says how many runs of it there are.
        span_s: first and last second that are drawn, by kinds with a time axis; all if None.
        look: what is set in place of what Weir chooses.

    Returns:
        `target`.

    Raises:
        UsageError: if kind, suffix or number of records do not fit, if a record lacks what the
            chart shows, or if the file cannot be written. Nothing is left behind then.
    """
    chosen, file = records_of(records, "draw"), path_of(target, "target", "a chart")
    among = None if whole is None else records_of(whole, "draw(whole=...)")
    look = _look_of(look, span_s)
    check(kind, len(chosen), title=title, look=look)
    return save(lambda: _figure(kind, chosen, title, among, look), file, look)


def _look_of(look: object, span_s: object) -> Look:
    """The look that was given, with the span that is drawn."""
    if look is not None and not isinstance(look, Look):
        raise UsageError(f"look: give a `Look` of weirlab.plots, not `{type(look).__name__}`")
    return replace(look or Look(), span_s=span_of(span_s, "span_s"))


def _figure(
    kind: str,
    records: Sequence[Record],
    title: str | None,
    whole: Sequence[Record] | None,
    look: Look,
) -> Figure:
    from weirlab.plots.scope import Scope  # noqa: PLC0415 - loads Matplotlib

    if look.selects:
        from weirlab.plots.selected import selected  # noqa: PLC0415 - loads Polars

        views = {
            id(one): selected(one, look.flows, look.probes, look.hosts) for one in [*records, *(whole or ())]
        }
        records = [views[id(one)] for one in records]
        whole = whole and [views[id(one)] for one in whole]
    drawing = importlib.import_module(f"weirlab.plots.{kind.replace('-', '_')}")
    figure: Figure = drawing.figure(records, title, Scope(whole or records, look.span_s))
    return figure


def save(make: Callable[[], Figure], target: Path, look: Look | None = None) -> Path:
    """Draws what `make` makes into the file `target`, as `draw` does.

    Raises:
        UsageError: if the suffix does not fit or the file cannot be written. Nothing is left behind then.
    """
    suffix = format_of(target)
    without_lament()
    from weirlab.plots import theme  # noqa: PLC0415 - loads Matplotlib

    with theme.applied(look):
        content = theme.render(make(), suffix)
    replaced(target, lambda part: part.write_bytes(content))
    return target


def format_of(target: Path) -> str:
    """The format that the suffix of a chart's file names.

    Raises:
        UsageError: if it names none.
    """
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise UsageError(f"`{target}` cannot be drawn: its name must end in .png, .svg or .pdf")
    return suffix


def check(
    kind: str,
    count: int,
    *,
    title: str | None = None,
    look: Look | None = None,
) -> None:
    """Refuses what `draw` would, as far as that is known before any sample is read.

    Raises:
        UsageError: if there is no such chart, if it takes another number of records, or if title or look
            do not fit it.
    """
    known = KINDS.get(text_of(kind, "kind", "the name of a chart") or "")
    if known is None:
        raise UsageError(f"there is no chart `{kind}` (known: {', '.join(KINDS)})")
    title = text_of(title, "title", "the heading of a chart")
    if title is not None and len(title) > MAX_TITLE_CHARS:
        raise UsageError(f"a title of {len(title)} characters: write {MAX_TITLE_CHARS} or fewer")
    _check_look(known, look or Look())
    if known.least <= count and (known.most is None or count <= known.most):
        return
    raise UsageError(f"chart `{kind}` takes {known.takes}, not {count}")


def _check_look(kind: Kind, look: Look) -> None:
    """Refuses what a kind of chart has no axis for."""
    axes = kind.axes if look.of == "ping" else _axes_of(kind, look)
    asked = {
        "span": ("time", look.span_s),
        "notes": ("time", look.notes),
        "limits of pings": ("ping", look.ping_ms),
        "a scale of pings": ("ping", look.ping_scale == "log"),
        "limits of throughput": ("throughput", look.throughput_mbps),
    }
    for what, (axis, value) in asked.items():
        if value and look.of != "ping" and axis not in axes:
            raise UsageError(f"{what}: chart `{kind.name}` of {look.of} has no axis of {axis}")
        if value and axis not in axes:
            have = ", ".join(f"`{one.name}`" for one in KINDS.values() if axis in one.axes)
            raise UsageError(f"{what}: chart `{kind.name}` has no axis of {axis}; these have one: {have}")
    ends = (look.ping_ms, look.throughput_mbps)
    if kind.name == "bar" and (look.ping_scale == "log" or any(one and one[0] > 0 for one in ends)):
        raise UsageError("chart `bar`: the length of a bar tells its value from 0 on a linear axis only")
    if kind.name != "meta" and (look.against != "configuration" or look.figures or look.group):
        raise UsageError(f"against, figure and group: only chart `meta` has them, not `{kind.name}`")
    if look.names and kind.name == "meta":
        raise UsageError("names: chart `meta` has the values of columns; group by another one")
    if look.names and kind.most == 1:
        raise UsageError(f"names: chart `{kind.name}` is of one run; use a title")
    if look.span_s is not None and not 0 <= look.span_s[0] < look.span_s[1]:
        first, last = look.span_s
        raise UsageError(f"span {first:g}s..{last:g}s: it must begin at 0 or later and end after that")


def _axes_of(kind: Kind, look: Look) -> tuple[str, ...]:
    """The axes of a chart that is of something else than pings.

    Raises:
        UsageError: if there is no such quantity, or the chart cannot be of it.
    """
    from weirlab.plots.quantity import QUANTITIES  # noqa: PLC0415 - only where it is asked for

    if look.of not in QUANTITIES:
        raise UsageError(f"of `{look.of}`: write one of ping, {', '.join(QUANTITIES)}")
    if not kind.of:
        have = ", ".join(f"`{one.name}`" for one in KINDS.values() if one.of)
        raise UsageError(
            f"of {look.of}: chart `{kind.name}` has its own quantities; these can be of others: {have}"
        )
    return (QUANTITIES[look.of].axis,)


MAX_TITLE_CHARS = 200
"""Characters; two lines of a chart."""
