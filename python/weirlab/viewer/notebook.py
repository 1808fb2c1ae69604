"""Records in a notebook: the page of a report within a cell, from which it can reach nothing."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from weirlab.arguments import records_of
from weirlab.errors import UsageError, counted
from weirlab.given import text_of
from weirlab.viewer.page import report_page
from weirlab.viewer.shell import shown

__all__ = ["View", "view"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record

DEFAULT_HEIGHT_PX, MIN_HEIGHT_PX, MAX_HEIGHT_PX = 720, 200, 10_000
"""Heights of the frame: a screen by itself, and what is still of use."""


@dataclass(frozen=True, repr=False)
class View:
    """Records as a page that a notebook shows below a cell.

    Attributes:
        page: the whole page, as `weir report` writes it.
        name: what a screen reader calls it.
        height_px: height of its frame in pixels.
    """

    page: str
    name: str
    height_px: int

    def _repr_html_(self) -> str:
        """A frame with the page in it, which may run its own script and save files, and nothing else.

        Without `allow-same-origin` the page has an origin of its own: names in a record of a stranger reach
        neither the notebook nor the server behind it.
        """
        return (
            f'<iframe title="{shown(self.name)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {self.height_px}px; border: 1px solid #8888" '
            f'srcdoc="{escape(self.page)}"></iframe>'
        )

    def __repr__(self) -> str:
        """What it is and how large, for a prompt, which shows no page."""
        return f"<View of {self.name}: {len(self.page) / 1e6:.1f} MB, shown by a notebook>"


def view(
    records: Record | Sequence[Record], *, title: str | None = None, height_px: int = DEFAULT_HEIGHT_PX
) -> View:
    """Shows records in a notebook as the page of `weir report`: charts to zoom, figures, and the raw data.

    The notebook keeps all samples in its file: a 70 s RRUL makes it 0.6 MB larger.

    Args:
        records: a record, or up to 48, which are also set beside each other.
        title: heading in place of the test's title.
        height_px: height of the frame in pixels, 200 to 10000; what is longer is scrolled.

    Raises:
        UsageError: if these are no records, too many or too large for a page, or if the height is none.
        RecordError: if one is damaged.
    """
    chosen = records_of(records, "view")
    if not chosen:
        raise UsageError("view([]): give at least one record")
    if type(height_px) is not int or not MIN_HEIGHT_PX <= height_px <= MAX_HEIGHT_PX:
        raise UsageError(
            f"height_px: {height_px!r}: write a whole number from {MIN_HEIGHT_PX} to {MAX_HEIGHT_PX}"
        )
    name = f"{counted(len(chosen), 'record')} of Weir"
    heading = text_of(title, "title", "the heading of a page")
    return View(report_page(chosen, title=heading), name, height_px)
