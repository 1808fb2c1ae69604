"""What arrived of a run's flows in spans of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.intervals import middles_ns, whole_intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weirlab.record import Record
    from weirlab.record.columns import Columns

    Flow = dict[str, Any]
    Whole = NDArray[np.int64]


class Arrivals:
    """What arrived of the flows of a record; what a span has is added up once."""

    def __init__(self, record: Record) -> None:
        """What arrived of the flows of `record`."""
        self._record = record
        self._sampled = record.has_rows("throughput")
        self._interval_ns = record.interval_ns("throughput") if self._sampled else 0
        self._sums: dict[tuple[tuple[int, ...], ...], dict[str, NDArray[np.float64]]] = {}

    def goodputs_mbps(
        self, flows: Sequence[Flow], span_ns: tuple[int, int], *, together: bool = False
    ) -> dict[str, float]:
        """Goodput in Mbit/s of each flow while it runs, by name; nothing if the run did not sample any.

        It is over the whole intervals of samples within the span in which the flow runs, if there are any; of
        a flow of fixed size that was complete within the span, over the time that it took.

        Args:
            flows: rows of `Record.flow_rows`, of flows that run within the span.
            span_ns: start and end of the span in ns since the run began.
            together: only in the part of the span in which all of these flows run; there is no goodput at all
                if there is no such part.
        """
        if not self._sampled or not flows:
            return {}
        if together:
            # One that was complete within an interval has no goodput that could be compared.
            alone = [self._running([flow], span_ns) for flow in flows]
            flows = [flow for flow, (start, end) in zip(flows, alone, strict=True) if end > start]
            if not flows:
                return {}
        groups = [flows] * len(flows) if together else [[flow] for flow in flows]
        spans = [self._running(group, span_ns) for group in groups]
        arrived = self._bytes("bytes", flows, *zip(*spans, strict=True))
        rates = {
            flow["name"]: float(bytes_) * 8e3 / (end - start)
            for flow, bytes_, (start, end) in zip(flows, arrived, spans, strict=True)
            if end > start
        }
        whole = {} if together else self._of_fixed_size(flows, span_ns)
        return {
            flow["name"]: rate for flow in flows if (rate := (rates | whole).get(flow["name"])) is not None
        }

    def _of_fixed_size(self, flows: Sequence[Flow], span_ns: tuple[int, int]) -> dict[str, float]:
        """Goodput of flows that began and were complete within a span, which is known without samples."""
        sizes, completed = self._record.manifest.scenario["flows"], self._record.completed_ns
        return {
            flow["name"]: sizes[flow["flow"]]["bytes"] * 8e3 / took
            for flow in flows
            if flow["flow"] in completed
            and span_ns[0] <= flow["start_ns"]
            and completed[flow["flow"]] <= span_ns[1]
            and (took := completed[flow["flow"]] - flow["start_ns"]) > 0
        }

    def rates_mbps(self, flows: Sequence[Flow], span_ns: tuple[int, int]) -> dict[str, float]:
        """Goodput in Mbit/s of each flow over the whole span, by name: its part of `rate_mbps` of all.

        Nothing if the run did not sample any, or no whole interval lies within the span.

        Args:
            flows: rows of `Record.flow_rows`: all that count together.
            span_ns: start and end of the span in ns since the run began.
        """
        if not self._sampled or not flows:
            return {}
        # Of the same part for all, so that they add up to the rate of all together.
        start, end = self._span(flows, span_ns)
        if end <= start:
            return {}
        arrived = self._bytes("bytes", flows, [start] * len(flows), [end] * len(flows))
        return {
            flow["name"]: float(bytes_) * 8e3 / (end - start)
            for flow, bytes_ in zip(flows, arrived, strict=True)
            if not np.isnan(bytes_)
        }

    def rate_mbps(self, flows: Sequence[Flow], span_ns: tuple[int, int], column: str) -> float | None:
        """Rate of all these flows together over the whole intervals of a span, in Mbit/s.

        None if the run did not sample it, or no whole interval lies within the span.

        Args:
            flows: rows of `Record.flow_rows`, at least one.
            span_ns: start and end of the span in ns since the run began.
            column: the column of `throughput` that counts their bytes.
        """
        if not self._sampled:
            return None
        start, end = self._span(flows, span_ns)
        if end <= start:
            return None
        arrived = self._bytes(column, flows, [start] * len(flows), [end] * len(flows)).sum()
        return None if np.isnan(arrived) else float(arrived) * 8e3 / (end - start)

    def _span(self, flows: Sequence[Flow], span_ns: tuple[int, int]) -> tuple[int, int]:
        """The whole intervals of a span, and its part before them where `flows` begin within the span."""
        start, end = whole_intervals(span_ns, self._interval_ns)
        # Of flows that begin within an interval nothing arrived in its part before that.
        begin_within = all(flow["start_ns"] >= span_ns[0] for flow in flows)
        return span_ns[0] if begin_within else start, end

    def _running(self, flows: Sequence[Flow], span_ns: tuple[int, int]) -> tuple[int, int]:
        """The part of a span in which all of `flows` run, in whole intervals."""
        start = max(span_ns[0], *(flow["start_ns"] for flow in flows))
        end = min(span_ns[1], *(flow["stop_ns"] for flow in flows))
        return self._span(flows, (start, end))

    def _bytes(
        self, column: str, flows: Sequence[Flow], starts: Sequence[int], ends: Sequence[int]
    ) -> NDArray[np.float64]:
        """Of each of `flows` the bytes that a column of `throughput` counts after its start until its end.

        Not a number where one of these rows has none.
        """
        numbers = tuple(flow["flow"] for flow in flows)
        asked = numbers, tuple(starts), tuple(ends)
        if asked not in self._sums:
            self._sums[asked] = self._added_up(*asked)
        return self._sums[asked][column]

    def _added_up(
        self, flows: Sequence[int], starts: Sequence[int], ends: Sequence[int]
    ) -> dict[str, NDArray[np.float64]]:
        """The bytes of each flow in its span, by column: whole numbers, whose sums are exact."""
        size = max(flows) + 1
        sums = {column: np.zeros(size) for column in COUNTS}
        for samples in self._record.pieces("throughput", ("t_ns", "flow", *COUNTS)):
            rows, of = self._counted(samples, flows, starts, ends)
            for column in COUNTS:
                sums[column] += np.bincount(of, samples.with_nan(column)[rows], size)
        return {column: found[list(flows)] for column, found in sums.items()}

    def _counted(
        self, samples: Columns, flows: Sequence[int], starts: Sequence[int], ends: Sequence[int]
    ) -> tuple[Whole, Whole]:
        """The rows of `throughput` that count, and the flow of each."""
        number, at = samples.numbers("flow"), samples.numbers("t_ns")
        size = max(flows) + 1
        # Only rows of these flows count: a record of a stranger may give its rows any number. No time lies
        # within the span of a flow that is none of these, which begins and ends at 0.
        after, until = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        after[list(flows)], until[list(flows)] = [start - start % self._interval_ns for start in starts], ends
        known = np.flatnonzero((number >= 0) & (number < size))
        which, when = number[known], middles_ns(at[known], self._interval_ns)
        counted = (when > after[which]) & (when <= until[which])
        return known[counted], which[counted]


COUNTS = ("bytes", "wire_bytes")
"""The columns of `throughput` that count what arrived."""
