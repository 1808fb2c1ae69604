"""Tables of differences from the baseline: size, interval, and whether they are shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from weirlab.record.differences import is_of_a_real_line
from weirlab.report.tables import LOOK
from weirlab.stats.difference import MIN_REPEATS
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.stats import Comparison, Difference


def difference_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """A table for each configuration but the baseline, if both have two repetitions: a row a figure."""
    baseline, *others = comparisons
    shown = {one.name: [each for each in one.differences if each.p is not None] for one in others}
    shown = {name: rows for name, rows in shown.items() if rows}
    tables = []
    for name, rows in shown.items():
        table = Table(title=f"`{name}` less `{baseline.name}`", **LOOK)
        table.add_column("figure")
        for heading in ("difference", "95 % interval", "detectable", "p"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("it is", no_wrap=True)
        for each in rows:
            table.add_row(NAMES[each.figure], *_cells(each), _verdict(each))
        tables.append(table)
    if tables:
        tables[-1].caption = _caption([each for rows in shown.values() for each in rows])
    return tables


def doubts(records: Sequence[Record], comparisons: Sequence[Comparison]) -> list[str]:
    """Why a comparison of `records` says less than its figures seem to, a sentence each."""
    return [*_unlike(records), *narrow(comparisons), *unrepeated(records, comparisons)]


def _unlike(records: Sequence[Record]) -> list[str]:
    """A warning that records are of several tests or links; empty if all are of the same."""
    tests = sorted({record.manifest.scenario["name"] for record in records})
    links = sorted({record.manifest.link["name"] for record in records})
    apart = [f"{what} {', '.join(each)}" for what, each in (("tests", tests), ("links", links)) if each[1:]]
    return [f"these records are not alike: {'; '.join(apart)}"] if apart else []


def unrepeated(records: Sequence[Record], comparisons: Sequence[Comparison]) -> list[str]:
    """Warnings about configurations of `records` that ran once, and repetitions that repeat nothing."""
    alike = [one.name for one in comparisons[1:] if any(each.alike for each in one.differences)]
    told = [
        f"`{name}`: repetitions are alike in all figures, here and in the baseline: they count as one run, "
        "which shows no scatter"
        for name in alike
    ]
    single = [
        one
        for one in comparisons[1:]
        if one.name not in alike and any(each.repeats < SCATTERED for each in one.differences)
    ]
    return told + ([_needed(records)] if single else [])


def _needed(records: Sequence[Record]) -> str:
    """That repetitions are needed, and how the commands that made these records make them."""
    ways = dict.fromkeys(map(_way, records))
    needs = "a single run shows no scatter: whether configurations differ needs repetitions"
    return f"{needs} ({', '.join(ways)})"


def _way(record: Record) -> str:
    """How the run of a record is repeated."""
    return "several `weir test` with the same `--note`" if is_of_a_real_line(record) else "`--repeat 10`"


def narrow(comparisons: Sequence[Comparison]) -> list[str]:
    """A warning that intervals which are shown are of too few repetitions; empty if none are."""
    few = [len(one.runs) for one in comparisons if SCATTERED <= len(one.runs) < MIN_REPEATS]
    if not few:
        return []
    says = f"intervals of fewer than {MIN_REPEATS} are narrower than they should be"
    return [f"{min(few)} repetitions are few: {says}"]


def _cells(one: Difference) -> list[str]:
    digits = 1 if one.figure.endswith("_ms") else 2
    if one.better is not None and one.size and round(one.size, digits) == 0:
        # A difference that is shown is not 0.
        digits = 1 - math.floor(math.log10(abs(one.size)))
    interval = (
        "-" if one.low is None or one.high is None else f"{one.low:+.{digits}f} to {one.high:+.{digits}f}"
    )
    detectable = "-" if one.detectable is None else f"{one.detectable:.{digits}f}"
    probability = "-" if one.p_holm is None else "< 0.001" if one.p_holm < 1e-3 else f"{one.p_holm:.3f}"
    return [f"{one.size:+.{digits}f}", interval, detectable, probability]


def _verdict(one: Difference) -> Text:
    if one.better is None:
        return Text("not shown")
    return Text("better", style="green") if one.better else Text("worse", style="red")


def _caption(shown: Sequence[Difference]) -> str:
    pairs = {one.paired for one in shown}
    kind, test = ("pairs of runs with the same seed", "Student's") if pairs == {True} else ("runs", "Welch's")
    if len(pairs) > 1:
        kind = "runs, in pairs where both have the same seeds"
        test = "Student's test where there are pairs, otherwise by Welch's"
    sides = sorted({side for one in shown for side in one.counts or (one.repeats, one.repeats)})
    count = f"{sides[0]}" if len(sides) == 1 else f"{sides[0]} to {sides[-1]}"
    if len({one.counts for one in shown}) == 1 and len(sides) > 1 and shown[0].counts:
        count = "{} and {}".format(*shown[0].counts)
    many = f", corrected for {len(shown)} comparisons (Holm)" if len(shown) > 1 else ""
    still = any(one.low is None for one in shown)
    exact = ", where nothing scatters by the exact permutation test" if still else ""
    return (
        f"BCa bootstrap over {count} {kind}; p by {test} test{exact}{many}; detectable: the smallest "
        f"difference that so many show in four of five cases{' after this correction' if many else ''}"
    )


NAMES = {
    "increase_ms": "increase, ms",
    "loaded_ms": "loaded mean, ms",
    "p95_ms": "loaded p95, ms",
    "p99_ms": "loaded p99, ms",
    "down_mbps": "down, Mbit/s",
    "up_mbps": "up, Mbit/s",
    "mos": "opinion score (MOS)",
    "page_ms": "page, ms",
    "lookup_ms": "name lookup, ms",
}
"""Names of figures."""

SCATTERED = 2
"""Fewer repetitions show no scatter, and have no interval."""
