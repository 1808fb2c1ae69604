"""Which flows of a direction share the line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from weirlab.record.differences import is_of_programs

__all__ = ["sharing"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.record.manifest import Manifest


def sharing(record: Record, flows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of a direction's flows that share the line, in their order.

    They are all that a test has. Of the connections of programs they are those that carried more than an
    initial window in that direction: what is less leaves at once, and TCP has no say in its rate. So are
    control connections, such as the one of iperf3 beside its data. All, if none carried more.

    Args:
        record: the run.
        flows: rows of `Record.flow_rows`.
    """
    if not is_of_programs(record):
        return list(flows)
    carried = _carried(record)
    return [flow for flow in flows if carried[flow["flow"]] > INITIAL_WINDOW_BYTES] or list(flows)


def _carried(record: Record) -> Counter[int]:
    """What each connection carried, which is summed once for each record."""
    manifest, carried = _CARRIED.get(record, (None, Counter()))
    if manifest is not record.manifest:
        carried = Counter()
        for rows in record.pieces("throughput", ("flow", "bytes")):
            numbers, places = np.unique(rows.numbers("flow"), return_inverse=True)
            sums = np.bincount(places, rows.numbers("bytes"))
            carried.update(dict(zip(numbers.tolist(), sums.tolist(), strict=True)))
        _CARRIED[record] = (record.manifest, carried)
    return carried


INITIAL_WINDOW_BYTES = 10 * 1460
"""RFC 6928, section 2."""

_CARRIED: WeakKeyDictionary[Record, tuple[Manifest, Counter[int]]] = WeakKeyDictionary()
"""Of the records that are in use: summaries, charts and pages each ask which flows share the line."""
