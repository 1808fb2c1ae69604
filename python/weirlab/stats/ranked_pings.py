"""Pings in the order of their round trips, of which some are looked at: what curves are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirlab.record.round_trips import COLUMNS
from weirlab.stats.counted import Chunk, Moments, moments_of
from weirlab.stats.pings import is_any_of, rows_in
from weirlab.stats.ranked import Ranked, answered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record

    Whole = NDArray[np.int64]
    Rows = slice | NDArray[np.bool_]


class RankedPings:
    """Pings that were sent in spans of time, of one or several records; of many none is held.

    They are in groups: all pings over the whole path together (`POOLED`), or each probe by its number.
    """

    def __init__(
        self, spans: Sequence[tuple[Record, tuple[int, int]]], *, probes: Collection[int] | None = None
    ) -> None:
        """Reads the pings and counts them.

        Args:
            spans: the records, and from when to when in ns the pings were sent that are taken of each.
            probes: numbers of the probes that are told apart, which may be those of a speed test's own
                flows; None pools all pings over the whole path.

        Raises:
            RecordError: if a part file is damaged.
        """
        self._spans, self._probes = spans, None if probes is None else list(probes)
        self._rows: list[Rows] = []
        self._unknown: set[int] = set()
        self._moments = Moments()
        self._ranked = Ranked(self._chunks, 1 + max(self._probes or [POOLED]))

    def sent(self, group: int) -> int:
        """How many pings were sent; where losses are not known how many samples there are."""
        return self._ranked.count(group) + self._ranked.missing(group)

    def answered(self, group: int) -> int:
        """How many of them were answered."""
        return self._ranked.count(group)

    def lost(self, group: int) -> int | None:
        """How many of them were lost, on either way; None if that is not known."""
        return None if group in self._unknown else self._ranked.missing(group)

    @property
    def moments_ns(self) -> Moments:
        """Count, mean and so on in nanoseconds of the answered pings that are pooled."""
        return self._moments

    def at_ns(self, places: Mapping[int, Whole]) -> dict[int, Whole]:
        """Round trips in nanoseconds at places of their order, from 0, which are below `answered`.

        Args:
            places: the places by group. All are looked for together, in one reading or two.

        Raises:
            RecordError: if a part file is damaged.
        """
        return self._ranked.at(places)

    def _chunks(self) -> Iterator[Chunk]:
        """The pings. Which rows of a piece they are is found out once: times need not be read again."""
        again = iter(self._rows) if self._rows else None
        for record, window in self._spans:
            for piece in record.pieces("latency", COLUMNS if again is None else COLUMNS[1:]):
                probe, value, known = (
                    piece.numbers("probe").astype(np.int64, copy=False),
                    piece.numbers("rtt_ns").astype(np.int64, copy=False),
                    piece.known("rtt_ns"),
                )
                if again is None:
                    self._rows.append(
                        rows_in(piece.numbers("t_ns").astype(np.int64, copy=False), probe, window)
                    )
                rows = self._rows[-1] if again is None else next(again)
                chunk = self._chunk(record, probe[rows], value[rows], None if known is None else known[rows])
                if again is None and self._probes is None:
                    self._moments = self._moments.with_those_of(moments_of(answered(chunk)[1]))
                yield chunk

    def _chunk(self, record: Record, probe: Whole, value: Whole, known: NDArray[np.bool_] | None) -> Chunk:
        """The rows of those that are among the groups."""
        mine = is_any_of(probe, record.ping_probes if self._probes is None else self._probes)
        if not mine.all():
            probe, value = probe.compress(mine), value.compress(mine)
            known = None if known is None else known.compress(mine)
        imported = record.manifest.imported
        unknown = {one for one in (imported.losses_unknown if imported else ()) if (probe == one).any()}
        if self._probes is None:
            probe, unknown = np.full(probe.size, POOLED), {POOLED for _ in unknown}
        self._unknown |= unknown
        return Chunk(probe, value, known)


POOLED = 0
"""All pings over the whole path together."""
