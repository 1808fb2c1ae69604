"""Lists of results that a notebook shows as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.stats import Comparison


class Records(list["Record"]):
    """A list of records."""

    def _repr_html_(self) -> str:
        from weirlab.report.html import records_html  # noqa: PLC0415 - only notebooks need it

        return records_html(self)


class Comparisons(list["Comparison"]):
    """A list of set-ups beside each other."""

    def _repr_html_(self) -> str:
        from weirlab.report.html import comparisons_html  # noqa: PLC0415 - only notebooks need it

        return comparisons_html(self)
