"""The page of one or several records: words, path, charts, tables, how to repeat it, and the raw data."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from itertools import chain
from typing import TYPE_CHECKING, Any

from rich.text import Text

from weirlab import _native
from weirlab.errors import RecordError, UsageError, written_out
from weirlab.record import pack
from weirlab.record.configurations import run_names
from weirlab.record.differences import configuration_name
from weirlab.report import (
    advice,
    comparison_table,
    cut_short,
    story,
)
from weirlab.report.applications import comparison_of_applications
from weirlab.report.differences import doubts
from weirlab.report.figures import figures_of
from weirlab.report.scores import parts_table
from weirlab.stats import beside
from weirlab.viewer.data import record_data
from weirlab.viewer.overview import is_large, overview_of
from weirlab.viewer.path import path_svg
from weirlab.viewer.repeat import repeat_of
from weirlab.viewer.shell import as_command, parts, prose, shown
from weirlab.viewer.words import TERMS, comparison_says, grade_of, summary_of

__all__ = ["MAX_RECORDS", "Source", "asset", "page_data", "report_page", "report_parts"]

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from weirlab.record import Record
    from weirlab.ui import Table
    from weirlab.viewer.overview import Overview


@dataclass(frozen=True)
class Source:
    """Where a page that is served finds what it loads.

    Attributes:
        records: the address of each record's `.weir` file. Those of a record with an overview answer with it
            if `&overview` follows, and with the pings of some part files if `&parts=FIRST-LAST` does.
        script, style: addresses of the viewer.
        overviews: the overview of each record that is too large to be read as a whole; None of others.
        under_way: where the records lie of which it is known that their runs are under way.
        over: where those lie of which it is known that their runs have ended.
        home: HTML that leads back to where the page was opened from.
    """

    records: list[str]
    script: str
    style: str
    overviews: list[Overview | None]
    under_way: Collection[Path] = ()
    over: Collection[Path] = ()
    home: str = ""


def report_page(
    records: Sequence[Record],
    *,
    title: str | None = None,
    source: Source | None = None,
    span_s: tuple[float, float] | None = None,
) -> str:
    """The page of `records`, as `report_parts` has it in parts."""
    return "".join(report_parts(records, title=title, source=source, span_s=span_s))


def report_parts(
    records: Sequence[Record],
    *,
    title: str | None = None,
    source: Source | None = None,
    span_s: tuple[float, float] | None = None,
) -> Iterator[str]:
    """The page of `records`, part by part: one with records in it takes much of the memory as a whole.

    Args:
        records: what it shows; several are also set beside each other.
        title: heading in place of the test's title.
        source: where a served page finds scripts and records; None puts all into the page itself, which then
            needs no network.
        span_s: start and end, in seconds since the run began, of the part of the time that is marked.

    Raises:
        UsageError: if no record reaches into the span, if there are more records than a page holds, or they
            are too large for one.
        RecordError: if the manifest of one is damaged.
    """
    if len(records) > MAX_RECORDS:
        raise UsageError(f"{len(records)} records are too many for one page: give {MAX_RECORDS} or fewer")
    if span_s is not None and not 0 <= span_s[0] < min(span_s[1], _longest_s(records)):
        raise UsageError(
            f"the span {span_s[0]:g}s..{span_s[1]:g}s: it must end after it begins, "
            f"and begin before the runs end, at {_longest_s(records):g} s"
        )
    urls: list[str | None] = [None] * len(records) if source is None else [*source.records]
    try:
        names = run_names(records)
        overviews = (
            [overview_of(one) if is_large(one) else None for one in records]
            if source is None
            else source.overviews
        )
        data = page_data(records, names, urls, overviews) | ({} if span_s is None else {"marked": span_s})
        head, end = _around(data, source)
        main = "".join(_main(records, names, title, source))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        places = ", ".join(f"`{one.path}`" for one in records[:3])
        raise RecordError(f"{places}: its manifest.json is damaged") from error
    heading = title or _title_of(records)
    home = source.home if source else ""
    within = _raw(records, overviews) if source is None else ()
    return parts(heading, chain([f"{home}<main>\n{main}</main>\n"], within, [end]), head=head)


def page_data(
    records: Sequence[Record],
    names: Sequence[str],
    urls: Sequence[str | None],
    overviews: Sequence[Overview | None],
) -> dict[str, Any]:
    """What the viewer draws of `records`, as JSON values.

    Args:
        records: what is drawn.
        names: how each is called.
        urls: the address of each record's `.weir` file; None for one that the page has within.
        overviews: what is drawn at first of records with very many pings; None of others.
    """
    data = {
        "records": [record_data(*each) for each in zip(records, names, urls, overviews, strict=True)],
        "says": comparison_says(records, names),
    }
    return {key: _written_out(value) for key, value in data.items()}


def _written_out(value: Any) -> Any:
    """The value with all its texts as the terminal writes them: the charts show them."""
    if isinstance(value, str):
        return written_out(value)
    if isinstance(value, dict):
        return {written_out(key): _written_out(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not all(isinstance(one, float) for one in value):
        return [_written_out(one) for one in value]
    return value


@cache
def asset(name: str) -> str:
    """The text of `viewer.js` or `viewer.css`, as npm made it."""
    return (resources.files("weirlab.viewer") / "dist" / name).read_text(encoding="utf-8")


def _around(data: dict[str, Any], source: Source | None) -> tuple[str, str]:
    """The head of a page, and its end behind the content and the raw data: styles, scripts and data."""
    drawn = f'<script type="application/json" id="weir-data">{_json(data)}</script>\n'
    if source is not None:
        return f'<link rel="stylesheet" href="{escape(source.style)}">\n', (
            f'{drawn}<script src="{escape(source.script)}"></script>\n'
        )
    style, script = asset("viewer.css"), asset("viewer.js")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    return head, f"{drawn}<script>{script}</script>\n"


def _raw(records: Sequence[Record], overviews: Sequence[Overview | None]) -> Iterator[str]:
    """The records themselves, and the overviews of large ones, as files in base64."""
    for number, content in enumerate(_archives(records)):
        yield f'<script type="text/plain" id="weir-record-{number}">'
        yield from _base64_parts(content)
        yield "</script>\n"
    for number, (record, one) in enumerate(zip(records, overviews, strict=True)):
        if one is not None:
            first = _base64(one.archive(record, compressed=True))
            yield f'<script type="text/plain" id="weir-overview-{number}">{first}</script>\n'


def _archives(records: Sequence[Record]) -> Iterator[memoryview]:
    """Each record as a `.weir` file."""
    whole = 0
    for record in records:
        if is_large(record):
            # The figures of all are made, and its file takes as much memory.
            record.release()
        content = io.BytesIO()
        # To make a large one smaller would take many times as long as to compute its figures.
        pack(record, content, compressed=not is_large(record))
        whole += content.tell()
        if whole > MAX_EMBEDDED_BYTES:
            raise UsageError(
                f"`{record.path}`: with it the page has more than {MAX_EMBEDDED_BYTES >> 20} MiB of records: "
                "give fewer records"
            )
        yield content.getbuffer()


def _base64_parts(content: memoryview) -> Iterator[str]:
    """The content in base64, in parts of which each is whole by itself."""
    for start in range(0, len(content), BASE64_BYTES):
        yield _base64(content[start : start + BASE64_BYTES])


def _base64(content: bytes | memoryview) -> str:
    return base64.b64encode(content).decode("ascii")


def _longest_s(records: Sequence[Record]) -> float:
    """How far the longest of runs came, in seconds."""
    return max((one.reached_ns / 1e9 for one in records), default=0.0)


def _json(data: dict[str, Any]) -> str:
    """JSON that ends no script element; NaN, which JSON has not, is an error."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _digest(text: str) -> str:
    return f"sha256-{_base64(hashlib.sha256(text.encode()).digest())}"


