"""What pings themselves take of a line before any load: on a slow one they fill it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirlab.stats.capacity import capacity_bytes
from weirlab.stats.pings import idle_window_ns

if TYPE_CHECKING:
    from weirlab.record import Record
    from weirlab.scenario import Direction


@dataclass(frozen=True, kw_only=True)
class IdleUse:
    """What a line that no load fills carries in the phase `idle`, where that is a good part of it.

    Attributes:
        line: the line of which most is taken, such as `up/modem`.
        share: what it carried of what it could have, 0 to 1.
        flows: whether flows ran beside the pings, such as calls.
    """

    line: str
    share: float
    flows: bool


def idle_use(record: Record) -> IdleUse | None:
    """What pings take of the line of which they take most, in that part of `idle` of which idle pings are.

    None where that is less than `MIN_SHARE`, or the record does not tell: without idle pings, without samples
    of queues, or where no bytes limit a line.
    """
    window = idle_window_ns(record)
    if window is None or not record.ping_probes:
        return None
    carried = _carried_bytes(record, window)
    shares: dict[str, float] = {}
    path: dict[Direction, list[dict[str, Any]]] = record.manifest.scenario.get("path", {})
    for direction, hops in path.items():
        for hop in hops:
            name = f"{direction}/{hop['name']}"
            of_line = carried.get(name)
            if not of_line:
                continue
            could = capacity_bytes(record, direction, hop, window)
            if could is not None and (most := float(np.diff(could)[0])) > 0:
                shares[name] = min(of_line / most, 1.0)
    line = max(shares, key=shares.__getitem__, default=None)
    if line is None or shares[line] < MIN_SHARE:
        return None
    return IdleUse(line=line, share=shares[line], flows=_flows_run(record, window))


def idle_use_remark(uses: list[tuple[str, IdleUse]], *, named: bool) -> str | None:
    """What pings take of a line in the phase `idle`, of one run or at most of several; None of no runs.

    Args:
        uses: the name of each and what its pings take.
        named: whether to tell the names.
    """
    if not uses:
        return None
    most = max((one for _, one in uses), key=lambda one: one.share)
    percents = {f"{one.share:.0%}" for _, one in uses}
    share = f"{'up to ' if len(percents) > 1 else ''}{most.share:.0%}"
    beside = ", and what runs beside them," if most.flows else ""
    whose = f" with {', '.join(f'`{name}`' for name in dict(uses))}" if named else ""
    return (
        f"Pings{beside} take {share} of what the line `{most.line}` carries in the phase `idle` "
        f"already{whose}: round trips there may hold the wait behind other pings, and less is told than what "
        "the load adds."
    )


def idle_loss_remark(losses: list[tuple[str, float]], *, named: bool) -> str | None:
    """Which share of the idle pings was lost, of one run or of several by name; None where it is little.

    Args:
        losses: the name of each and its share.
        named: whether to tell the names.
    """
    many = [(name, share) for name, share in losses if share >= MANY_IDLE_LOST]
    if not many:
        return None
    if not named:
        return f"Of the pings in the phase `idle` {many[0][1]:.1%} were lost."
    each = ", ".join(f"{share:.1%} with `{name}`" for name, share in many)
    return f"Pings lost in the phase `idle`: {each}."


def _carried_bytes(record: Record, window: tuple[int, int]) -> dict[str, float]:
    """Bytes of each hop's line that were occupied in the intervals of samples that end within a window."""
    start, end = window
    carried: dict[str, float] = {}
    for rows in record.pieces("queue", ("t_ns", "queue", "class", "wire_bytes")):
        at = rows.numbers("t_ns")
        within = rows.is_text("class", "") & (at > start) & (at <= end)
        bytes_ = np.nan_to_num(rows.with_nan("wire_bytes"))
        for place, name in enumerate(rows.texts("queue")):
            mine = within & (rows.numbers("queue") == place)
            carried[name] = carried.get(name, 0.0) + float(bytes_[mine].sum())
    return carried


def _flows_run(record: Record, window: tuple[int, int]) -> bool:
    """Whether a flow runs within a window in ns."""
    start, end = window
    return any(one["start_ns"] < end and one["stop_ns"] > start for one in record.flow_rows)


MIN_SHARE = 0.5
"""Pings that take less of a line leave it idle most of the time, and seldom wait behind each other."""

MANY_IDLE_LOST = 0.05
"""A smaller share of lost idle pings is not worth a word: some lines lose a few in a hundred."""
