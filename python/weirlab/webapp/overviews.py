"""Overviews of large records, which are kept until others are looked at."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from weirlab.stats import summarise
from weirlab.viewer import Overview, is_large, overview_of
from weirlab.webapp.latest import Latest

__all__ = ["Overviews"]

if TYPE_CHECKING:
    from weirlab.record import Record


class Overviews:
    """The overviews of the records that were looked at last."""

    def __init__(self) -> None:
        """None is kept yet."""
        self._kept: Latest[tuple[str, str], Overview] = Latest(MAX_KEPT)

    def read(self, record: Record) -> Overview | None:
        """Reads all tables of a record and computes its figures; gives the overview of a large one.

        Raises:
            RecordError: if it is damaged.
        """
        if not is_large(record):
            record.check()
            return None
        # All pings are read once, and not for each of these anew.
        # The overview needs only these columns, and takes a core beside the other tables and the figures.
        with record.keeping("latency", ["t_ns", "probe", "rtt_ns"]), ThreadPoolExecutor(1) as aside:
            overview = aside.submit(self.found, record)
            record.check()
            summarise(record)
            return overview.result()

    def found(self, record: Record) -> Overview | None:
        """The overview of a large record, as it was computed or computed now; None of another."""
        if not is_large(record):
            return None
        # Of a run that is under way the number of part files grows.
        key = str(record.path), f"{record.manifest.tables} {len(record.parts('latency'))}"
        return self._kept.get(key, lambda: overview_of(record))


MAX_KEPT = 24
"""As many as one page shows; each has a few MB."""