def _title_of(records: Sequence[Record]) -> str:
    """The heading of a page."""
    first = records[0].manifest
    titles = dict.fromkeys(one.manifest.title for one in records)
    return f"{first.title}: {first.configuration}" if len(records) == 1 else " / ".join([*titles][:3])


def _main(
    records: Sequence[Record], names: Sequence[str], title: str | None, source: Source | None
) -> Iterator[str]:
    yield f"<h1>{shown(title or _title_of(records))}</h1>\n"
    yield from _warnings(records, names, source)
    yield '<ul class="runs">\n'
    for record, name in zip(records, names, strict=True):
        yield from _run(record, name)
    yield "</ul>\n"
    if len(records) > 1:
        yield from _beside_each_other(records)
    yield "".join(f"<p>{prose(text)}</p>\n" for text in advice(records))
    yield f'<h2>Charts</h2>\n<noscript><p class="warning">{UNSCRIPTED}</p></noscript>\n'
    yield '<div id="weir-charts"><p class="scripted">The record is read…</p></div>\n'
    yield "<h2>Configuration</h2>\n"
    for record, name in zip(records, names, strict=True):
        if len(records) > 1:
            yield f"<h3>{shown(name)}</h3>\n"
        yield from _configuration(record)
    yield "<h2>Figures</h2>\n"
    for record, name in zip(records, names, strict=True):
        if len(records) > 1:
            yield f"<h3>{shown(name)}</h3>\n"
        yield from _figures(record)
    yield "<h2>Repeat it</h2>\n"
    for record, name in zip(records, names, strict=True):
        if len(records) > 1:
            yield f"<h3>{shown(name)}</h3>\n"
        yield from _repeat(record)
    yield "<h2>Raw data</h2>\n<p>Every sample, as one file that <code>weir show</code>, "
    yield "<code>compare</code>, <code>plot</code> and <code>report</code> read; "
    yield "inside are Parquet tables.</p>\n<ul>\n"
    for number, name in enumerate(names):
        yield f'<li>{shown(name)} <span data-download="{number}"></span></li>\n'
    yield "</ul>\n"
    terms = "".join(f"<dt>{shown(term)}</dt><dd>{shown(meaning)}</dd>\n" for term, meaning in TERMS)
    yield f"<details><summary>What the words mean</summary><dl>\n{terms}</dl></details>\n"
    yield f'<p class="quiet">Page made by Weir {shown(_native.version())}.</p>\n'


