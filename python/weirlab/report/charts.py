"""The charts that belong to a set of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import track

from weirlab.plots import draw
from weirlab.record import configurations
from weirlab.record.configurations import slug
from weirlab.stats import answered_count
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirlab.record import Record


def charts_of(
    records: Sequence[Record], folder: Path, *, title: str | None = None, quiet: bool = False
) -> list[Path]:
    """Draws what a person looks for, as PNG into `folder`.

    A three-plot of the first repetition of each configuration, and its UDP flows and applications
    if it has any; CDF, box plot
    and ping time series of all configurations together; and their overlay, if there are several. Charts for
    which there is no data (no load, no pings) are left out.
    """
    loaded = [record for record in records if record.flow_names.height]
    probed = [record for record in records if answered_count(record)]
    firsts = [one.records[0] for one in configurations(probed)]
    jobs: list[tuple[str, list[Record], str]] = [
        ("three-plot", [one.records[0]], f"three-plot-{number:02d}-{slug(one.name)}")
        for number, one in enumerate(configurations(loaded), start=1)
    ]
    jobs += [
        ("udp", [one.records[0]], f"udp-{number:02d}-{slug(one.name)}")
        for number, one in enumerate(configurations(loaded), start=1)
        if one.records[0].udp.height
    ]
    jobs += [
        ("applications", [one.records[0]], f"applications-{number:02d}-{slug(one.name)}")
        for number, one in enumerate(configurations(loaded), start=1)
        if one.records[0].transfers.height
    ]
    if loaded:
        jobs.append(("box", loaded, "box"))
    if probed:
        jobs += [("cdf", probed, "cdf"), ("ping", firsts, "ping")]
    if len(firsts) > 1:
        jobs.append(("overlay", probed, "overlay"))
    steps = track(jobs, description="Charts", console=messages, transient=True, disable=quiet)
    return [
        draw(kind, chosen, folder / f"{name}.png", title=title, whole=records) for kind, chosen, name in steps
    ]
