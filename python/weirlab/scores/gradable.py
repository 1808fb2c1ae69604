"""Whether the pings of a run were those of a full line, so that a grade may say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.scores.measured import LOADED
from weirlab.stats.pings import answered_of_each, idle_window_ns, load_window_ns
from weirlab.stats.summary import busy_share

if TYPE_CHECKING:
    from weirlab.record import Record


def is_gradable(record: Record) -> bool:
    """Whether a run reached the end of its load, had the line busy all along, and pings enough to tell.

    Loads have to run in nine tenths of the phases with load, and to take half of one direction of the line,
    where the record tells what it carries. Without load, and in each phase with load, `MIN_PINGS` have to be
    answered.
    """
    phases = {one["name"]: one for one in record.manifest.scenario["phases"]}
    spans = [(phases[name]["start_ns"], phases[name]["end_ns"]) for name in LOADED if name in phases]
    if any(end > record.reached_ns for _, end in spans):
        return False
    spans = spans or [load_window_ns(record)]
    pinged = [span for span in (idle_window_ns(record), *spans) if span is not None]
    if any(sum(answered_of_each(record, span).values()) < MIN_PINGS for span in pinged):
        return False
    length = sum(end - start for start, end in spans)
    if sum(_loaded_ns(record, *span) for span in spans) < LOADED_SHARE * length:
        return False
    shares = [busy_share(record, way, *load_window_ns(record)) for way in ("down", "up")]
    known = [share for share in shares if share is not None]
    return not known or max(known) >= BUSY_SHARE


def _loaded_ns(record: Record, start_ns: int, end_ns: int) -> int:
    """For how long of a span any flow runs."""
    found, until = 0, start_ns
    for first, last in sorted((flow["start_ns"], flow["stop_ns"]) for flow in record.flow_rows):
        since, stop = max(first, until), min(last, end_ns)
        if stop > since:
            found += stop - since
            until = stop
    return found


LOADED_SHARE = 0.9
"""Of the phases with load some flow runs at least for this share: loads begin and end a little apart."""

BUSY_SHARE = 0.5
"""Of a line that varies no load takes all, and some shapers leave room."""

MIN_PINGS = 20
"""As of the server's page (`crates/serve/page/src/grading.ts`): fewer are too few for a figure to rely on."""
