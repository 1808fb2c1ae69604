"""Records and comparisons as HTML, for notebooks."""

from __future__ import annotations

from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from weirlab.errors import counted, written_out
from weirlab.record.differences import configuration_name, finds_its_loads, load_of
from weirlab.report.tables import COLUMNS, UNLOADED, has_load
from weirlab.stats import summarise
from weirlab.ui.numbers import unsigned_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.record import Record
    from weirlab.stats import Comparison, Distribution


def record_html(record: Record) -> str:
    """A record: what was run, and what came of it."""
    manifest = record.manifest
    summary = summarise(record)
    state = "" if manifest.complete else f", cut short at {record.reached_ns / 1e9:.1f} s"
    rows = _line_rows(record)
    during = f", {load_of(record)}" if rows else ""
    for name, one in (("download", summary.down), ("upload", summary.up)):
        if one is not None and one.goodput_mbps is not None:
            rows.append([f"{name}{during}", f"{one.goodput_mbps:.2f} Mbit/s", counted(one.flows, "flow")])
    idle, loaded = summary.latency.told
    if idle:
        rows.append(["ping, idle", *_pings(idle)])
    name = (f"ping{during}" if during else "ping, loaded") if has_load(summary) else "ping"
    if loaded:
        rows.append([name, *_pings(loaded)])
    if summary.latency.increase_mean_ms is not None:
        rows.append(
            ["increase under load", f"{unsigned_zero(summary.latency.increase_mean_ms, 1)} ms", "mean"]
        )
    if summary.latency.loaded and summary.latency.is_of_some:
        rows.append([f"{name}, all probes", *_pings(summary.latency.loaded)])
    if summary.latency.lost is not None:
        rows.append(["pings lost", str(summary.latency.lost), f"of {summary.latency.sent}"])
    heading = f"<b>{_shown(manifest.title)}</b>: {_shown(configuration_name(record))}"
    path = f"<code>{_shown(str(record.path))}</code>"
    seed = "" if manifest.seed is None else f", seed {manifest.seed}"
    origin = f"world {_shown(manifest.world)}{seed}{state}, {path}"
    return f"<p>{heading}<br><small>{origin}</small></p>{_table([], rows)}"


def _line_rows(record: Record) -> list[list[str]]:
    """Download and upload by themselves, of a record of `weir test`; nothing of any other."""
    if not finds_its_loads(record):
        return []
    from weirlab.scores import of_a_line  # noqa: PLC0415 - few records are of it

    figures = of_a_line(record)
    if figures is None:
        return []
    rates, since = {"download": figures.down_mbps, "upload": figures.up_mbps}, f"once {figures.reached}"
    return [[name, f"{mbps:.2f} Mbit/s", since] for name, mbps in rates.items() if mbps]


def records_html(records: Sequence[Record]) -> str:
    """Several records: a row each."""
    rows = []
    for record in records:
        manifest = record.manifest
        complete = "yes" if manifest.complete else "no"
        names = [manifest.title, configuration_name(record), manifest.world, _seed(manifest.seed), complete]
        rows.append([*names, str(record.path)])
    return _table(["test", "configuration", "world", "seed", "complete", "record"], rows)


def comparisons_html(comparisons: Sequence[Comparison]) -> str:
    """A comparison: a row a configuration, as `weir compare` has it."""
    heading = {} if any(has_load(run) for one in comparisons for run in one.runs) else UNLOADED
    headings = ["configuration", *(heading.get(one.heading, one.heading) for one in COLUMNS), "runs"]
    rows = [[one.name, *(column.cell(one) for column in COLUMNS), str(len(one.runs))] for one in comparisons]
    return _table(headings, rows)


def _seed(seed: int | None) -> str:
    return "-" if seed is None else str(seed)


def _pings(found: Distribution) -> list[str]:
    return [f"{found.mean:.1f} ms", f"median {found.median:.1f}, p95 {found.p95:.1f}, p99 {found.p99:.1f} ms"]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_cell(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if headings else ''}<tbody>{body}</tbody></table>"


def _shown(text: str) -> str:
    """Text as HTML, in which no sign turns the direction of what is around it."""
    return escape(written_out(text))


def _cell(text: str) -> str:
    return _shown(text).replace("\n", "<br>")


HTML: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "record": record_html,
        "records": records_html,
        "comparison": lambda one: comparisons_html([one]),
        "comparisons": comparisons_html,
    }
)
"""Functions that make the HTML of a notebook, by `Shown.shown_as`."""
