"""The charts that belong to a set of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import track

from weirlab.api import slug
from weirlab.plots import draw
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirlab.record import Record


def charts_of(records: Sequence[Record], folder: Path, *, quiet: bool = False) -> list[Path]:
    """Draws what a person looks for, as PNG into `folder`.

    A three-plot of the first repetition of each set-up; CDF, box plot and ping time series of all
    set-ups together; and the overlay of the first set-up and the last, if there are several. Charts
    for which there is no data (no load, no pings) are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    firsts: dict[str, Record] = {}
    for record in records:
        firsts.setdefault(record.label, record)
    ones = list(firsts.values())
    jobs: list[tuple[str, list[Record], str]] = []
    if any(record.flow_names.height for record in ones):
        jobs += [
            ("three-plot", [record], f"three-plot-{number:02d}-{slug(record.label)}")
            for number, record in enumerate(ones, start=1)
        ]
        jobs.append(("box", list(records), "box"))
    if any(record.latency["rtt_ns"].count() for record in ones):
        jobs += [("cdf", list(records), "cdf"), ("ping", ones, "ping")]
        if len(ones) > 1:
            jobs.append(("overlay", [ones[0], ones[-1]], "overlay"))
    steps = track(
        jobs, description="Charts", console=messages, transient=True, disable=quiet
    )
    return [draw(kind, chosen, folder / f"{name}.png") for kind, chosen, name in steps]
