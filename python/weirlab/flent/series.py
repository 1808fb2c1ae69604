"""Kinds of the series of a Flent file: pings, streams, or values that follow from others.

Flent names series freely. Units, the tool that measured (RUNNER) and the names of its own tests say what
one is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from weirlab.flent.document import number
from weirlab.flent.numbering import numbered

if TYPE_CHECKING:
    from collections.abc import Collection

    from weirlab.flent.document import Document, Point
    from weirlab.scenario import Direction

Kind = Literal["icmp", "udp", "http"]


@dataclass(frozen=True, kw_only=True)
class Ping:
    """A series of round trips.

    Attributes:
        name: of the series.
        kind: what was sent.
        means: whether each sample is a mean over an interval, of whose single pings nothing is known.
        points: the samples.
        meta: what the file says of the series.
        numbered: whether numbers of ICMP's tell which were lost.
    """

    name: str
    kind: Kind
    means: bool
    points: list[Point]
    meta: dict[str, Any]
    numbered: bool = True

    @property
    def losses_known(self) -> bool:
        """Whether the samples tell what was lost."""
        return not self.means and self.numbered and self.kind != "http"


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A series of throughput.

    Attributes:
        name: of the series.
        direction: whither the data went.
        points: the samples.
        meta: what the file says of the series.
        on_steps: whether the samples are values on the file's steps, since it has no single ones.
    """

    name: str
    direction: Direction
    points: list[Point]
    meta: dict[str, Any]
    on_steps: bool = False

    @property
    def is_udp(self) -> bool:
        """Whether it was sent by UDP: iperf's programs do that if they are told to."""
        command = str(self.meta.get("COMMAND", "")) if self.meta.get("RUNNER") == "IperfCsvRunner" else ""
        return self.name.startswith("UDP") or re.search(r"\s(-u|--udp)(\s|$)", command) is not None


@dataclass(frozen=True, kw_only=True)
class Series:
    """The series of a file.

    Attributes:
        pings, streams: those that a record holds, by their names.
        left_out: why a record does not hold another one, by name. Series that follow from others are not
            named.
        empty: those of them that should be pings or streams, and of which nothing was measured.
    """

    pings: list[Ping]
    streams: list[Stream]
    left_out: dict[str, str]
    empty: list[str] = field(default_factory=list)


def sort_series(document: Document, known_means: Collection[str] = ()) -> Series:
    """Says what the series of `document` are, of whose pings `known_means` are means over intervals."""
    found = Series(pings=[], streams=[], left_out={})
    for name in sorted({*document.results, *document.raw_values}, key=lambda one: _place(document, one)):
        meta = document.series_meta.get(name, {})
        if _follows(document, name, meta):
            continue
        points, interpolated = _samples(document, name)
        on_steps = interpolated or document.fake_raw
        units = meta.get("UNITS") or _usual_units(name)
        if not points:
            found.left_out[name] = _why_none(document, name, units)
            if units in UNITS and meta.get("RUNNER") != "NullRunner":
                found.empty.append(name)
        elif units == "ms" and name.startswith("Ping"):
            means = on_steps or name in known_means or any("dur" in point for point in points)
            found.pings.append(_ping(name, points, meta, means=means))
        elif name == "HTTP latency":
            means = on_steps or name in known_means
            found.pings.append(Ping(name=name, kind="http", means=means, points=points, meta=meta))
        elif units == "Mbits/s":
            direction = _direction(document.name, name, meta)
            if direction is None:
                found.left_out[name] = "the file does not tell its direction"
            else:
                found.streams.append(
                    Stream(name=name, direction=direction, points=points, meta=meta, on_steps=on_steps)
                )
        else:
            found.left_out[name] = "no table of a record holds it"
    return found


def _why_none(document: Document, name: str, units: object) -> str:
    """Why a series has no samples that a record could hold: it has none at all, or other ones."""
    keys = {key for point in document.raw_values.get(name, []) for key in point} - {"t"}
    if units in UNITS or not keys:
        return "it has no samples"
    more = f" and {len(keys) - MAX_KEYS} more" if len(keys) > MAX_KEYS else ""
    return f"no table of a record holds such statistics ({', '.join(sorted(keys)[:MAX_KEYS])}{more})"


