"""The study `thesis` as tables: on the terminal, and as a page in Markdown."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from rich import box

from weirlab.report.findings import line
from weirlab.ui import Table
from weirstudies.statements import seen_word
from weirstudies.thesis.findings import DIGITS, FALLING, NEAR, ORDER, WORDS, near, pairs, statements
from weirstudies.thesis.study import METRICS, Row, Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.stats import Interval


def terminal_table(rows: Sequence[Row]) -> Table:
    """A row a combination of the thesis: our figure with half of its interval, beneath it the thesis'."""
    runs = len(rows[0].whole)
    table = Table(
        title=f"Ours (± half of the 95 % interval, {runs} seeds), beneath it the thesis', and the ratio",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("configuration, flows, case", overflow="fold", min_width=20)
    for metric in METRICS:
        table.add_column(HEADINGS[metric], justify="right", no_wrap=True)
    for row in rows:
        if row.published is None:
            continue
        cells = []
        for metric in METRICS:
            digits = DIGITS[metric]
            theirs = float(getattr(row.published, metric))
            mark = "*" if is_missed(row, metric) else ""
            ours = _with_half(row.interval(metric), digits)
            cells.append(f"{mark}{ours}\n{theirs:.{digits}f} ({row.ratio(metric):.2f})")
        table.add_row(row.cell.name, *cells)
    table.caption = f"*: outside the bounds ({BOUNDS})"
    return table


def verdict(rows: Sequence[Row], readings: Sequence[Row], of: Study) -> str:
    """The verdicts, a line a statement."""
    judged = [
        (row, metric)
        for row in rows
        if row.published is not None and row.cell.case.name in AIMED
        for metric in AIMED_AT
    ]
    lines = []
    if judged:
        met = sum(not is_missed(row, metric) for row, metric in judged)
        lines.append(f"{met} of {len(judged)} aims of the RED and token-bucket rows met ({AIMS}).")
    lines.append(_of_all(rows))
    lines += [f"{seen_word(one.seen)}: {one.text}" for one in statements(rows, readings, of)]
    return "\n".join(lines)


def page(
    rows: Sequence[Row],
    readings: Sequence[Row],
    lab: Sequence[tuple[Row, Row]],
    of: Study,
    took: str | None,
) -> str:
    """The whole study as Markdown."""
    runs = len(rows[0].whole)
    length = "" if took is None else f" It took {took}."
    parts = [
        f"# {of.title}",
        f"Source: {of.source}. {len(rows)} combinations with {runs} seeds each in the simulator.{length}",
        _findings(rows, readings, of),
    ]
    for configuration in of.configuration:
        mine = [row for row in rows if row.cell.configuration == configuration]
        if mine:
            parts.append(_table(mine, of))
    parts += [_missed(rows), _pairs(rows)]
    parts.append(_settings(of))
    if readings:
        parts.append(_readings(readings, rows))
    if lab:
        parts.append(_lab(lab))
    return "\n\n".join(part for part in parts if part) + "\n"


def figures_csv(rows: Sequence[Row]) -> str:
    """Every run's figures, a line a run and window."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["configuration", "flows", "case", "reading", "seed", "from_s", *METRICS])
    for row in rows:
        cell = row.cell
        for window, runs in (("0", row.whole), ("warm-up", row.late)):
            for seed, run in enumerate(runs, start=1):
                writer.writerow(
                    [
                        cell.configuration.name,
                        cell.flows,
                        cell.case.name,
                        cell.variant.name if cell.variant else "",
                        seed,
                        window,
                        *(f"{getattr(run, metric):.6g}" for metric in METRICS),
                    ]
                )
    return out.getvalue()


def is_missed(row: Row, metric: str) -> bool:
    """Whether a figure of a row is outside the bounds about the thesis'; rows that it lacks never are."""
    ratio = row.ratio(metric)
    if ratio is None:
        return False
    low, high = BOUND.get(metric, (0.0, float("inf")))
    return not low <= ratio <= high


def _findings(rows: Sequence[Row], readings: Sequence[Row], of: Study) -> str:
    found = statements(rows, readings, of)
    if not found:
        return ""
    lines = ["## What is seen, what is not, what is undecided", "", _of_all(rows), ""]
    lines += [line(["the thesis says", "here", "by which intervals"]), line(["---"] * 3)]
    lines += [line([one.text, f"**{seen_word(one.seen)}**", one.grounds]) for one in found]
    return "\n".join(lines)


def _of_all(rows: Sequence[Row]) -> str:
    """How many of all the thesis' figures are near ours, with and without its marker."""

    def told(some: Sequence[Row]) -> str:
        counts = near(some)
        each = ", ".join(
            f"{WORDS[name].removeprefix('the ')} {good} of {of}" for name, (good, of) in counts.items()
        )
        good, of = (sum(pair[place] for pair in counts.values()) for place in (0, 1))
        return f"{good} of {of} ({each})"

    published = [row for row in rows if row.published is not None]
    marked = [row for row in published if row.cell.case.name not in AIMED]
    return (
        f"Within a factor of {NEAR:g} of the thesis' figures: {told(published)}; of the rows with its marker "
        f"{told(marked)}."
    )


def _table(rows: Sequence[Row], of: Study) -> str:
    """A configuration's table: the thesis' value, ours with its interval, the ratio."""
    lines = [
        f"## {rows[0].cell.configuration.title}",
        "",
        (
            "Thesis / ours from t = 0 with the 95 % interval (ratio); in italics ours from "
            f"t = {of.warm_up / 1e9:g} s. Bold: outside the bounds."
        ),
    ]
    for flows in sorted({row.cell.flows for row in rows}, reverse=True):
        lines += ["", line([f"{flows} flows", *(WIDE[metric] for metric in METRICS)])]
        lines.append(line(["---", *("---:" for _ in METRICS)]))
        lines += [
            line([row.cell.case.name, *(_cell(row, metric) for metric in METRICS)])
            for row in rows
            if row.cell.flows == flows
        ]
    absent = [f"{case.name}: {why}." for case in of.case if (why := of.missing(case))]
    if absent:
        lines += ["", *absent]
    return "\n".join(lines)


def _cell(row: Row, metric: str) -> str:
    digits = DIGITS[metric]
    ours = _with_ends(row.interval(metric), digits)
    late = f"*{row.interval(metric, late=True).mean:.{digits}f}*"
    ratio = row.ratio(metric)
    if row.published is None or ratio is None:
        return f"{ours}; {late}"
    theirs = float(getattr(row.published, metric))
    shown = f"{theirs:.{digits}f} / {ours} ({ratio:.2f})"
    return f"**{shown}**; {late}" if is_missed(row, metric) else f"{shown}; {late}"


def _missed(rows: Sequence[Row]) -> str:
    """Every figure of the thesis that ours is outside the bounds of."""
    lines = []
    for row in rows:
        for metric in METRICS:
            if is_missed(row, metric):
                aimed = "" if row.cell.case.name in AIMED and metric in AIMED_AT else " (no aim)"
                lines.append(line([row.cell.name, f"{WORDS[metric]}{aimed}", f"{row.ratio(metric):.2f}"]))
    if not lines:
        return ""
    head = [
        "## Rows outside the bounds",
        "",
        (
            f"Bounds: {BOUNDS}. Aims are those of timeouts and of loss in the RED "
            "and token-bucket rows; all else (no aim) is held against the same bounds. "
            "No cause is named: none was found by switching it off. What single settings do stands below."
        ),
    ]
    return "\n".join([*head, "", line(["row", "figure", "ratio"]), line(["---"] * 3), *lines])


def _pairs(rows: Sequence[Row]) -> str:
    """Whether neighbours in the thesis' order are so here, and whether their intervals separate."""
    found = pairs(rows)
    if not found:
        return ""
    lines = [
        "## Do neighbours separate?",
        "",
        (
            "For each pair: is the first better, as in the thesis? `overlapping`: the 95 % intervals "
            "have values in "
            "common."
        ),
        "",
        line(["configuration, flows", "pair", *(WORDS[metric].removeprefix("the ") for metric in FALLING)]),
        line(["---"] * 5),
    ]
    by_place: dict[tuple[str, str], dict[str, str]] = {}
    for pair in found:
        key = (f"{pair.configuration}, {pair.flows}", f"{pair.better} < {pair.worse}")
        by_place.setdefault(key, {})[pair.metric] = pair.word
    lines += [line([*key, *(words[metric] for metric in FALLING)]) for key, words in by_place.items()]
    return "\n".join(lines)


def _settings(of: Study) -> str:
    lines = [
        "## Every setting, and where it comes from",
        "",
        (
            "Given by the thesis, inferred from it, or chosen. *Fitted*: its own results had a part in "
            "the choice; what "
            "the plain reading gives is in the next table."
        ),
        "",
        line(["setting", "value", "status", "reason"]),
        line(["---"] * 4),
    ]
    lines += [
        line([one.name, one.value, one.status + (", *fitted*" if one.fitted else ""), one.reason])
        for one in of.setting
    ]
    return "\n".join(lines)


def _readings(readings: Sequence[Row], rows: Sequence[Row]) -> str:
    """Results of other readings of single settings, beneath those of the study."""
    lines = [
        "## What other readings give",
        "",
        (
            f"One setting changed at a time, 100 flows, {len(readings[0].whole)} seeds: timeouts / loss "
            "in % / goodput "
            "in bytes per second / variation, means from t = 0."
        ),
        "",
    ]
    cases = list(dict.fromkeys(row.cell.case.name for row in readings))
    lines += [line(["reading", *cases]), line(["---"] * (len(cases) + 1))]
    places = dict.fromkeys((row.cell.configuration.name, row.cell.flows) for row in readings)
    for name, flows in places:
        chosen = [row for row in rows if (row.cell.configuration.name, row.cell.flows) == (name, flows)]
        if chosen:
            thesis = [_published(chosen, case) for case in cases]
            lines.append(line([f"**{name}: the thesis**", *thesis]))
            lines.append(line([f"**{name}: the study**", *(_four(chosen, case) for case in cases)]))
        mine = [row for row in readings if row.cell.configuration.name == name]
        for variant in dict.fromkeys(row.cell.variant.name for row in mine if row.cell.variant):
            some = [row for row in mine if row.cell.variant and row.cell.variant.name == variant]
            lines.append(line([f"{name}: {variant}", *(_four(some, case) for case in cases)]))
    return "\n".join(lines)


def _four(rows: Sequence[Row], case: str) -> str:
    row = next((row for row in rows if row.cell.case.name == case), None)
    if row is None:
        return ""
    return " / ".join(f"{row.interval(metric).mean:.{DIGITS[metric]}f}" for metric in METRICS)


def _published(rows: Sequence[Row], case: str) -> str:
    row = next((row for row in rows if row.cell.case.name == case), None)
    if row is None or row.published is None:
        return ""
    return " / ".join(f"{getattr(row.published, metric):.{DIGITS[metric]}f}" for metric in METRICS)


def _lab(lab: Sequence[tuple[Row, Row]]) -> str:
    """The simulator with Linux 6.12's TCP beside the lab with this kernel's."""
    sim, real = lab[0]
    lines = [
        "## Simulator and lab",
        "",
        (
            f"Both with today's Linux (Reno, SACK on or off), from t = 0: the simulator's profile `linux` "
            f"({len(sim.whole)} seeds, with the 95 % interval) / this kernel in the lab "
            f"({len(real.whole)} run(s)), and "
            "the ratio."
        ),
        "",
        line(["row", *(WIDE[metric] for metric in METRICS)]),
        line(["---", *("---:" for _ in METRICS)]),
    ]
    for sim, real in lab:
        cells = []
        for metric in METRICS:
            ours, theirs = sim.interval(metric), real.interval(metric).mean
            ratio = f" ({ours.mean / theirs:.2f})" if theirs else ""
            cells.append(f"{_with_ends(ours, DIGITS[metric])} / {theirs:.{DIGITS[metric]}f}{ratio}")
        lines.append(line([real.cell.name, *cells]))
    return "\n".join(lines)


def _with_half(interval: Interval, digits: int) -> str:
    if interval.high is None:
        return f"{interval.mean:.{digits}f}"
    return f"{interval.mean:.{digits}f} ±{interval.high - interval.mean:.{digits}f}"


def _with_ends(interval: Interval, digits: int) -> str:
    if interval.low is None or interval.high is None:
        return f"{interval.mean:.{digits}f}"
    return f"{interval.mean:.{digits}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


BOUND = {
    "timeouts": (1 / 1.5, 1.5),
    "loss_percent": (0.7, 1.3),
    "goodput": (0.7, 1.3),
    "variation": (0.5, 2.0),
}
"""Ratios to the thesis that count as near enough."""

AIMED_AT = ("timeouts", "loss_percent")
AIMS = "timeouts within a factor of 1.5, loss within 30 %"
BOUNDS = f"{AIMS}, goodput within 30 %, variation within a factor of 2"
"""Figures with an aim, in the rows of `AIMED`, and in words the aims and all of `BOUND`."""

AIMED = (ORDER[2], ORDER[3])
"""The cases without unknown algorithms: token bucket with RIO, and RED."""

HEADINGS = {
    "timeouts": "timeouts",
    "loss_percent": "loss, %",
    "goodput": "goodput, B/s",
    "variation": "variation",
}
WIDE = {
    "timeouts": "timeouts",
    "loss_percent": "byte loss probability, %",
    "goodput": "goodput per flow, bytes/s",
    "variation": "coefficient of variation",
}
