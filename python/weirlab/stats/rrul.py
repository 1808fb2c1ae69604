"""The scores of the RRUL specification (bufferbloat.net, draft .07): of a web page, and of classes.

The main one is how quickly a page loads beside the load, of how quickly it loads on the idle line. The others
say whether classes are told apart in the way the specification thinks ideal: background traffic (CS1) gets at
most 5 % of what TCP carries where there is other traffic, and EF at most 30 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from weirlab.stats.summary import summarise
from weirlab.stats.transfers import transfer_summaries
from weirlab.stats.udp import udp_summaries

if TYPE_CHECKING:
    from weirlab.record import Record


@dataclass(frozen=True, kw_only=True)
class Score:
    """One score of a run, in per cent.

    Attributes:
        name: what it is of.
        percent: its value.
        ideal: the greatest value that the specification thinks ideal; None if it names none.
    """

    name: str
    percent: float
    ideal: float | None = None


def rrul_scores(record: Record) -> list[Score]:
    """The scores of a run; none of one without web pages before and during the load, or TCP in CS1 and EF."""
    web = [
        Score(name=f"{name}, of its speed on the idle line", percent=100 * one.response)
        for name, one in transfer_summaries(record).items()
        if one.kind == "web" and one.response is not None
    ]
    shares = [share for way in ("down", "up") for share in _shares(record, way)]
    if not web or not shares:
        return []
    return [*web, *shares, *_isochronous(record)]


def _shares(record: Record, way: Literal["up", "down"]) -> list[Score]:
    """What CS1 and EF get of the TCP goodput of one direction, if there are flows in both."""
    summary = summarise(record)
    found = summary.down if way == "down" else summary.up
    rates = found.per_flow_mbps if found else {}
    classes: dict[int, float] = {}
    for flow in record.flow_rows:
        if flow["direction"] == way and flow["protocol"] == "tcp" and flow["name"] in rates:
            classes[flow["dscp"]] = classes.get(flow["dscp"], 0.0) + rates[flow["name"]]
    total = sum(classes.values())
    if not total or not {CS1, EF} <= classes.keys():
        return []
    named = "download" if way == "down" else "upload"
    return [
        Score(name=f"share of {name} of the {named}", percent=100 * classes[dscp] / total, ideal=ideal)
        for dscp, name, ideal in ((CS1, "CS1", 5.0), (EF, "EF", 30.0))
    ]


def _isochronous(record: Record) -> list[Score]:
    """Packets of isochronous streams that were lost or came too late: as good as lost."""
    found = []
    for name, one in udp_summaries(record).items():
        if one.voice is None:
            continue
        percent = 100 * ((1.0 if one.loss_rate is None else one.loss_rate) + one.voice.late_rate)
        found.append(Score(name=f"{name}, lost or too late", percent=percent))
    return found


CS1, EF = 8, 46
"""Code points of background traffic and of what must not wait."""