def _beside_each_other(records: Sequence[Record]) -> Iterator[str]:
    comparisons = beside(records)
    yield f"<p>{prose(story(comparisons).plain)}</p>\n"
    for text in doubts(records, comparisons):
        yield f'<p class="warning">Caution: {prose(text)}</p>\n'
    yield _table(comparison_table(records, comparisons))
    if (parts := parts_table(records)) is not None:
        yield _table(parts)
    if (applications := comparison_of_applications(comparisons)) is not None:
        yield _table(applications)


def _warnings(records: Sequence[Record], names: Sequence[str], source: Source | None) -> Iterator[str]:
    for record, name in zip(records, names, strict=True):
        where = f"{name}: " if len(records) > 1 else ""
        for text in filter(None, [*record.manifest.warnings, _unfinished(record, source)]):
            yield f'<p class="warning">Caution: {shown(where)}{prose(text)}</p>\n'


def _unfinished(record: Record, source: Source | None) -> str | None:
    """That a run has not come to its end, and whether it may yet; None if it has."""
    reached = f"{record.reached_ns / 1e9:.1f} s"
    if source is None or record.manifest.has_ended or record.path in source.over:
        return cut_short(record)
    if record.path in source.under_way:
        return f"the run is under way: these are its first {reached}, and the page opened anew has more"
    return f"the run was cut short at {reached}, or is under way"


