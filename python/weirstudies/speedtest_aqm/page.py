"""The study `speedtest-aqm` as tables: on the terminal, and as a page in Markdown."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from rich import box
from rich.text import Text

from weirlab.report.findings import line
from weirlab.ui import Table
from weirstudies.speedtest_aqm import calibration, design
from weirstudies.speedtest_aqm.figures import WAYS
from weirstudies.speedtest_aqm.findings import Judged, judged
from weirstudies.speedtest_aqm.lab import MAX_LATENESS_MS
from weirstudies.statements import seen_word, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from weirlab.scenario import Direction
    from weirstudies.speedtest_aqm.calibration import Gap, Range, Row
    from weirstudies.speedtest_aqm.design import Cell, Study
    from weirstudies.speedtest_aqm.figures import Run, Way

    Found = Mapping[Cell, Sequence[Run]]
    Figures = tuple[float, ...]


def calibration_table(rows: Sequence[Row]) -> Table:
    """A row for each metric beneath each queue: reported less true, in ms."""
    table = Table(
        title="Reported latency less the true one under load, without cross traffic, ms: median, and from "
        "cell to cell",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for heading in ("metric", "queue", "reported", "own flow", "other flow", "queue itself"):
        table.add_column(heading, justify="left" if heading in {"metric", "queue"} else "right")
    rows = [row for row in rows if not row.crossed]
    for number, row in enumerate(rows):
        if number and (rows[number - 1].method, rows[number - 1].metric) != (row.method, row.metric):
            table.add_section()
        world = "" if row.world == "sim" else f", {row.world}"
        gaps = [_difference(row.gaps.get(truth)) for truth in calibration.TRUTHS]
        table.add_row(f"{row.method}: {row.metric.name}{world}", row.queue, _range(row.reported), *gaps)
    return table


def statements_table(found: Sequence[Judged]) -> Table:
    """A row for each statement."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("statement and what was found", overflow="fold")
    for one in found:
        table.add_row(seen_word(one.seen), Text("\n".join([one.rule.says, *one.evidence])))
    return table


