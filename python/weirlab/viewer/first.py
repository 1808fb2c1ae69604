"""The page of a large record before its figures are known: charts of a part of its pings, at once.

To read and describe ten million pings takes seconds. Until that is done, the page shows spells from all
over the run, and asks for the whole page in the meantime.
"""

from __future__ import annotations

from html import escape
from math import ceil
from typing import TYPE_CHECKING

from weirlab.errors import RecordError
from weirlab.viewer.data import first_data
from weirlab.viewer.page import Source, around, title_of
from weirlab.viewer.shell import shell

__all__ = ["first_every", "first_page"]

if TYPE_CHECKING:
    from weirlab.record import Record


def first_every(record: Record) -> int:
    """Every how manieth part file of the pings is drawn first; 1 if all of them are.

    Of a run that was killed all are: only its tables say how far it got.
    """
    written = (record.manifest.tables or {}).get("latency")
    if written is None or record.manifest.reached_ns is None or written.rows <= MANY_ROWS:
        return 1
    return min(ceil(written.rows / FIRST_ROWS), max(written.parts // 4, 1))


def first_page(record: Record, every: int, source: Source, whole: str) -> str:
    """The page that draws a part of a record.

    Args:
        record: the record.
        every: every how manieth part file of its pings the file of `source` has.
        source: where scripts and the part of the record are.
        whole: the address of the whole page.

    Raises:
        RecordError: if the manifest is damaged.
    """
    try:
        heading = title_of([record])
        (url,) = source.records
        data = {
            "records": [first_data(record, heading, url, every)],
            "says": dict.fromkeys(("down", "up", "ping", "cdf", "boxes"), ""),
            "rest": whole,
        }
        rows = (record.manifest.tables or {})["latency"].rows
        head, tail = around([record], data, source)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise RecordError(f"`{record.path}`: its manifest.json is damaged") from error
    main = (
        f"<h1>{escape(heading)}</h1>\n"
        f'<p role="status">The figures of {rows:,} pings are being computed. '
        "The charts show some of them already.</p>\n"
        '<h2>Charts</h2>\n<noscript><p class="warning">The charts need JavaScript.</p></noscript>\n'
        '<div id="weir-charts"><p>The record is read…</p></div>\n'
    )
    return shell(heading, f"{source.home}<main>\n{main}</main>\n{tail}", head=head)


MANY_ROWS, FIRST_ROWS = 1_500_000, 1_000_000
"""Of more rows than the first, as in viewer/src/sections.ts, about so many as the second are drawn first."""
