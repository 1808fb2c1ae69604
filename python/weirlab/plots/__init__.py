"""Charts of records, as PNG, SVG or PDF. Each says in small print what was done to the samples.

What draws is loaded only when something is drawn: `weir --help` shall not wait for Matplotlib.
"""

from __future__ import annotations

import importlib
import uuid
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from weirlab.record import Record

__all__ = ["KINDS", "Kind", "draw", "save"]


@dataclass(frozen=True)
class Kind:
    """A kind of chart.

    Attributes:
        name: what it is asked for by.
        summary: what it shows, in a line.
        least, most: how many records it takes; `most` is None if there is no limit.
    """

    name: str
    summary: str
    least: int
    most: int | None


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("three-plot", "download, upload and latency over time", 1, 1),
            Kind("phases", "throughput and pings over the phases of a test, with its grades", 1, 1),
            Kind("cdf", "which share of the pings took at most how long", 1, None),
            Kind("box", "spread of download, upload and latency of each set-up", 1, None),
            Kind("ping", "ping over time, run above run, with averages", 1, None),
            Kind("windows", "congestion window of each flow over time, run above run", 1, None),
            Kind("shaper", "a shaper's rate, ping and use of the line over time, of several runs", 1, None),
            Kind("overlay", "ping over time of two runs in one chart: before and after", 2, 2),
        )
    }
)
"""All kinds of charts, by name."""

FORMATS = ("png", "svg", "pdf")


def draw(kind: str, records: Sequence[Record], target: Path, *, title: str | None = None) -> Path:
    """Draws a chart into the file `target`, in the format that its suffix names.

    Args:
        kind: one of `KINDS`.
        records: what is drawn, in this order.
        target: the file; one that is there is replaced, and only by a finished chart.
        title: heading in place of the test's title.

    Returns:
        `target`.

    Raises:
        UsageError: if kind, suffix or number of records do not fit, if a record lacks what the
            chart shows, or if the file cannot be written. Nothing is left behind then.
    """
    _check(kind, len(records))
    drawing = importlib.import_module(f"weirlab.plots.{kind.replace('-', '_')}")
    return save(lambda: drawing.figure(records, title), target)


def save(make: Callable[[], Figure], target: Path) -> Path:
    """Draws what `make` makes into the file `target`, as `draw` does.

    Raises:
        UsageError: if the suffix does not fit or the file cannot be written. Nothing is left behind then.
    """
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise UsageError(f"`{target}` cannot be drawn: its name must end in .png, .svg or .pdf")
    from weirlab.plots import theme  # noqa: PLC0415 - loads Matplotlib

    with theme.applied():
        content = theme.render(make(), suffix)
    _write(target, content)
    return target


def _check(name: str, count: int) -> None:
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"there is no chart `{name}` (known: {', '.join(KINDS)})")
    if kind.least <= count and (kind.most is None or count <= kind.most):
        return
    takes = f"{kind.least} or more records"
    if kind.least == kind.most:
        takes = "exactly 1 record" if kind.least == 1 else f"exactly {kind.least} records"
    raise UsageError(f"chart `{name}` takes {takes}, not {count}")


def _write(target: Path, content: bytes) -> None:
    """Writes beside the target and renames: whoever looks sees a whole chart or the old one."""
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        try:
            part.write_bytes(content)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"`{target}` cannot be written: {error.strerror}") from error
