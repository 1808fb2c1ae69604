"""Report on a foreign speed test, beside Weir's own pings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich import box
from rich.text import Text

from weirlab.record.configurations import configurations
from weirlab.report.tables import LOOK
from weirlab.stats import interval
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weirlab.record import MethodResult, Record
    from weirlab.scores import Truth
    from weirlab.stats import Interval


def method_tables(record: Record) -> Iterator[Table]:
    """Rows about each speed test of a run: its result, or that it did not end; our own pings beside it."""
    rows = record.columns("method").rows()
    if not rows:
        return
    from weirlab.scores import truth_of  # noqa: PLC0415 - most runs have no speed test

    truth = truth_of(record)
    for row in rows:
        began = row["began_ns"] / 1e9
        if row["result"] is None:
            table = Table("", title=f"{row['name']}: {row['kind']}", box=box.SIMPLE_HEAD, pad_edge=False)
            table.add_row(f"begun at {began:.1f} s, not ended when the run did")
            yield table
            continue
        table = method_table(json.loads(row["result"]), truth)
        table.title = f"{row['name']}: {table.title}"
        when = f"from {began:.1f} to {row['ended_ns'] / 1e9:.1f} s"
        table.caption = f"{when}; {table.caption}" if table.caption else when
        yield table


def method_results(record: Record) -> list[dict[str, Any]]:
    """Results of each speed test of a run as plain values, for JSON."""
    return [
        {**row, "result": row["result"] and json.loads(row["result"])}
        for row in record.columns("method").rows()
    ]


def method_verdicts(record: Record) -> Iterator[Text]:
    """Meaning of the result of each speed test, in a sentence, and of our own pings beside it."""
    rows = record.columns("method").rows()
    if not rows:
        return
    from weirlab.scores import truth_of, verdict, verdict_of_truth  # noqa: PLC0415 - most runs have none

    for row in rows:
        if row["result"] is not None:
            yield Text(verdict(json.loads(row["result"])).says)
    if (seen := verdict_of_truth(truth_of(record))) is not None:
        yield Text(seen.says)


def figures_of_methods(records: Sequence[Record]) -> dict[str, dict[str, dict[str, Interval]]]:
    """What speed tests of others showed, by configuration, test and figure: means over what ended.

    Each has its 95 % interval. A configuration may have several tests, whose formulas are not the same.
    Configurations of which no speed test ended are left out, and so are figures that none showed.
    """
    found = {}
    for one in configurations(records):
        tests = {name: _means(results) for name, results in _ended(one.records).items()}
        known = {name: figures for name, figures in tests.items() if figures}
        if known:
            found[one.name] = known
    return found


def comparison_of_methods(records: Sequence[Record]) -> Table | None:
    """A line a configuration and test: what it showed by its own formulas; None where none ended."""
    found = figures_of_methods(records)
    each = [(of, test, figures) for of, tests in found.items() for test, figures in tests.items()]
    shown = [name for name in SHOWN if any(name in figures for _, _, figures in each)]
    if not shown:
        return None
    table = Table(title="What the speed tests showed, by their own formulas", **LOOK)
    table.add_column("queue", overflow="fold", min_width=16)
    several = len({test for _, test, _ in each}) > 1
    if several:
        table.add_column("test", overflow="fold")
    for name in shown:
        table.add_column(HEADINGS[name], justify="right", no_wrap=True)
    for of, test, figures in each:
        table.add_row(of, *([test] if several else []), *(_cell(name, figures.get(name)) for name in shown))
    counts = sorted({one.count for _, _, figures in each for one in figures.values()})
    if counts[-1] > 1:
        count = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        table.caption = f"means of {count} tests, ± half of the 95 % interval"
    return table


def _ended(records: Sequence[Record]) -> dict[str, list[Mapping[str, Any]]]:
    """The results of the tests that ended, by the tests' names."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for row in record.columns("method").rows():
            if row["result"] is not None:
                found.setdefault(row["name"], []).append(json.loads(row["result"]))
    return found


def _means(results: Sequence[Mapping[str, Any]]) -> dict[str, Interval]:
    """Means of the figures that are set beside each other, as far as there are any."""
    figures = {name: interval([_at(result, ways) for result in results]) for name, ways in SHOWN.items()}
    return {name: figure for name, figure in figures.items() if figure is not None}


def _at(result: Mapping[str, Any], ways: Sequence[str]) -> float | None:
    """The figure at the first of these places that there is."""
    for way in ways:
        value: Any = result
        for part in way.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            return float(value)
    return None


def _cell(name: str, value: Interval | None) -> str:
    if value is None:
        return "-"
    digits = 2 if name.endswith("_mbps") else 0 if name.endswith("_rpm") else 1
    spread = "" if value.high is None else f"\n±{value.high - value.mean:.{digits}f}"
    return f"{value.mean:.{digits}f}{spread}"


def method_table(result: MethodResult, truth: Truth | None) -> Table:
    """All its figures by name; the truth below them."""
    title = Text(f"{result['method']}, by {result['formula']}")
    caption = RATES.get(result["method"])
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    for name, value in _flat(result):
        if name not in {"method", "formula", "failures"}:
            table.add_row(name, Text(value))
    if truth is not None:
        table.add_section()
        for name, one in (("before it", truth.idle), ("during it", truth.during)):
            figures = f"median {one.median:.1f}, p95 {one.p95:.1f}, max {one.max:.1f} ms"
            table.add_row(f"our own pings {name}", figures)
        table.add_row("our own pings lost", str(truth.lost))
    return table


def _flat(values: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        full = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _flat(value, f"{full}: ")
        elif isinstance(value, list):
            yield full, ", ".join(str(one) for one in value) or "-"
        elif isinstance(value, float):
            yield full, f"{value:.2f}"
        else:
            yield full, "-" if value is None else str(value)


SHOWN = {
    "download_mbps": ("download_mbps", "download.goodput_mbps"),
    "upload_mbps": ("upload_mbps", "upload.goodput_mbps"),
    "latency_ms": ("latency_ms",),
    "download_loaded_latency_ms": ("download_loaded_latency_ms",),
    "upload_loaded_latency_ms": ("upload_loaded_latency_ms",),
    "download_rpm": ("download.rpm",),
    "upload_rpm": ("upload.rpm",),
}
"""Figures that are set beside each other, and where results have them."""

HEADINGS = {
    "download_mbps": "down\nMbit/s",
    "upload_mbps": "up\nMbit/s",
    "latency_ms": "latency\nms",
    "download_loaded_latency_ms": "loaded\ndown ms",
    "upload_loaded_latency_ms": "loaded\nup ms",
    "download_rpm": "RPM\ndown",
    "upload_rpm": "RPM\nup",
}

RATES = {
    "ookla": "download and upload mbps: by its own formula, which may give more than a line has; "
    "mean mbps: all bytes over the whole time",
    "rpm": "goodput mbps: of the last 4 s, by which the method ends, and which may be more than a line has; "
    "mean mbps: all bytes over the whole load",
}
"""Of methods with two figures of a rate, what each is."""
