"""The studies of shapers as tables: on the terminal and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box

from weirlab.report.findings import line
from weirlab.stats import factor_text
from weirlab.ui import Table
from weirstudies.shapers import cfosspeed, controls
from weirstudies.statements import seen_word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weirlab.stats import Factor, Interval
    from weirstudies.shapers import autorate

SERIES = {
    "series": "pings as the report sent them",
    "": "whose",
    "min": "ms; without a shaper from two seconds behind the start of the load on",
    "mean": "ms",
    "max": "ms",
    "sd": "standard deviation, ms",
    "median": "ms",
}
STATEMENTS = {"statement": "", "verdict": "", "interval": ""}
AUTORATE = {
    "line": "the line and which way the load went",
    "control": "who set the rate",
    "+ ms": "mean ping under load, less that of the idle line",
    "p99": "99th percentile of the pings, likewise",
    "used %": "share of the line that was used",
    "seen s": "after the line dropped: until the rate was lowered",
    "calm s": "until the mean ping was within 5 ms of the idle line and stayed so",
    "full s": "after the line rose: until 90 % of it was used",
}
CFOSSPEED = {
    "": "download; upload on a line whose rate varies; upload over a path that varies",
    "control": "who set the rate",
    "ping": "mean of the report's pings under load, ms",
    "+ ms": "that less their mean on the idle line",
    "factor": "increase without a shaper / increase with this one",
    "p99": "99th percentile of pings every 10 ms under load, less the median of the idle line, ms",
    "Mbit/s": "goodput",
    "cost %": "of the goodput without a shaper",
    "tamed s": "until the mean ping was within 5 ms of the idle line and stayed so",
}
"""Headings and what stands below them."""


def autorate_cells(row: autorate.Row, *, intervals: bool) -> list[str]:
    """A row of the study `autorate`; with `intervals` where there are repetitions."""

    def _number(found: Interval | None, digits: int, *, scale: float = 1.0) -> str:
        return _figure(found, digits, scale=scale, intervals=intervals)

    return [
        row.line,
        row.control,
        _number(row.increase_ms, 1),
        _number(row.p99_ms, 1),
        _number(row.used, 1, scale=100),
        _number(row.noticed_s, 2),
        _number(row.calm_s, 2),
        _number(row.used_again_s, 1),
    ]


def cfosspeed_cells(row: cfosspeed.Row, *, intervals: bool) -> list[str]:
    """A row of the study `cfosspeed`; with `intervals` where there are repetitions."""

    def _number(found: Interval | None, digits: int) -> str:
        return _figure(found, digits, intervals=intervals)

    return [
        row.load,
        row.control,
        _number(row.loaded_ms, 2),
        _number(row.increase_ms, 2),
        "" if row.control == controls.NONE else _factor(row.factor, intervals=intervals),
        _number(row.p99_ms, 1),
        _number(row.goodput_mbps, 2),
        "" if row.cost is None or row.control == controls.NONE else f"{row.cost * 100:.1f}",
        _number(row.tamed_s, 2),
    ]


def reported_cells() -> list[list[str]]:
    """Figures of the report of 2018, as rows of the same table."""
    return [
        [direction, f"cFosSpeed's report: {which}", "", f"{figures[key]:.2f}", factor, "", "", "", tamed]
        for direction, figures in cfosspeed.REPORTED.items()
        for which, key, factor, tamed in (
            ("without", "without", "", ""),
            ("with", "with", f"{figures['factor']:.1f}", f"{figures['tamed_s']:.0f}"),
        )
    ]


def series_cells(found: cfosspeed.Series) -> list[list[str]]:
    """A series' five figures: ours, and beneath it the report's."""
    ours = [_figure(one, 2, intervals=False) for one in found.figures.values()]
    rows = [[found.name, "here", *ours]]
    if found.published is not None:
        rows.append([found.name, "the report", *(f"{one:.2f}" for one in found.published)])
    return rows


def statement_cells(found: cfosspeed.Statement) -> list[str]:
    """A statement, its verdict, and by which interval."""
    return [
        f"{found.load}, {found.control}: {found.says}",
        seen_word(found.seen),
        "; ".join(one.text for one in found.rulings),
    ]


def table(title: str, headings: Mapping[str, str], rows: Sequence[Sequence[str]]) -> Table:
    """The rows for a terminal."""
    legend = "; ".join(f"{heading}: {meaning}" for heading, meaning in list(headings.items())[WORDS:])
    shown = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, caption=legend)
    for number, heading in enumerate(headings):
        if number < WORDS:
            shown.add_column(
                heading, overflow="fold", no_wrap=number == 0, min_width=MIN_WIDTH_CHARS * number
            )
        else:
            shown.add_column(heading, justify="right")
    for row in rows:
        shown.add_row(*row)
    return shown


def markdown(headings: Mapping[str, str], rows: Sequence[Sequence[str]]) -> str:
    """The rows in Markdown."""
    rule = ["---" if number < WORDS else "---:" for number in range(len(headings))]
    return "\n".join(line(list(row)) for row in (list(headings), rule, *rows))


def _figure(found: Interval | None, digits: int, *, intervals: bool, scale: float = 1.0) -> str:
    if found is None:
        return "-"
    text = f"{found.mean * scale:.{digits}f}"
    if intervals and found.low is not None and found.high is not None:
        text += f" ± {(found.high - found.low) / 2 * scale:.{digits}f}"
    return text


def _factor(found: Factor, *, intervals: bool) -> str:
    if found.factor is None:
        return "-" if found.low is None else f"> {factor_text(found.low)}"
    text = factor_text(found.factor)
    if intervals and found.ends is not None:
        text += f" ({found.ends})"
    return text


WORDS = 2
"""Columns of words; the others are numbers."""

MIN_WIDTH_CHARS = 16
"""Of the second column: a control's name in two lines."""
