"""The charts that belong to a set of records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import track

from weirlab.drawers import Order, begun_or_new
from weirlab.record import configurations
from weirlab.record.configurations import slug
from weirlab.stats import answered_count, load_window_ns
from weirlab.stats.pings import any_answered
from weirlab.stats.summary import latency_summary, totals
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record
    from weirlab.stats import Direction


def charts_of(
    records: Sequence[Record], folder: Path, *, title: str | None = None, quiet: bool = False
) -> list[Path]:
    """Draws what a person looks for, as PNG into `folder`.

    A three-plot of the first repetition of each configuration, and its UDP flows and applications
    if it has any; CDF, box plot
    and ping time series of all configurations together; and their overlay, if there are several. Charts for
    which there is no data (no load, no pings, as of a run that was cut short before its load) are left out.
    """
    loaded = [record for record in records if record.flow_rows]
    probed = [record for record in records if answered_count(record)]
    firsts = [one.records[0] for one in configurations(probed)]
    jobs: list[tuple[str, list[Record], str]] = [
        ("three-plot", [one.records[0]], f"three-plot-{number:02d}-{slug(one.name)}")
        for number, one in enumerate(configurations(loaded), start=1)
    ]
    jobs += [
        ("udp", [one.records[0]], f"udp-{number:02d}-{slug(one.name)}")
        for number, one in enumerate(configurations(loaded), start=1)
        if one.records[0].columns("udp").height
    ]
    jobs += [
        ("applications", [one.records[0]], f"applications-{number:02d}-{slug(one.name)}")
        for number, one in enumerate(configurations(loaded), start=1)
        if one.records[0].columns("transfers").height
    ]
    if any(_has_boxes(record) for record in loaded):
        jobs.append(("box", loaded, "box"))
    during = [record for record in probed if any_answered(record, load_window_ns(record))]
    if during:
        jobs.append(("cdf", during, "cdf"))
    if probed:
        jobs.append(("ping", firsts, "ping"))
    if len(firsts) > 1:
        jobs.append(("overlay", probed, "overlay"))
    orders = [
        Order(kind, _paths(chosen), str(folder / f"{name}.png"), title, _paths(records))
        for kind, chosen, name in jobs
    ]
    with begun_or_new() as process:
        # The rows of a long record take much of the memory.
        at_once = 1 if any(record.is_long("latency") for record in records) else len(os.sched_getaffinity(0))
        drawn = process.draw(orders, at_once=at_once)
        for _ in track(
            drawn,
            total=len(orders),
            description="Charts",
            console=messages,
            transient=True,
            disable=quiet,
        ):
            pass
    return [Path(order.target) for order in orders]


def _has_boxes(record: Record) -> bool:
    """Whether there are samples of its load: none are of a run that was cut short before it."""
    ways: tuple[Direction, ...] = ("down", "up")
    return latency_summary(record).loaded is not None or any(totals(record, way)[1].size for way in ways)


def _paths(records: Sequence[Record]) -> list[str]:
    return [str(record.path) for record in records]
