"""Look of charts: what their reader set in place of what Weir chooses by itself.

Nothing here needs Matplotlib, so that faults are told before anything is loaded or read.
"""

from __future__ import annotations

import math
import re
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    Limits = tuple[float, float]

__all__ = ["Look", "current"]


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a chart is to look, as far as it differs from what Weir chooses.

    Attributes:
        ping_ms: ends of axes of pings in milliseconds.
        throughput_mbps: ends of axes of throughput in Mbit/s.
        ping_scale: scale of axes of pings; the label of a logarithmic one says so.
        names: a name for each configuration, in order; empty for Weir's own.
        colours: colours as `#1b9e77`, in order of what is told apart; Weir's own follow.
        notes: times in seconds, each with a word that is written there.
        flows: patterns with `*` and `?` of the names of flows that are drawn; empty for all.
        probes: the same of probes.
        hosts: the same of the servers at their other ends.
        of: what the charts of distributions are of: `ping`, or one of `quantity.QUANTITIES`.
        against: what chart `meta` has on its axis below, a column of `weirlab.frame`, `title` or `tags`.
        figures: which figures it has, columns of `weirlab.frame`; empty for the median ping under load.
        group: by what its records are put in groups, like `against`; empty for one group.
        style: `paper` for a column of a paper: 3.5 inches wide, without heading, footer and table.
        span_s: first and last second that is drawn; None for the whole time.
    """

    ping_ms: Limits | None = None
    throughput_mbps: Limits | None = None
    ping_scale: Literal["linear", "log"] = "linear"
    names: Sequence[str] = ()
    colours: Sequence[str] = ()
    notes: Sequence[tuple[float, str]] = ()
    flows: Sequence[str] = ()
    probes: Sequence[str] = ()
    hosts: Sequence[str] = ()
    of: str = "ping"
    against: str = "configuration"
    figures: Sequence[str] = ()
    group: str = ""
    style: Literal["screen", "paper"] = "screen"
    span_s: Limits | None = None

    def __post_init__(self) -> None:
        """Refuses what cannot be drawn.

        Raises:
            UsageError: if limits are empty, a colour is none, or a logarithmic axis would begin at 0.
        """
        self._check_limits()
        if self.ping_scale not in {"linear", "log"}:
            raise UsageError(f"scale `{self.ping_scale}` of pings: it is `linear` or `log`")
        if self.style not in {"screen", "paper"}:
            raise UsageError(f"style `{self.style}`: it is `screen` or `paper`")
        if self.ping_scale == "log" and self.ping_ms and self.ping_ms[0] == 0:
            raise UsageError("axis of pings from 0 ms: a logarithmic axis begins above 0")
        for colour in self.colours:
            if not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
                raise UsageError(f"colour `{colour}`: write red, green and blue as in #1b9e77")
        for at, word in self.notes:
            if not 0 <= at < math.inf or not word.strip() or len(word) > MAX_NOTE_CHARS:
                raise UsageError(
                    f"note `{word}` at {at:g} s: it needs a time from 0 s on and 1 to {MAX_NOTE_CHARS} "
                    "characters"
                )

    def _check_limits(self) -> None:
        for what, limits, unit in (
            ("pings", self.ping_ms, "ms"),
            ("throughput", self.throughput_mbps, "Mbit/s"),
        ):
            if limits is None:
                continue
            low, high = limits
            if not (0 <= low < high < math.inf):
                raise UsageError(
                    f"axis of {what} from {low:g} to {high:g} {unit}: it must begin at 0 or later "
                    "and end after that"
                )

    @property
    def paper(self) -> bool:
        """Whether the chart is for a column of a paper."""
        return self.style == "paper"

    @property
    def selects(self) -> bool:
        """Whether only some flows or probes are drawn."""
        return bool(self.flows or self.probes or self.hosts)

    def words(self) -> str:
        """What a reader of the chart must know of it; empty if nothing."""
        said = [
            f"Only {kind} {' and '.join(patterns)}."
            for kind, patterns in (("flows", self.flows), ("probes", self.probes), ("of host", self.hosts))
            if patterns
        ]
        if self.span_s:
            first, last = self.span_s
            said.append(f"Drawn from {first:g} s to {last:g} s; figures in words are of the whole load.")
        if self.ping_ms or self.throughput_mbps:
            said.append("Axes end where the user set it; what lies beyond is not drawn.")
        return " ".join(said)


def chosen(names: Sequence[str], patterns: Sequence[str]) -> list[bool]:
    """Which of `names` one of `patterns` fits; all without patterns."""
    return [not patterns or any(fnmatchcase(name, pattern) for pattern in patterns) for name in names]


def current() -> Look:
    """The look of the chart that is being drawn."""
    return LOOK.get() or Look()


LOOK: ContextVar[Look | None] = ContextVar("look", default=None)
"""Set by `theme.applied`, beside Matplotlib's settings."""

MAX_NOTE_CHARS = 60
"""Characters of a note: half the width of a chart."""