def _run(record: Record, name: str) -> Iterator[str]:
    grade = grade_of(record)
    yield "<li>"
    if grade is not None:
        yield f'<span class="grade" title="Bufferbloat grade">{shown(grade.letter)}</span>'
    yield f"<strong>{shown(name)}</strong>\n"
    if grade is not None:
        yield f"<p>Grade {shown(grade.letter)}. {shown(grade.says)}</p>\n"
    yield "".join(f"<p>{prose(text)}</p>\n" for text in summary_of(record))
    if record.manifest.note:
        yield f'<p class="quiet">Note: {shown(record.manifest.note)}</p>\n'
    if record.manifest.tags:
        yield f'<p class="quiet">Tags: {shown(", ".join(record.manifest.tags))}</p>\n'
    yield "</li>\n"


def _configuration(record: Record) -> Iterator[str]:
    manifest = record.manifest
    summary = _sentence(str(manifest.test.get("summary", "")))
    yield f"<p>{shown(configuration_name(record))}.{shown(summary)}</p>\n"
    yield '<div class="path scroll" tabindex="0" role="group" aria-label="Picture of the path">'
    yield f"{path_svg(record)}</div>\n"


def _sentence(summary: str) -> str:
    """What a test is, behind another sentence; empty if it does not say."""
    return f" {summary[0].upper()}{summary[1:]}." if summary else ""


def _figures(record: Record) -> Iterator[str]:
    there = list(figures_of(record))
    if not there:
        yield "<p>Nothing was measured that figures could be made of.</p>\n"
    for one in there:
        yield f"<p>{prose(one.plain)}</p>\n" if isinstance(one, Text) else _table(one)


def _repeat(record: Record) -> Iterator[str]:
    manifest = record.manifest
    how = repeat_of(record)
    if how.text is not None:
        yield f"<pre>{as_command(how.text)}</pre>\n"
    yield f"<p>{shown(how.says)}</p>\n"
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    host = f"{manifest.host.get('kernel', '')} {manifest.host.get('machine', '')}".strip()
    yield (
        f'<p class="quiet">World {shown(manifest.world)}{_seed(manifest.seed)}, started '
        f"{shown('; '.join(filter(None, (manifest.started_at, versions, host))))}.</p>\n"
        "<details><summary>The scenario as it was resolved</summary>"
        f'<pre tabindex="0">{shown(json.dumps(manifest.scenario, indent=1))}</pre></details>\n'
    )


def _seed(seed: int | None) -> str:
    return "" if seed is None else f", seed {seed}"


def _table(table: Table) -> str:
    """A table of the terminal as HTML: the same cells."""
    columns = [[_text(cell) for cell in column.cells] for column in table.columns]
    kinds = ["" if column.justify == "right" else ' class="words"' for column in table.columns]
    caption = "; ".join(filter(None, (_text(table.title), _text(table.caption))))
    head = "".join(
        f'<th scope="col"{kind}>{_cell(text)}</th>' if (text := _text(column.header)) else "<td></td>"
        for column, kind in zip(table.columns, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kinds[number]}>{_cell(text)}</td>" if number else f'<th scope="row">{_cell(text)}</th>'
            for number, text in enumerate(row)
        )
        + "</tr>"
        for row in zip(*columns, strict=True)
    )
    heading = f"<thead><tr>{head}</tr></thead>" if table.show_header else ""
    label = shown(caption or "Table")
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{label}"><table>'
        f"<caption>{shown(caption)}</caption>{heading}<tbody>{body}</tbody></table></div>\n"
    )


def _text(cell: object) -> str:
    """The text of a cell, of which Rich knows strings and styled texts."""
    return "" if cell is None else str(getattr(cell, "plain", cell))


def _cell(text: str) -> str:
    return shown(text).replace("\n", "<br>")


UNSCRIPTED = "The charts, and the buttons that save raw data, need JavaScript."
"""What stands where the charts would be, in a browser that runs no script."""

MAX_RECORDS = 48
"""More lines than this nobody tells apart in one chart."""

MAX_EMBEDDED_BYTES = 128 * 2**20
"""A browser holds a page of this size; a 70 s RRUL has about 1 MiB."""

BASE64_BYTES = 3 << 20
"""Bytes that are turned into letters at once: three of them are four letters."""
