"""Pages of records that a command writes, and opens in a browser if it is asked to."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import TYPE_CHECKING

from weirlab.errors import RecordError, counted
from weirlab.ui import note, warn
from weirlab.viewer import report_parts
from weirlab.writing import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from weirlab.record import Record


def write_page(
    records: Sequence[Record],
    out: Path,
    *,
    title: str | None = None,
    span_s: tuple[float, float] | None = None,
    show: bool = False,
) -> None:
    """Writes the page of `records` to `out`, says so, and shows it in a browser if `show`.

    Raises:
        UsageError: if there are more records than a page holds, or none of them reaches into the span.
        WriteError: if the page cannot be written.
        RecordError: if a record cannot be read meanwhile.
    """
    content = _read(report_parts(records, title=title, span_s=span_s))

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(content)

    replaced(out, write)
    note(f"{counted(len(records), 'record')} in {out}, {out.stat().st_size / 1e6:.1f} MB")
    if show:
        _show(out)


def _read(content: Iterator[str]) -> Iterator[str]:
    """The content; what fails while it is made is not told as what fails while it is written."""
    try:
        yield from content
    except OSError as error:
        where = "a record" if error.filename is None else f"`{error.filename}`"
        raise RecordError(f"{where} cannot be read: {error.strerror or error}") from error


def _show(page: Path) -> None:
    """Opens a page in the browser of whoever sits here; says so where there is none."""
    address = page.resolve().as_uri()
    # Without a screen Python would start a browser for terminals, in the midst of what is printed.
    is_seen = sys.platform != "linux" or any(os.environ.get(name) for name in SCREENS)
    if not is_seen or not webbrowser.open(address):
        warn(f"there is no browser to open here: open {address}")


SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of which one is set where a browser can be seen, or is named."""
