"""View of a running shaper, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from rich import box

from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable


Wanted = Literal["continue", "open", "shape", "stop"]
"""What a shaper is to do after a view: go on as it does, let everything pass, shape, or end."""


class Counts(TypedDict):
    """Counts of a side's queue since the start, and its backlog."""

    bytes: int
    departed_bytes: int
    backlog_packets: int
    backlog_bytes: int
    dropped: int
    marked: int
    sojourn_ns: int | None


class SideView(TypedDict):
    """One side."""

    rate_bps: int | None
    load_bps: int
    state: str
    reason: str
    value: float
    unit: str
    counts: Counts


class ShaperView(TypedDict):
    """A view of a shaper, a few times a second; `delays` are when, round trip (both ns), and source.

    `late_ns` is how late the shaper itself was at worst since the last view: a busy machine's part of all
    delays.
    """

    t_ns: int
    pid: int
    device: str
    open: bool
    sides: list[SideView | None]
    delays: list[tuple[int, int, int]]
    reflectors: list[str]
    trouble: str | None
    late_ns: int
    missed: int
    warnings: list[str]


SIDES = ("up", "down")
"""The sides by the names of their options."""
METRIC_SIDES = ("egress", "ingress")
"""The sides as labels of metrics, which stay what dashboards ask for (docs/shape.md)."""
REASONS = {
    "start": "started",
    "delay": "queue of {value}",
    "overdue": "answers {value} overdue",
    "clear": "queue gone after {value}",
    "probe": "tries {value} more",
    "unused": "{value} of it used",
    "load": "traffic of {value}",
    "idle": "traffic went",
    "test": "is it a queue?",
    "reroute": "path {value} longer",
    "silence": "no answer for {value}",
    "resume": "slept {value}",
    "age": "not measured for {value}",
}
"""Meanings of the controller's reasons (docs/rate-control.md); `{value}` is its number."""
LATE_NS = 5_000_000
"""As much as the increase that a shaper is to keep delays below."""


def line_of(view: ShaperView) -> str:
    """A view in one line."""
    parts = [f"{view['t_ns'] / 1e9:7.1f} s"]
    for name, side in zip(SIDES, view["sides"], strict=True):
        if side is not None:
            parts.append(f"{name} {_rate(side)}, {side['load_bps'] / 1e6:.2f} Mbit/s used, {_state(side)}")
    parts.append(_delay(view))
    return "; ".join([*parts, *remarks_of(view)])


def remarks_of(view: ShaperView) -> list[str]:
    """Remarks that a reader needs beside the numbers."""
    said = []
    if view["trouble"]:
        said.append(view["trouble"])
    if view["late_ns"] >= LATE_NS:
        said.append(f"this machine is busy: the shaper was {view['late_ns'] / 1e6:.0f} ms late")
    return [*said, *(f"warning: {warning}" for warning in view["warnings"])]


def table_of(view: ShaperView) -> Table:
    """A view as a table."""
    table = Table(
        title=f"{view['device']}, {view['t_ns'] / 1e9:.0f} s, {_delay(view)}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    table.caption = "\n".join(remarks_of(view)) or None
    table.caption_justify = "left"
    # A terminal of 80 columns is enough: only the reason may take a second line.
    table.add_column("", no_wrap=True)
    for heading in ("rate,\nMbit/s", "used,\nMbit/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("because")
    for heading in ("wait,\npackets", "wait,\nms", "dropped", "marked"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, side in zip(SIDES, view["sides"], strict=True):
        if side is not None:
            counts = side["counts"]
            sojourn_ns = counts["sojourn_ns"]
            table.add_row(
                name,
                "open" if side["rate_bps"] is None else f"{side['rate_bps'] / 1e6:.2f}",
                f"{side['load_bps'] / 1e6:.2f}",
                side["state"].replace("_", " "),
                _reason(side),
                str(counts["backlog_packets"]),
                "" if sojourn_ns is None else f"{sojourn_ns / 1e6:.1f}",
                str(counts["dropped"]),
                str(counts["marked"]),
            )
    return table


def metrics_of(view: ShaperView) -> str:
    """A view as metrics in Prometheus' text format, version 0.0.4."""
    lines: list[str] = []

    def metric(name: str, kind: str, meaning: str, values: list[tuple[str, float | None]]) -> None:
        lines.extend([f"# HELP weir_shape_{name} {meaning}", f"# TYPE weir_shape_{name} {kind}"])
        device = view["device"].replace("\\", "\\\\").replace('"', '\\"')
        for labels, value in values:
            if value is not None:
                lines.append(f'weir_shape_{name}{{device="{device}"{labels}}} {value!r}')

    def each(name: str, kind: str, meaning: str, value: Callable[[SideView], float | None]) -> None:
        sides = zip(METRIC_SIDES, view["sides"], strict=True)
        metric(name, kind, meaning, [(f',side="{what}"', value(side)) for what, side in sides if side])

    each("rate_bps", "gauge", "Rate; absent while everything passes.", lambda side: side["rate_bps"])
    each("load_bps", "gauge", "What crosses the line.", lambda side: side["load_bps"])
    each("bytes_total", "counter", "Bytes that crossed it.", lambda side: side["counts"]["bytes"])
    each("backlog_bytes", "gauge", "What waits.", lambda side: side["counts"]["backlog_bytes"])
    each("dropped_packets_total", "counter", "Packets dropped.", lambda side: side["counts"]["dropped"])
    each("marked_packets_total", "counter", "Packets marked.", lambda side: side["counts"]["marked"])
    delays = sorted(rtt for _, rtt, _ in view["delays"])
    median = delays[len(delays) // 2] / 1e9 if delays else None
    metric(
        "delay_seconds", "gauge", "Median round trip of the last 0.2 s; absent without one.", [("", median)]
    )
    metric("late_seconds", "gauge", "How late the shaper itself was at worst.", [("", view["late_ns"] / 1e9)])
    metric("missed_packets_total", "counter", "Packets that passed unseen.", [("", view["missed"])])
    warnings: list[tuple[str, float | None]] = [("", len(view["warnings"]))]
    metric(
        "warnings", "gauge", "How many things keep it from helping; `weir shape status` names them.", warnings
    )
    return "\n".join(lines) + "\n"


def _rate(side: SideView) -> str:
    return "open" if side["rate_bps"] is None else f"{side['rate_bps'] / 1e6:.2f} Mbit/s"


def _state(side: SideView) -> str:
    return f"{side['state'].replace('_', ' ')} ({_reason(side)})" if side["reason"] else side["state"]


def _reason(side: SideView) -> str:
    words = REASONS.get(side["reason"])
    if words is None:
        return side["reason"]
    return words.format(value=f"{side['value']:.3g} {side['unit']}".strip())


def _delay(view: ShaperView) -> str:
    delays = sorted(rtt for _, rtt, _ in view["delays"])
    if not delays:
        return "no delay measured"
    return f"delay {delays[len(delays) // 2] / 1e6:.1f} ms"