def _place(document: Document, name: str) -> tuple[float, list[int | str]]:
    """Flent's own order, and that of numbers within names."""
    index = number(document.series_meta.get(name, {}).get("IDX"))
    parts = re.split(r"(\d{1,9})", name)
    return (
        float("inf") if index is None else index,
        [int(part) if place % 2 else part for place, part in enumerate(parts)],
    )


def _samples(document: Document, name: str) -> tuple[list[Point], bool]:
    """Single samples of a series, or its results in their place; the flag says that they are results."""
    points = [point for point in document.raw_values.get(name, []) if "val" in point or point.get("lost")]
    if points:
        return points, False
    values = document.results.get(name, [])
    return [
        {"t": document.t0_s + x, "val": value}
        for x, value in zip(document.x_values, values, strict=True)
        if value is not None
    ] if values else [], True


def _ping(name: str, points: list[Point], meta: dict[str, Any], *, means: bool) -> Ping:
    kind: Kind = "icmp" if "ICMP" in name else "udp"
    points = _steady(points)
    with_numbers = numbered(points) if kind == "icmp" and not means else points
    return Ping(
        name=name,
        kind=kind,
        means=means,
        points=points if with_numbers is None else with_numbers,
        meta=meta,
        numbered=with_numbers is not None,
    )


def _steady(points: list[Point]) -> list[Point]:
    """Means without those over intervals that are much longer or shorter than the ones before.

    netperf stops for good when one of its packets is lost, and tells one last interval over the rest of the
    test. Flent 2 leaves such samples out when it measures, by this rule; older files have them.
    """
    kept, usual = [], None
    for point in points:
        length = number(point.get("dur"))
        if length is not None and usual is not None and not usual / 10 <= length <= usual * 10:
            continue
        kept.append(point)
        if length is not None:
            usual = length if usual is None else (usual + length) / 2
    return kept


def _follows(document: Document, name: str, meta: dict[str, Any]) -> bool:
    """Whether a series is computed of others, or is a further value of another one's samples."""
    if meta.get("RUNNER") in COMPUTED or "COMPUTED_LATE" in meta:
        return True
    parent, separator, key = name.rpartition("::")
    if separator and parent in {*document.raw_values, *document.results} and key and not key.isdecimal():
        of_parent = document.raw_values.get(parent, [])
        return any(key in point for point in of_parent) or key.partition("_")[0] == "tcp"
    # Values on steps, which stand in for samples, tell nothing: computed series have them too.
    has_samples = not document.fake_raw and document.raw_values.get(name)
    return not has_samples and re.search(r" (avg|sum|totals?|fairness)$", name) is not None


def _usual_units(name: str) -> str | None:
    if name.startswith("Ping"):
        return "ms"
    return "Mbits/s" if name.startswith(("TCP", "UDP upload", "UDP download")) else None


def _direction(test: str, name: str, meta: dict[str, Any]) -> Direction | None:
    words = name.lower()
    command = str(meta.get("COMMAND", ""))
    if "download" in words or "TCP_MAERTS" in command:
        return "down"
    if "upload" in words or "TCP_STREAM" in command or test in ONLY_UPLOADS:
        return "up"
    return None


UNITS = {"ms", "Mbits/s"}
"""Those of pings and streams."""

MAX_KEYS = 3
"""Statistics of a series that are named."""

COMPUTED = {
    "AverageRunner",
    "SmoothAverageRunner",
    "SumRunner",
    "DiffMinRunner",
    "FairnessRunner",
    "ComputingRunner",
}
"""Runners that compute a series of other ones."""

ONLY_UPLOADS = {
    "cubic_ledbat_1",
    "ledbat_cubic_1",
    "tcp_2up_delay",
    "tcp_2up_square",
    "tcp_2up_square_westwood",
    "tcp_4up_squarewave",
}
"""Tests of Flent whose streams are uploads, which their names do not say."""
