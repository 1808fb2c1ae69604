"""What applications of a run felt: scores of calls, times of pages and names, and how videos played."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.stats.summary import Summary
    from weirlab.stats.transfers import Application, VideoSummary

    Figure = Callable[[Summary], float | None]


def mean_score(run: Summary) -> float | None:
    """Mean of the opinion scores of the voice streams."""
    return _mean([one.voice.mos for one in run.udp.values() if one.voice is not None])


def udp_lost_percent(run: Summary) -> float | None:
    """Share of the packets of all UDP streams that did not come, in percent; None if none was sent."""
    known = [(one.loss_rate, one.packets) for one in run.udp.values() if one.loss_rate is not None]
    packets = sum(of for _, of in known)
    return 100 * sum(share * of for share, of in known) / packets if packets else None


def took_ms(kind: Application) -> Figure:
    """Time of pages or names, in ms: the mean of the flows; None if one gave anything up, or had none."""

    def value(run: Summary) -> float | None:
        found = [one for one in run.applications.values() if one.kind == kind]
        times = [one.mean_ms for one in found if one.mean_ms is not None and not one.given_up]
        # How long those took that came says nothing of those that did not.
        return _mean(times) if len(times) == len(found) else None

    return value


def given_up_percent(kind: Application) -> Figure:
    """Share of all pages or names that were given up, in percent; None if there were none."""

    def value(run: Summary) -> float | None:
        found = [one for one in run.applications.values() if one.kind == kind]
        given_up, done = sum(one.given_up for one in found), sum(one.done for one in found)
        return 100 * given_up / (given_up + done) if given_up + done else None

    return value


def _of_videos(figure: Callable[[VideoSummary], float | None]) -> Figure:
    """A figure of the videos that have it: their mean."""

    def value(run: Summary) -> float | None:
        videos = [one.video for one in run.applications.values() if one.video is not None]
        return _mean([known for known in map(figure, videos) if known is not None])

    return value


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


EXPERIENCE: dict[str, Figure] = {
    "mos": mean_score,
    "udp_loss_percent": udp_lost_percent,
    "page_ms": took_ms("web"),
    "pages_given_up_percent": given_up_percent("web"),
    "lookup_ms": took_ms("dns"),
    "lookups_given_up_percent": given_up_percent("dns"),
    "video_mbps": _of_videos(lambda one: one.bitrate_mbps),
    "stalled_percent": _of_videos(lambda one: _percent(one.stalled_rate)),
    "startup_ms": _of_videos(lambda one: one.startup_ms),
}
"""The figures by name; one is None for a run that does not have it."""


def experienced(runs: Sequence[Summary], figure: str) -> list[float | None]:
    """A figure of each of the repetitions of a configuration; None for one that does not have it.

    Where one gave pages or names up, none has a time of theirs: the others are those that were lucky.
    """
    given_up = [EXPERIENCE[share] for share, of in GIVEN_UP.items() if of.time == figure]
    if any(share(run) for share in given_up for run in runs):
        return [None] * len(runs)
    return [EXPERIENCE[figure](run) for run in runs]


class GivenUp(NamedTuple):
    """What a share of things that were given up says.

    Attributes:
        what: what was given up, in the plural.
        time: the figure that then says nothing: how long those took that came.
    """

    what: str
    time: str


GIVEN_UP = {
    "pages_given_up_percent": GivenUp("pages", "page_ms"),
    "lookups_given_up_percent": GivenUp("names", "lookup_ms"),
}
"""The figures that are such shares."""
