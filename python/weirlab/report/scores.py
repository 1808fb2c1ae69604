"""Scores of a test, as a table and in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.text import Text

from weirlab.record.configurations import configurations
from weirlab.record.differences import WHEN
from weirlab.report.tables import interval_cell
from weirlab.scores import of_a_line, score_all
from weirlab.scores.bufferbloat import grade
from weirlab.scores.measured import PHASES
from weirlab.stats import interval
from weirlab.stats.one_way import one_way
from weirlab.ui.numbers import milliseconds as _ms
from weirlab.ui.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from weirlab.record import Record
    from weirlab.scores import Loaded, Measured, Scores


def line_table(record: Record) -> Table | None:
    """What `weir test` showed of a record of its own; None of any other."""
    figures = of_a_line(record)
    return None if figures is None else score_table(record, figures, score_all(record, figures))


def why_ungraded(record: Record) -> str | None:
    """Why a test of a line has no grade, in a sentence; None if it has one, and of any other record."""
    figures = of_a_line(record)
    if figures is None or figures.ungraded is None:
        return None
    return f"No grade: {figures.ungraded}."


def parts_table(records: Sequence[Record]) -> Table | None:
    """Each part of tests of a line beside those of the others; None if there is no such test.

    What came through and how long pings took once the loads were at their most, as means over repetitions,
    and the grade of each part by its increase: a test's own grade is that of its worst part.
    """
    table = Table(box=box.SIMPLE_HEAD)
    table.padding, table.pad_edge = (0, 1, 0, 0), False
    table.add_column("queue", overflow="fold", min_width=16)
    table.add_column("part", no_wrap=True)
    for heading in ("down\nMbit/s", "up\nMbit/s", "ping\nms", "increase\nms", "grade"):
        table.add_column(heading, justify="right", no_wrap=True)
    every: list[Measured] = []
    for one in configurations(records):
        tests = [found for found in map(of_a_line, one.records) if found is not None]
        every += tests
        for phase in PHASES:
            unmeasured = any(phase in test.unmeasured for test in tests)
            parts = [test.loaded[phase] for test in tests if phase in test.loaded]
            if parts:
                table.add_row(one.name, *_part_cells(phase, parts, graded=not unmeasured))
    if not table.row_count:
        return None
    # A line that was full had loads at their most.
    told = next((test for test in every if test.limit_mbps is not None), every[0])
    table.title = f"Each part of the test, once {told.reached}"
    return table


def _part_cells(phase: str, parts: Sequence[Loaded], *, graded: bool) -> Iterator[str]:
    """The cells of a part of a configuration, of all its repetitions; a grade if it is `graded`."""

    def cell(digits: int, figure: Callable[[Loaded], float | None]) -> str:
        return interval_cell(interval([figure(one) for one in parts]), digits, of=len(parts))

    yield PHASES[phase]
    yield cell(2, lambda one: one.down_mbps)
    yield cell(2, lambda one: one.up_mbps)
    yield cell(1, lambda one: one.latency.mean)
    yield cell(1, lambda one: one.increase_ms)
    yield grade(sum(one.increase_ms for one in parts) / len(parts)) if graded else "-"


def score_table(record: Record, figures: Measured, scores: Scores) -> Table:
    """Table of throughput, round trips and all scores."""
    title = Text(record.manifest.configuration)
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold")
    table.add_column(style="dim")
    for name, mbps in (("download", figures.down_mbps), ("upload", figures.up_mbps)):
        if mbps is not None:
            table.add_row(name, f"{mbps:.2f} Mbit/s", f"once {figures.reached}")
    table.add_row("ping, idle", f"{_ms(figures.idle.median)} ms", f"median of {figures.idle.count}")
    for name, one in figures.loaded.items():
        lost = one.pings.unanswered
        of = f", {lost} of {one.pings.sent} lost" if lost else ""
        latency = one.latency
        table.add_row(
            f"ping, {PHASES[name]}",
            f"{_ms(latency.median)} ms",
            f"p95 {_ms(latency.p95)}, max {_ms(latency.max)} ms{of}",
        )
    for name, up, down in _waits(record, figures):
        table.add_row(f"wait, {PHASES[name]}", f"{_ms(up + down)} ms", f"up {_ms(up)}, down {_ms(down)} ms")
    table.add_section()
    for score in scores.scores:
        table.add_row(score.name, f"{score.value} {score.unit}".strip(), score.says)
    return table


def formulas(record: Record, scores: Scores) -> Iterator[Text]:
    """How each figure of the table is made: formula and version, once for scores that share one."""
    ways = one_way(record)
    if ways is not None:
        yield _formula("wait", f"mean delay beyond the least, of each way; known to {_ms(ways.bound_ms)} ms")
    names: dict[str, list[str]] = {}
    for score in scores.scores:
        names.setdefault(score.formula, []).append(score.name)
    for formula, those in names.items():
        first, _, rest = those[0].partition(", ")
        others = [name.removeprefix(f"{first}, ") for name in those[1:]]
        yield _formula(", ".join([first, *filter(None, [rest]), *others]), formula)


def _formula(name: str, formula: str) -> Text:
    return Text(f"{name}: {formula}", style="dim")


def _waits(record: Record, figures: Measured) -> Iterator[tuple[str, float, float]]:
    """Each phase, and how long pings waited on the way up and on the way down, in ms."""
    ways = one_way(record)
    if ways is None:
        return
    for name, one in figures.loaded.items():
        inside = (ways.t_ns >= one.start_ns) & (ways.t_ns < one.end_ns)
        if inside.any():
            yield name, float(ways.up_ms[inside].mean()), float(ways.down_ms[inside].mean())


def advice(figures: Measured, scores: Scores) -> Iterator[Text]:
    """Meaning of the grade, and advice; why there is none, if so."""
    if figures.ungraded is not None:
        yield Text(f"No grade: {figures.ungraded}.", style="bold")
        return
    bloat = scores.scores[0]
    yield Text(f"Grade {scores.grade}: {bloat.says}", style="bold")
    worst = figures.worst
    if scores.grade in ("A+", "A"):
        return
    yield Text(f"It is worst {WHEN[worst.phase]}. The queue in front of the slowest line is too deep.")
    yield Text(
        "What helps: a router with smart queue management (CAKE, or fq_codel under a shaper), "
        f"{_set_to(figures)}; then test again. On a Linux router `weir shape IFACE` finds the rates "
        "by itself."
    )


def _set_to(figures: Measured) -> str:
    """The rates to which to set a shaper, if the line was full for long enough to tell them."""
    if figures.limit_mbps is not None:
        return "set to 90 % of what the line carries each way, which may be more than this server let pass"
    shortest = min(one.end_ns - one.start_ns for one in figures.loaded.values())
    if shortest < TELLS_RATES_NS:
        return (
            "set to 90 % of what the line carries each way. A line that was full for no more than "
            f"{shortest / 1e9:.1f} s does not tell that: test with a longer --load"
        )
    rates = {"download": figures.down_mbps, "upload": figures.up_mbps}
    shaped = [f"{0.9 * mbps:.1f} Mbit/s {name}" for name, mbps in rates.items() if mbps]
    return f"set to {' and '.join(shaped)}, 90 % of what was measured"


TELLS_RATES_NS = 3_000_000_000
"""In less time what a receiver has in order, which leaps by all that waited for a gap, tells no rate."""