def page(found: Found, of: Study, took: str | None) -> str:
    """The whole study as Markdown."""
    rows = calibration.rows(found, of)
    parts = [
        f"# {of.title}",
        f"Source: {of.source}.",
        _what_ran(found, of, took),
        _statements(judged(found, of)),
        *_calibration(rows, calibration.stand_in(found), of),
        _worlds(found),
        _reported(found, of),
        _throughput(found, of),
        _shares(found, of),
        _durations(found, of),
        _configurations(of),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(found: Found, of: Study) -> dict[str, Any]:
    """Statements, calibration and every run, as plain values."""
    return {
        "statements": [one.as_dict() for one in judged(found, of)],
        "calibration": [row.as_dict() for row in calibration.rows(found, of)],
        "runs": [
            run.model_dump(mode="json", exclude={"series", "key"}) for runs in found.values() for run in runs
        ],
    }


def _what_ran(found: Found, of: Study, took: str | None) -> str:
    sim = _count(found, "sim")
    lab = _count(found, "lab")
    grid = design.all_cells(of)
    missing = [one.name for one in of.method if one.name not in design.methods(of)]
    lines = [
        "## What was run",
        "",
        f"Simulator: {sim[0]} cells, {sim[1]} runs. Lab: {lab[0]} cells, {lab[1]} runs. The whole grid has "
        f"{len(grid)} cells, {sum(grid.values())} runs with {of.repetitions} repetitions each (`--full`)."
        + (f" {took}" if took else ""),
    ]
    if missing:
        lines += ["", f"Methods that there are not yet: {', '.join(missing)}."]
    rows = [
        _block(block, counts, of)
        for world, blocks in (("sim", of.block), ("lab", of.lab))
        for block in blocks
        if (counts := [_runs(runs, world) for cell, runs in found.items() if _is_in(cell, block)])
        and any(counts)
    ]
    lines += ["", *_table(BLOCK_HEADINGS, rows, words=len(BLOCK_HEADINGS))]
    return "\n".join([*lines, *_how_quiet(found)])


def _block(block: design.Block, counts: Sequence[int], of: Study) -> list[str]:
    axes = (
        block.rates_mbps,
        block.rtts_ms,
        block.queues,
        block.bursts,
        block.crosses,
        [one for one in block.methods if one in design.methods(of)],
    )
    cells = [", ".join(str(one) for one in values) for values in axes]
    return [f"{block.name}: {block.why}", *cells, _from_to([count for count in counts if count])]


def _how_quiet(found: Found) -> Sequence[str]:
    """Verdict of the lab's own check on its runs."""
    runs = [run for runs in found.values() for run in runs if run.world == "lab"]
    if not runs:
        return []
    kept = [run for run in runs if run.disturbed is None]
    told = "In the lab no run counts."
    if kept:
        late = [run.late_ms or 0.0 for run in kept]
        programs = [run.programs_late_ms or 0.0 for run in kept]
        told = (
            f"In the lab 1 % of packets left {min(late):.1f} to {max(late):.1f} ms (median of runs "
            f"{median(late):.1f}) or more too late; {sum(ms > WARNED_MS for ms in late)} of {len(kept)} runs "
            f"warn of it. A tenth of the test's own pings were sent {min(programs):.1f} to "
            f"{max(programs):.1f} ms (median {median(programs):.1f}) or more too late."
        )
    spoiled = len(runs) - len(kept)
    if spoiled:
        told += (
            f" {spoiled} more in which either was over {MAX_LATENESS_MS:g} ms, or packets were lost in front "
            f"of the emulator, count nowhere; each had been made again."
        )
    return ["", told]


def _from_to(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _is_in(cell: Cell, block: design.Block) -> bool:
    return (
        cell.rate_mbps in block.rates_mbps
        and cell.rtt_ms in block.rtts_ms
        and cell.queue in block.queues
        and cell.burst in block.bursts
        and cell.cross in block.crosses
        and cell.method in block.methods
        and cell.client_cc == block.client_cc
    )


def _runs(runs: Sequence[Run], world: str) -> int:
    return sum(run.world == world for run in runs)


def _count(found: Found, world: str) -> tuple[int, int]:
    counts = [_runs(runs, world) for runs in found.values()]
    return sum(count > 0 for count in counts), sum(counts)


def _statements(found: Sequence[Judged]) -> str:
    lines = [
        "## Statements",
        "",
        verdict([one.seen for one in found]),
        "",
    ]
    rows = [
        [
            f"{one.rule.says} ({one.rule.by})",
            f"**{seen_word(one.seen)}**",
            one.rule.rule,
            "<br>".join(one.evidence),
        ]
        for one in found
    ]
    return "\n".join([*lines, *_table(["who says what", "", "seen if", "intervals"], rows, words=4)])


def _calibration(rows: Sequence[Row], stand_in: Range | None, of: Study) -> Iterable[str]:
    intro = f"## Calibration: reported latency against the true one under load\n\n{OF_CALIBRATION}"
    if stand_in:
        intro += (
            f" Where the simulator has both, the median SRTT is {stand_in.median:+.1f} ms from that of the "
            f"round trips not smoothed (nine tenths of directions of runs: {stand_in.low:+.1f} to "
            f"{stand_in.high:+.1f})."
        )
    yield intro
    for world, place in (("sim", "Simulator"), ("lab", "Lab")):
        for crossed, beside in ((False, "without"), (True, "beside")):
            mine = [row for row in rows if (row.world, row.crossed) == (world, crossed)]
            if not mine:
                continue
            yield f"### {place}, {beside} cross traffic"
            for method in of.method:
                some = [row for row in mine if row.method == method.name]
                if some:
                    yield _calibration_of(method, some)


def _calibration_of(method: design.Method, rows: Sequence[Row]) -> str:
    meanings = "; ".join(f"*{one.name}*: {one.says}" for one in method.metric)
    headings = ["metric", "queue", "runs", "none", "reported, ms", "own flow", "other flow", "queue"]
    cells = []
    for row in rows:
        gaps = [_gap(row.gaps.get(truth)) for truth in calibration.TRUTHS]
        counts = [str(row.runs), str(row.missing or "")]
        cells.append([row.metric.name, row.queue, *counts, _range(row.reported), *gaps])
    table = _table(headings, cells, words=2)
    return "\n".join([f"**{method.name}** ({method.says}). {meanings}.", "", *table])


def _gap(gap: Gap | None) -> str:
    if gap is None:
        return ""
    ends = ""
    if gap.difference.low != gap.difference.high:
        ends = f"<br>{gap.difference.low:+.1f} to {gap.difference.high:+.1f}"
    return f"{gap.difference.median:+.1f} ({gap.ratio.median:.2f}){ends}"


def _difference(gap: Gap | None) -> str:
    if gap is None:
        return ""
    found = gap.difference
    ends = "" if found.low == found.high else f"\n{found.low:+.1f} to {found.high:+.1f}"
    return f"{found.median:+.1f}{ends}"


def _range(found: Range | None) -> str:
    if found is None:
        return "none"
    if found.low == found.high:
        return f"{found.median:.1f}"
    return f"{found.median:.1f} ({found.low:.1f} to {found.high:.1f})"


def _worlds(found: Found) -> str:
    """The cells that ran in both worlds."""
    rows = []
    for cell, runs in found.items():
        lab, sim = (
            [run for run in runs if run.world == world and run.disturbed is None] for world in ("lab", "sim")
        )
        if lab and sim:
            figures = [
                _down_up(some, figure) for figure in (_mbps, _own_ms, _other_ms) for some in (lab, sim)
            ]
            rows.append([cell.queue, str(cell.rate_mbps), cell.cross, cell.method, str(len(lab)), *figures])
    if not rows:
        return ""
    pairs = [f"{what}, {world}" for what in ("Mbit/s", "own", "other") for world in ("lab", "sim")]
    return "\n".join(
        [
            "## Lab and simulator beside each other",
            "",
            OF_WORLDS,
            "",
            line(["queue", "rate", "beside", "method", "runs in the lab", *pairs]),
            line(["---", "---:", "---", "---", *["---:"] * 7]),
            *(line(row) for row in rows),
        ]
    )


def _down_up(runs: Sequence[Run], figure: Callable[[Run, Direction], float | None]) -> str:
    values = [[value for run in runs if (value := figure(run, way)) is not None] for way in WAYS]
    return " / ".join(f"{median(some):.1f}" if some else "none" for some in values)


def _mbps(run: Run, way: Direction) -> float | None:
    return run.ways[way].mbps if way in run.ways else None


def _own_ms(run: Run, way: Direction) -> float | None:
    return calibration.true_ms(run, way, "own")


def _other_ms(run: Run, way: Direction) -> float | None:
    return calibration.true_ms(run, way, "other")


def _reported(found: Found, of: Study) -> str:
    """Reports of every method at one rate, by queue, cross traffic and world."""
    tables = []
    for world, place in (("sim", "Simulator"), ("lab", "Lab")):
        rows = []
        for cross in of.cross:
            for method in of.method:
                values = [_reports(found, queue.name, cross.name, method.name, world) for queue in of.queue]
                if any(values):
                    rows.append([method.name, cross.name, *(_medians(some, 0) for some in values)])
        if rows:
            headings = ["method", "beside", *(queue.name for queue in of.queue)]
            tables += ["", f"{place}:", "", *_table(headings, rows, words=2)]
    if not tables:
        return ""
    return "\n".join(
        [
            "## Throughput that each method reports",
            "",
            f"Down / up in Mbit/s, medians of runs; {REPORTED_MBPS} Mbit/s, {REPORTED_RTT_MS} ms, no burst.",
            *tables,
        ]
    )


def _reports(found: Found, queue: str, cross: str, method: str, world: str) -> list[Figures]:
    """Reports of a method at the rate and round trip where all of them ran, run by run."""
    cell = design.Cell(
        rate_mbps=REPORTED_MBPS, rtt_ms=REPORTED_RTT_MS, queue=queue, burst="g0", cross=cross, method=method
    )
    runs = [run for run in found.get(cell, ()) if run.world == world and run.disturbed is None]
    return [both for run in runs if (both := _reported_mbps(run)) is not None]


def _throughput(found: Found, of: Study) -> str:
    """Reported throughput of ndt7 by rate and queue, one flow, no burst."""
    tables = []
    for rtt_ms in sorted(of.rtts_ms, reverse=True):

        def figures(cell: Cell, run: Run, rtt_ms: int = rtt_ms) -> Figures | None:
            at = design.Cell(
                rate_mbps=cell.rate_mbps,
                rtt_ms=rtt_ms,
                queue=cell.queue,
                burst="g0",
                cross="none",
                method="ndt7",
            )
            return _reported_mbps(run) if cell == at and run.world == "sim" else None

        table = _by_rate(found, of, figures)
        if table:
            tables += [f"Round trip {rtt_ms} ms:", "", *table, ""]
    if not tables:
        return ""
    return "\n".join(
        [
            "## Throughput that ndt7 reports",
            "",
            "Down / up in Mbit/s, medians; one flow, no burst, no cross traffic; BBR down, CUBIC up.",
            "",
            *tables,
        ]
    ).rstrip()


def _shares(found: Found, of: Study) -> str:
    """The authors' set with cross traffic: goodput, then SRTT."""

    def upload(cell: Cell, run: Run) -> Way | None:
        theirs = (cell.burst, cell.cross, cell.method, cell.client_cc) == ("g2", "cubic-up", "ndt7", "bbr")
        return run.ways.get("up") if theirs and run.world == "sim" else None

    def mbps(cell: Cell, run: Run) -> Figures | None:
        up = upload(cell, run)
        return (up.mbps,) if up else None

    def srtt_ms(cell: Cell, run: Run) -> Figures | None:
        up = upload(cell, run)
        return (up.srtt.mean,) if up and up.srtt else None

    rates = _by_rate(found, of, mbps)
    if not rates:
        return ""
    theirs = of.published["cross"]
    published = [[queue, *(f"{value:g}" for value in values)] for queue, values in theirs.upload_mbps.items()]
    return "\n".join(
        [
            "## The authors' set with cross traffic",
            "",
            OF_SHARES,
            "",
            *rates,
            "",
            f"{theirs.what[0].upper()}{theirs.what[1:]}:",
            "",
            *_table(["theirs", *(str(one) for one in theirs.rates_mbps)], published, words=1),
            "",
            "Mean SRTT of the upload, ms:",
            "",
            *_by_rate(found, of, srtt_ms, digits=1),
        ]
    )


def _by_rate(
    found: Found, of: Study, figures: Callable[[Cell, Run], Figures | None], *, digits: int = 0
) -> list[str]:
    """A table of queues by rate with the medians of each of the figures; empty if no run has them."""
    values: dict[tuple[str, int], list[Figures]] = {}
    for cell, runs in found.items():
        for run in runs:
            said = figures(cell, run)
            if said is not None:
                values.setdefault((cell.queue, cell.rate_mbps), []).append(said)
    rates = sorted({rate for _, rate in values})
    if not rates:
        return []
    rows = [
        [queue.name, *(_medians(values.get((queue.name, rate), []), digits) for rate in rates)]
        for queue in of.queue
        if any(name == queue.name for name, _ in values)
    ]
    return _table(["queue", *(str(rate) for rate in rates)], rows, words=1)


def _medians(values: Sequence[Figures], digits: int) -> str:
    """The median of each figure over runs; empty if there are none."""
    return " / ".join(f"{median(column):.{digits}f}" for column in zip(*values, strict=True))


def _reported_mbps(run: Run) -> Figures | None:
    """Goodput that the method reports, down and up; None if it lacks one of them."""
    down, up = (
        run.result.get(f"{way}_mbps", (run.result.get(way) or {}).get("goodput_mbps"))
        for way in ("download", "upload")
    )
    return None if down is None or up is None else (down, up)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int) -> list[str]:
    """The lines of a table whose first columns are words and whose others are numbers."""
    rule = ["---"] * words + ["---:"] * (len(headings) - words)
    return [line(headings), line(rule), *(line(row) for row in rows)]


def _durations(found: Found, of: Study) -> str:
    lines = [
        "## How long a test takes, and how steady its rate is",
        "",
        OF_DURATIONS,
        "",
    ]
    headings = ["method", "beside", "seconds", "unsteadiness down", "unsteadiness up", "not ended"]
    rows = []
    for method in of.method:
        for crossed in (False, True):
            runs = [
                run
                for cell, all_of in found.items()
                for run in all_of
                if run.world == "sim"
                and design.in_grid(cell, of)
                and cell.method == method.name
                and (cell.cross != "none") == crossed
            ]
            if not runs:
                continue
            times = [run.seconds for run in runs if run.seconds is not None]
            spreads = [
                [
                    (spread.quantile(0.95) - spread.quantile(0.05)) / spread.median
                    for run in runs
                    if way in run.ways and (spread := run.ways[way].rates).median > 0
                ]
                for way in WAYS
            ]
            rows.append(
                [
                    method.name,
                    "cross traffic" if crossed else "nothing",
                    f"{median(times):.1f} ({min(times):.1f} to {max(times):.1f})" if times else "",
                    *(f"{median(values):.2f}" if values else "" for values in spreads),
                    str(len(runs) - len(times) or ""),
                ]
            )
    return "\n".join([*lines, *_table(headings, rows, words=2)])


def _configurations(of: Study) -> str:
    """Meaning of the names."""
    lines = ["## Names", "", line(["name", "words", "what it is"]), line(["---"] * 3)]
    lines += [line([one.name, f"`{one.words}`", one.says]) for one in of.queue]
    lines += [line([one.name, "", one.says]) for one in of.burst]
    lines += [line([one.name, "", one.says]) for one in of.cross]
    return "\n".join(lines)


BLOCK_HEADINGS = (
    *("block", "rates, Mbit/s", "round trip, ms", "queues", "bucket", "beside", "methods", "runs a cell"),
)

OF_CALIBRATION = (
    "Reported less true in ms, and in brackets reported over true; medians over cells, beneath them the "
    "least and the greatest cell. *Own flow*: round trips of the load's own packets as TCP took them, means "
    "of 10 ms; of Weir's own loads, and in the lab, the senders' SRTT. *Other flow*: UDP pings every 10 ms. "
    "*Queue*: the empty path and what packets waited in the router on average. All while the method "
    "loaded that direction; figures of the idle line are held against the download."
)

OF_WORLDS = (
    "Down / up, medians of runs, while the method loaded that direction: what it received in Mbit/s; "
    "round trips of its own flow and of pings in another, in ms."
)

OF_SHARES = (
    "A BBR upload beside five CUBIC uploads, g2, 20 ms: Mbit/s, medians; a sixth of the rate would be a "
    "fair share."
)

OF_DURATIONS = (
    "Seconds from its first packet to its end; the rate's range from the 5th to the 95th percentile of "
    "100 ms over its median, while it loaded that direction. Medians over runs of the grid's cells in the "
    "simulator, least and greatest run in brackets."
)
"""Text above a table of the page."""

REPORTED_MBPS = 100
REPORTED_RTT_MS = 20
"""Where all methods ran beside all kinds of cross traffic."""

WARNED_MS = 1.0
"""From when on the lab warns."""
